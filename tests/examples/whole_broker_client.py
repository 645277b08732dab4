"""A client that talks to the whole broker: short words for operations, a line for each event."""

# ruff: noqa: D102 -- each method is the operation of its name, and the protocol says what it means

from __future__ import annotations

from brokerproof.spec.messages import Credit, Fifo, Message, Order, PropertyValue
from brokerproof.spec.protocol.answers import (
    Accepted,
    ConsumerClosed,
    Delivered,
    Event,
    LeaseExpired,
    QueueDeleted,
)
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Crash,
    Declare,
    Delete,
    Drain,
    Flush,
    Get,
    GetMode,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Restart,
    Selector,
    SetCredit,
)
from examples.whole_broker import WholeBroker, make_broker


class Talk:
    """A client of a broker with a queue q; it settles a message by its last delivery."""

    def __init__(self, broker: WholeBroker | None = None, order: Order | None = None) -> None:
        self.broker = broker or make_broker()
        self.deliveries: dict[str, str] = {}
        self.declare("q", order)

    def ask(self, operation: Operation) -> list[str]:
        """Return what one operation's answer tells, an error first."""
        answer = self.broker.handle(operation)
        code = [answer.error.code] if answer.error is not None else []
        return [*code, *(["parked"] if answer.parked else []), *map(self.line, answer.events)]

    def line(self, event: Event) -> str:
        """Return an event as a line, and remember a delivery."""
        match event:
            case Delivered(consumer=consumer, message=message, redelivered=redelivered):
                self.deliveries[message] = event.delivery
                return f"{message} → {consumer or 'get'}{' again' if redelivered else ''}"
            case ConsumerClosed(consumer=consumer):
                return f"{consumer} closed"
            case QueueDeleted(queue=queue):
                return f"{queue} deleted"
            case Accepted(message=message):
                return f"{message} accepted"
            case LeaseExpired():
                raise AssertionError("the whole broker claims no leases")

    def declare(
        self,
        queue: str,
        order: Order | None = None,
        *,
        durable: bool = False,
        auto_delete: bool = False,
    ) -> list[str]:
        order = order or Fifo()
        return self.ask(Declare(queue=queue, order=order, durable=durable, auto_delete=auto_delete))

    def publish(
        self,
        message: str,
        to: str = "q",
        *,
        priority: int = 4,
        size: int = 1,
        persistent: bool = False,
        wait: int | None = None,
        expire: int | None = None,
        **properties: PropertyValue,
    ) -> list[str]:
        whole = Message(
            id=message,
            priority=priority,
            size=size,
            persistent=persistent,
            properties=properties,
        )
        return self.ask(Publish(queue=to, message=whole, not_before_s=wait, expires_s=expire))

    def consume(
        self,
        consumer: str,
        queue: str = "q",
        *more_queues: str,
        mode: ConsumeMode = "acknowledge",
        credit: tuple[int | None, int | None] = (None, None),
        selector: Selector | None = None,
        priority: int = 0,
        auto_close: bool = False,
        exclusive: bool = False,
        channel: str = "ch",
    ) -> list[str]:
        return self.ask(
            Consume(
                channel=channel,
                queue=queue,
                queues=(queue, *more_queues) if more_queues else (),
                consumer=consumer,
                mode=mode,
                credit=Credit(*credit),
                selector=selector,
                priority=priority,
                auto_close=auto_close,
                exclusive=exclusive,
            )
        )

    def browse(
        self, consumer: str, credit: tuple[int | None, int | None] = (None, None)
    ) -> list[str]:
        return self.consume(consumer, mode="browse", credit=credit)

    def credit(
        self,
        messages: int | None = None,
        size: int | None = None,
        *,
        of: str | None = None,
        of_channel: str | None = None,
    ) -> list[str]:
        return self.ask(SetCredit(consumer=of, channel=of_channel, messages=messages, bytes=size))

    def get(
        self, queue: str = "q", mode: GetMode = "acknowledge", channel: str = "ch"
    ) -> list[str]:
        return self.ask(Get(channel=channel, queue=queue, mode=mode))

    def take_all(self, queue: str = "q") -> list[str]:
        """Return the messages of all gets until nothing is left, in order."""
        taken: list[str] = []
        while found := self.get(queue, "automatic"):
            taken += [line.split()[0] for line in found]
        return taken

    def acknowledge(self, message: str) -> list[str]:
        return self.ask(Acknowledge(delivery=self.deliveries[message]))

    def release(self, message: str) -> list[str]:
        return self.ask(Release(delivery=self.deliveries[message]))

    def reject(self, message: str) -> list[str]:
        return self.ask(Reject(delivery=self.deliveries[message]))

    def cancel(self, consumer: str) -> list[str]:
        return self.ask(Cancel(consumer=consumer))

    def close(self, channel: str = "ch") -> list[str]:
        return self.ask(CloseChannel(channel=channel))

    def purge(self, queue: str = "q") -> list[str]:
        return self.ask(Purge(queue=queue))

    def delete(self, queue: str = "q") -> list[str]:
        return self.ask(Delete(queue=queue))

    def drain(self) -> list[str]:
        return self.ask(Drain())

    def flush(self, consumer: str) -> list[str]:
        return self.ask(Flush(consumer=consumer))

    def advance(self, seconds: int) -> list[str]:
        return self.ask(Advance(seconds=seconds))

    def crash(self) -> list[str]:
        return self.ask(Crash())

    def restart(self) -> list[str]:
        return self.ask(Restart())


def with_messages(*messages: str, broker: WholeBroker | None = None) -> Talk:
    """Return a client whose queue q holds messages."""
    talk = Talk(broker)
    for message in messages:
        assert talk.publish(message) == []
    return talk
