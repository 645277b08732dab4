"""`brokerproof trace record`: a candidate under parallel load, the history of that, its verdicts.

Owns the options, and the report of a recording that ends early. A broker behind AMQP 0-9-1 gets one
long load unless rounds are asked for; any other candidate gets many short rounds. Ctrl-C ends
either in order and keeps what was recorded; pressed again, it ends everything at once and keeps
nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
import msgspec

from brokerproof.candidates.crash_commands import CRASH, RESTART, Power, PowerFailed
from brokerproof.candidates.driver.candidate import DriverCandidate
from brokerproof.candidates.extras import not_installed
from brokerproof.candidates.signals import SIGNALS
from brokerproof.candidates.unavailable import CandidateUnavailable, without_password
from brokerproof.candidates.wire import crashes
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import CONNECT_DEADLINE_S, Deadline
from brokerproof.checks.commands.check import make_folder
from brokerproof.checks.commands.options.crash import commands_of, crash_options
from brokerproof.checks.commands.options.types import FiniteRange, IntegerRange
from brokerproof.checks.conversation import Tracebacks
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.report.terminal import progress_on
from brokerproof.checks.subjects import PRIVATE_RABBITMQ, REFERENCE, WIRE, open_subject
from brokerproof.checks.verdicts import ExitStatus
from brokerproof.pipeline.commands.check import Engines, Judging, Recorded, judge_history
from brokerproof.pipeline.recording import Written, counted, write_history
from brokerproof.pipeline.rounds.hunt import Hunt, Limits
from brokerproof.pipeline.rounds.hunt import Progress as RoundsPlayed
from brokerproof.pipeline.rounds.rounds import Rounds
from brokerproof.pipeline.rounds.shape import Shape

if TYPE_CHECKING:
    from brokerproof.candidates.amqp091.load.load import Progress
    from brokerproof.candidates.amqp091.load.notes import Load
    from brokerproof.pipeline.recording import Recording
    from brokerproof.spec.protocol.capabilities import Capabilities

MESSAGES_MAX = 100_000_000
WINDOW_MAX = 2**16 - 1
WORKERS_MAX = 64
LEVELS_MAX = 10
ROUNDS_MAX = 1_000_000
MESSAGES, ROUNDS = 10_000, 1_000
FAULTS_SHOWN = 5
KILLS_AGAIN = 20


@click.command("record")
@click.argument("address", metavar="CANDIDATE")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--rounds",
    type=IntegerRange(1, ROUNDS_MAX),
    help=f"How many rounds to play at most, by default {ROUNDS:,}; a broker behind AMQP 0-9-1 gets "
    "one long load without it.",
)
@click.option(
    "--messages",
    type=IntegerRange(1, MESSAGES_MAX),
    help=f"How many to publish: in a round, by default {Shape.messages}; on the wire in all, by "
    f"default {MESSAGES:,}.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=0, min_open=True),
    help="Search or publish no longer than this, even if rounds or messages are left.",
)
@click.option("--producers", type=IntegerRange(1, WORKERS_MAX), default=2, show_default=True)
@click.option(
    "--consumers",
    type=IntegerRange(1, WORKERS_MAX),
    help="Consumers of each queue, by default 3 in a round and 2 on the wire.",
)
@click.option(
    "--levels",
    type=IntegerRange(2, LEVELS_MAX),
    help="Levels of priority of each queue; without, queues are first in, first out.",
)
@click.option(
    "--release-share",
    type=FiniteRange(0, 1),
    help="Share of deliveries that is returned to the queue, by default 0.2 in a round and 0 on "
    "the wire.",
)
@click.option(
    "--kills",
    type=IntegerRange(0, 100),
    default=0,
    show_default=True,
    help="How often to kill the broker and start it again: with the commands, or as the candidate "
    "itself does where it claims durable.",
)
@crash_options
@click.option("--seed", type=IntegerRange(min=0), default=0, show_default=True)
@click.option(
    "--queues",
    type=IntegerRange(1, WORKERS_MAX),
    default=1,
    show_default=True,
    help="On the wire: how many queues.",
)
@click.option(
    "--window",
    type=IntegerRange(1, WINDOW_MAX),
    default=100,
    show_default=True,
    help="On the wire: unsettled messages of a consumer at most, and unconfirmed ones of a "
    "producer.",
)
@click.option(
    "--persistent/--transient",
    default=None,
    help="On the wire: whether messages and queues outlive a crash; by default where there are "
    "kills.",
)
@click.option(
    "--gets",
    type=IntegerRange(0, MESSAGES_MAX),
    default=0,
    show_default=True,
    help="On the wire: single messages to ask for, beside the consumers.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False, writable=True),
    default=Path(".brokerproof-trace"),
    show_default=True,
    help="Where the report goes, as of trace check.",
)
@click.option(
    "--traceback", is_flag=True, help="Show the tracebacks of a candidate's own exceptions."
)
@click.option(
    "--progress/--no-progress", default=None, help="Show progress; by default on a terminal."
)
def record(address: str, out: Path, *, traceback: bool, **options: object) -> None:
    """Put parallel load on CANDIDATE, write the history of it to OUT, and judge that.

    CANDIDATE is package.module:factory or file.py:factory, whose object several threads use at
    once; exec:COMMAND, of which several processes are started that speak to one server;
    amqp091://, amqp10:// or stomp:// with user:password@host:port/; or private:NAME, which is
    started for the recording. RabbitMQ's long load is of AMQP 0-9-1, unless --rounds is given.
    OUT is a file of JSON Lines where its name ends in .jsonl, and a folder of Parquet otherwise; it
    must not be there yet.

    Exit status: 0 nothing is broken; 1 something is; 2 it could not begin, or the broker was lost;
    3 interrupted, or most of a requirement was excused, as by settlements without an answer before
    a kill. What was recorded until then is written, and true.
    """
    _require_what_it_takes(out)
    given = msgspec.convert(options, _Options)
    if given.progress is None:
        given.progress = sys.stderr.isatty()
    try:
        is_rabbitmq = address.startswith(WIRE) or address == PRIVATE_RABBITMQ
        with Tracebacks.asked(traceback):
            if is_rabbitmq and given.rounds is None:
                status = _record_load(address, out, given)
            else:
                status = _RoundsRecorder(address, out, given).record()
    except (CandidateUnavailable, PowerFailed) as error:
        raise CannotRun(str(error)) from error
    except OSError as error:
        raise CannotRun(f"{out}: {error.strerror or error}; name another place") from error
    sys.exit(status.value)


class _Options(msgspec.Struct, kw_only=True):
    """The options of the command; None where the default depends on the candidate."""

    rounds: int | None
    messages: int | None
    seconds: float | None
    producers: int
    consumers: int | None
    levels: int | None
    release_share: float | None
    kills: int
    crash_command: str | None
    restart_command: str | None
    seed: int
    queues: int
    window: int
    persistent: bool | None
    gets: int
    report: Path
    progress: bool | None

    @property
    def power(self) -> Power | None:
        """The power that the commands give over a broker."""
        return commands_of(self.crash_command, self.restart_command)

    @property
    def shape(self) -> Shape:
        """The shape of the first rounds."""
        return Shape(
            self.messages or Shape.messages,
            self.producers,
            self.consumers or Shape.consumers,
            self.levels,
            Shape.returns if self.release_share is None else self.release_share,
        )

    @property
    def limits(self) -> Limits:
        """The limits of the search for a race."""
        return Limits(self.rounds or ROUNDS, self.kills, self.seconds)

    def load(self) -> Load:
        """Return the load of a broker on the wire."""
        from brokerproof.candidates.amqp091.load.notes import Load  # noqa: PLC0415 (an extra)

        return Load(
            messages=self.messages or MESSAGES,
            queues=self.queues,
            producers=self.producers,
            consumers=self.consumers or 2,
            window=self.window,
            levels=self.levels,
            persistent=bool(self.kills) if self.persistent is None else self.persistent,
            release_share=self.release_share or 0.0,
            seconds=self.seconds,
            gets=self.gets,
            kills=self.kills,
            seed=self.seed,
        )


def _record_load(address: str, out: Path, options: _Options) -> ExitStatus:
    """Put one long load on a broker behind AMQP 0-9-1, and judge it."""
    load, power = options.load(), options.power
    if load.kills and power is None and address != PRIVATE_RABBITMQ:
        raise CannotRun(f"--kills: give {CRASH} and {RESTART}; only {PRIVATE_RABBITMQ} is ours")
    if load.kills and not load.persistent:
        raise CannotRun("--kills: transient queues do not outlive a kill; leave out --transient")
    recording = _recorded(load, address, out, power, progress=bool(options.progress))
    for line in lines_of(recording, load, out):
        click.echo(line)
    _require_its_end(recording, load, out)
    return _judged(out, options, Recorded(interrupted=recording.outcome.interrupted))


def _judged(out: Path, options: _Options, recorded: Recorded) -> ExitStatus:
    make_folder(options.report)
    return judge_history(
        Judging(source=str(out)),
        (out,),
        None,
        Engines(),
        options.report,
        progress=bool(options.progress),
        recorded=recorded,
    )


@dataclass
class _RoundsRecorder:
    """Records rounds of a candidate that is no broker behind AMQP 0-9-1."""

    address: str
    out: Path
    options: _Options

    def record(self) -> ExitStatus:
        """Hunt for a race, write the history, and judge it."""
        if self.address.startswith(REFERENCE):
            raise CannotRun(
                f"{self.address}: a reference broker serves one thread; brokerproof check runs "
                "its interleavings"
            )
        power, shape, limits = self.options.power, self.options.shape, self.options.limits
        subject = open_subject(self.address)
        try:
            claims = subject.hello.capabilities
            self._require_claims(claims, shape, limits, in_process=subject.in_process)
            is_driver = not (subject.in_process or subject.wire)
            make = partial(DriverCandidate, self.address) if is_driver else None
            rounds = Rounds(subject, self.options.seed, make, power)
            written, hunt = self._hunted(rounds, shape, limits)
        finally:
            subject.close()
        click.echo(
            f"{self.out}: {written.records:,} records of {rounds.played:,} rounds, at first of "
            f"{shape.messages} messages, {shape.producers} producers and {shape.consumers} "
            "consumers"
        )
        for line in self._lines(hunt):
            click.echo(line)
        complaints = tuple(
            f"{fault.requirement}: {fault.what} ({times:,} times)"
            for fault, times in [*hunt.faults.items()][:FAULTS_SHOWN]
        )
        run = None if hunt.finding is None else hunt.finding.run
        return _judged(self.out, self.options, Recorded(run, complaints, hunt.interrupted))

    def _require_claims(
        self, claims: Capabilities, shape: Shape, limits: Limits, *, in_process: bool
    ) -> None:
        if limits.kills > limits.rounds:
            raise CannotRun(f"--kills: {limits.kills} in {limits.rounds} rounds; one each at most")
        if limits.kills and not claims.durable:
            raise CannotRun(f"--kills: {self.address} does not claim durable")
        if shape.levels is not None and (
            "priority" not in claims.orders or shape.levels > claims.priority_levels
        ):
            raise CannotRun(f"--levels: {self.address} does not claim {shape.levels} priorities")
        if in_process and not claims.gets and "messages" not in claims.credit:
            raise CannotRun(
                f"{self.address}: on threads the order of deliveries is known of gets and of "
                "windows only; claim get, or credit of messages"
            )

    def _hunted(self, rounds: Rounds, shape: Shape, limits: Limits) -> tuple[Written, Hunt]:
        status = progress_on(bool(self.options.progress), f"{self.address}: starting")

        def told(each: RoundsPlayed) -> None:
            status.update(
                f"{self.address}: {each.doing}, {each.rounds:,} rounds "
                "(Ctrl-C keeps what was recorded)"
            )

        written = Written()
        with _Stop().listening() as stop, status:
            hunt = Hunt(rounds, shape, limits, lambda: stop.asked, told)
            self.out.parent.mkdir(parents=True, exist_ok=True)
            write_history(self.out, counted(hunt.records(), written))
        return written, hunt

    def _lines(self, hunt: Hunt) -> Iterator[str]:
        """Yield what was found, how often, and how to record it again."""
        found = hunt.finding
        if found is None:
            yield f"nothing was found in {hunt.searched:,} rounds"
            return
        yield f"{found.requirement}: broken first in round {found.after:,}"
        if not found.of:
            return
        smaller = " of a smaller shape" if found.shape != self.options.shape else ""
        yield f"  again in {found.seen} of {found.of} rounds{smaller}; record more with"
        again = f"brokerproof trace record {shlex.quote(self.address)} AGAIN.jsonl"
        kills = f" --kills {KILLS_AGAIN}" if found.kills else ""
        yield f"    {again} {found.shape}{kills}"


def _require_what_it_takes(out: Path) -> None:
    _require_extra("amqp", "amqp")
    if out.suffix == ".json":
        raise CannotRun(f"{out}: a history is a file of JSON Lines, {out}l, or a folder of Parquet")
    if out.suffix != ".jsonl":
        _require_extra("pyarrow", "pipeline")
    if out.exists():
        raise CannotRun(f"{out}: it is there already; name a new file or folder")


def _require_extra(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise CannotRun(not_installed(module, extra))


def _recorded(
    load: Load, address: str, out: Path, power: Power | None, *, progress: bool
) -> Recording:
    from brokerproof.pipeline.recording import record_load  # noqa: PLC0415 (an extra)

    shown = without_password(address)
    status = progress_on(progress, f"{shown}: starting")

    def told(each: Progress) -> None:
        status.update(
            f"{shown}: {each.doing}, {each.confirmed:,} of {load.messages:,} confirmed, "
            f"{each.delivered:,} delivered (Ctrl-C keeps what was recorded)"
        )

    with _Stop().listening() as stop, status, _broker(address) as (url, own):
        power = own or _Waiting.of(power, url)
        return record_load(load, url, out, power=power, stop_asked=lambda: stop.asked, told=told)


@contextlib.contextmanager
def _broker(address: str) -> Iterator[tuple[str, Power | None]]:
    """Yield the URL of the broker, and the power over it if it is a private one."""
    if address.startswith(WIRE):
        yield address, None
        return
    from brokerproof.candidates.instances.rabbitmq import PrivateRabbitMQ  # noqa: PLC0415 (an extra)

    with PrivateRabbitMQ() as server:
        yield server.url, server


@dataclass(frozen=True)
class _Waiting:
    """The power over a broker on the wire whose command to start it returns too early."""

    power: Power
    url: str
    is_ours: bool = False

    @classmethod
    def of(cls, power: Power | None, url: str) -> _Waiting | None:
        """Return the same power, with the wait."""
        return None if power is None else cls(power, url)

    def crash(self) -> None:
        """Kill the broker."""
        self.power.crash()

    def restart(self) -> None:
        """Start the broker, and wait until it takes connections; raises `CandidateUnavailable`."""
        from brokerproof.candidates.amqp091.connection import connect  # noqa: PLC0415 (an extra)

        self.power.restart()
        end = time.monotonic() + crashes.RESTART_DEADLINE_S
        while True:
            deadline = Deadline()
            deadline.start(CONNECT_DEADLINE_S)
            try:
                connect(Address.parse(self.url, "amqp091"), deadline).collect()
            except CandidateUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(crashes.POLL_S)
            else:
                return

    def close(self) -> None:
        """Do nothing: the broker is not ours."""


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


def _require_its_end(recording: Recording, load: Load, out: Path) -> None:
    """Raise `CannotRun` if the broker was lost or in use."""
    if recording.outcome.fault is not None:
        raise CannotRun(
            f"{recording.outcome.fault}; {out} holds what was recorded until then, "
            "look into the broker's log"
        )
    if len(recording.outcome.drained) < load.queues and not recording.outcome.interrupted:
        raise CannotRun(
            f"a queue was still in use when the load was over; {out} holds what was recorded, "
            "let no other client touch its queues"
        )
