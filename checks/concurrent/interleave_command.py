"""`brokerproof interleave`: a broker on our atomics, handed operations by several threads at once.

Owns which cases are run of a candidate, what is watched of it, and the words for what came out.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import click
import rich

from brokerproof.checks.concurrent.case_catalogue import every_case
from brokerproof.checks.concurrent.cases import Case
from brokerproof.checks.concurrent.interleavings import Explored, explore
from brokerproof.checks.concurrent.parallel import (
    CannotBegin,
    Parallel,
    Recorded,
    parallel_case,
)
from brokerproof.checks.concurrent.schedules import with_few_switches
from brokerproof.checks.concurrent.tables import table
from brokerproof.checks.conversation import CannotStart, copier_of
from brokerproof.checks.errors import CannotRun, opened
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import ExitStatus
from brokerproof.spec.candidate import Candidate, OnThreads
from brokerproof.spec.capabilities import Capabilities
from brokerproof.spec.messages import Fifo, Order, Priority

SWITCHES_MAX = 3
RUNS_FOR_FEWER_SWITCHES = 3_000
"""So many runs more are tried for a failure with fewer switches between threads."""


@click.command("interleave")
@click.argument("candidate", default="reference:qpid-push")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=2_000,
    show_default=True,
    help="How many classes of interleavings of each case are run at most.",
)
@click.option("--case", "words", default="", help="Only the cases whose names have these words.")
def interleave(candidate: str, runs: int, words: str) -> None:
    """Run the broker CANDIDATE under every interleaving of a few operations at once.

    CANDIDATE is built on brokerproof.reference.atomics, can be copied, and has `on_threads`. It
    ends with status 1 where something is broken, with 0 where nothing is, in all runs that there
    were; cases with more are named.
    """
    subject = opened(candidate)
    broken = left = many = 0
    try:
        cases = [
            (f"{type(order).__name__.lower()}: {parallel.name}", parallel)
            for order in _orders(subject.hello.capabilities)
            for parallel in every_case(order)
            if words in parallel.name
        ]
        for name, parallel in cases:
            many += 1
            case = _case(subject, parallel)
            if isinstance(case, str):
                click.echo(f"{name}: not begun: {case}")
                continue
            found = explore(case, runs_max=runs)
            click.echo(f"{name}: {_line(found)}")
            broken += bool(found.failed)
            left += not (found.complete or found.failed)
            if found.failed:
                _show(case, found)
    except KeyboardInterrupt:
        click.echo(f"stopped after {many - 1} cases")
        sys.exit(ExitStatus.INCONCLUSIVE.value)
    except CannotStart as error:
        raise CannotRun(f"{candidate} does not start: {error}") from error
    if not many:
        raise CannotRun(f"no case has {words!r} in its name")
    click.echo(f"{many} cases, {broken} broken" + (f", {left} with more to run" if left else ""))
    sys.exit(ExitStatus.BROKEN.value if broken else ExitStatus.KEPT.value)


def _orders(claims: Capabilities) -> Iterator[Order]:
    yield Fifo()
    if "priority" in claims.orders:
        yield Priority(levels=3)


def _case(subject: Subject, parallel: Parallel) -> Case[Recorded] | str:
    """Return a case, or why it cannot begin; raises `CannotRun` where none can."""
    candidate, oracle = subject.fresh()
    if not isinstance(candidate, OnThreads):
        raise CannotRun(
            f"{subject.address} cannot be used on threads: it has no `on_threads`"
            " (see brokerproof.spec.candidate.OnThreads)"
        )
    copier = copier_of(candidate)
    if isinstance(copier, str):
        raise CannotRun(f"{subject.address}: {copier}")
    try:
        return parallel_case(parallel, candidate, copier, oracle, watches=classes_beside(candidate))
    except CannotBegin as error:
        return str(error)


def classes_beside(candidate: Candidate) -> Sequence[type]:
    """Return the classes of a candidate's module, and of those beside it or further in."""
    home = type(candidate).__module__
    folder, package = _folder(sys.modules[home]), home.rpartition(".")[0]
    found = {
        each: None
        for name, module in list(sys.modules.items())
        if (folder is not None and _folder(module) == folder)
        or (package and name.startswith(f"{package}."))
        for each in vars(module).values()
        if inspect.isclass(each) and each.__module__ == name and _has_attributes(each)
    }
    return [*found]


def _folder(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve().parent


def _has_attributes(kind: type) -> bool:
    """Whether objects of a class have attributes of their own that can be watched."""
    is_cell = kind.__module__ == "brokerproof.reference.atomics"
    return not (is_cell or issubclass(kind, (enum.Enum, BaseException, tuple, dict, list)))


def _line(found: Explored) -> str:
    all_of = "all" if found.complete else "the first"
    broken = ": BROKEN" if found.failed else ""
    return f"{all_of} {found.runs:,} interleavings, {found.steps:,} accesses{broken}"


def _show(case: Case[Recorded], found: Explored) -> None:
    fewer = with_few_switches(
        case, switches_max=SWITCHES_MAX, runs_max=RUNS_FOR_FEWER_SWITCHES
    ).failed
    rich.print(table(case, fewer or found.failed[0]))
