"""The moves of messages between RAM and disk: when memory is short, and when they are needed again.

Owns the internal moves between the places, and how many messages move at a time. Each function
takes the queue that it changes. None may change the ready messages, the pending messages, or their
order (I24).

The message needed last goes first: the first of q1, which has q2 and delta before it; the last of
q4; the last of q3, but never one in the segment of its first, so that q3 keeps something; the first
of q2, since delta ends where q2 begins.

Source: the analysis of RabbitMQ's queue mechanism (2.8.2), the functions of these names. Models:
`models/rabbitmq/paging_places.py` for each move, `paging_reduction.py` for how many move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.paging.statuses import (
    BLANK,
    Delta,
    InvariantBroken,
    MessageStatus,
    checked,
)

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.disk.records import IndexEntry
    from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue


def next_segment_boundary(seq: int, segment: int) -> int:
    """Return the start of the segment after that of `seq`, which is always beyond `seq`."""
    return (seq // segment + 1) * segment


def maybe_deltas_to_betas(queue: VariableQueue) -> None:
    """Bring the messages of delta's first nonempty segment up to q3.

    If that was all of delta, q2 follows. Pending messages are in the index too and are skipped.
    Entries of transient messages from before a restart are removed.
    """
    delta = queue.delta
    while not delta.is_blank:
        high = min(next_segment_boundary(delta.start, queue.parameters.segment), delta.end)
        kept = _betas_from_index_entries(queue, queue.holdings.index.read(delta.start, high))
        left = delta.count - len(kept)
        if left < 0:
            raise InvariantBroken("R1")
        if left == 0 and (kept or high == delta.end):
            queue.q3.extend(kept)
            queue.q3.extend(queue.q2)
            queue.q2.clear()
            delta = BLANK
        else:
            queue.q3.extend(kept)
            delta = checked(Delta(high, left, delta.end))
        queue.delta = delta
        if kept:
            break


def _betas_from_index_entries(
    queue: VariableQueue, entries: list[IndexEntry]
) -> list[MessageStatus]:
    kept: list[MessageStatus] = []
    undelivered: list[int] = []
    stale: list[int] = []
    threshold, pending = queue.transient_threshold, queue.pending
    for seq, msg_id, expiry, is_persistent, is_delivered in entries:
        if not is_persistent and seq < threshold:
            if not is_delivered:
                undelivered.append(seq)
            stale.append(seq)
        elif seq not in pending:
            status = MessageStatus(seq, msg_id, None, is_persistent, expiry, False)
            status.is_delivered = is_delivered
            status.msg_on_disk = status.index_on_disk = True
            kept.append(status)
    if stale:
        queue.holdings.index.deliver(undelivered)
        queue.holdings.index.acknowledge(stale)
    return kept


def chunk_size(current: int, permitted: int | None, batch: int) -> int:
    """Return how many of `current` to move at once if `permitted` may stay; None permits all."""
    if permitted is None or permitted >= current:
        return 0
    return min(current - permitted, batch)


def permitted_beta_count(queue: VariableQueue) -> int | None:
    """Return how many messages q2 and q3 may have together; None for no limit.

    Of the messages without a body in RAM, the harmonic mean with the target gives the part. It is
    at least a segment, because a segment is read at once. Without any room in RAM, q3 alone counts.
    """
    if queue.length == 0:
        return None
    segment = queue.parameters.segment
    target = queue.target
    assert target is not None, "there is a surplus only where there is a target"
    if target == 0:
        return min(len(queue.q3), segment)
    on_disk = queue.length - len(queue.q1) - len(queue.q4)
    return max(segment, on_disk - on_disk * on_disk // (on_disk + target))


def _beta_surplus(queue: VariableQueue) -> int:
    """Return how many betas go to delta now; 0 unless a batch (`IO_BATCH_SIZE`) at least."""
    parameters = queue.parameters
    current = len(queue.q2) + len(queue.q3)
    if current < parameters.batch:
        return 0
    permitted = permitted_beta_count(queue)
    if parameters.surplus == "any":
        surplus = chunk_size(current, permitted, current)
    else:
        surplus = chunk_size(current, permitted, parameters.batch)
    return surplus if surplus >= parameters.batch else 0


def _alpha_surplus(queue: VariableQueue) -> int:
    current = queue.ram_count + len(queue.ram_acks)
    return chunk_size(current, queue.target, queue.parameters.batch)


def reduction_is_due(queue: VariableQueue) -> bool:
    """Return whether `reduce_memory_use` would move anything."""
    return queue.target is not None and bool(_alpha_surplus(queue) or _beta_surplus(queue))


def reduce_memory_use(queue: VariableQueue) -> bool:
    """Page at most a batch of bodies, then the surplus positions; return whether any moved.

    Both kinds of bodies are paged, one after the other; the second kind gets the rest of the batch.
    """
    if queue.target is None:
        return False
    quota = _alpha_surplus(queue)
    if quota:
        if queue.rates.averages.pending_grows_faster:
            push_alphas_to_betas(queue, limit_ram_acks(queue, quota))
        else:
            limit_ram_acks(queue, push_alphas_to_betas(queue, quota))
    surplus = _beta_surplus(queue)
    if surplus:
        push_betas_to_deltas(queue, surplus)
    return bool(quota or surplus)


def limit_ram_acks(queue: VariableQueue, quota: int) -> int:
    """Page bodies of pending messages, the latest first; return the quota left.

    The document takes the latest of all pending messages, the release the latest of those in RAM.
    """
    while quota and queue.ram_acks:
        queue.make_beta(queue.pending[queue.ram_acks.pop_largest()])
        quota -= 1
    return quota


def push_alphas_to_betas(queue: VariableQueue, quota: int) -> int:
    """Page bodies of ready messages until the target is met; return the quota left."""
    target = queue.target
    while quota and queue.q1 and target is not None and target < queue.ram_count:
        status = queue.q1.popleft()
        queue.make_beta(status)
        queue.ram_count -= 1
        # With a blank delta no message is between q3 and q1.
        (queue.q3 if queue.delta.count == 0 else queue.q2).append(status)
        quota -= 1
    while quota and queue.q4 and target is not None and target < queue.ram_count:
        status = queue.q4.pop()
        queue.make_beta(status)
        queue.ram_count -= 1
        queue.q3.appendleft(status)
        quota -= 1
    return quota


def push_betas_to_deltas(queue: VariableQueue, quota: int) -> None:
    """Page positions: of q3 from the rear, beyond the segment of its first; then of q2.

    It is the `BetaDeltaFun` of the document's `reduce_memory_use`.
    """
    if queue.q3:
        limit = next_segment_boundary(queue.q3[0].seq, queue.parameters.segment)
        while quota and queue.q3[-1].seq >= limit:
            queue.make_delta(queue.q3.pop())
            quota -= 1
    while quota and queue.q2:
        queue.make_delta(queue.q2.popleft())
        quota -= 1
