"""Priorities as one backing queue each: PQ2 to PQ7 by example, and the mistakes that break them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from brokerproof.reference import make
from brokerproof.spec.messages import Message, Priority
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import CloseChannel, Declare, Get, Publish, Reset
from tests.faults.overlay import Edit, plant

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokerproof.reference import Broker
    from brokerproof.reference.rabbitmq.process.queue import QueueProcess
    from brokerproof.spec.protocol.candidate import Candidate

ADDRESS = "rabbitmq-paging?segment=2&batch=1&journal=2&file=100&target=0"
SUB_QUEUES = "rabbitmq/process/sub_queues.py"


class Levels:
    """A queue of three levels, and the order in which it gives its messages."""

    def __init__(self, broker: Candidate) -> None:
        self.broker = broker
        self.published = 0
        assert broker.handle(Reset()).ok
        assert broker.handle(Declare(queue="q", order=Priority(levels=3))).ok

    def publish(self, *priorities: int) -> None:
        """Publish messages named by their priority and their number."""
        for priority in priorities:
            message = Message(id=f"{priority}.{self.published}", priority=priority)
            self.published += 1
            assert self.broker.handle(Publish(queue="q", message=message)).ok

    def get(self, count: int) -> list[str]:
        """Take so many messages, which stay with one channel; nothing where there is none."""
        told = []
        for _ in range(count):
            answer = self.broker.handle(Get(channel="ch", queue="q"))
            assert answer.ok
            told += [event.message for event in answer.events if isinstance(event, Delivered)]
        return told

    def close(self) -> None:
        """Give all back."""
        assert self.broker.handle(CloseChannel(channel="ch")).ok

    def lengths(self) -> list[int]:
        """Return how many messages each level has ready, the highest first."""
        queue = cast("QueueProcess", cast("Broker", self.broker).queues["q"])
        return [each.length for each in queue.sub_queues.by_level.values()]


def pq2(levels: Levels) -> bool:
    """There is something as long as any level has something."""
    levels.publish(0, 1)
    return sum(levels.lengths()) == len(levels.get(5)) == 2


def pq3(levels: Levels) -> bool:
    """The highest level first, and each in its order."""
    levels.publish(0, 2, 1, 2, 0)
    return levels.get(5) == ["2.1", "2.3", "1.2", "0.0", "0.4"]


def pq4(levels: Levels) -> bool:
    """Returned messages go to their own level, though tags of several levels are alike."""
    levels.publish(2, 0, 1)
    levels.get(2)
    levels.close()
    return levels.lengths() == [1, 1, 1]


def pq6(levels: Levels) -> bool:
    """Returned messages come again before all of lower priority."""
    levels.publish(1, 0, 2)
    levels.get(2)
    levels.publish(1)
    levels.close()
    return levels.get(4) == ["2.2", "1.0", "1.3", "0.1"]


def pq7(levels: Levels) -> bool:
    """Beyond the highest level is the highest level."""
    levels.publish(3, 9, 2, 4)
    return levels.get(4) == ["3.0", "9.1", "2.2", "4.3"]


RULES: dict[str, Callable[[Levels], bool]] = {
    "PQ2": pq2,
    "PQ3": pq3,
    "PQ4": pq4,
    "PQ6": pq6,
    "PQ7": pq7,
}

MISTAKES = {
    "PQ2": Edit(
        SUB_QUEUES,
        "            if fetched is not None:\n",
        "            if fetched is None:\n                return None\n            if fetched:\n",
    ),
    "PQ3": Edit(
        SUB_QUEUES,
        "for level, queue in self.by_level.items():\n            fetched",
        "for level, queue in reversed(self.by_level.items()):\n            fetched",
    ),
    "PQ4": Edit(
        SUB_QUEUES,
        "            parts[tag.level].append(tag.seq)\n",
        "            parts[min(parts)].append(tag.seq)\n",
    ),
    "PQ6": Edit(
        SUB_QUEUES,
        "lambda queue, seqs: queue.requeue(seqs))",
        "lambda queue, seqs: [self.by_level[0].publish(each.msg_id, queue.holdings.read_message("
        "each)) for each in map(queue.pending.__getitem__, seqs)])",
    ),
    "PQ7": Edit(SUB_QUEUES, '"clamp")', '"amqp")'),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_priority_queue_keeps(rule: str) -> None:
    assert RULES[rule](Levels(make(ADDRESS)))


@pytest.mark.parametrize("rule", MISTAKES)
def test_a_planted_mistake_breaks(rule: str) -> None:
    levels = Levels(plant([MISTAKES[rule]], ADDRESS)())
    try:
        kept = RULES[rule](levels)
    except (KeyError, AssertionError):
        kept = False
    assert not kept
