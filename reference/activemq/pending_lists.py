"""The queue's lists of messages in memory, in the order of delivery.

Owns three lists: in order of arrival, by priority in ten levels, and the dispatch list, in which
returned entries come before new ones. An entry has an id and a priority, and an id is in a list at
most once. Removing an absent entry does nothing.

Source: ActiveMQ's pending lists, current; the releases up to 5.3 have only the first of them, and
no priorities.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from brokerproof.spec.messages import PRIORITIES

LOWEST: Final = PRIORITIES[0]
HIGHEST: Final = PRIORITIES[-1]


class Pending(Protocol):
    """An entry of a list."""

    @property
    def id(self) -> str:
        """Its id, the key in the list."""

    @property
    def priority(self) -> int:
        """Its priority; a value outside 0 to 9 counts as the nearest of these."""


Entry = TypeVar("Entry", bound=Pending)


def level_of(entry: Pending) -> int:
    """Return the level of an entry, one of ten.

    Releases before 5.4 throw the clamped value away, so that every message is of level 4 (AMQ-2789,
    AMQ-2843).
    """
    return max(LOWEST, min(entry.priority, HIGHEST))


class OrderedPendingList(Generic[Entry]):
    """Entries in the order of delivery; each is found and removed in O(1).

    It must not change during an iteration; a loop that removes entries iterates over `values`.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        # An ordered dictionary: a plain one cannot insert at the front, and is slow to delete
        # there.
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self.add_all(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, entry: Entry) -> bool:
        return entry.id in self._entries

    def get(self, entry_id: str) -> Entry | None:
        """Return the entry with this id, or None."""
        return self._entries.get(entry_id)

    def first(self) -> Entry | None:
        """Return the entry that is delivered next."""
        return next(iter(self._entries.values()), None)

    def values(self) -> list[Entry]:
        """Return a snapshot of all entries, in order."""
        return list(self._entries.values())

    def add_last(self, entry: Entry) -> None:
        """Put an entry behind all others."""
        assert entry.id not in self._entries, "an entry is in a list once"
        self._entries[entry.id] = entry

    def add_first(self, entry: Entry) -> None:
        """Put an entry before all others."""
        self.add_last(entry)
        self._entries.move_to_end(entry.id, last=False)

    def add_all(self, entries: Iterable[Entry] | None) -> None:
        """Put entries behind all others, in their order."""
        for entry in entries or ():
            self.add_last(entry)

    def insert_at_head(self, entries: Sequence[Entry] | None) -> None:
        """Put entries before all others, in their order."""
        for entry in reversed(entries or ()):
            self.add_first(entry)

    def remove(self, entry: Entry | None) -> Entry | None:
        """Remove an entry; return it, or None if it is absent."""
        return None if entry is None else self._entries.pop(entry.id, None)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()

    def fingerprint(self) -> Hashable:
        """Return the ids in order."""
        return tuple(self._entries)


class PrioritizedPendingList(Generic[Entry]):
    """A list for each of ten levels; the highest nonempty level is served first.

    First, last and head mean a place within the entry's level. `values` has the order of delivery,
    which it did not always have (AMQ-6128).
    """

    __slots__ = ("_levels",)

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        # Only nonempty levels: there are few, and copies copy all.
        self._levels: dict[int, OrderedPendingList[Entry]] = {}
        self.add_all(entries)

    def _level(self, entry: Entry) -> OrderedPendingList[Entry]:
        assert entry not in self, "an entry is in a list once"
        return self._levels.setdefault(level_of(entry), OrderedPendingList())

    def __len__(self) -> int:
        return sum([len(level) for level in self._levels.values()])

    def __iter__(self) -> Iterator[Entry]:
        for level in sorted(self._levels, reverse=True):
            yield from self._levels[level]

    def __contains__(self, entry: Entry) -> bool:
        return self.get(entry.id) is not None

    def of_level(self, level: int) -> Iterable[Entry]:
        """Return the entries of one level, in order."""
        return self._levels.get(level, ())

    def get(self, entry_id: str) -> Entry | None:
        """Return the entry with this id, or None."""
        for level in self._levels.values():
            if (entry := level.get(entry_id)) is not None:
                return entry
        return None

    def first(self) -> Entry | None:
        """Return the entry that is delivered next."""
        return next(iter(self), None)

    def values(self) -> list[Entry]:
        """Return a snapshot of all entries, in order."""
        return list(self)

    def add_last(self, entry: Entry) -> None:
        """Put an entry behind all others of its level."""
        self._level(entry).add_last(entry)

    def add_first(self, entry: Entry) -> None:
        """Put an entry before all others of its level."""
        self._level(entry).add_first(entry)

    def add_all(self, entries: Iterable[Entry] | None) -> None:
        """Put entries behind all others of their levels, in their order."""
        for entry in entries or ():
            self.add_last(entry)

    def insert_at_head(self, entries: Sequence[Entry] | None) -> None:
        """Put entries before all others of their levels, in their order."""
        for entry in reversed(entries or ()):
            self.add_first(entry)

    def remove(self, entry: Entry | None) -> Entry | None:
        """Remove an entry; return it, or None if it is absent."""
        if entry is None:
            return None
        for number, level in self._levels.items():
            if (found := level.remove(entry)) is not None:
                if not level:
                    del self._levels[number]
                return found
        return None

    def clear(self) -> None:
        """Remove all entries."""
        self._levels.clear()

    def fingerprint(self) -> Hashable:
        """Return the ids of each level in order."""
        return tuple([(each, self._levels[each].fingerprint()) for each in sorted(self._levels)])


