"""The consumers of a queue process, and their turns.

Owns the line of consumers that may be given a message, and the blocked ones. The queue asks for the
next consumer, and says when one may have room again.

A consumer found without room at its turn is blocked, and returns to the line when it has room. A
served consumer goes behind all of its priority: of n consumers that always have room each gets
every n-th message. Source: RabbitMQ's queue process, 2.8.2; priorities of consumers are those of
3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerproof.reference.front.consumers import RankedConsumer


class ConsumerLine:
    """The consumers served in turn (`active`, the next one first), and the `blocked` ones."""

    __slots__ = ("active", "blocked")

    def __init__(self) -> None:
        self.active: list[RankedConsumer] = []
        self.blocked: list[RankedConsumer] = []

    def add(self, consumer: RankedConsumer) -> None:
        """Put a consumer in line, behind all of its priority."""
        at = len(self.active)
        while at and self.active[at - 1].priority < consumer.priority:
            at -= 1
        self.active.insert(at, consumer)

    def next(self) -> RankedConsumer | None:
        """Return the next consumer with room, moved to the end; None if there is none."""
        while self.active:
            consumer = self.active.pop(0)
            if not consumer.is_suspended():
                self.add(consumer)
                return consumer
            self.blocked.append(consumer)
        return None

    def unblock(self) -> bool:
        """Put blocked consumers with room back in line; return whether there were any."""
        ready = [each for each in self.blocked if not each.is_suspended()]
        for consumer in ready:
            self.blocked.remove(consumer)
            self.add(consumer)
        return bool(ready)

    def remove(self, consumer: RankedConsumer) -> bool:
        """Remove a consumer; return whether it was present."""
        for part in (self.active, self.blocked):
            if consumer in part:
                part.remove(consumer)
                return True
        return False

    def consumers(self) -> list[RankedConsumer]:
        """Return all consumers, those in line first."""
        return [*self.active, *self.blocked]
