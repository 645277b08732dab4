"""No stage tests an unclaimed option: a candidate that gets it wrong is not failed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Get, Operation, Publish
from brokerproof.spec.requirements import catalogue
from examples.whole_broker import WholeBroker

CLAIMS = Capabilities(
    orders=("fifo", "priority"),
    priority_levels=2,
    modes=("acknowledge", "automatic"),
    get=True,
    durable=True,
)


class Keeps(WholeBroker):
    """Takes an automatic get for one that will be acknowledged."""

    def handle(self, operation: Operation) -> Answer:
        """Let the message be held."""
        if isinstance(operation, Get):
            operation = replace(operation, mode="acknowledge")
        return super().handle(operation)


class Clamps(WholeBroker):
    """Takes a priority above 9 for 9."""

    def publish(self, publish: Publish) -> Answer:
        """Refuse none."""
        message = replace(publish.message, priority=min(publish.message.priority, 9))
        return super().publish(replace(publish, message=message))


def broken(kind: type[WholeBroker], claims: Capabilities) -> set[str]:
    """Return which promises the gate finds broken by a candidate with these claims."""

    def start() -> WholeBroker:
        return kind(claims=claims)

    subject = Subject("unclaimed", start().hello(), start, in_process=True)
    report = run_gate(subject, catalogue(), Budget(operations=300, examples=8), seed=0)
    return {each.requirement.id for each in report.verdicts if each.outcome is Outcome.BROKEN}


FEWER: dict[type[WholeBroker], tuple[Capabilities, str]] = {
    Keeps: (replace(CLAIMS, modes=("acknowledge",)), "settlement-survives-crash"),
    Clamps: (replace(CLAIMS, orders=("fifo",)), "refuses-what-it-must"),
}


@pytest.mark.each_time(1)
@pytest.mark.parametrize("kind", FEWER)
def test_a_mistake_in_what_is_not_claimed_is_no_mistake(kind: type[WholeBroker]) -> None:
    claims, _ = FEWER[kind]
    assert broken(kind, claims) == set()


@pytest.mark.each_time(1)
@pytest.mark.parametrize("kind", FEWER)
def test_the_same_mistake_in_what_is_claimed_is_found(kind: type[WholeBroker]) -> None:
    _, requirement = FEWER[kind]
    assert requirement in broken(kind, CLAIMS)
