"""Violations as counterexamples: the gate's oracle, asked about one, names the same promise."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.pipeline.explain.explanations import counterexample_of
from brokerproof.pipeline.explain.history_report import BY_TIME, JUDGED
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.rules.violations import RULES
from brokerproof.spec.requirements import catalogue

SHOWS = {
    "given-before-published": ("nothing-invented",),
    "never-published": ("nothing-invented",),
    "held-by-two": ("nothing-twice", "settled-once"),
    "told-as-new": ("redelivered-flag",),
    "shown-while-held": ("browser-sees-available",),
    "shown-again": ("browser-once", "browser-never-rewound"),
    "left-behind": (
        "nothing-lost",
        "browser-takes-nothing",
        "close-releases",
        "settled-once",
        "survives-restart",
    ),
    "found-nothing": ("get-finds",),
    "found-nothing-of-several": ("get-finds",),
    "left-behind-of-several": ("nothing-lost",),
    "kept-after-a-purge": ("purge-drops",),
    "kept-after-a-deletion": ("delete-drops",),
    "kept-after-a-crash": ("transient-is-lost",),
    "more-than-the-window": ("credit-not-exceeded",),
    "overtakes-in-a-stream": ("fifo-order", "browser-in-order"),
    "overtakes-what-waits-in-a-stream": ("priority-order", "release-rewinds"),
    "overtakes-an-equal": ("fifo-order",),
    "overtakes-what-waits": ("priority-order", "release-rewinds"),
    "overtakes-what-returned": ("release-rewinds", "fifo-order"),
    "overtakes-some-that-wait": ("priority-order",),
    "stalled": ("quiescence",),
}
"""Which requirements each rule can show broken."""


def violation(rule: str, requirement: str) -> Violation:
    return Violation(requirement, "run", "q", "m0", rule, "m1", (10, 20), (3, 30))


@pytest.mark.parametrize(
    ("rule", "requirement"), [(rule, each) for rule, names in SHOWS.items() for each in names]
)
def test_the_oracle_names_the_same_promise(rule: str, requirement: str) -> None:
    found = counterexample_of(violation(rule, requirement), "night.parquet")
    assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
    assert msgspec.json.decode(msgspec.json.encode(found), type=Counterexample) == found


@pytest.mark.parametrize(
    ("rule", "requirement"),
    [
        ("found-nothing-of-several", "get-finds"),
        ("left-behind-of-several", "nothing-lost"),
        ("overtakes-some-that-wait", "priority-order"),
    ],
)
@pytest.mark.parametrize("many", [2, 3, 5])
def test_all_that_took_turns_are_in_the_run(rule: str, requirement: str, many: int) -> None:
    turns = tuple(f"m{number}" for number in range(1, many + 1))
    told = replace(violation(rule, requirement), witness=turns[-1], turns=turns)
    found = counterexample_of(told, "night.parquet")
    assert found.witnesses == ("m0", *turns)
    assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
    sound = msgspec.structs.replace(found, steps=found.steps[:-1])
    assert rejudge(sound, frozenset(catalogue())).outcome is Replay.KEPT
    assert ", then ".join(turns) in found.seen


def test_without_its_last_step_a_run_shows_nothing() -> None:
    for rule, names in SHOWS.items():
        found = counterexample_of(violation(rule, names[0]), "night.parquet")
        sound = msgspec.structs.replace(found, steps=found.steps[:-1])
        assert rejudge(sound, frozenset(catalogue())).outcome is Replay.KEPT, rule


def test_every_rule_is_explained_and_every_requirement_is_shown_by_one() -> None:
    assert set(SHOWS) == set(RULES)
    assert {name for names in SHOWS.values() for name in names} == {*JUDGED, BY_TIME}
