"""`brokerproof explore`: every state of a model in a scope.

The file owns the words for the results of an exploration, and the exit status: see `explore`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from brokerproof.checks.commands.options.model_argument import MODEL
from brokerproof.checks.commands.options.scope import scope_asked_for, scope_options
from brokerproof.checks.commands.options.types import IntegerRange
from brokerproof.checks.commands.proof_lines import idle_lines
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.core.model import ModelError, System, trace
from brokerproof.models.language.core.overflow import OutOfRange
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.traces import Step, trace_text
from brokerproof.models.language.explore.itf import itf

if TYPE_CHECKING:
    from brokerproof.models.language.explore.explorer import Exploration, Progress


_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


@click.command("explore")
@click.argument("model", type=MODEL)
@scope_options
@click.option(
    "--limit-states", type=IntegerRange(min=1), help="Stop after so many different states."
)
@click.option("--deadlock", is_flag=True, help="Count a state without a successor as broken.")
@click.option(
    "--never",
    multiple=True,
    metavar="ACTION",
    help="Accept that this action is never taken in the scope; may be repeated.",
)
@click.option(
    "--itf",
    "itf_file",
    type=_FILE,
    help="Write the way to a violation to this file, as an ITF trace.",
)
@click.option(
    "--dot",
    "dot_file",
    type=_FILE,
    help="Write the graph of all states of a small scope to this file, for Graphviz.",
)
@click.option(
    "--svg",
    "svg_file",
    type=_FILE,
    help="Draw the graph of all states of a small scope to this file.",
)
@click.option(
    "--symmetry",
    "symmetric",
    metavar="FAMILY",
    help="Search states that differ in the names of this family's elements as one.",
)
def explore(
    model: tuple[str, ...],
    sizes: tuple[tuple[str, int], ...],
    integers: range | None,
    limit_states: int | None,
    deadlock: bool,
    never: tuple[str, ...],
    itf_file: Path | None,
    dot_file: Path | None,
    svg_file: Path | None,
    symmetric: str | None,
) -> None:
    """Visit every state of MODEL in a scope and check its invariants in each.

    MODEL is a name, or FILE.py:CLASS; rabbitmq-paging and other documented systems stand for all
    their models. A violation comes with a shortest way to it. Ctrl-C shows the results so far.

    Exit status: 0 all states visited, all properties kept, each action taken; 1 one is broken;
    2 the arguments do not fit; 3 not all was visited, taken or checked. Of several models, 1 if
    one has it.
    """
    files = _Files(itf_file, dot_file, svg_file)
    if len(model) > 1 and (sizes or integers or never or symmetric or any(files)):
        raise click.UsageError(f"this option is about one model: name one of {', '.join(model)}")
    statuses = set()
    for name in model:
        asked = _Asked(sizes, integers, limit_states, deadlock, never, symmetric)
        try:
            _explore(name, asked, files)
        except SystemExit as status:
            statuses.add(status.code)
    for status_of_all in (1, 3):
        if status_of_all in statuses:
            raise SystemExit(status_of_all)


class _Files(NamedTuple):
    """The files for the results, if any."""

    itf: Path | None
    dot: Path | None
    svg: Path | None


class _Asked(NamedTuple):
    """The options for a model."""

    sizes: tuple[tuple[str, int], ...]
    integers: range | None
    limit_states: int | None
    deadlock: bool
    never: tuple[str, ...]
    symmetric: str | None


def _explore(model: str, asked: _Asked, files: _Files) -> None:
    """Explore one model; exits if a check fails."""
    # NumPy and the explorer take a moment to load, and no other command needs them.
    from brokerproof.models.language.explore import explorer  # noqa: PLC0415

    listed = CATALOGUE[model]
    system = trace(listed.model)
    progress = _show_progress if sys.stderr.isatty() else None
    try:
        _check_actions(system, asked.never)
        scope = scope_asked_for(system, listed, asked.sizes, asked.integers)
        _draw(system, scope, files.dot, files.svg)
        found = explorer.explore(
            system,
            scope,
            limit_states=asked.limit_states,
            progress=progress,
            deadlock=asked.deadlock,
            symmetric=asked.symmetric,
        )
    except OutOfRange as error:
        _show_the_way_out(error)
        raise click.UsageError(str(error)) from error
    except ModelError as error:
        raise click.UsageError(str(error)) from error
    finally:
        if progress:
            click.echo("\r\033[K", nl=False, err=True)
    for line in _lines(model, system, found, asked.never):
        click.echo(line)
    if found.violation:
        described = f"{found.violation.invariant} is broken in the scope {found.scope}"
        _write(files.itf, itf(found.violation.trace, model=model, description=described))
        raise SystemExit(1)
    if found.incomplete:
        raise SystemExit(3)
    silent, states = explorer.vacuous(system, scope)
    for name in silent:
        click.echo(f"  says nothing in the first {states:,} states: {name}")
    _say_what_happens_in_the_end(model, system, scope, files.itf)
    if files.itf:
        click.echo(f"  nothing is broken, so {files.itf} is not written")
    if set(found.never_taken) - set(asked.never):
        raise SystemExit(3)


def _check_actions(system: System, never: tuple[str, ...]) -> None:
    """Raise `ModelError` for a name that is no action."""
    names = [action.name for action in system.actions]
    for name in never:
        if name not in names:
            raise ModelError(f"there is no action {name}: {', '.join(names)}")


def _show_the_way_out(error: OutOfRange) -> None:
    if error.way:
        for line in trace_text(error.way).splitlines():
            click.echo(f"    {line}")
        click.echo(f"    {len(error.way)}. {error.step}")


def _write(path: Path | None, text: str) -> None:
    """Write a requested file and say so; a failure is one line."""
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror or error}") from error
    click.echo(f"  written      {path}")


def _say_what_happens_in_the_end(
    model: str, system: System, scope: Scope, itf_file: Path | None
) -> None:
    """Print which leads-to properties are kept; exit if one is broken or was not checked.

    The run that breaks the first one is written to the file.
    """
    if not system.leads_to:
        return
    from brokerproof.models.language.explore import liveness  # noqa: PLC0415  with NumPy, see above

    try:
        properties = liveness.check(system, scope)
    except ModelError as error:
        unproved = [each.name for each in system.leads_to if each.rank is None]
        click.echo(f"  not checked: {', '.join(p.name for p in system.leads_to)}; {error}")
        if unproved:
            raise SystemExit(3) from None
        click.echo("  `prove` covers them for any size, since each has a rank")
        return
    for progress in properties:
        if progress.kept and progress.asked:
            click.echo(f"  kept in the end: {progress.name}")
        elif progress.kept:
            click.echo(
                f"  says nothing here: {progress.name}, whose premise never holds without what it "
                "leads to"
            )
        else:
            given = ", ".join(f"{name}={value}" for name, value in progress.arguments.items())
            click.echo(f"  broken: {progress.name}({given})")
            for line in _run_lines(progress.trace, progress.loop):
                click.echo(f"    {line}")
    broken = next((progress for progress in properties if not progress.kept), None)
    if broken:
        described = f"{broken.name} is broken in the scope {scope}"
        _write(itf_file, itf(broken.trace, model=model, description=described, loop=broken.loop))
        raise SystemExit(1)
    if not all(progress.asked for progress in properties):
        raise SystemExit(3)


def _run_lines(before: Sequence[Step], loop: Sequence[Step]) -> Iterator[str]:
    """Yield an infinite run, with a line where its repeated part begins."""
    for line in trace_text([*before, *loop]).splitlines():
        if line.startswith(f"{len(before)}. "):
            yield "from here on for ever:"
        yield line
    if not loop:
        yield "and nothing happens any more, which is fair"


def _draw(system: System, scope: Scope, dot_file: Path | None, svg_file: Path | None) -> None:
    if not dot_file and not svg_file:
        return
    from brokerproof.models.language.explore.graphs import graph  # noqa: PLC0415  with NumPy, see above

    drawn = graph(system, scope)
    _write(dot_file, drawn.dot())
    _write(svg_file, drawn.svg())


def _show_progress(progress: Progress) -> None:
    line = f"depth {progress.depth}, {progress.states:,} states, {progress.seconds:.0f} s"
    click.echo(f"\r\033[K{line}", nl=False, err=True)


def _symmetry(found: Exploration) -> str:
    if not found.symmetric:
        return ""
    return f" up to symmetry of {found.symmetric}, which stand for {found.stands_for:,}"


def _lines(model: str, system: System, found: Exploration, never: tuple[str, ...]) -> Iterator[str]:
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
    yield f"  actions {_not_taken(found, never)}"
    yield from idle_lines(system)
    if found.violation:
        steps = len(found.violation.trace) - 1
        yield f"  broken: {found.violation.invariant}, after {steps} steps and no fewer"
        text = trace_text(found.violation.trace)
        yield from (f"    {line}" for line in text.splitlines())
        return
    if not system.invariants:
        yield "  no invariant: nothing was checked in these states"
        return
    yield "  invariants held:" if not found.incomplete else "  invariants held so far:"
    yield from (f"    {statement.name}" for statement in system.invariants)


def _not_taken(found: Exploration, never: tuple[str, ...]) -> str:
    """Return which actions were not taken, and which of these were accepted beforehand."""
    if found.violation or found.incomplete:
        return f"not taken so far: {', '.join(found.never_taken) or 'none'}"
    shown = [f"{a} (accepted)" if a in never else a for a in found.never_taken]
    taken = [action for action in never if action not in found.never_taken]
    after_all = f"; taken after all: {', '.join(taken)}" if taken else ""
    return f"never taken: {', '.join(shown) or 'none'}{after_all}"
