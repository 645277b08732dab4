"""Hostile candidates: each ends with a report that has the findings of all other scopes.

Also what is left of them: no process, and no more of what they print than its end.
"""

from __future__ import annotations

import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.gate import stage_workers
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.subjects import Subject
from brokerproof.checks.workers import watchdog, worker_pool
from brokerproof.checks.workers.worker_pool import WorkerPool
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Declare, Get, Operation, Publish
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Sieve, Stack
from tests.checks.driver_groups import running_in
from tests.checks.workers import hostile_candidates
from tests.checks.workers.hostile_candidates import HOSTILE, LosesOneInAHundred

pytestmark = pytest.mark.skipif(not worker_pool.POSSIBLE, reason="processes cannot be copied")

LITTLE = Budget(operations=60, examples=2)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep every limit small, and hold each test to leaving no process of a worker's group."""
    groups: list[int] = []
    start = WorkerPool._start

    def noted(pool: WorkerPool[object]) -> object:
        worker = start(pool)
        groups.append(worker.number)
        return worker

    monkeypatch.setattr(WorkerPool, "_start", noted)
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 0.5)
    monkeypatch.setattr(watchdog, "DRAIN_S_MAX", 0.5)
    monkeypatch.setattr(watchdog, "TICK_S", 0.1)
    monkeypatch.setattr(worker_pool, "OVER_S", 0.5)
    monkeypatch.setattr(stage_workers, "MEMORY_BYTES_MAX", 600 * 10**6)
    monkeypatch.setattr(stage_workers, "SHORTENING_S", 1.0)
    monkeypatch.setattr(hostile_candidates, "PRINTED_MEGABYTES", 20)
    yield
    assert running_in(groups) == []
    assert not multiprocessing.active_children()


def judged(
    start: Callable[[], Candidate], budget: Budget = LITTLE, *, in_process: bool = True
) -> Report:
    """Return the gate's report on a candidate."""
    subject = Subject("hostile", start().hello(), start, in_process=in_process)
    return run_gate(subject, catalogue(), budget, 0, jobs=2)


def broken(report: Report) -> dict[str, str]:
    """Return the requirements found broken, each with its observation."""
    return {
        v.requirement.id: v.counterexample.summary
        for v in report.verdicts
        if v.counterexample is not None
    }


SEEN = {
    "Exits": "the process of the candidate ended with status 0",
    "KillsItself": "the process of the candidate was ended by SIGSEGV",
    "LongAnswer": "publish was answered with Error whose field `message` has 49,999,998 characters",
    "LongException": "publish raised RuntimeError: no no",
    "ManyEvents": "publish was answered with 1,000,000 events; at most 10,000 are allowed",
    "Allocates": "the process of the candidate was ended because it held more than 0.6 GB",
    "IgnoresSignals": "did not come back within 0.5 s",
    "SwallowsAll": "did not come back within 0.5 s",
    "Leaves": "publish raised SystemExit",
}
"""Hostile acts that are findings themselves; the others are lawful."""

MAY_SHOW = {"ClosesAll"}
"""Acts that end the process some time after the operation."""


@pytest.mark.each_time(2)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_candidate_does_not_hide_the_findings_of_other_scopes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "Allocates":
        monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 60)
    report = judged(HOSTILE[name])
    found = broken(report)
    assert "fifo-order" in found
    assert SEEN.get(name, "") in found.get("protocol", "")
    assert ("protocol" in found) == (name in SEEN) or name in MAY_SHOW


def test_the_twin_that_only_gives_the_last_first_keeps_the_protocol() -> None:
    found = broken(judged(hostile_candidates.Hostile))
    assert "fifo-order" in found
    assert "protocol" not in found


def test_a_trace_that_loses_its_process_is_as_short_as_it_gets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stage_workers, "SHORTENING_S", 60)
    report = judged(HOSTILE["Exits"])
    found = next(v.counterexample for v in report.verdicts if v.requirement.id == "protocol")
    assert found is not None
    [last] = found.moves
    assert isinstance(last, Publish)
    lost = [stage for stage in report.stages if stage.name == "lost"]
    assert lost
    assert not any(stage.complete for stage in lost)


# A command never runs a candidate's code itself.


def command(*arguments: str | Path) -> Result:
    """Run the command line."""
    return CliRunner().invoke(main, [str(each) for each in arguments])


def written(path: Path, text: str) -> str:
    """Write a candidate's file, and return its address."""
    path.write_text(text, encoding="utf-8")
    return f"{path}:make"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import os; os._exit(0)", "its process ended with status 0 before it had answered hello"),
        ("import time; time.sleep(600)", "the cap of 1 s was reached before it had answered hello"),
    ],
)
def test_a_candidate_that_cannot_be_opened_ends_with_2(
    text: str, complaint: str, tmp_path: Path
) -> None:
    address = written(tmp_path / "queue_of_mine.py", text)
    result = command("check", address, "--budget", "1", "--report", tmp_path / "report")
    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert complaint in line


