"""One subscription's place in a queue while threads move it: the shared part of the models.

Source: Qpid, Message Delivery, Subscriptions and Reject and Release; Qpid 0.6 and later, where the
place is a last seen entry and a released entry behind it.

In the pointer queue, a return and its changes to pointers are one step; here each access to shared
state is one. Seekers look for the subscription's next entry; one at a time, under its lock,
acquires what it found. Openers make an entry available, by a return or an arrival out of order, and
then move the place back if it is beyond the entry. The models differ in how they read and change
the place. All share one invariant: no available entry is behind the place unless a thread is about
to move it back.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Map,
    Value,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
    step,
)
from brokerproof.models.qpid.pointer_queue import Entry, EntryList, Status


class Seeker(Family):
    """A thread that looks for the subscription's next entry."""


class Opener(Family):
    """A thread that makes an entry available and then moves the place back."""


class Seeking(Enumeration):
    """The next step of a seeker."""

    READS: ClassVar[Seeking]
    CHOOSES: ClassVar[Seeking]
    LOOKS: ClassVar[Seeking]
    MOVES: ClassVar[Seeking]
    ACQUIRES: ClassVar[Seeking]
    SETTLES: ClassVar[Seeking]
    SETS: ClassVar[Seeking]


class Opening(Enumeration):
    """The next step of an opener."""

    OPENS: ClassVar[Opening]
    READS: ClassVar[Opening]
    LOWERS: ClassVar[Opening]


