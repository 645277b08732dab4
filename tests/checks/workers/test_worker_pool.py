"""Scopes searched in workers: the same report, whatever their number, and whatever ends them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokerproof.checks.conversation import Misbehaviour
from brokerproof.checks.gate import stage_workers
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.gate.gate_run import HANGS_MAX
from brokerproof.checks.search import step_cache
from brokerproof.checks.search.findings import ask_with_power
from brokerproof.checks.subjects import Subject
from brokerproof.checks.trace.moves import Move
from brokerproof.checks.workers import watchdog, worker_pool
from brokerproof.checks.workers.worker_pool import Lost, Tell, WorkerPool, in_order
from brokerproof.reference import make
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Get, Operation
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Sieve, Stack
from tests.checks.search.test_product import Fragile

pytestmark = pytest.mark.skipif(not worker_pool.POSSIBLE, reason="processes cannot be copied")

GATE = os.getpid()
"""The process of the tests, which the candidates below tell from copies of it."""


class TwoFaced(Box):
    """Answers every second get in a process with nothing, whatever there is."""

    gets = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or nothing."""
        TwoFaced.gets += isinstance(operation, Get)
        if isinstance(operation, Get) and TwoFaced.gets % 2:
            return Answer()
        return super().handle(operation)


class Deserter(Box):
    """Ends the process, unless that is the one of the tests."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or leave."""
        if isinstance(operation, Get) and os.getpid() != GATE:
            os._exit(7)
        return super().handle(operation)


class Pressed(Box):
    """Simulates Ctrl-C at the first get, wherever that is."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or be interrupted."""
        if isinstance(operation, Get):
            raise KeyboardInterrupt
        return super().handle(operation)


class Holder(Box):
    """Claims to hold a resource outside of this process."""

    def close(self) -> None:
        """Give it back."""


def judged(start: Callable[[], Candidate], jobs: int, operations: int = 60) -> Report:
    subject = Subject("candidate", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(operations, 0), 0, jobs=jobs)


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    "start",
    [Stack, lambda: make("qpid-push"), Box, Sieve, Fragile],
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

    monkeypatch.setattr(step_cache, "ask_with_power", hangs_at_a_get)
    alone = judged(Box, 1)
    assert len(alone.stages) == HANGS_MAX
    assert repr(judged(Box, 3)) == repr(alone)


def test_a_report_that_hangs_on_it_is_found_out() -> None:
    assert repr(judged(TwoFaced, 2)) != repr(judged(TwoFaced, 1))


