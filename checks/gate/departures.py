"""Departures: where a broker lawfully differs from stricter claims, with traces that show it.

A broker is judged by its own claims, so a lawful difference is never a fault. This file finds the
differences: for each, the gate searches once more with that one claim made strict. A trace that it
finds then shows the departure, and changes no exit status.
"""

from __future__ import annotations

from msgspec.structs import replace

from brokerproof.checks.gate.gate import run_gate
from brokerproof.checks.gate.gate_run import Budget, Clock, Departure, Progress, Report
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.differences import claimed_differences
from brokerproof.spec.requirements import Requirement

SHARE = 10
"""A departure gets one part in so many of the budget: it shows in a few operations."""


def departures_from(
    than: Capabilities,
    subject: Subject,
    report: Report,
    requirements: dict[str, Requirement],
    budget: Budget,
    progress: Progress,
    clock: Clock,
) -> tuple[Departure, ...]:
    """Return the departures of a candidate from stricter claims; the candidate is run again.

    What the `report` has found broken shows no departure.
    """
    hello = subject.hello
    small = Budget(max(1, budget.operations // SHARE), budget.examples // SHARE)
    faults = {each.requirement.id for each in report.verdicts if each.outcome is Outcome.BROKEN}
    asked = {name: each for name, each in requirements.items() if name not in faults}
    found = []
    for each in claimed_differences(hello.capabilities, than):
        stricter = replace(hello.capabilities, **{each.claim: getattr(than, each.claim)})
        subject.hello = replace(hello, capabilities=stricter)
        try:
            again = run_gate(subject, asked, small, report.seed, progress, clock=clock)
        finally:
            subject.hello = hello
        traces = [verdict.counterexample for verdict in again.verdicts]
        shown = sorted(
            (replace(trace, claims=stricter) for trace in traces if trace is not None),
            key=lambda trace: len(trace.steps),
        )
        found.append(Departure(each, shown[0] if shown else None))
    return tuple(found)
