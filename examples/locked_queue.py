"""A broker that several threads may use: the naive queue behind one lock.

It is built on the cells of `brokerproof.reference.shared.atomics`, a lock being one, so it can be
run under every interleaving of a few operations at once:

    brokerproof check examples/locked_queue.py:make_broker
    brokerproof check examples/locked_queue.py:make_hasty_broker

The second releases its lock too early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from brokerproof.reference.shared.atomics import Lock
from brokerproof.spec.protocol.answers import Answer, Event
from brokerproof.spec.protocol.candidate import Start
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import Operation

# A file that the gate loads finds its neighbours by their bare names, a module by its package.
if TYPE_CHECKING or __package__:
    from .naive_queue import NaiveBroker
else:
    from naive_queue import NaiveBroker


class LockedQueue:
    """Run one operation at a time; send events under the lock, so that they keep their order."""

    def __init__(self) -> None:
        self.broker = NaiveBroker()
        self.lock = Lock()
        self.tell: Callable[[Event], None] | None = None

    def hello(self) -> Hello:
        """Return the claims of the queue behind the lock."""
        return self.broker.hello()

    def on_threads(self, start: Start, tell: Callable[[Event], None]) -> None:
        """Send events as they happen from now on; there are no background jobs."""
        del start
        self.tell = tell

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation, alone."""
        with self.lock:
            return self.told(self.broker.handle(operation))

    def told(self, answer: Answer) -> Answer:
        """Send the events of an answer, if a receiver is set."""
        if self.tell is None:
            return answer
        for event in answer.events:
            self.tell(event)
        return Answer((), answer.error)


class HastyQueue(LockedQueue):
    """A queue that delivers messages after it has released its lock."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation alone, and deliver messages beside other threads."""
        with self.lock:
            answer = self.broker.carry_out(operation)
        return self.told(Answer((*answer.events, *self.broker.hand_out()), answer.error))


def make_broker() -> LockedQueue:
    """Return the correct broker."""
    return LockedQueue()


def make_hasty_broker() -> HastyQueue:
    """Return the one with a mistake."""
    return HastyQueue()
