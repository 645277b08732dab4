"""The states of an entry, and which threads may change them.

Source: Qpid 0.30 to 10.1 (`QueueEntryImpl`), for what Message Delivery calls acquired; the ids
ENT-1 to ENT-8 are those of later notes on Qpid.

A consumer's entry is *unstealable* while it is sent or settled, and *stealable* in between: then
the queue may take it away to delete it. A delivering thread has the consumer's send lock until the
entry is stealable, but another thread may settle the entry before that. So the state can change
between the look and the swap of a settlement. A delete therefore looks again while the entry is
acquired at all, a release while the consumer has it. In Qpid a release swaps once, which is enough
if one thread sends and settles (`tests/models`). Each look and each swap is a step; a loop that
ends only with its swap, or with a state that forbids it, is one step.
"""

from __future__ import annotations

from brokerproof.models.language import Bool, action, ite, leads_to, ranked, require, step
from brokerproof.models.qpid.threads.entry_state_invariants import (
    GIVER,
    KEPT,
    ONCE,
    ONE,
    OWN_OR_LOST,
    SEEN,
    SENT,
    EntryInvariants,
)
from brokerproof.models.qpid.threads.entry_state_state import Consumer, Doing, Entry, State, Worker

__all__ = ["Consumer", "Doing", "Entry", "EntryStates", "State", "Worker"]

_ENDS_BY = (ONE, OWN_OR_LOST, SENT, KEPT, SEEN, ONCE)
_TAKING = (
    *("look_to_delete", "find_it_gone", "delete", "look_again", "dispose"),
    *("look_to_release", "release_nothing", "release", "look_again_to_release"),
)


