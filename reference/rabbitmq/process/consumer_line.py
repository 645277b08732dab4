"""The consumers of a queue process, and whose turn it is.

Owns the line of those who may be given something, and those who are blocked. Refuses to know the
queue: it is asked for the next consumer, and told when one may have room again.

Whoever is found without room when its turn comes is blocked, and does not come to the line again
before it has room. Whoever is served goes to the end, behind all of its priority: of consumers
that always have room each gets every n-th message.

Source: RabbitMQ's queue process, 2.8.2; priorities of consumers are those of 3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokerproof.reference.front.consumers import RankedConsumer


class ConsumerLine:
    """Who is served in turn (`active`, the next one first), and who is `blocked`."""

    __slots__ = ("active", "blocked")

    def __init__(self) -> None:
        self.active: list[RankedConsumer] = []
        self.blocked: list[RankedConsumer] = []

    def add(self, consumer: RankedConsumer) -> None:
        """Let a consumer stand in line, behind all of its priority."""
        at = len(self.active)
        while at and self.active[at - 1].priority < consumer.priority:
            at -= 1
        self.active.insert(at, consumer)

    def next(self) -> RankedConsumer | None:
        """Return whose turn it is, who goes to the end; None if nobody has room."""
        while self.active:
            consumer = self.active.pop(0)
            if not consumer.is_suspended():
                self.add(consumer)
                return consumer
            self.blocked.append(consumer)
        return None

    def unblock(self) -> bool:
        """Let those stand in line again who have room again; say whether there were any."""
        ready = [each for each in self.blocked if not each.is_suspended()]
        for consumer in ready:
            self.blocked.remove(consumer)
            self.add(consumer)
        return bool(ready)

    def remove(self, consumer: RankedConsumer) -> bool:
        """Let a consumer leave; say whether it was there."""
        for part in (self.active, self.blocked):
            if consumer in part:
                part.remove(consumer)
                return True
        return False

    def everybody(self) -> list[RankedConsumer]:
        """Return all consumers, those in line first."""
        return [*self.active, *self.blocked]

    def fork(self, copies: Mapping[RankedConsumer, RankedConsumer]) -> ConsumerLine:
        """Return the same line of copies."""
        copy = ConsumerLine()
        copy.active = [copies[each] for each in self.active]
        copy.blocked = [copies[each] for each in self.blocked]
        return copy
