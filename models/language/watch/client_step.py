"""The operation of a client between two views of a queue, and the error for impossible views."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import msgspec

from brokerproof.models.language.watch.paths import Taken
from brokerproof.spec.messages import Message
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Operation,
    Publish,
    Reject,
    Release,
)

Holder = TypeVar("Holder", bound=Hashable)


class ClientStep(msgspec.Struct, frozen=True):
    """An operation, as far as it concerns one queue.

    `arrival` is the message that the operation published to the queue, with its level. `settled` is
    the message whose delivery it settled. `closed` are the consumers that were reported as closed.
    """

    operation: Operation
    arrival: tuple[str, int] | None = None
    settled: str | None = None
    closed: frozenset[str] = frozenset()

    @property
    def settles(self) -> bool:
        """Whether the operation settles a delivery."""
        return isinstance(self.operation, Acknowledge | Reject | Release)

    def settlement(
        self, held: Mapping[str, Holder], at: Mapping[str, int], index: Mapping[Holder, int]
    ) -> tuple[Taken, ...]:
        """Return the model step that settles a message; `held` gives the holder of each."""
        if not self.settles or self.settled is None or self.settled not in held:
            return ()
        action = "release" if isinstance(self.operation, Release) else "acknowledge"
        return (Taken(action, (index[held[self.settled]], at[self.settled])),)

    def detail(self, name: str) -> Hashable:
        """Return a plain field of the operation or its message, or the type of the operation."""
        if not name:
            return type(self.operation)
        message = getattr(self.operation, "message", None)
        return getattr(self.operation, name, getattr(message, name, None))


def client_step(
    operation: Operation,
    settled: str | None,
    queue: str,
    level: Callable[[Message], int],
    closed: frozenset[str] = frozenset(),
) -> ClientStep:
    """Return the step of an operation on `queue`; `level` gives a message's level there."""
    arrival = None
    if isinstance(operation, Publish) and operation.queue == queue:
        arrival = operation.message.id, level(operation.message)
    return ClientStep(operation, arrival, settled, closed)


class NotAQueue(Exception):
    """Two views cannot be of one queue, before and after an operation; one line."""


class OutsideTheModel(Exception):
    """The model does not cover a step; the message names the missing subject."""
