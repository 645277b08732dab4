"""The gate: it runs the stages on a candidate and turns their evidence into verdicts.

It owns the order of the stages and the use of samples. Budgets count operations and examples, so
that a seed gives the same verdict on any machine. Seconds are a cap: when it is reached, a
requirement that is not broken is inconclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import SupportsInt

from brokerproof.checks.gate.durability import run_durability
from brokerproof.checks.gate.exhaustive import run_exhaustive
from brokerproof.checks.gate.gate_run import Budget, Clock, GateRun, Progress, Report, Stage
from brokerproof.checks.gate.stage_workers import in_workers, keep_lost
from brokerproof.checks.gate.stated import unstated
from brokerproof.checks.gate.stateful import Heard, Sampling, sample
from brokerproof.checks.gate.threads_stage import REQUIREMENTS as CONCURRENT
from brokerproof.checks.gate.threads_stage import run_concurrent
from brokerproof.checks.inside.state_invariants import OF_STATES, parts_in
from brokerproof.checks.inside.step_conformance import REQUIREMENT, never_taken, outside_the_model
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.search.counterexamples import Certificate
from brokerproof.checks.search.findings import Run
from brokerproof.checks.search.root_cause import (
    Fresh,
    RootCause,
    root_cause_of,
    shortest_form,
    within,
)
from brokerproof.checks.search.searches import HANGS
from brokerproof.checks.subjects import Subject
from brokerproof.checks.threads.on_threads import offers_threads
from brokerproof.checks.verdicts import Evidence, judge
from brokerproof.checks.workers import watchdog
from brokerproof.checks.workers.worker_pool import Lost
from brokerproof.spec.requirements import Requirement

SHORTENING_S = 15.0
"""The time for shortening what was drawn for a broker on the wire, and then for its attribution.

