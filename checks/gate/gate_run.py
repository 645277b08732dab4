"""The state of one run of the gate: its budget, its evidence so far, and its report.

All stages share this state. The file knows nothing of what the stages do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, SupportsInt, TypeAlias

from brokerproof.candidates.driver.process import memory_of
from brokerproof.checks.search.counterexamples import (
    Certificate,
    Counterexample,
    counterexample_of,
)
from brokerproof.checks.search.coverage import Reach
from brokerproof.checks.search.findings import Run
from brokerproof.checks.search.root_cause import RootCause, requirement_of
from brokerproof.checks.search.searches import Grade
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Evidence, Verdict
from brokerproof.checks.workers.worker_pool import POSSIBLE
from brokerproof.spec.protocol.differences import Difference


@dataclass(frozen=True)
class Budget:
    """The budget of a run: operations for each scope, examples, and a cap in seconds.

    `interleavings` is the number of classes run for each parallel case. Every run of `depth`
    operations of each scope is tried, even if that takes more than `operations`. A candidate
    outside this process gets half of that depth; a broker on the wire is only walked.
    """

    operations: int = 25_000
    examples: int = 200
    seconds: float | None = None
    interleavings: int = 0
    depth: int = 0


Effort: TypeAlias = Literal["quick", "normal", "deep"]

EFFORTS: dict[Effort, Budget] = {
    "quick": Budget(operations=350, examples=16, interleavings=5, depth=2),
    "normal": Budget(operations=6_000, examples=200, interleavings=60, depth=4),
    "deep": Budget(operations=40_000, examples=400, interleavings=200, depth=6),
}
"""What each level of effort tries; every stage takes its share from these numbers.

`quick` tests every requirement of the reference brokers: all four take half a minute on two cores.
`deep` takes some twenty minutes for them.
"""


def budget_of(
    effort: Effort,
    operations: int | None,
    examples: int | None,
    seconds: float | None,
    interleavings: int | None,
) -> Budget:
    """Return the budget of a level, with each number that is given instead of its own.

    A number of operations that is given replaces the level's depth too.
    """
    level = EFFORTS[effort]
    return Budget(
        level.operations if operations is None else operations,
        level.examples if examples is None else examples,
        seconds,
        level.interleavings if interleavings is None else interleavings,
        level.depth if operations is None else 0,
    )


@dataclass(frozen=True)
class Stage:
    """What one stage did, in one line, and whether it covered its whole scope."""

    name: str
    did: str
    complete: bool
    operations: int


@dataclass(frozen=True)
class Departure:
    """A difference from stricter claims, and the trace that shows it, unless none was found."""

    difference: Difference
    shown_by: Counterexample | None


@dataclass
class Report:
    """What the gate says of one candidate."""

    address: str
    name: str
    version: str
    seed: int
    verdicts: tuple[Verdict, ...] = ()
    stages: list[Stage] = field(default_factory=list)
    interrupted: bool = False
    departures: tuple[Departure, ...] = ()
    reached: dict[str, Reach] = field(default_factory=dict)
    """How far each scope was searched, by its name."""
    messages: int = 0
    """The most messages in one of the large runs."""
    printed: str = ""
    """The end of what the candidate printed. No file holds it, since it may differ each time."""


class Clock:
    """The reasons to stop a run: the cap in seconds, the memory limit, and Ctrl-C.

    `cap` is the end by `time.monotonic`, the same in all processes.
    """

    def __init__(self, seconds: float | None, begun_s_ago: float = 0.0) -> None:
        self.interrupted = False
        self.hangs = self.ended = 0
        self.memory_max: int | None = None  # only in a worker: others hold more than a search
        self.is_pressed: Callable[[], bool] = lambda: False
        self._seconds, self._asked = seconds, 0
        self.cap = None if seconds is None else time.monotonic() + seconds - begun_s_ago
        # Reserved for repeating and shortening the last finding.
        self._repeating_s = 0.0 if seconds is None else min(REPEATING_S_MAX, seconds / 8)

    def press(self) -> None:
        """Note Ctrl-C; from now on only the findings are finished, within `REPEATING_S_MAX`."""
        self.interrupted = True
        end = time.monotonic() + REPEATING_S_MAX
        self.cap = end if self.cap is None else min(self.cap, end)

    def left_s(self) -> float:
        """Return how many seconds are left."""
        return math.inf if self.cap is None else self.cap - time.monotonic()

    def reason(self) -> str:
        """Return the reason to stop, or an empty text."""
        if self.is_pressed() and not self.interrupted:
            self.press()
        if self.interrupted:
            return "interrupted"
        if self.hangs >= HANGS_MAX:
            return "the candidate hangs, so nothing more was tried"
        if self.ended >= ENDED_MAX:
            return "the candidate had to be started again and again, so nothing more was tried"
        if self.left_s() < self._repeating_s:
            return f"the cap of {self._seconds:g} s was reached"
        self._asked += 1
        most = self.memory_max
        if most and self._asked % MEMORY_LOOKED_AT_EVERY == 0 and memory_of("self") > most:
            return f"the {most / 1e9:.1f} GB of memory that a search may hold"
        return ""


AT_REST: Final = frozenset(("quiesce", "quiesce_by_size"))
"""The contract's actions by which a broker comes to rest."""

