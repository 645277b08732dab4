"""Violations as counterexamples: the gate's oracle, asked about one, names the same promise."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.search.counterexamples import Counterexample
from brokerproof.pipeline.explain.explanations import counterexample_of
from brokerproof.pipeline.explain.least_runs import Script, Values
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.spec.requirements import catalogue

SHOWN = [(rule.name, case.requirement) for rule in RULES.values() for case in rule.cases]
"""Each rule, under each requirement that it can show broken."""


def violation(rule: str, requirement: str) -> Violation:
    return Violation(requirement, "run", "q", "m0", rule, "m1", (10, 20), (3, 30))


@pytest.mark.parametrize(("rule", "requirement"), SHOWN)
def test_the_oracle_names_the_same_promise(rule: str, requirement: str) -> None:
    found = counterexample_of(violation(rule, requirement), "night.parquet")
    assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
    assert msgspec.json.decode(msgspec.json.encode(found), type=Counterexample) == found


@pytest.mark.parametrize(
    ("rule", "requirement"), [pair for pair in SHOWN if RULES[pair[0]].each_moment]
)
@pytest.mark.parametrize("many", [2, 3, 5])
def test_all_that_took_turns_are_in_the_run(rule: str, requirement: str, many: int) -> None:
    chain = tuple(f"m{number}" for number in range(1, many + 1))
    told = replace(violation(rule, requirement), witness=chain[-1], chain=chain)
    found = counterexample_of(told, "night.parquet")
    assert found.witnesses == ("m0", *chain)
    assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
    sound = msgspec.structs.replace(found, steps=found.steps[:-1])
    assert rejudge(sound, frozenset(catalogue())).outcome is Replay.KEPT
    assert ", then ".join(chain) in found.seen


def test_without_its_last_step_a_run_shows_nothing() -> None:
    for rule, requirement in SHOWN:
        found = counterexample_of(violation(rule, requirement), "night.parquet")
        sound = msgspec.structs.replace(found, steps=found.steps[:-1])
        assert rejudge(sound, frozenset(catalogue())).outcome is Replay.KEPT, rule


def test_a_step_that_is_no_step_is_refused() -> None:
    script = Script(violation("found-nothing", "get-finds"), Values())
    with pytest.raises(ValueError, match="no step of a least run: declaim"):
        script.take("declaim")
