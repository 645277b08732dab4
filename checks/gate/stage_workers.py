"""Stages run in workers, and a lost worker turned into a finding.

The file owns what a worker returns to the gate, and the trace of a lost one: it is run again in
workers of its own until it is short, and its last operation is the finding. It does not know what
the stages do. A candidate outside this process is run in the gate's own process, since copies of
the process cannot share its connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import SupportsInt, TypeVar

from brokerproof.candidates.driver.process import memory_of
from brokerproof.checks.gate.gate_run import GateRun, Part, Stage
from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.search.counterexamples import Certificate
from brokerproof.checks.search.findings import Exchange, Run, play
from brokerproof.checks.search.root_cause import Fresh, Repeated, RootCause, shortest_form
from brokerproof.checks.trace.moves import Move, operation_of
from brokerproof.checks.workers import watchdog
from brokerproof.checks.workers.worker_pool import Lost, Tell, WorkerPool
from brokerproof.spec.protocol.answers import Answer, Error
from brokerproof.spec.protocol.operations import Drain, Operation, name_of

Result = TypeVar("Result")

TELL_S = 0.1
"""How often a worker reports progress."""

SEARCH_BYTES_MAX = 1_200 * 2**20
"""A search in a worker that holds more memory ends with its findings so far."""

MEMORY_BYTES_MAX = 1_600 * 2**20
"""A worker that holds more is ended."""

LOST_TRIES = 3
SHORTENING_S = 10.0
"""The time for shortening a trace that costs a worker."""


def in_workers(
    run: GateRun, work: Callable[[GateRun, int], Result], tasks: int, jobs: SupportsInt = 1
) -> Iterator[Result | Lost | None]:
    """Yield the results of tasks, in order, after adding the evidence of each to the gate's.

    Each task works on a copy of the run. On Ctrl-C, and at the cap in seconds, running tasks return
    their evidence; the result of one that was cut short is None.
    """
    if not run.uses_workers:
        for number in range(tasks):
            if run.clock.reason():
                return
            yield work(run, number)
        return

    def task(
        number: int, tell: Tell, is_interrupted: Callable[[], bool]
    ) -> tuple[Result | None, Part]:
        run.progress, run.clock.is_pressed = _seldom(tell), is_interrupted
        run.clock.memory_max = memory_of("self") + SEARCH_BYTES_MAX
        run.part()
        result = None
        try:
            with watchdog.watching(run.clock.cap):
                result = work(run, number)
        except watchdog.CapReached as reached:
            run.evidence.under_way = run.evidence.under_way or reached.under_way
        except KeyboardInterrupt:
            run.clock.interrupted = True
        finally:
            run.subject.rest()
        return result, run.part()

    run.subject.rest()
    pool = WorkerPool(task, tasks, jobs, run.clock.cap, MEMORY_BYTES_MAX)
    try:
        with pool:
            try:
                for each in pool.results(run.progress, lambda: not run.clock.reason()):
                    yield _taken_over(run, each)
            except KeyboardInterrupt:
                pool.interrupt()
                run.clock.press()
                for each in pool.results(lambda _stage, _operations: None, lambda: False):
                    _taken_over(run, each)
                raise
    finally:
        run.report.printed = pool.printed or run.report.printed
    if run.clock.interrupted:
        raise KeyboardInterrupt


def _taken_over(run: GateRun, came: tuple[Result | None, Part] | Lost) -> Result | Lost | None:
    if isinstance(came, Lost):
        return came
    result, part = came
    run.take_over(part)
    return result


def _seldom(tell: Tell) -> Tell:
    told = 0.0

    def telling(what: str, operations: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_S:
            told = time.monotonic()
            tell(what, operations)

    return telling


def keep_lost(run: GateRun, lost: Lost, where: str) -> None:
    """Report a worker that was lost: the trace that it was running is a finding.

    A worker ended by the cap is no finding. If the process was not seen to end by itself within an
    operation, the trace must end a worker again.
    """
    run.clock.hangs += lost.hangs
    run.report.stages.append(Stage("lost", f"{where}its process {lost.how}", False, 0))
    run.evidence.lost = run.evidence.lost or f"{where}its process {lost.how}"
    known = run.evidence.broken.get("protocol")
    if lost.late or not lost.moves or (known and len(known.steps) <= len(lost.moves)):
        return
    tries = _Tries(run)
    first = _as_run(lost.moves, lost)
    repeated = Repeated()
    if not lost.hangs:
        while repeated.tries < LOST_TRIES and not run.clock.reason():
            repeated.tries += 1
            repeated.times += tries.fails(lost.moves) is not None
        if not repeated.times and not lost.by_itself:
            return
        if repeated.times:
            first = shortest_form(first, run.subject.fresh, tries.again)
    found = tries.with_answers(first)
    if found is None:
        return
    reason = "its process was lost, so shorter traces were not searched"
    came = RootCause(found, None if repeated.always or lost.hangs else repeated)
    run.keep_finding(came, Certificate(grade="not certified", reason=reason))


class _Tries:
    """Traces run again, each in a worker of its own."""

    def __init__(self, run: GateRun) -> None:
        self._run, self._end = run, time.monotonic() + SHORTENING_S

    def fails(self, moves: Sequence[Move]) -> Lost | None:
        """Return how the worker is lost that runs a trace, if it is."""

        def task(_number: int, _tell: Tell, _is_interrupted: Callable[[], bool]) -> None:
            with watchdog.watching(self._run.clock.cap):
                candidate, oracle = self._run.subject.fresh()
                try:
                    play(candidate, oracle, moves)
                except (Unfollowable, watchdog.CapReached):
                    return

        cap = self._run.clock.cap
        with WorkerPool(task, 1, 1, cap, MEMORY_BYTES_MAX) as pool:
            [came] = pool.results(lambda _stage, _operations: None, lambda: True)
        return came if isinstance(came, Lost) and not came.late else None

    def again(self, moves: Sequence[Move], _fresh: Fresh, _requirement: str) -> Run | None:
        """Return a trace that loses a worker again, as a run; None if it does not."""
        if time.monotonic() > self._end or not moves or self._run.clock.reason():
            return None
        lost = self.fails(moves)
        return None if lost is None else _as_run(lost.moves, lost)

    def with_answers(self, found: Run) -> Run | None:
        """Return a run with the answers to all but its last operation, heard in one more worker."""
        *before, last = found.moves
        assert found.broken is not None

        def task(
            _number: int, _tell: Tell, _is_interrupted: Callable[[], bool]
        ) -> tuple[tuple[Exchange, ...], Operation | None]:
            self._run.subject.out_of_time = lambda: False
            with watchdog.watching():
                candidate, oracle = self._run.subject.fresh()
                steps = play(candidate, oracle, before).steps
                return steps, operation_of(last, oracle.bindings)

        with WorkerPool(task, 1, 1) as pool:
            [came] = pool.results(lambda _stage, _operations: None, lambda: True)
        if isinstance(came, Lost) or came[1] is None:
            return None
        steps, operation = came
        assert operation is not None
        what = f"{name_of(operation)}: {found.broken.reason}"
        told = Exchange(last, operation, Answer(error=Error("internal", what)))
        breach = Breach(
            "protocol", what, hangs=found.broken.hangs, expected="an answer from the same process"
        )
        return Run((*steps, told), breach)


def _as_run(moves: Sequence[Move], lost: Lost) -> Run:
    """Return moves as a run whose answers are not known."""
    steps = tuple(Exchange(move, Drain(), Answer()) for move in moves)
    breach = Breach("protocol", f"the process of the candidate {lost.how}", hangs=lost.hangs)
    return Run(steps, breach)
