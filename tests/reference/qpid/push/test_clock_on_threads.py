"""The clock under threads: time passes while others publish, take, settle and close."""

from __future__ import annotations

import pytest

from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.trace.moves import Settle
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.operations import (
    Advance,
    Cancel,
    Consume,
    Declare,
    Delete,
    Get,
    Publish,
    Purge,
)
from tests.faults.historic.table import case_of
from tests.faults.overlay import Edit, plant

RUNS = 60


def publish(message: str, due: int | None = None, over: int | None = None) -> Publish:
    made = Message(id=message)
    return Publish(queue="q", message=made, not_before_s=due, expires_s=over)


def consume(messages: int | None, *, auto_close: bool = False) -> Consume:
    return Consume(
        queue="q", consumer="c", channel="ch", credit=Credit(messages), auto_close=auto_close
    )


QUEUE = Declare(queue="q", order=Fifo())
GET = Get(queue="q", channel="g")
PASS = (Advance(seconds=1),)
CASES = (
    Parallel(
        "a due message goes back before a consumer is given another one",
        (QUEUE, publish("a", 1), publish("b"), consume(1), publish("c")),
        (PASS, (Settle(how="release", message="b"),)),
    ),
    Parallel(
        "something becomes due while something arrives",
        (QUEUE, publish("a", 1), consume(1)),
        (PASS, (publish("p"),)),
    ),
    Parallel(
        "a message that has to wait arrives while its time passes",
        (QUEUE, consume(1)),
        (PASS, (publish("a", 1),)),
    ),
    Parallel(
        "a message expires while it is taken",
        (QUEUE, publish("a", None, 1), publish("b")),
        (PASS, (GET,)),
    ),
    Parallel(
        "a message expires while it is returned",
        (QUEUE, publish("a", None, 1), consume(1)),
        (PASS, (Settle(how="release", message="a"),), (publish("p"),)),
    ),
    Parallel(
        "something becomes due while its last consumer leaves, and while the queue is emptied",
        (QUEUE, publish("a", 1), consume(1)),
        (PASS, (Cancel(consumer="c"),), (Purge(queue="q"),)),
    ),
    Parallel(
        "something becomes due while one comes that closes itself",
        (QUEUE, publish("a", 1)),
        (PASS, (consume(1, auto_close=True),)),
    ),
    Parallel(
        "something becomes due in a queue that goes",
        (QUEUE, publish("a", 1), publish("b", None, 1)),
        (PASS, (Delete(queue="q"),)),
    ),
)


@pytest.mark.parametrize("parallel", CASES, ids=lambda parallel: parallel.name)
def test_time_may_pass_beside_anything(parallel: Parallel) -> None:
    case = case_of(make("qpid-push"), parallel)
    assert explore(case, runs_max=RUNS).failed == []
    assert with_few_switches(case, switches_max=2, runs_max=RUNS).failed is None


def test_what_goes_back_before_it_is_available_is_passed_by() -> None:
    edit = Edit(
        "qpid/push/queue.py",
        "            and entry.let_go()\n        ):\n            self._requeue(entry)\n",
        "            and not entry.is_available()\n        ):\n"
        "            self._requeue(entry)\n            entry.let_go()\n",
    )
    case = case_of(plant([edit])(), CASES[0])
    assert with_few_switches(case, switches_max=2, runs_max=600).failed is not None
