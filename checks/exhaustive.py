"""The exhaustive stage: each scope searched in the grade that the candidate allows.

One that can be copied is searched by pairs of states (`product`), one that answers the same to the
same by sequences, and any other by walking (`adaptive`). Owns that choice, and what becomes of the
traces found: which are charged, and how sure it is that there is none shorter.
"""

from __future__ import annotations

from brokerproof.checks.adaptive import search_adaptively
from brokerproof.checks.charges import charged
from brokerproof.checks.conversation import CannotCopy, Copier, copier_of
from brokerproof.checks.counterexamples import Certificate, counterexample_of
from brokerproof.checks.gate_run import GateRun, Stage
from brokerproof.checks.product import search
from brokerproof.checks.scope_catalogue import scopes_for
from brokerproof.checks.scopes import Scope
from brokerproof.checks.searches import HANGS, Search
from brokerproof.checks.sequences import Nondeterministic, search_sequences

OUTSIDE_PART = 10
"""A candidate behind a connection is given this part of the operations: each takes that longer."""


def run_exhaustive(run: GateRun) -> None:
    """Search every scope."""
    copier = copier_of(run.subject.fresh()[0]) if run.subject.in_process else "it is not ours"
    claims, ours = run.subject.hello.capabilities, run.subject.in_process
    for scope in scopes_for(claims, in_process=ours):
        if run.clock.reason():
            return
        if scope.crashes and run.subject.crashable is not None:
            continue  # each crash takes seconds there, and has a stage of its own
        tried, copier = copier, _search_in_its_grade(run, scope, copier)
        if copier is not tried and not run.clock.reason():
            copier = _search_in_its_grade(run, scope, copier)


def _search_in_its_grade(run: GateRun, scope: Scope, copier: Copier | str) -> Copier | str:
    """Search a scope in the grade that the candidate allows, as far as is known by now.

    Returns how it is copied from now on. What was found until a copy failed is kept, and the scope
    is to be searched once more, without copies.
    """
    found = Search(scope, "product" if isinstance(copier, Copier) else run.grade)
    try:
        _search(run, found, copier)
    except CannotCopy as error:
        found.stopped_by = copier = str(error)
    except Nondeterministic as error:
        run.report.stages.append(Stage("sequences", f"left: {error}", False, found.operations))
        run.grade = "adaptive"
        found = Search(scope, run.grade)
        _search(run, found, copier)
    finally:
        _close(run, found)
    return copier


def _search(run: GateRun, found: Search, copier: Copier | str) -> None:
    def progress(each: Search) -> None:
        run.progress(f"{each.grade}: {each.scope.name}", each.operations)

    operations = run.budget.operations
    if isinstance(copier, Copier):
        search(found, run.subject.fresh(), copier, operations, run.clock.reason, progress)
        return
    if not run.subject.in_process:
        operations //= OUTSIDE_PART
    grade = search_sequences if found.grade == "sequences" else search_adaptively
    grade(found, run.subject.fresh, operations, run.clock.reason, progress)


def _close(run: GateRun, found: Search) -> None:
    """Take over what a search has seen, also one that was interrupted, and charge what it found."""
    run.clock.hangs = run.clock.hangs or found.stopped_by == HANGS
    run.evidence.add(found)
    run.report.stages.append(_stage(found))
    for requirement, traces in found.broken.items():
        if found.grade == "adaptive":
            shortest = min(traces, key=lambda each: len(each.steps))
            certificate = Certificate(
                grade="not certified",
                reason="the candidate answers differently to the same operations",
            )
            run.keep_as_seen(shortest, certificate)
            continue
        own, behind = charged(traces, run.subject.fresh)
        if own is None:
            run.evidence.masked.setdefault(requirement, behind)
            continue
        certificate = Certificate(
            grade=found.grade, scope=found.scope.name, operations=len(own.steps)
        )
        run.keep(counterexample_of(run.subject.address, own, certificate))


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
    if found.never_offered:
        how += f", {found.never_offered} moves never tried (their states were not offered again)"
    if found.unfollowed:
        how += f", {found.unfollowed} operations not judged (outcomes unobserved)"
    did = (
        f"{found.scope.name}: {found.pairs} {_COUNTED[found.grade]}, {found.operations} "
        f"operations, depth {found.depth}, {how}"
    )
    return Stage(found.grade, did, found.complete, found.operations)
