"""The words of ActiveMQ's queue: where a message can be, how it starts, and what guards speak of.

Owns the state that `cursor_page_in` moves and `cursor_invariants` speaks about. No action is here
and no promise.

Every message is in the store from its arrival to its end. Of what is there, some is in the cursor's
batch, some has been paged in, and the rest is to be read. The order is that of the store, which is
that of sending: one producer, one persistence class. The position is the entry that was read last;
it is kept as the set of all that is at it or before, so that "no position" is the empty set. In the
same way `spent` is all that was sent and what lies before it, which nobody will send any more, and
`below` is what lies below the first index of the audit's window. How far the window
slides when an index is recorded is any relation that an order allows, so any number of words of any
size is covered.

What has been paged in is with a consumer, or waits, or has been returned. Messages that are
returned are in an order of their own, and so are those that consumers hold: that of delivery.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.contract.core_state import Channel, Consumer
from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    FixedRelation,
    Map,
    Model,
    Order,
    Relation,
    axiom,
    exists,
    forall,
    implies,
    initial,
)

__all__ = ["Channel", "Consumer", "Cursor", "CursorWords", "Message"]


class Message(Family):
    """A message, which is its entry in the store and its index in the audit."""


class Cursor(Enumeration):
    """The cursor of the queue: there is one."""

    IT: ClassVar[Cursor]


IT = Cursor.IT


class CursorWords(Model):
    """A store, a cursor that reads it, what is paged in of it, and what the audit remembers."""

    before: Order[Message]
    slides: FixedRelation[Message, Message]
    channel: Fixed[Consumer, Channel]

    spent: Map[Message, Bool]
    stored: Map[Message, Bool]
    batch: Map[Message, Bool]
    paged: Map[Message, Bool]
    waiting: Map[Message, Bool]
    returned: Map[Message, Bool]
    holds: Relation[Consumer, Message]
    sooner: Relation[Message, Message]
    attached: Map[Consumer, Bool]
    takes: Map[Consumer, Bool]
    behind: Map[Message, Bool]
    read_last: Map[Message, Bool]
    caches: Map[Cursor, Bool]
    recorded: Map[Message, Bool]
    below: Map[Message, Bool]
    given: Map[Message, Bool]
    out_of_turn: Map[Message, Bool]

    @axiom("a-window-slides-past-what-is-older")
    def window_slides_past_older(self) -> Bool:
        """To record an index drops whole words of older ones, never one without those before it."""
        return forall(
            Message,
            Message,
            Message,
            lambda m, n, k: implies(
                self.slides[m, n],
                self.before(n, m) & implies(self.before(k, n), self.slides[m, k]),
            ),
        )

    @initial
    def empty(self) -> None:
        """Nothing has been sent, nobody is there, and the cursor caches what will come."""
        for truth in (
            *(self.spent, self.stored, self.batch, self.paged, self.waiting, self.returned),
            *(self.attached, self.takes, self.behind, self.read_last),
            *(self.recorded, self.below, self.given, self.out_of_turn),
        ):
            truth.fill(False)
        self.holds.fill(False)
        self.sooner.fill(False)
        self.caches.fill(True)

    # The words.

    def at_or_before(self, m: Message, n: Message) -> Bool:
        """Whether m is n or before it."""
        return (m == n) | self.before(m, n)

    def is_unread(self, m: Message) -> Bool:
        """Whether the store alone has the message: it is in no batch, and not paged in."""
        return self.stored[m] & ~self.batch[m] & ~self.paged[m]

    def is_held(self, m: Message) -> Bool:
        """Whether the message is paged in, and with a consumer."""
        return self.paged[m] & ~self.waiting[m] & ~self.returned[m]

    def is_next(self, m: Message) -> Bool:
        """Whether the entry is the position's successor, or the store's first if there is none."""
        none_between = forall(
            Message,
            lambda n: implies(self.stored[n] & ~self.behind[n], self.at_or_before(m, n)),
        )
        return self.stored[m] & ~self.behind[m] & none_between

    def is_position(self, m: Message) -> Bool:
        """Whether the entry is the one that was read last, or where the cache has ended."""
        last = forall(Message, lambda n: implies(self.behind[n], self.at_or_before(n, m)))
        return self.behind[m] & last

    def is_known(self, m: Message) -> Bool:
        """Whether the audit calls the message a duplicate; below its window everything is new."""
        return self.recorded[m] & ~self.below[m]

    def is_duplicate(self, m: Message) -> Bool:
        """Whether a read leaves the entry where it is: it is in memory, or the audit knows it."""
        return self.batch[m] | self.paged[m] | self.is_known(m)

    def is_latest(self, m: Message) -> Bool:
        """Whether the message was sent last."""
        last = forall(Message, lambda n: implies(self.spent[n], self.at_or_before(n, m)))
        return self.spent[m] & last

    def is_first_in_batch(self, m: Message) -> Bool:
        """Whether the message is the first that the cursor has read and not handed out."""
        none_before = forall(Message, lambda n: ~(self.batch[n] & self.before(n, m)))
        return self.batch[m] & none_before

    def is_first_waiting(self, m: Message) -> Bool:
        """Whether the message is the first that is paged in and was given to nobody."""
        none_before = forall(Message, lambda n: ~(self.waiting[n] & self.before(n, m)))
        return self.waiting[m] & none_before

    def is_first_returned(self, m: Message) -> Bool:
        """Whether the message is the first that was returned."""
        none_before = forall(Message, lambda n: ~(self.returned[n] & self.sooner[n, m]))
        return self.returned[m] & none_before

    def is_first_to_give(self, m: Message) -> Bool:
        """Whether the message is next: of what was returned or, if nothing was, of what waits."""
        nothing_returned = forall(Message, lambda n: ~self.returned[n])
        return self.is_first_returned(m) | (nothing_returned & self.is_first_waiting(m))

    def goes_back(self, which: Channel, m: Message) -> Bool:
        """Whether a consumer of the channel holds the message."""
        return exists(Consumer, lambda c: self.holds[c, m] & (self.channel[c] == which))
