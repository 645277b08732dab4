"""`brokerproof explore`: every state of a model in a scope.

Owns the words for an exploration's results. Exit status: 0 all states visited and all invariants
held, 1 an invariant or a promise about the end failed, 2 the arguments do not fit, 3 the search
ended before all states were visited, or such a promise was not checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from brokerproof.checks.model_argument import MODEL
from brokerproof.models.catalogue import CATALOGUE, Listed
from brokerproof.models.language.itf import itf
from brokerproof.models.language.model import ModelError, System, trace
from brokerproof.models.language.scope import Scope, default_scope
from brokerproof.models.language.traces import trace_text

if TYPE_CHECKING:
    from brokerproof.models.language.explorer import Exploration, Progress


@click.command("explore")
@click.argument("model", type=MODEL)
@click.option(
    "--size",
    type=click.IntRange(min=1),
    help="So many elements in each family, instead of the model's own scope.",
)
@click.option(
    "--limit-states", type=click.IntRange(min=1), help="Stop after so many different states."
)
@click.option("--deadlock", is_flag=True, help="Count a state without a successor as broken.")
@click.option(
    "--itf",
    "itf_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the way to a violation to this file, as an ITF trace.",
)
@click.option(
    "--graph",
    "graph_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Draw all states of a small scope to this file, a .dot or a .svg.",
)
def explore(
    model: str,
    size: int | None,
    limit_states: int | None,
    deadlock: bool,
    itf_file: Path | None,
    graph_file: Path | None,
) -> None:
    """Visit every state of MODEL in a scope and check its invariants in each.

    MODEL is a name, or FILE.py:CLASS. A violation comes with a shortest way to it. Ctrl-C shows
    what was found so far.
    """
    # NumPy and the explorer take a moment to load, and no other command of the program needs them.
    from brokerproof.models.language import explorer  # noqa: PLC0415

    if graph_file and graph_file.suffix not in (".dot", ".svg"):
        raise click.UsageError(f"{graph_file}: a graph ends in .dot or .svg")
    listed = CATALOGUE[model]
    system = trace(listed.model)
    progress = _show_progress if sys.stderr.isatty() else None
    try:
        scope = _resized(system, listed, size) if size else listed.scope
        found = explorer.explore(
            system, scope, limit_states=limit_states, progress=progress, deadlock=deadlock
        )
        if graph_file:
            _draw(system, scope, graph_file)
    except ModelError as error:
        raise click.UsageError(str(error)) from error
    finally:
        if progress:
            click.echo("\r\033[K", nl=False, err=True)
    for line in _lines(model, system, found):
        click.echo(line)
    if found.violation:
        if itf_file:
            described = f"{found.violation.invariant} is broken in the scope {found.scope}"
            text = itf(found.violation.trace, model=model, description=described)
            itf_file.write_text(text, encoding="utf-8")
        raise SystemExit(1)
    if found.incomplete:
        raise SystemExit(3)
    if system.leads_to:
        _say_what_happens_in_the_end(system, scope)


def _say_what_happens_in_the_end(system: System, scope: Scope) -> None:
    """Print which promises of that kind are kept; exit where one is not, or was not checked."""
    from brokerproof.models.language import liveness  # noqa: PLC0415  with NumPy, see above

    try:
        promises = liveness.check(system, scope)
    except ModelError as error:
        click.echo(f"  not checked: {', '.join(p.name for p in system.leads_to)}; {error}")
        raise SystemExit(3) from None
    for promise in promises:
        if promise.kept:
            click.echo(f"  kept in the end: {promise.name}")
            continue
        given = ", ".join(f"{name}={value}" for name, value in promise.arguments.items())
        click.echo(f"  broken: {promise.name}({given})")
        click.echo(
            "\n".join(f"    {line}" for line in trace_text(promise.trace).splitlines())
            + f"\n    and so on for ever, in {promise.circle} states"
        )
    if not all(promise.kept for promise in promises):
        raise SystemExit(1)


def _resized(system: System, listed: Listed, size: int) -> Scope:
    """Return the scope of that size; what has one value for all indices stays fixed."""
    plain = default_scope(system, size)
    fixed = {n: value for n, value in listed.scope.fixed.items() if isinstance(value, int)}
    return Scope(plain.sizes, plain.integers, fixed)


def _draw(system: System, scope: Scope, path: Path) -> None:
    from brokerproof.models.language.graphs import graph  # noqa: PLC0415  with NumPy, see above

    drawn = graph(system, scope)
    path.write_text(drawn.svg() if path.suffix == ".svg" else drawn.dot(), encoding="utf-8")


def _show_progress(progress: Progress) -> None:
    line = f"depth {progress.depth}, {progress.states:,} states, {progress.seconds:.0f} s"
    click.echo(f"\r\033[K{line}", nl=False, err=True)


def _lines(model: str, system: System, found: Exploration) -> Iterator[str]:
    yield f"{model} in the scope {found.scope}"
    yield f"  states       {found.states:,}"
    yield f"  transitions  {found.transitions:,}"
    yield f"  depth        {found.depth}"
    rate = found.states / max(found.seconds, 1e-9)
    yield f"  rate         {rate:,.0f} states/s, {found.seconds:.2f} s"
    if found.note:
        yield f"  note         {found.note}"
    if found.incomplete:
        yield f"  incomplete   {found.incomplete}"
    yield f"  actions never taken: {', '.join(found.never_taken) or 'none'}"
    if found.violation:
        steps = len(found.violation.trace) - 1
        yield f"  broken: {found.violation.invariant}, after {steps} steps and no fewer"
        text = trace_text(found.violation.trace)
        yield from (f"    {line}" for line in text.splitlines())
        return
    yield "  invariants held:" if not found.incomplete else "  invariants held so far:"
    yield from (f"    {statement.name}" for statement in system.invariants)