class EntryStates(EntryInvariants):
    """Entries, their consumers, and threads that change entry states by compare-and-swap."""

    # Events of entries.

    @step(State.ABSENT)
    def enqueue(self, e: Entry) -> None:
        """An entry arrives."""
        self._becomes(e, State.AVAILABLE)

    @action
    def expire(self, e: Entry) -> None:
        """An entry expires."""
        self.expired[e] = True

    # Deliveries.

    @action
    def look(self, w: Worker, c: Consumer, e: Entry) -> None:
        """A thread takes the consumer's send lock and looks at an entry that has not expired."""
        require(self.may_begin(w) & self.lock_is_free(c))
        require((self.state[e] == State.AVAILABLE) & ~self.expired[e])
        self.saw_expired[w] = self.expired[e]
        self._begins(w, e, c, Doing.ACQUIRES)
        self.giver[c] = w

    @step(Doing.ACQUIRES, Doing.SENDS)
    def acquire(self, w: Worker) -> None:
        """The entry is still available, and becomes the consumer's."""
        require(self.state[self.at[w]] == State.AVAILABLE)
        self._becomes(self.at[w], State.UNSTEALABLE)
        self.owner[self.at[w]] = self.for_whom[w]
        self.hand[self.at[w]] = w

    @step(Doing.ACQUIRES, Doing.NOTHING)
    def miss(self, w: Worker) -> None:
        """Another thread was faster."""
        require(self.state[self.at[w]] != State.AVAILABLE)

    @step(Doing.SENDS, Doing.UNLOCKS)
    def send(self, w: Worker) -> None:
        """The entry is recorded as unsettled and sent; from now on it can be settled."""
        self.was_sent[self.at[w]] = True
        self.unsettled[self.for_whom[w], self.at[w]] = True

    @step(Doing.UNLOCKS, Doing.NOTHING)
    def unlock(self, w: Worker) -> None:
        """If the entry is still with the consumer and unstealable, it becomes stealable."""
        entry = self.at[w]
        same = (self.state[entry] == State.UNSTEALABLE) & (self.owner[entry] == self.for_whom[w])
        self.was[entry] = ite(same, self.state[entry], self.was[entry])
        self.was_owner[entry] = ite(same, self.owner[entry], self.was_owner[entry])
        self.state[entry] = ite(same, State.STEALABLE, self.state[entry])

    # Settlements.

    @action
    def settle(self, w: Worker, c: Consumer, e: Entry, releases: Bool) -> None:
        """The client acknowledges or returns an entry, which is then not unsettled any more."""
        require(self.may_begin(w))
        require(self.unsettled[c, e])
        self.unsettled[c, e] = False
        self._begins(w, e, c, Doing.LOCKS)
        self.hand[e] = w
        self.releases[w] = releases

    @step(Doing.LOCKS)
    def lock(self, w: Worker) -> None:
        """The entry is still the consumer's and becomes unstealable; a returned one is marked."""
        require(self.is_with(self.at[w], self.for_whom[w]))
        entry = self.at[w]
        locks = self.state[entry] == State.STEALABLE
        self.was[entry] = ite(locks, self.state[entry], self.was[entry])
        self.was_owner[entry] = ite(locks, self.owner[entry], self.was_owner[entry])
        self.state[entry] = State.UNSTEALABLE
        self.redelivered[entry] |= self.releases[w]
        self.doing[w] = ite(self.releases[w], Doing.LOOKS_TO_RELEASE, Doing.LOOKS_TO_DELETE)

    @step(Doing.LOCKS, Doing.NOTHING)
    def come_too_late(self, w: Worker) -> None:
        """The entry was stolen, so the consumer cannot settle it any more."""
        require(~self.is_with(self.at[w], self.for_whom[w]))

    # The queue's own operations.

    @action
    def take_for_queue(self, w: Worker, e: Entry, releases: Bool) -> None:
        """The queue acquires an entry, to drop it or to look at it and put it back."""
        require(self.may_begin(w) & (self.state[e] == State.AVAILABLE))
        self._becomes(e, State.THE_QUEUES)
        self._begins(w, e, self.anybody, Doing.LOOKS_TO_DELETE)
        self.for_queue[w] = True
        self.keeper[e] = w
        self.doing[w] = ite(releases, Doing.LOOKS_TO_RELEASE, Doing.LOOKS_TO_DELETE)

    @action
    def steal(self, w: Worker, e: Entry) -> None:
        """The queue takes an entry away from a consumer, to be told later, and drops it."""
        require(self.may_begin(w) & (self.state[e] == State.STEALABLE))
        self._becomes(e, State.THE_QUEUES)
        self._begins(w, e, self.anybody, Doing.LOOKS_TO_DELETE)
        self.for_queue[w] = True
        self.keeper[e] = w

    @action
    def tell(self, c: Consumer, e: Entry) -> None:
        """A consumer is told that it has lost an entry."""
        require(self.unsettled[c, e] & ~self.is_with(e, c))
        self.unsettled[c, e] = False

    # Deletes and releases.

    @step(Doing.LOOKS_TO_DELETE, Doing.DELETES)
    def look_to_delete(self, w: Worker) -> None:
        """A delete reads the entry's state: it is acquired, by whichever owner."""
        require(self.is_acquired(self.at[w]))
        self._see(w)

    @step(Doing.LOOKS_TO_DELETE, Doing.NOTHING)
    def find_it_gone(self, w: Worker) -> None:
        """A delete finds the entry not acquired: another thread has deleted it."""
        require(~self.is_acquired(self.at[w]))

    @action
    def delete(self, w: Worker) -> None:
        """The state is as it was read, and the entry is dequeued."""
        require((self.doing[w] == Doing.DELETES) & self.is_as_seen(w))
        self._becomes(self.at[w], State.DEQUEUED)
        self.disposer[self.at[w]] = w
        self.doing[w] = Doing.DISPOSES

    @action
    def look_again(self, w: Worker) -> None:
        """The state has changed since it was read, so it is read again."""
        require((self.doing[w] == Doing.DELETES) & ~self.is_as_seen(w))
        self.doing[w] = Doing.LOOKS_TO_DELETE

    @step(Doing.DISPOSES, Doing.NOTHING)
    def dispose(self, w: Worker) -> None:
        """The entry is deleted for good; a later walk unlinks it."""
        require(self.state[self.at[w]] == State.DEQUEUED)
        self._becomes(self.at[w], State.DELETED)

    @step(Doing.LOOKS_TO_RELEASE, Doing.RELEASES)
    def look_to_release(self, w: Worker) -> None:
        """A release reads the entry's state: it is still with the releasing owner."""
        require(self.is_for_release(w))
        self._see(w)

    @step(Doing.LOOKS_TO_RELEASE, Doing.NOTHING)
    def release_nothing(self, w: Worker) -> None:
        """A release finds the entry with another owner, and ends."""
        require(~self.is_for_release(w))

    @action
    def release(self, w: Worker) -> None:
        """The state is as it was read, and the entry is available again."""
        require((self.doing[w] == Doing.RELEASES) & self.is_as_seen(w))
        self._becomes(self.at[w], State.AVAILABLE)
        self.put_back_for[self.at[w]] = self.for_whom[w]
        self.doing[w] = Doing.NOTHING

    @action
    def look_again_to_release(self, w: Worker) -> None:
        """The state has changed since it was read, so it is read again."""
        require((self.doing[w] == Doing.RELEASES) & ~self.is_as_seen(w))
        self.doing[w] = Doing.LOOKS_TO_RELEASE

    def is_for_release(self, w: Worker) -> Bool:
        """Whether the entry is with the owner for which a thread releases it."""
        entry = self.at[w]
        queues = self.for_queue[w] & (self.state[entry] == State.THE_QUEUES)
        return queues | (~self.for_queue[w] & self.is_with(entry, self.for_whom[w]))

    def _see(self, w: Worker) -> None:
        self.saw[w] = self.state[self.at[w]]
        self.saw_owner[w] = self.owner[self.at[w]]

    @leads_to("each-settlement-ends", fair=("lock", "come_too_late", *_TAKING), by=_ENDS_BY)
    def settling_ends(self, w: Worker) -> tuple[Bool, Bool]:
        """A delete or release ends, because the state changes only finitely often meanwhile."""
        self.ranked_by_the_entry(w, self.settles(w), "lock", "come_too_late")
        return self.settles(w), self.doing[w] == Doing.NOTHING

    def ranked_by_the_entry(self, w: Worker, works: Bool, *more: str) -> None:
        """Rank a settlement or a taking: by what its entry may still become, then by its own steps.

        The entry of such a thread never becomes available in another thread's step.
        """
        entry, doing = self.at[w], self.doing[w]
        has_looked = doing.is_one_of(Doing.DELETES, Doing.RELEASES)
        ranked(
            doing == Doing.LOCKS,
            self.is_acquired(entry),
            self.is_a_consumers(entry),
            self.state[entry] == State.UNSTEALABLE,
            self.state[entry] == State.DEQUEUED,
            has_looked & ~self.is_as_seen(w),
            ~has_looked,
            lowered_by=dict.fromkeys((*more, *_TAKING), lambda v: v == w),
            pending=works | (doing == Doing.DISPOSES),
            words="the states that the entry can still come to, then the thread's looks at it",
        )

    @leads_to("each-send-ends", fair=("send", "unlock"), by=(GIVER,))
    def sending_ends(self, w: Worker) -> tuple[Bool, Bool]:
        """A thread that has acquired an entry sends it and lets go of the send lock."""
        sends = self.doing[w] == Doing.SENDS
        ranked(
            sends,
            lowered_by={"send": lambda v: v == w, "unlock": lambda v: v == w},
            pending=sends | (self.doing[w] == Doing.UNLOCKS),
            words="the two steps that are left",
        )
        return self.doing[w] == Doing.SENDS, self.doing[w] == Doing.NOTHING

    @leads_to("each-taking-for-the-queue-ends", fair=_TAKING, by=_ENDS_BY)
    def taking_ends(self, w: Worker) -> tuple[Bool, Bool]:
        """An entry that the queue has taken or stolen is dropped or put back in the end."""
        takes = self.for_queue[w] & self.is_in_the_taking(w)
        self.ranked_by_the_entry(w, takes)
        return takes, self.doing[w] == Doing.NOTHING


