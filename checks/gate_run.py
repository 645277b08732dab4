"""One run of the gate: what may be tried, what was seen so far, and what is reported.

Owns the state that all stages share, and nothing of what they do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from brokerproof.checks.charges import seen_again
from brokerproof.checks.counterexamples import Certificate, Counterexample, counterexample_of
from brokerproof.checks.findings import Run
from brokerproof.checks.searches import Grade
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Evidence, Verdict

INTERLEAVINGS = 200
"""Classes of interleavings of each parallel case, unless another number is asked for."""


@dataclass(frozen=True)
class Budget:
    """How much is tried: operations for each scope, examples, and a cap in seconds.

    `interleavings` are the classes that are run of each parallel case.
    """

    operations: int = 25_000
    examples: int = 200
    seconds: float | None = None
    interleavings: int = 0


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


class Clock:
    """The cap in seconds and Ctrl-C, as one question: whether there is a reason to stop."""

    def __init__(self, seconds: float | None) -> None:
        self.interrupted = False
        self.hangs = False
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def reason(self) -> str:
        """Return why nothing more is to be tried, or nothing."""
        if self.interrupted:
            return "interrupted"
        if self.hangs:
            return "the candidate hangs, so nothing more was tried"
        if self._end is not None and time.monotonic() > self._end:
            return f"the cap of {self._seconds:g} s was reached"
        return ""


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
    """How many scopes may be searched at once; what is found does not hang on it."""

    def keep_as_seen(self, seen: Run, certificate: Certificate, seed: int | None = None) -> None:
        """Keep what cannot be repeated at will, with how often it came again."""
        times = seen_again(seen, self.subject.fresh)
        self.keep(counterexample_of(self.subject.address, seen, certificate, seed, times))

    def keep(self, found: Counterexample) -> None:
        """Keep a counterexample unless a shorter one of the same requirement is known."""
        known = self.evidence.broken.get(found.requirement)
        if known is None or len(found.steps) < len(known.steps):
            self.evidence.broken[found.requirement] = found
