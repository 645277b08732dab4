"""A client that takes random steps with a queue, with a view after each step.

Owns the choice of the next step, and the client's memory for it. Leaves the contents of views, and
the choice of queues, to its users.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from brokerproof.models.language.watch.client_step import ClientStep, client_step
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Message, Order, PriorityMapping, level_of
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
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

View = TypeVar("View")


@dataclass
class Look(Generic[View]):
    """Two views of a queue, and the steps between them."""

    before: View
    after: View
    happened: ClientStep


@dataclass(frozen=True)
class Habits:
    """The settings of a client of some kind of queue.

    `draws` makes a message of a name, `windows` are the windows of consumers, and `mapping` is the
    broker's mapping of priorities to levels.
    """

    draws: Callable[[random.Random, str], Message]
    windows: tuple[int | None, ...]
    purges: bool
    mapping: PriorityMapping


def shown_by(broker: Candidate, kind: type[View]) -> View:
    """Return a broker's view of the queue."""
    view = broker.handle(Inspect(queue="q")).inspection
    assert isinstance(view, kind)
    return view


class Client:
    """A client that takes random steps with a queue."""

    def __init__(self, address: str, order: Order, seed: int, habits: Habits) -> None:
        self.drawn = random.Random(seed)  # noqa: S311 - nothing secret
        self.order, self.habits = order, habits
        self.broker = make(address)
        self.broker.handle(Declare(queue="q", order=order, durable=True))
        self.held: dict[str, tuple[str, str]] = {}
        """Unsettled deliveries: each one's message and channel."""
        self.channels: dict[str, str] = {}
        """The channel of each consumer that acknowledges."""
        self.consumers: list[str] = []

    def walk(self, kind: type[View]) -> Iterator[Look[View]]:
        """Yield each step, with the views before and after."""
        view = shown_by(self.broker, kind)
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
            seen = shown_by(self.broker, kind)
            done = operation if answer.ok else Drain()
            yield Look(view, seen, client_step(done, settled, "q", self._level))
            view = seen

    def _level(self, message: Message) -> int:
        return level_of(message.priority, self.order, self.habits.mapping)

    def _delivered(self, event: Delivered, operation: Operation) -> None:
        channel = self.channels.get(event.consumer or "")
        if event.consumer is None and isinstance(operation, Get) and operation.mode != "automatic":
            channel = operation.channel
        if channel is not None:
            self.held[event.delivery] = event.message, channel

    def operation(self, number: int) -> Operation:
        """Return the next operation."""
        drawn, channel = self.drawn, self.drawn.choice("ab")
        match drawn.choice(KINDS):
            case "publish":
                return Publish(queue="q", message=self.habits.draws(drawn, f"m{number}"))
            case "consume" if len(self.consumers) < 2:
                name, mode = f"c{number}", drawn.choice(MODES)
                self.consumers.append(name)
                if mode == "acknowledge":
                    self.channels[name] = channel
                window = Credit(drawn.choice(self.habits.windows))
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
            case "purge" if self.habits.purges and drawn.random() < 0.3:
                return Purge(queue="q")
            case _:
                return Drain()