EntryStates.equivalent_mutants = """
An entry that is there at first is like one that arrives before anything else happens.
    initially: state
`was_owner` is not read of an entry that no consumer had before.
    enqueue: was_owner; acquire: was_owner; lock: was_owner*2;
    take_for_queue: was_owner; delete: was_owner; dispose: was_owner; initially: was_owner
The queue does not decide when an entry expires.
    expire: expired*2
Only a settling thread reads the value, or the thread itself sets it first.
    look: releases, for_queue; take_for_queue: for_whom, for_queue, releases; steal: for_whom,
    for_queue, releases
The queue may drop an entry that it takes, or put it back.
    take_for_queue: doing*5
The value is false by the guard, and false for all other threads that give an entry.
    look: saw_expired
A thread that was too late, or gives up, holds no entry.
    miss: guard 2*2, doing*3
A sent entry that is not made stealable cannot be stolen, which breaks no requirement.
    send: doing
At most one consumer has the entry unsettled, and settling a lost one changes nothing.
    settle: unsettled; tell: guard 1, unsettled*2
Only `releases` says which of the two settlements a client asked for.
    settle: releases*3
An entry that is about to be deleted need not be marked.
    lock: redelivered
No other thread gets the entry meanwhile, so its owner is the one that was seen.
    delete: guard 1*5; release: guard 1*5; look_again_to_release: guard 1;
    shared: is_as_seen*6
The value is set before it is read, or read only of entries that have arrived.
    initially: owner, was*7, expired, redelivered*2, at, for_whom, for_queue*2, releases*2,
    saw*7, saw_owner, saw_expired*2, put_back_for, giver, hand, keeper, disposer
A thread that is about to acquire an entry may do the queue's own work instead.
    steal: guard 1; take_for_queue: guard 1
"""
