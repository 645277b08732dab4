"""The state of the contract: its families and variables, and the terms that its guards use.

Owns the state that `core.py` changes, and the invariants about it; actions and requirements are
there. A get is a consumer that lives for one operation. `wants` says which entries concern a
consumer at all: those of its queue.

A browser's place is not visible, so the state keeps what can be known of it. An entry that a
consumer took while the browser was there is `excused`: the place may have passed it. An entry that
was shown, or is excused and before a shown one, is `behind` the place. After an arrival in a
priority queue the browser `may_repeat` entries. An entry `came_back` if it was released behind the
place. An entry is `meddled` with when a client settles it again through a settled delivery.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    FALSE,
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
    implies,
    initial,
    invariant,
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


class Group(Family):
    """Messages of one queue that only one consumer at a time may hold."""


class Status(Enumeration):
    """The stage of an entry's life."""

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
    """How a consumer settles its deliveries."""

    ACKNOWLEDGE: ClassVar[Mode]
    AUTOMATIC: ClassVar[Mode]
    BROWSE: ClassVar[Mode]


class ContractState(Model):
    """The state of the contract, its rigid symbols, the terms of its guards, and its invariants."""

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
    def order_is_by_level(self, e: Entry, f: Entry) -> Bool:
        """Within one queue, a higher level is before a lower one."""
        return implies(
            (self.home[e] == self.home[f]) & (self.level[e] > self.level[f]), self.before(e, f)
        )

    @axiom("windows-are-not-negative")
    def windows_are_not_negative(self, c: Consumer) -> Bool:
        """A window is at least 0; a window of 0 is a pause."""
        return self.limit[c] >= 0

    @initial
    def nothing_yet(self) -> None:
        """No message has been published, and no consumer is subscribed."""
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
    def what_it_holds(self, consumer: Consumer, e: Entry) -> Bool:
        """A consumer's unsettled count is the number of entries that it holds."""
        return (self.status[e] == Status.ACQUIRED) & (self.holder[e] == consumer)

    # Terms of the guards.

    def there_for(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is available and concerns the consumer."""
        return (self.status[f] == Status.AVAILABLE) & self.wants[consumer, f]

    def elsewhere_for(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is available, but not in this consumer's queue."""
        return (self.status[f] == Status.AVAILABLE) & ~self.concerns(consumer, f)

    def later_for(self, consumer: Consumer, entry: Entry, f: Entry) -> Bool:
        """Whether f is there for the consumer too, and comes after the entry."""
        return self.there_for(consumer, f) & self.precedes(entry, f)

    def taken(self, f: Entry) -> Bool:
        """Whether the entry is acquired or settled."""
        return (self.status[f] == Status.ACQUIRED) | (self.status[f] == Status.DEQUEUED)

    def goes_back(self, which: Channel, e: Entry) -> Bool:
        """Whether a consumer of the channel holds the entry; it returns as the channel closes."""
        return (self.status[e] == Status.ACQUIRED) & (self.channel[self.holder[e]] == which)

    def has_returned(self, f: Entry) -> Bool:
        """Whether a consumer had acquired the entry and it came back."""
        return self.origin[f] != Origin.PUBLISHED

    def is_in(self, queue: Queue, f: Entry) -> Bool:
        """Whether the entry belongs to the queue."""
        return self.home[f] == queue

    def concerns(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is in a queue that the consumer subscribed to."""
        return self.wants[consumer, f]

    def can_be_cancelled(self, consumer: Consumer) -> Bool:
        """Whether a client may cancel the consumer."""
        return self.consuming[consumer]

    def knows_places(self) -> Bool:
        """Whether a requirement says where a returned message goes."""
        return self.returns_to_place

    def precedes(self, e: Entry, f: Entry) -> Bool:
        """Whether e comes before f."""
        return self.before(e, f)

    def has_arrived(self, f: Entry) -> Bool:
        """Whether the message was published."""
        return self.status[f] != Status.ABSENT

    def is_overtaken(self, consumer: Consumer, f: Entry, entry: Entry) -> Bool:
        """Whether a delivery of the entry to the consumer passes f, which should come first."""
        return self.is_missed(consumer, f) & self.precedes(f, entry)

    def is_missed(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is there for the consumer and is not on its way back."""
        return self.there_for(consumer, f) & ~self.may_be_overtaken(f)

    def may_be_overtaken(self, f: Entry) -> Bool:  # noqa: ARG002 (lawful differences look at it)
        """Whether others may pass the entry, and a get may miss it, although it is available."""
        return FALSE

    def of_one_level(self, e: Entry, f: Entry) -> Bool:
        """Whether two entries are in one queue, and only their arrival orders them."""
        return (self.home[e] == self.home[f]) & (self.level[e] == self.level[f])

    def has_arrived_behind(self, entry: Entry, f: Entry) -> Bool:
        """Whether f has arrived, and stands behind the entry on its level."""
        return self.before(entry, f) & self.has_arrived(f) & self.of_one_level(entry, f)

    def _stands_last(self, entry: Entry) -> None:
        """Note that the entry comes to its place last; in the core an entry keeps its place."""

    def is_told_as(self, f: Entry, redelivered: Bool) -> Bool:
        """Whether a delivery of the entry may carry this redelivered flag."""
        return redelivered == self.has_returned(f)

    def is_shown_as(self, consumer: Consumer, f: Entry, redelivered: Bool) -> Bool:  # noqa: ARG002
        """Whether a browser may be shown the entry with this redelivered flag."""
        return self.is_told_as(f, redelivered)

    def can_be_shown(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002 (differences look at it)
        """Whether a browser may be shown the entry: no consumer has it."""
        return ~self.is_held_or_settled(f)

    def is_held_or_settled(self, f: Entry) -> Bool:
        """Whether a consumer holds the entry or has settled it."""
        return self.taken(f)

    def has_room(self, consumer: Consumer, f: Entry) -> Bool:  # noqa: ARG002 (other windows look at it)
        """Whether every window of the consumer lets the entry through."""
        return self.has_messages_left(consumer)

    def must_take(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the consumer's windows certainly let the entry through under every rule."""
        return self.has_room(consumer, f)

    def has_messages_left(self, consumer: Consumer) -> Bool:
        """Whether the window lets one more message through.

        Only a consumer that acknowledges fills its window.
        """
        fills = self.mode[consumer] == Mode.ACKNOWLEDGE
        room = ite(fills, self.unsettled[consumer] < self.limit[consumer], self.limit[consumer] > 0)
        return ~self.limited[consumer] | room

    def may_be_shown(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether showing the entry to the browser breaks at most a SHOULD."""
        again = self.behind[consumer, f] & ~self.may_repeat[consumer, f]
        return ~again | (~self.came_back[consumer, f] & ~self.fifo[self.home[f]])

    def takes(self, consumer: Consumer) -> Bool:
        """Whether the consumer is subscribed and no browser."""
        return self.consuming[consumer] & (self.mode[consumer] != Mode.BROWSE)

    def looks(self, consumer: Consumer) -> Bool:
        """Whether the consumer is a subscribed browser."""
        return self.consuming[consumer] & (self.mode[consumer] == Mode.BROWSE)

    def works_within_a_window(self, consumer: Consumer) -> Bool:
        """Whether the consumer has a window and has begun to use it."""
        return self.limited[consumer] & self.served[consumer]

    # Statements about every state that a conforming broker can be in.

    @invariant("holders-acknowledge")
    def holders_acknowledge(self, e: Entry) -> Bool:
        """Only a consumer that acknowledges holds messages; a browser never does."""
        return implies(
            self.status[e] == Status.ACQUIRED, self.mode[self.holder[e]] == Mode.ACKNOWLEDGE
        )

    @invariant("window-is-never-exceeded")
    def window_is_never_exceeded(self, c: Consumer) -> Bool:
        """A consumer's unsettled messages fit its window."""
        return implies(
            self.limited[c] & (self.mode[c] == Mode.ACKNOWLEDGE),
            self.unsettled[c] <= self.limit[c],
        )

    @invariant("absent-is-unknown")
    def absent_is_unknown(self, c: Consumer, e: Entry) -> Bool:
        """An unpublished entry has not returned, and no browser has passed it."""
        return implies(
            self.status[e] == Status.ABSENT,
            ~self.has_returned(e) & ~self.excused[c, e] & ~self.behind[c, e],
        )

    @invariant("shown-is-excused")
    def shown_is_excused(self, c: Consumer, e: Entry) -> Bool:
        """An entry that a browser was shown, or that is behind its place, is excused."""
        return implies(self.shown[c, e] | self.behind[c, e], self.excused[c, e])

    @invariant("a-browser-repeats-only-what-it-may")
    def repeats_only_what_it_may(self, c: Consumer, e: Entry) -> Bool:
        """An entry once shown to a browser stays behind it, unless arrivals let it repeat it.

        That never happens on a FIFO queue, and a release lets it repeat nothing.
        """
        may = self.may_repeat[c, e]
        return implies(self.fifo[self.home[e]], ~may) & implies(
            self.shown[c, e], self.behind[c, e] | may
        )

    @invariant("came-back-has-returned")
    def came_back_has_returned(self, c: Consumer, e: Entry) -> Bool:
        """An entry that came back behind a browser's place had been acquired by a consumer."""
        return implies(self.came_back[c, e], self.has_returned(e))
