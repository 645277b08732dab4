"""`brokerproof explore`: every state of a model in a scope.

Owns the words for an exploration's results. Exit status: 0 all states visited and all invariants
held, 1 an invariant or a promise about the end failed, 2 the arguments do not fit, 3 the search
ended before all states were visited, or such a promise was not checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from brokerproof.checks.model_argument import MODEL
from brokerproof.models.catalogue import CATALOGUE, Listed
from brokerproof.models.language.itf import itf
from brokerproof.models.language.model import ModelError, System, trace
from brokerproof.models.language.scope import Scope, default_scope
from brokerproof.models.language.traces import Step, trace_text

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
    "--dot",
    "dot_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the graph of all states of a small scope to this file, for Graphviz.",
)
@click.option(
    "--svg",
    "svg_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Draw the graph of all states of a small scope to this file.",
)
@click.option(
    "--symmetry",
    "symmetric",
    metavar="FAMILY",
    help="Search states that differ in the names of this family's elements as one.",
)
def explore(
    model: str,
    size: int | None,
    limit_states: int | None,
    deadlock: bool,
    itf_file: Path | None,
    dot_file: Path | None,
    svg_file: Path | None,
    symmetric: str | None,
) -> None:
    """Visit every state of MODEL in a scope and check its invariants in each.

    MODEL is a name, or FILE.py:CLASS. A violation comes with a shortest way to it. Ctrl-C shows
    what was found so far.
    """
    # NumPy and the explorer take a moment to load, and no other command of the program needs them.
    from brokerproof.models.language import explorer  # noqa: PLC0415

    listed = CATALOGUE[model]
    system = trace(listed.model)
    progress = _show_progress if sys.stderr.isatty() else None
    try:
        scope = _resized(system, listed, size) if size else listed.scope
        _draw(system, scope, dot_file, svg_file)
        found = explorer.explore(
            system,
            scope,
            limit_states=limit_states,
            progress=progress,
            deadlock=deadlock,
            symmetric=symmetric,
        )
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
        _say_what_happens_in_the_end(model, system, scope, itf_file)


def _say_what_happens_in_the_end(
    model: str, system: System, scope: Scope, itf_file: Path | None
) -> None:
    """Print which promises of that kind are kept; exit where one is not, or was not checked.

    The run that breaks the first one is written to the file.
    """
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
        for line in _run_lines(promise.trace, promise.loop):
            click.echo(f"    {line}")
    broken = next((promise for promise in promises if not promise.kept), None)
    if broken:
        if itf_file:
            described = f"{broken.name} is broken in the scope {scope}"
            text = itf(broken.trace, model=model, description=described, loop=broken.loop)
            itf_file.write_text(text, encoding="utf-8")
        raise SystemExit(1)


def _run_lines(before: Sequence[Step], loop: Sequence[Step]) -> Iterator[str]:
    """Yield a run that goes on for ever, with a line where the part begins that is repeated."""
    for line in trace_text([*before, *loop]).splitlines():
        if line.startswith(f"{len(before)}. "):
            yield "from here on for ever:"
        yield line
    if not loop:
        yield "and nothing happens any more, which is fair"


def _resized(system: System, listed: Listed, size: int) -> Scope:
    """Return the scope of that size; what has one value for all indices stays fixed."""
    plain = default_scope(system, size)
    fixed = {n: value for n, value in listed.scope.fixed.items() if isinstance(value, int)}
    return Scope(plain.sizes, plain.integers, fixed)


def _draw(system: System, scope: Scope, dot_file: Path | None, svg_file: Path | None) -> None:
    if not dot_file and not svg_file:
        return
    from brokerproof.models.language.graphs import graph  # noqa: PLC0415  with NumPy, see above

    drawn = graph(system, scope)
    if dot_file:
        dot_file.write_text(drawn.dot(), encoding="utf-8")
    if svg_file:
        svg_file.write_text(drawn.svg(), encoding="utf-8")


def _show_progress(progress: Progress) -> None:
    line = f"depth {progress.depth}, {progress.states:,} states, {progress.seconds:.0f} s"
    click.echo(f"\r\033[K{line}", nl=False, err=True)


def _symmetry(found: Exploration) -> str:
    if not found.symmetric:
        return ""
    return f" up to symmetry of {found.symmetric}, which stand for {found.stands_for:,}"


def _lines(model: str, system: System, found: Exploration) -> Iterator[str]:
    yield f"{model} in the scope {found.scope}"
    yield f"  states       {found.states:,}{_symmetry(found)}"
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
