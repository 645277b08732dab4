"""The report at a terminal: the verdicts, worst first, and every counterexample.

The file owns what fits a screen. Only `verbose` shows the stages, the ids that are not claimed, and
each kept id of a queue's inside; the report files always have them.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.status import Status
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from brokerproof.checks.inside.state_invariants import kinds
from brokerproof.checks.report.verdict_file import (
    CandidateRecord,
    DepartureRecord,
    VerdictRecord,
    counted,
    covered,
    worst_first,
)
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.trace.moves import visible
from brokerproof.checks.verdicts import Outcome

_STYLES = {
    Outcome.KEPT: "green",
    Outcome.BROKEN: "bold red",
    Outcome.INCONCLUSIVE: "yellow",
    Outcome.NOT_CLAIMED: "dim",
}

LOG_WIDTH = 120
"""Columns of a line where there is no terminal to fit."""

SPINNER_WIDTH = 2
"""Columns that the moving sign before a progress line takes."""

LINES_S = 10.0
"""How often a line of progress is printed where there is no terminal."""

Row: TypeAlias = tuple[str, str, Text, str, Text]


class _Lines(Status):
    """Progress where there is no terminal: a new line every `LINES_S` seconds."""

    _told_at = -math.inf

    def start(self) -> None:
        """Move nothing."""

    def stop(self) -> None:
        """Leave the lines as they are."""

    def update(
        self,
        status: RenderableType | None = None,
        *,
        spinner: str | None = None,
        spinner_style: StyleType | None = None,
        speed: float | None = None,
    ) -> None:
        """Print the text if the last one was printed a while ago."""
        del spinner, spinner_style, speed
        if status is not None and time.monotonic() - self._told_at >= LINES_S:
            self._told_at = time.monotonic()
            self.console.print(status, highlight=False)


def progress_on(shown: bool, first: str) -> Status:
    """Return progress on standard error, a context: a line that changes, or lines in a log."""
    there = sys.stderr.isatty()
    console = Console(stderr=True, quiet=not shown, width=None if there else LOG_WIDTH)
    return console.status(first) if shown and there else _Lines(first, console=console)


def show_progress(status: Status, did: Mapping[str, str]) -> None:
    """Show the progress of each candidate in a line, cut where the terminal is narrow."""
    lines = [Text(f"{candidate}: {what}") for candidate, what in did.items()]
    lines[0] = Text("Ctrl-C shows what was found; ") + lines[0]
    for line in lines:
        line.truncate(status.console.width - SPINNER_WIDTH, overflow="ellipsis")
    status.update(Text("\n").join(lines))


def screen() -> Console:
    """Return a console as wide as the terminal, or as a log."""
    return Console(width=None if sys.stdout.isatty() else LOG_WIDTH)


def show(record: CandidateRecord, console: Console, *, verbose: bool = False) -> None:
    """Print the gate's verdicts on one candidate."""
    called = "" if record.name == record.candidate else f"{record.name} "
    title = visible(f"{record.candidate}  ({called}{record.version})")
    console.print(title, highlight=False, markup=False, soft_wrap=True)
    if verbose:
        for stage in record.stages:
            console.print(f"  {stage.stage:<9} {visible(stage.did)}", highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("requirement", "level", "verdict"):
        table.add_column(heading, no_wrap=True)
    table.add_column("exercised", justify="right", no_wrap=True)
    table.add_column("reason", overflow="ellipsis")
    for row in _rows(worst_first(record.verdicts), verbose=verbose):
        table.add_row(*row)
    if table.rows:
        console.print(table)
    unclaimed = [v.requirement for v in record.verdicts if v.verdict is Outcome.NOT_CLAIMED]
    if unclaimed and verbose:
        names = ", ".join(gathered(unclaimed))
        console.print(Text(f"not claimed: {names}", _STYLES[Outcome.NOT_CLAIMED]))
    which = "; --verbose names what is not claimed" if unclaimed and not verbose else ""
    totals = visible(counted(record)) + which
    console.print(totals, highlight=False, markup=False, soft_wrap=True)
    if record.coverage is not None:
        console.print(covered(record.coverage), highlight=False, markup=False, soft_wrap=True)
    if record.departures:
        console.print("lawful departures, which are no faults:")
    for departure in record.departures:
        line = visible(_in_words(departure))
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for found in record.found:
        console.print()
        text = text_of_counterexample(found)
        console.print(text, highlight=False, markup=False, soft_wrap=True)


def _in_words(departure: DepartureRecord) -> str:
    value, found = str(departure.value).lower(), departure.counterexample
    shown = "not seen" if found is None else f"{found.requirement} in {len(found.steps)} steps"
    by = "; ".join(departure.sources)
    return f"  {departure.claim}: {value}  {departure.meaning} ({shown}; {by})"


def _rows(verdicts: Iterable[VerdictRecord], *, verbose: bool) -> Iterator[Row]:
    """Yield the rows of the table; kept ids inside a queue share one row for each kind of queue.

    If a counterexample follows, the reason is cut to one line.
    """
    times: Counter[str] = Counter()
    many: Counter[str] = Counter()
    for verdict in verdicts:
        if verdict.verdict is Outcome.NOT_CLAIMED:
            continue
        called = [kind for kind, asked in kinds().items() if verdict.requirement in asked]
        if called and verdict.verdict is Outcome.KEPT and not verbose:
            times[called[0]] += verdict.exercised
            many[called[0]] += 1
            continue
        style = _STYLES[verdict.verdict]
        if verdict.verdict is Outcome.BROKEN and verdict.counts_as != "failure":
            style = "yellow"
        yield (
            verdict.requirement,
            verdict.level.value,
            Text(verdict.verdict.value, style),
            str(verdict.exercised or ""),
            Text(visible(reason_of(verdict)), no_wrap=verdict.counterexample is not None),
        )
    for kind, exercised in times.items():
        what = f"{many[kind]} ids inside {kind}"
        kept = Text(Outcome.KEPT.value, _STYLES[Outcome.KEPT])
        yield what, "MUST", kept, str(exercised), Text()


def gathered(requirements: Iterable[str]) -> list[str]:
    """Return ids; if all ids of a kind of queue's inside are there, one phrase stands for them."""
    found = list(requirements)
    phrases = []
    for kind, asked in kinds().items():
        if asked.issubset(found):
            found = [each for each in found if each not in asked]
            phrases.append(f"what {kind} keeps inside ({len(asked)} ids)")
    return [*found, *phrases]


def reason_of(verdict: VerdictRecord) -> str:
    """Return the reason of a verdict, and the reason for which the failure is accepted."""
    if verdict.known is None:
        return verdict.reason
    return f"{verdict.reason} (known until {verdict.known.expires}: {verdict.known.reason})"
