"""A queue of the whole broker: its entries, their order, and the place of a returned message.

Owns the entries of one queue and every rule about them alone. Leaves consumers (but for their
names), windows and events to the other files. Two invariants: entries lie in the order of delivery,
and no available entry has expired.

Records are immutable: a changed entry is a new one in its place. So a copy of a queue is a copy of
its lists. Numbers in brackets are the rules of driver protocol 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from brokerproof.spec.messages import (
    PRIORITIES,
    LastValue,
    Message,
    Order,
    Priority,
    PriorityMapping,
    PropertyValue,
    Sorted,
)
from brokerproof.spec.protocol.capabilities import ReleasePosition
from brokerproof.spec.protocol.operations import Declare, Publish, Selector

Rank: TypeAlias = tuple[float, str]
"""The first entry has the smallest rank; equal ranks stand in the order of arrival."""


class Hold(msgspec.Struct, frozen=True):
    """The holder of a message until it is settled: a channel, and a consumer if it is there.

    Deliveries are numbered in the order in which they were made.
    """

    number: int
    consumer: str | None
    channel: str

    @property
    def delivery(self) -> str:
        """The name by which clients settle it."""
        return f"d{self.number}"


class Entry(msgspec.Struct, frozen=True):
    """A message in its queue; a settled message is not there any more.

    Times are remaining seconds, so that no clock is needed. `passed_by` names the browsers that
    have passed it, and is sorted. `superseded` is an acquired entry after the arrival of a later
    message of its value; it cannot return.
    """

    message: Message
    rank: Rank
    hold: Hold | None = None
    redelivered: bool = False
    superseded: bool = False
    waits_s: int = 0
    lives_s: int | None = None
    passed_by: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        """Whether it can be delivered now."""
        return self.hold is None and self.waits_s == 0

    @property
    def has_expired(self) -> bool:
        """Whether it has expired; a consumer that holds it then may keep it."""
        return self.lives_s == 0

    def later(self, seconds: int) -> Entry:
        """Return the entry `seconds` later."""
        lives_s = None if self.lives_s is None else max(0, self.lives_s - seconds)
        return replace(self, waits_s=max(0, self.waits_s - seconds), lives_s=lives_s)


class Queue(msgspec.Struct):
    """A queue as it was declared, its entries, and the publishes that wait for room in it."""

    declared: Declare
    entries: list[Entry] = msgspec.field(default_factory=list)
    parked: list[Entry] = msgspec.field(default_factory=list)

    @property
    def name(self) -> str:
        """Its declared name."""
        return self.declared.queue

    def copy(self) -> Queue:
        """Return a queue that shares no mutable state."""
        return Queue(self.declared, list(self.entries), list(self.parked))

    def count(self) -> int:
        """Return how many messages are available or acquired."""
        return sum(entry.available or entry.hold is not None for entry in self.entries)

    def first(self) -> int | None:
        """Return the index of the first available entry."""
        return next((at for at, entry in enumerate(self.entries) if entry.available), None)

    def held_as(self, delivery: str) -> int | None:
        """Return the index of the entry that a delivery of this name holds."""
        for at, entry in enumerate(self.entries):
            if entry.hold is not None and entry.hold.delivery == delivery:
                return at
        return None

    def add(self, entry: Entry) -> None:
        """Insert an arrival behind all others of its rank."""
        if isinstance(self.declared.order, LastValue):
            self._supersede(entry.message, self.declared.order.key)
        if not entry.has_expired:
            self.entries.insert(bisect_right(self.entries, entry.rank, key=_rank), entry)

    def _supersede(self, arrival: Message, key: str) -> None:
        """Drop entries with the arrival's value; mark acquired ones, so that they do not return."""
        if key not in arrival.properties:
            return
        value = arrival.properties[key]
        self.entries = [
            replace(entry, superseded=True) if is_older else entry
            for entry in self.entries
            for is_older in [equal(entry.message.properties.get(key), value)]
            if entry.hold is not None or not is_older
        ]

    def put_back(self, at: int, position: ReleasePosition) -> None:
        """Release an acquired entry, which returns to its place, if it still has one (11, 14)."""
        entry = self.entries[at]
        back = replace(entry, hold=None, redelivered=True)
        if entry.superseded or entry.has_expired:
            del self.entries[at]
        elif position == "original":
            self.entries[at] = back  # it never lost its place
        else:
            del self.entries[at]
            self.entries.insert(self._place(back, position), back)

    def _place(self, back: Entry, position: ReleasePosition) -> int:
        """Return the place of a returned entry among those of its rank (14)."""
        behind = bisect_right(self.entries, back.rank, key=_rank)
        if position == "tail":
            return behind
        # Head: ahead of all never delivered entries, but behind those returned before.
        ahead = bisect_left(self.entries, back.rank, key=_rank)
        for at in range(ahead, behind):
            if self.entries[at].hold is None and not self.entries[at].redelivered:
                return at
        return behind

    def purge(self) -> None:
        """Drop the available entries, and no others (31)."""
        self.entries = [entry for entry in self.entries if not entry.available]

    def advance(self, seconds: int) -> None:
        """Let time pass: drop expired entries, unless they are acquired."""
        older = [entry.later(seconds) for entry in self.entries]
        self.entries = [e for e in older if e.hold is not None or not e.has_expired]
        self.parked = [entry.later(seconds) for entry in self.parked]

    def forget(self, consumer: str) -> None:
        """Forget a consumer that has left: entries it passed, and its name as holder (32)."""
        for at, entry in enumerate(self.entries):
            if entry.hold is not None and entry.hold.consumer == consumer:
                self.entries[at] = replace(entry, hold=replace(entry.hold, consumer=None))
            elif consumer in entry.passed_by:
                passed_by = tuple(name for name in entry.passed_by if name != consumer)
                self.entries[at] = replace(entry, passed_by=passed_by)

    def after_crash(self) -> Queue:
        """Return the surviving entries: persistent, unsettled messages, each in its place (27, 37).

        A crash returns acquired entries: superseded or expired ones go, as on a release.
        """
        return Queue(
            self.declared,
            [
                replace(
                    entry,
                    hold=None,
                    redelivered=entry.redelivered or entry.hold is not None,
                    passed_by=(),
                )
                for entry in self.entries
                if entry.message.persistent and not (entry.superseded or entry.has_expired)
            ],
        )


