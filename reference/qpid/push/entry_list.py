"""The entries of a queue in arrival order.

A singly linked list with a dummy head and marked deletion. Owns linking, unlinking and the
scavenging of dispensed entries in the middle. Of the states of entries it knows only *dispensed*.
Invariants: ids grow along the links; every entry that is not dispensed is reached from the head,
and from any entry before it, unlinked ones too; the last entry is never unlinked.

Source: Qpid, Priority Queues, interface `QueueEntryList` (`add`, `next`, `iterator`, `getHead`);
the way of linking is Michael and Scott's, as in Qpid's own list. Models:
`models/qpid/pointer_queue.py` for the order, `threads/node_list.py` for the linking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.qpid.push.entries import QueueEntry
from brokerproof.reference.shared.atomics import AtomicInteger, AtomicReference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.messages import Message

SCAVENGE_THRESHOLD = 50
"""The list is swept after this many deletions behind a live entry (Qpid 0.8 to 6)."""


class QueueEntryList(Protocol):
    """The Priority Queues document's extension point: an implementation decides the order."""

    def add(self, message: Message, times: Times | None = None) -> QueueEntry:
        """Link a new entry at its place, held back if it is not to be delivered at once."""
        ...

    def next(self, entry: QueueEntry) -> QueueEntry | None:
        """Return the next entry in the queue's order that is not dispensed."""
        ...

    def iterator(self) -> Iterator[QueueEntry]:
        """Yield all entries that are not dispensed, in the queue's order."""
        ...

    def get_head(self) -> QueueEntry:
        """Return the dummy before all entries, the start of a new subscription's pointer."""
        ...

    def sub_lists(self) -> Sequence[StandardEntryList]:
        """Return the lists that this one consists of, in the queue's order."""
        ...


class StandardEntryList:
    """A list in arrival order; a whole queue, or one level of a priority queue."""

    __slots__ = (
        "head",
        "level",
        "scavenge_threshold",
        "scavenges",
        "tail",
        "unscavenged_high_water_mark",
    )

    def __init__(self, level: int = 0, scavenge_threshold: int = SCAVENGE_THRESHOLD) -> None:
        self.level = level
        self.scavenge_threshold = scavenge_threshold
        self.head = QueueEntry(self, None)
        self.tail = AtomicReference(self.head)
        self.unscavenged_high_water_mark: AtomicReference[QueueEntry | None] = AtomicReference(None)
        self.scavenges = AtomicInteger()

    def add(self, message: Message, times: Times | None = None) -> QueueEntry:
        """Append an entry; the tail is a hint that any thread may have to advance first."""
        entry = QueueEntry(self, message, times)
        while True:
            tail = self.tail.get()
            following = tail.next.get()
            if following is not None:
                self.tail.compare_and_set(tail, following)
                continue
            entry.id = tail.id + 1
            if tail.next.compare_and_set(None, entry):
                # A failure is harmless: another thread has advanced the hint already.
                self.tail.compare_and_set(tail, entry)
                return entry

    def next(self, entry: QueueEntry) -> QueueEntry | None:
        """Return the next entry that is not dispensed."""
        return entry.next_valid()

    def iterator(self) -> Iterator[QueueEntry]:
        """Yield all entries that are not dispensed, in arrival order."""
        entry = self.head.next_valid()
        while entry is not None:
            yield entry
            entry = entry.next_valid()

    def get_head(self) -> QueueEntry:
        """Return the dummy before all entries."""
        return self.head

    def sub_lists(self) -> Sequence[StandardEntryList]:
        """Return itself: a standard list consists of one list."""
        return (self,)

    def entry_deleted(self, entry: QueueEntry) -> None:
        """Handle the deletion of `entry`, and sweep after many deletions behind a live entry.

        Looking for the head's successor unlinks the entries deleted at the front. If there was
        nothing to unlink, the deletion was in the middle, and the high-water mark records how far a
        sweep must go.
        """
        first = self.head.next.get()
        first_valid = self.head.next_valid()
        mark = self.unscavenged_high_water_mark
        if first is first_valid:
            highest = mark.get()
            while highest is None or highest.compare_to(entry) < 0:
                mark.compare_and_set(highest, entry)
                highest = mark.get()
            if self.scavenges.increment_and_get() > self.scavenge_threshold:
                self.scavenges.set(0)
                self.scavenge()
        else:
            highest = mark.get()
            if highest is not None and (first is None or highest.compare_to(first) < 0):
                mark.compare_and_set(highest, None)

    def scavenge(self) -> None:
        """Walk up to the high-water mark: walking is what unlinks."""
        highest = self.unscavenged_high_water_mark.get_and_set(None)
        entry = self.head.next_valid()
        while entry is not None and highest is not None and highest.compare_to(entry) > 0:
            entry = entry.next_valid()
