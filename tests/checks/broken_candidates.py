"""Tiny candidates, one honest and several broken, for tests of the gate's own behaviour.

Each is a queue with gets only; each fault is one method. The planted faults of the reference broker
are elsewhere: these test how the gate behaves, not its findings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, Error, refused, unsupported
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    name_of,
)

Kept: TypeAlias = tuple[int, str, bool]
"""A message by its number of arrival, its id, and whether it came back."""

Made = TypeVar("Made", bound=Candidate)


def fresh(start: Callable[[], Made]) -> tuple[Made, Oracle]:
    """Return a candidate that was reset, and an oracle for its claims."""
    candidate = start()
    candidate.handle(Reset())
    return candidate, Oracle(candidate.hello().capabilities)


class Box:
    """An honest queue: first in, first out; a released message goes back to its place."""

    def __init__(self) -> None:
        self.queues: dict[str, list[Kept]] = {}
        self.held: dict[str, tuple[str, str, Kept]] = {}
        self.count = 0

    def hello(self) -> Hello:
        """Claim to be got from."""
        claims = Capabilities(get=True, release_position="original")
        return Hello(name=type(self).__name__.lower(), version="1", capabilities=claims)

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation."""
        match operation:
            case Reset():
                Box.__init__(self)
                return OK
            case Drain():
                return OK
            case Declare(queue=queue):
                self.queues.setdefault(queue, [])
                return OK
            case Publish(queue=queue, message=message):
                if queue not in self.queues:
                    return refused(f"no queue {queue}")
                self.count += 1
                self.queues[queue].append((self.count, message.id, False))
                return OK
            case Get(queue=queue):
                return self.get(operation) if queue in self.queues else refused("no such queue")
            case Acknowledge(delivery=delivery) | Reject(delivery=delivery):
                return OK if self.held.pop(delivery, None) else refused(f"{delivery} is not held")
            case Release(delivery=delivery):
                return self.give_back(delivery)
            case CloseChannel(channel=channel):
                for delivery in [d for d, (its, _, _) in self.held.items() if its == channel]:
                    self.give_back(delivery)
                return OK
            case _:
                return unsupported(name_of(operation))

    def get(self, operation: Get) -> Answer:
        """Take the next message."""
        waiting = self.queues[operation.queue]
        if not waiting:
            return OK
        kept = waiting.pop(self.next_of(waiting))
        self.count += 1
        delivery = f"d{self.count}"
        if operation.mode == "acknowledge":
            self.held[delivery] = (operation.channel, operation.queue, kept)
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue=operation.queue,
            message=kept[1],
            redelivered=kept[2],
        )
        return Answer((told,))

    def next_of(self, waiting: list[Kept]) -> int:
        """Return the place of the message to be given next."""
        return waiting.index(min(waiting))

    def give_back(self, delivery: str) -> Answer:
        """Let a message return to its place."""
        if delivery not in self.held:
            return refused(f"{delivery} is not held")
        _, queue, (number, message, _) = self.held.pop(delivery)
        self.queues[queue].append((number, message, True))
        return OK


class Stack(Box):
    """Gives the last first."""

    def next_of(self, waiting: list[Kept]) -> int:
        """Return the place of the newest message."""
        return waiting.index(max(waiting))


class Sieve(Box):
    """Loses released messages."""

    def give_back(self, delivery: str) -> Answer:
        """Let go."""
        return OK if self.held.pop(delivery, None) else refused(f"{delivery} is not held")


class Thrower(Box):
    """Falls over the second message."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, once."""
        if isinstance(operation, Publish) and operation.message.id != "m0":
            raise RuntimeError("one is enough\nfor anybody")
        return super().handle(operation)


class Shrug(Box):
    """Never knows the outcome of a get."""

    def get(self, operation: Get) -> Answer:
        """Say that it may have happened."""
        return Answer((), Error("timeout", f"{operation.queue} is far away"))


class Mute(Box):
    """Answers its reset with a refusal."""

    def handle(self, operation: Operation) -> Answer:
        """Say no."""
        return refused(f"no {name_of(operation)}")


class Impatient(Box):
    """Simulates Ctrl-C after so many operations of all runs together."""

    operations_left = itertools.repeat(None, 0)

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation, until none are left."""
        try:
            next(Impatient.operations_left)
        except StopIteration:
            raise KeyboardInterrupt from None
        return super().handle(operation)


def broken_factory() -> Box:
    """Fail."""
    raise OSError("no space left")
