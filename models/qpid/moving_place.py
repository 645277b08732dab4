"""One subscription's place in a queue while threads move it: what all ways of moving it share.

Source: Qpid, Message Delivery, Subscriptions and Reject and Release; Qpid 0.6 and later, where the
place is a last seen entry and what has come back behind it.

Where the pointer queue has a return, and all that it does to pointers, as one step, these models
have the steps between, one access to shared state each. Threads seek the next entry of the
subscription; one of them at a time, under the subscription's lock, acquires what it found. Others
open an entry to everybody, be it a return or an arrival out of order, and see to it afterwards that
the place is not beyond it. How the place is read and changed is what the models differ in; the
promise is the same for each and stands here: nothing available is behind the place, unless somebody
is on the way to move it back.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Map,
    Model,
    Order,
    action,
    axiom,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)


class Entry(Family):
    """A place in the queue's list; one of them is the dummy head."""


class Subscription(Enumeration):
    """Whose place it is: there is one."""

    IT: ClassVar[Subscription]


class Seeker(Family):
    """A thread that looks for the subscription's next entry."""


class Opener(Family):
    """A thread that makes an entry available and then moves the place back."""


class Status(Enumeration):
    """Where an entry is in its life."""

    ABSENT: ClassVar[Status]
    AVAILABLE: ClassVar[Status]
    ACQUIRED: ClassVar[Status]
    DEQUEUED: ClassVar[Status]


class Seeking(Enumeration):
    """What a seeker does next."""

    READS: ClassVar[Seeking]
    CHOOSES: ClassVar[Seeking]
    LOOKS: ClassVar[Seeking]
    MOVES: ClassVar[Seeking]
    ACQUIRES: ClassVar[Seeking]
    SETTLES: ClassVar[Seeking]
    SETS: ClassVar[Seeking]


class Opening(Enumeration):
    """What an opener does next."""

    OPENS: ClassVar[Opening]
    READS: ClassVar[Opening]
    LOWERS: ClassVar[Opening]


