"""The backing queue: five places, the pending messages, and all counters.

Owns each operation on the queue as in the release, and which of them end with a reduction of
memory. `moves` moves messages between RAM and disk; the layer above decides on deliveries and
drops, and passes in the time.

Messages leave in this order: q4 (alpha), q3 (beta and gamma), delta, q2 (beta and gamma), q1
(alpha). A message is published to q4, or to q1 if q3 has any. Only q4 and q3 are fetched from.
Whenever the last message leaves q3 the next ones are brought up at once, so the queue is empty
exactly when both are.

The document gives the bringing up as the only reason. Three others are needed: paging leaves in q3
at least its first message (`moves`); a requeue puts messages in q3 only if it has some, and never
begins a delta; a purge and a start bring up delta too.

Source: the analysis of RabbitMQ's queue mechanism (2.8.2), `queue_out` and `fetch_from_q3`. Model:
`models/rabbitmq/paging_places.py`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal

from brokerproof.reference.rabbitmq.disk.records import ID_BYTES
from brokerproof.reference.rabbitmq.paging.confirms import Confirms
from brokerproof.reference.rabbitmq.paging.holdings import Holdings
from brokerproof.reference.rabbitmq.paging.invariants import (
    assert_sound,
    assert_status_sound,
)
from brokerproof.reference.rabbitmq.paging.moves import (
    maybe_deltas_to_betas,
    reduce_memory_use,
    reduction_is_due,
)
from brokerproof.reference.rabbitmq.paging.ram_acks import RamAcks
from brokerproof.reference.rabbitmq.paging.rates import Counts, rates_from
from brokerproof.reference.rabbitmq.paging.statuses import (
    BLANK,
    Delta,
    Fetched,
    InvariantBroken,
    MessageStatus,
    checked,
    expand,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
    from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
    from brokerproof.reference.rabbitmq.parameters import Parameters


class VariableQueue:
    """One queue. `target` is the number of messages allowed in RAM, None for no limit.

    `length` counts the ready messages, `ram_count` those of them with a body in RAM,
    `persistent_count` the persistent ones, ready or pending. Every operation ends with the
    release's own assertions.
    """

    __slots__ = (
        "ack_in_count",
        "ack_out_count",
        "confirms",
        "delta",
        "durable",
        "holdings",
        "in_count",
        "length",
        "name",
        "next_seq",
        "out_count",
        "parameters",
        "pending",
        "persistent_count",
        "q1",
        "q2",
        "q3",
        "q4",
        "ram_acks",
        "ram_count",
        "rates",
        "target",
        "transient_threshold",
    )

    def __init__(
        self,
        name: str,
        index: QueueIndex,
        persistent_store: MessageStore,
        transient_store: MessageStore,
        parameters: Parameters,
        *,
        durable: bool,
        now_us: int,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.durable = durable
        self.q1: deque[MessageStatus] = deque()
        self.q2: deque[MessageStatus] = deque()
        self.delta: Delta = BLANK
        self.q3: deque[MessageStatus] = deque()
        self.q4: deque[MessageStatus] = deque()
        self.next_seq = 0
        self.transient_threshold = 0
        self.pending: dict[int, MessageStatus] = {}
        self.ram_acks = RamAcks()
        self.length = 0
        self.persistent_count = 0
        self.ram_count = 0
        self.target: int | None = None
        self.in_count = 0
        self.out_count = 0
        self.ack_in_count = 0
        self.ack_out_count = 0
        self.rates = rates_from(now_us)
        self.confirms = Confirms()
        self.holdings = Holdings(name, index, persistent_store, transient_store, self.confirms)

    def recover(self, bounds: tuple[int, int], count: int, *, may_have_stale: bool) -> None:
        """Start with the content of the index: `count` messages within its `bounds`.

        `may_have_stale` says that there may be entries of transient messages, which are gone.
        """
        low, following = bounds
        if count or may_have_stale:
            self.delta = checked(Delta(low, count, following))
        self.next_seq = self.transient_threshold = following
        self.length = self.persistent_count = count
        maybe_deltas_to_betas(self)
        assert_sound(self)

    def publish(
        self,
        msg_id: bytes,
        body: bytes,
        *,
        persistent: bool = False,
        expiry: int | None = None,
        needs_confirming: bool = False,
    ) -> None:
        """Append a message. Confirms are for persistent messages of durable queues."""
        status = self._new_status(msg_id, body, persistent, expiry, needs_confirming)
        (self.q1 if self.q3 else self.q4).append(status)
        self.length += 1
        self.ram_count += 1
        if self.target is not None:
            reduce_memory_use(self)
        assert_sound(self)

    def publish_delivered(
        self,
        msg_id: bytes,
        body: bytes,
        *,
        ack_required: bool,
        persistent: bool = False,
        expiry: int | None = None,
        needs_confirming: bool = False,
    ) -> int | None:
        """Record a message that a consumer gets at once; return its tag, if it has one.

        Only while nothing is ready. Without acknowledgement nothing is kept.
        """
        if self.length:
            raise InvariantBroken("PD")
        if not ack_required:
            if needs_confirming:
                self.confirms.record((msg_id,))
            return None
        status = self._new_status(
            msg_id, body, persistent, expiry, needs_confirming, is_delivered=True
        )
        self.out_count += 1
        self._record_pending_ack(status)
        if self.target is not None:
            reduce_memory_use(self)
        assert_sound(self)
        return status.seq

    def _new_status(
        self,
        msg_id: bytes,
        body: bytes,
        persistent: bool,
        expiry: int | None,
        needs_confirming: bool,
        *,
        is_delivered: bool = False,
    ) -> MessageStatus:
        assert len(msg_id) == ID_BYTES, "a message id has 16 bytes"
        assert expiry is None or expiry > 0, "on disk, 0 is no expiry"
        is_persistent = persistent and self.durable
        status = MessageStatus(self.next_seq, msg_id, body, is_persistent, expiry, needs_confirming)
        status.is_delivered = is_delivered
        self.next_seq += 1
        self.in_count += 1
        if needs_confirming:
            assert is_persistent, "the layer above confirms transient messages"
            self.confirms.expect(msg_id)
        if is_persistent:
            self.persistent_count += 1
            self.holdings.write_message(status)
            self.holdings.write_index(status)
        return status

    def _record_pending_ack(self, status: MessageStatus) -> None:
        """Keep a delivered message until it is settled; its body only if it is not on disk."""
        if status.msg_on_disk:
            status.body = None
        else:
            self.ram_acks.add(status.seq)
        self.pending[status.seq] = status
        self.ack_in_count += 1
        assert_status_sound(status)

    def fetch(self, *, ack_required: bool) -> Fetched | None:
        """Deliver the first message, or return None if nothing is ready."""
        status = self._queue_out()
        return None if status is None else self._hand_out(status, ack_required, with_body=True)

    def drop(self, *, ack_required: bool) -> Fetched | None:
        """Deliver the first message without reading its body."""
        status = self._queue_out()
        return None if status is None else self._hand_out(status, ack_required, with_body=False)

    def _queue_out(self) -> MessageStatus | None:
        """Remove the first message from its place; counters still count it."""
        if self.q4:
            return self.q4.popleft()
        return self._fetch_from_q3()

    def _fetch_from_q3(self) -> MessageStatus | None:
        if not self.q3:
            return None
        status = self.q3.popleft()
        if not self.q3:
            if self.delta.count == 0:
                if self.q2:
                    raise InvariantBroken("F1")
                if self.q4:
                    raise InvariantBroken("F2")
                self.q4, self.q1 = self.q1, self.q4
            else:
                maybe_deltas_to_betas(self)
        return status

    def _hand_out(self, status: MessageStatus, ack_required: bool, *, with_body: bool) -> Fetched:
        seq, redelivered = status.seq, status.is_delivered
        body = self.holdings.read_message(status) if with_body else None
        if status.body is not None:
            self.ram_count -= 1
        self.holdings.deliver(status)
        self.length -= 1
        self.out_count += 1
        if ack_required:
            status.is_delivered = True
            self._record_pending_ack(status)
        else:
            self.persistent_count -= self.holdings.remove((status,))
        assert_sound(self)
        return Fetched(status.msg_id, body, redelivered, seq if ack_required else None, self.length)

    def dropwhile(self, matches: Callable[[int | None], bool]) -> int:
        """Drop messages from the front while their expiry matches; return their number."""
        dropped = 0
        while (status := self._queue_out_if(matches)) is not None:
            self._hand_out(status, ack_required=False, with_body=False)
            dropped += 1
        return dropped

    def fetchwhile(self, matches: Callable[[int | None], bool]) -> list[Fetched]:
        """Deliver messages from the front, to be acknowledged, while their expiry matches."""
        fetched = []
        while (status := self._queue_out_if(matches)) is not None:
            fetched.append(self._hand_out(status, ack_required=True, with_body=True))
        return fetched

    def _queue_out_if(self, matches: Callable[[int | None], bool]) -> MessageStatus | None:
        """Remove the first message from its place if it matches; otherwise put it back.

        If it was the last in q3, those of q1 have come up to q4. It then goes before them, with its
        body, as everything in q4.
        """
        status = self._queue_out()
        if status is None or matches(status.expiry):
            return status
        if status.body is None and not self.q4:
            self.q3.appendleft(status)
        else:
            if status.body is None:
                self._make_alpha(status)
            self.q4.appendleft(status)
        assert_sound(self)
        return None

    def acknowledge(self, tags: Iterable[int]) -> list[bytes]:
        """Settle deliveries for good, each once; return the ids in the same order.

        An unknown tag raises `KeyError`; nothing has changed then.
        """
        statuses = [self.pending[tag] for tag in tags]
        for status in statuses:
            del self.pending[status.seq]
            self.ram_acks.discard(status.seq)
        self.persistent_count -= self.holdings.remove(statuses)
        self.ack_out_count += len(statuses)
        assert_sound(self)
        return [status.msg_id for status in statuses]

    def requeue(self, tags: Iterable[int]) -> list[bytes]:
        """Put messages back, each at its place; return the ids, the last in the queue first.

        An unknown tag raises `KeyError`; nothing has changed then.

        Every delivered message was ahead of all in q1 and q2 (I11), so these are not involved. With
        nothing in q3 all go to q4, and a blank delta stays blank.
        """
        statuses = deque(self.pending[tag] for tag in sorted(tags))
        msg_ids = [status.msg_id for status in reversed(statuses)]
        for status in statuses:
            del self.pending[status.seq]
            self.ram_acks.discard(status.seq)
            status.needs_confirming = False
        count = len(statuses)
        merge(self.q4, statuses, self.q3[0].seq if self.q3 else None, self._make_alpha)
        merge(self.q3, statuses, self.delta.start if self.delta.count else None, self.make_beta)
        for status in statuses:
            self.make_delta(status)
        self.in_count += count
        self.length += count
        if self.target is not None:
            reduce_memory_use(self)
        assert_sound(self)
        return msg_ids

    def _make_alpha(self, status: MessageStatus) -> None:
        status.body = self.holdings.read_message(status)
        self.ram_count += 1

    def make_beta(self, status: MessageStatus) -> None:
        """Move a message's body to disk; its position stays in RAM."""
        self.holdings.write_message(status)
        status.body = None
        assert_status_sound(status)

    def make_delta(self, status: MessageStatus) -> None:
        """Move a message to disk entirely; its status is not needed any more."""
        self.holdings.write_message(status)
        self.holdings.write_index(status)
        assert_status_sound(status)
        self.delta = expand(self.delta, status.seq)

    def purge(self) -> int:
        """Drop all ready messages and return their number; pending messages stay."""
        purged = self.length
        self._purge(self.q4)
        while self.q3:
            self._purge(self.q3)
            maybe_deltas_to_betas(self)
        self._purge(self.q1)
        self.length = 0
        self.ram_count = 0
        assert_sound(self)
        return purged

    def _purge(self, place: deque[MessageStatus]) -> None:
        for status in place:
            self.holdings.deliver(status)
        self.persistent_count -= self.holdings.remove(place)
        place.clear()

    def drain_confirmed(self) -> set[bytes]:
        """Return the ids of messages that became safe, or were removed, since the last call."""
        return self.confirms.drain()

    def sync(self) -> None:
        """Make all positions durable, as at a timeout; the stores sync bodies."""
        self.holdings.index.sync()

    def timeout(self) -> None:
        """Do the work that is due at rest: sync the index, and page once."""
        self.holdings.index.sync()
        reduce_memory_use(self)
        assert_sound(self)

    def needs_timeout(self) -> Literal["timed", "idle"] | None:
        """Return how soon `timeout` is due: after a while, at rest, or never."""
        if self.confirms.waits_for_index():
            return "timed"
        if self.holdings.index.needs_sync() or reduction_is_due(self):
            return "idle"
        return None

    def ram_duration(self, now_us: int) -> float:
        """Return for how many seconds the messages in RAM last; begin a new counting period."""
        counts = Counts(self.in_count, self.out_count, self.ack_in_count, self.ack_out_count)
        self.rates, seconds = self.rates.begin_period(
            now_us, counts, self.ram_count, len(self.ram_acks)
        )
        self.in_count = self.out_count = self.ack_in_count = self.ack_out_count = 0
        return seconds

    def set_ram_duration_target(self, seconds: float) -> None:
        """Set the target by a duration; without movement, any finite time allows no message."""
        self.set_target(self.rates.target(seconds))

    def set_target(self, target: int | None) -> None:
        """Set the number of messages allowed in RAM; if it falls, page at once."""
        before, self.target = self.target, target
        if target is not None and (before is None or target < before):
            reduce_memory_use(self)
        assert_sound(self)

    def terminate(self) -> None:
        """Stop cleanly: pending messages are forgotten, and persistent ones stay on disk."""
        self.holdings.remove_transient_bodies(self.pending.values())
        self.pending.clear()
        self.ram_acks.clear()
        self.holdings.disconnect()
        self.holdings.index.terminate(self.name, self.persistent_count)

    def delete(self) -> None:
        """Remove the queue with all its files."""
        self.purge()
        self.acknowledge(list(self.pending))
        self.holdings.disconnect()
        self.holdings.index.delete()
