"""What holds of ActiveMQ's queue, wherever its messages are: invariants.

Ids are those of later notes on ActiveMQ's releases.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_state import IT, Consumer, CursorWords, Message
from brokerproof.models.language import Bool, exists, forall, implies, invariant

PLACED = "what-is-stored-is-in-memory-or-ahead-of-the-position"
FRESH = "the-audit-knows-nothing-that-is-still-to-be-read"
KEPT = "the-audit-knows-what-is-in-memory-within-its-window"
APART = "what-is-paged-in-is-in-no-batch"
ONCE = "what-is-paged-in-is-in-one-place"
OWNED = "what-a-consumer-holds-comes-back-when-it-leaves"
STORED = "what-is-in-memory-is-in-the-store"
PREFIX = "what-is-in-memory-is-before-what-is-not"
IN_ORDER = "what-is-paged-in-is-before-the-batch"
FIRST_TIME = "what-was-given-is-before-what-was-not"
IN_TURN = "nothing-is-given-before-its-turn"
QUEUED = "what-is-returned-and-what-is-held-are-in-an-order"
TOLD = "what-was-given-is-held-or-returned"
CACHED = "while-the-cache-is-on-all-is-in-memory"
CUTS = "position-window-and-arrivals-are-cuts-of-the-order"
SENT = "what-was-never-sent-is-nowhere"
STANDS = "the-position-is-an-entry-of-the-store"


class CursorInvariants(CursorWords):
    """Statements about every state that the queue can be in."""

    # Where messages are.

    @invariant(PLACED)
    def stored_is_placed(self) -> Bool:
        """The position has passed nothing that is not in memory (I1, I4)."""
        return forall(Message, lambda m: implies(self.is_unread(m), ~self.behind[m]))

    @invariant(CACHED)
    def cached_is_in_memory(self) -> Bool:
        """Since the queue was empty, all that came is in the batch, or paged in (I1)."""
        return forall(Message, lambda m: implies(self.caches[IT], ~self.is_unread(m)))

    @invariant(APART)
    def paged_is_in_no_batch(self) -> Bool:
        """The batch and what is paged in are disjoint: nothing is paged in twice (I1, I14)."""
        return forall(Message, lambda m: ~(self.batch[m] & self.paged[m]))

    @invariant(ONCE)
    def paged_is_in_one_place(self) -> Bool:
        """It waits, or was returned, or one consumer holds it (I2, I14)."""
        one_consumer = forall(
            Consumer,
            Consumer,
            Message,
            lambda c, d, m: implies(self.holds[c, m] & self.holds[d, m], c == d),
        )
        held = forall(Consumer, Message, lambda c, m: implies(self.holds[c, m], self.is_held(m)))
        waits = forall(
            Message,
            lambda m: (
                implies(self.waiting[m] | self.returned[m], self.paged[m])
                & ~(self.waiting[m] & self.returned[m])
            ),
        )
        return one_consumer & held & waits

    @invariant(OWNED)
    def held_comes_back(self) -> Bool:
        """What is with a consumer is with one that is still there (I2, I3)."""
        taking = forall(Consumer, lambda c: implies(self.takes[c], self.attached[c]))
        return taking & forall(
            Message,
            lambda m: implies(
                self.is_held(m), exists(Consumer, lambda c: self.holds[c, m] & self.attached[c])
            ),
        )

    @invariant(STORED)
    def in_memory_is_stored(self) -> Bool:
        """Nothing is given that was acknowledged (I1)."""
        return forall(Message, lambda m: implies(self.batch[m] | self.paged[m], self.stored[m]))

    @invariant(SENT)
    def unsent_is_nowhere(self) -> Bool:
        """Neither store nor memory nor audit has what was never sent."""
        return forall(
            Message,
            lambda m: implies(
                self.stored[m] | self.given[m] | self.recorded[m] | self.behind[m], self.spent[m]
            ),
        )

    # The position and the audit.

    @invariant(CUTS)
    def cuts(self) -> Bool:
        """All before the position is behind it; what is below the window is, with all before it."""
        return forall(
            Message,
            Message,
            lambda m, n: implies(
                self.before(m, n),
                implies(self.behind[n], self.behind[m])
                & implies(self.below[n], self.below[m])
                & implies(self.spent[n], self.spent[m]),
            ),
        )

    @invariant(STANDS)
    def position_is_stored(self) -> Bool:
        """So its successor can be found: where the entry goes, the next read starts over (I5).

        What was recovered last is not ahead of it.
        """
        return forall(
            Message,
            lambda m: (
                implies(self.is_position(m), self.stored[m])
                & implies(self.read_last[m], self.stored[m] & self.behind[m])
            ),
        ) & forall(
            Message, Message, lambda m, n: implies(self.read_last[m] & self.read_last[n], m == n)
        )

    @invariant(FRESH)
    def unread_is_new(self) -> Bool:
        """A read that comes to it takes it for new, inside the window and below it (I9)."""
        return forall(Message, lambda m: implies(self.is_unread(m), ~self.is_known(m)))

    @invariant(KEPT)
    def in_memory_is_known(self) -> Bool:
        """Inside the window the audit misses no duplicate (I10); below, it remembers nothing."""
        return forall(
            Message,
            lambda m: (
                implies((self.batch[m] | self.paged[m]) & ~self.below[m], self.recorded[m])
                & implies(self.recorded[m], ~self.below[m])
            ),
        )

    @invariant(TOLD)
    def given_is_paged(self) -> Bool:
        """What was given and is not done with is held or returned, and nothing else (I2, I19)."""
        return forall(
            Message,
            lambda m: implies(self.stored[m], self.given[m] == (self.paged[m] & ~self.waiting[m])),
        )

    # The order.

    @invariant(PREFIX)
    def in_memory_is_before_the_rest(self) -> Bool:
        """So what a read finds next is the first that is not in memory (I19, I21)."""
        return forall(
            Message,
            Message,
            lambda m, n: implies(
                (self.batch[m] | self.paged[m]) & self.is_unread(n), self.before(m, n)
            ),
        )

    @invariant(IN_ORDER)
    def paged_is_before_the_batch(self) -> Bool:
        """Messages are paged in as they are stored (I19, I21)."""
        return forall(
            Message,
            Message,
            lambda m, n: implies(self.paged[m] & self.batch[n], self.before(m, n)),
        )

    @invariant(FIRST_TIME)
    def first_deliveries_ascend(self) -> Bool:
        """Whoever takes them, messages are given for the first time in their order (I19, I20)."""
        return forall(
            Message,
            Message,
            lambda m, n: implies(
                self.given[m] & self.stored[n] & ~self.given[n], self.before(m, n)
            ),
        )

    @invariant(IN_TURN)
    def nothing_overtakes(self) -> Bool:
        """What was returned precedes all others, and older messages younger ones (I19, I22)."""
        return forall(Message, lambda m: ~self.out_of_turn[m])

    @invariant(QUEUED)
    def returned_and_held_are_ordered(self) -> Bool:
        """What is returned has a first, and goes on in the order in which it was given (I22)."""

        def together(m: Message, n: Message) -> Bool:
            return (self.returned[m] & self.returned[n]) | (self.is_held(m) & self.is_held(n))

        return forall(
            Message,
            Message,
            Message,
            lambda m, n, k: (
                implies(self.sooner[m, n], together(m, n) & ~self.sooner[n, m])
                & implies(together(m, n) & (m != n), self.sooner[m, n] | self.sooner[n, m])
                & implies(self.sooner[m, n] & self.sooner[n, k], self.sooner[m, k])
            ),
        )
