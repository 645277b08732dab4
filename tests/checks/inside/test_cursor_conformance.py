"""The gate looks inside queues with cursors, after each operation; and twins."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.step_conformance import (
    REQUIREMENT,
    Departure,
    never_taken,
    outside_the_model,
)
from brokerproof.checks.verdicts import Outcome
from brokerproof.reference.activemq.parameters import CursorParameters
from brokerproof.reference.durable_broker import PoweredBroker
from brokerproof.reference.settings import Settings
from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.protocol.answers import Answer, Inspection
from brokerproof.spec.protocol.operations import Crash, Drain, Operation, Restart
from brokerproof.spec.qpid.view import PointerQueueView
from tests.checks.inside.cursor_scenes import carried_out, changed, everything, published, shown_by
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

    shows: Callable[[CursorQueueView], Inspection] = staticmethod(lambda view: view)

    def __init__(self) -> None:
        sizes = CursorParameters(memory=2200, page=2, depth=1, word=2)
        super().__init__(Settings("activemq-cursor", cursor=sizes))

    def handle(self, operation: Operation) -> Answer:
        """Show something else."""
        answer = super().handle(operation)
        if not isinstance(answer.inspection, CursorQueueView):
            return answer
        return Answer(inspection=type(self).shows(answer.inspection))


@pytest.mark.each_time(1)
@pytest.mark.parametrize("budget", [(150, 0), (0, 25)], ids=["product", "stateful"])
def test_the_reference_keeps_to_its_model(budget: tuple[int, int]) -> None:
    report = report_on(Shown, *budget)
    found = outcomes(report)
    assert found[REQUIREMENT] is Outcome.KEPT
    assert Outcome.BROKEN not in found.values()
    ids = ("AMQ-I1", "AMQ-I2", "AMQ-I6", "AMQ-I15", "AMQ-I17")
    assert {found[name] for name in ids} == {Outcome.KEPT}
    (stage,) = [each for each in report.stages if each.name == "snapshot"]
    assert "page_in " in stage.did
    assert "; the model says nothing of " in stage.did
    assert "not judged" not in stage.did


def test_a_view_of_another_kind_than_before_is_a_finding() -> None:
    class Turns(Shown):
        """Shows itself as a queue of pointers as soon as something has come."""

        shows = staticmethod(lambda view: PointerQueueView(view.order) if view.arrivals else view)

    assert "it shows itself as a queue of another kind than before" in departure_of(Turns, 60)


def test_a_step_that_the_model_does_not_make_is_told_with_both_views() -> None:
    class Forgets(Shown):
        """Shows acquired messages as never paged in."""

        shows = staticmethod(
            lambda view: replace(
                view,
                paged_in=tuple(e for e in view.paged_in if e.channel is None),
                held=(),
            )
        )

    assert "what steps of the model cursor-page-in make of" in departure_of(Forgets, 60)


def test_a_view_in_no_form_is_a_finding() -> None:
    class Nonsense(Shown):
        """Shows a position beyond its store."""

        shows = staticmethod(lambda view: changed(view, read=9) if view.arrivals else view)

    assert "a position outside of the store at level 0" in departure_of(Nonsense, 40)


# Crashes: the state afterwards is checked, the steps to it are not.


def test_no_view_is_taken_while_the_broker_is_down_and_the_next_step_is_unknown() -> None:
    watch, moved = watched(Shown(), [declared(), *published("a", "b"), Crash()])
    assert (watch.views, moved) == ({}, [False, True, True, False])
    watch, moved = watched(Shown(), [declared(), *published("a", "b"), Crash(), Restart(), Drain()])
    assert moved[-2:] == [False, False]
    (level,) = shown_by(carried_out([*published("a", "b"), Crash(), Restart()])).levels
    assert [each.message for each in level.stored] == ["a", "b"]
    assert (level.read, level.batch, level.size) == (None, (), 2)


def test_after_that_steps_are_judged_again() -> None:
    class Passes(Shown):
        """Shows a position that has passed all as soon as three messages are stored."""

        shows = staticmethod(
            lambda view: changed(view, read=3) if len(view.levels[0].stored) == 3 else view
        )

    again = [*published("a", "b"), Crash(), Restart(), *published("c")]
    with pytest.raises(Departure, match="q after publish"):
        watched(Passes(), [declared(), *again])
    watched(Shown(), [declared(), *again])


def test_looking_changes_nothing() -> None:
    looking_changes_nothing(carried_out(everything()))


# Views that the model does not cover are counted, and are no steps of it.


def test_what_the_model_says_nothing_of_is_counted_by_its_reason() -> None:
    operations = [declared(), *published("a", "b", persistent=False), *published("c")]
    watch, moved = watched(Shown(), operations)
    assert moved == [False, False, False, True]
    assert outside_the_model(watch.taken) == {"messages that do not outlive a crash": 2}
    assert outside_the_model({("cursor-page-in", "read"): 2}) == {}
    assert "read of cursor-page-in" in never_taken(watch.taken)
    assert not any("outlive" in name for name in never_taken(watch.taken))
