"""The queue that pages its messages out: five places, and the moves between them.

Sources: the document on RabbitMQ's queue (2.8.2), `queue_out`, `fetch_from_q3`,
`maybe_deltas_to_betas`, `push_alphas_to_betas`, `push_betas_to_deltas`, `limit_ram_acks`; the ids
are those of later notes on RabbitMQ.

A message's content is in memory in q1 and q4, on disk in q2, q3 and delta; of what is in delta, the
queue has not even the position in memory. Messages are fetched from q4, then q3. When the last of
q3 leaves, the next segment of delta is read into q3, and q2 joins it when delta is used up; where
there is no delta, q1 becomes q4. That is done before the fetch ends, so that where q4 and q3 are
empty everything is.

When and how many are moved out of memory is left open here: each message that may move is a step of
its own, so whatever the target is, and the batch, and how many are over, is covered. So is any size
of segments. What is counted is `paging_lengths`'s business; crashes are that of `paging_index` and
`paging_confirms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from brokerproof.models.language import Bool, action, exists, forall, implies, ite, require
from brokerproof.models.qpid.threads.equivalent_mutants import by_name
from brokerproof.models.rabbitmq.equivalent_mutants import PAGING_PLACES
from brokerproof.models.rabbitmq.paging_invariants import PagingInvariants
from brokerproof.models.rabbitmq.paging_state import Message, Place, Segment

__all__ = ["Message", "PagingPlaces", "Place", "Segment"]


class PagingPlaces(PagingInvariants):
    """A queue whose messages leave memory as it fills, and come back as they are fetched."""

    harmless: ClassVar[Mapping[str, str]] = by_name(PAGING_PLACES)

    # Arriving.

    @action
    def publish(self, m: Message) -> None:
        """A message arrives: at the end of q1, or of q4 where nothing is in q3."""
        require(~self.used[m])
        self._takes_position(m)
        self.place[m] = ite(self.has_none(Place.Q3), Place.Q4, Place.Q1)
        self.in_ram[m] = True
        self.delivered[m] = False

    @action
    def publish_delivered(self, m: Message) -> None:
        """A message arrives at an empty queue and is with a consumer at once, unacknowledged."""
        require(~self.used[m])
        require(forall(Message, lambda n: ~self.is_ready(n)))
        self._takes_position(m)
        self.place[m] = Place.PENDING
        self.in_ram[m] = ~self.persistent[m]
        self.delivered[m] = True
        self.noted[m] = self.persistent[m]
        self.was_fetched[m] = True

    def _takes_position(self, m: Message) -> None:
        """What is persistent goes to disk before all else; the position is used up."""
        self.stored[m] = self.persistent[m]
        self.indexed[m] = self.persistent[m]
        self.used = self.used.map(lambda n, old: old | self.at_or_before(n, m))

    # Fetching.

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """The first of q4 is fetched."""
        require(self.is_first_of(Place.Q4, m))
        self._fetches(m, keeps)

    @action
    def fetch_from_q3(self, m: Message, keeps: Bool) -> None:
        """Nothing is in q4: the first of q3 is fetched, and others are left there."""
        require(self.has_none(Place.Q4))
        require(self.is_first_of(Place.Q3, m) & ~self.is_only_one_of(Place.Q3, m))
        self._fetches(m, keeps)

    @action
    def fetch_last(self, m: Message, keeps: Bool) -> None:
        """The last of q3 is fetched and delta is blank: q1 becomes q4."""
        require(self.runs_out_of_q3(m))
        require(self.has_none(Place.DELTA))
        self._fetches(m, keeps)
        self._q1_becomes_q4()

    @action
    def fetch_last_and_reload(self, m: Message, first: Message, keeps: Bool) -> None:
        """The last of q3 is fetched: a segment of delta is read into q3, and some is left."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & ~self.reload_leaves_none(first))
        self._fetches(m, keeps)
        self._reloads(first)

    @action
    def fetch_last_and_reload_all(self, m: Message, first: Message, keeps: Bool) -> None:
        """The last of q3 is fetched: what is left of delta is read into q3, and q2 joins it."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & self.reload_leaves_none(first))
        self._fetches(m, keeps)
        self._reloads_all(first)

    def _fetches(self, m: Message, keeps: Bool) -> None:
        """The index notes the delivery; who will not acknowledge makes an end of the message."""
        self.out_of_turn[m] = exists(Message, lambda n: self.is_ready(n) & self.before(n, m))
        self.was_fetched[m] = True
        self.noted[m] = self.noted[m] | (self.indexed[m] & ~self.delivered[m])
        self.acked[m] = self.acked[m] | (self.indexed[m] & self.stored[m] & ~keeps)
        self.in_ram[m] = keeps & ~self.stored[m]
        self.stored[m] = keeps & self.stored[m]
        self.delivered[m] = True
        self.place[m] = ite(keeps, Place.PENDING, Place.GONE)

    def _q1_becomes_q4(self) -> None:
        self.place = self.place.map(lambda _, old: ite(old == Place.Q1, Place.Q4, old))

    def _reloads(self, first: Message) -> None:
        """Read the segment's entries into q3; delta starts at the next segment."""
        self._reads(first)
        self.place = self.place.map(lambda n, old: ite(self.is_reloaded(first, n), Place.Q3, old))
        self.from_start = self.from_start.map(
            lambda n, old: old & self.earlier(self.segment[first], self.segment[n])
        )

    def _reloads_all(self, first: Message) -> None:
        """Read the segment's entries into q3, and then q2; delta is blank."""
        self._reads(first)
        self.place = self.place.map(
            lambda n, old: ite(self.is_reloaded(first, n) | (old == Place.Q2), Place.Q3, old)
        )
        self.from_start.fill(False)
        self.before_end.fill(False)

    def _reads(self, first: Message) -> None:
        """Whether a message was delivered before is known from its entry alone."""
        self.delivered = self.delivered.map(
            lambda n, old: ite(self.is_reloaded(first, n), self.noted[n], old)
        )

    # Dropping from the front: what is dropped is fetched, and the first that is not is put back.

    @action
    def put_back_into_q4(self, m: Message) -> None:
        """The last of q3 is put back when q1 has become q4: it is read, and goes before that."""
        require(self.runs_out_of_q3(m))
        require(self.has_none(Place.DELTA) & self.has_any(Place.Q1))
        self._q1_becomes_q4()
        self.place[m] = Place.Q4
        self.in_ram[m] = True

    @action
    def put_back_and_reload(self, m: Message, first: Message) -> None:
        """The last of q3 is put back when a segment has been read: it goes before that."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & ~self.reload_leaves_none(first))
        self._reloads(first)

    @action
    def put_back_and_reload_all(self, m: Message, first: Message) -> None:
        """The same where what was read is all of delta, and q2 has joined it."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & self.reload_leaves_none(first))
        self._reloads_all(first)

    # Leaving memory.

    @action
    def page_q1_to_q3(self, m: Message) -> None:
        """The content of the first of q1 leaves memory; nothing is in delta."""
        require(self.is_first_of(Place.Q1, m))
        require(self.has_none(Place.DELTA))
        self._leaves_memory(m)
        self.place[m] = Place.Q3

    @action
    def page_q1_to_q2(self, m: Message) -> None:
        """The content of the first of q1 leaves memory; it is behind delta."""
        require(self.is_first_of(Place.Q1, m))
        require(self.has_any(Place.DELTA))
        self._leaves_memory(m)
        self.place[m] = Place.Q2

    @action
    def page_q4(self, m: Message) -> None:
        """The content of the last of q4 leaves memory; it is the first of q3 then."""
        require(self.is_last_of(Place.Q4, m))
        self._leaves_memory(m)
        self.place[m] = Place.Q3

    @action
    def page_q3(self, head: Message, m: Message) -> None:
        """The position of the last of q3 leaves memory, if it is in a later segment than the first.

        So the first of q3 stays, and q3 is not emptied.
        """
        require(self.is_first_of(Place.Q3, head) & self.is_last_of(Place.Q3, m))
        require(self.earlier(self.segment[head], self.segment[m]))
        self._goes_to_delta(m)

    @action
    def page_q2(self, m: Message) -> None:
        """The position of the first of q2 leaves memory."""
        require(self.is_first_of(Place.Q2, m))
        self._goes_to_delta(m)

    @action
    def limit_ram_acks(self, m: Message) -> None:
        """The content of the last message that is pending and in memory leaves memory."""
        require(self.is_in(m, Place.PENDING) & self.in_ram[m])
        require(
            forall(
                Message,
                lambda n: implies(
                    self.is_in(n, Place.PENDING) & self.in_ram[n], self.at_or_before(n, m)
                ),
            )
        )
        self._leaves_memory(m)

    def _leaves_memory(self, m: Message) -> None:
        self.stored[m] = True
        self.in_ram[m] = False

    def _goes_to_delta(self, m: Message) -> None:
        """Write content and position, and that it was delivered; keep nothing in memory."""
        self._leaves_memory(m)
        self.noted[m] = self.noted[m] | (~self.indexed[m] & self.delivered[m])
        self.indexed[m] = True
        self.delivered[m] = False
        self.place[m] = Place.DELTA
        self.from_start = self.from_start.map(lambda n, old: old | self.at_or_before(m, n))
        self.before_end = self.before_end.map(lambda n, old: old | self.at_or_before(n, m))

    # Settling.

    @action
    def acknowledge(self, m: Message) -> None:
        """A message is done with: index and store forget it."""
        require(self.is_in(m, Place.PENDING))
        self._forgets(lambda n: n == m)

    @action
    def requeue_to_q4(self, m: Message) -> None:
        """A message returns before q3, or where nothing is in q3: its content is read."""
        require(self.is_in(m, Place.PENDING))
        require(forall(Message, lambda n: implies(self.is_in(n, Place.Q3), self.before(m, n))))
        self.place[m] = Place.Q4
        self.in_ram[m] = True

    @action
    def requeue_to_q3(self, head: Message, m: Message) -> None:
        """A message returns between q3's first and delta: its content leaves memory."""
        require(self.is_in(m, Place.PENDING))
        require(self.is_first_of(Place.Q3, head) & self.before(head, m))
        require(~self.from_start[m])
        self._leaves_memory(m)
        self.place[m] = Place.Q3

    @action
    def requeue_to_delta(self, head: Message, m: Message) -> None:
        """A message returns behind where delta starts: its position leaves memory, too."""
        require(self.is_in(m, Place.PENDING))
        require(self.is_first_of(Place.Q3, head) & self.before(head, m))
        require(self.from_start[m])
        self._goes_to_delta(m)

    @action
    def purge(self) -> None:
        """All that is ready is dropped, and delta is blank; what is pending stays."""
        self._forgets(self.is_ready)
        self.from_start.fill(False)
        self.before_end.fill(False)

    def _forgets(self, is_it: Callable[[Message], Bool]) -> None:
        """Let go of messages: the index notes the delivery first, where it has not."""
        self.noted = self.noted.map(lambda n, old: old | (is_it(n) & self.indexed[n]))
        self.acked = self.acked.map(lambda n, old: old | (is_it(n) & self.indexed[n]))
        self.stored = self.stored.map(lambda n, old: old & ~is_it(n))
        self.in_ram = self.in_ram.map(lambda n, old: old & ~is_it(n))
        self.place = self.place.map(lambda n, old: ite(is_it(n), Place.GONE, old))
