"""What parallel cases miss unless they look twice.

A lost message while no consumer has room; a message sent to a consumer whose cancellation was
answered; and, without a fault, a channel that is used again.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.checks.subjects import Subject
from brokerproof.checks.threads.case_catalogue import case_name, cases_for
from brokerproof.checks.threads.interleavings import Explored, explore
from brokerproof.checks.threads.on_threads import on_threads
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.reference import make
from brokerproof.reference.shared.atomics import AtomicInteger, Lock
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Operation,
    Publish,
)
from examples.locked_queue import LockedQueue

ARRIVAL = Publish(queue="q", message=Message(id="m"))
DECLARED = Declare(queue="q", order=Fifo())


def consume(name: str, channel: str = "ch") -> Consume:
    return Consume(queue="q", consumer=name, channel=channel, credit=Credit(1))


def explored(start: Callable[[], Candidate], parallel: Parallel, runs_max: int = 3_000) -> Explored:
    threaded = on_threads(Subject("ours", start().hello(), start, in_process=True))
    assert not isinstance(threaded, str), threaded
    return explore(threaded.case(parallel), runs_max=runs_max)


def of_the_catalogue(name: str) -> Parallel:
    cases = cases_for(LockedQueue().hello().capabilities)
    return next(parallel for order, parallel in cases if case_name(order, parallel) == name)


class Loses(LockedQueue):
    """A publish is forgotten if there was another between its look and its act."""

    def __init__(self) -> None:
        super().__init__()
        self.published = AtomicInteger()

    def handle(self, operation: Operation) -> Answer:
        """Count arrivals, and drop those whose count differs from the one read before."""
        if not isinstance(operation, Publish):
            return super().handle(operation)
        before = self.published.get()
        with self.lock:
            if self.published.increment_and_get() != before + 1:
                return Answer()
            return self.told(self.broker.handle(operation))


def test_a_lost_message_is_missed_though_no_consumer_has_room_for_it() -> None:
    case = of_the_catalogue("fifo: enqueue, enqueue")
    [failed] = explored(Loses, case).failed
    assert failed.complaints[0].startswith("get-finds")
    sound = explored(LockedQueue, case)
    assert (sound.failed, sound.complete) == ([], True)


class SendsLate(LockedQueue):
    """It chooses deliveries under one lock, and sends them under another."""

    def __init__(self) -> None:
        super().__init__()
        self.sending = Lock()

    def told(self, answer: Answer) -> Answer:
        """Keep the events until the first lock is released."""
        return answer

    def handle(self, operation: Operation) -> Answer:
        """Decide, and then tell."""
        answer = super().handle(operation)
        with self.sending:
            return super().told(answer)


LEAVES = Parallel(
    "the consumer that leaves is just being sent something",
    before=(DECLARED, consume("c")),
    at_once=((ARRIVAL,), (Cancel(consumer="c"),)),
)


def test_a_consumer_whose_cancel_was_answered_is_sent_nothing() -> None:
    [failed] = explored(SendsLate, LEAVES).failed
    assert failed.complaints[0].startswith("only-to-subscribers")
    for start in (LockedQueue, lambda: make("qpid-push"), lambda: make("qpid-pull")):
        sound = explored(start, LEAVES)
        assert (sound.failed, sound.complete) == ([], True)


AGAIN = Parallel(
    "a channel is used again",
    before=(DECLARED, consume("c")),
    at_once=((CloseChannel(channel="ch"), consume("d")), (ARRIVAL,)),
)


@pytest.mark.parametrize(
    "start",
    [LockedQueue, lambda: make("qpid-push"), lambda: make("qpid-pull")],
    ids=["locked", "push", "pull"],
)
def test_a_channel_can_be_used_again(start: Callable[[], Candidate]) -> None:
    found = explored(start, AGAIN, 500)
    assert found.failed == []
    assert found.runs > 1


class Keeps(LockedQueue):
    """A closing channel settles its deliveries instead of returning them."""

    def handle(self, operation: Operation) -> Answer:
        """Acknowledge where the naive queue releases."""
        if isinstance(operation, CloseChannel):
            with self.lock:
                for delivery in [*self.broker.unsettled]:
                    self.broker.unsettled.pop(delivery)
        return super().handle(operation)


def test_what_a_channel_held_is_missed_when_it_is_used_again() -> None:
    [failed] = explored(Keeps, AGAIN, 500).failed
    assert failed.complaints
