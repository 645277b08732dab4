"""The exhaustive stage: it searches each scope in the grade that the candidate allows.

A candidate that can be copied is searched by pairs of states (`product`); one with repeatable
answers by sequences, and then by a walk (`adaptive`) of the scopes whose sequences did not end; any
other by the walk alone. This file owns that choice, the attribution
of the traces found, and how certain it is that no trace is shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, SupportsInt

from brokerproof.checks.conversation import CannotCopy, CannotStart, Copier, copier_of
from brokerproof.checks.gate.gate_run import EFFORTS, GateRun, Stage
from brokerproof.checks.gate.stage_workers import in_workers, keep_lost
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.search.adaptive import search_adaptively
from brokerproof.checks.search.counterexamples import Certificate
from brokerproof.checks.search.findings import Run
from brokerproof.checks.search.product import search
from brokerproof.checks.search.root_cause import (
    RARE_TRIES,
    TRIES,
    RootCause,
    kin_of,
    root_cause_of,
)
from brokerproof.checks.search.scopes.catalogue import scopes_for
from brokerproof.checks.search.scopes.mixed_scopes import mixed_scopes
from brokerproof.checks.search.scopes.scope import Scope
from brokerproof.checks.search.searches import ENDS, HANGS, Grade, Search
from brokerproof.checks.search.sequences import Nondeterministic, search_sequences
from brokerproof.checks.verdicts import Evidence
from brokerproof.checks.workers.watchdog import CapReached
from brokerproof.checks.workers.worker_pool import Lost
from brokerproof.spec.protocol.candidate import OnDisk

OUTSIDE_PART = 10
"""A candidate outside this process gets 1 in so many of the operations: each takes longer."""

OUTSIDE_DEPTH_PART = 2
"""The same for the depth that is reached in any case."""

WALKS_ATTRIBUTED = 3
"""So many walks of a requirement are cut, the shortest first: a walk is long, and each try takes
time."""

BRIEF_WALK, LONG_WALK = 1, 5
"""A walk gets so many times the operations of a scope's sequences: it repeats no beginnings.

Every scope is walked briefly before the first is walked for long: most faults need little. On the
wire, where each operation takes longer still, there are only brief walks.
"""

FIRST_OPERATIONS = (70, 1_000)
"""With copies, each scope is searched by so many operations before any is searched further.

Most faults need few. The search then begins anew, which costs less than remembering it.
"""

FIRST_BUDGET = EFFORTS["quick"]
"""Without copies, the whole stage runs with the budget of `quick` before it runs with a larger one.

