"""The invariants of ActiveMQ's queue; I1 is AMQ-I1 in `spec/activemq/invariants.toml`."""

from __future__ import annotations

from brokerproof.models.activemq.cursor_state import Consumer, CursorState, Message
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


class CursorInvariants(CursorState):
    """Statements about every state of the queue."""

    # The places of messages.

    @invariant(PLACED)
    def stored_is_placed(self, m: Message) -> Bool:
        """The position has passed only messages that are in memory (I1, I4)."""
        return implies(self.is_unread(m), ~self.behind[m])

    @invariant(CACHED)
    def cached_is_in_memory(self, m: Message) -> Bool:
        """While the cache is on, every stored message is in the batch or paged in (I1)."""
        return implies(self.caches, ~self.is_unread(m))

    @invariant(APART)
    def paged_is_in_no_batch(self, m: Message) -> Bool:
        """No message is both in the batch and paged in (I1, I14)."""
        return ~(self.batch[m] & self.paged[m])

    @invariant(ONCE)
    def paged_is_in_one_place(self) -> Bool:
        """A paged-in message waits, was returned, or is held by one consumer (I2, I14)."""
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
        """A message that is held has a holder that is still attached (I2, I3)."""
        taking = forall(Consumer, lambda c: implies(self.takes[c], self.attached[c]))
        return taking & forall(
            Message,
            lambda m: implies(
                self.is_held(m), exists(Consumer, lambda c: self.holds[c, m] & self.attached[c])
            ),
        )

    @invariant(STORED)
    def in_memory_is_stored(self, m: Message) -> Bool:
        """Every message in memory is in the store: an acknowledged one is not delivered (I1)."""
        return implies(self.batch[m] | self.paged[m], self.stored[m])

    @invariant(SENT)
    def unsent_is_nowhere(self, m: Message) -> Bool:
        """A message that was never sent is neither in the store nor in memory nor in the audit."""
        return implies(
            self.stored[m] | self.given[m] | self.recorded[m] | self.behind[m], self.spent[m]
        )

    # The position and the audit.

    @invariant(CUTS)
    def cuts(self, m: Message, n: Message) -> Bool:
        """Position, window and arrivals are cuts: each includes all messages before its last."""
        return implies(
            self.before(m, n),
            implies(self.behind[n], self.behind[m])
            & implies(self.below[n], self.below[m])
            & implies(self.spent[n], self.spent[m]),
        )

    @invariant(STANDS)
    def position_is_stored(self) -> Bool:
        """The position is an entry of the store, so its successor can be found (I5).

        If that entry goes, the next read starts over. The message recovered last is not ahead of
        the position.
        """
        return forall(
            Message,
            lambda m: (
                implies(
                    self.behind[m] & ~self.stored[m],
                    exists(Message, lambda n: self.behind[n] & self.before(m, n)),
                )
                & implies(self.read_last[m], self.stored[m] & self.behind[m])
            ),
        ) & forall(
            Message, Message, lambda m, n: implies(self.read_last[m] & self.read_last[n], m == n)
        )

    @invariant(FRESH)
    def unread_is_new(self, m: Message) -> Bool:
        """The audit calls no unread message a duplicate, inside its window or below (I9)."""
        return implies(self.is_unread(m), ~self.is_known(m))

    @invariant(KEPT)
    def in_memory_is_known(self, m: Message) -> Bool:
        """Inside its window the audit knows all messages in memory; below it, none (I10)."""
        return implies(
            (self.batch[m] | self.paged[m]) & ~self.below[m], self.recorded[m]
        ) & implies(self.recorded[m], ~self.below[m])

    @invariant(TOLD)
    def given_is_paged(self, m: Message) -> Bool:
        """A stored message was given exactly if it is held or returned (I2, I19)."""
        return implies(self.stored[m], self.given[m] == (self.paged[m] & ~self.waiting[m]))

    # The order.

    @invariant(PREFIX)
    def in_memory_is_before_the_rest(self, m: Message, n: Message) -> Bool:
        """All messages in memory are before the unread ones, so reads are in order (I19, I21)."""
        return implies((self.batch[m] | self.paged[m]) & self.is_unread(n), self.before(m, n))

    @invariant(IN_ORDER)
    def paged_is_before_the_batch(self, m: Message, n: Message) -> Bool:
        """Paged-in messages are before those in the batch (I19, I21)."""
        return implies(self.paged[m] & self.batch[n], self.before(m, n))

    @invariant(FIRST_TIME)
    def first_deliveries_ascend(self, m: Message, n: Message) -> Bool:
        """First deliveries are in the order of the messages, across consumers (I19, I20)."""
        return implies(self.given[m] & self.stored[n] & ~self.given[n], self.before(m, n))

    @invariant(IN_TURN)
    def nothing_overtakes(self, m: Message) -> Bool:
        """Returned messages are given before others, and older ones before younger (I19, I22)."""
        return ~self.out_of_turn[m]

    @invariant(QUEUED)
    def returned_and_held_are_ordered(self, m: Message, n: Message, k: Message) -> Bool:
        """Returned messages are totally ordered, and so are the held ones (I22)."""

        def together(m: Message, n: Message) -> Bool:
            return (self.returned[m] & self.returned[n]) | (self.is_held(m) & self.is_held(n))

        return (
            implies(self.sooner[m, n], together(m, n) & ~self.sooner[n, m])
            & implies(together(m, n) & (m != n), self.sooner[m, n] | self.sooner[n, m])
            & implies(self.sooner[m, n] & self.sooner[n, k], self.sooner[m, k])
        )