PendingList: TypeAlias = OrderedPendingList[Entry] | PrioritizedPendingList[Entry]


class DispatchPendingList(Generic[Entry]):
    """The list that consumers are served from: returned entries, then those paged in.

    In a `prioritized` queue the two are merged by priority, and within a level returned entries
    come first. Releases before 5.14 serve all returned entries first (AMQ-6151).
    """

    __slots__ = ("paged_in", "prioritized", "redelivered")

    def __init__(self, *, prioritized: bool = False) -> None:
        self.prioritized = prioritized
        self.redelivered: PendingList[Entry] = _empty(prioritized)
        self.paged_in: PendingList[Entry] = _empty(prioritized)

    def __len__(self) -> int:
        return len(self.redelivered) + len(self.paged_in)

    def __iter__(self) -> Iterator[Entry]:
        first, second = self.redelivered, self.paged_in
        if isinstance(first, OrderedPendingList) or isinstance(second, OrderedPendingList):
            yield from first
            yield from second
            return
        for level in reversed(PRIORITIES):
            yield from first.of_level(level)
            yield from second.of_level(level)

    def __contains__(self, entry: Entry) -> bool:
        return entry in self.redelivered or entry in self.paged_in

    def get(self, entry_id: str) -> Entry | None:
        """Return the entry with this id, or None."""
        found = self.redelivered.get(entry_id)
        return self.paged_in.get(entry_id) if found is None else found

    def first(self) -> Entry | None:
        """Return the entry that is delivered next."""
        return next(iter(self), None)

    def values(self) -> list[Entry]:
        """Return a snapshot of all entries, in order."""
        return list(self)

    def add_last(self, entry: Entry) -> None:
        """Put an entry behind all paged-in ones."""
        assert entry not in self.redelivered, "an entry is in a list once"
        self.paged_in.add_last(entry)

    def add_first(self, entry: Entry) -> None:
        """Put an entry before all paged-in ones, behind the returned ones."""
        assert entry not in self.redelivered, "an entry is in a list once"
        self.paged_in.add_first(entry)

    def add_all(self, entries: Iterable[Entry] | None) -> None:
        """Put entries behind all paged-in ones, in their order."""
        for entry in entries or ():
            self.add_last(entry)

    def insert_at_head(self, entries: Sequence[Entry] | None) -> None:
        """Put entries before all paged-in ones, in their order."""
        for entry in reversed(entries or ()):
            self.add_first(entry)

    def add_for_redelivery(self, entries: Iterable[Entry] | None) -> None:
        """Put returned entries behind all other returned ones, in their order."""
        for entry in entries or ():
            assert entry not in self.paged_in, "an entry is in a list once"
            self.redelivered.add_last(entry)

    def insert_for_redelivery(self, entries: Sequence[Entry] | None) -> None:
        """Put returned entries before all other returned ones, in their order (AMQ-6286)."""
        for entry in entries or ():
            assert entry not in self.paged_in, "an entry is in a list once"
        self.redelivered.insert_at_head(entries)

    def remove(self, entry: Entry | None) -> Entry | None:
        """Remove an entry; return it, or None if it is absent."""
        found = self.paged_in.remove(entry)
        return self.redelivered.remove(entry) if found is None else found

    def clear(self) -> None:
        """Remove all entries."""
        self.redelivered.clear()
        self.paged_in.clear()

    def fingerprint(self) -> Hashable:
        """Return the ids of both lists in order."""
        return self.prioritized, self.redelivered.fingerprint(), self.paged_in.fingerprint()


def _empty(prioritized: bool) -> PendingList[Entry]:
    return PrioritizedPendingList() if prioritized else OrderedPendingList()
