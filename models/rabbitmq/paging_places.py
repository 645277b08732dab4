"""The queue that pages its messages out: five places, and the moves between them.

Sources: the document on RabbitMQ's queue (2.8.2), `queue_out`, `fetch_from_q3`,
`maybe_deltas_to_betas`, `push_alphas_to_betas`, `push_betas_to_deltas`, `limit_ram_acks`; the ids
are those of later notes on RabbitMQ.

A message's content is in memory in q1 and q4, and on disk in q2, q3 and delta; for delta, even the
position is on disk only. Messages are fetched from q4, then from q3. When the last message of q3
leaves, the next segment of delta is read into q3, and q2 joins it if delta is used up; without
delta, q1 becomes q4. This happens within the fetch, so the queue is empty if q4 and q3 are.

When and how many messages leave memory is open: each is a step of its own, which covers every
target, batch and segment size. Counts are in `paging_reduction`, crashes in `paging_index`
and `paging_syncs`.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.language import (
    Bool,
    action,
    elements,
    exists,
    finitely,
    forall,
    implies,
    ite,
    leads_to,
    least,
    ranked,
    require,
)
from brokerproof.models.rabbitmq.paging_invariants import EMPTY, FOUND, PagingInvariants
from brokerproof.models.rabbitmq.paging_state import Message, Place, Segment

IS_FETCHED = "what-is-ready-is-fetched"
FETCHES = (
    *("fetch_from_q4", "fetch_from_q3", "fetch_last"),
    *("fetch_last_and_reload", "fetch_last_and_reload_all"),
)
"""The ways to fetch the next message, by the effect on q3; one at most is possible."""

__all__ = ["Message", "PagingPlaces", "Place", "Segment"]


class PagingPlaces(PagingInvariants):
    """A queue whose messages leave memory as it fills, and come back as they are fetched."""

    # Arrivals.

    @action
    def publish(self, m: Message) -> None:
        """A message arrives at the end of q1, or of q4 if q3 is empty."""
        require(~self.used[m])
        self._takes_position(m)
        self.place[m] = ite(self.has_none(Place.Q3), Place.Q4, Place.Q1)
        self.in_ram[m] = True
        self.delivered[m] = False

    @action
    def publish_delivered(self, m: Message) -> None:
        """A message arrives at an empty queue and goes to a consumer at once, unacknowledged."""
        require(~self.used[m])
        require(forall(Message, lambda n: ~self.is_ready(n)))
        self._takes_position(m)
        self.place[m] = Place.PENDING
        self.in_ram[m] = ~self.persistent[m]
        self.delivered[m] = True
        self.noted[m] = self.persistent[m]
        self.was_fetched[m] = True

    def _takes_position(self, m: Message) -> None:
        """Give the message its position; a persistent one goes to disk first."""
        self.stored[m] = self.persistent[m]
        self.indexed[m] = self.persistent[m]
        self.used = self.used.map(lambda n, old: old | self.at_or_before(n, m))

    # Fetches.

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """The first message of q4 is fetched."""
        require(self.is_first_of(Place.Q4, m))
        self._fetches(m, keeps)

    @action
    def fetch_from_q3(self, m: Message, keeps: Bool) -> None:
        """The first message of q3 is fetched because q4 is empty; others stay in q3."""
        require(self.has_none(Place.Q4))
        require(self.is_first_of(Place.Q3, m) & ~self.is_only_one_of(Place.Q3, m))
        self._fetches(m, keeps)

    @action
    def fetch_last(self, m: Message, keeps: Bool) -> None:
        """The last message of q3 is fetched and delta is blank: q1 becomes q4."""
        require(self.runs_out_of_q3(m))
        require(self.has_none(Place.DELTA))
        self._fetches(m, keeps)
        self._q1_becomes_q4()

    @action
    def fetch_last_and_reload(self, m: Message, first: Message, keeps: Bool) -> None:
        """The last message of q3 is fetched: a segment of delta is read into q3, others stay."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & ~self.reload_leaves_none(first))
        self._fetches(m, keeps)
        self._reloads(first)

    @action
    def fetch_last_and_reload_all(self, m: Message, first: Message, keeps: Bool) -> None:
        """The last message of q3 is fetched: the rest of delta is read into q3, and q2 joins it."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & self.reload_leaves_none(first))
        self._fetches(m, keeps)
        self._reloads_all(first)

    def _fetches(self, m: Message, keeps: Bool) -> None:
        """Note the delivery in the index; without acknowledgements the message is removed."""
        self.out_of_turn[m] = exists(Message, lambda n: self.is_ready(n) & self.before(n, m))
        self.was_fetched[m] = True
        self.noted[m] |= self.indexed[m] & ~self.delivered[m]
        self.acked[m] |= self.indexed[m] & self.stored[m] & ~keeps
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
        """Read the segment's entries into q3, and then q2; delta is blank.

        In the document: `maybe_deltas_to_betas`, when it has read as many as delta counts.
        """
        self._reads(first)
        self.place = self.place.map(
            lambda n, old: ite(self.is_reloaded(first, n) | (old == Place.Q2), Place.Q3, old)
        )
        self.from_start.fill(False)
        self.before_end.fill(False)

    def _reads(self, first: Message) -> None:
        """Take from its index entry whether each message was delivered before."""
        self.delivered = self.delivered.map(
            lambda n, old: ite(self.is_reloaded(first, n), self.noted[n], old)
        )

    # Drops from the front: dropped messages are fetched, and the first other one is put back.

    @action
    def put_back_into_q4(self, m: Message) -> None:
        """The last message of q3 is put back into q4 before q1's messages, and its content read."""
        require(self.runs_out_of_q3(m))
        require(self.has_none(Place.DELTA) & self.has_any(Place.Q1))
        self._q1_becomes_q4()
        self.place[m] = Place.Q4
        self.in_ram[m] = True

    @action
    def put_back_and_reload(self, m: Message, first: Message) -> None:
        """The last message of q3 is put back before the segment that was read."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & ~self.reload_leaves_none(first))
        self._reloads(first)

    @action
    def put_back_and_reload_all(self, m: Message, first: Message) -> None:
        """The last message of q3 is put back before all of delta, which q2 has joined."""
        require(self.runs_out_of_q3(m))
        require(self.is_found_first(first) & self.reload_leaves_none(first))
        self._reloads_all(first)

    # Paging out.

    @action
    def page_q1_to_q3(self, m: Message) -> None:
        """Beside a blank delta, q1's first message goes to q3 (push_alphas_to_betas)."""
        require(self.is_first_of(Place.Q1, m))
        require(self.has_none(Place.DELTA))
        self._leaves_memory(m)
        self.place[m] = Place.Q3

    @action
    def page_q1_to_q2(self, m: Message) -> None:
        """Q1's first message goes behind delta, its content to disk (push_alphas_to_betas)."""
        require(self.is_first_of(Place.Q1, m))
        require(self.has_any(Place.DELTA))
        self._leaves_memory(m)
        self.place[m] = Place.Q2

    @action
    def page_q4(self, m: Message) -> None:
        """Q4's last message becomes q3's first, its content on disk (push_alphas_to_betas)."""
        require(self.is_last_of(Place.Q4, m))
        self._leaves_memory(m)
        self.place[m] = Place.Q3

    @action
    def page_q3(self, head: Message, m: Message) -> None:
        """The position of q3's last message leaves memory, except in the first one's segment.

        So the first message of q3 stays, and q3 is not emptied.
        """
        require(self.is_first_of(Place.Q3, head) & self.is_last_of(Place.Q3, m))
        require(self.earlier(self.segment[head], self.segment[m]))
        self._goes_to_delta(m)

    @action
    def page_q2(self, m: Message) -> None:
        """The position of q2's first message leaves memory."""
        require(self.is_first_of(Place.Q2, m))
        self._goes_to_delta(m)

    @action
    def limit_ram_acks(self, m: Message) -> None:
        """The content of the last pending message in memory leaves memory."""
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
        """Write content, position and delivered flag, and keep nothing in memory."""
        self._leaves_memory(m)
        self.noted[m] |= ~self.indexed[m] & self.delivered[m]
        self.indexed[m] = True
        self.delivered[m] = False
        self.place[m] = Place.DELTA
        self.from_start = self.from_start.map(lambda n, old: old | self.at_or_before(m, n))
        self.before_end = self.before_end.map(lambda n, old: old | self.at_or_before(n, m))

    # Settlements.

    @action
    def acknowledge(self, m: Message) -> None:
        """A message is acknowledged: index and store forget it."""
        require(self.is_in(m, Place.PENDING))
        self._forgets(lambda n: n == m)

    @action
    def requeue_to_q4(self, m: Message) -> None:
        """A message returns before q3, or to an empty q3: its content is read."""
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
        """A message returns behind delta's start: content and position leave memory."""
        require(self.is_in(m, Place.PENDING))
        require(self.is_first_of(Place.Q3, head) & self.before(head, m))
        require(self.from_start[m])
        self._goes_to_delta(m)

    @action
    def purge(self) -> None:
        """All ready messages are dropped, and delta is blank; pending ones stay."""
        self._forgets(self.is_ready)
        self.from_start.fill(False)
        self.before_end.fill(False)

    def _forgets(self, is_it: Callable[[Message], Bool]) -> None:
        """Forget messages; the index notes their delivery first, if it had not."""
        self.noted = self.noted.map(lambda n, old: old | (is_it(n) & self.indexed[n]))
        self.acked = self.acked.map(lambda n, old: old | (is_it(n) & self.indexed[n]))
        self.stored = self.stored.map(lambda n, old: old & ~is_it(n))
        self.in_ram = self.in_ram.map(lambda n, old: old & ~is_it(n))
        self.place = self.place.map(lambda n, old: ite(is_it(n), Place.GONE, old))

    @leads_to(IS_FETCHED, fair=FETCHES, together=True, by=(EMPTY, FOUND))
    def ready_is_fetched(self, m: Message) -> tuple[Bool, Bool]:
        """A message that is ready is fetched or purged in the end, wherever it is kept."""
        ranked_to_its_fetch(self, m)
        return self.is_ready(m), ~self.is_ready(m)


def ranked_to_its_fetch(queue: PagingPlaces, m: Message) -> None:
    """Rank the messages that are fetched before one, and state which steps add to them."""

    def comes_before(*messages: Message) -> Bool:
        return queue.at_or_before(messages[-1], m)

    finitely(requeue_to_q4=comes_before, requeue_to_q3=comes_before, requeue_to_delta=comes_before)
    for place in (Place.Q4, Place.Q3):
        least(queue.before, lambda n, place=place: queue.is_in(n, place))
    least(queue.before, queue.is_found)
    ranked(
        elements(
            Message,
            lambda n: queue.is_ready(n) & comes_before(n),
            within=lambda n: ~queue.is_in(n, Place.NOWHERE),
        ),
        words="the ready messages up to this one",
    )
