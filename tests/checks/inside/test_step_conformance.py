"""A candidate that shows its inside is held against the model of its document; and twins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from brokerproof.checks.gate.gate import Report
from brokerproof.checks.gate.gate_run import HANGS_MAX
from brokerproof.checks.inside.step_conformance import (
    REQUIREMENT,
    Departure,
    Watch,
    explained,
    never_taken,
)
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.checks.workers.watchdog import Hangs
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.watch.client_step import ClientStep
from brokerproof.models.qpid.pointer_queue_clock import TimedQueue
from brokerproof.reference import make
from brokerproof.reference.broker import Broker
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, ConsumerClosed, Inspection, unsupported
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import (
    Consume,
    Declare,
    Drain,
    Inspect,
    Operation,
    Publish,
)
from brokerproof.spec.qpid.view import PointerQueueView
from tests.checks.inside.shown_views import report_on


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


def verdict_on(report: Report) -> Verdict:
    """Return the verdict on the steps."""
    return next(v for v in report.verdicts if v.requirement.id == REQUIREMENT)


def said(report: Report) -> str:
    """Return the stage's line."""
    return next(stage.did for stage in report.stages if stage.name == "snapshot")


@pytest.mark.each_time(1)
@pytest.mark.parametrize("budget", [(200, 0), (0, 10)], ids=["product", "stateful"])
def test_the_reference_keeps_to_its_model_in_each_stage(budget: tuple[int, int]) -> None:
    report = report_on(Shown, *budget)
    verdict = verdict_on(report)
    assert verdict.outcome is Outcome.KEPT, verdict.reason
    assert verdict.exercised > 20
    assert f"{verdict.exercised} steps are paths of their model" in said(report)


class Pulled(Shown):
    """The same, where consumers pull."""

    def __init__(self) -> None:
        super().__init__("qpid-pull")


def test_a_reference_that_is_pulled_from_rests_as_its_model_may() -> None:
    report = report_on(Pulled)
    assert verdict_on(report).outcome is Outcome.KEPT
    assert "come_to_rest " in said(report)


def notified(answer: Answer) -> Answer:
    """Show interested consumers as notified."""
    view = answer.inspection
    if not isinstance(view, PointerQueueView) or view.lists is None:
        return answer
    lists = replace(view.lists, interested=(), notified=view.lists.interested)
    return Answer(inspection=replace(view, lists=lists))


def test_a_rest_with_a_notified_consumer_is_a_finding() -> None:
    class Restless(Pulled):
        """Shows a drained queue with a notified consumer."""

    Restless.shows = staticmethod(notified)
    verdict = verdict_on(report_on(Restless))
    assert verdict.outcome is Outcome.BROKEN
    assert "notified c0" in verdict.reason


def test_what_was_never_taken_is_listed_with_the_words_of_the_model() -> None:
    text = said(report_on(Shown))
    assert "never browse of pointer-queue: The candidate is available: the browser" in text
    assert "never insert of pointer-queue: " in text
    assert "never append" not in text
    assert never_taken([("pointer-queue", "append")]).keys() == {
        f"{action.name} of pointer-queue"
        for action in trace(TimedQueue).actions
        if action.name != "append"
    }


def test_a_broker_that_claims_nothing_of_the_inside_is_not_asked() -> None:
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


def spoils(answer: Answer) -> Answer:
    """Show a place behind the last entry."""
    view = answer.inspection
    if not isinstance(view, PointerQueueView) or not view.subscriptions:
        return answer
    wrong = replace(view.subscriptions[0], last_seen=len(view.entries) + 1)
    return Answer(inspection=replace(view, subscriptions=(wrong, *view.subscriptions[1:])))


def test_a_view_that_cannot_be_read_is_one_finding_and_the_run_goes_on() -> None:
    class Spoils(Shown):
        """Shows places that there are not."""

    Spoils.shows = staticmethod(spoils)
    report = report_on(Spoils, 300, 5)
    broken = [each for each in report.verdicts if each.outcome is Outcome.BROKEN]
    assert [each.requirement.id for each in broken] == [REQUIREMENT]
    assert "inspect of q0 showed " in broken[0].reason
    assert all(stage.operations > 20 for stage in report.stages if stage.name != "snapshot")


