"""How a run ends: everything that is left is asked for, so that a missing message shows.

A consumer without limits takes what waits, and what comes back as all other channels close; where
gets are claimed, gets take it after that. The steps are moves like any other: they are judged, and
part of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Move
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.operations import CloseChannel, Consume, Drain, Get, Restart

LAST = "last"
"""The channel on which a run takes the messages left at its end."""


def take_what_is_left(bindings: Bindings, make: Callable[[Move], Answer | None]) -> None:
    """End a run in the state of these bindings.

    `make` makes a move and returns the answer, or None if the run does not go on.
    """
    claims = bindings.claims
    for move in _until_empty(bindings):
        if make(move) is None:
            return
    for queue in bindings.queues if claims.get else ():
        for _ in range(len(bindings.messages) + 1):
            answer = make(Get(channel=LAST, queue=queue))
            if answer is None:
                return
            if not answer.events:
                break


def _until_empty(bindings: Bindings) -> Iterator[Move]:
    if bindings.down:
        yield Restart()
    yield Drain()
    # Before channels close: a queue may go with its last consumer and all messages.
    if "acknowledge" in bindings.claims.modes:
        for queue in bindings.queues:
            yield Consume(channel=LAST, queue=queue, consumer=f"{LAST} of {queue}")
        yield Drain()
    for channel in bindings.channels:
        yield CloseChannel(channel=channel)
    yield Drain()
