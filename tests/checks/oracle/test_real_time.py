"""Leases of a broker in real time: its clock may be ahead by the tolerance that it claims.

Each test of what is right has its broken twin. The broker is the example queue of jobs, which has a
clock that can be moved: here it ends leases early, or carries a lock so that it cannot be copied.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.adaptive import TIMED_RUN_MAX
from brokerproof.checks.subjects import Subject
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.capabilities import Capabilities, SettleBy
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Declare,
    Extend,
    Get,
    Operation,
    Publish,
)
from brokerproof.spec.requirements import catalogue
from tests.faults.overlay import Edit, plant

OF_LEASES = {"lease-holds", "lease-renewed", "lease-ends", "lease-is-over"}


def edited(old: str, new: str) -> Edit:
    return Edit("job_queue.py", old, new)


def claiming(tolerance_s: int) -> Edit:
    return edited('lease="told",', f'lease="silent", tolerance_s={tolerance_s},')


def ending(early_s: int) -> Edit:
    """Let each lease end early: the broker's clock is ahead by so much."""
    return edited("job.due <= self.now:", f"job.due <= self.now + {early_s}:")


SILENT = edited("self.events.append(LeaseExpired(message=job.message.id))", "pass")
RENEWAL_IGNORED = edited(
    "                    job.due = self.lease_end(queue)", "                    pass"
)
NEVER_ENDING = edited("job.due is not None and", "False and")


def judged(start: Callable[[], Candidate], operations: int = 400) -> Report:
    subject = Subject("jobs", start().hello(), start, in_process=True)
    return run_gate(subject, catalogue(), Budget(operations=operations, examples=0), seed=0)


def ids(report: Report, outcome: Outcome) -> set[str]:
    return {v.requirement.id for v in report.verdicts if v.outcome is outcome}


@pytest.mark.each_time(1)
@pytest.mark.parametrize("early_s", [0, 1])
def test_a_lease_may_end_within_the_tolerance(early_s: int) -> None:
    edits = [claiming(tolerance_s=1), SILENT, *([ending(early_s)] if early_s else [])]
    report = judged(plant(edits, "jobs:make_queue"))
    assert ids(report, Outcome.BROKEN) == set()
    assert ids(report, Outcome.KEPT) >= OF_LEASES


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("fault", "requirement"),
    [
        (ending(early_s=2), "lease-holds"),
        (RENEWAL_IGNORED, "lease-renewed"),
        (NEVER_ENDING, "lease-ends"),
    ],
)
def test_a_fault_beyond_the_tolerance_is_found(fault: Edit, requirement: str) -> None:
    report = judged(plant([claiming(tolerance_s=1), SILENT, fault], "jobs:make_queue"))
    assert requirement in ids(report, Outcome.BROKEN)


def test_without_a_tolerance_none_is_granted() -> None:
    edits = [claiming(tolerance_s=0), SILENT, ending(early_s=1)]
    assert "lease-holds" in ids(judged(plant(edits, "jobs:make_queue")), Outcome.BROKEN)


# What a second delivery shows of the first.


def oracle_after_a_second_delivery(settle_by: SettleBy = "delivery") -> Oracle:
    """Return an oracle after m0 was given twice: d0's lease was over, if the broker is right."""
    claims = Capabilities(
        get=True, clock=True, lease="silent", extend=True, settle_by=settle_by, tolerance_s=1
    )
    oracle = Oracle(claims)

    def given(delivery: str) -> Answer:
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue="q",
            message="m0",
            redelivered=delivery != "d0",
        )
        return Answer((told,))

    get = Get(channel="ch", queue="q")
    run: list[tuple[Operation, Answer]] = [
        (Declare(queue="q", order=Fifo(), lease_s=4), OK),
        (Publish(queue="q", message=Message(id="m0")), OK),
        (get, given("d0")),
        (Advance(seconds=3), OK),
        (get, given("d1")),
    ]
    for operation, answer in run:
        assert oracle.observe(operation, answer) == []
    return oracle


def test_the_old_delivery_may_be_settled_without_effect() -> None:
    oracle = oracle_after_a_second_delivery()
    assert oracle.observe(Acknowledge(delivery="d0"), OK) == []
    assert oracle.observe(Acknowledge(delivery="d1"), OK) == []


def test_an_old_delivery_that_settles_the_new_one_breaks_the_rule_of_leases() -> None:
    oracle = oracle_after_a_second_delivery()
    assert oracle.observe(Acknowledge(delivery="d0"), OK) == []
    [breach] = oracle.observe(Acknowledge(delivery="d1"), refused("d1 is not held"))
    assert breach.requirement == "lease-is-over"


def test_an_old_delivery_that_is_renewed_by_its_message_is_not_judged() -> None:
    oracle = oracle_after_a_second_delivery(settle_by="message")
    with pytest.raises(Unfollowable, match="not certain that d0 renewed"):
        oracle.observe(Extend(delivery="d0"), OK)


def test_the_new_delivery_can_be_renewed() -> None:
    oracle = oracle_after_a_second_delivery(settle_by="message")
    assert oracle.observe(Extend(delivery="d1"), OK) == []


# How a scope in real time is searched.


def test_a_run_in_real_time_is_short_where_seconds_pass() -> None:
    start = plant([claiming(tolerance_s=1), SILENT], "jobs:make_queue")

    def uncopied() -> Candidate:
        candidate = start()
        candidate.lock = threading.Lock()  # type: ignore[attr-defined]
        return candidate

    stages = {each.did.partition(":")[0]: each for each in judged(uncopied).stages}
    depths = {name: re.findall(r"depth (\d+)", stage.did) for name, stage in stages.items()}
    assert depths["messages held for a time"] == [str(TIMED_RUN_MAX)]
    [longest] = depths["one channel"]
    assert int(longest) > TIMED_RUN_MAX
