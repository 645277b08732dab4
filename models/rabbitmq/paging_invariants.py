"""The invariants of a queue that pages its messages out; ids as in `spec/rabbitmq/invariants.toml`.

Each message has one place, so no message is ready twice, or both ready and pending (I8).
"""

from __future__ import annotations

from brokerproof.models.language import Bool, forall, implies, invariant, ite
from brokerproof.models.rabbitmq.paging_state import Message, PagingState, Place

Q1_BESIDE_Q3 = "where-q1-has-messages-so-has-q3"
Q2_BESIDE_DELTA = "where-q2-has-messages-so-has-delta"
DELTA_BESIDE_Q3 = "where-delta-has-messages-so-has-q3"
EMPTY = "the-queue-is-empty-where-q4-and-q3-are"
RUNS_OUT = "where-q3-runs-out-beside-a-blank-delta-q2-is-empty"
IN_ORDER = "the-places-are-in-order"
PENDING = "what-is-pending-is-before-q1-and-q2"
CUTS = "bounds-are-cuts-of-the-order"
BOUNDS = "delta-is-between-its-bounds"
FOUND = "a-reload-finds-what-delta-counts"
CONTENT = "the-places-say-where-the-content-is"
INDEXED = "what-is-persistent-is-in-the-index"
STORED = "what-is-in-the-index-is-in-the-store"
NOT_LOST = "the-content-is-in-memory-or-in-the-store"
PREFIX = "the-index-has-a-prefix-of-publish-deliver-acknowledge"
NOTED = "the-index-knows-what-was-delivered"
NOTHING_LEFT = "what-is-gone-leaves-nothing-behind"
FORGOTTEN = "of-what-is-in-delta-memory-has-nothing"
FIRST = "the-smallest-is-first-in-q4-or-else-in-q3"
IN_TURN = "a-fetch-returns-the-smallest"
FLAG = "what-was-fetched-says-so"
USED = "what-has-come-is-before-the-next-position"