def test_after_a_view_that_cannot_be_read_the_next_step_is_not_judged() -> None:
    class Spoils(Shown):
        """Shows an unreadable view once."""

    broker, watch, bindings = Spoils(), Watch(), Oracle(Shown.claims).bindings
    declare = Declare(queue="q0", order=Fifo())
    oracle = Oracle(Shown.claims)
    oracle.observe(declare, broker.handle(declare))
    bindings = oracle.bindings
    assert watch.look(broker, declare, OK, "", bindings) is False
    Spoils.shows = staticmethod(lambda _: Answer())
    publish = Publish(queue="q0", message=Message(id="m0"))
    broker.handle(publish)
    with pytest.raises(Departure, match="without a view"):
        watch.look(broker, publish, OK, "", bindings)
    Spoils.shows = None
    assert watch.look(broker, Drain(), OK, "", bindings) is False
    assert watch.views["q0"] is not None
    publish = Publish(queue="q0", message=Message(id="m1"))
    broker.handle(publish)
    assert watch.look(broker, publish, OK, "", bindings) is True


@pytest.mark.parametrize("budget", [(200, 0), (0, 5)], ids=["product", "stateful"])
def test_an_inspect_that_hangs_twice_ends_the_stages(budget: tuple[int, int]) -> None:
    asked = []

    def hangs(_answer: Answer) -> Answer:
        asked.append(1)
        raise Hangs("inspect did not come back within 10 s")

    class Sleeper(Shown):
        """Never shows anything."""

    Sleeper.shows = staticmethod(hangs)
    report = report_on(Sleeper, *budget)
    verdict = verdict_on(report)
    assert verdict.outcome is Outcome.BROKEN
    assert "inspect did not come back within 10 s" in verdict.reason
    assert len(asked) == HANGS_MAX
    others = {each.outcome for each in report.verdicts if each is not verdict}
    assert others == {Outcome.INCONCLUSIVE, Outcome.NOT_CLAIMED}


def shown(candidate: Candidate) -> Inspection:
    """Return what a broker shows of its queue `q`."""
    view = candidate.handle(Inspect(queue="q")).inspection
    assert view is not None
    return view.without_counters()


def test_a_consumer_that_selects_and_leaves_at_once_may_pass_over_messages() -> None:
    candidate = make("qpid-push")
    consume = Consume(
        channel="ch",
        queue="q",
        consumer="c",
        mode="automatic",
        selector={"colour": "blue"},
        auto_close=True,
    )

    candidate.handle(Declare(queue="q", order=Fifo()))
    candidate.handle(Publish(queue="q", message=Message(id="m0")))
    blue = Message(id="m1", properties={"colour": "blue"})
    candidate.handle(Publish(queue="q", message=blue))
    before = shown(candidate)
    assert ConsumerClosed(consumer="c") in candidate.handle(consume).events
    step = ClientStep(consume, closed=frozenset({"c"}))
    assert not isinstance(explained(before, shown(candidate), step), str)
    takes_all = replace(step, operation=replace(consume, selector=None))
    assert explained(before, shown(candidate), takes_all) == "pointer-queue"


def test_a_consumer_that_selects_and_leaves_at_once_wants_what_it_took() -> None:
    candidate = make("qpid-push")

    def consume(name: str, colour: str) -> Consume:
        return Consume(
            channel="ch",
            queue="q",
            consumer=name,
            mode="automatic",
            selector={"colour": colour},
        )

    candidate.handle(Declare(queue="q", order=Fifo()))
    blue = Message(id="m0", properties={"colour": "blue"})
    candidate.handle(Publish(queue="q", message=blue))
    # It has passed the message, which so stays in the list when it is gone.
    candidate.handle(consume("passes", "red"))
    before = shown(candidate)
    takes = replace(consume("takes", "blue"), auto_close=True)
    assert ConsumerClosed(consumer="takes") in candidate.handle(takes).events
    step = ClientStep(takes, closed=frozenset({"takes"}))
    assert not isinstance(explained(before, shown(candidate), step), str)
    passes = ClientStep(Drain())
    assert explained(before, shown(candidate), passes) == "pointer-queue"
