"""The fingerprint of a node on a simulated disk, for searches.

Owns which parts of a state affect later behaviour.

In a name, sequence numbers count from the lowest segment in use, and a store's files from its
lowest, because both grow without bound and behaviour does not depend on it. A queue without a
segment counts from that of its next message. Files are named by meaning where they hold numbers: a
journal by its operations, the store by its records. Names leave out the disk's call counts and a
store's read cache, which repeats its files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.records import journal_operations
from brokerproof.reference.rabbitmq.disk.store_records import records_of
from brokerproof.reference.rabbitmq.paging.node import Node
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from brokerproof.reference.shared.disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
    from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
    from brokerproof.reference.rabbitmq.paging.statuses import MessageStatus


def fingerprint_node(node: Node, *, with_rates: bool = True) -> Hashable:
    """Return a value that is equal for nodes that behave alike.

    Without rates, the rates and targets set by them must not be used; then the counts for them,
    which grow without bound, do not distinguish states.
    """
    assert isinstance(node.disk, SimulatedDisk), "files of a real disk are not named"
    content = node.disk.content()
    others = set(content)
    named: list[Hashable] = []
    for name, queue in sorted(node.queues.items()):
        named.append((name, _name_queue(queue, content, others, with_rates=with_rates)))
    stores = (node.persistent_store, node.transient_store)
    named += [_name_store(store, content, others) for store in stores]
    # Files of no running part: terms, drafts, queues not declared again yet.
    left = tuple(sorted((name, content[name]) for name in others))
    return node.parameters, tuple(named), left, node.disk.power()


def _name_queue(
    queue: VariableQueue,
    content: dict[str, tuple[bytes, int]],
    others: set[str],
    *,
    with_rates: bool,
) -> Hashable:
    counts = (queue.in_count, queue.out_count, queue.ack_in_count, queue.ack_out_count)
    size = queue.holdings.index.segment_size
    lowest = min(queue.holdings.index.segments, default=queue.next_seq // size)
    first = min([lowest, *(seq // size for seq in _seqs_in_ram(queue))]) * size
    delta = queue.delta
    return (
        queue.durable,
        queue.next_seq - first,
        # Entries of transient messages below it are stale; a threshold below `first` has no effect.
        max(queue.transient_threshold - first, 0),
        (0, 0, 0) if delta.is_blank else (delta.start - first, delta.count, delta.end - first),
        tuple(
            tuple(_name_status(status, first) for status in place)
            for place in (queue.q1, queue.q2, queue.q3, queue.q4)
        ),
        tuple(_name_status(queue.pending[seq], first) for seq in sorted(queue.pending)),
        queue.target,
        queue.rates.averages,
        (queue.rates, counts) if with_rates else None,
        queue.confirms.fingerprint(),
        _name_index(queue.holdings.index, first, content, others),
        frozenset(queue.holdings.persistent_client.unsynced),
        frozenset(queue.holdings.transient_client.unsynced),
    )


def _seqs_in_ram(queue: VariableQueue) -> list[int]:
    """Return all sequence numbers that are in RAM one by one."""
    places = (queue.q1, queue.q2, queue.q3, queue.q4)
    return [*(status.seq for place in places for status in place), *queue.pending]


def _name_status(status: MessageStatus, first: int) -> Hashable:
    seq, *others = status.fields()
    return seq - first, *others


def _name_index(
    index: QueueIndex, first: int, content: dict[str, tuple[bytes, int]], others: set[str]
) -> Hashable:
    segments: list[Hashable] = []
    for number, segment in sorted(index.segments.items()):
        name = index.file_name(number)
        others.discard(name)
        segments.append(
            (
                number - first // index.segment_size,
                tuple(segment.noted()),
                segment.unacknowledged,
                content.get(name),
            )
        )
    others.discard(index.journal_name)
    journal_bytes, synced = content.get(index.journal_name, (b"", 0))
    operations = tuple(
        (kind, seq - first, record[8:]) for kind, seq, record in journal_operations(journal_bytes)
    )
    return tuple(segments), operations, synced, index.dirty_count, frozenset(index.unsynced)


def _name_store(
    store: MessageStore, content: dict[str, tuple[bytes, int]], others: set[str]
) -> Hashable:
    lowest = min(store.files)
    index = dict(store.index.items())
    files: list[Hashable] = []
    for number, file in sorted(store.files.items()):
        others.discard(file.name)
        data, synced = content.get(file.name, (b"", 0))
        records = tuple(
            (msg_id, offset, size, data[offset : offset + size])
            if msg_id in index and index[msg_id][1:3] == (number, offset)
            else (msg_id, offset, size)
            for msg_id, offset, size in records_of(data)
        )
        files.append((number - lowest, file.size, file.used, synced, records))
    located = tuple(
        (msg_id, where.references, where.file - lowest, where.offset, where.size)
        for msg_id, where in index.items()
    )
    return tuple(files), store.current.number - lowest, located, store.is_dirty
