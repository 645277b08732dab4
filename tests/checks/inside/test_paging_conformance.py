"""The gate looks inside queues that page, after each operation; and twins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import kinds
from brokerproof.checks.inside.step_conformance import REQUIREMENT, Departure
from brokerproof.checks.report.terminal import gathered
from brokerproof.checks.verdicts import Outcome
from brokerproof.reference.durable_broker import PoweredBroker
from brokerproof.reference.settings import Settings
from brokerproof.spec.protocol.answers import Answer, Inspection
from brokerproof.spec.protocol.operations import Crash, Drain, Operation, Restart
from brokerproof.spec.qpid.view import PointerQueueView
from brokerproof.spec.rabbitmq.view import PagingQueueView
from brokerproof.spec.requirements import catalogue
from tests.checks.inside.paging_scenes import carried_out, changed, everything, published, shown_by
from tests.checks.inside.shown_views import (
    declared,
    departure_of,
    looking_changes_nothing,
    outcomes,
    report_on,
    watched,
)


class Shown(PoweredBroker):
    """The reference with tiny sizes, with views changed by `shows`."""

    shows: Callable[[PagingQueueView], Inspection] = staticmethod(lambda view: view)

    def __init__(self) -> None:
        super().__init__(
            Settings("rabbitmq-paging", segment=2, batch=1, journal=4, file=200, target=1)
        )

    def handle(self, operation: Operation) -> Answer:
        """Show something else."""
        answer = super().handle(operation)
        if not isinstance(answer.inspection, PagingQueueView):
            return answer
        return Answer(inspection=type(self).shows(answer.inspection))


@pytest.mark.each_time(1)
@pytest.mark.parametrize("budget", [(150, 0), (0, 10)], ids=["product", "stateful"])
def test_the_reference_keeps_to_its_model(budget: tuple[int, int]) -> None:
    report = report_on(Shown, *budget)
    found = outcomes(report)
    assert found[REQUIREMENT] is Outcome.KEPT
    assert Outcome.BROKEN not in found.values()
    assert {found[name] for name in ("A4", "I1", "I14", "I17", "P1")} == {Outcome.KEPT}
    (stage,) = [each for each in report.stages if each.name == "snapshot"]
    assert "fetch_from_q4 " in stage.did
    assert (
        "never put_back_into_q4 of paging-places: The last message of q3 is put back" in stage.did
    )
    assert "not judged" not in stage.did


def test_a_view_of_another_kind_than_before_is_a_finding() -> None:
    class Turns(Shown):
        """Shows itself as a queue of pointers as soon as something is there."""

        shows = staticmethod(
            lambda view: PointerQueueView(view.order) if view.levels[0].length else view
        )

    assert "it shows itself as a queue of another kind than before" in departure_of(Turns, 60)


def test_a_step_that_the_model_does_not_make_is_told_with_both_views() -> None:
    class Forgets(Shown):
        """Hides pending messages."""

        shows = staticmethod(
            lambda view: replace(
                view, levels=tuple(replace(each, pending=(), ram_acks=()) for each in view.levels)
            )
        )

    assert "what steps of the model paging-places make of" in departure_of(Forgets, 60)


# Crashes: the state afterwards is checked, the steps to it are not.


def test_no_view_is_taken_while_the_broker_is_down_and_the_next_step_is_unknown() -> None:
    persistent = published("a", "b", persistent="ab")
    watch, moved = watched(Shown(), [declared(), *persistent, Crash()])
    assert (watch.views, moved) == ({}, [False, True, True, False])
    watch, moved = watched(Shown(), [declared(), *persistent, Crash(), Restart(), Drain()])
    assert moved[-2:] == [False, False]
    (level,) = shown_by(carried_out([*persistent, Crash(), Restart()])).levels
    assert [each.message for each in level.q3] == ["a", "b"]


def test_after_that_steps_are_judged_again() -> None:
    class Loses(Shown):
        """Shows nothing in q3 once something was published after a restart."""

        shows = staticmethod(
            lambda view: changed(view, q3=()) if view.levels[0].q1 or view.levels[0].q2 else view
        )

    again = [*published("a", persistent="a"), Crash(), Restart(), *published("c")]
    with pytest.raises(Departure, match="q after publish"):
        watched(Loses(), [declared(), *again])
    watched(Shown(), [declared(), *again])


def test_looking_changes_nothing() -> None:
    looking_changes_nothing(carried_out(everything()))


# The report.


def test_what_is_asked_of_one_kind_of_queue_is_one_phrase_where_none_of_it_applies() -> None:
    pointers, paging, cursors = kinds().values()
    everything_else = [name for name in catalogue() if name not in pointers | paging | cursors]
    assert gathered(catalogue()) == [
        *everything_else,
        f"what a queue of pointers keeps inside ({len(pointers)} ids)",
        f"what a queue that pages keeps inside ({len(paging)} ids)",
        f"what a queue with cursors keeps inside ({len(cursors)} ids)",
    ]
    assert gathered(["A2", "I17", "get-finds"]) == ["A2", "I17", "get-finds"]
