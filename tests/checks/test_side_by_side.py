"""Scopes searched side by side: the same report, whatever the number of processes.

Also how processes end: when all is done, by Ctrl-C, and by themselves in the midst of a task.
"""

from __future__ import annotations

import multiprocessing
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks import exhaustive, side_by_side, standings
from brokerproof.checks.command_line import main
from brokerproof.checks.conversation import Misbehaviour
from brokerproof.checks.exhaustive import CTRL_C
from brokerproof.checks.findings import ask_with_power
from brokerproof.checks.gate import Budget, Report, run_gate
from brokerproof.checks.moves import Move
from brokerproof.checks.side_by_side import ProcessEnded, SideBySide, Tell
from brokerproof.checks.subjects import Subject
from brokerproof.reference import make
from brokerproof.spec.answers import Answer
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.operations import Get, Operation
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Sieve, Stack
from tests.checks.test_product import Fragile

pytestmark = pytest.mark.skipif(not side_by_side.POSSIBLE, reason="processes cannot be copied")

GATE = os.getpid()
"""The process of the tests, which the candidates below tell from copies of it."""


class TwoFaced(Box):
    """Answers a get in another process than this one with nothing, whatever there is."""

    def handle(self, operation: Operation) -> Answer:
        """Do as asked, or nothing."""
        if isinstance(operation, Get) and os.getpid() != GATE:
            return Answer()
        return super().handle(operation)


class Deserter(Box):
    """Ends the process, unless that is this one."""

    def handle(self, operation: Operation) -> Answer:
        """Do as asked, or leave."""
        if isinstance(operation, Get) and os.getpid() != GATE:
            os._exit(7)
        return super().handle(operation)


class Pressed(Box):
    """Stands for somebody who presses Ctrl-C at the first get, wherever that is."""

    def handle(self, operation: Operation) -> Answer:
        """Do as asked, or be interrupted."""
        if isinstance(operation, Get):
            raise KeyboardInterrupt
        return super().handle(operation)


class Holder(Box):
    """Holds something outside of this process, as it says."""

    def close(self) -> None:
        """Give it back."""


def judged(start: Callable[[], Candidate], jobs: int, operations: int = 150) -> Report:
    subject = Subject("candidate", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(operations, 0), 0, jobs=jobs)


@pytest.mark.parametrize(
    "start",
    [pytest.param(lambda: make("qpid-push"), marks=pytest.mark.slow), Box, Stack, Sieve, Fragile],
)
def test_the_report_does_not_hang_on_the_number_of_processes(
    start: Callable[[], Candidate],
) -> None:
    alone = judged(start, 1)
    assert repr(judged(start, 2)) == repr(alone)
    assert repr(judged(start, 5)) == repr(alone)
    assert not multiprocessing.active_children()


def test_the_report_does_not_hang_on_it_where_the_candidate_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hangs_at_a_get(
        candidate: Candidate, move: Move, operation: Operation
    ) -> Answer | Misbehaviour:
        if isinstance(operation, Get):
            return Misbehaviour("get did not come back", hangs=True)
        return ask_with_power(candidate, move, operation)

    monkeypatch.setattr(standings, "ask_with_power", hangs_at_a_get)
    alone = judged(Box, 1)
    assert len(alone.stages) == 1
    assert repr(judged(Box, 3)) == repr(alone)


def test_a_report_that_hangs_on_it_is_found_out() -> None:
    assert repr(judged(TwoFaced, 2)) != repr(judged(TwoFaced, 1))


def test_who_holds_something_outside_is_searched_in_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = judged(Holder, 1)
    monkeypatch.setattr(exhaustive, "SideBySide", None)
    assert repr(judged(Holder, 2)) == repr(alone)
    with pytest.raises(TypeError):
        judged(Box, 2)


def test_ctrl_c_ends_all_with_what_was_found() -> None:
    report = judged(Pressed, 2)
    assert report.interrupted
    assert report.stages[0].did.endswith(f"stopped by {CTRL_C}")
    assert {verdict.reason for verdict in report.verdicts if verdict.reason} == {"interrupted"}
    assert not multiprocessing.active_children()


def test_a_process_that_ends_by_itself_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ProcessEnded, match=r"the process that searched .* ended with status 7"):
        judged(Deserter, 2)
    assert not multiprocessing.active_children()
    address = f"{__name__}:Deserter"
    options = ["--jobs", "2", "--operations", "50", "--report", str(tmp_path)]
    result = CliRunner().invoke(main, ["check", address, *options])
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    # Both processes end, and which is noticed first is chance.
    assert re.fullmatch(
        rf"Error: {re.escape(address)}: the process that searched '[^']+' ended with status 7; "
        r"look closer with --jobs 1",
        line,
    )


# The processes alone.


def nobody(_what: str, _operations: int) -> None:
    """Be told, and do nothing."""


def always() -> bool:
    """Let every task begin."""
    return True


def test_results_come_in_the_order_of_the_tasks() -> None:
    last_is_done = multiprocessing.get_context("fork").Event()

    def work(number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> int:
        if number == 3:
            last_is_done.set()
        if number == 0:
            last_is_done.wait()
        return number * number

    with SideBySide(work, 4, 2) as apart:
        assert list(apart.results(nobody, always)) == [0, 1, 4, 9]


def test_nothing_begins_that_may_not() -> None:
    def work(number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> int:
        return number

    left = [True, True, False]
    with SideBySide(work, 4, 1) as apart:
        assert list(apart.results(nobody, lambda: left.pop(0))) == [0, 1]


def test_those_at_work_stop_when_they_are_asked_to() -> None:
    def work(number: int, tell: Tell, is_interrupted: Callable[[], bool]) -> str:
        tell("begun", number)
        while not is_interrupted():
            pass
        return f"{number} stopped"

    begun: list[int] = []

    def told(_what: str, number: int) -> None:
        begun.append(number)
        if len(begun) == 2:
            apart.interrupt()

    with SideBySide(work, 9, 2) as apart:
        assert list(apart.results(told, always)) == ["0 stopped", "1 stopped"]


def test_who_takes_no_results_leaves_no_process_behind() -> None:
    def work(_number: int, tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        while True:
            tell("still here", 1)

    def told(_what: str, _operations: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), SideBySide(work, 2, 2) as apart:
        list(apart.results(told, always))
    assert not multiprocessing.active_children()
