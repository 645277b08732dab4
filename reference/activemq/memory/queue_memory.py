"""The memory of one queue: whether a message has room, and the order in which others give way.

Owns the room test before a message is taken into memory, and the order of giving way.

Source: ActiveMQ's cursors (hasSpace). The releases test whether the percentage is below a mark, and
so exceed the limit by up to a message, or a batch. The strict test here is whether the message
still fits. A message larger than the limit has room when nothing else is in memory; otherwise it
could never be delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.activemq.memory.references import decoded
from brokerproof.reference.activemq.memory.usage import Charged, MemoryUsage, charge_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from brokerproof.reference.activemq.memory.references import Reference
    from brokerproof.reference.activemq.parameters import CursorParameters
    from brokerproof.spec.messages import Message


class GivesWay(Protocol):
    """A part with messages in memory that are, or can be, on disk as well."""

    def give_way(self) -> bool:
        """Drop some memory; return whether there was any to drop."""
        ...


class QueueMemory:
    """The memory that a queue's messages take, within `usage`'s limit."""

    __slots__ = ("is_strict", "may_be_settled_before", "minimum", "usage", "water_mark")

    def __init__(self, parameters: CursorParameters) -> None:
        self.usage = MemoryUsage(parameters.memory)
        self.minimum = parameters.minimum
        self.water_mark = parameters.water_mark
        self.is_strict = parameters.room == "strict"
        self.may_be_settled_before = parameters.paged == "replaced"

    def is_below_mark(self) -> bool:
        """Return whether a cursor may take anything more into memory."""
        return not self.usage.is_full(self.water_mark)

    def size_of(self, message: Message) -> int:
        """Return the bytes that a message is charged."""
        return charge_of(message, self.minimum)

    def has_room(self, size: int) -> bool:
        """Return whether a message of `size` bytes may be taken into memory now."""
        if not self.is_below_mark():
            return False
        return not self.is_strict or self.fits(size)

    def fits(self, size: int) -> bool:
        """Return whether `size` more bytes fit; into empty memory anything fits."""
        return self.usage.room_for(size) or self.usage.used == 0

    def make_room(self, size: int, others: Iterable[GivesWay]) -> bool:
        """Make others give way until a message has room; return whether it has."""
        if self.has_room(size):
            return True
        if self.is_strict:
            for other in others:
                while other.give_way():
                    if self.has_room(size):
                        return True
        return False

    def load(
        self,
        reference: Reference,
        read: Callable[[str], bytes | None],
        others: Iterable[GivesWay],
    ) -> None:
        """Load the content of a message; `read` returns its stored bytes."""
        if reference.content is None:
            has_room = self.make_room(reference.size, others)
            assert has_room, "whatever else is in memory gives way to what is given out"
            value = read(reference.id)
            if value is None:
                # Paged in twice (AMQ-1957): the stored message may be settled already.
                assert self.may_be_settled_before, "what gave way is written somewhere"
            else:
                reference.message = decoded(value).message
            reference.content = self._charged(reference.size)

    def charge(self, message: Message) -> Charged:
        """Charge a message and return its content, which is in memory from now on."""
        return self._charged(self.size_of(message))

    def _charged(self, size: int) -> Charged:
        content = Charged(size, self.usage)
        content.retain()
        return content
