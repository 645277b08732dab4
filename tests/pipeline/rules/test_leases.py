"""Leases and queues without an order: sound ones are not accused, and leases that end early are.

The kernels and the naive evaluator say the same of them.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.spec.histories import Record
from tests.pipeline.plain_queues import BROKEN_BY_LEASES, Fault, Shape
from tests.pipeline.random_histories import simulated
from tests.pipeline.recorders import blurred, sharp
from tests.pipeline.rules.naive import judged_naively
from tests.pipeline.rules.test_kernels_agree import judged

SHAPE = Shape(leases=0.8, unordered=0.3, steps=70, drained=0.5)
SEEDS = range(60)


@pytest.mark.each_time(2)
@pytest.mark.parametrize("width", [0, 5, 30, 100])
def test_a_sound_queue_with_leases_is_not_accused(width: int) -> None:
    lapsed = 0
    for seed in SEEDS:
        simulation = simulated(seed, SHAPE)
        lapsed += any(each.record.op == "extend" for each in simulation.happened)
        records = blurred(simulation.happened, seed, width, natural=bool(seed % 2))
        assert judged(records, range(1, len(records) + 1)) == set(), seed
    assert lapsed > len(SEEDS) / 2


@pytest.mark.each_time(1)
@pytest.mark.parametrize("fault", [None, *BROKEN_BY_LEASES])
def test_kernels_and_the_naive_evaluator_agree_on_leases(fault: Fault | None) -> None:
    for seed in SEEDS:
        simulation = simulated(seed, SHAPE, fault)
        records = blurred(simulation.happened, seed, (seed * 7) % 60, natural=bool(seed % 2))
        places = range(1, len(records) + 1)
        assert judged(records, places) == set(judged_naively(records, places)), seed


@pytest.mark.each_time(1)
@pytest.mark.parametrize(("fault", "requirement"), BROKEN_BY_LEASES.items())
def test_a_lease_that_ends_early_is_found(fault: Fault, requirement: str) -> None:
    found = 0
    for seed in range(100):
        simulation = simulated(seed, SHAPE, fault)
        records = sharp(simulation.happened)
        named = {each.requirement for each in judged(records, range(1, len(records) + 1))}
        found += requirement in named
    assert found > 5


def given(message: str, consumer: str, start: int, end: int) -> Record:
    """Return the first delivery to a consumer."""
    return Record(
        op="deliver",
        queue="q",
        message=message,
        consumer=consumer,
        position=0,
        start=start,
        end=end,
    )


def a_lease_that_ends(*, lease: int | None, again: int, renewed: bool = False) -> list[Record]:
    """Return a history in which a message is delivered from 10 to 12, and again at `again`."""
    records = [
        Record(op="declare", queue="q", start=0, end=1, lease=lease),
        Record(op="publish", queue="q", message="m", start=2, end=3),
        given("m", "a", 10, 12),
        given("m", "b", again, again),
    ]
    if renewed:
        records.append(replace(given("m", "a", 20, 21), op="extend"))
    return records


@pytest.mark.parametrize(
    ("lease", "again", "renewed", "broken"),
    [
        (None, 200, False, True),
        (30, 39, False, True),
        (30, 40, False, False),
        (30, 49, True, True),
        (30, 50, True, False),
        (5, 40, True, False),
    ],
)
def test_a_message_may_come_back_when_its_lease_is_over(
    lease: int | None, again: int, *, renewed: bool, broken: bool
) -> None:
    records = a_lease_that_ends(lease=lease, again=again, renewed=renewed)
    named = {each.requirement for each in judged(records, range(1, len(records) + 1))}
    assert named == ({"nothing-twice"} if broken else set())


def test_an_unordered_queue_is_not_asked_for_order() -> None:
    records = [
        Record(op="declare", queue="q", start=0, end=1),
        Record(op="publish", queue="q", message="m1", start=2, end=3),
        Record(op="publish", queue="q", message="m2", start=4, end=5),
        given("m2", "a", 10, 12),
        given("m1", "b", 20, 22),
    ]
    places = range(1, len(records) + 1)
    assert {each.requirement for each in judged(records, places)} == {"fifo-order"}
    records[0] = replace(records[0], unordered=True)
    assert judged(records, places) == set()
