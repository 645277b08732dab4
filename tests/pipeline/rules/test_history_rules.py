"""The records of the rules: what they name is known, and what they compare is not too much."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from brokerproof.pipeline.intervals.streams import ambiguous, contradictions
from brokerproof.pipeline.intervals.table import FIRST, GIVEN, ORDERED, PLACED, QUERY, SURE
from brokerproof.pipeline.rules.history_rules import RULES, Case, HistoryRule, Side
from brokerproof.pipeline.rules.several_messages import Columns, judged_by
from brokerproof.pipeline.stages import by_message, control_of
from brokerproof.spec.requirements import catalogue
from tests.pipeline.made_histories import history_table
from tests.pipeline.rules.test_kernels_agree import recording


def complaints(rules: Iterable[HistoryRule]) -> Iterator[str]:
    """Yield what is wrong with some records."""
    exercised = Counter[str]()
    for rule in rules:
        exercised.update(each.requirement for each in rule.cases if each.exercised is not None)
        for number, case in enumerate(rule.cases):
            if case.requirement not in catalogue():
                yield f"{rule.name}: {case.requirement} is no requirement"
            if bool(case.when) == (number == 0):
                yield f"{rule.name}: all cases but the first have a condition"
        if not rule.wrong and rule.formula is None:
            yield f"{rule.name}: neither words nor a formula say what is wrong"
        if rule.sides is not None and rule.formula is None:
            yield f"{rule.name}: its rows are compared by no formula"
    yield from (f"{each} is exercised in {n} ways" for each, n in exercised.items() if n > 1)


def test_the_records_have_all_that_is_asked_of_them() -> None:
    assert list(complaints(RULES.values())) == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"cases": (Case("get-found", "get"),)}, "get-found is no requirement"),
        ({"cases": (Case("get-finds", "get"),) * 2}, "all cases but the first have a condition"),
        ({"formula": None}, "its rows are compared by no formula"),
        ({"formula": None, "sides": None}, "neither words nor a formula"),
        ({"name": "another"}, "get-finds is exercised in 2 ways"),
    ],
)
def test_a_record_that_lacks_something_is_found_out(
    changes: dict[str, object], complaint: str
) -> None:
    known = RULES["found-nothing"]
    broken = dataclasses.replace(known, **changes)  # type: ignore[arg-type]
    both = [broken, *([known] if "name" in changes else [])]
    assert any(complaint in each for each in complaints(both))


WIDER: dict[str, tuple[str, dict[str, object]]] = {
    "equals of a selective consumer": (
        "overtakes-an-equal",
        {"early": Side((FIRST,)), "late": Side((FIRST | GIVEN,))},
    ),
    "streams with returned messages": (
        "overtakes-in-a-stream",
        dict.fromkeys(("early", "late"), Side((ORDERED | GIVEN | SURE,), without=QUERY)),
    ),
    "streams of a selective consumer": (
        "overtakes-in-a-stream",
        dict.fromkeys(("early", "late"), Side((FIRST | GIVEN | SURE,), without=QUERY)),
    ),
    "urgency for a selective consumer": (
        "overtakes-what-waits",
        {"early": Side((PLACED,)), "late": Side((PLACED | GIVEN,))},
    ),
    "urgency of each level": ("overtakes-what-waits", {"level": "any"}),
    "returns to any place": (
        "overtakes-what-returned",
        {"early": Side((ORDERED,)), "late": Side((ORDERED | GIVEN,))},
    ),
    "returns of each level": ("overtakes-what-returned", {"level": "any"}),
}
"""Sides that compare more rows than a record does, by what they forget."""


@pytest.fixture(scope="module")
def sound() -> Columns:
    """The waiting intervals of recordings of sound queues."""
    history = history_table(seed for seed in range(1500) if recording(seed)[1])
    control = control_of(history)
    torn = ambiguous(contradictions(history, control))
    return Columns.of(by_message(history, control, torn).intervals)


def test_no_rule_accuses_a_sound_queue(sound: Columns) -> None:
    for rule in RULES.values():
        if rule.sides is not None:
            assert sum(wrong.num_rows for wrong in judged_by(rule, sound)) == 0, rule.name


@pytest.mark.parametrize("forgotten", WIDER)
def test_a_rule_that_compares_too_much_accuses_one(forgotten: str, sound: Columns) -> None:
    name, changes = WIDER[forgotten]
    rule = RULES[name]
    assert rule.sides is not None
    sides = dataclasses.replace(rule.sides, **changes)  # type: ignore[arg-type]
    wider = dataclasses.replace(rule, sides=sides)
    assert sum(wrong.num_rows for wrong in judged_by(wider, sound)) > 0
