"""`brokerproof trace check`: a recorded history, held against the promises.

Owns the options, and which engine judges: what fits in memory is judged alone, which is faster; the
rest by Spark. Both say the same.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import click
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from brokerproof.checks.check_command import known_failures
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.known_failures import KnownFailures
from brokerproof.checks.reporting.folders import undisturbed
from brokerproof.checks.reporting.forms import write_report
from brokerproof.checks.reporting.terminal import show
from brokerproof.checks.reporting.verdict_file import candidate_record, verdict_file
from brokerproof.checks.verdicts import ExitStatus, status_of
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.explanations import CLAIMS
from brokerproof.pipeline.history_report import (
    judged_requirements,
    report_on,
    rows_aside,
    with_rows_aside,
    write_tables,
    write_witnesses,
)
from brokerproof.pipeline.on_spark import judged_on_spark
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.sources import SHOWN_MAX, SOURCES, Converted, convert
from brokerproof.pipeline.spark_session import memory_mb, session
from brokerproof.pipeline.tables import UnreadableHistory

Engine: TypeAlias = Literal["auto", "alone", "spark"]

BYTES_OF_A_RECORD: Final = 1024
"""What judging a record alone takes of memory, about."""

Say: TypeAlias = Callable[[str], None]


@click.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--form",
    metavar="FORM",
    help=f"What was recorded: {', '.join(SOURCES)}; by default each file is looked at.",
)
@click.option(
    "--engine",
    type=click.Choice(("auto", "alone", "spark")),
    default="auto",
    show_default=True,
    help="Who judges: this process alone, or Spark; auto takes Spark where memory is too small.",
)
@click.option("--master", default="local[*]", show_default=True, help="With Spark: where it works.")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where tables are put while they are needed; with a Spark cluster, where all reach it.",
)
@click.option(
    "--begins-late",
    is_flag=True,
    help="Messages were there before the recording began: set aside what was never published.",
)
@click.option("--only", multiple=True, metavar="REQUIREMENT", help="Judge this one; repeatable.")
@click.option(
    "--known",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A list of known failures, with reason and expiry.",
)
@click.option("--today", type=click.DateTime(["%Y-%m-%d"]), hidden=True)
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".brokerproof-trace"),
    show_default=True,
    help="Where the report goes.",
)
@click.option(
    "--progress/--no-progress", default=None, help="Show progress; by default on a terminal."
)
def check(
    paths: tuple[Path, ...],
    form: str | None,
    engine: Engine,
    master: str,
    scratch: Path | None,
    begins_late: bool,
    only: tuple[str, ...],
    known: Path | None,
    today: dt.datetime | None,
    report: Path,
    progress: bool | None,
) -> None:
    """Hold recorded traffic, in files or folders, against the promises.

    Exit status: 0 nothing is broken; 1 something is; 2 it could not be checked; 3 the history puts
    nothing to the test.
    """
    for name in only:
        if name not in judged_requirements():
            raise CannotRun(
                f"--only: no rule on histories is about {name!r}; "
                f"name one of {', '.join(judged_requirements())}"
            )
    failures = known_failures(known, (today or dt.datetime.now(dt.UTC)).date())
    shown = sys.stderr.isatty() if progress is None else progress
    source = ", ".join(map(str, paths))
    with tempfile.TemporaryDirectory(prefix="brokerproof-", dir=_folder(scratch)) as folder:
        try:
            with _told(shown) as say:
                read = _converted(paths, form, Path(folder) / "history", say)
                task = _Task(read, Path(folder), master, begins_late, say)
                judgement, how = task.judged(engine)
        except KeyboardInterrupt:
            click.echo("interrupted: nothing is said of the history")
            sys.exit(ExitStatus.INCONCLUSIVE.value)
        status = _reported(read, judgement, how, source, only, failures, report)
    sys.exit(status.value)


def _reported(
    read: Converted,
    judgement: Judgement,
    how: str,
    source: str,
    only: tuple[str, ...],
    failures: KnownFailures,
    report: Path,
) -> ExitStatus:
    """Tell what is said of a history, and write it down."""
    account = with_rows_aside(read.account, judgement)
    found = report_on(source, judgement, account, how, only)
    judgements = tuple(
        failures.judge(source, each, strict=False, accept_inconclusive=False)
        for each in found.verdicts
    )
    record = candidate_record(found, CLAIMS, judgements)
    show(record, Console() if sys.stdout.isatty() else Console(width=120))
    for line in _set_aside(read, judgement):
        click.echo(line)
    complaints = failures.complaints([found])
    for complaint in complaints:
        click.echo(complaint)
    status = status_of(each.counts_as for each in judgements)
    if complaints:
        status = ExitStatus.BROKEN
    elif status is ExitStatus.KEPT and all(not each.exercised for each in found.verdicts):
        status = ExitStatus.INCONCLUSIVE
    with undisturbed():
        try:
            path = write_report(verdict_file((record,), status, complaints=complaints), report)
            write_tables(judgement, read.files, report)
            write_witnesses(found, judgement, read.parts, report)
        except OSError as error:
            raise CannotRun(
                f"{report}: {error.strerror or error}; name another folder with --report"
            ) from error
    click.echo(f"{account}")
    click.echo(f"report: {path}")
    return status


@dataclass(frozen=True)
class _Task:
    """A history as a table, and how it is to be judged."""

    read: Converted
    scratch: Path
    master: str
    begins_late: bool
    say: Say

    def judged(self, engine: Engine) -> tuple[Judgement, str]:
        """Return what is said of the history, and who said it."""
        fits = self.read.records * BYTES_OF_A_RECORD < memory_mb() * (1 << 20) // 2
        if engine == "alone" or (engine == "auto" and fits):
            self.say(f"judging {self.read.records:,} records")
            table = pa.concat_tables([pq.read_table(part) for part in self.read.parts])
            return judged_alone(table, begins_late=self.begins_late), "judged in memory"
        with session(self.master, self.scratch) as spark:
            judgement = judged_on_spark(
                spark,
                [str(part) for part in self.read.parts],
                begins_late=self.begins_late,
                progress=self.say,
            )
        return judgement, f"judged by Spark on {self.master}"


def _converted(paths: tuple[Path, ...], form: str | None, folder: Path, say: Say) -> Converted:
    def progress(path: Path, rows: int) -> None:
        say(f"reading {path}: {rows:,} rows so far")

    try:
        return convert(paths, form, folder, progress)
    except UnreadableHistory as error:
        raise CannotRun(str(error)) from error


@contextmanager
def _told(shown: bool) -> Iterator[Say]:
    """Yield what shows a line of progress, on a terminal only."""
    status = Console(stderr=True, quiet=not shown).status("starting")
    with status if shown else nullcontext():
        yield status.update


def _set_aside(read: Converted, judgement: Judgement) -> Iterator[str]:
    """Yield lines about rows that were set aside, and why that matters."""
    rows = [str(row) for row in read.shown]
    table = rows_aside(judgement, read.files)
    rows += [
        f"{row['file']}:{row['line']}: {row['category']}: {row['reason']}"
        for row in table.slice(0, SHOWN_MAX).to_pylist()
    ]
    many = read.account.set_aside + table.num_rows
    for each in rows[:SHOWN_MAX]:
        yield f"set aside: {each}"
    if many > len(rows[:SHOWN_MAX]):
        yield f"set aside: {many - len(rows[:SHOWN_MAX]):,} more"
    if read.account.set_aside:
        yield "what was set aside is missing from the history and may make the rest look wrong"


def _folder(scratch: Path | None) -> Path | None:
    if scratch is not None:
        try:
            scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(f"--scratch: {scratch}: {error.strerror or error}") from error
    return scratch