def entry_for(publish: Publish, order: Order, mapping: PriorityMapping) -> Entry:
    """Return the entry that a publish makes; its times count from now."""
    return Entry(
        publish.message,
        rank_of(publish.message, order, mapping),
        waits_s=publish.not_before_s or 0,
        lives_s=publish.expires_s,
    )


def rank_of(message: Message, order: Order, mapping: PriorityMapping) -> Rank:
    """Return the rank that decides a message's place before its arrival does."""
    if isinstance(order, Priority):
        return -level_of(message.priority, order.levels, mapping), ""
    if isinstance(order, Sorted):
        value = message.properties[order.key]
        return (0, value) if isinstance(value, str) else (value, "")
    return 0, ""  # in a fifo queue priority has no effect (35)


def level_of(priority: int, levels: int, mapping: PriorityMapping) -> int:
    """Return the level of a priority, 0 the lowest (4)."""
    lowest = 0 if mapping == "clamp" else 5 - math.ceil(levels / 2)
    return min(max(priority - lowest, 0), levels - 1)


def fault_of(publish: Publish, queue: Queue) -> str:
    """Return the error of a publish, or nothing (15, 35, and `Sorted`)."""
    message, order = publish.message, queue.declared.order
    if message.priority not in PRIORITIES:
        return f"priority {message.priority} is not 0 to 9"
    if min(message.size, publish.not_before_s or 0, publish.expires_s or 0) < 0:
        return "a size or a time below 0"
    if isinstance(order, Sorted):
        value = message.properties.get(order.key)
        if value is None or isinstance(value, bool):
            return f"{order.key} is neither a string nor a number"
        for other in (*queue.entries, *queue.parked):
            if isinstance(other.message.properties[order.key], str) != isinstance(value, str):
                return f"{order.key} is a string here and a number there"
    return ""


def matches(message: Message, selector: Selector | None) -> bool:
    """Say whether a consumer with this selector wants a message (23)."""
    return all(equal(message.properties.get(key), value) for key, value in (selector or {}).items())


def equal(one: PropertyValue | None, other: PropertyValue) -> bool:
    """Compare as JSON does: numbers by value, but true is not 1 (23)."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _rank(entry: Entry) -> Rank:
    return entry.rank
