"""What the planted faults' counterexamples recorded is judged again as it was found, and drawn."""

from __future__ import annotations

import functools

import msgspec
import pytest

from brokerproof.checks.counterexamples import Counterexample
from brokerproof.checks.gate import Budget, run_gate
from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.reporting.diagram import diagram_of
from brokerproof.checks.step_conformance import REQUIREMENT
from brokerproof.checks.subjects import Subject
from brokerproof.spec.requirements import catalogue
from tests.faults.catalogue import faults

OPERATIONS_MAX = 125
CHOSEN = [
    each.id for each in faults().values() if each.operations <= OPERATIONS_MAX and not each.examples
]
"""The faults that show at once; all others are of the same kinds."""


@functools.cache
def found_broken(fault_id: str) -> tuple[Counterexample, ...]:
    """Return what the gate finds broken in a faulty broker, with its claims, as files have it."""
    fault = faults()[fault_id]
    start = fault.faulty()
    hello = start().hello()
    subject = Subject(fault_id, hello, start, in_process=True)
    report = run_gate(subject, catalogue(), Budget(fault.operations, 0), fault.seed)
    return tuple(
        msgspec.structs.replace(verdict.counterexample, claims=hello.capabilities)
        for verdict in report.verdicts
        if verdict.counterexample is not None
        # What was seen inside is not recorded.
        and verdict.requirement.id != REQUIREMENT
    )


def test_there_are_faults_to_be_judged_again() -> None:
    assert len(CHOSEN) >= 3
    assert any(len(found_broken(each)) for each in CHOSEN)


@pytest.mark.slow
@pytest.mark.parametrize("fault_id", CHOSEN)
def test_a_recorded_fault_is_the_same_when_judged_again(fault_id: str) -> None:
    for found in found_broken(fault_id):
        assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME


@pytest.mark.slow
@pytest.mark.parametrize("fault_id", CHOSEN)
def test_a_fault_is_drawn_with_the_queues_at_every_step(fault_id: str) -> None:
    for found in found_broken(fault_id):
        drawn = diagram_of(found)
        assert drawn.reason == ""
        assert all(row.known for row in drawn.rows)