LATE: Final = (
    "a delivery did not come in time once, and came in {} tries of the same: the machine may have "
    "been too busy; run the gate again when it is not"
)

MEMORY_LOOKED_AT_EVERY = 32

HANGS_MAX = 2
"""Stages or scopes that may end with a candidate that hangs. Each costs a time limit."""

ENDED_MAX = 20
"""Searches that may end with a process that ended several times. Each end costs a start."""

REPEATING_S_MAX = 4.0
"""The most of the cap that is reserved for repeating and shortening findings."""


Progress = Callable[[str, int], None]
"""Called with the stage and the operations so far."""


@dataclass
class GateRun:
    """The state that the stages share: the candidate, the budget and the evidence."""

    subject: Subject
    budget: Budget
    clock: Clock
    report: Report
    progress: Progress
    evidence: Evidence = field(default_factory=Evidence)
    grade: Grade = "sequences"
    """The grade for a candidate that cannot be copied; nondeterminism changes it to adaptive."""
    jobs: SupportsInt = 1
    """How many scopes are searched at once. The report does not depend on it."""
    apart: bool = False
    """Whether a candidate in this process is run in workers, where that is possible."""
    operations: int = 0
    """How many were tried so far, also by searches that began anew."""

    @property
    def uses_workers(self) -> bool:
        """Whether the candidate runs in copies of this process."""
        return POSSIBLE and self.apart and self.subject.in_process

    def keep_finding(
        self, came: RootCause, certificate: Certificate, seed: int | None = None
    ) -> None:
        """Keep the trace attributed to a requirement, unless a shorter one is known."""
        assert came.run is not None
        again = None if came.repeated is None else (came.repeated.times, came.repeated.tries)
        if self.may_be_late(came.run, again):
            return
        address = self.subject.address
        self.evidence.keep(counterexample_of(address, came.run, certificate, seed, again))

    def keep_masked(self, requirement: str, came: RootCause) -> None:
        """Note what explains all traces of a requirement, and keep its trace if there is none."""
        assert came.instead is not None, "a trace is kept unless another requirement explains it"
        behind = requirement_of(came.instead)
        self.evidence.masked.setdefault(requirement, behind)
        if behind not in self.evidence.broken:
            reason = "it is part of a longer trace, and cut"
            self.keep_finding(
                RootCause(came.instead), Certificate(grade="not certified", reason=reason)
            )

    def may_be_late(self, seen: Run, again: tuple[int, int] | None) -> bool:
        """Whether a run shows no more than a delivery that did not come in time, once.

        A broker on the wire is awaited for a measured time, which a busy machine can exceed. The
        requirement is doubted then, and not broken.
        """
        if self.subject.wire is None or again is None or again[0] or not again[1]:
            return False
        if seen.broken is None or seen.broken.reason not in AT_REST:
            return False
        self.evidence.doubted[requirement_of(seen)] = LATE.format(again[1])
        return True

    def part(self) -> Part:
        """Return what a worker has seen, and start again from what was known before."""
        clock = self.clock
        part = Part(
            self.evidence,
            self.report.stages,
            self.grade,
            clock.hangs,
            clock.interrupted,
            self.operations,
        )
        known = self.evidence
        self.evidence = Evidence(
            broken=dict(known.broken), masked=dict(known.masked), offered=known.offered
        )
        self.report.stages = []
        clock.hangs = self.operations = 0
        return part

    def take_over(self, part: Part) -> None:
        """Add what a worker has seen."""
        self.evidence.merge(part.evidence)
        self.report.stages += part.stages
        self.grade = part.grade
        self.operations += part.operations
        self.clock.hangs += part.hangs
        self.clock.interrupted = self.clock.interrupted or part.interrupted


@dataclass(frozen=True)
class Part:
    """What one worker has seen, as the gate receives it."""

    evidence: Evidence
    stages: list[Stage]
    grade: Grade
    hangs: int
    interrupted: bool
    operations: int