Each try takes long there.
"""

__all__ = ["Budget", "Report", "Stage", "run_gate"]


def run_gate(
    subject: Subject,
    requirements: dict[str, Requirement],
    budget: Budget,
    seed: int,
    progress: Progress = lambda _stage, _operations: None,
    jobs: SupportsInt = 1,
    clock: Clock | None = None,
    apart: bool = False,
) -> Report:
    """Check a candidate against requirements; Ctrl-C ends the run with the findings so far.

    Up to `jobs` scopes are searched at once; the report does not depend on it. With several jobs,
    or with `apart`, a candidate in this process runs in workers, so that it cannot end the gate.
    """
    hello = subject.hello
    report = Report(subject.address, hello.name, hello.version, seed)
    run = GateRun(subject, budget, clock or Clock(budget.seconds), report, progress)
    run.jobs, run.apart = jobs, apart or int(jobs) > 1
    if hello.capabilities.tolerance_s:
        # In real time the same operations may be answered differently, and each run takes its time.
        run.grade = "adaptive"
    subject.out_of_time = lambda: run.clock.left_s() < 0
    try:
        if offers_threads(subject):
            run.evidence.offered = frozenset(("on_threads",))
        # Workers keep the cap themselves, and report what they have found.
        with watchdog.watching(None if run.uses_workers else run.clock.cap):
            _run_stages(run, requirements)
    except KeyboardInterrupt:
        run.clock.interrupted = True
    except watchdog.CapReached as reached:
        run.evidence.under_way = run.evidence.under_way or reached.under_way
    run.evidence.offered |= parts_in(run.evidence.exercised)
    run.evidence.cut_short = run.clock.reason()
    run.evidence.doubted |= unstated(requirements, hello.capabilities)
    report.interrupted = run.clock.interrupted
    if run.evidence.cut_short:
        subject.hurry()
    report.verdicts = judge(requirements, hello.capabilities, run.evidence)
    report.reached = run.evidence.reached
    report.messages = run.evidence.largest
    return report


def _run_stages(run: GateRun, requirements: Mapping[str, Requirement]) -> None:
    apart: list[Callable[[GateRun], None]] = []
    if not requirements.keys() <= CONCURRENT:
        run_exhaustive(run)
        apart.append(run_stateful)
    if CONCURRENT & requirements.keys():
        apart.append(run_concurrent)
    jobs = 1 if run.subject.holds_something else run.jobs
    for came in in_workers(run, lambda its, number: apart[number](its), len(apart), jobs):
        if isinstance(came, Lost):
            keep_lost(run, came, "")
    if not requirements.keys() <= CONCURRENT:
        run_durability(run)
    if run.subject.hello.capabilities.inspect:
        run.report.stages.append(snapshot_stage(run.evidence))
    end_in_order(run)


def end_in_order(run: GateRun) -> None:
    """End a driver, which must end when its input ends (driver protocol 1, rule 44)."""
    fault = run.subject.end()
    if fault is None:
        return
    breach = Breach("protocol", fault.what, expected="a driver that ends when its input ends")
    certificate = Certificate(grade="not certified", reason="it is about the end of the process")
    run.keep_finding(RootCause(Run((), breach)), certificate)


def run_stateful(run: GateRun, heard: Heard = lambda _: None) -> None:
    """Draw large examples; a breach that the search did not find is shrunk, uncertified.

    `heard` is called with the steps of each example.
    """
    if run.clock.reason() or not run.budget.examples:
        return
    found = Sampling(heard=heard, known=frozenset(run.evidence.broken))
    try:
        sample(
            run.subject,
            found,
            run.report.seed,
            run.budget.examples,
            run.clock.reason,
            lambda each: run.progress(f"stateful: {each.examples} examples", each.operations),
        )
    finally:
        run.clock.hangs += found.stopped_by == HANGS
        run.operations += found.operations
        run.evidence.add(found)
        run.report.stages.append(_stateful_stage(found, run.report.seed))
        _charge_samples(run, found)


def _stateful_stage(found: Sampling, seed: int) -> Stage:
    did = (
        f"{found.examples} examples, {found.operations} operations, "
        f"at most {found.largest} messages in one, seed {seed}"
    )
    if found.unfollowed:
        did += f", {found.unfollowed} given up (outcomes unobserved)"
    return Stage("stateful", did, not found.stopped_by, found.operations)


def _charge_samples(run: GateRun, found: Sampling) -> None:
    """Attribute the breaches that only the samples found."""
    for requirement, sampled in found.broken.items():
        if requirement in run.evidence.broken:
            continue
        shortens = run.grade != "adaptive"
        if run.subject.wire is None:
            came = root_cause_of([sampled], run.subject.fresh, shortens=shortens)
        else:
            came = _attributed_in_time(sampled, run.subject.fresh, shortens=shortens)
        if came.run is None:
            run.keep_masked(requirement, came)
            continue
        certificate = Certificate(grade="not certified", reason=_why_uncertified(run.report))
        run.keep_finding(came, certificate, run.report.seed)


def snapshot_stage(evidence: Evidence) -> Stage:
    """Return the stage that sums up the snapshots taken during the other stages."""
    unspoken = outside_the_model(evidence.taken)
    counts = ", ".join(
        f"{action} {times}"
        for (_, action), times in sorted(evidence.taken.items())
        if action not in unspoken
    )
    did = f"{evidence.exercised[REQUIREMENT]} steps are paths of their model: {counts or 'none'}"
    untaken = never_taken(evidence.taken)
    did += "; no transition was never taken" if not untaken else ""
    did += "".join(f"; never {name}: {reason}" for name, reason in untaken.items())
    if unspoken:
        reasons = ", ".join(f"{why} {times}" for why, times in unspoken.items())
        did += f"; the model says nothing of {reasons}"
    if evidence.given_up:
        did += f"; {evidence.given_up} steps not judged (too many paths)"
    asked = {name: evidence.exercised[name] for name in OF_STATES}
    if any(asked.values()):
        counts = ", ".join(f"{name} {times}" for name, times in asked.items() if times)
        did += f"; of each view by itself: {counts}"
    return Stage("snapshot", did, not evidence.given_up, evidence.exercised[REQUIREMENT])


def _attributed_in_time(sampled: Run, fresh: Fresh, *, shortens: bool) -> RootCause:
    """Shorten a run on the wire and attribute it; keep the whole run if only that recurs."""
    shorter = shortest_form(sampled, within(SHORTENING_S, fresh))
    came = root_cause_of([shorter], within(SHORTENING_S, fresh), shortens=shortens)
    if came.run is None:
        return came
    if len(shorter.steps) < len(sampled.steps) and not (came.repeated and came.repeated.times):
        # A fault that shows now and then lets steps be left out that it needs.
        whole = root_cause_of([sampled], within(SHORTENING_S, fresh), shortens=False)
        if whole.repeated and whole.repeated.times:
            return whole
    return came


def _why_uncertified(report: Report) -> str:
    """Return why no search certifies a sampled counterexample."""
    searches = [stage for stage in report.stages if stage.name != "adaptive" and stage.operations]
    if not searches:
        return "no search covers the shorter traces of this candidate"
    if all(stage.complete for stage in searches):
        return "it lies outside of the scopes that were searched"
    return "it lies outside of the scopes that were searched, or beyond where --operations ended"
