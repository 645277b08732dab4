"""What is given again: it had come back, and is told so, or it is given twice."""

from __future__ import annotations

from typing import Literal

import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import recorded, table_of
from tests.pipeline.rules.naive import judged_naively


def given_again(
    settled: Literal["acknowledge", "release"] | None, *, told: bool, answered: bool = True
) -> list[Record]:
    """Return a history in which m goes to a, is settled or not, and then goes to b."""
    deliveries = [
        recorded(
            "deliver", start, start + 1, message="m", consumer=name, position=0, redelivered=again
        )
        for name, start, again in (("a", 10, False), ("b", 30, told))
    ]
    records = [
        Record(op="declare", queue="q", start=0, end=1),
        Record(op="publish", queue="q", message="m", start=2, end=3),
        *deliveries,
    ]
    if settled is not None:
        records.append(
            Record(
                op=settled,
                queue="q",
                message="m",
                consumer="a",
                position=0,
                start=20,
                end=21 if answered else None,
                outcome="ok" if answered else "unknown",
            )
        )
    return records


def broken(records: list[Record]) -> set[str]:
    """Return the requirements that a history breaks, as both say who judge it."""
    table = table_of(records)
    kernels = set(judged_alone(table).violations.column("requirement").to_pylist())
    assert kernels == {each.requirement for each in judged_naively(records)}
    return kernels


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("settled", [None, "acknowledge"])
def test_what_never_came_back_is_given_twice_whatever_its_flag_says(
    settled: Literal["acknowledge"] | None, told: bool
) -> None:
    assert broken(given_again(settled, told=told)) == {"nothing-twice"}


@pytest.mark.parametrize("answered", [False, True])
def test_the_flag_is_wrong_where_the_message_may_have_come_back(answered: bool) -> None:
    assert broken(given_again("release", told=False, answered=answered)) == {"redelivered-flag"}
    assert broken(given_again("release", told=True, answered=answered)) == set()


def test_the_flag_is_asked_only_of_what_may_have_come_back() -> None:
    asked = []
    for settled in (None, "release"):
        records = given_again(settled, told=True)
        table = table_of(records)
        asked.append(judged_alone(table).coverage["redelivered-flag"])
    assert asked == [0, 1]
