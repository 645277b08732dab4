"""An inspection shows the consumers that walks find, and leaves their links unchanged."""

from __future__ import annotations

from brokerproof.reference import Broker
from brokerproof.reference.qpid.looks import placed, subscriptions_of
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.spec.messages import Credit, Fifo
from brokerproof.spec.protocol.operations import Cancel, Consume, Declare, Drain, Inspect


def with_a_gap() -> tuple[Broker, PullQueue]:
    """Return a broker and its queue, whose second consumer has left, without a walk since.

    Unlinking it is left to the next walk.
    """
    broker = Broker("qpid-pull")
    broker.handle(Declare(queue="q", order=Fifo()))
    for name in "abc":
        broker.handle(Consume(channel="ch", queue="q", consumer=name, credit=Credit(2)))
    broker.handle(Drain())
    broker.handle(Cancel(consumer="b"))
    queue = broker.queues["q"]
    assert isinstance(queue, PullQueue)
    return broker, queue


def linked(queue: PullQueue) -> list[int]:
    """Return which places are linked in the lists of all and of the interested, by identity."""
    lists = queue.subscriptions
    found = []
    for _, part in (*lists.all.value, *lists.interested.value):
        at = part.head.next.value
        while at is not None:
            found.append(id(at))
            at = at.next.value
    return found


def test_a_look_unlinks_nothing() -> None:
    broker, queue = with_a_gap()
    before = linked(queue)
    assert broker.handle(Inspect(queue="q")).inspection is not None
    assert linked(queue) == before


def test_a_walk_finds_the_same_and_unlinks() -> None:
    _, queue = with_a_gap()
    before = linked(queue)
    looked = subscriptions_of(queue)
    listed = [consumer for _, _, consumer in placed(queue.subscriptions)]
    assert looked == listed == list(queue.subscriptions.iterator())
    assert listed == list(queue.subscriptions.interested_iterator())
    assert linked(queue) != before
