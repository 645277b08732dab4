"""Selectors under threads: a place that passes unwanted entries meets a return."""

from __future__ import annotations

import pytest

from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.trace.moves import Settle
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.operations import Consume, Declare, Get, Publish
from tests.faults.historic.table import case_of
from tests.faults.overlay import Edit, plant

RUNS = 60


def publish(message: str, colour: str) -> Publish:
    return Publish(queue="q", message=Message(id=message, properties={"colour": colour}))


def consume(consumer: str, messages: int | None, *, auto_close: bool = False) -> Consume:
    return Consume(
        queue="q",
        consumer=consumer,
        channel=f"channel of {consumer}",
        credit=Credit(messages),
        selector={"colour": "red"},
        auto_close=auto_close,
    )


QUEUE = Declare(queue="q", order=Fifo())
GET = Get(queue="q", channel="g")
CASES = (
    Parallel(
        "what is wanted comes back while a place goes over what is not",
        (QUEUE, publish("a", "red"), consume("c", 1), publish("x", "blue")),
        ((Settle(how="release", message="a"),), (publish("y", "blue"),)),
    ),
    Parallel(
        "what is not wanted comes back before what is",
        (QUEUE, publish("x", "blue"), GET, publish("a", "red"), consume("c", 1)),
        ((Settle(how="release", message="x"),), (Settle(how="release", message="a"),)),
    ),
    Parallel(
        "one that closes itself comes while what it wants, and does not, arrives",
        (QUEUE, publish("x", "blue")),
        ((consume("c", 1, auto_close=True),), (publish("p", "red"),)),
    ),
)


@pytest.mark.parametrize("parallel", CASES, ids=lambda parallel: parallel.name)
def test_selectors_are_kept_on_threads(parallel: Parallel) -> None:
    case = case_of(make("qpid-push"), parallel)
    assert explore(case, runs_max=RUNS).failed == []
    assert with_few_switches(case, switches_max=2, runs_max=RUNS).failed is None


def test_a_place_that_is_set_whatever_it_has_become_is_found() -> None:
    # With a look and then a change of the place, an entry that comes back in between is passed.
    edit = Edit(
        "qpid/push/pointers.py",
        "            self.place.compare_and_set(place, (candidate, None))\n",
        "            self.place.set((candidate, None))\n",
    )
    case = case_of(plant([edit])(), CASES[0])
    failed = with_few_switches(case, switches_max=2, runs_max=600).failed
    assert failed is not None