PRINTS = """
from tests.checks.workers.hostile_candidates import Prints

def make():
    print("made")
    return Prints()
"""


def test_the_end_of_what_a_candidate_prints_is_shown_where_something_fails(tmp_path: Path) -> None:
    address = written(tmp_path / "queue_that_prints.py", PRINTS)
    little = ("--operations", "20", "--examples", "0", "--report", tmp_path / "report")
    result = command("check", address, *little)
    assert result.exit_code == 1
    head, _, tail = result.output.partition("the candidate printed last:\n")
    assert "made" not in head
    assert 0 < len(tail) < worker_pool.PRINTED_BYTES_MAX + 500
    kept = command("check", address, "--only", "protocol", *little)
    assert kept.exit_code == 0
    assert "printed last" not in kept.output


RAISES = """
from tests.checks.broken_candidates import Box
from brokerproof.spec.protocol.operations import Get

class Raises(Box):
    def handle(self, operation):
        if isinstance(operation, Get):
            raise RuntimeError("out of paper")
        return super().handle(operation)

make = Raises
"""


def test_a_traceback_of_the_candidate_is_shown_where_it_is_asked_for(tmp_path: Path) -> None:
    address = written(tmp_path / "queue_that_raises.py", RAISES)
    little = ("--operations", "20", "--examples", "0", "--report", tmp_path / "report")
    plain = command("check", address, *little)
    assert "raised RuntimeError: out of paper" in plain.output
    assert "Traceback" not in plain.output
    shown = command("check", address, "--traceback", *little)
    assert "Traceback (most recent call last)" in shown.output
    assert 'queue_that_raises.py", line 8, in handle' in shown.output
    assert "brokerproof/checks" not in shown.output


def test_so_is_that_of_a_candidate_that_cannot_be_made(tmp_path: Path) -> None:
    address = written(tmp_path / "no_queue.py", "def make():\n    return {}['paper']\n")
    plain = command("check", address)
    assert [line.partition(": ")[0] for line in plain.output.splitlines()] == ["Error"]
    shown = command("check", address, "--traceback")
    assert shown.output.startswith(plain.output.rstrip())
    assert 'no_queue.py", line 2, in make' in shown.output
    assert "brokerproof/candidates" not in shown.output
    assert "Traceback" not in command("interleave", address).output  # asked for no more


# The cap in seconds.


class Sleeps(Box):
    """Sleeps at the first get, and swallows the interrupt."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or sleep."""
        if isinstance(operation, Get):
            while True:
                try:
                    time.sleep(600)
                except Exception:  # noqa: BLE001, S112 - a cap is no `Exception`
                    continue
        return super().handle(operation)


def test_the_cap_ends_a_step_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 600.0)
    report = judged(Sleeps, Budget(operations=60, examples=2, seconds=6.0))
    reasons = {v.reason for v in report.verdicts if v.outcome.value == "inconclusive"}
    assert any("the cap of 6 s was reached: get had not come back for" in each for each in reasons)


class SleepsOnceItWasWrong(Stack):
    """Gives the last message first, and then sleeps when a queue is declared anew."""

    was_wrong = False

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, or sleep."""
        if SleepsOnceItWasWrong.was_wrong and isinstance(operation, Declare):
            time.sleep(600)
        if isinstance(operation, Get) and len(self.queues.get(operation.queue, ())) > 1:
            SleepsOnceItWasWrong.was_wrong = True
        return super().handle(operation)


def test_a_trace_that_the_cap_leaves_no_time_to_repeat_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchdog, "OPERATION_S_MAX", 600.0)
    report = judged(SleepsOnceItWasWrong, Budget(operations=60, examples=0, seconds=6.0))
    assert "fifo-order" in broken(report)


# Faults that occur once.


@pytest.mark.each_time(1)
@pytest.mark.parametrize("in_process", [True, False])
def test_a_candidate_that_loses_one_message_in_a_hundred_is_reported(in_process: bool) -> None:
    budget = Budget(operations=300, examples=20)
    lost = broken(judged(LosesOneInAHundred, budget, in_process=in_process))["nothing-lost"]
    assert re.search(
        r"\(seen (again in \d+ of \d+|once: it did not come again in \d+) tries\)", lost
    )
    # One that fails each time is not said to be seen so often, and its twin loses nothing.
    assert "tries" not in broken(judged(Sieve))["nothing-lost"]
    assert "nothing-lost" not in broken(judged(Box, budget, in_process=in_process))
