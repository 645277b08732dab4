"""Messages that need not outlive a crash: a list in memory, and for the file cursor one on disk.

Owns where such a message is as long as it is pending, and where the content of one is that a
consumer has, when that has given way. Refuses to know who is given them.

What is on disk comes before what arrives: as long as anything is there nothing is in memory
(AMQ-I33). The files are temporary, and removed at a start.

Source: ActiveMQ's file cursor and VM cursor, 5.1 to current.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from brokerproof.reference.activemq.cursors.references import Reference, Stored, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.reference.activemq.cursors.store_cursor import Surroundings
    from brokerproof.reference.activemq.disk.linked_container import LinkedContainer
    from brokerproof.reference.activemq.queue_memory import GivesWay, QueueMemory


class MemoryCursor:
    """Pending messages that have no place but memory (the VM cursor)."""

    __slots__ = ("level", "memory", "pending", "queue")

    def __init__(self, level: int, memory: QueueMemory, queue: Surroundings) -> None:
        self.level = level
        self.memory = memory
        self.queue = queue
        self.pending: deque[Reference] = deque()

    @property
    def size(self) -> int:
        """How many messages are pending."""
        return len(self.pending)

    def is_empty(self) -> bool:
        """Whether nothing is pending."""
        return not self.size

    def add_last(self, stored: Stored) -> None:
        """Take in a message that arrives."""
        content = self.memory.charge(stored.message)
        self.pending.append(Reference(stored, self.level, content, kept=False))

    def has_next(self, most: int) -> bool:
        """Whether there is a next message."""
        assert most > 0, "nobody asks who wants nothing"
        return bool(self.pending)

    def arrival_of_next(self) -> int | None:
        """Return the number of the next message."""
        return self.pending[0].arrival

    def take_next(self) -> Reference:
        """Let go of the first message, which is no longer pending."""
        return self.pending.popleft()

    def give_way(self) -> bool:
        """Let go of nothing: there is no other place."""
        return False

    def can_let_go(self, reference: Reference) -> bool:
        """Whether the content of a message can be found again; nowhere."""
        del reference
        return False

    def load(self, reference: Reference, others: Iterable[GivesWay]) -> None:
        """Have the content of a message in memory, where it always is."""
        assert reference.content is not None, "it has no other place"
        del others

    def remove(self, reference: Reference) -> None:
        """Forget a message that is done with; its content was let go of."""

    def count_off_again(self) -> None:
        """Do nothing: what is pending is counted where it is."""

    def clear(self) -> None:
        """Let go of nothing: what is not on disk is not read again."""

    def purge(self) -> None:
        """Drop all that is pending."""
        for reference in self.pending:
            assert reference.content is not None, "pending messages are in memory here"
            reference.content.release()
        self.pending.clear()


class FileCursor(MemoryCursor):
    """Pending messages in memory, or, when that has no room for them, all of them on disk.

    `disk` has those that are pending, `swapped` the contents that gave way of what consumers have.
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
        """How many messages are pending, in memory or on disk."""
        return len(self.pending) + len(self.disk)

    def add_last(self, stored: Stored) -> None:
        """Take in a message that arrives: in memory, if all that is pending is there."""
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
        """Whether there is a next message in memory, when one was read."""
        assert most > 0, "nobody asks who wants nothing"
        return bool(self.pending) or (bool(len(self.disk)) and self._has_room_for_first())

    def _has_room_for_first(self) -> bool:
        size = self.memory.size_of(self._first().message)
        return self.memory.make_room(size, self.queue.others(self))

    def _first(self) -> Stored:
        offset = self.disk.first()
        assert offset is not None, "nobody asks when nothing is on disk"
        return decoded(self.disk.value_at(offset))

    def arrival_of_next(self) -> int | None:
        """Return the number of the next message."""
        return self.pending[0].arrival if self.pending else self._first().arrival

    def take_next(self) -> Reference:
        """Let go of the first message; it is in memory from now on, and no longer pending."""
        if self.pending:
            return self.pending.popleft()
        stored = self._first()
        self.disk.remove(stored.message.id)
        return Reference(stored, self.level, self.memory.charge(stored.message), kept=False)

    def give_way(self) -> bool:
        """Write what is pending to disk; say whether anything was in memory."""
        if not self.pending:
            return False
        self._flush()
        return True

    def can_let_go(self, reference: Reference) -> bool:
        """Whether the content of a message can be found again: when it has been written."""
        if reference.id not in self.swapped:
            self.swapped.put(reference.id, encoded(reference.stored()))
        return True

    def load(self, reference: Reference, others: Iterable[GivesWay]) -> None:
        """Have the content of a message in memory again."""
        self.memory.load(reference, self.swapped.get, others)

    def remove(self, reference: Reference) -> None:
        """Forget a message that is done with."""
        self.swapped.remove(reference.id)

    def purge(self) -> None:
        """Drop all that is pending."""
        super().purge()
        self.disk.clear()
