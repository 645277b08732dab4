"""The gate does not cry wolf: brokers that keep the promises are found to keep them.

They are the reference, with its jobs run at once and only at a drain, and a naive queue that was
written from the promises alone. An alarm here is a mistake of the gate, of the contract or of that
broker, and has to be understood before anything is changed.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from brokerproof.checks.conversation import Copier, copier_of
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.gate.stateful import Sampling, sample
from brokerproof.checks.subjects import Subject, open_subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.candidate import Fingerprinted, Forkable
from brokerproof.spec.requirements import catalogue

NAIVE_QUEUE = f"{Path(__file__).parents[3] / 'examples' / 'naive_queue.py'}:make_broker"

MAY_BE_BROKEN: dict[str, frozenset[str]] = {
    # A recommendation that the documents' own loop on arrival does not follow.
    "reference:qpid-push": frozenset({"browser-once-by-priority"}),
    "reference:qpid-push?runner=drain": frozenset({"browser-once-by-priority"}),
    "reference:qpid-push?acquisition=stealable": frozenset({"browser-once-by-priority"}),
    "reference:qpid-pull": frozenset({"browser-once-by-priority"}),
    NAIVE_QUEUE: frozenset(),
}

SEEDS = 20
"""`make thorough` checks the others."""
EXAMPLES = 10

each_sound_broker = pytest.mark.parametrize(
    "address",
    [pytest.param(address, id=address.rpartition("/")[2]) for address in MAY_BE_BROKEN],
)


@functools.cache
def subject_of(address: str) -> Subject:
    """Return a sound broker as the gate sees candidates."""
    return open_subject(address)


@pytest.mark.each_time(4)
@pytest.mark.parametrize("seed", range(SEEDS))
@each_sound_broker
def test_no_seed_raises_an_alarm(address: str, seed: int) -> None:
    found = Sampling()
    sample(subject_of(address), found, seed, EXAMPLES, lambda: "")
    assert found.examples >= EXAMPLES
    assert set(found.broken) <= MAY_BE_BROKEN[address], found.broken


@pytest.mark.thorough
@each_sound_broker
def test_no_scope_raises_an_alarm(address: str) -> None:
    budget = Budget(operations=400, examples=0)
    report = run_gate(subject_of(address), catalogue(), budget, seed=0)
    broken = {v.requirement.id for v in report.verdicts if v.outcome is Outcome.BROKEN}
    assert broken == MAY_BE_BROKEN[address]
    masked = [v for v in report.verdicts if v.reason.startswith("seen broken")]
    assert not masked


def test_the_naive_queue_is_copied_without_its_help() -> None:
    candidate, _ = subject_of(NAIVE_QUEUE).fresh()
    assert not isinstance(candidate, Forkable | Fingerprinted)
    assert isinstance(copier_of(candidate), Copier)
