"""The invariants of entries while several threads change them."""

from __future__ import annotations

from brokerproof.models.language import Bool, forall, implies, invariant, ite
from brokerproof.models.qpid.threads.entry_state_state import (
    Consumer,
    Doing,
    Entry,
    State,
    StateOfEntries,
    Worker,
)

ONE = "one-at-most-has-it"
OWN_OR_LOST = "what-is-a-consumers-is-its-own-or-lost"
SENT = "what-is-sent-was-available-and-fresh"
GIVER = "one-gives-to-a-consumer-at-a-time"
ONCE = "one-thread-disposes-of-it"
KEPT = "the-queue-puts-back-only-what-no-consumer-had"
SEEN = "what-was-seen-may-be-swapped"
ABSENT = "no-thread-works-on-an-absent-entry"


class EntryInvariants(StateOfEntries):
    """Statements about every state of entries and threads."""

    @invariant("each-move-is-in-the-table", by=(SEEN,))
    def moves_are_in_the_table(self, e: Entry) -> Bool:
        """Each state of an entry has come from an allowed one (ENT-2, ENT-3, ENT-4, ENT-5).

        A deleted entry stays deleted; only an acquired one is dequeued; only an available or
        stealable one becomes the queue's; and an entry that a consumer had is put back only for
        that consumer.
        """

        def may_be(now: State, *before: State) -> Bool:
            return implies(self.state[e] == now, self.was[e].is_one_of(*before))

        was_a_consumers = self.was[e].is_one_of(State.UNSTEALABLE, State.STEALABLE)
        acquired = State.UNSTEALABLE, State.STEALABLE, State.THE_QUEUES
        return (
            may_be(State.AVAILABLE, State.ABSENT, *acquired)
            & may_be(State.THE_QUEUES, State.AVAILABLE, State.STEALABLE)
            & may_be(State.UNSTEALABLE, State.AVAILABLE, State.STEALABLE)
            & may_be(State.STEALABLE, State.UNSTEALABLE)
            & may_be(State.DEQUEUED, *acquired)
            & may_be(State.DELETED, State.DEQUEUED)
            & implies(self.is_a_consumers(e) & was_a_consumers, self.owner[e] == self.was_owner[e])
            & implies(
                (self.state[e] == State.AVAILABLE) & was_a_consumers,
                self.put_back_for[e] == self.was_owner[e],
            )
        )

    @invariant(ONE, by=(OWN_OR_LOST, SENT))
    def one_has_it(self) -> Bool:
        """An entry is unsettled with its last owner alone, or in one thread's hand (ENT-1)."""
        return forall(
            Consumer, Entry, lambda c, e: implies(self.unsettled[c, e], self.owner[e] == c)
        ) & forall(
            Worker,
            lambda w: implies(
                self.has_in_hand(w),
                (self.hand[self.at[w]] == w)
                & (self.owner[self.at[w]] == self.for_whom[w])
                & ~self.unsettled[self.for_whom[w], self.at[w]],
            ),
        )

    @invariant(OWN_OR_LOST, by=(ONE, KEPT, SENT))
    def its_own_or_lost(self) -> Bool:
        """A consumer's unsettled entry is acquired by it, stolen, or gone (ENT-1)."""
        return forall(
            Consumer,
            Entry,
            lambda c, e: implies(self.unsettled[c, e], self.is_a_consumers(e) | self.is_lost(e)),
        ) & forall(
            Worker,
            lambda w: implies(
                self.settles(w), self.is_a_consumers(self.at[w]) | self.is_lost(self.at[w])
            ),
        )

    @invariant(SENT, by=(ONE, GIVER, KEPT))
    def sent_is_acquired(self, w: Worker) -> Bool:
        """An entry being sent is the consumer's, and had not expired at the last look (ENT-7)."""
        return implies(
            self.doing[w] == Doing.SENDS,
            (self.state[self.at[w]] == State.UNSTEALABLE)
            & (self.owner[self.at[w]] == self.for_whom[w])
            & (self.was[self.at[w]] == State.AVAILABLE),
        ) & implies(self.doing[w].is_one_of(Doing.ACQUIRES, Doing.SENDS), ~self.saw_expired[w])

    @invariant(GIVER, by=(GIVER,))
    def one_gives(self, w: Worker, c: Consumer) -> Bool:
        """One thread has a consumer's send lock."""
        return implies(self.gives(w, c), self.giver[c] == w)

    @invariant("nothing-acquired-is-forgotten", by=(ONE,))
    def nothing_is_forgotten(self, e: Entry) -> Bool:
        """An entry that a consumer has acquired is unsettled, or in a thread's hand (ENT-6).

        In particular, a delete handles an entry that has become stealable meanwhile (QPID-6419).
        """
        hand = self.hand[e]
        in_hand = (self.at[hand] == e) & self.has_in_hand(hand)
        return implies(self.is_a_consumers(e), self.unsettled[self.owner[e], e] | in_hand)

    @invariant("what-the-queue-has-is-not-forgotten", by=(KEPT,))
    def queues_is_not_forgotten(self, e: Entry) -> Bool:
        """An entry that the queue has taken or stolen is handled by one of its threads (ENT-6)."""
        keeper = self.keeper[e]
        kept = (self.at[keeper] == e) & self.for_queue[keeper] & self.is_in_the_taking(keeper)
        return implies(self.state[e] == State.THE_QUEUES, kept)

    @invariant("what-is-dequeued-is-disposed-of", by=(ONCE,))
    def dequeued_is_disposed_of(self, e: Entry) -> Bool:
        """A thread is about to delete a dequeued entry for good (ENT-6)."""
        disposer = self.disposer[e]
        disposes = (self.at[disposer] == e) & (self.doing[disposer] == Doing.DISPOSES)
        return implies(self.state[e] == State.DEQUEUED, disposes)

    @invariant(ONCE, by=(SEEN,))
    def leaves_once(self, w: Worker) -> Bool:
        """One thread disposes of an entry (ENT-6)."""
        return implies(
            self.doing[w] == Doing.DISPOSES,
            (self.disposer[self.at[w]] == w) & (self.state[self.at[w]] == State.DEQUEUED),
        )

    @invariant(KEPT, by=(OWN_OR_LOST, SEEN))
    def queue_puts_back(self, w: Worker) -> Bool:
        """One thread of the queue deletes or puts back a taken entry, and deletes a stolen one."""
        entry = self.at[w]
        kept = (self.state[entry] == State.THE_QUEUES) & (self.keeper[entry] == w)
        return implies(
            self.for_queue[w],
            (self.doing[w] != Doing.LOCKS)
            & implies(self.puts_back(w), kept & (self.was[entry] == State.AVAILABLE))
            & implies(self.deletes(w), kept | self.is_gone(entry)),
        )

    @invariant(SEEN, by=(SEEN,))
    def seen_may_be_swapped(self, w: Worker) -> Bool:
        """A delete or release goes ahead only if its thread saw a state that allows it."""
        return implies(self.doing[w] == Doing.DELETES, self.saw_acquired(w)) & implies(
            self.doing[w] == Doing.RELEASES,
            ite(
                self.for_queue[w],
                self.saw[w] == State.THE_QUEUES,
                self.saw_acquired(w)
                & (self.saw[w] != State.THE_QUEUES)
                & (self.saw_owner[w] == self.for_whom[w]),
            ),
        )

    @invariant("what-comes-back-is-marked", by=(ONE, KEPT, ABSENT, SENT))
    def back_is_marked(self) -> Bool:
        """An entry that was sent and can be or is sent again is marked as redelivered (ENT-8)."""

        def may_be_given(e: Entry) -> Bool:
            looked_at = (self.state[e] == State.THE_QUEUES) & (self.was[e] == State.AVAILABLE)
            return (self.state[e] == State.AVAILABLE) | looked_at

        return forall(
            Entry, lambda e: implies(self.was_sent[e] & may_be_given(e), self.redelivered[e])
        ) & forall(
            Worker,
            lambda w: implies(
                (self.settles(w) & self.puts_back(w))
                | ((self.doing[w] == Doing.SENDS) & self.was_sent[self.at[w]]),
                self.redelivered[self.at[w]],
            ),
        )

    @invariant("what-is-unsettled-was-sent", by=("what-is-unsettled-was-sent",))
    def unsettled_was_sent(self, c: Consumer, e: Entry) -> Bool:
        """An entry that a consumer has not settled was sent, and is recorded so (ENT-8)."""
        return implies(self.unsettled[c, e], self.was_sent[e])

    @invariant("what-is-returned-is-put-back", by=("what-is-returned-is-put-back",))
    def does_as_asked(self, w: Worker) -> Bool:
        """A thread deletes no returned entry, and puts back no acknowledged one (ENT-5)."""
        return implies(
            ~self.for_queue[w],
            implies(self.puts_back(w), self.releases[w])
            & implies(self.deletes(w), ~self.releases[w]),
        )

    @invariant(ABSENT, by=(OWN_OR_LOST,))
    def absent_concerns_no_thread(self) -> Bool:
        """No thread works on an entry before it arrives."""
        return forall(
            Entry, lambda e: implies(self.state[e] == State.ABSENT, ~self.was_sent[e])
        ) & forall(
            Worker,
            lambda w: implies(
                self.doing[w] != Doing.NOTHING, self.state[self.at[w]] != State.ABSENT
            ),
        )
