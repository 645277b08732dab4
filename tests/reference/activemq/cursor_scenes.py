"""A queue of ActiveMQ under an example, driven by short words."""

from __future__ import annotations

from brokerproof.reference import make
from brokerproof.reference.activemq.queue import CursorQueue
from brokerproof.spec.messages import Credit, Fifo, Message, Order
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Consume,
    Declare,
    Get,
    Operation,
    Publish,
    Release,
    Reset,
)

ONE_MESSAGE = "memory=1100"
"""Room for one message: each counts 1,024 bytes beside its body."""


class Scene:
    """A broker with one durable queue; deliveries are named by their messages."""

    def __init__(self, address: str, order: Order | None = None, *, durable: bool = True) -> None:
        self.broker = make(address)
        self.deliveries: dict[str, str] = {}
        self.browsers: set[str] = set()
        self.do(Reset())
        self.do(Declare(queue="q", order=order or Fifo(), durable=durable))

    @property
    def queue(self) -> CursorQueue:
        """Return the queue itself."""
        queue = self.broker.queues["q"]
        assert isinstance(queue, CursorQueue)
        return queue

    def do(self, operation: Operation) -> Answer:
        """Do something, after which the queue is within its limit of memory."""
        answer = self.broker.handle(operation)
        for event in answer.events:
            if isinstance(event, Delivered) and event.consumer not in self.browsers:
                self.deliveries[event.message] = event.delivery
        assert self.queue_is_within_its_limit()
        return answer

    def queue_is_within_its_limit(self) -> bool:
        """Whether no more is in memory than may be."""
        queue = self.broker.queues.get("q")
        if queue is None:
            return True
        assert isinstance(queue, CursorQueue)
        usage = queue.memory.usage
        return usage.limit == 0 or usage.used <= usage.limit

    def given(self, operation: Operation) -> list[str]:
        """Carry out an operation, and return the deliveries, as `consumer:message`."""
        return [
            f"{event.consumer or 'get'}:{event.message}"
            for event in self.do(operation).events
            if isinstance(event, Delivered)
        ]

    def publish(self, *names: str, persistent: bool = True, priority: int = 4) -> list[str]:
        """Publish messages, one after the other."""
        given: list[str] = []
        for name in names:
            message = Message(id=name, persistent=persistent, priority=priority)
            given += self.given(Publish(queue="q", message=message))
        return given

    def consume(self, name: str, window: int | None = None, priority: int = 0) -> list[str]:
        """Subscribe, on a channel of its own."""
        return self.given(
            Consume(
                channel=f"ch-{name}",
                queue="q",
                consumer=name,
                credit=Credit(window),
                priority=priority,
            )
        )

    def browse(self, name: str) -> list[str]:
        """Let a browser come, on a channel of its own."""
        self.browsers.add(name)
        return self.given(Consume(channel=f"ch-{name}", queue="q", consumer=name, mode="browse"))

    def acknowledge(self, name: str) -> list[str]:
        """Acknowledge the last delivery of a message."""
        return self.given(Acknowledge(delivery=self.deliveries[name]))

    def release(self, name: str) -> list[str]:
        """Release the last delivery of a message."""
        return self.given(Release(delivery=self.deliveries[name]))

    def get(self) -> list[str]:
        """Take one message."""
        return self.given(Get(channel="ch-get", queue="q"))
