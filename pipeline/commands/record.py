"""`brokerproof trace record`: a real broker under parallel load, and the history of that.

Owns the options and the report of a recording that ends early. Ctrl-C ends the load in order and
keeps what was recorded; pressed again, it ends everything at once and keeps nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
from rich.console import Console

from brokerproof.candidates.crash_commands import Power, PowerFailed
from brokerproof.candidates.signals import SIGNALS
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.checks.commands.options.types import FiniteRange
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.report.verdict_file import without_password
from brokerproof.checks.subjects import PRIVATE_RABBITMQ, WIRE
from brokerproof.checks.verdicts import ExitStatus

if TYPE_CHECKING:
    from brokerproof.candidates.amqp091.load.load import Progress
    from brokerproof.candidates.amqp091.load.notes import Load
    from brokerproof.pipeline.recording import Recording

MESSAGES_MAX = 100_000_000
WINDOW_MAX = 2**16 - 1
WORKERS_MAX = 64
LEVELS_MAX = 10


@click.command("record")
@click.argument("address")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--messages",
    type=click.IntRange(1, MESSAGES_MAX),
    default=10_000,
    show_default=True,
    help="How many to publish in all.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0, min_open=True),
    help="Publish no longer than this, even if messages are left.",
)
@click.option("--queues", type=click.IntRange(1, WORKERS_MAX), default=1, show_default=True)
@click.option("--producers", type=click.IntRange(1, WORKERS_MAX), default=2, show_default=True)
@click.option(
    "--consumers",
    type=click.IntRange(1, WORKERS_MAX),
    default=2,
    show_default=True,
    help="Consumers of each queue.",
)
@click.option(
    "--window",
    type=click.IntRange(1, WINDOW_MAX),
    default=100,
    show_default=True,
    help="Unsettled messages of a consumer at most, and unconfirmed ones of a producer.",
)
@click.option(
    "--levels",
    type=click.IntRange(2, LEVELS_MAX),
    help="Levels of priority of each queue; without, queues are first in, first out.",
)
@click.option(
    "--persistent/--transient",
    default=None,
    help="Whether messages and queues outlive a crash; by default where there are kills.",
)
@click.option(
    "--release-share",
    type=FiniteRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the first deliveries that is returned to the queue.",
)
@click.option(
    "--gets",
    type=click.IntRange(0, MESSAGES_MAX),
    default=0,
    show_default=True,
    help="Single messages to ask for, beside the consumers.",
)
@click.option(
    "--kills",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    help=f"How often to kill the broker and start it again; {PRIVATE_RABBITMQ} only.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--progress/--no-progress", default=None, help="Show progress; by default on a terminal."
)
def record(
    address: str,
    out: Path,
    messages: int,
    seconds: float | None,
    queues: int,
    producers: int,
    consumers: int,
    window: int,
    levels: int | None,
    persistent: bool | None,
    release_share: float,
    gets: int,
    kills: int,
    seed: int,
    progress: bool | None,
) -> None:
    """Put parallel load on the broker at ADDRESS and write the history of it to OUT.

    ADDRESS is amqp091://user:password@host:port/, or private:rabbitmq, which is started for the
    recording and gone after it. OUT is a file of JSON Lines where its name ends in .jsonl, and a
    folder of Parquet otherwise; it must not be there yet.

    Exit status: 0 recorded to the end, and the queues were seen empty; 2 it could not begin, or the
    broker was lost; 3 interrupted. What was recorded until then is written, and true.
    """
    _require_what_it_takes(out)
    from brokerproof.candidates.amqp091.load.notes import Load  # noqa: PLC0415 (an extra)

    if kills and address != PRIVATE_RABBITMQ:
        raise CannotRun(f"--kills: only {PRIVATE_RABBITMQ} is ours to kill")
    if kills and persistent is False:
        raise CannotRun("--kills: transient queues do not outlive a kill; leave out --transient")
    load = Load(
        messages=messages,
        queues=queues,
        producers=producers,
        consumers=consumers,
        window=window,
        levels=levels,
        persistent=bool(kills) if persistent is None else persistent,
        release_share=release_share,
        seconds=seconds,
        gets=gets,
        kills=kills,
        seed=seed,
    )
    try:
        recording = _recorded(
            load, address, out, progress=sys.stderr.isatty() if progress is None else progress
        )
    except (CandidateUnavailable, PowerFailed) as error:
        raise CannotRun(str(error)) from error
    except OSError as error:
        raise CannotRun(f"{out}: {error.strerror or error}; name another place") from error
    for line in lines_of(recording, load, out):
        click.echo(line)
    _end(recording, load, out)


def _require_what_it_takes(out: Path) -> None:
    _require_extra("amqp", "amqp")
    if out.suffix != ".jsonl":
        _require_extra("pyarrow", "pipeline")
    if out.exists():
        raise CannotRun(f"{out}: it is there already; name a new file or folder")


def _require_extra(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise CannotRun(f"{module} is not installed; pip install 'brokerproof[{extra}]'")


def _recorded(load: Load, address: str, out: Path, *, progress: bool) -> Recording:
    from brokerproof.pipeline.recording import record_load  # noqa: PLC0415 (an extra)

    shown = without_password(address)
    status = Console(stderr=True, quiet=not progress).status(f"{shown}: starting")

    def told(each: Progress) -> None:
        status.update(
            f"{shown}: {each.doing}, {each.confirmed:,} of {load.messages:,} confirmed, "
            f"{each.delivered:,} delivered (Ctrl-C keeps what was recorded)"
        )

    with _Stop().listening() as stop, status if progress else nullcontext(), _broker(address) as at:
        url, power = at
        return record_load(load, url, out, power=power, stop_asked=lambda: stop.asked, told=told)


@contextlib.contextmanager
def _broker(address: str) -> Iterator[tuple[str, Power | None]]:
    """Yield the URL of the broker, and the power over it if it is a private one."""
    if address.startswith(WIRE):
        yield address, None
        return
    if address != PRIVATE_RABBITMQ:
        raise CandidateUnavailable(
            without_password(address),
            what="this broker cannot be recorded",
            remedy=f"name {WIRE}user:password@host:port/ or {PRIVATE_RABBITMQ}",
        )
    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ  # noqa: PLC0415 (an extra)

    with PrivateRabbitMQ() as server:
        yield server.url, server


class _Stop:
    """A requested end; unlike an exception it does not interrupt a step."""

    def __init__(self) -> None:
        self.asked = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[_Stop]:
        """Record Ctrl-C and SIGTERM while the body runs; the second one raises."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._note) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def lines_of(recording: Recording, load: Load, out: Path) -> Iterator[str]:
    """Yield a summary of the recording in words."""
    written, outcome = recording.written, recording.outcome
    confirmed, published = written.of("publish", "ok"), written.of("publish")
    yield f"{out}: {written.records:,} records, written in {recording.writing_s:.1f} s"
    yield (
        f"  published  {published:,} of {load.messages:,} messages: {confirmed:,} confirmed, "
        f"{written.of('publish', 'unknown'):,} unknown, "
        f"{written.of('publish', 'failed'):,} not taken"
    )
    settled = ("acknowledge", "release")
    yield (
        f"  delivered  {written.of('deliver'):,}: {written.of('acknowledge'):,} acknowledged, "
        f"{written.of('release'):,} released; it is unknown of "
        f"{sum(written.of(op, 'unknown') for op in settled):,} whether this took effect"
    )
    rate = published / written.seconds if written.seconds else 0.0
    yield f"  load       {written.seconds:.1f} s, {rate:,.0f} messages/s"
    if load.kills:
        yield f"  kills      {outcome.progress.kills} of {load.kills}"
    yield f"  drained    {', '.join(outcome.drained) or 'no queue'}"


def _end(recording: Recording, load: Load, out: Path) -> None:
    if recording.outcome.fault is not None:
        raise CannotRun(
            f"{recording.outcome.fault}; {out} holds what was recorded until then, "
            "look into the broker's log"
        )
    if recording.outcome.interrupted:
        click.echo("interrupted: the history says what was recorded so far")
        sys.exit(ExitStatus.INCONCLUSIVE.value)
    if len(recording.outcome.drained) < load.queues:
        raise CannotRun(
            f"a queue was still in use when the load was over; {out} holds what was recorded, "
            "let no other client touch its queues"
        )
