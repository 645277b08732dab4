"""The gate: runs the stages on a candidate and turns what they saw into verdicts.

Owns the order of the stages, their budgets, and what becomes of findings: which are charged, which
trace is shown, how sure it is that there is none shorter. Budgets are counted in operations and
examples, so that a seed gives the same verdict on any machine; seconds are a cap, and reaching it
makes inconclusive what is not broken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from brokerproof.checks import watchdog
from brokerproof.checks.charges import charged
from brokerproof.checks.conversation import copier_of
from brokerproof.checks.counterexamples import Certificate, Counterexample, counterexample_of
from brokerproof.checks.product import HANGS, Search, search
from brokerproof.checks.scopes import scopes_for
from brokerproof.checks.stateful import Sampling, sample
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Evidence, Verdict, judge
from brokerproof.spec.requirements import Requirement


@dataclass(frozen=True)
class Budget:
    """How much is tried: operations for each scope, examples, and a cap in seconds."""

    operations: int = 25_000
    examples: int = 200
    seconds: float | None = None


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


class _Clock:
    """The cap in seconds and Ctrl-C, as one question: whether there is a reason to stop."""

    def __init__(self, seconds: float | None) -> None:
        self.interrupted = False
        self.hangs = False
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def reason(self) -> str:
        if self.interrupted:
            return "interrupted"
        if self.hangs:
            return "the candidate hangs, so nothing more was tried"
        if self._end is not None and time.monotonic() > self._end:
            return f"the cap of {self._seconds:g} s was reached"
        return ""


Progress = Callable[[str, int], None]
"""Told the stage and the operations so far."""


def run_gate(
    subject: Subject,
    requirements: dict[str, Requirement],
    budget: Budget,
    seed: int,
    progress: Progress = lambda _stage, _operations: None,
) -> Report:
    """Hold a candidate against requirements; Ctrl-C ends with what was found so far."""
    hello = subject.hello
    report = Report(subject.address, hello.name, hello.version, seed)
    evidence, clock = Evidence(), _Clock(budget.seconds)
    try:
        with watchdog.watching():
            _run_stages(subject, budget, clock, report, evidence, progress)
    except KeyboardInterrupt:
        clock.interrupted = report.interrupted = True
    evidence.cut_short = clock.reason()
    report.verdicts = judge(requirements, hello.capabilities, evidence)
    return report


def _run_stages(
    subject: Subject,
    budget: Budget,
    clock: _Clock,
    report: Report,
    evidence: Evidence,
    progress: Progress,
) -> None:
    _exhaustive(subject, budget, clock, report, evidence, progress)
    _stateful(subject, budget, clock, report, evidence, progress)


def _exhaustive(
    subject: Subject,
    budget: Budget,
    clock: _Clock,
    report: Report,
    evidence: Evidence,
    progress: Progress,
) -> None:
    """Search every scope whole, where the candidate can be copied."""
    if not subject.in_process:
        report.stages.append(Stage("product", "left out: it is behind a connection", False, 0))
        return
    copier = copier_of(subject.fresh()[0])
    if isinstance(copier, str):
        report.stages.append(Stage("product", f"left out: {copier}", complete=False, operations=0))
        return
    for scope in scopes_for(subject.hello.capabilities):
        if clock.reason():
            return
        found = search(
            scope,
            subject.fresh(),
            copier,
            budget.operations,
            clock.reason,
            lambda each: progress(f"product: {each.scope.name}", each.operations),
        )
        clock.hangs = found.stopped_by == HANGS
        evidence.exercised.update(found.exercised)
        evidence.outcomes.update(found.outcomes)
        report.stages.append(_product_stage(found))
        _charge(subject, found, evidence)


def _product_stage(found: Search) -> Stage:
    how = f"stopped by {found.stopped_by}" if found.stopped_by else "every behaviour"
    if found.unfollowed:
        how += f", {found.unfollowed} operations not judged (outcomes unobserved)"
    did = (
        f"{found.scope.name}: {found.pairs} pairs, {found.operations} operations, "
        f"depth {found.depth}, {how}"
    )
    return Stage("product", did, found.complete, found.operations)


def _charge(subject: Subject, found: Search, evidence: Evidence) -> None:
    """Charge what a search found broken, keeping the shortest trace of each requirement."""
    for requirement, traces in found.broken.items():
        run, behind = charged(traces, subject.fresh)
        if run is None:
            evidence.masked.setdefault(requirement, behind)
            continue
        certificate = Certificate(
            grade="product", scope=found.scope.name, operations=len(run.steps)
        )
        _keep(evidence, counterexample_of(subject.address, run, certificate))


def _keep(evidence: Evidence, found: Counterexample) -> None:
    known = evidence.broken.get(found.requirement)
    if known is None or len(found.steps) < len(known.steps):
        evidence.broken[found.requirement] = found


def _stateful(
    subject: Subject,
    budget: Budget,
    clock: _Clock,
    report: Report,
    evidence: Evidence,
    progress: Progress,
) -> None:
    """Draw large examples; what they break and the search did not is shrunk, uncertified."""
    if clock.reason() or not budget.examples:
        return
    seed = report.seed
    found = sample(
        subject,
        seed,
        budget.examples,
        clock.reason,
        lambda each: progress(f"stateful: {each.examples} examples", each.operations),
    )
    clock.hangs = found.stopped_by == HANGS
    evidence.exercised.update(found.exercised)
    evidence.outcomes.update(found.outcomes)
    did = (
        f"{found.examples} examples, {found.operations} operations, "
        f"at most {found.largest} messages in one, seed {seed}"
    )
    if found.unfollowed:
        did += f", {found.unfollowed} given up (outcomes unobserved)"
    report.stages.append(Stage("stateful", did, not found.stopped_by, found.operations))
    _charge_samples(subject, found, evidence, seed, _why_uncertified(report))


def _charge_samples(
    subject: Subject, found: Sampling, evidence: Evidence, seed: int, why_uncertified: str
) -> None:
    """Charge what the samples broke and the search did not."""
    for requirement, sampled in found.broken.items():
        if requirement in evidence.broken:
            continue
        run, behind = charged([sampled], subject.fresh)
        if run is None:
            evidence.masked.setdefault(requirement, behind)
            continue
        certificate = Certificate(grade="not certified", reason=why_uncertified)
        _keep(evidence, counterexample_of(subject.address, run, certificate, seed))


def _why_uncertified(report: Report) -> str:
    """Return why no search stands behind a sampled counterexample."""
    searches = [stage for stage in report.stages if stage.name == "product" and stage.operations]
    if not searches:
        return "no search covers the shorter traces of this candidate"
    if all(stage.complete for stage in searches):
        return "it lies outside of the scopes that were searched"
    return "it lies outside of the scopes that were searched, or beyond where --operations ended"
