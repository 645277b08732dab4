"""The entries of a priority queue: one standard list for each level, behaving as one list.

Owns the order between levels; the standard list owns the order within a level. The tail of each
level is followed by the head of the next lower nonempty one.

Source: Qpid, Priority Queues, class `PriorityQueueList`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.push.entry_list import SCAVENGE_THRESHOLD, StandardEntryList
from brokerproof.spec.messages import Message, Priority, level_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.shared.clock import Times


class PriorityEntryList:
    """Strict priority: no entry of a lower level while a higher one has any."""

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
        """Return the next entry of the same level, otherwise the first of the next nonempty one."""
        following = entry.next_valid()
        if following is not None:
            return following
        for lower in self.best_first[self.order.levels - entry.sub_list.level :]:
            following = lower.head.next_valid()
            if following is not None:
                return following
        return None

    def iterator(self) -> Iterator[QueueEntry]:
        """Yield all entries that are not dispensed, by level, and in arrival order within one."""
        entry = self.next(self.get_head())
        while entry is not None:
            yield entry
            entry = self.next(entry)

    def get_head(self) -> QueueEntry:
        """Return the dummy head of the highest level, which is before all entries.

        The document names the highest nonempty level. With dummy heads that makes no difference:
        `next` passes over empty levels, and a pointer that starts here is never ahead of an
        arrival.
        """
        return self.best_first[0].head

    def sub_lists(self) -> Sequence[StandardEntryList]:
        """Return the levels' lists, the highest level first."""
        return self.best_first
