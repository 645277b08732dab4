"""The concurrent stage: several threads hand a few operations to a broker on our atomics.

The file owns how much of each case is run, what counts as exercise, and what becomes of a failure.
Each case is explored up to so many classes of interleavings. If there are more, as many schedules
with few switches are run too, since the first classes explored differ only in their last steps.
Some random runs watch the broker's attributes, which takes longer.

If a broker broke requirements in earlier stages, a failure that also occurs without switches
between threads is attributed to those, not reported here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from brokerproof.checks.conversation import CannotCopy, CannotStart
from brokerproof.checks.gate.gate_run import GateRun, Stage
from brokerproof.checks.search.counterexamples import Certificate, Counterexample
from brokerproof.checks.threads.case_catalogue import case_name, cases_for
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import Differs, Explored, explore
from brokerproof.checks.threads.on_threads import Threaded, on_threads
from brokerproof.checks.threads.parallel import CannotBegin, Recorded
from brokerproof.checks.threads.records import (
    BROKEN_BY,
    ENDS,
    IN_SOME_ORDER,
    NO_RACE,
    Found,
    recorded,
)
from brokerproof.checks.threads.runs import Failed
from brokerproof.checks.threads.schedules import Tried, at_random, with_few_switches

Stopped: TypeAlias = Callable[[], str]
"""Called between two runs; returns a reason to stop, or an empty text."""

REQUIREMENTS = frozenset((IN_SOME_ORDER, ENDS, NO_RACE))

BESIDE_A_RACE = f"{NO_RACE} is broken: more can happen between two steps than was tried"
"""Switches happen only at atomic steps and locks, which suffices only without data races."""

WATCHED_PART = 10
"""Attributes are watched in so many times fewer runs: most races show in many runs of a case."""

SWITCHES_MAX = 3
ORDERS_MAX = 50
"""So many schedules without a switch are tried to see whether a mistake needs threads at all."""

SHORTENING_RUNS_MAX = 3_000
SHORTENED_MAX = 3
"""For each broken requirement, the fewest switches are searched in so many cases."""

REPORTED_EVERY = 50
"""The number of runs between two reports of progress."""


def run_concurrent(run: GateRun) -> None:
    """Run the parallel cases of a candidate that can be used on threads, and file the failures."""
    offered = "on_threads" in run.evidence.offered
    if run.clock.reason() or not run.budget.interleavings or not offered:
        return
    threaded = on_threads(run.subject)
    if isinstance(threaded, str):
        run.report.stages.append(Stage("concurrent", f"left: {threaded}", False, 0))
        return
    stage = _Concurrent(run, threaded)
    try:
        stage.run_cases()
        stage.shorten()
    except (CannotCopy, CannotStart, Differs) as error:
        stage.stopped_by = str(error)
    finally:
        run.evidence.exercised.update(stage.exercised)
        run.report.stages.append(stage.as_told())
        if NO_RACE in stage.found:
            run.evidence.doubted |= dict.fromkeys((IN_SOME_ORDER, ENDS), BESIDE_A_RACE)


@dataclass
class _Concurrent:
    """The state of the stage.

    `broken_before` are the requirements that other stages found broken, `shortening` the runs made
    to shorten findings.
    """

    run: GateRun
    threaded: Threaded
    cases: int = 0
    ended: int = 0
    classes: int = 0
    schedules: int = 0
    watched: int = 0
    shortening: int = 0
    steps: int = 0
    stopped_by: str = ""
    not_begun: dict[str, str] = field(default_factory=dict)
    exercised: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[Found]] = field(default_factory=dict)
    broken_before: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.broken_before = frozenset(self.run.evidence.broken)

    def run_cases(self) -> None:
        """Run every case, and keep its failures as first seen."""
        for order, parallel in cases_for(self.run.subject.hello.capabilities):
            if self._is_to_stop():
                return
            name = case_name(order, parallel)
            self.cases += 1
            try:
                case = self.threaded.case(parallel)
            except CannotBegin as error:
                self.not_begun[name] = str(error)
                continue
            for its_case, failed in self._failures(name, case):
                self._file(Found(name, parallel, its_case, failed))

    def _failures(self, name: str, case: Case[Recorded]) -> Iterator[tuple[Case[Recorded], Failed]]:
        """Yield a first failure of a case, and a first race, if there are any."""
        runs_max, stopped = self.run.budget.interleavings, self._telling(name)
        explored = Explored()
        try:
            explore(case, runs_max=runs_max, stopped=stopped, found=explored)
        finally:
            self.classes += explored.runs
            self.steps += explored.steps
            self.ended += explored.complete
            self.exercised[IN_SOME_ORDER] += explored.overlapping
            self.exercised[ENDS] += explored.contended
        failed = next(iter(explored.failed), None)
        if not (explored.complete or failed):
            failed = self._few_switches(case, runs_max, stopped)
        if failed is not None:
            yield case, failed
        case = replace(case, watches=self.threaded.watches)
        watched = at_random(
            case,
            seed=self.run.report.seed,
            runs=max(1, runs_max // WATCHED_PART),
            wanted=_is_race,
            stopped=stopped,
        )
        self.watched += watched.runs
        self.steps += watched.steps
        self.exercised[NO_RACE] += watched.meeting
        if watched.failed is not None:
            yield case, watched.failed

    def _few_switches(self, case: Case[Recorded], runs_max: int, stopped: Stopped) -> Failed | None:
        tried = with_few_switches(
            case, switches_max=SWITCHES_MAX, runs_max=runs_max, stopped=stopped
        )
        self.schedules += tried.runs
        self.steps += tried.steps
        self.exercised[IN_SOME_ORDER] += tried.overlapping
        return tried.failed

    def _file(self, found: Found) -> None:
        """Keep a failure, unless the broker fails so without threads too."""
        requirement, broken = found.requirement, self.run.evidence.broken
        if requirement != NO_RACE and self.broken_before and self._needs_no_threads(found):
            self.run.evidence.masked.setdefault(requirement, min(self.broken_before))
            return
        smaller = all(found.size < each.size for each in self.found.get(requirement, ()))
        self.found.setdefault(requirement, []).append(found)
        if smaller:
            reason = "it was not looked for a schedule with fewer switches"
            certificate = Certificate(grade="not certified", reason=reason)
            broken[requirement] = recorded(self.threaded, found, certificate)

    def _needs_no_threads(self, found: Found) -> bool:
        """Whether the case fails alike when no ready thread is interrupted."""
        tried = with_few_switches(
            found.case, switches_max=0, runs_max=ORDERS_MAX, wanted=_alike(found)
        )
        self.steps += tried.steps
        return tried.failed is not None

    def shorten(self) -> None:
        """Look for schedules with fewer switches that break the same requirement."""
        for requirement, found in self.found.items():
            best: tuple[int, Found] | None = None
            for each in sorted(found, key=lambda each: each.size)[:SHORTENED_MAX]:
                if self._is_to_stop():
                    return
                tried = self._fewest(each)
                if tried.failed is not None and (best is None or tried.switches < best[0]):
                    best = tried.switches, replace(each, failed=tried.failed)
            self.run.evidence.broken[requirement] = self._certified(requirement, best)

    def _fewest(self, found: Found) -> Tried:
        tried = with_few_switches(
            found.case,
            switches_max=SWITCHES_MAX,
            runs_max=SHORTENING_RUNS_MAX,
            wanted=_alike(found),
            stopped=self._telling(f"fewer switches for {found.requirement}"),
        )
        self.shortening += tried.runs
        self.steps += tried.steps
        return tried

    def _certified(self, requirement: str, best: tuple[int, Found] | None) -> Counterexample:
        if best is None:
            reason = f"no schedule with few switches was found among {SHORTENING_RUNS_MAX:,}"
            return msgspec.structs.replace(
                self.run.evidence.broken[requirement],
                certificate=Certificate(grade="not certified", reason=reason),
            )
        switches, found = best
        certificate = Certificate(grade="switches", scope=found.name, operations=switches)
        return recorded(self.threaded, found, certificate)

    def _telling(self, what: str) -> Stopped:
        """Return a function for calls between runs: it reports progress and returns why to stop."""
        runs = 0

        def stopped() -> str:
            nonlocal runs
            runs += 1
            if runs % REPORTED_EVERY == 0:
                self.run.progress(f"concurrent: {what}", self.steps)
            return self.run.clock.reason()

        self.run.progress(f"concurrent: {what}", self.steps)
        return stopped

    def _is_to_stop(self) -> bool:
        self.stopped_by = self.stopped_by or self.run.clock.reason()
        return bool(self.stopped_by)

    def as_told(self) -> Stage:
        """Return the stage with its summary in one line."""
        did = (
            f"{self.cases} cases, {self.ended} to their end; {self.classes:,} classes of "
            f"interleavings, {self.schedules:,} schedules with at most {SWITCHES_MAX} switches of "
            f"those not ended, {self.watched:,} at random with attributes watched, "
            f"{self.steps:,} accesses"
        )
        if self.shortening:
            did += f", to shorten what was found: {self.shortening:,} schedules more"
        if self.not_begun:
            name, why = next(iter(self.not_begun.items()))
            did += f"; {len(self.not_begun)} cases could not begin, as {name} ({why})"
        if self.stopped_by:
            did += f"; stopped by {self.stopped_by}"
        complete = self.ended == self.cases and not self.stopped_by
        return Stage("concurrent", did, complete, self.steps)


def _is_race(failed: Failed) -> bool:
    return BROKEN_BY[failed.wrong] == NO_RACE


def _alike(found: Found) -> Callable[[Failed], bool]:
    return lambda failed: BROKEN_BY[failed.wrong] == found.requirement
