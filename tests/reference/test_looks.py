"""A look at a queue shows what its own walks find, and leaves everything linked as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from brokerproof.reference import make
from brokerproof.reference.looks import entries_in, subscriptions_of
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    Consume,
    Declare,
    Drain,
    Inspect,
    Publish,
)

if TYPE_CHECKING:
    from brokerproof.reference.broker import Broker
    from brokerproof.reference.queue import Queue

SYSTEMS = ("qpid-push", "qpid-pull")


def with_gaps(address: str, order: Order) -> Broker:
    """Return a broker with a message gone from the middle, and a consumer, whom nobody walked by.

    Unlinking what is gone is left to the next who comes by, so both are still linked.
    """
    broker = make(address)
    broker.handle(Declare(queue="q", order=order))
    for number in range(5):
        broker.handle(Publish(queue="q", message=Message(id=f"m{number}", priority=number % 2)))
    for name in "abc":
        consume = Consume(channel="ch", queue="q", consumer=name, credit=Credit(2))
        broker.handle(consume)
    broker.handle(Drain())
    middle = sorted(broker.outbox.unsettled)[1]
    broker.handle(Acknowledge(delivery=middle))
    broker.handle(Cancel(consumer="b"))
    return broker


def linked(queue: Queue) -> list[int]:
    """Return which things are linked, by identity, in all lists that walks unlink from."""
    lists: list[Any] = [*queue.entries.sub_lists()]
    parts = getattr(queue.subscriptions, "all", None)
    lists += [queue.subscriptions] if parts is None else [part for _, part in parts.value]
    found = []
    for each in lists:
        at = each.head.next.value
        while at is not None:
            found.append(id(at))
            at = at.next.value
    return found


@pytest.mark.parametrize("order", [Fifo(), Priority(2)], ids=str)
@pytest.mark.parametrize("address", SYSTEMS)
def test_a_look_shows_what_a_walk_finds_and_unlinks_nothing(address: str, order: Order) -> None:
    broker = with_gaps(address, order)
    queue = broker.queues["q"]
    before = linked(queue)
    assert broker.handle(Inspect(queue="q")).inspection is not None
    entries, subscriptions = entries_in(queue), subscriptions_of(queue)
    assert linked(queue) == before
    assert entries == list(queue.entries.iterator())
    assert subscriptions == list(queue.subscriptions.iterator())
    assert linked(queue) != before, "a walk unlinks, or nothing was there to be unlinked"
