"""One run of the gate: what may be tried, what was seen so far, and what is reported.

Owns the state that all stages share, and nothing of what they do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from brokerproof.candidates.driver.process import memory_of
from brokerproof.checks.search.counterexamples import Certificate, counterexample_of
from brokerproof.checks.search.root_cause import Charge
from brokerproof.checks.search.searches import Grade
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Evidence, Verdict
from brokerproof.checks.workers.worker_pool import POSSIBLE


@dataclass(frozen=True)
class Budget:
    """How much is tried: operations for each scope, examples, and a cap in seconds.

    `interleavings` are the classes that are run of each parallel case.
    """

    operations: int = 25_000
    examples: int = 200
    seconds: float | None = None
    interleavings: int = 0


Effort: TypeAlias = Literal["quick", "normal", "deep"]

EFFORTS: dict[Effort, Budget] = {
    "quick": Budget(operations=500, examples=20, interleavings=5),
    "normal": Budget(operations=6_000, examples=100, interleavings=60),
    "deep": Budget(operations=25_000, examples=200, interleavings=200),
}
"""What each level of effort tries; every stage takes its share from these numbers.

`quick` puts every requirement of the reference brokers to the test, in less than a minute for all
four on two cores; `deep` takes some seven minutes for them.
"""


def budget_of(
    effort: Effort,
    operations: int | None,
    examples: int | None,
    seconds: float | None,
    interleavings: int | None,
) -> Budget:
    """Return the budget of a level, with the numbers that were asked for instead of its own."""
    level = EFFORTS[effort]
    return Budget(
        level.operations if operations is None else operations,
        level.examples if examples is None else examples,
        seconds,
        level.interleavings if interleavings is None else interleavings,
    )


@dataclass(frozen=True)
class Stage:
    """What one stage did, in one line, and whether it did all that its scope holds."""

    name: str
    did: str
    complete: bool
    operations: int


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
    printed: str = ""
    """The end of what the candidate printed; it is in no file, since it may differ each time."""


class Clock:
    """The cap in seconds, memory and Ctrl-C, as one question: whether there is a reason to stop.

    `cap` is the end by `time.monotonic`, the same in all processes.
    """

    def __init__(self, seconds: float | None, begun_s_ago: float = 0.0) -> None:
        self.interrupted = False
        self.hangs = 0
        self.memory_max: int | None = None  # of a worker: other processes hold more than a search
        self.is_pressed: Callable[[], bool] = lambda: False
        self._seconds, self._asked = seconds, 0
        self.cap = None if seconds is None else time.monotonic() + seconds - begun_s_ago
        # Kept back for repeating and shortening the last finding.
        self._repeating_s = 0.0 if seconds is None else min(REPEATING_S_MAX, seconds / 8)

    def press(self) -> None:
        """Note Ctrl-C: little time is left for what was found."""
        self.interrupted = True
        end = time.monotonic() + REPEATING_S_MAX
        self.cap = end if self.cap is None else min(self.cap, end)

    def left_s(self) -> float:
        """Return how many seconds are left."""
        return math.inf if self.cap is None else self.cap - time.monotonic()

    def reason(self) -> str:
        """Return why nothing more is to be tried, or nothing."""
        if self.is_pressed() and not self.interrupted:
            self.press()
        if self.interrupted:
            return "interrupted"
        if self.hangs >= HANGS_MAX:
            return "the candidate hangs, so nothing more was tried"
        if self.left_s() < self._repeating_s:
            return f"the cap of {self._seconds:g} s was reached"
        self._asked += 1
        most = self.memory_max
        if most and self._asked % MEMORY_LOOKED_AT_EVERY == 0 and memory_of("self") > most:
            return f"the {most / 1e9:.1f} GB of memory that a search may hold"
        return ""


MEMORY_LOOKED_AT_EVERY = 32

HANGS_MAX = 2
"""So many stages or scopes may end with a candidate that hangs: each costs a time limit."""

REPEATING_S_MAX = 4.0
"""So much of the cap is kept for repeating and shortening what was found."""


Progress = Callable[[str, int], None]
"""Told the stage and the operations so far."""


@dataclass
class GateRun:
    """What the stages share: the candidate, what may be tried, and what was seen."""

    subject: Subject
    budget: Budget
    clock: Clock
    report: Report
    progress: Progress
    evidence: Evidence = field(default_factory=Evidence)
    grade: Grade = "sequences"
    """The grade for a candidate that cannot be copied; one that proves nondeterministic walks."""
    jobs: int = 1
    """How many scopes may be searched at once; the report does not depend on it."""
    apart: bool = False
    """Whether a candidate in this process is to be run in workers, where that is possible."""

    @property
    def uses_workers(self) -> bool:
        """Whether the candidate is run in copies of this process."""
        return POSSIBLE and self.apart and self.subject.in_process

    def keep_charge(self, came: Charge, certificate: Certificate, seed: int | None = None) -> None:
        """Keep what a requirement is charged with, unless a shorter trace of it is known."""
        assert came.run is not None
        again = None if came.repeated is None else (came.repeated.times, came.repeated.tries)
        address = self.subject.address
        self.evidence.keep(counterexample_of(address, came.run, certificate, seed, again))

    def part(self) -> Part:
        """Return what a worker has seen, and begin anew with what was known before it."""
        clock = self.clock
        part = Part(self.evidence, self.report.stages, self.grade, clock.hangs, clock.interrupted)
        known = self.evidence
        self.evidence = Evidence(
            broken=dict(known.broken), masked=dict(known.masked), offered=known.offered
        )
        self.report.stages = []
        clock.hangs = 0
        return part

    def take_over(self, part: Part) -> None:
        """Add what a worker has seen."""
        self.evidence.merge(part.evidence)
        self.report.stages += part.stages
        self.grade = part.grade
        self.clock.hangs += part.hangs
        self.clock.interrupted = self.clock.interrupted or part.interrupted


@dataclass(frozen=True)
class Part:
    """What was seen by a worker, as it comes back to the gate."""

    evidence: Evidence
    stages: list[Stage]
    grade: Grade
    hangs: int
    interrupted: bool
