"""What happened between two looks at a queue, and that two views cannot be of one queue.

Owns what the watched models are told, whatever kind of queue they are of (`*_steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from brokerproof.spec.protocol.messages import Message
from brokerproof.spec.protocol.operations import Operation, Publish


@dataclass(frozen=True)
class Happening:
    """What a client did, as far as a queue is concerned.

    `arrival` is the message that was published to it, with its level; `settled` the message whose
    delivery was settled. `closed` are the consumers that were told to have closed by themselves.
    """

    operation: Operation
    arrival: tuple[str, int] | None = None
    settled: str | None = None
    closed: frozenset[str] = frozenset()


def happening(
    operation: Operation,
    settled: str | None,
    queue: str,
    level: Callable[[Message], int],
    closed: frozenset[str] = frozenset(),
) -> Happening:
    """Return what an operation is to `queue`; `level` is that of a message in it."""
    arrival = None
    if isinstance(operation, Publish) and operation.queue == queue:
        arrival = operation.message.id, level(operation.message)
    return Happening(operation, arrival, settled, closed)


class NotAQueue(Exception):
    """Two views that cannot be of one queue, before and after an operation; one line."""
