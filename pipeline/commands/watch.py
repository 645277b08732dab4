"""`brokerproof trace watch`: recorded traffic, judged while it is recorded.

Owns the options, the terminal output, and how a watch ends. Each result appears exactly once in the
folder, even after a crash; a line on the terminal is lost with its process.
"""

from __future__ import annotations

import fcntl
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from brokerproof.candidates.signals import handled_by
from brokerproof.checks.commands.options.types import FiniteRange
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.verdicts import ExitStatus
from brokerproof.pipeline.commands.options import queue_options, spark_options
from brokerproof.pipeline.explain.explanations import counterexample_of
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.intervals.known_queues import KnownQueues, QueueFacts
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.spark.session import session
from brokerproof.pipeline.watch.batches import Batch, Watch
from brokerproof.pipeline.watch.files import SUFFIXES
from brokerproof.pipeline.watch.state import Carried, Folder, StateIsMissing

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LINES_OF_A_BATCH: Final = 50
"""The largest number of lines shown of one batch; all are in the folder."""
LITTLE_BYTES: Final = 64 << 20
"""For fewer bytes, starting Spark and compiling takes longer than judging."""
NS_OF_A_SECOND: Final = 1_000_000_000
WAIT_S: Final = 0.2
"""The interval in seconds at which a stop is checked."""


@click.command("watch")
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".brokerproof-watch"),
    show_default=True,
    help="Where violations, state and checkpoint go; with a Spark cluster, where all reach it.",
)
@spark_options
@click.option(
    "--late",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="How much later than it began something may be recorded.",
)
@click.option(
    "--keep",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help="How long messages that are done with are remembered; for ever by default.",
)
@click.option(
    "--once",
    is_flag=True,
    help="Judge the files that are there, take the runs for finished, and stop. For files that "
    "are whole already `trace check` says the same, sooner.",
)
@click.option(
    "--interval",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="How often new files are looked for.",
)
@queue_options
def watch(
    directory: Path,
    out: Path,
    master: str,
    settings: Mapping[str, str],
    late: float,
    keep: float | None,
    once: bool,
    interval: float,
    queues: Mapping[str, QueueFacts],
    undeclared: QueueFacts,
) -> None:
    """Hold traffic against the requirements while files of its history appear in a directory.

    Ctrl-C stops it after the batch that it is at, and pressed again at once; started again with the
    same --out, it goes on where it was. How long messages wait is not judged here: --stalled-after
    is an option of `trace check`, on the same files.

    Exit status: 0 nothing is broken; 1 something is; 2 it could not be watched; 3 it was ended
    while something was open, or more rows were rejected than checked, or none were there.
    """
    if out.resolve() == directory.resolve():
        raise CannotRun(f"--out: {out} is the watched directory; name another folder")
    folder = Folder(out.resolve())
    known = KnownQueues(queues, undeclared)
    kept = None if keep is None else round(keep * NS_OF_A_SECOND)
    try:
        with (
            _prepared(folder),
            tempfile.TemporaryDirectory(prefix="brokerproof-") as scratch,
            session(
                master, Path(scratch), settings, is_brief=once and _is_little(directory)
            ) as spark,
        ):
            task = Watch(spark, folder, round(late * NS_OF_A_SECOND), kept, _show, known)
            _watch(task, directory, once=once, interval_s=interval)
    except KeyboardInterrupt:
        click.echo("interrupted: nothing was judged yet")
        sys.exit(ExitStatus.INCONCLUSIVE.value)
    carried = after.carried if (after := folder.latest()) is not None else Carried()
    click.echo(_counts(carried))
    status, why = ending(carried, f"brokerproof trace watch {directory} --out {out} --once")
    for line in why:
        click.echo(line)
    sys.exit(status.value)


def ending(carried: Carried, to_finish: str) -> tuple[ExitStatus, list[str]]:
    """Return the exit status of a watch, and lines about what stays open.

    `to_finish` is the command that decides what is still open.
    """
    why = []
    if carried.undecided:
        names = ", ".join(carried.first_undecided)
        unnamed = carried.undecided - len(carried.first_undecided)
        why.append(f"undecided: {names}" + (f" and {unnamed:,} queues more" if unnamed else ""))
        why.append(
            "what was given there may not have been seen, or what was found may be explained by "
            f"what comes; where nothing comes any more, all is said by: {to_finish}"
        )
    account = carried.account
    if not account.checked:
        why.append("nothing was checked")
    elif account.is_for_the_lesser_part:
        why.append(account.complaint)
    if carried.raised > carried.withdrawn:
        return ExitStatus.BROKEN, why
    return ExitStatus.INCONCLUSIVE if why else ExitStatus.KEPT, why


