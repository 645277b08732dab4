"""A client who does this and that with a queue of ActiveMQ, which is looked at after each step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from brokerproof.models.happenings import Happening, happening
from brokerproof.reference import make
from brokerproof.spec.answers import Delivered
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.cursor_inspections import CursorQueueView
from brokerproof.spec.messages import Credit, Fifo, Message, Order, level_of
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    GetMode,
    Inspect,
    Operation,
    Publish,
    Purge,
    Release,
)

STEPS = 120
KINDS = (
    *("publish", "publish", "publish", "publish", "consume", "get", "get", "settle", "settle"),
    *("end", "drain", "purge", "close"),
)
MODES: tuple[GetMode, ...] = ("acknowledge", "acknowledge", "automatic")

SIZES = (
    "memory=1100&page=1&depth=1&word=2",
    "memory=2200&page=2&depth=1&word=2",
    "memory=3300&page=2&depth=2&word=2&lag=0",
    "memory=2200&page=4&depth=1&word=2&water_mark=100",
    "memory=0&page=1&depth=0&word=1",
)


@dataclass
class Look:
    """Two looks at a queue, and what happened between them."""

    before: CursorQueueView
    after: CursorQueueView
    happened: Happening


def shown_by(broker: Candidate) -> CursorQueueView:
    """Return what a broker shows of the queue."""
    view = broker.handle(Inspect(queue="q")).inspection
    assert isinstance(view, CursorQueueView)
    return view


class Client:
    """Somebody who does this and that; without `all_kinds`, only what the model speaks of."""

    def __init__(self, address: str, seed: int, order: Order, *, all_kinds: bool) -> None:
        self.drawn = random.Random(seed)  # noqa: S311 - nothing secret
        self.order, self.all_kinds = order, all_kinds
        self.broker = make(address)
        self.broker.handle(Declare(queue="q", order=order, durable=True))
        self.held: dict[str, tuple[str, str]] = {}
        """What is to be settled: each delivery's message and channel."""
        self.channels: dict[str, str] = {}
        """The channel of each consumer that acknowledges."""
        self.consumers: list[str] = []

    def walk(self) -> Iterator[Look]:
        """Yield each step."""
        view = shown_by(self.broker)
        for number in range(STEPS):
            operation = self.operation(number)
            settled = ""
            if isinstance(operation, Acknowledge | Release):
                settled, _ = self.held.pop(operation.delivery)
            if isinstance(operation, CloseChannel):
                held = self.held.items()
                self.held = {name: each for name, each in held if each[1] != operation.channel}
            answer = self.broker.handle(operation)
            assert answer.ok or isinstance(operation, Cancel), answer
            for event in answer.events:
                if isinstance(event, Delivered):
                    self._delivered(event, operation)
            seen = shown_by(self.broker)
            done = operation if answer.ok else Drain()
            yield Look(view, seen, happening(done, settled, "q", self._level))
            view = seen

    def _level(self, message: Message) -> int:
        return level_of(message.priority, self.order)

    def _delivered(self, event: Delivered, operation: Operation) -> None:
        channel = self.channels.get(event.consumer or "")
        if event.consumer is None and isinstance(operation, Get) and operation.mode != "automatic":
            channel = operation.channel
        if channel is not None:
            self.held[event.delivery] = event.message, channel

    def operation(self, number: int) -> Operation:
        """Return what is done next."""
        drawn, channel = self.drawn, self.drawn.choice("ab")
        match drawn.choice(KINDS):
            case "publish":
                persistent = not self.all_kinds or drawn.random() < 0.6
                message = Message(
                    id=f"m{number}",
                    priority=drawn.randrange(10),
                    persistent=persistent,
                    size=drawn.choice((1, 1, 1, 1500)),
                )
                return Publish(queue="q", message=message)
            case "consume" if len(self.consumers) < 2:
                name, mode = f"c{number}", drawn.choice(MODES)
                self.consumers.append(name)
                if mode == "acknowledge":
                    self.channels[name] = channel
                window = Credit(drawn.choice((0, 1, 2, None)))
                return Consume(channel=channel, queue="q", consumer=name, mode=mode, credit=window)
            case "get":
                return Get(channel=channel, queue="q", mode=drawn.choice(MODES))
            case "settle" if self.held:
                settle = drawn.choice((Acknowledge, Release, Release))
                return settle(delivery=drawn.choice([*self.held]))
            case "end" if self.consumers:
                return Cancel(consumer=self.consumers.pop())
            case "close" if drawn.random() < 0.5:
                return CloseChannel(channel=channel)
            case "purge" if self.all_kinds and drawn.random() < 0.3:
                return Purge(queue="q")
            case _:
                return Drain()


def walk(
    address: str, seed: int, order: Order | None = None, *, all_kinds: bool = False
) -> Iterator[Look]:
    """Yield the steps of a broker that is asked for this and that."""
    return Client(address, seed, order or Fifo(), all_kinds=all_kinds).walk()


def looks(seeds: int = 3, *, all_kinds: bool = False) -> Iterator[Look]:
    """Yield steps of brokers of all sizes."""
    for sizes in SIZES:
        for seed in range(seeds):
            yield from walk(f"activemq-cursor?{sizes}", seed, all_kinds=all_kinds)
