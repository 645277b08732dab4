"""A small language for the examples: a broker with one queue, driven by short words.

`Bench` names deliveries by their messages, since an example cares about those and not about
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message, Order, PropertyValue
from brokerproof.spec.protocol.answers import Answer, ConsumerClosed, Delivered, QueueDeleted
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Drain,
    Flush,
    Get,
    GetMode,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    SetCredit,
)

if TYPE_CHECKING:
    from brokerproof.reference import Broker
    from brokerproof.reference.qpid.push.queue import Queue
    from brokerproof.reference.qpid.push.subscriptions import Subscription


def queue_in(broker: Broker, name: str = "q") -> Queue:
    """Return a queue of pointers."""
    return cast("Queue", broker.queues[name])


def subscription_in(broker: Broker, consumer: str) -> Subscription:
    """Return a consumer of a queue of pointers."""
    return cast("Subscription", broker.consumers[consumer])


class Bench:
    """A broker under an example; each verb returns the deliveries, as `consumer:message`."""

    def __init__(
        self,
        address: str = "qpid-push",
        order: Order | None = None,
        *,
        auto_delete: bool = False,
        durable: bool = False,
    ) -> None:
        self.broker = make(address)
        self.delivery_of: dict[str, str] = {}
        self.redelivered: list[str] = []
        self.closed: list[str] = []
        self.deleted: list[str] = []
        self.ok(Reset())
        fifo_or_other = Fifo() if order is None else order
        self.ok(Declare(queue="q", order=fifo_or_other, auto_delete=auto_delete, durable=durable))

    def do(self, operation: Operation) -> Answer:
        """Hand over an operation and note the events."""
        answer = self.broker.handle(operation)
        for event in answer.events:
            if isinstance(event, Delivered):
                self.delivery_of[event.message] = event.delivery
                if event.redelivered:
                    self.redelivered.append(event.message)
            elif isinstance(event, ConsumerClosed):
                self.closed.append(event.consumer)
            elif isinstance(event, QueueDeleted):
                self.deleted.append(event.queue)
        return answer

    def ok(self, operation: Operation) -> list[str]:
        """Hand over an operation that must succeed."""
        answer = self.do(operation)
        assert answer.ok, answer.error
        return [
            f"{event.consumer}:{event.message}" if event.consumer else event.message
            for event in answer.events
            if isinstance(event, Delivered)
        ]

    def publish(
        self,
        *messages: str,
        priority: int = 4,
        queue: str = "q",
        size: int = 1,
        persistent: bool = False,
        **properties: PropertyValue,
    ) -> list[str]:
        """Publish messages one after the other."""
        told = []
        for message in messages:
            made = Message(
                id=message,
                priority=priority,
                size=size,
                persistent=persistent,
                properties=properties,
            )
            told += self.ok(Publish(queue=queue, message=made))
        return told

    def consume(
        self,
        consumer: str,
        credit: int | None = None,
        *,
        mode: ConsumeMode = "acknowledge",
        channel: str | None = None,
        queue: str = "q",
        size: int | None = None,
        auto_close: bool = False,
        exclusive: bool = False,
        priority: int = 0,
        **selector: PropertyValue,
    ) -> list[str]:
        """Subscribe, on a channel of its own unless one is named; `size` is a window of bytes.

        Further keywords are the properties of its selector.
        """
        return self.ok(
            Consume(
                channel=channel or f"channel of {consumer}",
                queue=queue,
                consumer=consumer,
                mode=mode,
                credit=Credit(credit, size),
                selector=selector or None,
                auto_close=auto_close,
                exclusive=exclusive,
                priority=priority,
            )
        )

    def get(self, channel: str = "getting", mode: GetMode = "acknowledge") -> list[str]:
        """Take one message."""
        return self.ok(Get(channel=channel, queue="q", mode=mode))

    def credit(self, consumer: str, messages: int | None) -> list[str]:
        """Replace a consumer's window."""
        return self.ok(SetCredit(consumer=consumer, messages=messages))

    def bytes_of(self, consumer: str, size: int | None) -> list[str]:
        """Replace a consumer's window by one of bytes."""
        return self.ok(SetCredit(consumer=consumer, bytes=size))

    def share(
        self, channel: str, messages: int | None = None, *, size: int | None = None
    ) -> list[str]:
        """Replace the window that a channel's consumers share."""
        return self.ok(SetCredit(channel=channel, messages=messages, bytes=size))

    def flush(self, consumer: str) -> list[str]:
        """Flush a consumer."""
        return self.ok(Flush(consumer=consumer))

    def acknowledge(self, message: str) -> list[str]:
        """Acknowledge the latest delivery of a message."""
        return self.ok(Acknowledge(delivery=self.delivery_of[message]))

    def release(self, message: str) -> list[str]:
        """Release the latest delivery of a message."""
        return self.ok(Release(delivery=self.delivery_of[message]))

    def reject(self, message: str) -> list[str]:
        """Reject the latest delivery of a message."""
        return self.ok(Reject(delivery=self.delivery_of[message]))

    def cancel(self, consumer: str) -> list[str]:
        """Cancel a consumer."""
        return self.ok(Cancel(consumer=consumer))

    def close(self, channel: str) -> list[str]:
        """Close a channel."""
        return self.ok(CloseChannel(channel=channel))

    def purge(self) -> list[str]:
        """Purge the queue."""
        return self.ok(Purge(queue="q"))

    def drain(self) -> list[str]:
        """Let everything happen that can."""
        return self.ok(Drain())
