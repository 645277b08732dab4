"""A whole broker in one file: plain lists, and a loop that delivers after each change.

It is an example to read: a candidate needs no more than this. It is also a second opinion: it was
written from the requirements alone, shares no algorithm with the reference broker, and must keep
all requirements that it claims. Try it, then break a rule and try again:

    brokerproof check examples/naive_queue.py:make_broker
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from brokerproof.spec.messages import PRIORITIES, Message, Order, Priority
from brokerproof.spec.protocol.answers import (
    OK,
    Answer,
    ConsumerClosed,
    Delivered,
    Event,
    refused,
    unsupported,
)
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Delete,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    SetCredit,
    name_of,
)

LEVELS_MAX = 10


@dataclass(eq=False)
class Entry:
    """A message in its queue; a settled message is not in the list any more."""

    message: Message
    level: int
    held: bool = False
    redelivered: bool = False


@dataclass(eq=False)
class Queue:
    """The entries, always in the order of delivery."""

    name: str
    order: Order
    entries: list[Entry] = field(default_factory=list)

    def add(self, message: Message) -> None:
        """Put a message behind all others of its level."""
        level = level_of(message.priority, self.order)
        behind = sum(entry.level >= level for entry in self.entries)
        self.entries.insert(behind, Entry(message, level))

    def first(self) -> Entry | None:
        """Return the first available entry."""
        return next((entry for entry in self.entries if not entry.held), None)


@dataclass(eq=False)
class Consumer:
    """A consumer or browser; `passed` are the entries that a browser has passed, shown or not."""

    name: str | None
    channel: str
    queue: Queue
    mode: str
    limit: int | None = None
    passed: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Delivery:
    """An acquired entry, until it is settled."""

    entry: Entry
    subscriber: Consumer


class NaiveBroker:
    """A broker that checks everything again after each change."""

    def __init__(self) -> None:
        self.reset()

    def hello(self) -> Hello:
        """Return name, version and claims: the gate tests a candidate only for its claims."""
        return Hello(
            name="naive-queue",
            version="1",
            capabilities=Capabilities(
                orders=("fifo", "priority"),
                priority_levels=LEVELS_MAX,
                modes=("acknowledge", "automatic", "browse"),
                credit=("messages", "change"),
                get=True,
                browse=True,
                release_position="original",
                purge=True,
                delete=True,
            ),
        )

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, then deliver what is possible, and return all events."""
        answer = self.carry_out(operation)
        return Answer((*answer.events, *self.hand_out()), answer.error)

    def carry_out(self, operation: Operation) -> Answer:
        """Carry out one operation; refuse invalid and unclaimed ones."""
        match operation:
            case Reset():
                self.reset()
            case Declare():
                return self.declare(operation)
            case Publish():
                return self.publish(operation)
            case Consume():
                return self.consume(operation)
            case SetCredit():
                return self.set_credit(operation)
            case Get():
                return self.get(operation)
            case Acknowledge() | Release() | Reject():
                return self.settle(operation)
            case Cancel(consumer=name):
                if self.consumers.pop(name, None) is None:
                    return refused(f"no consumer {name}")
            case CloseChannel(channel=channel):
                self.close_channel(channel)
            case Purge(queue=name):
                if name not in self.queues:
                    return refused(f"no queue {name}")
                queue = self.queues[name]
                queue.entries = [entry for entry in queue.entries if entry.held]
            case Delete(queue=name):
                return self.delete(name)
            case Drain():
                pass  # nothing is ever left for later
            case _:
                return unsupported(name_of(operation))
        return OK

    def hand_out(self) -> list[Event]:
        """Show browsers new entries, then give consumers one message each, in turn."""
        told: list[Event] = []
        for consumer in self.consumers.values():
            if consumer.mode == "browse" and self.has_room(consumer):
                told += self.show(consumer)
        before = -1
        while len(told) != before:
            before = len(told)
            for consumer in self.consumers.values():
                entry = consumer.queue.first()
                if consumer.mode != "browse" and entry is not None and self.has_room(consumer):
                    told.append(self.give(consumer, entry))
        return told

    def show(self, browser: Consumer) -> list[Event]:
        """Move a browser past the remaining entries, and show it the available ones."""
        new = [e for e in browser.queue.entries if e.message.id not in browser.passed]
        browser.passed.update(entry.message.id for entry in new)
        return [self.tell(browser, entry)[1] for entry in new if not entry.held]

    def give(self, subscriber: Consumer, entry: Entry) -> Event:
        """Let a consumer or a get acquire an entry, or take it for good."""
        delivery, event = self.tell(subscriber, entry)
        if subscriber.mode == "acknowledge":
            entry.held = True
            self.unsettled[delivery] = Delivery(entry, subscriber)
        else:
            subscriber.queue.entries.remove(entry)
        return event

    def tell(self, consumer: Consumer, entry: Entry) -> tuple[str, Event]:
        """Return a new delivery's id, and its event."""
        delivery = f"d{self.deliveries}"
        self.deliveries += 1
        return delivery, Delivered(
            delivery=delivery,
            consumer=consumer.name,
            queue=consumer.queue.name,
            message=entry.message.id,
            redelivered=entry.redelivered,
        )

    def has_room(self, consumer: Consumer) -> bool:
        """Say whether the window has room; only deliveries to be acknowledged fill it."""
        if consumer.limit is None:
            return True
        held = sum(delivery.subscriber is consumer for delivery in self.unsettled.values())
        return held < consumer.limit

    # The operations.

    def reset(self) -> None:
        """Forget everything."""
        self.queues: dict[str, Queue] = {}
        self.consumers: dict[str, Consumer] = {}
        self.unsettled: dict[str, Delivery] = {}
        self.deliveries = 0

    def declare(self, operation: Declare) -> Answer:
        """Make a queue; again with the same order changes nothing."""
        order = operation.order
        if operation.durable or operation.auto_delete:
            return unsupported("durable and auto-delete queues")
        if isinstance(order, Priority) and not 1 <= order.levels <= LEVELS_MAX:
            return unsupported(f"{order.levels} levels")
        queue = self.queues.setdefault(operation.queue, Queue(operation.queue, order))
        return OK if queue.order == order else refused(f"{queue.name} has another order")

    def publish(self, operation: Publish) -> Answer:
        """Put a message into its queue."""
        if operation.queue not in self.queues:
            return refused(f"no queue {operation.queue}")
        if operation.message.priority not in PRIORITIES:
            return refused(f"priority {operation.message.priority}")
        self.queues[operation.queue].add(operation.message)
        return OK

    def consume(self, operation: Consume) -> Answer:
        """Let a consumer or a browser subscribe."""
        asks_more = operation.selector is not None or operation.priority or operation.auto_close
        if asks_more or operation.credit.bytes is not None:
            return unsupported("selectors, consumer priority, auto-close and credit in bytes")
        limit = operation.credit.messages
        if operation.queue not in self.queues or operation.consumer in self.consumers:
            return refused(f"no queue {operation.queue}, or {operation.consumer} is in use")
        if limit is not None and limit < 0:
            return refused(f"a window of {limit}")
        self.consumers[operation.consumer] = Consumer(
            operation.consumer,
            operation.channel,
            self.queues[operation.queue],
            operation.mode,
            limit,
        )
        return OK

    def set_credit(self, operation: SetCredit) -> Answer:
        """Replace a consumer's window; its unsettled deliveries count against the new one too."""
        if operation.channel is not None or operation.bytes is not None:
            return unsupported("credit of channels, and in bytes")
        consumer = self.consumers.get(operation.consumer or "")
        if consumer is None or (operation.messages is not None and operation.messages < 0):
            return refused(f"no consumer {operation.consumer}, or a window of {operation.messages}")
        consumer.limit = operation.messages
        return OK

    def get(self, operation: Get) -> Answer:
        """Give the first available message to a consumer that exists for this get only."""
        queue = self.queues.get(operation.queue)
        if queue is None:
            return refused(f"no queue {operation.queue}")
        entry = queue.first()
        if entry is None:
            return OK
        getter = Consumer(None, operation.channel, queue, operation.mode)
        return Answer((self.give(getter, entry),))

    def settle(self, operation: Acknowledge | Release | Reject) -> Answer:
        """Let a message go: back to its place, which it never lost, or for good."""
        delivery = self.unsettled.pop(operation.delivery, None)
        if delivery is None:
            return refused(f"no delivery {operation.delivery}")
        if isinstance(operation, Release):
            delivery.entry.held, delivery.entry.redelivered = False, True
        else:
            delivery.subscriber.queue.entries.remove(delivery.entry)
        return OK

    def close_channel(self, channel: str) -> None:
        """Cancel a channel's consumers, and release all its deliveries."""
        for name, consumer in list(self.consumers.items()):
            if consumer.channel == channel:
                del self.consumers[name]
        for name, delivery in list(self.unsettled.items()):
            if delivery.subscriber.channel == channel:
                self.settle(Release(delivery=name))

    def delete(self, name: str) -> Answer:
        """Drop a queue with everything in it, and send its consumers an event of that."""
        queue = self.queues.pop(name, None)
        if queue is None:
            return refused(f"no queue {name}")
        leaving = [key for key, consumer in self.consumers.items() if consumer.queue is queue]
        for consumer in leaving:
            del self.consumers[consumer]
        self.unsettled = {
            k: d for k, d in self.unsettled.items() if d.subscriber.queue is not queue
        }
        return Answer(tuple(ConsumerClosed(consumer=consumer) for consumer in leaving))


def level_of(priority: int, order: Order) -> int:
    """Return the level of a priority: levels lie around the default priority (AMQP 0-10)."""
    if not isinstance(order, Priority):
        return 0
    lowest = 5 - math.ceil(order.levels / 2)
    return min(max(priority - lowest, 0), order.levels - 1)


def make_broker() -> NaiveBroker:
    """Return an empty broker; the gate calls this before each run."""
    return NaiveBroker()
