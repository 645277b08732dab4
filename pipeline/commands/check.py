"""`brokerproof trace check`: a recorded history, checked against the requirements.

Owns the options and the choice of the engine. A short history is judged in this process, any other
by several processes of this machine, or by Spark if that is asked for. All give the same result.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

import click
import msgspec
import pyarrow.dataset as ds

from brokerproof.checks.commands.check import ended, known_failures, make_folder
from brokerproof.checks.commands.known_failures import KnownFailures
from brokerproof.checks.commands.options.judging import judging_options
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.report import ci_hosts
from brokerproof.checks.report.folders import undisturbed
from brokerproof.checks.report.terminal import progress_on, screen, show
from brokerproof.checks.report.verdict_file import candidate_record, verdict_file
from brokerproof.checks.verdicts import ExitStatus, status_of, worst
from brokerproof.checks.workers.interrupts import Interrupts
from brokerproof.pipeline.alone import judged_alone, read
from brokerproof.pipeline.commands.options import (
    DURATIONS,
    LOCAL,
    duration,
    queue_options,
    spark_options,
)
from brokerproof.pipeline.explain.explanations import CLAIMS
from brokerproof.pipeline.explain.history_report import (
    judged_requirements,
    order_not_checked,
    report_on,
    rows_aside,
    traffic_of,
    with_rows_aside,
    write_tables,
)
from brokerproof.pipeline.explain.witnesses import witnesses_of, write_witnesses
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues, QueueFacts
from brokerproof.pipeline.parts.judging import Engine as InParts
from brokerproof.pipeline.parts.judging import judged_in_parts
from brokerproof.pipeline.processes import Processes
from brokerproof.pipeline.readers.conversion import SHOWN_MAX, Converted, convert
from brokerproof.pipeline.readers.rejected_rows import Account
from brokerproof.pipeline.readers.sources import SOURCES
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.spark.on_spark import OnSpark
from brokerproof.pipeline.spark.session import interruptibly, session
from brokerproof.pipeline.tables import SCHEMA, UnreadableHistory, file_and_line, records_of

Engine: TypeAlias = Literal["auto", "alone", "spark"]

SHORT: Final = 1_000_000
"""The most records that this process judges by itself; each takes about 500 bytes of memory."""

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
    help="What judges: this machine alone, or Spark; auto takes Spark if --master names one.",
)
@spark_options
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where tables are put while they are needed; with a Spark cluster, where all reach it.",
)
@click.option(
    "--begins-late",
    is_flag=True,
    help="Messages were there before the recording began: reject what was never published.",
)
@click.option(
    "--stalled-after",
    metavar="DURATION",
    callback=duration,
    help="Tell messages that waited for longer than this while a consumer was free to take them; "
    f"for histories in nanoseconds of a clock. DURATION is {DURATIONS}.",
)
@queue_options
@judging_options
@click.option(
    "--accept-inconclusive",
    is_flag=True,
    help="Exit with 0 where the history puts nothing to the test, or most of it was rejected.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False, writable=True),
    default=Path(".brokerproof-trace"),
    show_default=True,
    help="Where the report goes: verdict.json, report.html, junit.xml and others.",
)
@click.option(
    "--progress/--no-progress", default=None, help="Show progress; by default on a terminal."
)
def check(
    paths: tuple[Path, ...],
    form: str | None,
    engine: Engine,
    master: str,
    settings: Mapping[str, str],
    scratch: Path | None,
    begins_late: bool,
    stalled_after: int | None,
    queues: Mapping[str, QueueFacts],
    undeclared: QueueFacts,
    only: tuple[str, ...],
    known: Path | None,
    today: dt.datetime | None,
    strict: bool,
    accept_inconclusive: bool,
    report: Path,
    progress: bool | None,
) -> None:
    """Hold recorded traffic, in files or folders, against the requirements.

    Exit status: 0 nothing is broken; 1 something is; 2 it could not be checked; 3 the history puts
    nothing to the test, most of a requirement was excused, more rows were rejected than checked, or
    it was interrupted.
    """
    _refuse_what_is_not_judged(only, by_time=stalled_after is not None)
    asked = Judging(
        source=", ".join(map(str, paths)),
        only=only,
        failures=known_failures(known, (today or dt.datetime.now(dt.UTC)).date()),
        strict=strict,
        accept_inconclusive=accept_inconclusive,
        queues=KnownQueues(queues, undeclared),
    )
    make_folder(report)
    shown = sys.stderr.isatty() if progress is None else progress
    if engine == "auto":
        engine = "alone" if master == LOCAL else "spark"
    engines = Engines(engine, master, settings, scratch, begins_late, stalled_after)
    sys.exit(judge_history(asked, paths, form, engines, report, progress=shown).value)


@dataclass(frozen=True)
class Engines:
    """The engine that judges, where and how it works, and what it must know of the recording."""

    engine: Engine = "alone"
    master: str = LOCAL
    settings: Mapping[str, str] = field(default_factory=dict)
    scratch: Path | None = None
    begins_late: bool = False
    stalled_after: int | None = None


@dataclass(frozen=True)
class Recorded:
    """What a recorder knows of a history beyond its records.

    Of several violations of a requirement, one in `shown_run` is explained. `complaints` are
    findings that no record shows, each a line. The recording may have been `interrupted`.
    """

    shown_run: str | None = None
    complaints: tuple[str, ...] = ()
    interrupted: bool = False


def judge_history(
    asked: Judging,
    paths: Sequence[Path],
    form: str | None,
    engines: Engines,
    report: Path,
    *,
    progress: bool,
    recorded: Recorded | None = None,
) -> ExitStatus:
    """Judge a history, show and write the verdicts; the folder `report` exists.

    Ctrl-C ends it with the status of an inconclusive run.
    """
    rows = _RowsRead()
    with tempfile.TemporaryDirectory(prefix="brokerproof-", dir=_folder(engines.scratch)) as folder:
        try:
            with Interrupts().listening(), _told(progress) as say:
                read = _converted(paths, form, Path(folder) / "history", rows, say)
                _refuse_contradictions(read, asked.queues)
                judgement, how = _Task(read, Path(folder), engines, asked.queues, say).judged()
        except KeyboardInterrupt:
            click.echo(f"interrupted: {rows}; nothing is said of the history")
            return ExitStatus.INCONCLUSIVE
        with undisturbed():
            return _reported(read, judgement, how, asked, report, recorded or Recorded())


def _refuse_what_is_not_judged(only: tuple[str, ...], *, by_time: bool) -> None:
    """Raise `CannotRun` for a requirement that no rule checks."""
    judged = judged_requirements(by_time=by_time)
    for name in only:
        if name not in judged and name in judged_requirements(by_time=True):
            raise CannotRun(
                f"--only: {name} is judged by how long messages may wait; add --stalled-after "
                "DURATION, such as --stalled-after 5s"
            )
        if name not in judged:
            raise CannotRun(
                f"--only: no rule on histories is about {name!r}; name one of {', '.join(judged)}"
            )


def _refuse_contradictions(read: Converted, known: KnownQueues) -> None:
    """Raise `CannotRun` if an option contradicts the history's declaration of a queue."""
    if not known.by_name:
        return
    field = ds.field
    declared = (field("op") == "declare") & field("queue").isin(sorted(known.by_name))
    history = ds.dataset([str(part) for part in read.parts])
    for batch in history.to_table(columns=SCHEMA.names, filter=declared).cast(SCHEMA).to_batches():
        for record in records_of(batch):
            if (contradiction := known.contradiction(record)) is not None:
                raise CannotRun(contradiction)


