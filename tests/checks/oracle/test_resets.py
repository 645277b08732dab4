"""Every grade resets in the middle of a run: the earlier operations must have no effect."""

from __future__ import annotations

import pytest

from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Consume,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reset,
)
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box

CLAIMS = Capabilities(get=True, modes=("acknowledge",))
MADE = Declare(queue="q0", order=Fifo())
FILLED = Publish(queue="q0", message=Message(id="m0"))
GOT = Delivered(delivery="d0", consumer=None, queue="q0", message="m0")
GETS = Get(channel="ch0", queue="q0")


def after(*steps: tuple[Operation, Answer]) -> Oracle:
    """Return an oracle that has followed steps in which nothing was broken."""
    oracle = Oracle(CLAIMS)
    for operation, answer in steps:
        assert oracle.observe(operation, answer) == [], operation
    return oracle


def test_after_a_reset_everything_may_come_again() -> None:
    again: list[tuple[Operation, Answer]] = [(MADE, OK), (FILLED, OK), (GETS, Answer((GOT,)))]
    subscribed = (Consume(channel="ch0", queue="q0", consumer="c0"), OK)
    oracle = after(*again, subscribed, (Reset(), OK), *again, subscribed, (Drain(), OK))
    assert oracle.bindings.names_used() == 1


def test_an_oracle_that_was_reset_judges_like_a_new_one() -> None:
    assert after((MADE, OK), (FILLED, OK), (Reset(), OK)).key() == Oracle(CLAIMS).key()


def test_what_was_before_a_reset_may_not_come_after_it() -> None:
    oracle = after((MADE, OK), (FILLED, OK), (Reset(), OK), (MADE, OK))
    [breach] = oracle.observe(GETS, Answer((GOT,)))
    assert breach.requirement == "nothing-invented"


def test_a_reset_tells_nothing_and_is_not_refused() -> None:
    [refusal] = after((MADE, OK)).observe(Reset(), refused("not now"))
    assert refusal.requirement == "does-what-it-claims"
    late = Delivered(delivery="d0", consumer="c0", queue="q0", message="m0")
    for event in (GOT, late):
        assert after((MADE, OK), (FILLED, OK)).observe(Reset(), Answer((event,)))


# In the gate.


class Forgetful(Box):
    """A queue whose resets, but for the first, forget nothing."""

    asked = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation."""
        if isinstance(operation, Reset):
            self.asked += 1
            if self.asked > 1:
                return OK
        return super().handle(operation)


class Opaque(Forgetful):
    """The same, and cannot be copied."""

    def __deepcopy__(self, _: dict[int, object]) -> Opaque:
        """Refuse."""
        raise TypeError("not to be copied")


def report_on(start: type[Candidate]) -> Report:
    """Return the gate's report."""
    subject = Subject("reset", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(600, 0), 0)


@pytest.mark.parametrize(("kind", "grade"), [(Forgetful, "product"), (Opaque, "sequences")])
def test_a_reset_that_forgets_nothing_is_found(kind: type[Box], grade: str) -> None:
    verdicts = {each.requirement.id: each for each in report_on(kind).verdicts}
    found = verdicts["nothing-invented"].counterexample
    assert found is not None
    assert found.certificate.grade == grade
    assert "  reset " in text_of_counterexample(found)
    assert len(found.steps) == 5
    honest = {each.requirement.id: each for each in report_on(Box).verdicts}
    assert honest["nothing-invented"].outcome is Outcome.KEPT
