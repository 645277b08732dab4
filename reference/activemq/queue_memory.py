"""The memory of one queue: whether a message has room, and who gives way to it.

Owns the test before a message is taken into memory, and the order in which others are asked to give
way. Refuses to know what they are.

Source: ActiveMQ's cursors (hasSpace). The releases ask whether the percentage is below a mark, and
so go beyond the limit by up to a message, or a batch. The strict test here asks whether the message
still fits; a message larger than the limit has room when nothing else is in memory, since it could
never be given to anybody otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.activemq.cursors.references import decoded
from brokerproof.reference.activemq.memory_usage import Charged, MemoryUsage, charge_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from brokerproof.reference.activemq.cursors.references import Reference
    from brokerproof.reference.activemq.parameters import CursorParameters
    from brokerproof.spec.protocol.messages import Message


class GivesWay(Protocol):
    """Something that has messages in memory which are on disk as well, or could be."""

    def give_way(self) -> bool:
        """Let go of some memory; say whether there was any to let go of."""
        ...


class QueueMemory:
    """What a queue's messages take, of `usage`'s limit."""

    __slots__ = ("is_strict", "may_be_settled_before", "minimum", "usage", "water_mark")

    def __init__(self, parameters: CursorParameters) -> None:
        self.usage = MemoryUsage(parameters.memory)
        self.minimum = parameters.minimum
        self.water_mark = parameters.water_mark
        self.is_strict = parameters.room == "strict"
        self.may_be_settled_before = parameters.paged == "replaced"

    def is_below_mark(self) -> bool:
        """Whether a cursor may take anything more into memory."""
        return not self.usage.is_full(self.water_mark)

    def size_of(self, message: Message) -> int:
        """Return how many bytes a message is charged for."""
        return charge_of(message, self.minimum)

    def has_room(self, size: int) -> bool:
        """Whether a message of `size` bytes may be taken into memory now."""
        if not self.is_below_mark():
            return False
        return not self.is_strict or self.fits(size)

    def fits(self, size: int) -> bool:
        """Whether memory is within its limit with `size` bytes more."""
        return self.usage.room_for(size) or self.usage.used == 0

    def make_room(self, size: int, others: Iterable[GivesWay]) -> bool:
        """Let others give way until a message has room; say whether it has."""
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
        """Have the content of a message in memory again; `read` returns what was written of it."""
        if reference.content is None:
            has_room = self.make_room(reference.size, others)
            assert has_room, "whatever else is in memory gives way to what is given out"
            value = read(reference.id)
            if value is None:
                # Paged in twice (AMQ-1957): where it was written it was settled once already.
                assert self.may_be_settled_before, "what gave way is written somewhere"
            else:
                reference.message = decoded(value).message
            reference.content = self._charged(reference.size)

    def charge(self, message: Message) -> Charged:
        """Return the content of a message, which is in memory from now on."""
        return self._charged(self.size_of(message))

    def _charged(self, size: int) -> Charged:
        content = Charged(size, self.usage)
        content.retain()
        return content
