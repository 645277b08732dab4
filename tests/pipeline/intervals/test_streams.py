"""The cheap look at streams passes nothing that contradicts itself, and passes what is in order."""

from __future__ import annotations

import random

import pytest

from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.streams import (
    ClockStep,
    are_in_order,
    clock_step,
    contradictions,
    stretches,
)
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import recorded, table_of


def deliveries(seed: int) -> list[Record]:
    """Return deliveries to two consumers; some positions may come twice or go against time."""
    chance = random.Random(seed)  # noqa: S311
    given = []
    for number in range(chance.randint(2, 8)):
        start = 10 * number + chance.randint(0, 6)
        position = number + (chance.choice((-1, 1)) if chance.random() < 0.2 else 0)
        given.append(
            recorded(
                "deliver",
                start,
                start + chance.randint(1, 12),
                message=f"m{number}",
                consumer=chance.choice("cd"),
                position=max(0, position),
            )
        )
    if chance.random() < 0.3:
        chance.shuffle(given)
    return given


def in_parts(records: list[Record], many: int) -> bool:
    """Return what the cheap look says of records that are read in so many parts."""
    size = -(-len(records) // many)
    parts = [records[at : at + size] for at in range(0, len(records), size)]
    return are_in_order([stretches(table_of(part)) for part in parts])


@pytest.mark.parametrize("many", [1, 2, 3])
def test_what_the_cheap_look_passes_contradicts_itself_nowhere(many: int) -> None:
    said = {True: 0, False: 0}
    nothing = Control.of([])
    for seed in range(300):
        records = deliveries(seed)
        passed = in_parts(records, many)
        wrong = contradictions(table_of(records), nothing).num_rows
        said[passed] += 1
        assert not (passed and wrong), (seed, records)
    assert min(said.values()) > 50, said


def test_parts_in_any_order_are_passed() -> None:
    given = [
        Record(op="deliver", queue="q", message=f"m{n}", consumer="c", position=n, start=n, end=n)
        for n in range(6)
    ]
    assert in_parts([*given[3:], *given[:3]], 2)
    assert not in_parts([*given[3:], *given[2:5]], 2)
    late = Record(op="deliver", queue="q", message="m9", consumer="c", position=9, start=1, end=2)
    assert not in_parts([*given, late], 1)
    assert not in_parts([*given[:4], late], 5)


def steady(*, back: int, at: int) -> list[Record]:
    """Return deliveries that take 4 each, one every 10, by a clock that goes back once."""
    starts = [1000 + 10 * n - (back if n >= at else 0) for n in range(60)]
    return [
        recorded("deliver", start, start + 4, message=f"m{n}", consumer="c", position=n)
        for n, start in enumerate(starts)
    ]


@pytest.mark.parametrize("at", [1, 30, 59])
def test_a_clock_that_goes_back_is_told_once_with_its_place_and_size(at: int) -> None:
    for back in (0, 9, 15, 100, 350):
        table = table_of(steady(back=back, at=at))
        found = contradictions(table, Control.of([]))
        seen = max(0, back - 14)  # from the start before it to the end after it
        place = table.column("place")[at].as_py()
        assert clock_step(found) == (ClockStep(seen, place) if seen else None)
        assert bool(found.num_rows) == bool(seen)