def test_a_candidate_that_holds_something_outside_has_one_worker_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twin: one that holds nothing has several."""
    jobs: list[int] = []

    def noting(*arguments: Any) -> WorkerPool[Any]:
        jobs.append(arguments[2])
        return WorkerPool(*arguments)

    monkeypatch.setattr(stage_workers, "WorkerPool", noting)
    judged(Holder, 2)
    assert max(jobs) == 1
    judged(Box, 2)
    assert max(jobs) == 2


def test_ctrl_c_ends_all_with_what_was_found() -> None:
    report = judged(Pressed, 2)
    assert report.interrupted
    assert report.stages[0].did.endswith("stopped by interrupted")
    assert {verdict.reason for verdict in report.verdicts if verdict.reason} == {"interrupted"}
    assert not multiprocessing.active_children()


def test_a_candidate_that_ends_its_process_is_a_finding_with_a_trace() -> None:
    report = judged(Deserter, 2)
    broken = {v.requirement.id: v.counterexample for v in report.verdicts if v.counterexample}
    found = broken["protocol"]
    assert found is not None
    assert found.seen == "get: the process of the candidate ended with status 7"
    assert [type(move) for move in found.moves] == [Get]
    assert found.again is None
    # Its twin that stays keeps the protocol.
    [twin] = [v for v in judged(Box, 2).verdicts if v.requirement.id == "protocol"]
    assert twin.counterexample is None
    assert not multiprocessing.active_children()


# The processes alone.


def unheard(_what: str, _operations: int) -> None:
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

    with WorkerPool(work, 4, 2) as apart:
        assert list(apart.results(unheard, always)) == [0, 1, 4, 9]


def test_nothing_begins_that_may_not() -> None:
    def work(number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> int:
        return number

    left = [True, True, False]
    with WorkerPool(work, 4, 1) as apart:
        assert list(apart.results(unheard, lambda: left.pop(0))) == [0, 1]


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

    with WorkerPool(work, 9, 2) as apart:
        assert list(apart.results(told, always)) == ["0 stopped", "1 stopped"]


def test_a_pool_that_is_left_leaves_no_process_behind() -> None:
    def work(_number: int, tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        while True:
            tell("still here", 1)

    def told(_what: str, _operations: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), WorkerPool(work, 2, 2) as apart:
        list(apart.results(told, always))
    assert not multiprocessing.active_children()


def lost_by(act: Callable[[], object], **limits: Any) -> Lost:
    """Return how a worker is lost that acts so; the task before and the one after come back."""

    def work(number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> int:
        if number == 1:
            act()
        return number

    with WorkerPool(work, 3, 1, **limits) as pool:
        before, lost, after = pool.results(unheard, always)
    assert (before, after) == (0, 2)
    assert isinstance(lost, Lost)
    assert lost.task == 1
    return lost


def swallowing() -> None:
    """Do not come back from an operation, whatever is raised."""
    with watchdog.asking(Get(queue="q", channel="c")):
        while True:
            time.sleep(1)


@pytest.mark.parametrize(
    ("act", "how"),
    [
        (lambda: os._exit(7), "ended with status 7"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "was ended by SIGKILL"),
        (lambda: os.closerange(3, 256), "ended with status"),
    ],
)
def test_a_worker_that_ends_is_lost_and_the_others_are_not(
    act: Callable[[], object], how: str
) -> None:
    assert lost_by(act).how.startswith(how)


def test_a_worker_that_holds_too_much_memory_is_ended() -> None:
    held = lost_by(lambda: [bytearray(b"x" * 10**7) for _ in range(100)], memory_max=2 * 10**8)
    assert held.how == "was ended because it held more than 0.2 GB of memory"


def test_a_worker_that_does_not_come_back_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 0.1)
    monkeypatch.setattr(worker_pool, "OVER_S", 0.1)
    hung = lost_by(swallowing)
    assert hung.hangs
    assert hung.how == "did not come back within 0.1 s"


def test_a_worker_that_outlives_the_cap_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "LATE_S", 0.1)

    def work(_number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        time.sleep(600)

    with WorkerPool(work, 1, 1, time.monotonic() + 0.1) as pool:
        [lost] = pool.results(unheard, always)
    assert isinstance(lost, Lost)
    assert lost.late


def test_the_end_of_what_a_worker_prints_is_kept() -> None:
    def work(_number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        for _ in range(100):
            sys.stdout.write("x" * 10**5)
        sys.stdout.write("the last line\n")

    with WorkerPool(work, 1, 1) as pool:
        list(pool.results(unheard, always))
    assert pool.printed.endswith("the last line\n")
    assert len(pool.printed) <= worker_pool.PRINTED_BYTES_MAX


def test_what_is_raised_in_a_worker_is_raised_where_its_result_is_awaited() -> None:
    def work(_number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        raise ValueError("ours")

    with WorkerPool(work, 1, 1) as pool, pytest.raises(ValueError, match="ours"):
        list(pool.results(unheard, always))
    assert not multiprocessing.active_children()


def test_workers_at_rest_clean_up_when_the_pool_ends(tmp_path: Path) -> None:
    def work(_number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        """Do nothing."""

    with WorkerPool(work, 1, 1, at_end=(tmp_path / "cleaned").touch) as pool:
        list(pool.results(unheard, always))
        assert not (tmp_path / "cleaned").exists()
    assert (tmp_path / "cleaned").exists()


def test_a_pool_that_ends_before_another_cleans_up_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of the other pool must not hold open the pipe that tells the first one to end."""
    monkeypatch.setattr(worker_pool, "END_S", 5.0)

    def work(_number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
        """Do nothing."""

    with WorkerPool(work, 1, 1, at_end=(tmp_path / "cleaned").touch) as first:
        list(first.results(unheard, always))
        with WorkerPool(work, 1, 1) as other:
            list(other.results(unheard, always))
            first.__exit__(None, None, None)
            assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize(("held", "processes"), [(40, 2), (60, 6)])
def test_a_process_that_holds_much_after_a_task_is_replaced(
    held: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "memory_of", lambda of: 0 if of == "self" else held)
    done = in_order(lambda *_: os.getpid(), 6, 2, lambda *_: None, memory_max=100)
    assert len({*done}) == processes