Most faults show in a walk that needs few operations, while sequences of every scope take many.
"""

NOT_REPRODUCED = "a copy of the candidate that does not behave like the candidate"

REAL_TIME_PART = 4
"""A scope in which time passes for a broker in real time gets 1 in so many: seconds are waited."""


def run_exhaustive(run: GateRun) -> None:
    """Search every scope; the report does not depend on how many are searched at once.

    If a scope ends the stage or changes the grade, the scopes after it are searched anew.
    """
    candidate, _ = run.subject.fresh()
    copier = copier_of(candidate) if run.subject.in_process else "it is not ours"
    claims, ours = run.subject.hello.capabilities, run.subject.in_process
    on_wire = run.subject.wire is not None
    scopes = [
        scope
        for scope in scopes_for(claims, in_process=ours, on_disk=isinstance(candidate, OnDisk))
        # Each crash takes seconds there; the durability stage makes them.
        if not (scope.crashes and run.subject.crashable is not None)
    ]
    mixed = mixed_scopes(claims)
    is_copied = isinstance(copier, Copier)
    if not (is_copied or on_wire) and run.budget.operations > FIRST_BUDGET.operations:
        _in_two_passes(run, lambda: _search_all(run, scopes, mixed, copier))
    else:
        _search_all(run, scopes, mixed, copier)


def _in_two_passes(run: GateRun, search_all: Callable[[], None]) -> None:
    """Run the stage with `FIRST_BUDGET`, and then with the gate's own budget, as if anew.

    Of the first pass only the findings are kept, and its evidence too if the second is cut short.
    """
    budget, clock = run.budget, run.clock
    hangs, ended = clock.hangs, clock.ended
    first = FIRST_BUDGET
    run.budget = replace(budget, operations=first.operations, depth=min(first.depth, budget.depth))
    try:
        search_all()
    finally:
        run.budget = budget
    if clock.reason():
        return
    # The second pass meets the same hangs and ends.
    clock.hangs, clock.ended = hangs, ended
    before, run.evidence = run.evidence, Evidence(offered=run.evidence.offered)
    stages, run.report.stages = run.report.stages, []
    is_cut_short = True
    try:
        search_all()
        is_cut_short = bool(clock.reason())
    finally:
        if is_cut_short:
            run.report.stages[:0] = stages
        run.evidence.merge(before if is_cut_short else before.without_counts())


def _search_all(
    run: GateRun, scopes: Sequence[Scope], mixed: Sequence[Scope], copier: Copier | str
) -> None:
    """Search the scopes in the grade that the candidate allows, and walk on behind sequences."""
    jobs = 1 if run.subject.holds_something else run.jobs
    on_wire = run.subject.wire is not None
    early = _Early([], [])
    for first in (*FIRST_OPERATIONS, None):
        if first is None and isinstance(copier, Copier):
            _walk_on(run, mixed, BRIEF_WALK, jobs)
        if first is None or isinstance(copier, Copier):
            while scopes and not run.clock.reason():
                done, copier = _search_scopes(run, scopes, copier, jobs, early, first)
                scopes = scopes[done:]
            scopes, early.copied = early.copied, []
    deeper = early.played
    # What short sequences show in any scope is found before the walks begin.
    if deeper or on_wire:
        _walk_on(run, (*deeper, *mixed), BRIEF_WALK, jobs)
    if not on_wire:
        _walk_on(run, (*mixed, *deeper), LONG_WALK, jobs)


class _Searched(NamedTuple):
    """What a search of a scope leaves to do.

    `unlike` is why copies of the candidate cannot be used after all, or empty. `ended_early` is the
    grade of a search that is to go on.
    """

    unlike: str
    ended_early: Grade | None = None


@dataclass
class _Early:
    """The scopes that are to be searched further: with copies, and behind their sequences."""

    copied: list[Scope]
    played: list[Scope]


def _search_scopes(
    run: GateRun,
    scopes: Sequence[Scope],
    copier: Copier | str,
    jobs: SupportsInt,
    early: _Early,
    first: int | None,
) -> tuple[int, Copier | str]:
    """Search scopes in order, as long as they are searched in one grade.

    Returns how many were, and how the candidate is copied from now on. `first` limits the
    operations of a first pass.
    """

    def work(run: GateRun, number: int) -> _Searched:
        return _search_in_its_grade(run, scopes[number], copier, first)

    grade = run.grade
    for done, told in enumerate(in_workers(run, work, len(scopes), jobs)):
        if isinstance(told, Lost):
            keep_lost(run, told, f"{scopes[told.task].name}: ")
        elif told is not None and told.unlike:
            return done, told.unlike
        elif told is not None and told.ended_early is not None:
            further = early.copied if told.ended_early == "product" else early.played
            further.append(scopes[done])
        if run.clock.reason():
            return len(scopes), copier
        if run.grade != grade:
            return done + 1, copier
    return len(scopes), copier


def _search_in_its_grade(
    run: GateRun, scope: Scope, copier: Copier | str, first: int | None
) -> _Searched:
    """Search a scope in the grade that the candidate allows, as known so far.

    If copies cannot be used after all, the findings until then are kept, and the scope is to be
    searched once more, without copies.
    """
    found = Search(scope, "product" if isinstance(copier, Copier) else run.grade)
    unlike, operations, depth = "", run.budget.operations, run.budget.depth
    if not run.subject.in_process:
        operations, depth = operations // OUTSIDE_PART, depth // OUTSIDE_DEPTH_PART
    if found.grade == "product" and first is not None:
        operations, depth = min(first, operations), 0
    found.depth_min = 0 if found.grade == "adaptive" else depth
    try:
        _search(run, found, copier, operations)
    except CannotCopy as error:
        found.stopped_by = unlike = str(error)
    except (CapReached, CannotStart, KeyboardInterrupt) as error:
        _note_end(run, found, error)
    except Nondeterministic as error:
        found.stopped_by = str(error)
        _take_over(run, found)
        run.grade = "adaptive"
        found = Search(scope, run.grade)
        _search(run, found, copier, operations)
    finally:
        # An interrupted search has evidence too.
        goes_on = found.grade == "product" and found.stopped_by == f"{first} operations"
        differs = _take_over(run, found, goes_on=goes_on)
    if goes_on or (found.grade == "sequences" and not found.complete):
        return _Searched(unlike or differs, found.grade)
    return _Searched(unlike or differs)


def _walk_on(run: GateRun, scopes: Sequence[Scope], share: int, jobs: SupportsInt) -> None:
    """Walk to the states that lie deeper than the sequences of each scope."""

    def work(run: GateRun, number: int) -> None:
        found = Search(scopes[number], "adaptive")
        try:
            operations = run.budget.operations * share // OUTSIDE_PART
            _search(run, found, "a walk needs no copies", operations)
        except (CapReached, CannotStart, KeyboardInterrupt) as error:
            _note_end(run, found, error)
        finally:
            _take_over(run, found, repeats=run.grade != "adaptive")

    if run.clock.reason():
        return
    for told in in_workers(run, work, len(scopes), jobs):
        if isinstance(told, Lost):
            keep_lost(run, told, f"{scopes[told.task].name}: ")
        if run.clock.reason():
            return


def _note_end(
    run: GateRun, found: Search, error: CapReached | CannotStart | KeyboardInterrupt
) -> None:
    """Note why a search ended early; a reset that failed is a finding."""
    if isinstance(error, CannotStart):
        found.stopped_by = "a reset that failed"
        failed = RootCause(Run((), Breach("protocol", str(error))))
        run.keep_finding(failed, Certificate(grade="not certified", reason="it is about a reset"))
        return
    if isinstance(error, CapReached):
        run.evidence.under_way = error.under_way
    run.clock.interrupted = run.clock.interrupted or isinstance(error, KeyboardInterrupt)
    found.stopped_by = run.clock.reason()


def _is_in_real_time(run: GateRun, scope: Scope) -> bool:
    return scope.seconds > 0 and run.subject.hello.capabilities.tolerance_s > 0


def _search(run: GateRun, found: Search, copier: Copier | str, operations: int) -> None:
    def progress(each: Search) -> None:
        run.progress(f"{each.grade}: {each.scope.name}", each.operations)

    if isinstance(copier, Copier):
        search(found, run.subject.fresh(), copier, operations, run.clock.reason, progress)
        return
    if _is_in_real_time(run, found.scope):
        operations //= REAL_TIME_PART
    grade = search_sequences if found.grade == "sequences" else search_adaptively
    grade(found, run.subject.fresh, operations, run.clock.reason, progress)


def _take_over(run: GateRun, found: Search, *, repeats: bool = False, goes_on: bool = False) -> str:
    """Add the evidence of a search to the gate's; return why its copies are not trusted.

    `repeats` is whether the answers to a walk's operations are known to be repeatable. Of a search
    that goes on from the beginning, only what it found broken is kept.
    """
    run.clock.hangs += found.stopped_by == HANGS
    run.clock.ended += found.stopped_by == ENDS
    run.operations += found.operations
    if not goes_on:
        found.reached[found.scope.name] = found.reach()
        run.evidence.add(found)
        run.report.stages.append(_stage(found))
    unlike = ""
    for requirement, traces in found.broken.items():
        known = run.evidence.broken.get(requirement)
        shortest = sorted(traces, key=lambda each: len(each.steps))[:WALKS_ATTRIBUTED]
        if known is not None and (
            repeats
            # A search of the scope from its beginning finds the same once more.
            or known.certificate.scope == found.scope.name
            or (not kin_of(requirement) and len(shortest[0].steps) >= len(known.steps))
        ):
            continue
        came = root_cause_of(
            shortest if repeats else traces,
            run.subject.fresh,
            tries=RARE_TRIES if found.grade == "product" else TRIES,
            shortens=repeats or found.grade != "adaptive",
        )
        if came.run is None:
            run.keep_masked(requirement, came)
            continue
        repeated = came.repeated
        never = repeated is not None and repeated.tries and not repeated.times
        if never and found.grade == "product":
            # The candidate answers only for runs that begin with a reset.
            unlike = NOT_REPRODUCED
            run.evidence.masked.setdefault(requirement, unlike)
            continue
        in_real_time = run.subject.hello.capabilities.tolerance_s > 0
        certificate = _certificate(found, came, repeats=repeats, in_real_time=in_real_time)
        run.keep_finding(came, certificate)
    return unlike


def _certificate(
    found: Search, came: RootCause, *, repeats: bool, in_real_time: bool
) -> Certificate:
    assert came.run is not None
    if repeats and came.repeated is None:
        reason = "it was found on a walk, and cut"
        return Certificate(grade="not certified", reason=reason)
    if came.repeated is not None or found.grade == "adaptive":
        reason = "the candidate answers differently to the same operations"
        if in_real_time:
            reason = "the candidate is in real time, so not every shorter trace was tried"
        if came.repeated is not None and not came.repeated.tries:
            reason = "the cap in seconds left no time to try it again"
        return Certificate(grade="not certified", reason=reason)
    return Certificate(grade=found.grade, scope=found.scope.name, operations=len(came.run.steps))


_COUNTED = {
    "product": "pairs of states",
    "sequences": "sequences",
    "adaptive": "moves in different states",
}


def _stage(found: Search) -> Stage:
    how = "every behaviour"
    if found.stopped_by:
        how = f"stopped by {found.stopped_by}"
    elif not (found.complete or found.unfollowed or found.never_offered):
        how = "ended early"
    elif found.grade == "adaptive":
        how = "every move in every state that was met"
        if found.remembered:
            last = "move" if found.remembered == 1 else f"{found.remembered} moves"
            how += f", after each last {last}"
    if found.cuts:
        how += f", the power lost at {found.cuts:,} points"
    if found.cuts_unjudged:
        how += f" ({found.cuts_unjudged} of them not judged: outcomes unobserved)"
    if found.never_offered:
        how += f", {found.never_offered} moves never tried (their states were not offered again)"
    if found.unfollowed:
        how += f", {found.unfollowed} operations not judged (outcomes unobserved)"
    did = (
        f"{found.scope.name}: {found.pairs} {_COUNTED[found.grade]}, {found.operations} "
        f"operations, depth {found.depth}, {how}"
    )
    return Stage(found.grade, did, found.complete, found.operations)