class MovingPlace(Model):
    """A last seen entry, and the first that came back behind it, between threads."""

    head: Entry
    before: Order[Entry]

    status: Map[Entry, Status]
    last_seen: Map[Subscription, Entry]
    rewound: Map[Subscription, Bool]
    released: Map[Subscription, Entry]

    seeking: Map[Seeker, Seeking]
    seen: Map[Seeker, Entry]
    knows: Map[Seeker, Bool]
    known: Map[Seeker, Entry]
    chosen: Map[Seeker, Entry]

    opening: Map[Opener, Opening]
    opened: Map[Opener, Entry]

    @axiom("head-first")
    def head_first(self) -> Bool:
        """The dummy head is before every entry."""
        return forall(Entry, lambda e: (e == self.head) | self.before(self.head, e))

    @initial
    def empty(self) -> None:
        """Nothing has arrived and the place is the head."""
        self.status = self.status.map(
            lambda e, _: ite(e == self.head, Status.DEQUEUED, Status.ABSENT)
        )
        self.last_seen.fill(self.head)
        self.rewound.fill(False)
        self.released.fill(self.head)
        self.seeking.fill(Seeking.READS)
        self.seen.fill(self.head)
        self.knows.fill(False)
        self.known.fill(self.head)
        self.chosen.fill(self.head)
        self.opening.fill(Opening.OPENS)
        self.opened.fill(self.head)

    def in_list(self, e: Entry) -> Bool:
        """Whether a walk still finds the entry."""
        return (self.status[e] == Status.AVAILABLE) | (self.status[e] == Status.ACQUIRED)

    def at_or_before(self, e: Entry, f: Entry) -> Bool:
        """Whether e is f or before it."""
        return (e == f) | self.before(e, f)

    def follows(self, e: Entry, f: Entry) -> Bool:
        """Whether f is the first entry of the list after e."""
        return (
            self.in_list(f)
            & self.before(e, f)
            & ~exists(Entry, lambda g: self.in_list(g) & self.before(e, g) & self.before(g, f))
        )

    def candidate(self, who: Seeker, e: Entry) -> Bool:
        """Whether e is next by what a seeker has read: what came back, or what follows."""
        back = self.knows[who] & self.at_or_before(self.known[who], self.seen[who])
        return ite(back, self.known[who] == e, self.follows(self.seen[who], e))

    def gives(self, who: Seeker) -> Bool:
        """Whether a seeker has acquired what it found, and has not sent it yet."""
        return (self.seeking[who] == Seeking.SETTLES) | (self.seeking[who] == Seeking.SETS)

    def is_given(self, e: Entry) -> Bool:
        """Whether an entry is acquired and not yet sent, so that nobody can return it."""
        return exists(Seeker, lambda s: self.gives(s) & (self.chosen[s] == e))

    @action
    def append(self, entry: Entry) -> None:
        """An entry arrives behind all others: no place can be ahead of it."""
        require(self.status[entry] == Status.ABSENT)
        require(
            forall(Entry, lambda e: implies(self.status[e] != Status.ABSENT, self.before(e, entry)))
        )
        self.status[entry] = Status.AVAILABLE

    @action
    def insert(self, who: Opener, entry: Entry) -> None:
        """An entry arrives anywhere, and who brought it sees to the place."""
        require(self.opening[who] == Opening.OPENS)
        require(self.status[entry] == Status.ABSENT)
        self._open(who, entry)

    @action
    def give_back(self, who: Opener, entry: Entry) -> None:
        """An acquired entry is available again to everybody, and who returned it sees to the place.

        Whoever had acquired it: this subscription or another.
        """
        require(self.opening[who] == Opening.OPENS)
        require((self.status[entry] == Status.ACQUIRED) & ~self.is_given(entry))
        self._open(who, entry)

    def _open(self, who: Opener, entry: Entry) -> None:
        self.status[entry] = Status.AVAILABLE
        self.opened[who] = entry
        self.opening[who] = Opening.READS

    @action
    def find_it_gone(self, who: Opener) -> None:
        """Somebody has acquired it already: if it comes back, that will be his to see to."""
        require(self.opening[who] == Opening.READS)
        require(self.status[self.opened[who]] != Status.AVAILABLE)
        self.opening[who] = Opening.OPENS

    @action
    def taken_by_another(self, entry: Entry) -> None:
        """Another subscription acquires the entry."""
        require(self.status[entry] == Status.AVAILABLE)
        self.status[entry] = Status.ACQUIRED

    @action
    def dequeue(self, entry: Entry) -> None:
        """Whoever holds the entry is done with it."""
        require((self.status[entry] == Status.ACQUIRED) & ~self.is_given(entry))
        self.status[entry] = Status.DEQUEUED

    @action
    def choose(self, who: Seeker, entry: Entry) -> None:
        """A seeker takes the candidate by what it has read."""
        require(self.seeking[who] == Seeking.CHOOSES)
        require(self.candidate(who, entry))
        self.chosen[who] = entry
        self.seeking[who] = Seeking.LOOKS

    @action
    def give_up(self, who: Seeker) -> None:
        """There is no candidate, or it is available and the seeker only moves the place."""
        require((self.seeking[who] == Seeking.CHOOSES) | (self.seeking[who] == Seeking.LOOKS))
        self.seeking[who] = Seeking.READS

    @action
    def skip(self, who: Seeker) -> None:
        """The candidate cannot be had."""
        require(self.seeking[who] == Seeking.LOOKS)
        require(self.status[self.chosen[who]] != Status.AVAILABLE)
        self.seeking[who] = Seeking.MOVES

    @action
    def find(self, who: Seeker) -> None:
        """The candidate is available, and the seeker has the lock that deliverers need."""
        require(self.seeking[who] == Seeking.LOOKS)
        require(self.status[self.chosen[who]] == Status.AVAILABLE)
        require(forall(Seeker, lambda s: ~self.gives(s) & (self.seeking[s] != Seeking.ACQUIRES)))
        self.seeking[who] = Seeking.ACQUIRES

    @action
    def acquire(self, who: Seeker) -> None:
        """The candidate is acquired."""
        require(self.seeking[who] == Seeking.ACQUIRES)
        require(self.status[self.chosen[who]] == Status.AVAILABLE)
        self.status[self.chosen[who]] = Status.ACQUIRED
        self.seeking[who] = Seeking.SETTLES

    @action
    def miss(self, who: Seeker) -> None:
        """Somebody was faster."""
        require(self.seeking[who] == Seeking.ACQUIRES)
        require(self.status[self.chosen[who]] != Status.AVAILABLE)
        self.seeking[who] = Seeking.READS

    def is_opened(self, e: Entry) -> Bool:
        """Whether somebody is on the way to move the place back to the entry."""
        return exists(Opener, lambda t: (self.opening[t] != Opening.OPENS) & (self.opened[t] == e))

    def is_for_all(self, e: Entry) -> Bool:
        """Whether the entry is available, and whoever opened it has seen to the place."""
        return (self.status[e] == Status.AVAILABLE) & ~self.is_opened(e)

    def is_ahead(self, e: Entry) -> Bool:
        """Whether the next search comes to the entry, if it finds nothing before."""
        it = Subscription.IT
        return self.before(self.last_seen[it], e) | (
            self.rewound[it] & self.at_or_before(self.released[it], e)
        )

    @invariant("place-passes-nothing-of-interest")
    def passes_nothing(self) -> Bool:
        """What is available is ahead of the place, or somebody is on the way to move it back."""
        return forall(Entry, lambda e: implies(self.is_for_all(e), self.is_ahead(e)))
