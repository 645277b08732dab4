"""The gate on a real RabbitMQ: a check that it does not cry wolf, and that it would see."""

from __future__ import annotations

from contextlib import closing

import pytest

from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import step
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.trace.moves import Settle
from brokerproof.checks.verdicts import ExitStatus, Outcome, exit_status
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import (
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Release,
    Reset,
)
from brokerproof.spec.requirements import catalogue

pytestmark = pytest.mark.rabbitmq

LITTLE = Budget(operations=1_000, examples=20)
FEW = Budget(operations=100, examples=10)
RELEASED = (
    Declare(queue="q0", order=Fifo()),
    Publish(queue="q0", message=Message(id="m0")),
    Publish(queue="q0", message=Message(id="m1")),
    Get(queue="q0", channel="ch0"),
    Settle(how="release", message="m0"),
    Get(queue="q0", channel="ch0"),
    Drain(),
)


class Forgetful:
    """A broker in front of RabbitMQ that answers a release and does not pass it on."""

    def __init__(self, behind: Candidate) -> None:
        self.behind = behind

    def hello(self) -> Hello:
        """Return the claims of the candidate behind."""
        return self.behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Pass everything on but a release."""
        return Answer() if isinstance(operation, Release) else self.behind.handle(operation)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_rabbitmq_keeps_what_it_claims(rabbitmq: PrivateRabbitMQ, seed: int) -> None:
    subject = open_subject(rabbitmq.url)
    try:
        report = run_gate(subject, catalogue(), LITTLE, seed)
    finally:
        subject.close()
    broken = [v.requirement.id for v in report.verdicts if v.outcome is Outcome.BROKEN]
    assert broken == []
    kept = {v.requirement.id for v in report.verdicts if v.outcome is Outcome.KEPT}
    assert {"nothing-lost", "fifo-order", "release-rewinds", "quiescence"} <= kept
    assert exit_status(report.verdicts, accept_inconclusive=True) is ExitStatus.KEPT


def seen_broken(candidate: Candidate) -> set[str]:
    """Return the requirements broken by a release and the operations after it."""
    assert candidate.handle(Reset()).ok
    oracle = Oracle(candidate.hello().capabilities)
    return {each.requirement for move in RELEASED for each in step(candidate, oracle, move)[1]}


def test_a_release_that_gets_lost_on_the_way_is_seen(rabbitmq: PrivateRabbitMQ) -> None:
    with closing(open_subject(rabbitmq.url)) as subject:
        candidate = subject._kept
        assert candidate is not None
        assert seen_broken(candidate) == set()
        assert seen_broken(Forgetful(candidate)) == {"release-rewinds"}


@pytest.mark.thorough
def test_a_release_that_gets_lost_on_the_way_is_found(rabbitmq: PrivateRabbitMQ) -> None:
    with closing(open_subject(rabbitmq.url)) as subject:
        assert subject._kept is not None
        subject._kept = Forgetful(subject._kept)
        report = run_gate(subject, catalogue(), FEW, seed=0)
    assert any(v.outcome is Outcome.BROKEN for v in report.verdicts)