@dataclass(frozen=True)
class Judging:
    """The history, and how its verdicts decide the exit status."""

    source: str
    only: tuple[str, ...] = ()
    failures: KnownFailures = field(default_factory=KnownFailures)
    strict: bool = False
    accept_inconclusive: bool = False
    queues: KnownQueues = NOTHING_SAID


@dataclass
class _RowsRead:
    """The progress of reading recordings."""

    rows: int = 0
    done: bool = False

    def __str__(self) -> str:
        return f"{self.rows:,} rows were read" + ("" if self.done else " so far")


def _reported(
    read: Converted,
    judgement: Judgement,
    how: str,
    asked: Judging,
    report: Path,
    recorded: Recorded,
) -> ExitStatus:
    """Show and write the verdicts on a history."""
    account = with_rows_aside(read.account, judgement)
    witnesses = witnesses_of(judgement, read.parts, asked.queues, asked.only, recorded.shown_run)
    found = report_on(asked.source, judgement, account, how, asked.only, witnesses, read.files)
    judgements = tuple(
        asked.failures.judge(
            asked.source,
            each,
            strict=asked.strict,
            accept_inconclusive=asked.accept_inconclusive,
        )
        for each in found.verdicts
    )
    record = candidate_record(found, CLAIMS, judgements)
    record = msgspec.structs.replace(record, traffic=traffic_of(judgement))
    is_tested = any(each.exercised for each in found.verdicts)
    # Names in a recording may look like commands to the CI host.
    with ci_hosts.commands_off(click.echo, on_host=ci_hosts.on_github(os.environ)):
        show(record, screen(), verbose=True)
        left_open = _left_open(read, judgement, account, asked, is_tested)
        for line in (*_rejected(read, judgement, account), *left_open):
            click.echo(line)
    complaints = (*recorded.complaints, *asked.failures.complaints([found]))
    status = status_of(judgements)
    if complaints:
        status = ExitStatus.BROKEN
    elif recorded.interrupted or (account.is_for_the_lesser_part and not asked.accept_inconclusive):
        status = worst((status, ExitStatus.INCONCLUSIVE))
    try:
        write_tables(judgement, read.files, report, witnesses)
        write_witnesses(witnesses, report)
    except OSError as error:
        raise CannotRun(
            f"{report}: {error.strerror or error}; name another folder with --report"
        ) from error
    click.echo(f"{account}")
    interrupted = recorded.interrupted
    file = verdict_file((record,), status, interrupted=interrupted, complaints=complaints)
    return ended(file, report)


