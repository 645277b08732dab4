"""The state of the paging queue: places of messages, initial state, and terms of the guards.

Owns the state that `paging_places` changes and `paging_invariants` describes; actions and
requirements are elsewhere. A message is also its position: the order is that of the positions, and
a position that is never used is a message that never comes. Delta's bounds and the next free
position are therefore cuts of the order: the sets `from_start`, `before_end` and `used`. Both sets
of a blank delta are empty. A segment is a set of adjacent positions, of any size.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    Map,
    Model,
    Order,
    axiom,
    exists,
    forall,
    implies,
    initial,
)


class Message(Family):
    """A message in the queue, and the position that it has there."""


class Segment(Family):
    """A group of positions whose index entries are in one file."""


class Place(Enumeration):
    """The place of a message."""

    NOWHERE: ClassVar[Place]
    Q1: ClassVar[Place]
    Q2: ClassVar[Place]
    DELTA: ClassVar[Place]
    Q3: ClassVar[Place]
    Q4: ClassVar[Place]
    PENDING: ClassVar[Place]
    GONE: ClassVar[Place]


class PagingState(Model):
    """Messages in five places, with their parts in memory, in the store and in the index.

    `in_ram` and `stored` say where a message's content is, `delivered` is the flag of its status.
    `indexed`, `noted` and `acked` say that the index has its publish, its delivery and its
    acknowledgement. `used` is the positions that were given out. Two variables are history alone:
    `was_fetched`, and `out_of_turn` if an earlier message was ready at the last fetch.
    """

    before: Order[Message]
    earlier: Order[Segment]
    segment: Fixed[Message, Segment]
    persistent: Fixed[Message, Bool]

    place: Map[Message, Place]
    in_ram: Map[Message, Bool]
    stored: Map[Message, Bool]
    delivered: Map[Message, Bool]
    indexed: Map[Message, Bool]
    noted: Map[Message, Bool]
    acked: Map[Message, Bool]
    used: Map[Message, Bool]
    from_start: Map[Message, Bool]
    before_end: Map[Message, Bool]
    was_fetched: Map[Message, Bool]
    out_of_turn: Map[Message, Bool]

    @axiom("segments-follow-the-order")
    def segments_follow_the_order(self, m: Message, n: Message) -> Bool:
        """A later position is in no earlier segment."""
        return implies(self.before(m, n), ~self.earlier(self.segment[n], self.segment[m]))

    @initial
    def empty(self) -> None:
        """No message has been published, and delta is blank."""
        self.place.fill(Place.NOWHERE)
        for truth in (
            *(self.in_ram, self.stored, self.delivered),
            *(self.indexed, self.noted, self.acked),
            *(self.used, self.from_start, self.before_end),
            *(self.was_fetched, self.out_of_turn),
        ):
            truth.fill(False)

    # Terms.

    def is_in(self, m: Message, *places: Place) -> Bool:
        """Whether the message is in one of the places."""
        return self.place[m].is_one_of(*places)

    def is_ready(self, m: Message) -> Bool:
        """Whether the message waits to be fetched, wherever it is kept."""
        return self.is_in(m, Place.Q1, Place.Q2, Place.DELTA, Place.Q3, Place.Q4)

    def is_held(self, m: Message) -> Bool:
        """Whether the queue has the message's status in memory; delta has none."""
        return self.is_in(m, Place.Q1, Place.Q2, Place.Q3, Place.Q4, Place.PENDING)

    def has_any(self, place: Place) -> Bool:
        """Whether the place has a message."""
        return exists(Message, lambda m: self.place[m] == place)

    def has_none(self, *places: Place) -> Bool:
        """Whether all these places are empty."""
        return forall(Message, lambda m: ~self.is_in(m, *places))

    def at_or_before(self, m: Message, n: Message) -> Bool:
        """Whether m is n or before it."""
        return (m == n) | self.before(m, n)

    def is_first_of(self, place: Place, m: Message) -> Bool:
        """Whether the message is the first in its place."""
        others = forall(Message, lambda n: implies(self.place[n] == place, self.at_or_before(m, n)))
        return (self.place[m] == place) & others

    def is_last_of(self, place: Place, m: Message) -> Bool:
        """Whether the message is the last in its place."""
        others = forall(Message, lambda n: implies(self.place[n] == place, self.at_or_before(n, m)))
        return (self.place[m] == place) & others

    def is_only_one_of(self, place: Place, m: Message) -> Bool:
        """Whether the message is the only one in its place."""
        others = forall(Message, lambda n: implies(self.place[n] == place, n == m))
        return (self.place[m] == place) & others

    def runs_out_of_q3(self, m: Message) -> Bool:
        """Whether the message is the next one, and the only one of q3."""
        return self.has_none(Place.Q4) & self.is_only_one_of(Place.Q3, m)

    def is_live(self, m: Message) -> Bool:
        """Whether the index has an entry of the message that is not acknowledged."""
        return self.indexed[m] & ~self.acked[m]

    def is_found(self, m: Message) -> Bool:
        """Whether a reload finds the message: between delta's bounds, live, and not pending."""
        within = self.from_start[m] & self.before_end[m]
        return within & self.is_live(m) & ~self.is_in(m, Place.PENDING)

    def is_found_first(self, m: Message) -> Bool:
        """Whether a reload that reads one segment after the other finds this message first."""
        none_before = forall(Message, lambda n: ~(self.is_found(n) & self.before(n, m)))
        return self.is_found(m) & none_before

    def is_reloaded(self, first: Message, m: Message) -> Bool:
        """Whether a reload finds the message in the segment of the first one."""
        return self.is_found(m) & (self.segment[m] == self.segment[first])

    def reload_leaves_none(self, first: Message) -> Bool:
        """Whether the reload of one segment finds all messages of delta."""
        return forall(
            Message, lambda m: implies(self.is_in(m, Place.DELTA), self.is_reloaded(first, m))
        )
