"""The exhaustive stage: each scope searched in the grade that the candidate allows.

One that can be copied is searched by pairs of states (`product`), one that answers the same to the
same by sequences, and any other by walking (`adaptive`). Owns that choice, and what becomes of the
traces found: which are charged, and how sure it is that there is none shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from brokerproof.checks import side_by_side, watchdog
from brokerproof.checks.adaptive import search_adaptively
from brokerproof.checks.charges import charged, seen_again
from brokerproof.checks.conversation import CannotCopy, Copier, copier_of
from brokerproof.checks.counterexamples import Certificate, Counterexample, counterexample_of
from brokerproof.checks.findings import Run
from brokerproof.checks.gate_run import GateRun, Stage
from brokerproof.checks.product import search
from brokerproof.checks.scope_catalogue import scopes_for
from brokerproof.checks.scopes import Scope
from brokerproof.checks.searches import HANGS, Search
from brokerproof.checks.sequences import Nondeterministic, search_sequences
from brokerproof.checks.side_by_side import ProcessEnded, SideBySide, Tell
from brokerproof.checks.subjects import Subject
from brokerproof.spec.candidate import Closable, OnDisk

CTRL_C = "Ctrl-C, or by being asked to end"
"""Why a search in another process has ended when somebody pressed that."""

OUTSIDE_PART = 10
"""A candidate behind a connection is given this part of the operations: each takes that longer."""

Charge: TypeAlias = tuple[str, Counterexample | str]
"""A requirement with its counterexample, or with what is behind all traces that broke it."""


def run_exhaustive(run: GateRun) -> None:
    """Search every scope, in order; those searched side by side are reported in the same order."""
    candidate, _ = run.subject.fresh()
    copier = copier_of(candidate) if run.subject.in_process else "it is not ours"
    claims, ours = run.subject.hello.capabilities, run.subject.in_process
    scopes = [
        scope
        for scope in scopes_for(claims, in_process=ours, on_disk=isinstance(candidate, OnDisk))
        # Each crash takes seconds there, and has a stage of its own.
        if not (scope.crashes and run.subject.crashable is not None)
    ]
    jobs = min(run.jobs, len(scopes)) if side_by_side.POSSIBLE else 1
    # Who holds something outside of this process may not be able to share it with another.
    if isinstance(copier, Copier) and jobs > 1 and not isinstance(candidate, Closable):
        done, copier = _search_side_by_side(run, scopes, copier, jobs)
        scopes = scopes[done:]
    for scope in scopes:
        if run.clock.reason():
            return
        tried, copier = copier, _search_in_its_grade(run, scope, copier)
        if copier is not tried and not run.clock.reason():
            copier = _search_in_its_grade(run, scope, copier)


@dataclass
class _Searched:
    """What came of searching a scope in another process: counts, and what is charged.

    `cannot_copy` says why copying failed in the midst of it, if it did.
    """

    found: Search
    charges: tuple[Charge, ...]
    cannot_copy: str


def _search_side_by_side(
    run: GateRun, scopes: Sequence[Scope], copier: Copier, jobs: int
) -> tuple[int, Copier | str]:
    """Search scopes in the product grade, in processes of their own.

    Returns how many of them need no further search, and how the candidate is copied from now on.
    What comes after a scope that ends the stage, or whose copies fail, is dropped, as if scopes had
    been searched one after the other. Raises `ProcessEnded`.
    """

    def work(number: int, tell: Tell, is_interrupted: Callable[[], bool]) -> _Searched:
        def stopped() -> str:
            return CTRL_C if is_interrupted() else run.clock.reason()

        with watchdog.watching():
            return _searched_apart(run, scopes[number], copier, stopped, tell)

    taken = 0
    with SideBySide(work, len(scopes), jobs) as apart:
        try:
            for each in apart.results(run.progress, lambda: not run.clock.reason()):
                _take_over_from_apart(run, each)
                if each.cannot_copy:
                    return taken, each.cannot_copy
                taken += 1
                if run.clock.hangs:
                    break
        except KeyboardInterrupt:
            apart.interrupt()
            for each in apart.results(lambda _stage, _operations: None, lambda: False):
                _take_over(run, each.found, each.charges)
            raise
        except ProcessEnded as error:
            name = scopes[error.task].name
            raise ProcessEnded(error.task, f"the process that searched {name!r} {error}") from None
    return taken, copier


def _take_over_from_apart(run: GateRun, searched: _Searched) -> None:
    """Add what was seen in another process; Ctrl-C that was seen there is raised here."""
    _take_over(run, searched.found, searched.charges)
    if searched.found.stopped_by == CTRL_C:
        raise KeyboardInterrupt


def _searched_apart(
    run: GateRun, scope: Scope, copier: Copier, stopped: Callable[[], str], tell: Tell
) -> _Searched:
    """Search a scope in another process than that of the gate, and charge what is found there."""
    found, cannot_copy = Search(scope, "product"), ""

    def progress(each: Search) -> None:
        tell(f"{each.grade}: {each.scope.name}", each.operations)

    try:
        search(found, run.subject.fresh(), copier, run.budget.operations, stopped, progress)
    except CannotCopy as error:
        found.stopped_by = cannot_copy = str(error)
    except KeyboardInterrupt:
        found.stopped_by = CTRL_C
    charges: list[Charge] = []
    try:
        charges.extend(_charges(run.subject, found))
    except KeyboardInterrupt:
        found.stopped_by = CTRL_C
    # The traces have served their purpose, and what they refer to cannot leave the process.
    found.broken = {}
    return _Searched(found, tuple(charges), cannot_copy)


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
        # Also what was interrupted has seen something.
        _take_over(run, found, _charges(run.subject, found))
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


def _charges(subject: Subject, found: Search) -> Iterator[Charge]:
    """Yield what each requirement that was seen broken is charged with."""
    for requirement, traces in found.broken.items():
        yield requirement, _charge(subject, found, traces)


def _charge(subject: Subject, found: Search, traces: Sequence[Run]) -> Counterexample | str:
    """Return which of the traces of one requirement is charged, or what is behind them all."""
    if found.grade == "adaptive":
        shortest = min(traces, key=lambda each: len(each.steps))
        certificate = Certificate(
            grade="not certified",
            reason="the candidate answers differently to the same operations",
        )
        times = seen_again(shortest, subject.fresh)
        return counterexample_of(subject.address, shortest, certificate, again=times)
    own, behind = charged(traces, subject.fresh)
    if own is None:
        return behind
    certificate = Certificate(grade=found.grade, scope=found.scope.name, operations=len(own.steps))
    return counterexample_of(subject.address, own, certificate)


def _take_over(run: GateRun, found: Search, charges: Iterable[Charge]) -> None:
    """Add what a search has seen to what the gate knows, counts before charges, which take time."""
    run.clock.hangs = run.clock.hangs or found.stopped_by == HANGS
    run.evidence.add(found)
    run.report.stages.append(_stage(found))
    for requirement, charge in charges:
        if isinstance(charge, str):
            run.evidence.masked.setdefault(requirement, charge)
        else:
            run.keep(charge)


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
