"""A candidate in real time is walked, since its runs take their time and need not repeat.

The queue of jobs stands in for one: it claims a tolerance, and a lock keeps it from being copied.
"""

from __future__ import annotations

import threading

from msgspec.structs import replace

from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.answers import OK, Answer
from brokerproof.spec.protocol.operations import Acknowledge, Extend, Reject, Release
from brokerproof.spec.requirements import catalogue
from examples.job_queue import JobQueue


class InRealTime(JobQueue):
    """The queue of jobs with a tolerance."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.claims = replace(
            self.claims,
            modes=(),
            tolerance_s=1,
            delivery_limit=False,
            dead_letters=(),
            delayed_release=False,
            length_limit=(),
            groups=False,
        )


class WithoutRenewals(InRealTime):
    """The same; a renewal is accepted and forgotten."""

    def settle(self, operation: Acknowledge | Release | Reject | Extend) -> Answer:
        """Settle a delivery."""
        return OK if isinstance(operation, Extend) else super().settle(operation)


def judged(start: type[InRealTime]) -> Report:
    subject = Subject("queue", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(operations=500, examples=8), seed=0)


def test_a_quick_run_reaches_a_verdict_on_leases() -> None:
    report = judged(InRealTime)
    assert {stage.name for stage in report.stages} == {"adaptive", "stateful"}
    outcomes = {v.requirement.id: v.outcome for v in report.verdicts}
    assert {*outcomes.values()} == {Outcome.KEPT, Outcome.NOT_CLAIMED}
    for requirement in ("lease-holds", "lease-renewed", "lease-ends", "lease-end-is-told"):
        assert outcomes[requirement] is Outcome.KEPT


def test_a_lost_renewal_is_found() -> None:
    [found] = [
        v.counterexample
        for v in judged(WithoutRenewals).verdicts
        if v.requirement.id == "lease-renewed"
    ]
    assert found is not None
    assert found.certificate.reason.startswith("the candidate is in real time")
