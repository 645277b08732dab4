"""Messages that need not outlive a crash: in memory, and for the file cursor also on disk.

Owns where such a message is while it is pending, and the swapped-out contents of messages that
consumers hold. Does not know the consumers.

Messages on disk come before new arrivals: while any is on disk, none is pending in memory
(AMQ-I33). The files are temporary, and a start removes them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from brokerproof.reference.activemq.memory.references import Reference, Stored, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.reference.activemq.cursors.store_cursor import Surroundings
    from brokerproof.reference.activemq.disk.linked_container import LinkedContainer
    from brokerproof.reference.activemq.memory.queue_memory import GivesWay, QueueMemory


class MemoryCursor:
    """Pending messages that are kept in memory only (the VM cursor)."""

    __slots__ = ("level", "memory", "pending", "queue")

    def __init__(self, level: int, memory: QueueMemory, queue: Surroundings) -> None:
        self.level = level
        self.memory = memory
        self.queue = queue
        self.pending: deque[Reference] = deque()

    @property
    def size(self) -> int:
        """The number of pending messages."""
        return len(self.pending)

    def is_empty(self) -> bool:
        """Return whether no message is pending."""
        return not self.size

    def add_last(self, stored: Stored) -> None:
        """Add an arriving message."""
        content = self.memory.charge(stored.message)
        self.pending.append(Reference(stored, self.level, content, kept=False))

    def has_next(self, most: int) -> bool:
        """Return whether there is a next message."""
        assert most > 0, "the queue asks only for a positive number"
        return bool(self.pending)

    def arrival_of_next(self) -> int | None:
        """Return the number of the next message."""
        return self.pending[0].arrival

    def take_next(self) -> Reference:
        """Remove and return the first message; it is no longer pending."""
        return self.pending.popleft()

    def give_way(self) -> bool:
        """Do nothing: memory is the only place of these messages."""
        return False

    def can_let_go(self, reference: Reference) -> bool:
        """Return False: the content is nowhere else."""
        del reference
        return False

    def load(self, reference: Reference, others: Iterable[GivesWay]) -> None:
        """Do nothing: the content is always in memory."""
        assert reference.content is not None, "it has no other place"
        del others

    def remove(self, reference: Reference) -> None:
        """Do nothing: the content has been released already."""

    def clear(self) -> None:
        """Drop nothing: these messages cannot be read again."""

    def purge(self) -> None:
        """Drop all pending messages."""
        for reference in self.pending:
            assert reference.content is not None, "pending messages are in memory here"
            reference.content.release()
        self.pending.clear()


class FileCursor(MemoryCursor):
    """Pending messages in memory, or all of them on disk when memory is short.

    `disk` has the pending messages; `swapped` has the swapped-out contents of held messages.
    """

    __slots__ = ("disk", "swapped")

    def __init__(
        self,
        level: int,
        memory: QueueMemory,
        queue: Surroundings,
        disk: LinkedContainer,
        swapped: LinkedContainer,
    ) -> None:
        super().__init__(level, memory, queue)
        self.disk = disk
        self.swapped = swapped

    @property
    def size(self) -> int:
        """The number of pending messages, in memory or on disk."""
        return len(self.pending) + len(self.disk)

    def add_last(self, stored: Stored) -> None:
        """Add an arriving message: in memory if there is room and nothing is on disk."""
        if not len(self.disk):
            if self.memory.has_room(self.memory.size_of(stored.message)):
                super().add_last(stored)
                return
            self._flush()
        self.disk.put(stored.message.id, encoded(stored))

    def _flush(self) -> None:
        assert not len(self.disk) or not self.pending, "what is on disk comes first"
        for reference in self.pending:
            assert reference.content is not None, "pending messages have their content"
            self.disk.put(reference.id, encoded(reference.stored()))
            reference.content.release()
        self.pending.clear()

    def has_next(self, most: int) -> bool:
        """Return whether a message is in memory, or the first one on disk has room."""
        assert most > 0, "the queue asks only for a positive number"
        return bool(self.pending) or (bool(len(self.disk)) and self._has_room_for_first())

    def _has_room_for_first(self) -> bool:
        size = self.memory.size_of(self._first().message)
        return self.memory.make_room(size, self.queue.others(self))

    def _first(self) -> Stored:
        offset = self.disk.first()
        assert offset is not None, "the first message on disk is asked for only if there is one"
        return decoded(self.disk.value_at(offset))

    def arrival_of_next(self) -> int | None:
        """Return the number of the next message."""
        return self.pending[0].arrival if self.pending else self._first().arrival

    def take_next(self) -> Reference:
        """Remove and return the first message; it is in memory now, and no longer pending."""
        if self.pending:
            return self.pending.popleft()
        stored = self._first()
        self.disk.remove(stored.message.id)
        return Reference(stored, self.level, self.memory.charge(stored.message), kept=False)

    def give_way(self) -> bool:
        """Write the pending messages to disk; return whether there were any in memory."""
        if not self.pending:
            return False
        self._flush()
        return True

    def can_let_go(self, reference: Reference) -> bool:
        """Write the content of a message to disk if it is not there yet; return True."""
        if reference.id not in self.swapped:
            self.swapped.put(reference.id, encoded(reference.stored()))
        return True

    def load(self, reference: Reference, others: Iterable[GivesWay]) -> None:
        """Load the content of a message into memory."""
        self.memory.load(reference, self.swapped.get, others)

    def remove(self, reference: Reference) -> None:
        """Forget a settled message."""
        self.swapped.remove(reference.id)

    def purge(self) -> None:
        """Drop all pending messages."""
        super().purge()
        self.disk.clear()
