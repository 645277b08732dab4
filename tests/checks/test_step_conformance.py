"""A candidate that shows its inside is held against the model of its document; and twins."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.checks.gate import Budget, Report, run_gate
from brokerproof.checks.step_conformance import REQUIREMENT, never_taken
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.models import pointer_queue_steps
from brokerproof.reference import make
from brokerproof.reference.broker import Broker
from brokerproof.spec.answers import Answer, unsupported
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.capabilities import Capabilities, Hello
from brokerproof.spec.inspections import PointerQueueView
from brokerproof.spec.messages import Fifo
from brokerproof.spec.operations import Inspect, Operation
from brokerproof.spec.requirements import catalogue


class Shown(Broker):
    """The reference, first in first out only, with something else to show if `shows` is set."""

    claims = Capabilities(
        orders=("fifo",),
        modes=("acknowledge",),
        get=True,
        release_position="original",
        inspect=True,
    )
    shows: Callable[[Answer], Answer] | None = None

    def hello(self) -> Hello:
        """Claim little."""
        return Hello(name="shown", version="1", capabilities=self.claims)

    def handle(self, operation: Operation) -> Answer:
        """Show what is to be shown."""
        answer = super().handle(operation)
        shows = type(self).shows
        if shows is None or not isinstance(operation, Inspect):
            return answer
        return shows(answer)


def report_on(start: Callable[[], Candidate], operations: int = 200, examples: int = 0) -> Report:
    """Return what the gate says."""
    subject = Subject("shown", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(operations, examples), 0)


def verdict_on(report: Report) -> Verdict:
    """Return the verdict on the steps."""
    return next(v for v in report.verdicts if v.requirement.id == REQUIREMENT)


def said(report: Report) -> str:
    """Return what the stage says of itself."""
    return next(stage.did for stage in report.stages if stage.name == "snapshot")


@pytest.mark.parametrize("budget", [(200, 0), (0, 10)], ids=["product", "stateful"])
def test_the_reference_keeps_to_its_model_in_each_stage(budget: tuple[int, int]) -> None:
    report = report_on(Shown, *budget)
    verdict = verdict_on(report)
    assert verdict.outcome is Outcome.KEPT, verdict.reason
    assert verdict.exercised > 20
    assert f"{verdict.exercised} steps are paths of their model" in said(report)


def test_what_was_never_taken_is_listed_with_the_reason() -> None:
    text = said(report_on(Shown))
    assert "never browse of pointer-queue: nobody browsed" in text
    assert "never insert of pointer-queue: " in text
    assert "never append" not in text
    assert never_taken({("pointer-queue", "append"): 1}).keys() == {
        f"{action} of pointer-queue" for action in pointer_queue_steps.UNTAKEN if action != "append"
    }


def test_who_claims_nothing_of_the_inside_is_not_asked() -> None:
    def start() -> Candidate:
        return make("qpid-push?pointer=inclusive")

    report = report_on(start, 50)
    assert verdict_on(report).outcome is Outcome.NOT_CLAIMED
    assert "snapshot" not in {stage.name for stage in report.stages}


def raises(_answer: Answer) -> Answer:
    """Fail."""
    raise KeyError("inside")


@pytest.mark.parametrize(
    ("shows", "seen"),
    [
        (raises, "inspect raised KeyError"),
        (lambda _: unsupported("no"), "inspect was answered unsupported: no"),
        (lambda _: Answer(), "inspect was answered without a view"),
        (lambda _: Answer(inspection=PointerQueueView(Fifo())), "q0 after"),
    ],
)
def test_a_view_that_is_wrong_or_missing_is_a_finding(
    shows: Callable[[Answer], Answer], seen: str
) -> None:
    class Liar(Shown):
        """Shows what it should not."""

    Liar.shows = staticmethod(shows)
    verdict = verdict_on(report_on(Liar))
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.counterexample is not None
    assert seen in verdict.counterexample.seen
