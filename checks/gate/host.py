"""The host: the process in which a candidate is opened and run, apart from the command itself.

The command never runs a candidate's code, so it always has a report to write. It makes the host
open the candidate and then run the gate on it, reads its output, and ends it long after the cap in
seconds. Several hosts may run at once. The host does not know how a candidate is judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from brokerproof.candidates.crash_commands import Power, PowerFailed
from brokerproof.candidates.driver.self_check import BrokerproofErrs
from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.errors import CannotRun, opened
from brokerproof.checks.gate.departures import departures_from
from brokerproof.checks.gate.gate import Report, run_gate
from brokerproof.checks.gate.gate_run import Budget, Clock, Progress
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Evidence, judge
from brokerproof.checks.workers.interrupts import Interrupts
from brokerproof.checks.workers.watchdog import CapReached, watching
from brokerproof.checks.workers.worker_pool import POSSIBLE, Jobs, Lost, Tell, WorkerPool
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.requirements import Requirement

OPENING_S = 5.0
"""The time to open a candidate, however small the cap in seconds is."""

BEYOND_S = 1.2
"""The host may end so much later than its workers."""


@dataclass(frozen=True)
class Request:
    """One candidate and its requirements, budget and seed; `power` can crash a broker.

    With `than`, departures from these stricter claims are looked for, too.
    """

    address: str
    shown: str
    requirements: dict[str, Requirement]
    budget: Budget
    seed: int
    jobs: Jobs
    power: Power | None = None
    than: Capabilities | None = None


@dataclass
class Host:
    """The process of one candidate; a context manager that closes it and ends the process."""

    asked: Request
    clock: Clock
    hello: Hello = field(init=False)
    warnings: tuple[str, ...] = field(init=False, default=())
    runs_alone: bool = field(init=False)
    """Whether the candidate is, or uses, a server that others may use or that may be awaited."""
    _came: Report | CannotRun | None = field(init=False, default=None)
    _progress: Progress = field(init=False, default=lambda _stage, _operations: None)

    def __post_init__(self) -> None:
        cap = self.clock.cap
        self._inside = _Inside(self.asked, self.clock)
        self._pool: WorkerPool[_Opened | Report] = WorkerPool(
            self._inside.do,
            tasks=2,
            jobs=1,
            cap=None if cap is None else max(cap, time.monotonic() + OPENING_S) + BEYOND_S,
            at_end=self._inside.close,
        )
        self._looks: Iterator[Sequence[_Opened | Report | Lost]] = (
            self._pool.looks(self._tell, lambda: True)
            if POSSIBLE
            else self._inside.in_this_process(self._tell)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Close the candidate and end its process."""
        self._pool.__exit__(kind, raised, where)
        if not POSSIBLE:
            self._inside.close()

    def _tell(self, stage: str, operations: int) -> None:
        self._progress(stage, operations)

    def open(self) -> None:
        """Open the candidate, and read its hello; raises `CannotRun`."""
        came = next(came for come in self._looks for came in come)
        if isinstance(came, Lost):
            how = self.clock.reason() if came.late else f"its process {came.how}"
            raise CannotRun(f"{self.asked.shown}: {how} before it had answered hello and reset")
        assert isinstance(came, _Opened)
        self.hello, self.warnings = came.hello, came.warnings
        self.runs_alone = came.runs_alone

    @property
    def is_done(self) -> bool:
        """Whether the gate has run on the candidate, or could not."""
        return self._came is not None

    def look(self, progress: Progress) -> None:
        """Let the gate run on the candidate, and see whether it is done."""
        self._progress = progress
        try:
            for came in next(self._looks, [_NOT_BEGUN]):
                assert not isinstance(came, _Opened)
                self._came = self._report_of_lost(came) if isinstance(came, Lost) else came
        except CannotRun as error:
            self._came = error

    def report(self) -> Report:
        """Return the report of a run that is done; raises `CannotRun`."""
        assert self._came is not None
        if isinstance(self._came, CannotRun):
            raise self._came
        self._came.printed = self._came.printed or self._pool.said()
        return self._came

    def interrupt(self) -> None:
        """Let a run that is not done end with the findings so far."""
        if self._came is not None:
            return
        self.clock.press()
        if self.clock.cap is not None:
            self._pool.cap = self.clock.cap + BEYOND_S
        self._pool.interrupt()
        # An exception has ended the iteration before.
        self._looks = self._pool.looks(lambda _stage, _operations: None, lambda: False)

    def _report_of_lost(self, lost: Lost) -> Report:
        """Return a report that gives the reason for no verdict on all requirements."""
        hello, asked = self.hello, self.asked
        how = self.clock.reason() if lost.late else f"the process of the gate {lost.how}"
        interrupted = self.clock.interrupted
        report = Report(asked.address, hello.name, hello.version, asked.seed)
        report.interrupted, report.printed = interrupted, self._pool.said()
        evidence = Evidence(lost=how)
        report.verdicts = judge(asked.requirements, hello.capabilities, evidence)
        return report


