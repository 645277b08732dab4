"""The state of one example on the wire: the objects that the protocol's names stand for.

The file records queues, channels, consumers and unsettled deliveries between two resets, and what a
crash leaves of them (driver protocol 1, rules 27 and 37). It does not talk to the broker. An
adapter brings its own types for a channel and for the handle by which the broker knows a consumer
or a delivery.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from brokerproof.candidates.wire.errors import refused
from brokerproof.candidates.wire.owed import Owed, queues_of
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Cancel,
    Consume,
    Delete,
    Get,
    Publish,
    Purge,
    SetCredit,
)

if TYPE_CHECKING:
    from brokerproof.candidates.wire.profile import OnDisk
    from brokerproof.spec.protocol.answers import Error, Event
    from brokerproof.spec.protocol.operations import Declare, Operation

ChannelT = TypeVar("ChannelT")
"""What an adapter has for a channel of the protocol."""

HandleT = TypeVar("HandleT")
"""How an adapter names a consumer or a delivery to the broker."""


@dataclass
class Queue:
    """A queue that was declared: its name at the broker, and its declare."""

    name: str
    declared: Declare
    consumers: set[str] = field(default_factory=set)


class Names:
    """The names of one candidate's queues at the broker, which no other program uses."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self._prefix = f"brokerproof.{secrets.token_hex(6)}"
        self._made = 0

    def of(self, queue: str, known: dict[str, str]) -> str:
        """Return the name of a queue: new in each example, and the same within one."""
        if queue not in known:
            self._made += 1
            known[queue] = f"{self._prefix}.{self._made}"
            self.left.append(known[queue])
        return known[queue]


@dataclass(frozen=True)
class Place(Generic[HandleT]):
    """The channel and queues of a consumer, or of an unsettled delivery (one queue)."""

    channel: str
    queues: tuple[str, ...]
    handle: HandleT


class Example(Generic[ChannelT, HandleT]):
    """The state between two resets, by the protocol's names.

    `channels` are those in use. `lost` are durable queues that a restart did not bring back, each
    with the broker's message. `left` are queues that a consumer has left since it was last cleared.
    `owed` is what the broker still owes. `fault` is the error of all operations until the next
    reset. `is_quiet` says that the last operation was a drain, so that nothing was asked of the
    broker since a silence.
    """

    def __init__(self, on_disk: OnDisk | None = None) -> None:
        self.queues: dict[str, Queue] = {}
        self.lost: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.channels: dict[str, ChannelT] = {}
        self.consumers: dict[str, Place[HandleT]] = {}
        self.unsettled: dict[str, Place[HandleT]] = {}
        self.told: list[Event] = []
        self.left: list[str] = []
        self.consumers_made = 0
        self.deliveries_made = 0
        self.fault: Error | None = None
        self.is_down = False
        self.is_quiet = False
        self.owed = Owed()
        self._on_disk = on_disk
        self._on_disk_at = -math.inf
        self._published: set[str] = set()
        self._recovered: set[str] = set()
        self._handed_over: set[str] = set()

    def note_consumer(self, operation: Consume, handle: HandleT) -> None:
        """Add a consumer of known queues."""
        queues = queues_of(operation)
        self.consumers[operation.consumer] = Place(operation.channel, queues, handle)
        self.owed.note_consumer(operation)
        for queue in queues:
            self.queues[queue].consumers.add(operation.consumer)

    def forget_consumer(self, name: str) -> None:
        """Forget a consumer; its deliveries stay."""
        place = self.consumers.pop(name, None)
        self.owed.note_left(name)
        if place is not None:
            for queue in place.queues:
                if queue in self.queues:
                    self.queues[queue].consumers.discard(name)
                    self.left.append(queue)

    def consumers_of(self, channel: str) -> list[str]:
        """Return the consumers of a channel in the order of their names."""
        return sorted(name for name, at in self.consumers.items() if at.channel == channel)

    def queue_at_broker(self, name: str) -> str | None:
        """Return the queue with this name at the broker, or None."""
        return next((ours for ours, queue in self.queues.items() if queue.name == name), None)

    def lacks(self, operation: Operation) -> Error | None:
        """Return the error of an operation on a queue or consumer that is not there."""
        match operation:
            case Consume():
                queues = queues_of(operation)
            case Publish(queue=queue) | Get(queue=queue) | Purge(queue=queue) | Delete(queue=queue):
                queues = (queue,)
            case Cancel(consumer=consumer) | SetCredit(consumer=consumer):
                known = consumer in self.consumers
                return None if known else refused(f"there is no consumer {consumer}")
            case _:
                queues = ()
        missing = next((queue for queue in queues if queue not in self.queues), None)
        return None if missing is None else self._no_queue(missing)

    def _no_queue(self, name: str) -> Error:
        why = self.lost.get(name)
        there_is_none = f"there is no queue {name}"
        return refused(there_is_none if why is None else f"{there_is_none} since a restart: {why}")

    def note_declared(self, name: str, queue: Queue) -> None:
        """Add a queue, and record when it will be on disk if it is durable."""
        if self.queues.get(name) is not queue:
            self.queues[name] = queue
            if self._on_disk is not None:
                self._note_unwritten(name, self._on_disk.declared_s)

    def note_settled(self, queue: str) -> None:
        """Record when a settlement that removed a message from a queue will be on disk."""
        if self._on_disk is not None:
            self._note_unwritten(queue, self._on_disk.settled_s)

    def forget_queue(self, name: str) -> None:
        """Forget a queue and the deliveries from it."""
        if self._on_disk is not None:
            self._note_unwritten(name, self._on_disk.declared_s)
        self.unsettled = {
            delivery: place
            for delivery, place in self.unsettled.items()
            if name not in place.queues
        }
        del self.queues[name]
        self.owed.note_deleted(name)

    def _note_unwritten(self, queue: str, seconds: float) -> None:
        if self.queues[queue].declared.durable:
            self._on_disk_at = max(self._on_disk_at, time.monotonic() + seconds)

    def on_disk_in_s(self) -> float:
        """Return how long to wait until every answered operation is on disk."""
        return max(0.0, self._on_disk_at - time.monotonic())

    def note_published(self, message: str) -> None:
        """Record a message that may survive a crash."""
        self._published.add(message)

    def note_delivered(
        self,
        subscriber: Consume | Get,
        message: str,
        *,
        queue: str | None = None,
        redelivered: bool,
        handle: HandleT,
    ) -> None:
        """Tell a delivery, and keep it until it is settled if its mode asks for that.

        `queue` is needed for a consumer of several. `redelivered` is the broker's flag.
        """
        self.deliveries_made += 1
        delivery, queue = f"d{self.deliveries_made}", queue or subscriber.queue
        self.owed.note_delivered(subscriber, delivery, queue, message)
        if subscriber.mode == "acknowledge":
            self.unsettled[delivery] = Place(subscriber.channel, (queue,), handle)
        elif subscriber.mode == "automatic" and queue in self.queues:
            self.note_settled(queue)
        self.told.append(
            Delivered(
                delivery=delivery,
                consumer=getattr(subscriber, "consumer", None),
                queue=queue,
                message=message,
                redelivered=self.is_redelivered(message, flag=redelivered),
            )
        )

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
        self.channels, self.consumers, self.unsettled = {}, {}, {}
        self.queues = {
            name: Queue(queue.name, queue.declared)
            for name, queue in self.queues.items()
            if queue.declared.durable
        }
        self.owed.note_crash(frozenset(self.queues))
        self._recovered |= self._published
        self.is_down = True
