"""The gate on a third-party queue library; each verdict was checked by hand.

`docs/findings/third-party-queues.md` has the reasons. A verdict that changes here is news about the
gate, or about a new version of the library: read its source again before you change it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from brokerproof.candidates.python_object import load_python_object
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.subjects import open_subject
from brokerproof.checks.trace.moves import text_of
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Declare,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
)
from brokerproof.spec.requirements import catalogue

ADAPTER = Path(__file__).parents[2] / "examples" / "persist_queue_broker.py"
WHOLE_SCOPE = Budget(operations=2_500, examples=10)
SEARCH_ALONE = Budget(operations=700, examples=0)

KEPT = frozenset(
    {
        # put commits its row before it returns, and nothing deletes rows.
        "nothing-lost",
        # The SELECT of get leaves out what is in status unack, acked or ack_failed.
        "nothing-invented",
        # The same SELECT takes the smallest id that is left.
        "get-finds",
        # nack sets one status; the adapter does it for each delivery of the channel.
        "close-releases",
        "does-what-it-claims",
        "protocol",
    }
)


def judged(factory: str, budget: Budget) -> Report:
    subject = open_subject(f"{ADAPTER}:{factory}")
    try:
        return run_gate(subject, catalogue(), budget, seed=0)
    finally:
        subject.close()


def ids(report: Report, outcome: Outcome) -> set[str]:
    return {v.requirement.id for v in report.verdicts if v.outcome is outcome}


def trace(report: Report, requirement: str) -> list[str]:
    [found] = [v.counterexample for v in report.verdicts if v.requirement.id == requirement]
    assert found is not None
    return [f"{text_of(line.move)}: {line.answered}" for line in found.steps]


def test_the_queue_keeps_all_but_what_was_settled() -> None:
    report = judged("make_broker", SEARCH_ALONE)
    # ack and nack name a row, and set its status whatever it is.
    assert ids(report, Outcome.BROKEN) == {"nothing-twice"}
    assert trace(report, "nothing-twice") == [
        "declare q0 fifo: ok",
        "publish m0 to q0: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
        "acknowledge m0: ok",
        "release m0 again, by its old delivery: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
    ]
    assert ids(report, Outcome.KEPT) >= KEPT | {"fifo-order", "release-rewinds"}


@pytest.mark.thorough
def test_with_a_look_at_the_table_the_flag_is_kept() -> None:
    report = judged("make_broker_that_looks", WHOLE_SCOPE)
    assert ids(report, Outcome.BROKEN) == {"nothing-twice"}
    # nack changes a row's status and leaves its id, by which get orders: the original position.
    assert ids(report, Outcome.KEPT) >= KEPT | {
        "fifo-order",
        "release-rewinds",
        "redelivered-flag",
    }


def test_the_stack_is_refuted_as_a_queue() -> None:
    report = judged("make_stack", SEARCH_ALONE)
    # FILOSQLiteAckQueue orders by descending id.
    assert ids(report, Outcome.BROKEN) == {"fifo-order", "nothing-twice"}
    assert trace(report, "fifo-order")[1:] == [
        "publish m0 to q0: ok",
        "publish m1 to q0: ok",
        "get from q0 on ch0 mode=acknowledge: m1 → the get",
    ]
    assert ids(report, Outcome.KEPT) >= KEPT


def play(*operations: Operation) -> list[Answer]:
    """Return what the adapter answers to operations on a queue that holds m0 alone."""
    candidate = load_python_object(f"{ADAPTER}:make_broker_that_looks")
    beginning = (
        Declare(queue="q", order=Fifo()),
        Publish(queue="q", message=Message(id="m0")),
        Get(channel="ch", queue="q"),
    )
    return [candidate.handle(each) for each in (*beginning, *operations)][len(beginning) :]


@pytest.mark.parametrize("again", [Acknowledge(delivery="d0"), Reject(delivery="d0")])
def test_settling_a_released_delivery_again_loses_the_message(again: Operation) -> None:
    # ack and ack_failed set the status of the row, whatever it is: the library has no deliveries
    # that could have ended, so the adapter claims `settle_by: message`.
    answers = play(Release(delivery="d0"), again, Get(channel="ch", queue="q"))
    assert answers == [OK, OK, OK]


def test_releasing_an_acknowledged_delivery_brings_the_message_back() -> None:
    # nack does not look at the status either.
    *_, last = play(
        Acknowledge(delivery="d0"), Release(delivery="d0"), Get(channel="ch", queue="q")
    )
    assert last.events == (
        Delivered(delivery="d1", consumer=None, queue="q", message="m0", redelivered=True),
    )
