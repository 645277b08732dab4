"""The assertions within an operation are made, and name the rule that a tampered queue breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.paging import Parameters
from brokerproof.reference.rabbitmq.paging.statuses import InvariantBroken
from brokerproof.spec.invariants import invariants
from tests.reference.rabbitmq.paging.paging_bench import PagingBench

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.paging import VariableQueue


def queue_with_one_in_q3() -> VariableQueue:
    bench = PagingBench(Parameters(segment=2, batch=1))
    bench.publish()
    bench.set_target(0)
    assert len(bench.queue.q3) == 1
    return bench.queue


@pytest.mark.parametrize(("place", "rule"), [("q2", "F1"), ("q4", "F2")])
def test_the_last_of_q3_leaves_nothing_behind_that_should_not_be_there(
    place: str, rule: str
) -> None:
    queue = queue_with_one_in_q3()
    getattr(queue, place).append(queue.q3[0])
    with pytest.raises(InvariantBroken) as raised:
        queue._fetch_from_q3()
    assert raised.value.id == rule
    assert str(raised.value) == f"{rule}: {invariants()[rule].statement}"


def test_a_part_of_delta_with_more_in_the_index_than_delta_counts_is_refused() -> None:
    bench = PagingBench(Parameters(segment=2, batch=1))
    for _ in range(4):
        bench.publish()
    bench.set_target(0)
    bench.settle()
    bench.queue.delta = replace(bench.queue.delta, count=1)
    bench.queue.fetch(ack_required=True)
    with pytest.raises(InvariantBroken, match="R1"):
        bench.queue.fetch(ack_required=True)


def test_a_position_is_not_written_before_its_body() -> None:
    bench = PagingBench()
    bench.publish()
    with pytest.raises(InvariantBroken, match="W1"):
        bench.queue.holdings.write_index(bench.queue.q4[0])