class PagingInvariants(PagingState):
    """Statements about every state of a paging queue."""

    # Which places are empty if others are.

    @invariant(Q1_BESIDE_Q3, by=(USED, FOUND))
    def q1_beside_q3(self) -> Bool:
        """If q1 has a message, so has q3 (A1)."""
        return implies(self.has_any(Place.Q1), self.has_any(Place.Q3))

    @invariant(Q2_BESIDE_DELTA, by=(FOUND, USED))
    def q2_beside_delta(self) -> Bool:
        """If q2 has a message, so has delta (A2)."""
        return implies(self.has_any(Place.Q2), self.has_any(Place.DELTA))

    @invariant(DELTA_BESIDE_Q3, by=(FOUND, USED, Q2_BESIDE_DELTA))
    def delta_beside_q3(self) -> Bool:
        """If delta has a message, so has q3 (A3)."""
        return implies(self.has_any(Place.DELTA), self.has_any(Place.Q3))

    @invariant(EMPTY, by=(Q1_BESIDE_Q3, Q2_BESIDE_DELTA, DELTA_BESIDE_Q3, FOUND, USED))
    def empty_where_q4_and_q3_are(self) -> Bool:
        """If q4 and q3 are empty, no message is ready: the document's first argument (A4)."""
        return implies(
            self.has_none(Place.Q4, Place.Q3), forall(Message, lambda m: ~self.is_ready(m))
        )

    @invariant(RUNS_OUT, by=(Q2_BESIDE_DELTA, FOUND, USED))
    def q2_is_empty_where_q3_runs_out(self, m: Message) -> Bool:
        """If q3 runs out beside a blank delta, q2 is empty: the second argument (F1, F2)."""
        return implies(self.runs_out_of_q3(m) & self.has_none(Place.DELTA), self.has_none(Place.Q2))

    # The order.

    @invariant(
        IN_ORDER,
        by=(Q1_BESIDE_Q3, Q2_BESIDE_DELTA, DELTA_BESIDE_Q3, PENDING, BOUNDS, CUTS, FOUND, USED),
    )
    def places_are_in_order(self, m: Message, n: Message) -> Bool:
        """All messages of q4 come before q3, then delta, then q2, then q1 (I2)."""
        places = (Place.Q4, Place.Q3, Place.DELTA, Place.Q2, Place.Q1)

        together = self.before(m, n) | ~self.is_in(m, Place.Q4) | ~self.is_in(n, *places[1:])
        for at in range(1, len(places) - 1):
            behind = self.is_in(m, places[at]) & self.is_in(n, *places[at + 1 :])
            together = together & implies(behind, self.before(m, n))
        return together

    @invariant(PENDING, by=(IN_ORDER, USED, FOUND, CUTS))
    def pending_is_before_q1_and_q2(self, m: Message, n: Message) -> Bool:
        """Pending messages are before those of q1 and q2, so none returns there (I11)."""
        return implies(
            self.is_in(m, Place.PENDING) & self.is_in(n, Place.Q1, Place.Q2), self.before(m, n)
        )

    @invariant(
        FIRST,
        by=(
            IN_ORDER,
            Q1_BESIDE_Q3,
            Q2_BESIDE_DELTA,
            DELTA_BESIDE_Q3,
            PENDING,
            BOUNDS,
            CUTS,
            FOUND,
            USED,
        ),
    )
    def smallest_is_first(self, m: Message, n: Message) -> Bool:
        """No ready message is before the first of q4 or, if q4 is empty, of q3 (I19)."""
        q3_is_next = self.has_none(Place.Q4) & self.is_first_of(Place.Q3, m)
        is_at_the_front = self.is_first_of(Place.Q4, m) | q3_is_next
        return implies(is_at_the_front & self.is_ready(n), self.at_or_before(m, n))

    @invariant(IN_TURN, by=(IN_ORDER, FIRST))
    def fetches_return_the_smallest(self, m: Message) -> Bool:
        """No fetched message had a ready message before it (I22)."""
        return ~self.out_of_turn[m]

    @invariant(USED, by=(FOUND, CUTS))
    def what_has_come_is_used(self, m: Message) -> Bool:
        """Positions are given out in order, each once; delta ends before the next one (I12)."""
        return implies(~self.is_in(m, Place.NOWHERE) | self.before_end[m], self.used[m])

    # Delta's bounds.

    @invariant(CUTS, by=(USED,))
    def bounds_are_cuts(self, m: Message, n: Message) -> Bool:
        """Delta's start and end, and the next free position, are cuts of the order."""
        return implies(
            self.before(m, n),
            implies(self.from_start[m], self.from_start[n])
            & implies(self.before_end[n], self.before_end[m])
            & implies(self.used[n], self.used[m]),
        )

    @invariant(BOUNDS, by=(IN_ORDER, DELTA_BESIDE_Q3, PENDING, CUTS, FOUND, USED))
    def delta_is_between_its_bounds(self, m: Message) -> Bool:
        """Q4 and q3 are before delta's start, q2 and q1 after its end; blank, it has none (I16)."""
        return (
            implies(self.is_in(m, Place.DELTA), self.from_start[m] & self.before_end[m])
            & implies(self.is_in(m, Place.Q4, Place.Q3), ~self.from_start[m])
            & implies(self.is_in(m, Place.Q2, Place.Q1), ~self.before_end[m])
            & implies(self.has_none(Place.DELTA), ~self.from_start[m] & ~self.before_end[m])
        )

    @invariant(
        FOUND,
        by=(IN_ORDER, BOUNDS, CUTS, PENDING, PREFIX, INDEXED, NOTHING_LEFT, DELTA_BESIDE_Q3, USED),
    )
    def reload_finds_what_delta_counts(self, m: Message) -> Bool:
        """A reload finds exactly delta's messages: between its bounds, live, and not pending.

        So a reload finds no message that delta has not counted (I3, R1).
        """
        return self.is_found(m) == self.is_in(m, Place.DELTA)

    # Memory, store and index.

    @invariant(CONTENT, by=(FOUND, INDEXED, STORED))
    def content_is_where_the_places_say(self, m: Message) -> Bool:
        """Q1 and q4 have contents in memory (I4); q2, q3 and delta, in the store alone (I5).

        A pending message's content is in memory exactly if it is not in the store (I7); a
        persistent one's is in the store.
        """
        return (
            implies(self.is_in(m, Place.Q1, Place.Q4), self.in_ram[m])
            & implies(
                self.is_in(m, Place.Q2, Place.Q3, Place.DELTA), ~self.in_ram[m] & self.stored[m]
            )
            & implies(self.is_in(m, Place.PENDING), self.in_ram[m] == ~self.stored[m])
        )

    @invariant(INDEXED, by=(FOUND, PREFIX, BOUNDS, USED, NOTHING_LEFT))
    def persistent_is_indexed(self, m: Message) -> Bool:
        """Persistent messages, and all in delta, have their positions on disk (M1)."""
        return implies(
            (self.is_held(m) & self.persistent[m]) | self.is_in(m, Place.DELTA), self.is_live(m)
        )

    @invariant(STORED, by=(PREFIX, NOTHING_LEFT, CONTENT, FOUND))
    def indexed_is_stored(self, m: Message) -> Bool:
        """A message with its position on disk has its content in the store (M2)."""
        return implies(self.is_live(m), self.stored[m])

    @invariant(NOT_LOST, by=(CONTENT, FOUND))
    def content_is_not_lost(self, m: Message) -> Bool:
        """A ready or pending message has its content in memory or in the store (M3)."""
        return implies(
            self.is_ready(m) | self.is_in(m, Place.PENDING), self.in_ram[m] | self.stored[m]
        )

    @invariant(PREFIX, by=(NOTED, FLAG, INDEXED, STORED, NOTHING_LEFT, FOUND, USED))
    def index_has_a_prefix(self, m: Message) -> Bool:
        """The index has a prefix of publish, deliver, acknowledge for each message (Q1).

        An acknowledged message is gone, and the index has no entry of a message that has not come.
        """
        return (
            implies(self.noted[m], self.indexed[m])
            & implies(self.acked[m], self.noted[m] & self.is_in(m, Place.GONE))
            & implies(self.indexed[m], ~self.is_in(m, Place.NOWHERE))
        )

    @invariant(NOTED, by=(PREFIX, FOUND, USED, NOTHING_LEFT))
    def index_knows_what_was_delivered(self, m: Message) -> Bool:
        """An index entry says "delivered" exactly if the status in memory does, if there is one."""
        return implies(self.is_held(m) & self.is_live(m), self.noted[m] == self.delivered[m])

    @invariant(NOTHING_LEFT, by=(PREFIX, FOUND, USED, STORED))
    def gone_leaves_nothing(self, m: Message) -> Bool:
        """Messages that are gone, or have not come, leave no trace (I13, I14)."""
        return implies(
            self.is_in(m, Place.GONE, Place.NOWHERE),
            ~self.in_ram[m] & ~self.stored[m] & ~self.is_live(m),
        )

    @invariant(FORGOTTEN, by=(FOUND, CUTS, BOUNDS, CONTENT))
    def memory_has_nothing_of_delta(self, m: Message) -> Bool:
        """Of messages in delta, memory has neither the content nor the delivered flag (I5, I14)."""
        return implies(self.is_in(m, Place.DELTA), ~self.in_ram[m] & ~self.delivered[m])

    @invariant(FLAG, by=(NOTED, PREFIX, FOUND, INDEXED, USED))
    def what_was_fetched_says_so(self, m: Message) -> Bool:
        """Exactly the messages fetched before carry the redelivered flag (I10, I21).

        For messages in delta, the flag is in the index alone.
        """
        says_so = ite(self.is_in(m, Place.DELTA), self.noted[m], self.delivered[m])
        return (
            implies(self.is_ready(m), says_so == self.was_fetched[m])
            & implies(self.is_in(m, Place.PENDING), self.delivered[m] & self.was_fetched[m])
            & implies(self.is_in(m, Place.NOWHERE), ~self.was_fetched[m])
        )
