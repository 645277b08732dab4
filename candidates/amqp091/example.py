"""The state of one example behind AMQP 0-9-1: the objects that the protocol's names stand for.

The file records queues, channels, consumers and unsettled deliveries between two resets, and what a
crash leaves of them (driver protocol 1, rules 27 and 37). It does not talk to the broker.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from brokerproof.candidates.amqp091.claims import DECLARED_S, SETTLED_S

if TYPE_CHECKING:
    import amqp

    from brokerproof.candidates.amqp091.connection import Connection
    from brokerproof.spec.protocol.answers import Error, Event
    from brokerproof.spec.protocol.operations import Declare


@dataclass
class Queue:
    """A queue that was declared: its name at the broker, and its declare."""

    name: str
    declared: Declare
    consumers: set[str] = field(default_factory=set)


@dataclass
class Actor:
    """A channel of the protocol: an AMQP channel on a connection of its own."""

    connection: Connection
    channel: amqp.Channel
    consumers: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Place:
    """The channel and queue of a consumer or a delivery; `tag` names it to the broker."""

    channel: str
    queue: str
    tag: str | int


class Example:
    """The state between two resets, by the protocol's names.

    `lost` are durable queues that a restart did not bring back, each with the broker's message.
    """

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.lost: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.actors: dict[str, Actor] = {}
        self.consumers: dict[str, Place] = {}
        self.unsettled: dict[str, Place] = {}
        self.told: list[Event] = []
        self.consumers_made = 0
        self.deliveries_made = 0
        self.fault: Error | None = None
        self.is_down = False
        self._on_disk_at = -math.inf
        self._published: set[str] = set()
        self._recovered: set[str] = set()
        self._handed_over: set[str] = set()

    def forget_consumer(self, name: str) -> None:
        """Forget a consumer; its deliveries stay."""
        place = self.consumers.pop(name, None)
        if place is not None:
            self.actors[place.channel].consumers.discard(name)
            self.queues[place.queue].consumers.discard(name)

    def note_declared(self, name: str, queue: Queue) -> None:
        """Add a queue, and record when it will be on disk if it is durable."""
        if self.queues.get(name) is not queue:
            self.queues[name] = queue
            self._note_unwritten(name, DECLARED_S)

    def note_settled(self, queue: str) -> None:
        """Record when a settlement that removed a message from a queue will be on disk."""
        self._note_unwritten(queue, SETTLED_S)

    def forget_queue(self, name: str) -> None:
        """Forget a queue and the deliveries from it."""
        self._note_unwritten(name, DECLARED_S)
        self.unsettled = {
            delivery: place for delivery, place in self.unsettled.items() if place.queue != name
        }
        del self.queues[name]

    def _note_unwritten(self, queue: str, seconds: float) -> None:
        if self.queues[queue].declared.durable:
            self._on_disk_at = max(self._on_disk_at, time.monotonic() + seconds)

    def on_disk_in_s(self) -> float:
        """Return how long to wait until every answered operation is on disk."""
        return max(0.0, self._on_disk_at - time.monotonic())

    def note_published(self, message: str) -> None:
        """Record a message that may survive a crash."""
        self._published.add(message)

    def is_redelivered(self, message: str, *, flag: bool) -> bool:
        """Return whether the message is redelivered, given the broker's flag; record the delivery.

        After a kill RabbitMQ sets the flag on all recovered messages, since it cannot tell which it
        had delivered. The flag then means "perhaps", and the record here is more exact (rule 11).
        """
        known_better = message in self._recovered and message not in self._handed_over
        self._handed_over.add(message)
        return flag and not known_better

    def crash(self) -> None:
        """Forget what a crash takes: all channels, and all queues that are not durable."""
        self.actors, self.consumers, self.unsettled = {}, {}, {}
        self.queues = {
            name: Queue(queue.name, queue.declared)
            for name, queue in self.queues.items()
            if queue.declared.durable
        }
        self._recovered |= self._published
        self.is_down = True
