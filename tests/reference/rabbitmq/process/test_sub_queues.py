"""One queue of several levels: its cost, its idle work, and the number of levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokerproof.reference import broker
from brokerproof.reference.rabbitmq.paging import Node, Parameters, SimulatedDisk
from brokerproof.reference.rabbitmq.process.sub_queues import SubQueues, Tag, names_of
from brokerproof.spec.messages import Priority
from brokerproof.spec.protocol.operations import Declare
from tests.reference.front.reference_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from brokerproof.reference.rabbitmq.paging import VariableQueue

LEVELS = Priority(levels=3)
MESSAGES = 4


class Counted(list[Tag]):
    """Tags, and how many of them were looked at."""

    looked_at = 0

    def __iter__(self) -> Iterator[Tag]:
        for tag in super().__iter__():
            self.looked_at += 1
            yield tag


def queues() -> SubQueues:
    """Return three empty levels."""
    node = Node(SimulatedDisk(), Parameters(segment=2, batch=1))
    names = names_of("q", LEVELS)
    return SubQueues(
        LEVELS, {level: node.declare(name, durable=False) for level, name in names.items()}
    )


def filled() -> SubQueues:
    """Return three levels with a few messages each."""
    made = queues()
    for number in range(MESSAGES * LEVELS.levels):
        msg_id = number.to_bytes(16, "big")
        made.publish(number % LEVELS.levels, msg_id, b"", persistent=False, confirm=False)
    return made


def test_each_of_many_tags_is_looked_at_once() -> None:
    sub_queues = filled()
    tags = Counted()
    while (fetched := sub_queues.fetch(ack_required=True)) is not None:
        assert fetched.tag is not None
        tags.append(fetched.tag)
    sub_queues.acknowledge(tags)
    assert tags.looked_at == len(tags) == MESSAGES * LEVELS.levels


def test_tags_that_are_sought_for_each_level_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def partition(
        sub_queues: SubQueues,
        tags: Iterable[Tag],
        carry_out: Callable[[VariableQueue, list[int]], object],
    ) -> None:
        for level, queue in sub_queues.by_level.items():
            carry_out(queue, [tag.seq for tag in tags if tag.level == level])

    monkeypatch.setattr(SubQueues, "_partition", partition)
    with pytest.raises(AssertionError):
        test_each_of_many_tags_is_looked_at_once()


def test_at_rest_every_level_has_paged_all_that_is_due() -> None:
    sub_queues = filled()
    for queue in sub_queues.by_level.values():
        queue.set_target(0)
    assert any(queue.ram_count for queue in sub_queues.by_level.values())
    sub_queues.come_to_rest()
    assert not any(queue.ram_count for queue in sub_queues.by_level.values())


def test_paging_that_does_not_go_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def once(sub_queues: SubQueues) -> None:
        for queue in sub_queues.by_level.values():
            if queue.needs_timeout() is not None:
                queue.timeout()

    monkeypatch.setattr(SubQueues, "come_to_rest", once)
    with pytest.raises(AssertionError):
        test_at_rest_every_level_has_paged_all_that_is_due()


def test_there_are_so_many_levels_and_no_more() -> None:
    bench = Bench("rabbitmq-paging")
    for levels, is_taken in ((0, False), (1, True), (10, True), (11, False)):
        answer = bench.do(Declare(queue=f"of {levels}", order=Priority(levels=levels)))
        assert answer.ok is is_taken


def test_any_number_of_levels_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "unclaimed", lambda _operation, _claims: "")
    with pytest.raises(AssertionError):
        test_there_are_so_many_levels_and_no_more()