def _is_little(directory: Path) -> bool:
    """Return whether the files in a directory are read in no time."""
    # Files that are still being written have other names, and may be gone in a moment.
    files = [each for suffix in SUFFIXES for each in directory.glob(f"[!._]*.{suffix}")]
    return sum(each.stat().st_size for each in files) < LITTLE_BYTES


def _watch(task: Watch, directory: Path, *, once: bool, interval_s: float) -> None:
    """Watch until nothing is left, or until a stop is requested."""
    with _stopped() as stop:
        if (before := task.folder.latest()) is not None:
            click.echo(f"going on after {_counts(before.carried)}")
        query = task.begin(directory, once=once, interval_s=interval_s)
        click.echo(f"watching {directory}; violations go to {task.folder.path}; Ctrl-C stops")
        _wait(task, query, stop)
        if once and not stop.once.is_set():
            task.finish()


def _wait(task: Watch, query: StreamingQuery, stop: _Stop) -> None:
    """Return when the stream has ended, or after a stop when its batch is done or abandoned."""
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415 (an extra)

    try:
        while not stop.once.wait(WAIT_S):
            if not query.isActive:
                query.awaitTermination()
                return
    except StreamingQueryException as error:
        if task.failed is not None:
            raise task.failed from None
        first = next(iter(str(error).splitlines()), "Spark does not say why")
        raise CannotRun(f"the stream has ended: {first}") from error
    if not task.stop(query, WAIT_S):
        click.echo("stopping after the batch that is being judged; Ctrl-C again leaves it undone")
        while not task.stop(query, WAIT_S):
            if stop.twice.is_set():
                task.leave_batch()


def _show(batch: Batch) -> None:
    lines = [f"broken: {_words(row)}" for row in batch.raised]
    lines += [
        f"withdrawn, for what was recorded since: {row['requirement']}: "
        f"{subject(row)}, run {row['run']}"
        for row in batch.withdrawn
    ]
    lines += [*batch.clocks, *(f"rejected: {row}" for row in batch.aside)]
    for line in lines[:LINES_OF_A_BATCH]:
        click.echo(line)
    if len(lines) > LINES_OF_A_BATCH:
        more = len(lines) - LINES_OF_A_BATCH
        click.echo(f"and {more:,} lines more; all of them are beside {batch.written}")


def _words(row: dict[str, Any]) -> str:
    found = counterexample_of(Violation.of(row), "")
    witness = f", witness {row['witness']}" if row["witness"] else ""
    return f"{row['requirement']}: {subject(row)}{witness}: {found.summary}"


def subject(row: Mapping[str, Any]) -> str:
    """Return the subject of a violation: a message, a get that found nothing, or a drained queue.

    >>> subject({"rule": "found-nothing", "message": "c at 5", "queue": "q"})
    'get by c at 5 of queue q'
    """
    rule = RULES[row["rule"]]
    if rule.concerns_a_get:
        return f"get by {row['message']} of queue {row['queue']}"
    if rule.concerns_a_drained_queue:
        return f"queue {row['queue']}, {row['message']}"
    return f"message {row['message']} of queue {row['queue']}"


def _counts(carried: Carried) -> str:
    text = f"{carried.account}, in {carried.files:,} files; {carried.raised:,} violations raised"
    if carried.withdrawn:
        text += f", {carried.withdrawn:,} withdrawn"
    if carried.strangers:
        text += f"; {carried.strangers:,} records were about messages that are not known any more"
    return text


@dataclass
class _Stop:
    """Whether Ctrl-C or SIGTERM came, and whether it came again."""

    once: threading.Event = field(default_factory=threading.Event)
    twice: threading.Event = field(default_factory=threading.Event)


@contextmanager
def _stopped() -> Iterator[_Stop]:
    """Yield the flags that Ctrl-C and SIGTERM set."""
    asked = _Stop()

    def ask(_number: int, _frame: FrameType | None) -> None:
        (asked.twice if asked.once.is_set() else asked.once).set()

    with handled_by(ask):
        yield asked


@contextmanager
def _prepared(folder: Folder) -> Iterator[None]:
    """Prepare a folder and lock it against other watches; raises `CannotRun`."""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        with (folder.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CannotRun(f"--out: {folder.path}: another watch is at work here") from error
            folder.prepare()
            yield
    except StateIsMissing as error:
        raise CannotRun(f"--out: {error}") from error
    except OSError as error:
        raise CannotRun(f"--out: {folder.path}: {error.strerror or error}") from error
