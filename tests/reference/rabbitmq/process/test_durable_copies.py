"""Copies of a broker with a disk: independent, with equal fingerprints and power losses.

Random walks; each is compared with its copy, and with a broker whose sizes never make it page:
clients may see no difference.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference import make
from brokerproof.reference.durable_broker import PoweredBroker
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Release,
    Restart,
    SetCredit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = "rabbitmq-paging"
TIGHT = "rabbitmq-paging?segment=2&batch=1&journal=3&file=120&target=1"
TORN = "rabbitmq-paging?segment=1&batch=2&journal=1&file=1&target=0&unsynced=torn&runner=drain"


class Walk:
    """Operations drawn one after the other, whatever broker carries them out."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - variety, no secrets
        self.published = 0
        self.consumers = 0
        self.deliveries: list[str] = []

    def start(self) -> list[Operation]:
        """Return the first operations of each walk."""
        return [
            Declare(queue="q", order=Fifo(), durable=True),
            Declare(queue="p", order=Priority(levels=2), durable=True),
        ]

    def heard(self, answer: Answer) -> None:
        """Note the deliveries of an answer."""
        self.deliveries += [e.delivery for e in answer.events if isinstance(e, Delivered)]

    def next(self) -> list[Operation]:
        """Return the next operation."""
        queue = self.draw.choice("qp")
        return self.draw.choice(self._kinds())(queue)

    def _kinds(self) -> list[Callable[[str], list[Operation]]]:
        return [
            *(self._publish,) * 4,
            *(self._get,) * 2,
            *(self._settle,) * 3,
            self._consume,
            lambda _: [SetCredit(consumer=f"c{self.consumers}", messages=2)],
            lambda _: [CloseChannel(channel=self.draw.choice("xy"))],
            lambda queue: [Purge(queue=queue)] if self.draw.random() < 0.2 else [Drain()],
            lambda _: [Crash(), Restart()] if self.draw.random() < 0.3 else [Drain()],
        ]

    def _publish(self, queue: str) -> list[Operation]:
        self.published += 1
        message = Message(
            id=f"m{self.published}",
            priority=self.draw.choice((0, 4)),
            persistent=self.draw.random() < 0.7,
        )
        return [Publish(queue=queue, message=message)]

    def _get(self, queue: str) -> list[Operation]:
        return [Get(channel=self.draw.choice("xy"), queue=queue)]

    def _settle(self, _: str) -> list[Operation]:
        if not self.deliveries:
            return [Drain()]
        delivery = self.deliveries.pop(self.draw.randrange(len(self.deliveries)))
        return [self.draw.choice((Acknowledge, Release))(delivery=delivery)]

    def _consume(self, queue: str) -> list[Operation]:
        self.consumers += 1
        return [
            Consume(
                queue=queue,
                channel=self.draw.choice("xy"),
                consumer=f"c{self.consumers}",
                credit=Credit(self.draw.choice((0, 1, 2))),
                priority=self.draw.choice((0, 1)),
            )
        ]


def broker_at(address: str) -> PoweredBroker:
    broker = make(address)
    assert isinstance(broker, PoweredBroker)
    return broker


@pytest.mark.parametrize("address", [TIGHT, TORN])
@pytest.mark.parametrize("seed", range(12))
def test_a_copy_goes_on_like_its_original_and_without_it(address: str, seed: int) -> None:
    walk, original = Walk(seed), broker_at(address)
    for operation in walk.start():
        assert original.handle(operation).ok
    moved = 0
    for _ in range(60):
        copy, before = original.fork(), original.fingerprint()
        assert copy.fingerprint() == before
        for operation in walk.next():
            answer = copy.handle(operation)
            told = original.handle(operation)
            assert told == answer
            walk.heard(told)
        if copy.fingerprint() != before:
            moved += 1
        assert copy.fingerprint() == original.fingerprint()
    assert moved > 20, "of states that are all named alike, nothing is told"


@pytest.mark.parametrize("seed", range(25))
def test_sizes_are_invisible(seed: int) -> None:
    walk, large, tight = Walk(seed), broker_at(LARGE), broker_at(TIGHT)
    for operation in walk.start():
        assert large.handle(operation).ok
        assert tight.handle(operation).ok
    for _ in range(80):
        for operation in walk.next():
            expected = large.handle(operation)
            assert tight.handle(operation) == expected, operation
            walk.heard(expected)


@pytest.mark.parametrize("address", [TIGHT, TORN])
def test_where_the_power_goes_the_broker_is_down_and_comes_back(address: str) -> None:
    walk, original = Walk(3), broker_at(address)
    for operation in walk.start():
        original.handle(operation)
    cut_off = 0
    for _ in range(90):
        for operation in walk.next():
            whole = original.fork()
            before = whole.changes()
            whole.handle(operation)
            for changes in range(whole.changes() - before):
                copy = original.fork()
                copy.power_lasts(changes)
                answer = copy.handle(operation)
                assert answer.error is not None
                assert answer.error.code == "crashed"
                refused = copy.handle(Drain()).error
                assert refused is not None
                assert copy.handle(Restart()).ok
                assert copy.handle(Drain()).ok
                cut_off += 1
            walk.heard(original.handle(operation))
    assert cut_off > 100


def test_a_copy_is_cut_off_without_its_original() -> None:
    original = broker_at(TIGHT)
    original.handle(Declare(queue="q", order=Fifo(), durable=True))
    copy = original.fork()
    copy.power_lasts(0)
    message = Message(id="m", persistent=True)
    assert not copy.handle(Publish(queue="q", message=message)).ok
    assert original.handle(Publish(queue="q", message=message)).ok
    assert copy.is_down
    assert not original.is_down
