"""The cursors of one queue together: of each level of priority one of each persistence class.

Owns from which of them comes the next message. Refuses to know how each keeps what is pending.

In ActiveMQ the two classes share nothing but the audit: a queue reads from one as long as that has
something in memory, then from the other, so that order is kept within a class and not between them
(`apart`). Here the number of the next message decides (`merged`).

Source: ActiveMQ's StoreQueueCursor, 5.1 to current; the stores by level are KahaDB's, which has
three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from brokerproof.reference.activemq.cursors.store_cursor import StoreCursor
from brokerproof.reference.activemq.cursors.transient_cursors import MemoryCursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.reference.activemq.cursors.references import Reference, Stored
    from brokerproof.reference.activemq.parameters import Classes

Cursor: TypeAlias = StoreCursor | MemoryCursor


class LevelCursors:
    """The cursors of one level; `persistent` is None where nothing outlives a crash."""

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
        """Return the cursors there are."""
        return (self.transient,) if self.persistent is None else (self.persistent, self.transient)

    def is_empty(self) -> bool:
        """Whether nothing is pending."""
        return all(each.is_empty() for each in self.both())

    def size(self) -> int:
        """Return how many messages are pending."""
        return sum(each.size for each in self.both())

    def source(self, most: int) -> Cursor | None:
        """Return the cursor that has the next message in memory; None if there is none."""
        if self.classes == "merged":
            self.current = self._with_first()
            return self.current if self._has_next(self.current, most) else None
        if not self._has_next(self.current, most):
            self.current = next((e for e in self.both() if e is not self.current), self.current)
            if not self._has_next(self.current, most):
                return None
        return self.current

    def _has_next(self, cursor: Cursor, most: int) -> bool:
        return not cursor.is_empty() and cursor.has_next(most)

    def _with_first(self) -> Cursor:
        filled = [each for each in self.both() if not each.is_empty()]
        if len(filled) < 2:
            return filled[0] if filled else self.current
        arrivals = [(each.arrival_of_next(), at) for at, each in enumerate(filled)]
        first = min([(number, at) for number, at in arrivals if number is not None], default=None)
        return self.current if first is None else filled[first[1]]


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
        """Return how many messages are pending."""
        return sum(each.size() for each in self.levels)

    def is_empty(self) -> bool:
        """Whether nothing is pending."""
        return all(each.is_empty() for each in self.levels)

    def level(self) -> int:
        """Return the highest level at which something is pending; -1 if nothing is."""
        return next((each.level for each in self.levels if not each.is_empty()), -1)

    def at(self, level: int) -> LevelCursors:
        """Return the cursors of a level; where all share them, those."""
        return next((each for each in self.levels if each.level == level), self.levels[0])

    def add_last(self, stored: Stored, level: int, *, kept: bool) -> None:
        """Take in a message that arrives; one that is `kept` outlives a crash."""
        at = self.at(level)
        cursor = at.persistent if kept else at.transient
        assert cursor is not None, "what is kept has a store"
        cursor.add_last(stored)

    def take_next(self, most: int) -> Reference | None:
        """Return the next message, in memory and no longer pending; None if there is none.

        There may be none for lack of memory, too. If a batch has to be read it is of up to `most`.
        """
        level = next((each for each in self.levels if not each.is_empty()), None)
        source = None if level is None else level.source(most)
        return None if source is None else source.take_next()

    def of(self, reference: Reference) -> Cursor:
        """Return the cursor that a message came from."""
        at = self.at(reference.level)
        cursor = at.persistent if reference.kept else at.transient
        assert cursor is not None, "what is kept has a store"
        return cursor

    def clear(self) -> None:
        """Let go of what is in memory and can be read again (gc)."""
        for cursor in self.cursors():
            cursor.clear()

    def purge(self) -> None:
        """Drop all that is pending."""
        for cursor in self.cursors():
            cursor.purge()