def _left_open(
    read: Converted, judgement: Judgement, account: Account, asked: Judging, is_tested: bool
) -> Iterator[str]:
    """Yield lines about what was not checked, and how to check it."""
    if judgement.undeclared:
        yield (
            f"{order_not_checked(judgement)}; say what they are with --queue NAME=WORDS, "
            "or of all with --undeclared WORDS, such as fifo or priority:10,durable"
        )
    there = {name for _, name in judgement.queues}
    for name in sorted(set(asked.queues.by_name) - there):
        yield f"--queue {name}: nothing in the history is about a queue of this name"
    coverage = judgement.coverage
    if coverage.unknown_settlements:
        yield (
            f"{coverage.unknown_settlements:,} of {coverage.settlements:,} settlements had no "
            "answer: their messages may be settled or not, so neither is charged"
        )
    if not is_tested:
        why = "no requirement is put to the test" if read.account.rows else "it has no rows"
        yield f"nothing was checked of {asked.source}: {why}"
    elif account.is_for_the_lesser_part:
        yield f"inconclusive: {account.complaint}"


@dataclass(frozen=True)
class _Task:
    """A history as a table, and the options of its judgement."""

    read: Converted
    scratch: Path
    engines: Engines
    known: KnownQueues
    say: Say

    def judged(self) -> tuple[Judgement, str]:
        """Return the judgement of the history, and the name of the engine."""
        self.say(f"judging {self.read.records:,} records")
        if self.engines.engine == "alone":
            return self._judged_here(), "judged on this machine"
        self.say("starting Spark")
        with session(
            self.engines.master, self.scratch, self.engines.settings, is_brief=True
        ) as spark:
            judgement = interruptibly(spark, lambda: self._judged_in_parts(OnSpark(spark)))
        return judgement, f"judged by Spark on {self.engines.master}"

    def _judged_here(self) -> Judgement:
        if self.read.records > SHORT:
            between = self.scratch / "between"
            between.mkdir()
            return self._judged_in_parts(Processes(between))
        return judged_alone(
            read(self.read.parts),
            begins_late=self.engines.begins_late,
            known=self.known,
            stalled_after=self.engines.stalled_after,
        )

    def _judged_in_parts(self, engine: InParts) -> Judgement:
        return judged_in_parts(
            engine,
            self.read.parts,
            begins_late=self.engines.begins_late,
            known=self.known,
            stalled_after=self.engines.stalled_after,
            progress=self.say,
        )


def _converted(
    paths: Sequence[Path], form: str | None, folder: Path, read: _RowsRead, say: Say
) -> Converted:
    def progress(path: Path, rows: int) -> None:
        read.rows = rows
        say(f"reading {path}: {rows:,} rows so far")

    try:
        done = convert(paths, form, folder, progress)
    except UnreadableHistory as error:
        raise CannotRun(str(error)) from error
    read.done = True
    return done


@contextmanager
def _told(shown: bool) -> Iterator[Say]:
    """Yield a function that shows a line of progress."""
    with progress_on(shown, "starting") as status:
        yield status.update


def _rejected(read: Converted, judgement: Judgement, account: Account) -> Iterator[str]:
    """Yield lines about rejected rows, and why they matter."""
    rows = [str(row) for row in read.shown]
    table = rows_aside(judgement, read.files)
    rows += [
        f"{row['file']}:{row['line']}: {row['category']}: {row['reason']}"
        for row in table.slice(0, SHOWN_MAX).to_pylist()
    ]
    many = read.account.rejected + table.num_rows
    for each in rows[:SHOWN_MAX]:
        yield f"rejected: {each}"
    if many > len(rows[:SHOWN_MAX]):
        yield f"rejected: {many - len(rows[:SHOWN_MAX]):,} more"
    if (step := judgement.clock_step) is not None:
        number, line = file_and_line(step.place)
        yield (
            f"{read.files[number]}:{line}: {step}: the {account.by_category['out of order']:,} "
            "rows out of order are about messages whose deliveries contradict others for that"
        )
    if read.account.rejected:
        yield "what was rejected is missing from the history and may make the rest look wrong"
    if many := account.by_category["not told apart"]:
        yield (
            f"{many:,} rows are about messages that are not told apart, of which nothing is said: "
            "each message of a queue needs a name of its own, and of RabbitMQ's firehose "
            "--form firehose:PROPERTY says where it stands"
        )


def _folder(scratch: Path | None) -> Path | None:
    if scratch is not None:
        try:
            scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(f"--scratch: {scratch}: {error.strerror or error}") from error
    return scratch
