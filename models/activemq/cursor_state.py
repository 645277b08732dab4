"""The state of ActiveMQ's queue: places of messages, initial state, and terms of the guards.

Owns the state that `cursor_page_in` changes and `cursor_invariants` describes; actions and
requirements are elsewhere.

A message is in the store from its arrival to its end. A stored message is in the cursor's batch,
paged in, or unread. The order is that of the store, which is that of sending: one producer, one
persistence class. Three sets are cuts of this order. `behind` is the position, the entry read last,
with all entries before it; the empty set is "no position". `spent` is all that was sent or can no
longer be sent. `below` is all below the first index of the audit's window. The window slides by any
relation that an order allows, which covers any number of words of any size.

A paged-in message is held, waits, or was returned. Returned messages are in the order of their
returns, and held ones in the order of delivery.
"""

from __future__ import annotations

from brokerproof.models.contract.core_state import Channel, Consumer
from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    FixedRelation,
    Map,
    Model,
    Order,
    Relation,
    Value,
    axiom,
    exists,
    forall,
    implies,
    initial,
)

__all__ = ["Channel", "Consumer", "CursorState", "Message"]


class Message(Family):
    """A message, which is also its entry in the store and its index in the audit."""


class CursorState(Model):
    """A store, its cursor, the paged-in messages, and the audit's record."""

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
    caches: Value[Bool]
    recorded: Map[Message, Bool]
    below: Map[Message, Bool]
    given: Map[Message, Bool]
    out_of_turn: Map[Message, Bool]

    @axiom("a-window-slides-past-what-is-older")
    def window_slides_past_older(self, m: Message, n: Message, k: Message) -> Bool:
        """Recording an index drops whole words of older indices, oldest first."""
        return implies(
            self.slides[m, n], self.before(n, m) & implies(self.before(k, n), self.slides[m, k])
        )

    @initial
    def empty(self) -> None:
        """No message has been sent, no consumer is there, and the cache is on."""
        for truth in (
            *(self.spent, self.stored, self.batch, self.paged, self.waiting, self.returned),
            *(self.attached, self.takes, self.behind, self.read_last),
            *(self.recorded, self.below, self.given, self.out_of_turn),
        ):
            truth.fill(False)
        self.holds.fill(False)
        self.sooner.fill(False)
        self.caches = True

    # Terms.

    def at_or_before(self, m: Message, n: Message) -> Bool:
        """Whether m is n or before it."""
        return (m == n) | self.before(m, n)

    def is_unread(self, m: Message) -> Bool:
        """Whether only the store has the message: it is neither in the batch nor paged in."""
        return self.stored[m] & ~self.batch[m] & ~self.paged[m]

    def is_held(self, m: Message) -> Bool:
        """Whether the message is paged in and held by a consumer."""
        return self.paged[m] & ~self.waiting[m] & ~self.returned[m]

    def is_next(self, m: Message) -> Bool:
        """Whether the entry is the position's successor, or the store's first if there is none."""
        none_between = forall(
            Message, lambda n: implies(self.stored[n] & ~self.behind[n], self.at_or_before(m, n))
        )
        return self.stored[m] & ~self.behind[m] & none_between

    def is_position(self, m: Message) -> Bool:
        """Whether the entry is the one read last, or the one where the cache ended."""
        last = forall(Message, lambda n: implies(self.behind[n], self.at_or_before(n, m)))
        return self.behind[m] & last

    def is_known(self, m: Message) -> Bool:
        """Whether the audit calls the message a duplicate; below its window no message is one."""
        return self.recorded[m] & ~self.below[m]

    def is_duplicate(self, m: Message) -> Bool:
        """Whether a read leaves the entry where it is: it is in memory, or the audit knows it."""
        return self.batch[m] | self.paged[m] | self.is_known(m)

    def is_latest(self, m: Message) -> Bool:
        """Whether the message was sent last."""
        last = forall(Message, lambda n: implies(self.spent[n], self.at_or_before(n, m)))
        return self.spent[m] & last

    def is_first_in_batch(self, m: Message) -> Bool:
        """Whether the message is the first in the batch."""
        none_before = forall(Message, lambda n: ~(self.batch[n] & self.before(n, m)))
        return self.batch[m] & none_before

    def is_first_waiting(self, m: Message) -> Bool:
        """Whether the message is the first that is paged in and was given to no consumer."""
        none_before = forall(Message, lambda n: ~(self.waiting[n] & self.before(n, m)))
        return self.waiting[m] & none_before

    def is_first_returned(self, m: Message) -> Bool:
        """Whether the message is the first returned one."""
        none_before = forall(Message, lambda n: ~(self.returned[n] & self.sooner[n, m]))
        return self.returned[m] & none_before

    def is_first_to_give(self, m: Message) -> Bool:
        """Whether the message is the first returned one, otherwise the first waiting one."""
        nothing_returned = forall(Message, lambda n: ~self.returned[n])
        return self.is_first_returned(m) | (nothing_returned & self.is_first_waiting(m))

    def goes_back(self, which: Channel, m: Message) -> Bool:
        """Whether a consumer of the channel holds the message."""
        return exists(Consumer, lambda c: self.holds[c, m] & (self.channel[c] == which))