_NOT_BEGUN: Final = Lost(1, "was not begun", late=True)
"""Ctrl-C came just before the gate was to run."""


@dataclass(frozen=True)
class _Opened:
    """The hello of an opened candidate, its warnings, and whether it runs alone."""

    hello: Hello
    warnings: tuple[str, ...]
    runs_alone: bool


class Hosts:
    """Opened hosts that run side by side where they can, and their reports in order.

    One process searches a candidate with less work than two that come upon the same states. So as
    many run at once as there are `jobs`, which they share. Where one runs alone, all do.
    """

    def __init__(self, hosts: Sequence[Host], jobs: int) -> None:
        self._hosts, self._jobs = list(hosts), jobs
        side_by_side = POSSIBLE and not any(host.runs_alone for host in hosts)
        self._at_once = jobs if side_by_side else 1
        self._begun = self._taken = 0

    def await_next(self, progress: Callable[[Host], Progress]) -> Host | None:
        """Run hosts until the next in order is done, and return it; None after the last."""
        while self._taken < len(self._hosts):
            running = self._running()
            for host in running:
                host.asked.jobs.set(max(1, self._jobs // len(running)))
                host.look(progress(host))
            host = self._hosts[self._taken]
            if host.is_done:
                self._taken += 1
                return host
        return None

    def _running(self) -> list[Host]:
        """Return the hosts that are not done, after beginning as many as may run."""
        running = [host for host in self._hosts[self._taken : self._begun] if not host.is_done]
        more = self._hosts[self._begun :][: self._at_once - len(running)]
        self._begun += len(more)
        return [*running, *more]

    def interrupt(self) -> None:
        """Let the running hosts end with their findings so far, and begin no more."""
        del self._hosts[self._begun :]
        for host in self._hosts[self._taken :]:
            host.interrupt()


class _Inside:
    """The part of the host that runs in the process of the candidate."""

    def __init__(self, asked: Request, clock: Clock) -> None:
        self._asked, self._clock = asked, clock
        self._subject: Subject | None = None
        self._interrupts = Interrupts()

    def do(self, task: int, tell: Tell, is_pressed: Callable[[], bool]) -> _Opened | Report:
        """Open the candidate, or run the gate on it; raises `CannotRun`."""
        try:
            return self._open() if task == 0 else self._run(tell, is_pressed)
        except (BrokerproofErrs, PowerFailed) as error:
            raise CannotRun(str(error)) from error

    def in_this_process(self, tell: Tell) -> Iterator[list[_Opened | Report]]:
        """Do the same where processes cannot be copied."""
        for task in range(2):
            yield [self.do(task, tell, lambda: False)]

    def _open(self) -> _Opened:
        asked = self._asked
        try:
            with (
                self._interrupts.listening(),
                watching(self._clock.cap and max(self._clock.cap, time.monotonic() + OPENING_S)),
            ):
                self._subject = opened(asked.address, asked.power)
        except CapReached:
            reason = f"{self._clock.reason()} before it had answered hello and reset"
            raise CannotRun(f"{asked.shown}: {reason}; give it more with --budget") from None
        subject = self._subject
        alone = not subject.in_process or subject.holds_something
        return _Opened(subject.hello, subject.warnings, alone)

    def _run(self, tell: Tell, is_pressed: Callable[[], bool]) -> Report:
        asked, subject, interrupts = self._asked, self._subject, self._interrupts
        assert subject is not None
        self._clock.is_pressed = lambda: is_pressed() or interrupts.pressed

        def progress(stage: str, operations: int) -> None:
            interrupts.raise_if_pressed()
            tell(stage, operations)

        try:
            with interrupts.listening():
                report = run_gate(
                    subject,
                    asked.requirements,
                    asked.budget,
                    asked.seed,
                    progress,
                    jobs=asked.jobs,
                    apart=True,
                    clock=self._clock,
                )
                if asked.than is not None and not report.interrupted:
                    report.departures = departures_from(
                        asked.than,
                        subject,
                        report,
                        asked.requirements,
                        asked.budget,
                        progress,
                        self._clock,
                    )
                return report
        except CannotStart as error:
            raise CannotRun(f"{asked.shown}: {error}") from error

    def close(self) -> None:
        """Close the candidate, if it was opened."""
        if self._subject is not None:
            self._subject.close()
