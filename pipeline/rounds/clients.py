"""Clients of one round: each asks its candidate, and records the operation with its times.

A client runs on a thread of its own. Owns the records and what each answer means for them; the
course of a round is in `rounds.py`. Times are read before an operation is handed over and after its
answer came, so a span is never narrower than the operation was. An answer may bring deliveries of
other clients' consumers; the client of the consumer records them.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.pipeline.rounds.shape import Shape
from brokerproof.spec.earliest import Room
from brokerproof.spec.histories import Kind, Record, Result
from brokerproof.spec.messages import Credit, Message, Priority, level_of
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Drain,
    Get,
    GetMode,
    Operation,
    Publish,
    Release,
    name_of,
)

QUEUE: Final = "q"
PRIORITIES: Final = 10
HELD_MAX: Final = 2
"""The most messages that a client holds at once."""

SETTLED_AT_ONCE: Final = 0.5
"""The share of deliveries that are settled before the next message is taken."""


HEAD_START_S_MAX: Final = 0.0005
"""The longest head start of a client that goes on before one that settles a delivery."""


class Answered(NamedTuple):
    """An answered operation: its outcome, its times, and the delivery of a get."""

    outcome: Result
    start: int
    end: int
    gets: tuple[Delivered, ...] = ()

    @property
    def known_end(self) -> int | None:
        """The end for a record: an operation of unknown outcome may still happen."""
        return None if self.outcome == "unknown" else self.end


class Held(NamedTuple):
    """A delivery that a client has to settle."""

    delivery: str
    message: str
    consumer: str
    position: int


class Fault(NamedTuple):
    """An answer that breaks a requirement by itself; `what` is one line."""

    requirement: str
    what: str


class Meeting:
    """Lets a client go on at about the moment at which another one settles a delivery."""

    def __init__(self) -> None:
        self._settled = threading.Condition()
        self._waiting = 0

    def wait(self, seconds: float) -> None:
        """Wait until a client is about to settle a delivery, at most so long."""
        with self._settled:
            self._waiting += 1
            self._settled.wait(seconds)
            self._waiting -= 1

    def announce(self, draw: random.Random) -> None:
        """Wake the clients that wait, and give them a head start of a drawn length."""
        with self._settled:
            met = self._waiting > 0
            self._settled.notify_all()
        if met:
            time.sleep(draw.uniform(0, HEAD_START_S_MAX))


@dataclass
class Shared:
    """What the clients of one round share.

    `producing` are the producers that have not finished. `inbox` has the deliveries to each
    consumer, with the time at which they were seen. `open` are the channels that were not closed in
    the end. `stalls` are messages that waited in vain: lost or forgotten, as the rest of the round
    shows. `published`, `settled` and those `held` by each client are messages, as far as answers
    say so; `room` says of each consumer that stays whether it has some. Refusals are no faults in a
    round that `kills` the broker.
    """

    run: str
    shape: Shape
    claims: Capabilities
    kills: bool = False
    producing: set[str] = field(default_factory=set)
    inbox: defaultdict[str, deque[tuple[Delivered, int]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    records: deque[Record] = field(default_factory=deque)
    faults: deque[Fault] = field(default_factory=deque)
    stalls: deque[Fault] = field(default_factory=deque)
    open: set[str] = field(default_factory=set)
    published: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    held: dict[str, set[str]] = field(default_factory=dict)
    room: dict[str, bool] = field(default_factory=dict)
    last_noted_s: float = field(default_factory=time.monotonic)
    meeting: Meeting = field(default_factory=Meeting)

    def waiting(self) -> set[str]:
        """Return the messages that were published and not settled for good."""
        return self.published - self.settled

    def forgets_one(self) -> bool:
        """Whether a message waits although a consumer that stays has room."""
        return bool(self.forgotten()) and any([*self.room.values()])

    def forgotten(self) -> set[str]:
        """Return the messages that wait and that no client holds."""
        return self.waiting().difference(*[set(each) for each in [*self.held.values()]])

    def is_done(self) -> bool:
        """Whether all is published and settled."""
        return not self.producing and not self.waiting()

    def quiet_s(self) -> float:
        """Return how long no client has recorded anything."""
        return time.monotonic() - self.last_noted_s

    @property
    def flags(self) -> bool:
        """Whether deliveries tell that they are repeated."""
        return self.claims.redelivered != "none"


class Client:
    """One client, with a channel of its own."""

    closes = True
    """Whether it closes its channel now and then, and goes on with another."""

    def __init__(self, name: str, candidate: Candidate, shared: Shared, seed: str) -> None:
        self.name, self.channel = name, name
        self.candidate, self.shared = candidate, shared
        self.random = random.Random(f"{seed} {name}")  # noqa: S311 - load, not secrets
        self.is_lost = False
        self._channels = 0
        self._gets = 0
        self._held: list[Held] = []
        # A message may be with the next client before this one knows that it has gone back.
        self._holds = shared.held.setdefault(name, set())

    def ask(self, operation: Operation) -> Answered:
        """Hand over an operation, and pass deliveries on to their consumers."""
        start = time.monotonic_ns()
        answer = ask(self.candidate, operation)
        end = time.monotonic_ns()
        if isinstance(answer, Misbehaviour):
            self.is_lost = True
            return self._faulty("protocol", answer.what, Answered("unknown", start, end))
        gets = []
        for event in answer.events:
            if isinstance(event, Delivered):
                if event.consumer is None:
                    gets.append(event)
                else:
                    self.shared.inbox[event.consumer].append((event, end))
        told = Answered("ok", start, end, tuple(gets))
        if len(gets) > isinstance(operation, Get):
            what = f"{name_of(operation)} was answered with {len(gets)} deliveries of gets"
            self._faulty("protocol", f"{what}; do threads share a list of events?", told)
        if answer.error is None:
            return told
        if not answer.error.definite:
            return told._replace(outcome="unknown")
        what = f"{name_of(operation)} was answered {answer.error.code}: {answer.error.message}"
        return self._faulty("does-what-it-claims", what, told._replace(outcome="failed"))

    def _faulty(self, requirement: str, what: str, told: Answered) -> Answered:
        if requirement == "protocol" or not self.shared.kills:
            self.shared.faults.append(Fault(requirement, f"{self.name}: {what}"))
        return told

    def note(self, op: Kind, told: Answered, **fields: object) -> None:
        """Record an operation on the queue."""
        self.shared.last_noted_s = time.monotonic()
        self.shared.records.append(
            Record(
                op=op,
                run=self.shared.run,
                start=told.start,
                end=told.known_end,
                outcome=told.outcome,
                **fields,  # type: ignore[arg-type]
            )
        )

    def publish(self, number: int) -> Answered:
        """Publish the message with a number; its level is recorded as its priority."""
        levels, claims = self.shared.shape.levels, self.shared.claims
        message = Message(
            id=f"{self.shared.run}.m{number}",
            priority=self.random.randrange(PRIORITIES) if levels else 4,
            persistent=self.shared.kills,
        )
        told = self.ask(Publish(queue=QUEUE, message=message))
        self.note(
            "publish",
            told,
            queue=QUEUE,
            message=message.id,
            producer=self.name,
            priority=message.priority
            if levels is None
            else level_of(message.priority, Priority(levels), claims.priority_mapping),
            persistent=message.persistent,
        )
        if told.outcome == "ok":
            self.shared.published.add(message.id)
        return told

    def get(self) -> bool | None:
        """Ask for one message: whether one came, or None if the get failed."""
        mode: GetMode = "acknowledge" if "acknowledge" in self.shared.claims.gets else "automatic"
        told = self.ask(Get(channel=self.channel, queue=QUEUE, mode=mode))
        consumer = f"{self.name}.get{self._gets}"
        self._gets += 1
        for came in told.gets[:1]:
            self._take(came, told.start, told.end, consumer, 0, mode)
            return True
        if told.outcome == "failed":
            return None
        op: Kind = "empty" if told.outcome == "ok" else "get"
        self.note(op, told, queue=QUEUE, consumer=consumer, channel=self.channel, mode=mode)
        return False if op == "empty" else None

    def _take(
        self, came: Delivered, start: int, end: int, consumer: str, position: int, mode: GetMode
    ) -> None:
        self.note(
            "deliver",
            Answered("ok", start, end),
            queue=QUEUE,
            message=came.message,
            consumer=consumer,
            channel=self.channel,
            position=position,
            redelivered=came.redelivered if self.shared.flags else None,
            mode=mode,
        )
        if mode == "acknowledge":
            self._held.append(Held(came.delivery, came.message, consumer, position))
            self._holds.add(came.message)
        else:
            self.shared.settled.add(came.message)

    def settle(self, *, all_of_them: bool = False, returns: bool = True) -> list[int]:
        """Settle what is held, or a part of it; return when each settlement began."""
        begun = []
        while self._held and (
            all_of_them or len(self._held) >= HELD_MAX or self.random.random() < SETTLED_AT_ONCE
        ):
            share = self.random.random() if returns else 1.0
            releases = self.shared.claims.release == "each"
            if self.closes and share < self.shared.shape.returns / (2 if releases else 1):
                self.close()
                break
            held = self._held.pop(self.random.randrange(len(self._held)))
            returned = releases and share < self.shared.shape.returns
            op: Kind = "release" if returned else "acknowledge"
            kind = Release if op == "release" else Acknowledge
            self.shared.meeting.announce(self.random)
            told = self.ask(kind(delivery=held.delivery))
            begun.append(told.start)
            self._holds.discard(held.message)
            if op == "acknowledge" and told.outcome != "failed":
                self.shared.settled.add(held.message)
            self.note(
                op,
                told,
                queue=QUEUE,
                message=held.message,
                consumer=held.consumer,
                channel=self.channel,
                position=held.position,
            )
        return begun

    def take_what_came(self) -> bool:
        """Return that nothing came: only a consumer is given messages unasked."""
        return False

    def close(self) -> None:
        """Close the channel, which returns all that is held, and go on with another."""
        told = self.ask(CloseChannel(channel=self.channel))
        self.take_what_came()
        self._held.clear()
        self._holds.clear()
        if told.outcome != "failed":
            self.note("close", told, channel=self.channel)
        if told.outcome != "ok":
            self.shared.open.add(self.channel)
            return
        self.shared.open.discard(self.channel)
        self._channels += 1
        self.channel = f"{self.name}.{self._channels}"


class Producer(Client):
    """A client that publishes its share of the messages."""

    def run(self, numbers: range) -> None:
        """Publish messages with these numbers."""
        try:
            for number in numbers:
                self.publish(number)
        finally:
            self.shared.producing.discard(self.name)


class Getter(Client):
    """A client that gets messages one at a time."""

    def run(self) -> None:
        """Get until the queue is empty after the last publish; then settle and leave."""
        for _ in range(3 * self.shared.shape.messages + 3):
            produced = not self.shared.producing
            came = self.get()
            if came is None or (produced and not came):
                break
            self.settle()
        self.settle(all_of_them=True)
        self.close()

    def take_the_rest(self) -> Answered | None:
        """Get and acknowledge until the queue is empty; return the get that found nothing."""
        # What had no certain outcome may still happen until the next drain.
        self.ask(Drain())
        while (came := self.get()) is not None:
            self.settle(all_of_them=True, returns=False)
            if not came:
                last = self.shared.records[-1]
                return Answered("ok", last.start, last.end or last.start)
        return None


class Subscriber(Client):
    """A client with a consumer, for candidates without gets.

    On threads, the order in which two clients see two deliveries to one consumer need not be that
    of the broker. So a consumer has room for one message where windows are claimed.
    """

    closes = False

    def run(self) -> None:
        """Take messages until none comes after the last publish; then settle and leave."""
        shared = self.shared
        self._subscribe(1 if "messages" in shared.claims.credit else None)
        for _ in range(3 * shared.shape.messages + 3):
            produced = not shared.producing
            self.ask(Drain())
            came = self.take_what_came()
            self._settle_and_make_room(all_of_them=self._window is not None)
            if self.is_lost or (produced and not came):
                break
        told = self.ask(Cancel(consumer=self._consumer))
        if told.outcome != "failed":
            self.note("cancel", told, consumer=self._consumer, channel=self.channel)
        self.take_what_came()
        self._settle_and_make_room(all_of_them=True)
        self.close()

    def take_the_rest(self) -> Answered | None:
        """Take and acknowledge all that is left; return the drain that brought nothing."""
        self._subscribe(None)
        while not self.is_lost:
            told = self.ask(Drain())
            if not self.take_what_came():
                return told if told.outcome == "ok" else None
            self.settle(all_of_them=True, returns=False)
        return None

    def take_what_came(self) -> bool:
        """Record the deliveries to the consumer so far: whether there were any."""
        inbox = self.shared.inbox[self._consumer]
        came = bool(inbox)
        while inbox:
            delivered, end = inbox.popleft()
            start = self._room.delivered()
            self._take(delivered, start, end, self._consumer, self._position, self._mode)
            self._position += 1
        return came

    def _settle_and_make_room(self, *, all_of_them: bool) -> None:
        for begun in self.settle(all_of_them=all_of_them):
            self._room.settled(begun)

    def _subscribe(self, window: int | None, priority: int = 0) -> None:
        self._consumer, self._window, self._position = f"{self.channel}.consumer", window, 0
        settles = "acknowledge" in self.shared.claims.modes
        self._mode: GetMode = "acknowledge" if settles else "automatic"
        told = self.ask(
            Consume(
                channel=self.channel,
                queue=QUEUE,
                consumer=self._consumer,
                mode=self._mode,
                credit=Credit(messages=window),
                priority=priority,
            )
        )
        self._room = Room(told.start, window)
        self.note(
            "consume",
            told,
            queue=QUEUE,
            consumer=self._consumer,
            channel=self.channel,
            mode=self._mode,
            window=window,
        )
