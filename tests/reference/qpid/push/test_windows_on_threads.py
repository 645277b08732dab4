"""Windows, closings and registrations under threads: requirements hold in every interleaving.

The cases of `checks/threads` cover the core; these cover the reference's further claims. The first
runs of each are explored, and find a few faults that only threads show.
"""

from __future__ import annotations

import pytest

from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.parallel import Parallel
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.operations import (
    Cancel,
    Consume,
    Declare,
    Get,
    Publish,
    SetCredit,
)
from tests.faults.historic.table import case_of
from tests.faults.overlay import Edit, plant

RUNS = 80


def declare(*, auto_delete: bool = False) -> Move:
    return Declare(queue="q", order=Fifo(), auto_delete=auto_delete)


def publish(message: str, size: int = 1) -> Move:
    return Publish(queue="q", message=Message(id=message, size=size))


def consume(
    consumer: str,
    messages: int | None = None,
    size: int | None = None,
    *,
    channel: str = "",
    auto_close: bool = False,
    exclusive: bool = False,
) -> Move:
    return Consume(
        queue="q",
        consumer=consumer,
        channel=channel or f"channel of {consumer}",
        credit=Credit(messages, size),
        auto_close=auto_close,
        exclusive=exclusive,
    )


GET = Get(queue="q", channel="g")
SHARED = (
    declare(),
    SetCredit(channel="ch", messages=1),
    consume("c", channel="ch"),
    consume("d", channel="ch"),
    publish("a"),
)
CASES = (
    Parallel(
        "what does not fit is taken while a consumer begins to wait at it",
        (declare(), consume("c", 0), publish("a", 2), publish("b", 2), publish("s")),
        ((GET,),),
        stirring=(SetCredit(consumer="c", bytes=3),),
    ),
    Parallel(
        "what does not fit is taken while a consumer that has just come begins to wait at it",
        (declare(), publish("a", 2), publish("b", 2), publish("s")),
        ((GET,),),
        stirring=(consume("c", None, 3),),
    ),
    Parallel(
        "what does not fit is taken while an arrival is offered",
        (declare(), consume("c", None, 3), publish("a", 2), publish("b", 2)),
        ((GET,), (publish("s"),)),
    ),
    Parallel(
        "room of a channel comes back while an arrival is offered",
        SHARED,
        ((Settle(how="acknowledge", message="a"),), (publish("p"),)),
    ),
    Parallel(
        "a message of a channel is returned while an arrival is offered",
        SHARED,
        ((Settle(how="release", message="a"),), (publish("p"),)),
    ),
    Parallel(
        "one of a channel leaves while an arrival is offered",
        SHARED,
        ((Cancel(consumer="c"),), (publish("p"),)),
    ),
    Parallel(
        "room that was taken in vain is missed by another of the channel",
        (*SHARED, publish("x")),
        ((Settle(how="acknowledge", message="a"),), (GET,)),
    ),
    Parallel(
        "room that was taken in vain is used for the next",
        SHARED[:3],
        ((publish("p"), publish("x")), (GET,)),
    ),
    Parallel(
        "a window is set for a channel while an arrival is offered",
        (declare(), consume("c", channel="ch"), consume("d", channel="ch"), publish("a")),
        ((SetCredit(channel="ch", messages=1),), (publish("p"),)),
    ),
    Parallel(
        "one that closes itself comes while something arrives",
        (declare(),),
        ((consume("c", auto_close=True),), (publish("p"),)),
    ),
    Parallel(
        "what is left of one that closes itself goes to a get",
        (declare(), publish("a"), publish("b"), consume("c", 1, auto_close=True)),
        ((GET,), (publish("p"),)),
    ),
    Parallel(
        "the last consumer leaves while another comes",
        (declare(auto_delete=True), consume("c", 1), publish("a")),
        ((Cancel(consumer="c"),), (consume("d", 1),)),
    ),
    Parallel(
        "two come that want to be alone",
        (declare(),),
        ((consume("c", exclusive=True),), (consume("d", exclusive=True),)),
    ),
)
IN_VAIN = Parallel(
    "room is taken in vain",
    (
        *(declare(), consume("c", channel="ch"), consume("d", channel="ch")),
        *(SetCredit(channel="ch", messages=1), publish("a"), publish("x")),
    ),
    ((Settle(how="acknowledge", message="a"),), (GET,), (publish("p"),)),
)


@pytest.mark.parametrize("parallel", [*CASES, IN_VAIN], ids=lambda parallel: parallel.name)
def test_what_is_claimed_beyond_the_core_is_kept_on_threads(parallel: Parallel) -> None:
    case = case_of(make("qpid-push"), parallel)
    assert explore(case, runs_max=RUNS).failed == []
    assert with_few_switches(case, switches_max=2, runs_max=RUNS).failed is None


FAULTS = {
    "a consumer that begins to wait does not look again": (
        Edit(
            "qpid/push/delivery.py",
            "    if before is not entry and not entry.is_available():\n",
            "    if before is not entry and not queue.name:\n",
        ),
        "quiescence",
        "that has just come",
    ),
    "room that was taken in vain is kept": (
        Edit(
            "qpid/push/delivery.py",
            "            else:\n                subscription.restore_credit(entry)\n",
            "",
        ),
        "quiescence",
        "taken in vain is used",
    ),
    "others are looked for before one is let in": (
        Edit(
            "qpid/push/queue.py",
            "        if not self.registrations.enter(subscription.exclusive):\n",
            "        if self.subscriptions.size.get() > 0 and subscription.exclusive:\n"
            "            return False\n"
            "        if not self.registrations.enter(False):\n",
        ),
        "exclusive-is-alone",
        "to be alone",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_needs_threads_is_found(fault: str) -> None:
    edit, requirement, named = FAULTS[fault]
    cases = [each for each in CASES if named in each.name]
    broker = plant([edit])
    tried = [
        with_few_switches(case_of(broker(), each), switches_max=2, runs_max=600) for each in cases
    ]
    found = [each.failed.complaints[0] for each in tried if each.failed is not None]
    assert {line.partition(":")[0] for line in found} == {requirement}
