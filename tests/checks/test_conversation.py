"""Any malformed answer of a candidate is a finding that describes it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.gate.gate import Budget, run_gate
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.checks.workers.watchdog import Hangs
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, Error, QueueDeleted, refused
from brokerproof.spec.protocol.operations import Drain, Operation
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box

ODD = cast("Any", Answer)


class Odd(Box):
    """A queue with a preset answer to a drain."""

    answer: object = OK

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, except a drain."""
        if not isinstance(operation, Drain):
            return super().handle(operation)
        answer = type(self).answer
        if isinstance(answer, BaseException):
            raise answer
        return cast("Answer", answer)


def odd(answers: object) -> type[Odd]:
    """Return a kind of it."""

    class Answers(Odd):
        """Answers so."""

        answer = answers

    return Answers


def delivered(**wrong: object) -> Delivered:
    """Return an event with a field that it cannot have."""
    fields: dict[str, Any] = {"delivery": "d0", "consumer": "c0", "queue": "q0", "message": "m0"}
    return Delivered(**(fields | wrong))


WRONG = [
    (None, "drain returned NoneType, not an Answer"),
    ((), "drain returned tuple, not an Answer"),
    (ODD(None), "drain told NoneType, not a tuple"),
    (ODD([QueueDeleted(queue="q0")]), "drain told list, not a tuple"),
    (ODD(("deleted",)), "drain told str, not an event"),
    (ODD((), "refused"), "drain failed with str, no Error"),
    (
        ODD((QueueDeleted(queue=cast("Any", 5)),)),
        "drain was answered with QueueDeleted whose field `queue` is of type int",
    ),
    (
        ODD((delivered(message=None),)),
        "drain was answered with Delivered whose field `message` is of type NoneType",
    ),
    (
        ODD((delivered(delivery=["d0"]),)),
        "drain was answered with Delivered whose field `delivery` is of type list",
    ),
    (
        ODD((delivered(redelivered=1),)),
        "drain was answered with Delivered whose field `redelivered` is of type int",
    ),
    (
        ODD((), Error(cast("Any", ["refused"]))),
        "drain was answered with Error whose field `code` is of type list",
    ),
    (ODD(parked=None), "drain was answered with Answer whose field `parked` is of type NoneType"),
    (KeyError("d0"), "drain raised KeyError: 'd0'"),
    (SystemExit(3), "drain raised SystemExit: 3"),
]


@pytest.mark.parametrize(("answers", "what"), WRONG)
def test_what_is_no_answer_is_said_in_one_line(answers: object, what: str) -> None:
    assert ask(odd(answers)(), Drain()) == Misbehaviour(what)


def test_a_candidate_that_hangs_is_known_to_hang() -> None:
    assert ask(odd(Hangs("too long"))(), Drain()) == Misbehaviour("too long", hangs=True)


@pytest.mark.parametrize(
    "answers",
    [OK, refused("no"), Answer((QueueDeleted(queue="q0"), delivered())), Answer(parked=True)],
)
def test_an_answer_in_form_is_returned_as_it_is(answers: Answer) -> None:
    assert ask(odd(answers)(), Drain()) is answers


@pytest.mark.parametrize(("answers", "what"), WRONG)
def test_the_gate_makes_a_finding_of_it(answers: object, what: str) -> None:
    start = odd(answers)
    subject = Subject("odd", start().hello(), start, in_process=True)
    report = run_gate(subject, catalogue(), Budget(20, 0), 0)
    of = {each.requirement.id: each for each in report.verdicts}
    assert of["protocol"].outcome is Outcome.BROKEN
    assert what in of["protocol"].reason
