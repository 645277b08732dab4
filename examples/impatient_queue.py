"""A queue with a mistake that is easily made: what is returned goes behind what is waiting.

It is as small as a candidate can be (one order, gets, no consumers), so that there is little else
to read. Its claim that a returned message goes back to its place is what the gate refutes:

    brokerproof check examples/impatient_queue.py:make_broker
"""

from __future__ import annotations

from collections import deque

from brokerproof.spec.answers import OK, Answer, Delivered, refused, unsupported
from brokerproof.spec.capabilities import Capabilities, Hello
from brokerproof.spec.messages import PRIORITIES
from brokerproof.spec.operations import (
    Acknowledge,
    CloseChannel,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    Settlement,
    name_of,
)


class ImpatientQueue:
    """Messages wait in a deque; what was taken is remembered until it is settled."""

    def __init__(self) -> None:
        self.declared: dict[str, Declare] = {}
        self.waiting: dict[str, deque[str]] = {}
        self.taken: dict[str, Delivered] = {}
        self.channels: dict[str, str] = {}
        self.returned: set[str] = set()
        self.deliveries = 0

    def hello(self) -> Hello:
        """Claim as little as is true; the rest is not asked."""
        claims = Capabilities(get=True, release_position="original")
        return Hello(name="impatient-queue", version="1", capabilities=claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        match operation:
            case Reset():
                self.__init__()  # type: ignore[misc]
            case Declare(queue=queue) if self.declared.setdefault(queue, operation) != operation:
                return refused(f"queue {queue} is another")
            case Declare(queue=queue):
                self.waiting.setdefault(queue, deque())
            case Publish() | Get() if operation.queue not in self.waiting:
                return refused(f"no queue {operation.queue}")
            case Publish(message=message) if message.priority not in PRIORITIES:
                return refused("priorities are 0 to 9")
            case Publish(queue=queue, message=message):
                self.waiting[queue].append(message.id)
            case Get():
                return self.get(operation)
            case Acknowledge() | Release() | Reject():
                return self.settle(operation)
            case CloseChannel(channel=channel):
                for delivery in [d for d, held_by in self.channels.items() if held_by == channel]:
                    self.settle(Release(delivery=delivery))
            case Drain():
                pass
            case _:
                return unsupported(name_of(operation))
        return OK

    def get(self, operation: Get) -> Answer:
        """Take the message at the front."""
        if not self.waiting[operation.queue]:
            return OK
        message = self.waiting[operation.queue].popleft()
        delivery = f"d{self.deliveries}"
        self.deliveries += 1
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue=operation.queue,
            message=message,
            redelivered=message in self.returned,
        )
        if operation.mode == "acknowledge":
            self.taken[delivery] = told
            self.channels[delivery] = operation.channel
        return Answer((told,))

    def settle(self, operation: Settlement) -> Answer:
        """Let a message go; and here is the mistake."""
        told = self.taken.pop(operation.delivery, None)
        if told is None:
            return refused(f"no delivery {operation.delivery}")
        del self.channels[operation.delivery]
        if isinstance(operation, Release):
            self.returned.add(told.message)
            self.waiting[told.queue].append(told.message)  # where appendleft was meant
        return OK


def make_broker() -> ImpatientQueue:
    """Return a queue with nothing in it."""
    return ImpatientQueue()
