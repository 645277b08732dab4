"""The list of consumer nodes: appending and deleting are one atomic step each.

A singly linked list with a dummy head and marked deletion. Owns linking, marking and unlinking.
Invariants: a deleted node is never returned again; a node that is present during a whole walk is
returned once; a node added behind a deleted last entry is found.

Source: Qpid, pull consumers, section QueueConsumerNodeList: "entries are marked for deletion but
only actually removed upon the next iteration", and "special care must be taken when removing
elements from the tail": the last entry stays linked, as others append to it, and holds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.reference.qpid.pull.consumer_lists import ConsumerNode

SCAVENGE_THRESHOLD = 100
"""After this many deletions a list is walked only to unlink (Qpid's number)."""


class ConsumerNodeListEntry:
    """A node's entry in one list; the head has no node and counts as deleted."""

    __slots__ = ("deleted", "next", "node", "within")

    def __init__(self, within: ConsumerNodeList, node: ConsumerNode | None) -> None:
        self.within = within
        self.node = AtomicReference(node)
        self.deleted = AtomicFlag(node is None)
        self.next: AtomicReference[ConsumerNodeListEntry | None] = AtomicReference(None)

    def remove(self) -> bool:
        """Remove it from its list; of several threads, exactly one succeeds."""
        return self.within.remove_entry(self)

    def find_next(self) -> ConsumerNodeListEntry | None:
        """Return the next entry that is not deleted; unlink those between, but never the last."""
        following = self.next.get()
        while following is not None and following.deleted.get():
            beyond = following.next.get()
            if beyond is None:
                return None
            self.next.compare_and_set(following, beyond)
            following = self.next.get()
        return following


class ConsumerNodeList:
    """Nodes in the order in which they were added."""

    __slots__ = ("head", "scavenges", "size", "tail")

    def __init__(self) -> None:
        self.head = ConsumerNodeListEntry(self, None)
        self.tail = AtomicReference(self.head)
        self.size = AtomicInteger()
        self.scavenges = AtomicInteger()

    def add(self, node: ConsumerNode) -> ConsumerNodeListEntry:
        """Append a node and return its entry; the tail is a hint, as in the entry list."""
        entry = ConsumerNodeListEntry(self, node)
        while True:
            tail = self.tail.get()
            following = tail.next.get()
            if following is not None:
                self.tail.compare_and_set(tail, following)
            elif tail.next.compare_and_set(None, entry):
                self.tail.compare_and_set(tail, entry)
                self.size.increment_and_get()
                return entry

    def remove_entry(self, entry: ConsumerNodeListEntry) -> bool:
        """Mark an entry as deleted; the next walk unlinks it."""
        if not entry.deleted.compare_and_set(False, True):
            return False
        # The last entry may stay linked for long; its node must be collectable.
        entry.node.set(None)
        self.size.decrement_and_get()
        if self.scavenges.increment_and_get() > SCAVENGE_THRESHOLD:
            self.scavenges.set(0)
            self._scavenge()
        return True

    def is_empty(self) -> bool:
        """Return whether the list has no node."""
        return self.size.get() == 0

    def iterator(self) -> Iterator[ConsumerNode]:
        """Yield the nodes that are not deleted when the walk reaches them."""
        entry = self.head.find_next()
        while entry is not None:
            # An entry deleted between the two reads has no node any more.
            node = entry.node.get()
            if node is not None:
                yield node
            entry = entry.find_next()

    def _scavenge(self) -> None:
        entry = self.head.find_next()
        while entry is not None:
            entry = entry.find_next()
