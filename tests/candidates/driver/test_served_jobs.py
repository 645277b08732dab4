"""Queues of jobs behind a driver: a correct one passes, and each lease bug has its own name."""

from __future__ import annotations

import pytest

from brokerproof.checks.gate.gate import run_gate
from brokerproof.checks.gate.gate_run import EFFORTS
from brokerproof.checks.search.adaptive import search_adaptively
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.search.searches import Search
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.requirements import catalogue
from tests.candidates.driver.serving import served

SOUND = "examples/job_queue.py:make_queue"
LEASES = {
    "fault:lease-ends-early": "lease-holds",
    "fault:lease-never-ends": "lease-ends",
    "fault:renewal-is-ignored": "lease-renewed",
    "fault:settled-after-its-lease": "lease-is-over",
}
COUNTS = {"fault:count-is-not-raised": "delivery-count"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "broken"), [(SOUND, ""), *LEASES.items()])
def test_a_walk_finds_each_lease_bug(name: str, broken: str) -> None:
    subject = served(name)
    try:
        claims = subject.hello.capabilities
        [scope] = [each for each in scopes_for(claims) if each.name == "messages held for a time"]
        found = Search(scope, "adaptive")
        search_adaptively(found, subject.fresh, 2_400, lambda: "")
    finally:
        subject.close()
    assert set(found.broken) >= ({broken} if broken else set())
    assert bool(found.broken) == bool(broken)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "broken"), [(SOUND, ""), *LEASES.items(), *COUNTS.items()])
def test_the_gate_names_each_bug(name: str, broken: str) -> None:
    subject = served(name)
    try:
        report = run_gate(subject, catalogue(), EFFORTS["normal"], seed=0)
    finally:
        subject.close()
    outcomes = {each.requirement.id: each.outcome for each in report.verdicts}
    assert [name for name, each in outcomes.items() if each is Outcome.BROKEN] == (
        [broken] if broken else []
    )
    if not broken:
        assert Outcome.INCONCLUSIVE not in outcomes.values()
