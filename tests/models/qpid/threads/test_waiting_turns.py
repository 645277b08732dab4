"""Turns of targets on a connection: proved for any number of them; all steps are needed."""

from __future__ import annotations

import pytest

from brokerproof.models.language import action, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.qpid.threads.waiting_turns import (
    IT,
    Notifier,
    Notifying,
    Target,
    WaitingTurns,
    Working,
)

FORGOTTEN, WAITS = "no-target-with-work-is-forgotten", "no-target-waits-without-a-job"


class ClearsAfterTheWork(WaitingTurns):
    """Stays marked while it works, so that a notification meanwhile does not put it in the line."""

    @action
    def clear(self) -> None:
        """It works first."""
        require(self.does(Working.CLEARS))
        self.has_work[self.turn[IT]] = False
        self.working[IT] = Working.WORKS

    @action
    def work(self) -> None:
        """Then its mark is cleared."""
        require(self.does(Working.WORKS))
        self.scheduled[self.turn[IT]] = False
        self.working[IT] = Working.TAKES


class AppendsUnasked(WaitingTurns):
    """Puts a target in the line whether or not another has marked it."""

    @action
    def mark(self, n: Notifier) -> None:
        """The target is marked."""
        require(self.notifying[n] == Notifying.MARKS)
        self.scheduled[self.notified[n]] = True
        self.marked_by[self.notified[n]] = n
        self.notifying[n] = Notifying.APPENDS


class LooksNoMore(WaitingTurns):
    """Ends without a look for targets that came too late for this run."""

    @action
    def look_again(self) -> None:
        """The job is over."""
        require(self.does(Working.LOOKS_AGAIN))
        self.working[IT] = Working.IS_IDLE


class LooksBeforeItEnds(WaitingTurns):
    """Looks for waiting targets while the connection is still marked."""

    @action
    def use_up(self) -> None:
        """No target waits."""
        require(self.does(Working.TAKES) & self.line_is_empty())
        self.working[IT] = Working.ENDS

    @action
    def end(self) -> None:
        """The connection's mark is cleared, and that was all."""
        super().end()
        self.working[IT] = Working.IS_IDLE


class ComesBackForNobody(WaitingTurns):
    """Schedules its connection again and again, even if no target waits."""

    @action
    def look_again(self) -> None:
        """The job comes back."""
        require(self.does(Working.LOOKS_AGAIN))
        self.working[IT] = Working.SCHEDULES


class WorksFirst(WaitingTurns):
    """Lets the target of the last turn work once more when it begins."""

    @action
    def begin(self) -> None:
        """The scheduler runs the job."""
        super().begin()
        self.working[IT] = Working.WORKS


def explored(model: type[Model], *invariants: str) -> Exploration:
    """Explore with two targets and two threads."""
    scope = Scope({Target: 2, Notifier: 2}, range(1), {"anybody": 0, "idle": 0})
    return explore(trace(model), scope, invariants=invariants or None)


def test_it_is_proved_for_any_number_of_targets_and_threads() -> None:
    proof = prove(trace(WaitingTurns))
    assert [each.name for each in proof.invariants if each.outcome != "proved"] == []
    assert {FORGOTTEN, WAITS} <= {each.name for each in proof.invariants}


def test_two_targets_and_two_threads_keep_all_of_it() -> None:
    found = explored(WaitingTurns)
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (ClearsAfterTheWork, "who-is-marked-waits"),
        (AppendsUnasked, "who-puts-it-in-the-line-has-marked-it"),
        (LooksNoMore, WAITS),
        (LooksBeforeItEnds, WAITS),
        (ComesBackForNobody, "the-job-comes-back-for-a-target"),
        (WorksFirst, "who-works-was-taken-from-the-line"),
    ],
)
def test_each_step_is_needed(model: type[Model], broken: str) -> None:
    found = explored(model, broken)
    assert found.violation is not None
    assert found.violation.invariant == broken


def test_whoever_waits_has_a_turn_in_the_end_unless_nobody_looks_again() -> None:
    alone = Scope({Target: 1, Notifier: 1}, range(1))
    assert all(each.kept and each.asked for each in check(trace(WaitingTurns), alone))
    two = Scope({Target: 1, Notifier: 2}, range(1), {"idle": 0})
    broken = {each.name for each in check(trace(LooksNoMore), two) if not each.kept}
    assert "each-waiting-target-has-a-turn" in broken
