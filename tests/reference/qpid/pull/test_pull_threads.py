"""Pulling on threads: under the interleavings of few operations no consumer is left waiting.

Besides the cases of every broker there are those of priorities of consumers: a notified consumer
looks for a better one, while that one comes or goes. No sequential run can show the faults here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from brokerproof.checks.conversation import Copier, copier_of, reset
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.threads.case_catalogue import every_case, lost_wake_ups, pairs
from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.on_threads import classes_beside
from brokerproof.checks.threads.parallel import Parallel, parallel_case
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.reference import make
from brokerproof.reference.qpid.pull.consumer_lists import ConsumerNode
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Cancel,
    Consume,
    Declare,
    Get,
    Publish,
    SetCredit,
)
from tests.faults.overlay import Edit, plant

PULL = "qpid-pull"
ORDERS: Sequence[Order] = (Fifo(), Priority(levels=3))


def publish(message: str) -> Publish:
    return Publish(queue="q", message=Message(id=message))


def consume(consumer: str, window: int | None, priority: int = 0) -> Consume:
    return Consume(
        queue="q",
        consumer=consumer,
        channel=f"channel of {consumer}",
        credit=Credit(window),
        priority=priority,
    )


DECLARED = Declare(queue="q", order=Fifo())
BOTH: tuple[Move, ...] = (DECLARED, consume("low", None), consume("high", 1, priority=1))
OF_PRIORITIES = [
    Parallel(
        "enqueue, the better one pauses",
        BOTH,
        ((publish("m"),), (_pause := (SetCredit(consumer="high", messages=0),))),
    ),
    Parallel("enqueue, the better one leaves", BOTH, ((publish("m"),), (Cancel(consumer="high"),))),
    Parallel(
        "enqueue, the better one comes",
        (DECLARED, consume("low", None)),
        ((publish("m"),), (consume("high", 1, priority=1),)),
    ),
    Parallel(
        "enqueue, the better one has room again",
        (*BOTH, publish("a")),
        ((publish("m"),), (Settle(how="acknowledge", message="a"),)),
    ),
    Parallel(
        "release, the better one pauses",
        (DECLARED, publish("a"), Get(queue="q", channel="g"), *BOTH[1:]),
        ((Settle(how="release", message="a"),), _pause),
    ),
]


def explored(
    candidate: Candidate, parallel: Parallel, runs_max: int, watches: Sequence[type] = ()
) -> list[tuple[str, ...]]:
    """Return the failures among the first so many runs."""
    reset(candidate)
    copier = copier_of(candidate)
    assert isinstance(copier, Copier)
    oracle = Oracle(candidate.hello().capabilities)
    case = parallel_case(parallel, candidate, copier, oracle, watches=watches)
    return [failed.complaints for failed in explore(case, runs_max=runs_max).failed]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "parallel",
    [
        pytest.param(parallel, id=f"{type(order).__name__} {parallel.name}")
        for order in ORDERS
        for parallel in every_case(order)
    ],
)
def test_pulling_keeps_its_promises_on_threads(parallel: Parallel) -> None:
    """The first runs of each case, more of which `make check` runs, too."""
    assert explored(make(PULL), parallel, runs_max=15) == []


@pytest.mark.parametrize("parallel", OF_PRIORITIES, ids=lambda parallel: parallel.name)
def test_no_consumer_waits_for_a_better_one_that_does_not_come(parallel: Parallel) -> None:
    assert explored(make(PULL), parallel, runs_max=300) == []


@pytest.mark.parametrize(
    "parallel", [*OF_PRIORITIES, *lost_wake_ups(Fifo())], ids=lambda parallel: parallel.name
)
def test_no_two_threads_touch_an_attribute_without_order(parallel: Parallel) -> None:
    broker = make(PULL)
    kinds = classes_beside(broker)
    assert ConsumerNode in kinds
    assert explored(broker, parallel, runs_max=10, watches=kinds) == []


FAULTS = {
    "interested again only after it has looked (B-25)": (
        "quiescence",
        [
            Edit(
                "qpid/pull/queue.py",
                """
        self.subscriptions.set_notified(consumer, False)
        if consumer.is_suspended():
""",
                """
        if consumer.is_suspended():
""",
            ),
            Edit(
                "qpid/pull/queue.py",
                """
        if entry is not None:
            self.subscriptions.set_notified(consumer, True)
        elif consumer""",
                """
        if entry is not None:
            self.subscriptions.set_notified(consumer, True)
        else:
            self.subscriptions.set_notified(consumer, False)
        if entry is None and consumer""",
            ),
        ],
    ),
    "met before it has its node (B-31, QPID-8210) by a publish": (
        "client",
        [
            Edit(
                "qpid/pull/consumer_lists.py",
                """
            consumer.node.set(node)
            self._add_to_all(node, consumer.priority)
""",
                """
            self._add_to_all(node, consumer.priority)
            consumer.node.set(node)
""",
            )
        ],
    ),
    "the mark is taken off before the item is taken out": (
        "quiescence",
        [
            Edit(
                "qpid/pull/sessions.py",
                """
        item = self.line.take_first()
        if item is not None:
            item.scheduled.compare_and_set(True, False)
        return item
""",
                """
        item = self.line.take_first()
        return item
""",
            ),
            Edit(
                "qpid/pull/sessions.py",
                """
        if target is not None and target.process_pending():
            self.targets.add(target)
        return""",
                """
        again = target is not None and target.process_pending()
        if target is not None:
            target.scheduled.compare_and_set(True, False)
        if again:
            self.targets.add(target)
        return""",
            ),
            Edit(
                "qpid/pull/sessions.py",
                """
                if session.process_pending():
                    self.sessions.add(session)
""",
                """
                session.scheduled.compare_and_set(True, False)
                if session.process_pending():
                    self.sessions.add(session)
""",
            ),
        ],
    ),
    "a connection rests without looking again": (
        "quiescence",
        [
            Edit(
                "qpid/pull/sessions.py",
                """
        self.scheduled.compare_and_set(True, False)
        if not self.sessions.is_empty():
            self._schedule()
""",
                """
        is_idle = self.sessions.is_empty()
        self.scheduled.compare_and_set(True, False)
        if not is_idle:
            self._schedule()
""",
            )
        ],
    ),
}


@pytest.mark.each_time(2)
@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_that_needs_threads_is_found(what: str) -> None:
    expected, edits = FAULTS[what]
    broker = plant(edits, PULL)
    words = "consume" if "B-31" in what else ""
    for parallel in (*OF_PRIORITIES, *lost_wake_ups(Fifo()), *pairs(Fifo())):
        if words not in parallel.name:
            continue
        for complaints in explored(broker(), parallel, runs_max=250):
            if complaints[0].startswith(expected):
                return
    pytest.fail("not found")
