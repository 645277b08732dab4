"""A load on a broker behind AMQP 0-9-1: parallel producers and consumers, all recorded.

The file owns the processes of a load and its course. Queues are declared, the workers run, the
broker is killed if the plan says so, producers end, consumers empty the queues and end, and last
gets see each queue empty. The file does not judge the records. Invariant: a record states
only known facts, also after a failure (`docs/guide/recording.md`).

Workers are processes, since threads would share one core; they share one clock. They end on command
and when this process is gone; only this process handles Ctrl-C.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import random
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Literal, NamedTuple

import amqp

from brokerproof.candidates.amqp091.connection import LOST, Connection, connect
from brokerproof.candidates.amqp091.dialect import Dialect
from brokerproof.candidates.amqp091.load.consumer import Consumer
from brokerproof.candidates.amqp091.load.gets import Getter, OneByOne
from brokerproof.candidates.amqp091.load.link import LinkLost
from brokerproof.candidates.amqp091.load.notes import (
    ALLOWED,
    CONFIRMED,
    DELIVERED,
    ENDED,
    FAULT_SUFFIX,
    KILLS,
    READY,
    RESTARTS,
    STOP_CONSUMING,
    STOP_PRODUCING,
    SUFFIX,
    UNSETTLED,
    Cells,
    Load,
    Notes,
    Shared,
    SubscriberNotes,
    Task,
)
from brokerproof.candidates.amqp091.load.producer import Producer
from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import ANSWER_DEADLINE_S, CONNECT_DEADLINE_S, Deadline
from brokerproof.candidates.wire.profile import profile_for
from brokerproof.spec.histories import Kind, Record
from brokerproof.spec.messages import Fifo, Priority

POLL_S = 0.02
STALLED_S = 10.0
"""Consumers without a delivery for so long will get no more."""

END_S_MAX = 90.0
KILLS_BETWEEN = (0.1, 0.9)
"""Kills happen when shares of the messages between these two are published."""

AHEAD_OF_KILL = 50
"""The lead of producers before a kill, 1 in so many messages, so that it comes under load."""

_WorkerKind = Literal["producer", "consumer", "getter"]


class Progress(NamedTuple):
    """The progress of a load."""

    doing: str
    confirmed: int
    delivered: int
    kills: int


@dataclass(frozen=True)
class Outcome:
    """The result of a load; its records are in `files`, each in the order of starts.

    `fault` says in one line what ended it early. A queue that is not in `drained` may still hold
    messages.
    """

    files: tuple[Path, ...]
    progress: Progress
    fault: str | None
    interrupted: bool
    drained: tuple[str, ...]


def run_load(
    load: Load,
    url: str,
    folder: Path,
    *,
    power: Power | None = None,
    stop_asked: Callable[[], bool] = lambda: False,
    told: Callable[[Progress], None] = lambda _: None,
) -> Outcome:
    """Put a load on the broker at `url` and return when it is over; records are left in `folder`.

    `stop_asked` is polled all the time, and `told` is called with the progress. Raises
    `CandidateUnavailable` if the load cannot begin, and `PowerFailed` if a kill or restart fails
    for reasons of ours. A broker that does not come back is a fault in the outcome.
    """
    assert power is not None or not load.kills, "a kill needs power over the broker"
    assert load.persistent or not load.kills, "a kill would take the queues"
    address = Address.parse(url, "amqp091")
    prefix = f"brokerproof.{secrets.token_hex(6)}"
    queues = tuple((f"q{n}", f"{prefix}.{n}") for n in range(load.queues))
    course = _Course(load, address, folder, queues, power, stop_asked, told)
    with contextlib.ExitStack() as undo:
        notes = undo.enter_context(course.task("broker").notes("events"))
        course.declare(notes)
        undo.callback(course.delete)
        course.run(notes)
    return course.outcome()


@dataclass
class _Course:
    """One load, from the first queue to the last."""

    load: Load
    address: Address
    folder: Path
    queues: tuple[tuple[str, str], ...]
    power: Power | None
    stop_asked: Callable[[], bool]
    told: Callable[[Progress], None]
    zero: int = field(default_factory=time.monotonic_ns)
    shared: Shared = field(init=False)
    fault: str | None = None
    interrupted: bool = False
    declared_s: float = 0.0
    drained: list[str] = field(default_factory=list)
    workers: dict[str, multiprocessing.process.BaseProcess] = field(default_factory=dict)
    tasks: list[tuple[_WorkerKind, Task]] = field(default_factory=list)

    def __post_init__(self) -> None:
        load = self.load
        for index in range(load.producers):
            self._plan("producer", index, f"p{index}", self.queues)
        for queue in self.queues:
            for index in range(load.consumers):
                self._plan("consumer", index, f"c{queue[0]}-{index}", (queue,))
        if load.gets:
            self._plan("getter", 0, "g0", self.queues)
        self._context = multiprocessing.get_context("spawn")
        cells = self._context.RawArray(ctypes.c_int64, Shared.cells_for(len(self.tasks)))
        self._cells = cells
        self.shared = Shared(cells, os.getpid())

    def _plan(
        self, kind: _WorkerKind, index: int, name: str, queues: tuple[tuple[str, str], ...]
    ) -> None:
        number = len(self.tasks)
        task = replace(self.task(name), number=number, index=index, queues=queues)
        self.tasks.append((kind, task))

    def task(self, name: str) -> Task:
        """Return a task for this process, which is no worker."""
        return Task(self.load, self.address, self.folder, self.zero, 0, 0, name, self.queues)

    def declare(self, notes: Notes) -> None:
        """Make the queues; raises `CandidateUnavailable`."""
        with self._connected() as (connection, channel):
            product = connection.product
            profile = profile_for(self.address, *product)
            if self.load.kills and (why := profile.no_durability(product[1])):
                remedy = "leave out the kills"
                raise CandidateUnavailable(str(self.address), what=why, remedy=remedy)
            if profile.on_disk is not None:
                self.declared_s = profile.on_disk.declared_s
            levels = self.load.levels
            order = Fifo() if levels is None else Priority(levels)
            arguments = profile.read_dialect(Dialect).of_order(order)
            for queue, at_broker in self.queues:
                start = self._now()
                try:
                    channel.queue_declare(
                        at_broker,
                        durable=self.load.persistent,
                        auto_delete=False,
                        arguments=arguments,
                    )
                except (amqp.AMQPError, *LOST) as error:
                    raise CandidateUnavailable(
                        str(self.address),
                        what=f"a queue cannot be declared: {described(error)}",
                        remedy="log in as a user that may make queues there",
                    ) from error
                notes.write(
                    Record(
                        op="declare",
                        queue=queue,
                        start=start,
                        end=self._now(),
                        levels=levels,
                        durable=self.load.persistent,
                    )
                )

    def delete(self) -> None:
        """Delete the queues, outside the history; a broker that has gone is no error.

        A recorded deletion would excuse the messages that are missing.
        """
        with (
            contextlib.suppress(CandidateUnavailable, amqp.AMQPError, *LOST),
            self._connected() as (_, channel),
        ):
            for _, at_broker in self.queues:
                channel.queue_delete(at_broker)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[tuple[Connection, amqp.Channel]]:
        deadline = Deadline()
        deadline.start(CONNECT_DEADLINE_S)
        connection = connect(self.address, deadline)
        try:
            deadline.start(ANSWER_DEADLINE_S)
            yield connection, connection.channel()
        finally:
            connection.collect()

    def run(self, notes: Notes) -> None:
        """Run all workers; end them in order, also after an error or an interrupt."""
        try:
            self._start()
            self._produce(notes)
            self.shared[STOP_PRODUCING] = 1
            if self._goes_on():
                self._consume_the_rest()
        except LinkLost as lost:
            self.fault = str(lost)
        finally:
            self.shared[STOP_PRODUCING] = self.shared[STOP_CONSUMING] = 1
            self._end_workers()
        if self._goes_on():
            self._drain(notes)

    def outcome(self) -> Outcome:
        """Return the result of the load."""
        files = tuple(sorted(self.folder.glob(f"*{SUFFIX}")))
        progress = self._progress("over")
        return Outcome(files, progress, self.fault, self.interrupted, tuple(self.drained))

    def _start(self) -> None:
        # Workers inherit blocked signals from their first instruction on: only we handle Ctrl-C.
        # The tracker, which the first worker needs, would unblock them.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            for kind, task in self.tasks:
                process = self._context.Process(
                    target=_work, args=(kind, task, self._cells, os.getpid()), daemon=True
                )
                process.start()
                self.workers[task.name] = process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _produce(self, notes: Notes) -> None:
        load = self.load
        written = self._now() + int(self.declared_s * 1e9) if load.kills else 0
        while self._goes_on():
            if self._sum(READY) == len(self.tasks) and self._now() >= written:
                break
            self._tell("connecting")
            time.sleep(POLL_S)
        begun = time.monotonic()
        kills = self._kill_after()
        makers = [self.workers[task.name] for kind, task in self.tasks if kind == "producer"]
        self._allow(kills)
        while any(process.is_alive() for process in makers) and self._goes_on():
            if kills and self._sum(ENDED) >= kills[0]:
                kills.pop(0)
                self._kill(notes)
                self._allow(kills)
            if load.seconds is not None and time.monotonic() - begun >= load.seconds:
                self.shared[STOP_PRODUCING] = 1
            self._tell("publishing")
            time.sleep(POLL_S)

    def _kill_after(self) -> list[int]:
        """Return after how many messages each kill happens."""
        draw = random.Random(f"{self.load.seed} kills")  # noqa: S311 - load, not secrets
        first, last = KILLS_BETWEEN
        shares = [draw.uniform(first, last) for _ in range(self.load.kills)]
        return sorted(int(self.load.messages * share) for share in shares)

    def _allow(self, kills: list[int]) -> None:
        """Let producers go on, but leave messages for the time of the next kill."""
        load = self.load
        ahead = max(2 * load.window, load.messages // AHEAD_OF_KILL)
        allowed = kills[0] + ahead if kills else load.messages
        # Some producers have one message more than others to publish.
        self.shared[ALLOWED] = allowed // load.producers + 1

    def _kill(self, notes: Notes) -> None:
        """Kill the broker and start it again; workers connect anew when it is up."""
        assert self.power is not None
        self.shared[KILLS] += 1
        self._tell("killing the broker")
        self._note_span(notes, "crash", self.power.crash)
        try:
            self._note_span(notes, "restart", self.power.restart)
        except CandidateUnavailable as error:
            self.fault = str(error)
            return
        self.shared[RESTARTS] += 1

    def _note_span(self, notes: Notes, op: Kind, step: Callable[[], None]) -> None:
        start = self._now()
        step()
        notes.write(Record(op=op, start=start, end=self._now()))

    def _consume_the_rest(self) -> None:
        """Wait until consumers hold nothing and queues are empty, or no delivery comes any more."""
        task = self.task("watch")
        with self._subscriber_notes(task) as notes, OneByOne(task, 0, notes) as watch:
            seen, moved = -1, time.monotonic()
            while self._goes_on():
                delivered = self._sum(DELIVERED)
                still = delivered == seen
                ready = sum(watch.ready(at_broker)[0] for _, at_broker in self.queues)
                if still and not ready and not self._sum(UNSETTLED):
                    return
                if not still:
                    seen, moved = delivered, time.monotonic()
                elif time.monotonic() - moved > STALLED_S:
                    return
                self._tell("taking the rest")
                time.sleep(POLL_S)

    def _drain(self, notes: Notes) -> None:
        """Take the messages left when no worker holds any, until each queue is seen empty."""
        task = self.task("drain")
        try:
            with self._subscriber_notes(task) as taken, OneByOne(task, 0, taken) as gets:
                for queue, at_broker in self.queues:
                    while (empty := gets.get(queue, at_broker)) is None:
                        if not self._goes_on():
                            return
                        self._tell("draining")
                    if gets.ready(at_broker) == (0, 0):
                        notes.write(
                            Record(op="drained", queue=queue, start=empty.start, end=empty.end)
                        )
                        self.drained.append(queue)
        except LinkLost as lost:
            self.fault = str(lost)

    @contextlib.contextmanager
    def _subscriber_notes(self, task: Task) -> Iterator[SubscriberNotes]:
        with contextlib.ExitStack() as files:
            yield SubscriberNotes(
                *(files.enter_context(task.notes(kind)) for kind in SubscriberNotes._fields)
            )

    def _goes_on(self) -> bool:
        """Whether no stop was requested, and no worker has failed."""
        self.interrupted = self.interrupted or self.stop_asked()
        self.fault = self.fault or self._fault_of_workers()
        return not self.interrupted and self.fault is None

    def _fault_of_workers(self) -> str | None:
        for name, process in self.workers.items():
            if process.exitcode:
                told = self.folder / f"{name}{FAULT_SUFFIX}"
                why = told.read_text() if told.exists() else f"status {process.exitcode}"
                return f"{name} ended early: {why}"
        return None

    def _end_workers(self) -> None:
        until = time.monotonic() + END_S_MAX
        for name, process in self.workers.items():
            process.join(max(POLL_S, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
                self.fault = self.fault or f"{name} did not end when it was told to"
        self.fault = self.fault or self._fault_of_workers()

    def _sum(self, counter: int) -> int:
        return sum(self.shared.counter(n, counter).value for n in range(len(self.tasks)))

    def _progress(self, doing: str) -> Progress:
        return Progress(doing, self._sum(CONFIRMED), self._sum(DELIVERED), self.shared[KILLS])

    def _tell(self, doing: str) -> None:
        self.told(self._progress(doing))

    def _now(self) -> int:
        return self.task("").clock.now()


def _work(kind: _WorkerKind, task: Task, cells: Cells, owner: int) -> None:
    """Run a worker; a failure is left in a file, and in the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    shared = Shared(cells, owner)
    try:
        with contextlib.ExitStack() as files:

            def notes(which: str) -> Notes:
                return files.enter_context(task.notes(which))

            worker: Producer | Consumer | Getter
            if kind == "producer":
                worker = Producer(task, shared, notes("publishes"))
            else:
                taken = SubscriberNotes(*(notes(each) for each in SubscriberNotes._fields))
                worker = (
                    Consumer(task, shared, taken)
                    if kind == "consumer"
                    else Getter(task, shared, taken)
                )
            _live(worker, shared)
    except LinkLost as lost:
        (task.folder / f"{task.name}{FAULT_SUFFIX}").write_text(str(lost))
        raise SystemExit(1) from lost


def _live(worker: Producer | Consumer | Getter, shared: Shared) -> None:
    """Work over one connection after another; only a kill of ours may take one."""
    life = 0
    while not worker.is_done or life == 0:
        restarts = shared.await_broker()
        try:
            worker.run(life)
        except LinkLost:
            if shared[KILLS] == restarts:
                if not isinstance(worker, Producer):
                    worker.note_loss()
                raise
        life += 1
