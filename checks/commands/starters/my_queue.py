"""My queue under the gate: replace the queue in memory by yours.

    brokerproof check my_queue.py:make_broker

`Queue` is what you replace. `Adapter` changes when you claim more in `hello`.
docs/reference/protocol.md of brokerproof has every operation and every claim.
"""

from __future__ import annotations

import bisect

from brokerproof.spec.messages import PRIORITIES, Fifo
from brokerproof.spec.protocol import operations as op
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello

Entry = tuple[int, str, bool]
"""A message: its place in the queue, its id, and whether it was given back."""


class Queue:
    """REPLACE: let each method call your own queue."""

    def __init__(self) -> None:
        self.waiting: list[Entry] = []
        self.arrived = 0

    def put(self, message: str) -> None:
        """Take responsibility for a message."""
        self.arrived += 1
        self.waiting.append((self.arrived, message, False))

    def take(self) -> Entry | None:
        """Return the next message, which is held from now on, or None."""
        return self.waiting.pop(0) if self.waiting else None

    def give_back(self, place: int, message: str) -> None:
        """Return a message that was held to its place."""
        bisect.insort(self.waiting, (place, message, True))


class Adapter:
    """Answers the gate; knows queues by name, and held entries by delivery."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.held: dict[str, tuple[op.Get, Entry]] = {}
        self.deliveries = 0

    def hello(self) -> Hello:
        """Claim what your queue promises, and no more: only that is asked."""
        claims = Capabilities(get=True, release_position="original")
        return Hello(name="my queue", version="1", capabilities=claims)

    def handle(self, operation: op.Operation) -> Answer:
        """Carry out one operation."""
        match operation:
            case op.Reset():
                Adapter.__init__(self)
            case op.Declare(order=Fifo(), durable=False, auto_delete=False, queue=queue):
                self.queues.setdefault(queue, Queue())
            case op.Publish() | op.Get() if operation.queue not in self.queues:
                return refused(f"there is no queue {operation.queue}")
            case op.Publish(message=message) if message.priority not in PRIORITIES:
                return refused("priorities are 0 to 9")
            case op.Publish(queue=queue, message=message):
                self.queues[queue].put(message.id)
            case op.Get():
                return self.get(operation)
            case op.Acknowledge() | op.Reject() | op.Release() if (
                operation.delivery not in self.held
            ):
                return refused(f"nothing is held by {operation.delivery}")
            case op.Acknowledge() | op.Reject() | op.Release():
                self.settle(operation.delivery, back=isinstance(operation, op.Release))
            case op.CloseChannel(channel=channel):
                for delivery in [d for d, (by, _) in self.held.items() if by.channel == channel]:
                    self.settle(delivery, back=True)
            case op.Drain():
                pass
            case _:
                return unsupported(op.name_of(operation))
        return OK

    def get(self, operation: op.Get) -> Answer:
        """Take the next message; in mode `acknowledge` it is held until it is settled."""
        entry = self.queues[operation.queue].take()
        if entry is None:
            return OK
        self.deliveries += 1
        delivery = f"d{self.deliveries}"
        if operation.mode == "acknowledge":
            self.held[delivery] = (operation, entry)
        queue, (_, message, returned) = operation.queue, entry
        told = Delivered(
            delivery=delivery, consumer=None, queue=queue, message=message, redelivered=returned
        )
        return Answer((told,))

    def settle(self, delivery: str, *, back: bool) -> None:
        """Let a message go, `back` to its queue or for good."""
        by, (place, message, _) = self.held.pop(delivery)
        if back:
            self.queues[by.queue].give_back(place, message)


def make_broker() -> Adapter:
    """Return a broker with nothing in it; the gate calls this for each run."""
    return Adapter()
