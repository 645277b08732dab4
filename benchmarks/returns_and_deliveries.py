"""Run two releases against two deliveries: the released pointer by itself, on threads.

The runner and the client's operations are left out: the two methods of the document meet directly,
`release` of a queue and one attempt to deliver; scheduled jobs are not run. When all have ended, no
message may be lost, and a consumer with room must look at the first available one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.threads import Body, Threads
from brokerproof.reference import Broker
from brokerproof.reference.qpid.push.entries import QueueEntry
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.reference.qpid.push.subscriptions import Subscription
from brokerproof.spec.messages import Credit, Message, Order
from brokerproof.spec.protocol.operations import Consume, Declare, Drain, Publish

MESSAGES = ("a", "b")


@dataclass(frozen=True)
class Returning:
    """A queue whose messages `holder` has, and `subscriber`, which has room and has passed them."""

    queue: Queue
    holder: Subscription
    subscriber: Subscription
    entries: list[QueueEntry]
    attempt: Callable[[Queue, Subscription], object]

    def release(self, *entries: QueueEntry) -> None:
        """Return some messages, one after the other."""
        self.queue.release([(entry, self.holder) for entry in entries])

    def deliver(self, times: int = 1) -> None:
        """Attempt to give the subscriber its next message."""
        for _ in range(times):
            self.attempt(self.queue, self.subscriber)

    def wrongs(self) -> Iterator[str]:
        """Yield lost messages, and messages that the subscriber has passed."""
        left = list(self.queue.entries.iterator())
        if left != self.entries:
            yield f"left are {left} of {self.entries}"
        free = next((entry for entry in left if entry.is_available()), None)
        ahead = self.subscriber.pointer.next_available(self.queue.entries, self.subscriber)
        if ahead is not free:
            yield f"the first that is there is {free}, and looked at is {ahead}"


def returning(order: Order, broker: Broker) -> Returning:
    """Return a queue of a broker, all of whose messages are held."""
    broker.handle(Declare(queue="q", order=order))
    for number, each in enumerate(MESSAGES):
        broker.handle(Publish(queue="q", message=Message(id=each, priority=9 - number)))
    for name in ("holder", "subscriber"):
        room = Credit(len(MESSAGES))
        broker.handle(Consume(queue="q", consumer=name, channel=f"of {name}", credit=room))
    broker.handle(Drain())
    queue = cast("Queue", broker.queues["q"])
    entries = list(queue.entries.iterator())
    holder, subscriber = (
        cast("Subscription", broker.consumers[name]) for name in ("holder", "subscriber")
    )
    assert all(entry.state.value.holder is holder for entry in entries), "the first has it all"
    broker.on_threads(lambda _name, _body: None, lambda _: None)
    # A broker with a planted fault is a separate package.
    delivery = importlib.import_module(type(queue).__module__.replace(".queue", ".delivery"))
    return Returning(queue, holder, subscriber, entries, delivery.attempt_delivery)


def case_of_returns(
    order: Order,
    threads: int,
    broker: Callable[[], Broker] = Broker,
) -> Case[Returning]:
    """Return the case on two threads, on three (each release its own) or on four."""

    def bodies(made: Returning) -> Mapping[str, Body]:
        first, second = made.entries
        if threads == 2:
            both: Body = partial(made.release, first, second)
            return {"releases": both, "deliveries": partial(made.deliver, 2)}
        releases: dict[str, Body] = {
            "release a": partial(made.release, first),
            "release b": partial(made.release, second),
        }
        if threads == 3:
            return {**releases, "deliveries": partial(made.deliver, 2)}
        return {**releases, "delivery 1": made.deliver, "delivery 2": made.deliver}

    def make_shared(_: Threads) -> Returning:
        return returning(order, broker())

    name = f"two releases against two deliveries on {threads} threads"
    return Case(name, make_shared, bodies, Returning.wrongs)
