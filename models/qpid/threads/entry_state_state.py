"""The state of entries: families, initial state, and terms of the guards.

Owns the families and the state that `entry_states` changes; the steps are there. The state records
one thread as the holder of a consumer's send lock, and one as an entry's hand, keeper and disposer.
"There is only one such thread" is then the statement that it equals the recorded one.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import Bool, Enumeration, Family, Map, Model, Relation, initial


class Entry(Family):
    """A place in the queue's list."""


class Consumer(Family):
    """A consumer that may have entries."""


class Worker(Family):
    """A thread that gives, settles, steals or drops entries."""


class State(Enumeration):
    """The stage of an entry's life; `owner` is the consumer that has acquired it."""

    ABSENT: ClassVar[State]
    AVAILABLE: ClassVar[State]
    THE_QUEUES: ClassVar[State]
    UNSTEALABLE: ClassVar[State]
    STEALABLE: ClassVar[State]
    DEQUEUED: ClassVar[State]
    DELETED: ClassVar[State]


class Doing(Enumeration):
    """The next step of a thread."""

    NOTHING: ClassVar[Doing]
    ACQUIRES: ClassVar[Doing]
    SENDS: ClassVar[Doing]
    UNLOCKS: ClassVar[Doing]
    LOCKS: ClassVar[Doing]
    LOOKS_TO_DELETE: ClassVar[Doing]
    DELETES: ClassVar[Doing]
    DISPOSES: ClassVar[Doing]
    LOOKS_TO_RELEASE: ClassVar[Doing]
    RELEASES: ClassVar[Doing]


class StateOfEntries(Model):
    """Entries, their consumers, and threads that change entry states by compare-and-swap."""

    anybody: Consumer
    nothing: Entry
    idle: Worker

    state: Map[Entry, State]
    owner: Map[Entry, Consumer]
    was: Map[Entry, State]
    was_owner: Map[Entry, Consumer]
    expired: Map[Entry, Bool]
    was_sent: Map[Entry, Bool]
    redelivered: Map[Entry, Bool]
    unsettled: Relation[Consumer, Entry]

    doing: Map[Worker, Doing]
    at: Map[Worker, Entry]
    for_whom: Map[Worker, Consumer]
    for_queue: Map[Worker, Bool]
    releases: Map[Worker, Bool]
    saw: Map[Worker, State]
    saw_owner: Map[Worker, Consumer]
    saw_expired: Map[Worker, Bool]
    put_back_for: Map[Entry, Consumer]
    giver: Map[Consumer, Worker]
    hand: Map[Entry, Worker]
    keeper: Map[Entry, Worker]
    disposer: Map[Entry, Worker]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no thread is at work."""
        self.state.fill(State.ABSENT)
        self.owner.fill(self.anybody)
        self.was.fill(State.ABSENT)
        self.was_owner.fill(self.anybody)
        self.expired.fill(False)
        self.was_sent.fill(False)
        self.redelivered.fill(False)
        self.unsettled.fill(False)
        self.doing.fill(Doing.NOTHING)
        self.at.fill(self.nothing)
        self.for_whom.fill(self.anybody)
        self.for_queue.fill(False)
        self.releases.fill(False)
        self.saw.fill(State.ABSENT)
        self.saw_owner.fill(self.anybody)
        self.saw_expired.fill(False)
        self.put_back_for.fill(self.anybody)
        self.giver.fill(self.idle)
        self.hand.fill(self.idle)
        self.keeper.fill(self.idle)
        self.disposer.fill(self.idle)

    # Terms.

    def is_a_consumers(self, e: Entry) -> Bool:
        """Whether a consumer has acquired the entry."""
        return self.state[e].is_one_of(State.UNSTEALABLE, State.STEALABLE)

    def is_acquired(self, e: Entry) -> Bool:
        """Whether a consumer or the queue itself has acquired the entry."""
        return self.is_a_consumers(e) | (self.state[e] == State.THE_QUEUES)

    def is_with(self, e: Entry, c: Consumer) -> Bool:
        """Whether that consumer has acquired the entry."""
        return self.is_a_consumers(e) & (self.owner[e] == c)

    def saw_acquired(self, w: Worker) -> Bool:
        """Whether a thread has seen its entry acquired by a consumer or the queue."""
        return self.saw[w].is_one_of(State.UNSTEALABLE, State.STEALABLE, State.THE_QUEUES)

    def is_as_seen(self, w: Worker) -> Bool:
        """Whether a thread's swap succeeds: state and owner are one reference."""
        entry = self.at[w]
        return (self.state[entry] == self.saw[w]) & (
            ~self.is_a_consumers(entry) | (self.owner[entry] == self.saw_owner[w])
        )

    def gives(self, w: Worker, c: Consumer) -> Bool:
        """Whether a thread has the send lock of the consumer."""
        doing = self.doing[w]
        gives = doing.is_one_of(Doing.ACQUIRES, Doing.SENDS, Doing.UNLOCKS)
        return gives & (self.for_whom[w] == c)

    def lock_is_free(self, c: Consumer) -> Bool:
        """Whether no thread has the consumer's send lock."""
        return ~self.gives(self.giver[c], c)

    def may_begin(self, w: Worker) -> Bool:
        """Whether a thread is free."""
        return self.doing[w] == Doing.NOTHING

    def _becomes(self, e: Entry, state: State) -> None:
        self.was[e] = self.state[e]
        self.was_owner[e] = self.owner[e]
        self.state[e] = state

    def _begins(self, w: Worker, e: Entry, c: Consumer, doing: Doing) -> None:
        self.at[w] = e
        self.for_whom[w] = c
        self.for_queue[w] = False
        self.releases[w] = False
        self.doing[w] = doing

    def is_gone(self, e: Entry) -> Bool:
        """Whether the entry is out of the queue for good, unlinked or not."""
        return self.state[e].is_one_of(State.DEQUEUED, State.DELETED)

    def is_lost(self, e: Entry) -> Bool:
        """Whether the entry was stolen, or is gone."""
        stolen = (self.state[e] == State.THE_QUEUES) & (self.was[e] == State.STEALABLE)
        return stolen | self.is_gone(e)

    def is_in_the_taking(self, w: Worker) -> Bool:
        """Whether a thread is about to delete its entry, or to release it."""
        return self.deletes(w) | self.puts_back(w)

    def deletes(self, w: Worker) -> Bool:
        """Whether a thread is about to look at its entry for a delete, or has looked."""
        return self.doing[w].is_one_of(Doing.LOOKS_TO_DELETE, Doing.DELETES)

    def puts_back(self, w: Worker) -> Bool:
        """Whether a thread is about to look at its entry for a release, or has looked."""
        return self.doing[w].is_one_of(Doing.LOOKS_TO_RELEASE, Doing.RELEASES)

    def settles(self, w: Worker) -> Bool:
        """Whether a thread settles its entry for a consumer."""
        return ~self.for_queue[w] & ((self.doing[w] == Doing.LOCKS) | self.is_in_the_taking(w))

    def has_in_hand(self, w: Worker) -> Bool:
        """Whether a thread has its entry in hand for a consumer: it sends or settles it."""
        return (self.doing[w] == Doing.SENDS) | self.settles(w)
