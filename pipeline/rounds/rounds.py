"""Rounds: a queue is made, clients race on it, and what is left is taken; each round is a run.

Owns the course of one round and the candidates of its clients. A Python object serves all clients,
each on a thread. A driver is started once for each client; the first one is reset, the others join
the same server. All clients of a round begin at once, since a race needs two of them at one place.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from brokerproof.candidates.crash_commands import Power
from brokerproof.candidates.driver.candidate import DriverCandidate
from brokerproof.candidates.wire.candidate import WireCandidate
from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.errors import CannotRun
from brokerproof.checks.subjects import Subject
from brokerproof.pipeline.rounds.clients import (
    QUEUE,
    Answered,
    Client,
    Fault,
    Getter,
    Producer,
    Shared,
    Subscriber,
)
from brokerproof.pipeline.rounds.shape import Shape
from brokerproof.pipeline.rounds.stayers import Stayer
from brokerproof.pipeline.rounds.threads import Threads
from brokerproof.spec.histories import Record
from brokerproof.spec.messages import Fifo, Order, Priority, Unordered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Crash, Declare, Restart, name_of

ROUND_S_MAX: Final = 60.0
"""A client that takes longer for its part of a round hangs."""

RESTART_S_MAX: Final = 60.0
POLL_S: Final = 0.05
"""A broker is up again when it takes a declaration; so long, and so often, it is asked."""

SWITCH_S: Final = 1e-6
"""How long Python lets a thread run while others wait; the shortest makes races likely."""

FILLED_BEFORE: Final = 0.5
"""The share of rounds that begin with all messages in the queue."""

MAIN: Final = "main"

GETS: Final = "c2"
"""The client that gets messages one at a time among the consumers of a broker on the wire."""

Taker: TypeAlias = Getter | Subscriber


@dataclass(frozen=True)
class Round:
    """A played round: its records in the order of their starts, and faulty answers."""

    run: str
    records: tuple[Record, ...]
    faults: tuple[Fault, ...]
    hangs: bool


@dataclass
class Rounds:
    """Plays rounds on one candidate.

    `make_driver` starts one more process of a driver, and is None for any other candidate. Clients
    of a broker on the wire have adapters of their own, which join the first one.
    `power` kills a server and starts it again; without it a kill is asked of the candidate.
    """

    subject: Subject
    seed: int
    make_driver: Callable[[], DriverCandidate] | None = None
    power: Power | None = None
    played: int = 0
    _threads: Threads = field(default_factory=Threads)
    _joined: list[DriverCandidate | WireCandidate[Any, Any]] = field(default_factory=list)
    _usual_s: float = 0.0

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Let threads take turns as often as they can; end the drivers at last."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            if self._has_others:
                self._require_one_server()
            yield
        finally:
            sys.setswitchinterval(before)
            self._threads.end()
            for each in self._joined:
                each.close()
            self._joined.clear()

    def play(self, shape: Shape, *, kills: bool = False) -> Round:
        """Play one round; with `kills` the broker is killed and started again meanwhile.

        Raises `CannotRun` if the candidate takes no reset, and `PowerFailed`.
        """
        self.played += 1
        shared = Shared(f"round-{self.played}", shape, self.subject.hello.capabilities, kills)
        seed = f"{self.seed} {shared.run}"
        first, *others = self._candidates(1 + shape.producers + shape.consumers)
        main = self._taker(MAIN, first, shared, seed)
        self._declare(main, others)
        makers = [
            Producer(f"p{number}", each, shared, seed)
            for number, each in enumerate(others[: shape.producers])
        ]
        takers = [
            self._taker(f"c{number}", each, shared, seed)
            for number, each in enumerate(others[shape.producers :])
        ]
        hangs = not self._race(main, makers, takers)
        if not hangs:
            self._end(main, takers)
        self._forget_lost([*makers, *takers])
        records = tuple(sorted(shared.records, key=attrgetter("start")))
        if kills and self.subject.wire:
            records = tuple(map(_may_be_undone, records))
        return Round(shared.run, records, (*shared.faults, *shared.stalls), hangs)

    def _race(self, main: Taker, makers: Sequence[Producer], takers: Sequence[Taker]) -> bool:
        """Let the clients race; whether all of them came back."""
        shared, numbers = main.shared, range(main.shared.shape.messages)
        if main.random.random() < FILLED_BEFORE:
            for number in numbers:
                main.publish(number)
            numbers = range(0)
        shared.producing.update(each.name for each in makers)
        jobs: dict[str, Callable[[], None]] = {each.name: each.run for each in takers}
        for place, maker in enumerate(makers):
            jobs[maker.name] = partial(maker.run, numbers[place :: len(makers)])
        if shared.kills:
            jobs["kill"] = partial(self._kill, main)
        begun = time.monotonic()
        stuck = self._threads.run([*jobs.values()], ROUND_S_MAX)
        if not shared.kills:
            self._usual_s = time.monotonic() - begun
        if stuck:
            names = ", ".join([*jobs][number] for number in stuck)
            what = f"{names}: no answer within {ROUND_S_MAX:.0f} s"
            shared.faults.append(Fault("protocol", what))
        return not stuck

    def _end(self, main: Taker, takers: Sequence[Taker]) -> None:
        """Take what is left, and record that the queue is empty, if that is certain."""
        shared = main.shared
        for each in takers:
            each.take_what_came()
            if each.channel in shared.open:
                each.close()
        last = main.take_the_rest()
        # A channel of a broker on the wire does not outlive a kill.
        is_open = shared.open and not (shared.kills and self.subject.wire)
        if last is not None and not is_open and not shared.faults:
            main.note("drained", last, queue=QUEUE)

    def _kill(self, main: Taker) -> None:
        """Kill the broker at some time of the race, and start it again."""
        time.sleep(main.random.uniform(0, self._usual_s))
        main.note("crash", self._carried_out(main, Crash()))
        restart = self._carried_out(main, Restart())
        until = time.monotonic() + RESTART_S_MAX
        # A server may need longer until it listens.
        while (up := main.ask(self._declared)).outcome != "ok" and time.monotonic() < until:
            time.sleep(POLL_S)
        main.note("restart", restart._replace(end=up.end))

    def _carried_out(self, main: Taker, operation: Crash | Restart) -> Answered:
        """Kill or start the broker, by its own operation if there is no other power over it."""
        if self.power is None:
            told = main.ask(operation)
            if told.outcome != "ok":
                what = f"{name_of(operation)} was not carried out"
                main.shared.faults.append(Fault("does-what-it-claims", what))
            return told
        start = time.monotonic_ns()
        if isinstance(operation, Crash):
            self.power.crash()
        else:
            self.power.restart()
        return Answered("ok", start, time.monotonic_ns())

    def _declare(self, main: Taker, others: Sequence[Candidate]) -> None:
        claims, levels = main.shared.claims, main.shared.shape.levels
        order: Order = Fifo() if "fifo" in claims.orders else Unordered()
        if levels is not None:
            order = Priority(levels=levels)
        declare = Declare(queue=QUEUE, order=order, durable=main.shared.kills)
        self._declared = declare
        told = main.ask(declare)
        main.note(
            "declare",
            told,
            queue=QUEUE,
            levels=levels,
            durable=declare.durable,
            unordered=isinstance(order, Unordered),
            returns="original" if claims.release_position == "original" else "elsewhere",
        )
        # A driver may know the queues of its own process only; the same again has no effect.
        for each in others if self._has_others else ():
            Client("joining", each, main.shared, "").ask(declare)

    def _candidates(self, count: int) -> list[Candidate]:
        """Return a candidate for each client, after a reset."""
        try:
            first = self.subject.fresh()[0]
        except CannotStart as error:
            raise CannotRun(f"{self.subject.address}: {error}") from error
        if not self._has_others:
            return [first] * count
        while len(self._joined) < count - 1:
            self._joined.append(self._another())
        others = self._joined[: count - 1]
        for each in others:
            if isinstance(each, WireCandidate) and self.subject.wire is not None:
                each.join(self.subject.wire.host)
        return [first, *others]

    @property
    def _has_others(self) -> bool:
        return self.make_driver is not None or self.subject.wire is not None

    def _another(self) -> DriverCandidate | WireCandidate[Any, Any]:
        if self.subject.wire is not None:
            return self.subject.wire.guest()
        assert self.make_driver is not None
        return self.make_driver()

    def _taker(self, name: str, candidate: Candidate, shared: Shared, seed: str) -> Taker:
        if self.subject.wire is not None and shared.claims.modes:
            gets = bool(shared.claims.gets) and name in (MAIN, GETS)
            return (Getter if gets else Stayer)(name, candidate, shared, seed)
        kind = Getter if shared.claims.gets else Subscriber
        return kind(name, candidate, shared, seed)

    def _forget_lost(self, clients: Sequence[Client]) -> None:
        """End drivers that broke the protocol: only a reset could start them again."""
        lost = [each.candidate for each in clients if each.is_lost]
        for each in [each for each in self._joined if each in lost]:
            each.close()
            self._joined.remove(each)

    def _require_one_server(self) -> None:
        """Raise `CannotRun` if one process of a driver does not see what another published."""
        shared = Shared("probe", Shape(messages=1), self.subject.hello.capabilities)
        first, other = self._candidates(2)
        main = self._taker(MAIN, first, shared, "probe")
        self._declare(main, [other])
        Producer("p0", other, shared, "probe").run(range(1))
        main.take_the_rest()
        if shared.faults:
            raise CannotRun(f"{self.subject.address}: {shared.faults[0].what}")
        if not any(each.op == "deliver" for each in shared.records):
            raise CannotRun(
                f"{self.subject.address}: the message of one process is not found by another; "
                "record a driver whose processes speak to one server"
            )


def _may_be_undone(record: Record) -> Record:
    """Return a record whose settlement a kill may undo.

    A broker on the wire answers a settlement before the settlement is on disk, or not at all.
    """
    if record.op not in {"acknowledge", "reject"} or record.outcome != "ok":
        return record
    return replace(record, outcome="unknown", end=None)
