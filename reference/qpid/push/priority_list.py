"""The entries of a priority queue: standard lists, one a level, in order, behaving as one list.

Owns the order between levels; everything within a level is the standard list's. The tail of each
level is followed by the head of the next lower one that has anything.

Source: Qpid, Priority Queues, class `PriorityQueueList`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.push.entry_list import SCAVENGE_THRESHOLD, StandardEntryList
from brokerproof.spec.protocol.messages import Message, Priority, level_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.shared.clock import Times


class PriorityEntryList:
    """Strict priority: nothing of a lower level while a higher one has anything."""

    __slots__ = ("best_first", "order")

    def __init__(self, order: Priority, scavenge_threshold: int = SCAVENGE_THRESHOLD) -> None:
        self.order = order
        self.best_first = [
            StandardEntryList(level, scavenge_threshold) for level in reversed(range(order.levels))
        ]

    def add(self, message: Message, times: Times | None = None) -> QueueEntry:
        """Append to the tail of the level that the message's priority falls into."""
        level = level_of(message.priority, self.order)
        return self.best_first[self.order.levels - 1 - level].add(message, times)

    def next(self, entry: QueueEntry) -> QueueEntry | None:
        """Return what follows in the entry's level, else the first of the next that has any."""
        following = entry.next_valid()
        if following is not None:
            return following
        for lower in self.best_first[self.order.levels - entry.sub_list.level :]:
            following = lower.head.next_valid()
            if following is not None:
                return following
        return None

    def iterator(self) -> Iterator[QueueEntry]:
        """Run over all that is not dispensed, level by level, in arrival order within each."""
        entry = self.next(self.get_head())
        while entry is not None:
            yield entry
            entry = self.next(entry)

    def get_head(self) -> QueueEntry:
        """Return the dummy head of the highest level, which is before all entries.

        The document speaks of the highest level that is not empty. With dummy heads the difference
        cannot be seen, since `next` passes over the empty levels, and a pointer that starts here is
        never ahead of an arrival.
        """
        return self.best_first[0].head

    def sub_lists(self) -> Sequence[StandardEntryList]:
        """Return the levels' lists, the highest level first."""
        return self.best_first
