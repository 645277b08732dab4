"""The defects of ActiveMQ 5.1.0, each alone: what of the promises and of the inside each breaks.

Two defects that break the same could not be told apart by a report. What the embedded queue breaks
with each is recorded here, as the gate finds it under tiny sizes within a small budget; a row that
is empty says that this defect alone breaks nothing there.
"""

from __future__ import annotations

import itertools

import pytest

from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.gate.threads_stage import REQUIREMENTS as CONCURRENT
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.reference import make
from brokerproof.spec.requirements import catalogue

SIZES = "memory=1100&page=4&depth=0&word=1"
"""Room for one message, and an audit that remembers one number."""

BUDGET = Budget(200, 100)

BREAKS: dict[str, set[str]] = {
    "audit=5.1": {"AMQ-I1", "AMQ-I9", "AMQ-I10", "AMQ-I20", "nothing-lost", "documented-steps"},
    "read=advance": {"AMQ-I1", "nothing-lost", "documented-steps"},
    "read=document": set(),
    "read=printed": set(),
    "detached=accepted": {"AMQ-I2", "AMQ-I3", "nothing-lost", "documented-steps"},
    "pages=inflight": set(),
    "duplicates=counted": set(),
    "paged=replaced": {"AMQ-I3", "AMQ-I6", "AMQ-I14", "nothing-twice", "documented-steps"},
    "in_flight=stays": {"nothing-lost"},
    "classes=apart": {"fifo-order"},
    "levels=together": {"AMQ-I24", "priority-order"},
    "room=percent": {"nothing-lost"},
    "cache=unplaced": {"documented-steps"},
    "passes=once": {"quiescence", "credit-used"},
}
"""What each rule of 5.1.0 breaks, alone."""

OF_5_1_0 = ("audit=5.1", "read=advance", "detached=accepted")
"""The three defects of the release that lose messages each by itself."""


def broken_with(rule: str) -> set[str]:
    """Return what the gate finds broken of the queue with one rule changed."""
    address = f"activemq-cursor?{SIZES}" + (f"&{rule}" if rule else "")

    subject = Subject(address, make(address).hello(), lambda: make(address), in_process=True)
    asked = {name: each for name, each in catalogue().items() if name not in CONCURRENT}
    report = run_gate(subject, asked, BUDGET, seed=0)
    return {each.requirement.id for each in report.verdicts if each.outcome is Outcome.BROKEN}


def same_harm(table: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the pairs of the three defects that break the same, which a report cannot tell."""
    pairs = itertools.combinations(OF_5_1_0, 2)
    return [(one, other) for one, other in pairs if table[one] == table[other]]


def test_the_three_defects_are_told_apart() -> None:
    assert same_harm(BREAKS) == []
    assert all(BREAKS[each] for each in OF_5_1_0)
    alike = {**BREAKS, "audit=5.1": BREAKS["read=advance"]}
    assert same_harm(alike) == [("audit=5.1", "read=advance")]


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["", *BREAKS])
def test_a_defect_breaks_what_is_recorded(rule: str) -> None:
    assert broken_with(rule) == BREAKS.get(rule, set())
