"""The cursors of one queue: for each priority level, one for each persistence class.

Owns the choice of the cursor that has the next message. Each cursor keeps its own messages.

In ActiveMQ the two classes share only the audit. A queue reads from one class while it has messages
in memory, then from the other, so order is kept within a class only (`apart`). With `merged`, the
message with the lowest number comes first.

Source: ActiveMQ's StoreQueueCursor, 5.1 to current; the stores by level are KahaDB's, which has
three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from brokerproof.reference.activemq.cursors.store_cursor import StoreCursor
from brokerproof.reference.activemq.cursors.transient_cursors import MemoryCursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.reference.activemq.memory.references import Reference, Stored
    from brokerproof.reference.activemq.parameters import Classes

Cursor: TypeAlias = StoreCursor | MemoryCursor


class LevelCursors:
    """The cursors of one level; `persistent` is None in a queue that is not durable."""

    __slots__ = ("classes", "current", "level", "persistent", "transient")

    def __init__(
        self,
        level: int,
        persistent: StoreCursor | None,
        transient: MemoryCursor,
        classes: Classes,
    ) -> None:
        self.level = level
        self.persistent = persistent
        self.transient = transient
        self.classes = classes
        self.current: Cursor = transient if persistent is None else persistent

    def both(self) -> tuple[Cursor, ...]:
        """Return the cursors of this level."""
        return (self.transient,) if self.persistent is None else (self.persistent, self.transient)

    def is_empty(self) -> bool:
        """Return whether no message is pending."""
        return all(each.is_empty() for each in self.both())

    def size(self) -> int:
        """Return the number of pending messages."""
        return sum(each.size for each in self.both())

    def source(self, most: int) -> Cursor | None:
        """Return the cursor with the next message, read into memory; None if there is none."""
        if self.classes == "merged":
            self.current = self._with_first()
            is_pending = not self.current.is_empty()
            return self.current if is_pending and self.current.has_next(most) else None
        other = next((each for each in self.both() if each is not self.current), self.current)
        if not _is_buffered(self.current) and not other.is_empty():
            self.current = other
        # Its size is not asked for: it may be negative although messages are pending.
        return self.current if self.current.has_next(most) else None

    def _with_first(self) -> Cursor:
        filled = [each for each in self.both() if not each.is_empty()]
        if len(filled) < 2:
            return filled[0] if filled else self.current
        arrivals = [(each.arrival_of_next(), at) for at, each in enumerate(filled)]
        first = min([(number, at) for number, at in arrivals if number is not None], default=None)
        return self.current if first is None else filled[first[1]]


def _is_buffered(cursor: Cursor) -> bool:
    return bool(cursor.batch) if isinstance(cursor, StoreCursor) else not cursor.is_empty()


class QueueCursor:
    """All cursors of a queue, those of the highest level first."""

    __slots__ = ("levels",)

    def __init__(self, levels: list[LevelCursors]) -> None:
        self.levels = levels

    def cursors(self) -> Iterator[Cursor]:
        """Yield each cursor, the highest level first."""
        for each in self.levels:
            yield from each.both()

    def size(self) -> int:
        """Return the number of pending messages."""
        return sum(each.size() for each in self.levels)

    def is_empty(self) -> bool:
        """Return whether no message is pending."""
        return all(each.is_empty() for each in self.levels)

    def level(self) -> int:
        """Return the highest level with pending messages; -1 if there is none."""
        return next((each.level for each in self.levels if not each.is_empty()), -1)

    def at(self, level: int) -> LevelCursors:
        """Return the cursors of a level; a queue with one shared level returns that."""
        return next((each for each in self.levels if each.level == level), self.levels[0])

    def add_last(self, stored: Stored, level: int, *, kept: bool) -> None:
        """Add an arriving message; a `kept` one outlives a crash."""
        at = self.at(level)
        cursor = at.persistent if kept else at.transient
        assert cursor is not None, "what is kept has a store"
        cursor.add_last(stored)

    def take_next(self, most: int) -> Reference | None:
        """Return the next message, in memory and no longer pending; None if there is none.

        None also means a lack of memory. A batch that has to be read has at most `most` messages.
        """
        filled = (each for each in self.levels if not each.is_empty())
        source = next(filled, self.levels[-1]).source(most)
        return None if source is None else source.take_next()

    def of(self, reference: Reference) -> Cursor:
        """Return the cursor that a message came from."""
        at = self.at(reference.level)
        cursor = at.persistent if reference.kept else at.transient
        assert cursor is not None, "what is kept has a store"
        return cursor

    def clear(self) -> None:
        """Drop the messages in memory that can be read again (gc)."""
        for cursor in self.cursors():
            cursor.clear()

    def purge(self) -> None:
        """Drop all pending messages."""
        for cursor in self.cursors():
            cursor.purge()