class MovingPlace(EntryList):
    """A last seen entry and the first released entry behind it, changed by several threads."""

    last_seen: Value[Entry]
    rewound: Value[Bool]
    released: Value[Entry]

    seeking: Map[Seeker, Seeking]
    seen: Map[Seeker, Entry]
    knows: Map[Seeker, Bool]
    known: Map[Seeker, Entry]
    chosen: Map[Seeker, Entry]

    opening: Map[Opener, Opening]
    opened: Map[Opener, Entry]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and the place is the head."""
        super().empty()
        self.last_seen = self.released = self.head
        self.rewound = False
        self.seeking.fill(Seeking.READS)
        self.seen.fill(self.head)
        self.knows.fill(False)
        self.known.fill(self.head)
        self.chosen.fill(self.head)
        self.opening.fill(Opening.OPENS)
        self.opened.fill(self.head)

    def candidate(self, seeker: Seeker, e: Entry) -> Bool:
        """Whether e is next by what the seeker has read: the released or the following entry."""
        back = self.knows[seeker] & self.at_or_before(self.known[seeker], self.seen[seeker])
        return ite(back, self.known[seeker] == e, self.follows(self.seen[seeker], e))

    def gives(self, seeker: Seeker) -> Bool:
        """Whether a seeker has acquired an entry and not sent it yet."""
        return self.seeking[seeker].is_one_of(Seeking.SETTLES, Seeking.SETS)

    def delivers(self, seeker: Seeker) -> Bool:
        """Whether a seeker has the lock that deliveries need."""
        return self.gives(seeker) | (self.seeking[seeker] == Seeking.ACQUIRES)

    def is_given(self, e: Entry) -> Bool:
        """Whether an entry is acquired and not sent yet, so that it cannot be returned."""
        return exists(Seeker, lambda s: self.gives(s) & (self.chosen[s] == e))

    @step(Status.ABSENT, Status.AVAILABLE)
    def append(self, entry: Entry) -> None:
        """An entry arrives behind all others, so no place can be beyond it."""
        require(
            forall(Entry, lambda e: implies(self.status[e] != Status.ABSENT, self.before(e, entry)))
        )

    @step(Opening.OPENS)
    def insert(self, opener: Opener, entry: Entry) -> None:
        """An entry arrives anywhere, and the opener that brought it sees to the place."""
        require(self.status[entry] == Status.ABSENT)
        self._open(opener, entry)

    @step(Opening.OPENS)
    def give_back(self, opener: Opener, entry: Entry) -> None:
        """An acquired entry becomes available again, and the opener sees to the place.

        This subscription or another one may have acquired it.
        """
        require((self.status[entry] == Status.ACQUIRED) & ~self.is_given(entry))
        self._open(opener, entry)

    def _open(self, opener: Opener, entry: Entry) -> None:
        self.status[entry] = Status.AVAILABLE
        self.opened[opener] = entry
        self.opening[opener] = Opening.READS

    @step(Opening.READS, Opening.OPENS)
    def find_it_gone(self, opener: Opener) -> None:
        """The opened entry is taken again; if it returns, that opener sees to the place."""
        require(self.status[self.opened[opener]] != Status.AVAILABLE)

    @step(Status.AVAILABLE, Status.ACQUIRED)
    def taken_by_another(self, entry: Entry) -> None:
        """Another subscription acquires the entry."""

    @step(Status.ACQUIRED, Status.DEQUEUED)
    def dequeue(self, entry: Entry) -> None:
        """The holder of an entry has settled it."""
        require(~self.is_given(entry))

    @step(Seeking.CHOOSES, Seeking.LOOKS)
    def choose(self, seeker: Seeker, entry: Entry) -> None:
        """A seeker chooses the candidate by what it has read."""
        require(self.candidate(seeker, entry))
        self.chosen[seeker] = entry

    @action
    def give_up(self, seeker: Seeker) -> None:
        """There is no candidate, or it is available and the seeker only moves the place."""
        require(self.seeking[seeker].is_one_of(Seeking.CHOOSES, Seeking.LOOKS))
        self.seeking[seeker] = Seeking.READS

    @step(Seeking.LOOKS, Seeking.MOVES)
    def skip(self, seeker: Seeker) -> None:
        """The candidate is not available."""
        require(self.status[self.chosen[seeker]] != Status.AVAILABLE)

    @step(Seeking.LOOKS, Seeking.ACQUIRES)
    def find(self, seeker: Seeker) -> None:
        """The candidate is available, and the seeker has the lock that deliveries need."""
        require(self.status[self.chosen[seeker]] == Status.AVAILABLE)
        require(forall(Seeker, lambda s: ~self.delivers(s)))

    @step(Seeking.ACQUIRES, Seeking.SETTLES)
    def acquire(self, seeker: Seeker) -> None:
        """The seeker acquires the candidate."""
        require(self.status[self.chosen[seeker]] == Status.AVAILABLE)
        self.status[self.chosen[seeker]] = Status.ACQUIRED

    @step(Seeking.ACQUIRES, Seeking.READS)
    def miss(self, seeker: Seeker) -> None:
        """Another thread was faster."""
        require(self.status[self.chosen[seeker]] != Status.AVAILABLE)

    def is_opened(self, e: Entry) -> Bool:
        """Whether an opener is about to move the place back to the entry."""
        return exists(Opener, lambda t: (self.opening[t] != Opening.OPENS) & (self.opened[t] == e))

    def is_for_all(self, e: Entry) -> Bool:
        """Whether the entry is available, and its opener has seen to the place."""
        return (self.status[e] == Status.AVAILABLE) & ~self.is_opened(e)

    def is_ahead(self, e: Entry) -> Bool:
        """Whether the next search reaches the entry if it finds no other before."""
        return self.before(self.last_seen, e) | (self.rewound & self.at_or_before(self.released, e))

    @invariant("place-passes-nothing-of-interest")
    def passes_nothing(self, e: Entry) -> Bool:
        """An available entry is ahead of the place, or a thread is about to move it back."""
        return implies(self.is_for_all(e), self.is_ahead(e))

    @invariant("one-seeker-delivers")
    def one_delivers(self, s: Seeker, t: Seeker) -> Bool:
        """At most one seeker acquires an entry or has one to send."""
        return implies(self.delivers(s) & self.delivers(t), s == t)
