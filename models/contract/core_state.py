"""The words of the contract: what there is, how it starts, and how its guards speak of it.

Owns the families and the state that `core.py` moves and `core_invariants.py` speaks about.
No action is here and no promise.

A get is a consumer that lives for one operation. `wants` says which entries concern a consumer at
all: those of its queue. Nobody sees where a browser's place is, so the state keeps what can be
known of it: an entry that somebody took while the browser was there is `excused` from being shown,
since the place may have passed it then; what was shown, and what is before that and excused, is
certainly `behind` the place; `may_repeat` is what an arrival in a priority queue lets the browser
walk over once more; and what was released behind the place `came_back`. An entry is `meddled` with
when a client settles it once more through a delivery that is settled already.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    FixedRelation,
    Int,
    Map,
    Model,
    Order,
    Relation,
    axiom,
    counts,
    forall,
    implies,
    initial,
    ite,
)


class Queue(Family):
    """A queue."""


class Channel(Family):
    """A client's channel."""


class Consumer(Family):
    """A consumer, a browser, or one get."""


class Entry(Family):
    """A message in its queue."""


class Status(Enumeration):
    """Where an entry is in its life."""

    ABSENT: ClassVar[Status]
    AVAILABLE: ClassVar[Status]
    ACQUIRED: ClassVar[Status]
    DEQUEUED: ClassVar[Status]


class Origin(Enumeration):
    """How an entry last became available."""

    PUBLISHED: ClassVar[Origin]
    RELEASED: ClassVar[Origin]
    CLOSED: ClassVar[Origin]


class Mode(Enumeration):
    """What a consumer does with what it is given."""

    ACKNOWLEDGE: ClassVar[Mode]
    AUTOMATIC: ClassVar[Mode]
    BROWSE: ClassVar[Mode]


class ContractWords(Model):
    """The state of the contract, its rigid things, and the words that its guards are made of."""

    before: Order[Entry]
    home: Fixed[Entry, Queue]
    level: Fixed[Entry, Int]
    fifo: Fixed[Queue, Bool]
    returns_to_place: Bool
    channel: Fixed[Consumer, Channel]
    mode: Fixed[Consumer, Mode]
    wants: FixedRelation[Consumer, Entry]
    limited: Fixed[Consumer, Bool]
    limit: Fixed[Consumer, Int]

    status: Map[Entry, Status]
    holder: Map[Entry, Consumer]
    origin: Map[Entry, Origin]
    meddled: Map[Entry, Bool]
    excused: Relation[Consumer, Entry]
    behind: Relation[Consumer, Entry]
    may_repeat: Relation[Consumer, Entry]
    shown: Relation[Consumer, Entry]
    came_back: Relation[Consumer, Entry]
    consuming: Map[Consumer, Bool]
    served: Map[Consumer, Bool]
    unsettled: Map[Consumer, Int]

    @axiom("order-is-by-level")
    def order_is_by_level(self) -> Bool:
        """Within one queue, a higher level is before a lower one."""
        return forall(
            Entry,
            Entry,
            lambda e, f: implies(
                (self.home[e] == self.home[f]) & (self.level[e] > self.level[f]), self.before(e, f)
            ),
        )

    @axiom("windows-are-not-negative")
    def windows_are_not_negative(self) -> Bool:
        """A window of 0 is a pause; there is nothing below."""
        return forall(Consumer, lambda c: self.limit[c] >= 0)

    @initial
    def nothing_yet(self) -> None:
        """No message has been published, nobody consumes."""
        self.status.fill(Status.ABSENT)
        self.holder = self.holder.map(lambda _, old: old)
        self.origin.fill(Origin.PUBLISHED)
        self.meddled.fill(False)
        self.excused.fill(False)
        self.behind.fill(False)
        self.may_repeat.fill(False)
        self.shown.fill(False)
        self.came_back.fill(False)
        self.consuming.fill(False)
        self.served.fill(False)
        self.unsettled.fill(0)

    @counts("unsettled")
    def what_it_holds(self, who: Consumer, e: Entry) -> Bool:
        """What a consumer has not settled is what it holds."""
        return (self.status[e] == Status.ACQUIRED) & (self.holder[e] == who)

    # The words of the guards.

    def there_for(self, who: Consumer, f: Entry) -> Bool:
        """Whether the entry is available and concerns the consumer."""
        return (self.status[f] == Status.AVAILABLE) & self.wants[who, f]

    def elsewhere_for(self, who: Consumer, f: Entry) -> Bool:
        """Whether the entry is available, but not to this consumer."""
        return (self.status[f] == Status.AVAILABLE) & ~self.concerns(who, f)

    def later_for(self, who: Consumer, entry: Entry, f: Entry) -> Bool:
        """Whether f is there for the consumer too, and its turn is after the entry's."""
        return self.there_for(who, f) & self.precedes(entry, f)

    def taken(self, f: Entry) -> Bool:
        """Whether the entry is with a consumer or done with."""
        return (self.status[f] == Status.ACQUIRED) | (self.status[f] == Status.DEQUEUED)

    def has_returned(self, f: Entry) -> Bool:
        """Whether somebody had acquired the entry and it came back."""
        return self.origin[f] != Origin.PUBLISHED

    def concerns(self, who: Consumer, f: Entry) -> Bool:
        """Whether the entry is in a queue that the consumer subscribed to."""
        return self.wants[who, f]

    def can_be_cancelled(self, who: Consumer) -> Bool:
        """Whether a client may cancel the consumer."""
        return self.consuming[who]

    def knows_places(self) -> Bool:
        """Whether it is promised where a returned message goes."""
        return self.returns_to_place

    def precedes(self, e: Entry, f: Entry) -> Bool:
        """Whether the turn of e is before that of f."""
        return self.before(e, f)

    def is_told_as(self, f: Entry, redelivered: Bool) -> Bool:
        """Whether the flag of a delivery may be that."""
        return redelivered == self.has_returned(f)

    def is_with_somebody(self, f: Entry) -> Bool:
        """Whether the entry is with a consumer, or one has settled it."""
        return self.taken(f)

    def has_room(self, who: Consumer, f: Entry) -> Bool:  # noqa: ARG002 (other windows look at it)
        """Whether every window of the consumer lets the entry through."""
        return self.has_messages_left(who)

    def must_take(self, who: Consumer, f: Entry) -> Bool:
        """Whether no rule leaves it open that the entry goes through the consumer's windows."""
        return self.has_room(who, f)

    def has_messages_left(self, who: Consumer) -> Bool:
        """Whether the window lets one more message through; only what is acknowledged fills it."""
        fills = self.mode[who] == Mode.ACKNOWLEDGE
        room = ite(fills, self.unsettled[who] < self.limit[who], self.limit[who] > 0)
        return ~self.limited[who] | room

    def may_be_shown(self, who: Consumer, f: Entry) -> Bool:
        """Whether showing the entry to the browser would go against no more than advice."""
        again = self.behind[who, f] & ~self.may_repeat[who, f]
        return ~again | (~self.came_back[who, f] & ~self.fifo[self.home[f]])

    def takes(self, who: Consumer) -> Bool:
        """Whether the consumer is subscribed and takes what it is given."""
        return self.consuming[who] & (self.mode[who] != Mode.BROWSE)

    def looks(self, who: Consumer) -> Bool:
        """Whether the consumer is a subscribed browser."""
        return self.consuming[who] & (self.mode[who] == Mode.BROWSE)

    def works_within_a_window(self, who: Consumer) -> Bool:
        """Whether the consumer has a window and has begun to use it."""
        return self.limited[who] & self.served[who]
