"""The gate on the recipe for PostgreSQL; `docs/findings/postgresql.md` has the reasons."""

from __future__ import annotations

import os

import pytest

from brokerproof.checks.gate.gate import Budget
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.answers import OK
from brokerproof.spec.protocol.operations import Acknowledge, Advance, Get
from examples.recipes.postgres_server import INSTALL, PROGRAM
from tests.examples.recipes_client import (
    file_of,
    given_twice,
    ids,
    judged,
    made,
    put,
    taken,
    trace,
)

pytestmark = [
    pytest.mark.postgresql,
    pytest.mark.skipif(
        not PROGRAM.exists() and not os.environ.get("CI"),
        reason=f"there is no {PROGRAM}; {INSTALL}",
    ),
]

RECIPE = "postgres_skip_locked.py"
GET = Get(channel="ch", queue="q")

CORE = frozenset(
    {
        "nothing-lost",
        "nothing-twice",
        "settled-once",
        "nothing-invented",
        "right-queue",
        "fifo-order",
        "release-rewinds",
        "get-finds",
        "close-releases",
        "does-what-it-claims",
        "protocol",
        "refuses-what-it-must",
    }
)
LEASES = frozenset({"lease-holds", "lease-renewed", "lease-ends", "lease-is-over"})


def test_the_queue_of_hidden_rows_keeps_all_that_it_claims() -> None:
    report = judged(f"{RECIPE}:make_queue", Budget(operations=300, examples=4))
    assert ids(report, Outcome.BROKEN) == set()
    assert ids(report, Outcome.KEPT) == CORE | LEASES | {"redelivered-flag", "delivery-count"}


def test_a_lease_of_half_its_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = file_of(made(f"{RECIPE}:make_queue"))
    whole = module._lease_s
    monkeypatch.setattr(module, "_lease_s", lambda queue: whole(queue) and whole(queue) / 2)
    report = judged(f"{RECIPE}:make_queue", Budget(operations=200, examples=0))
    assert "lease-holds" in ids(report, Outcome.BROKEN)


def test_the_queue_of_transactions_keeps_all_that_it_claims() -> None:
    report = judged(f"{RECIPE}:make_queue_of_transactions", Budget(operations=500, examples=20))
    assert ids(report, Outcome.BROKEN) == set()
    assert ids(report, Outcome.KEPT) == CORE


def test_a_lock_that_skips_nothing_hides_all_rows_behind_the_first() -> None:
    address = f"{RECIPE}:make_queue_that_skips_nothing"
    report = judged(address, Budget(operations=1_200, examples=0))
    assert ids(report, Outcome.BROKEN) == {"nothing-lost"}
    assert trace(report, "nothing-lost") == [
        "declare q0 fifo: ok",
        "publish m0 to q0: ok",
        "publish m1 to q0: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
        "get from q0 on ch0 mode=acknowledge: nothing",
    ]


def test_a_queue_that_looks_first_gives_a_message_to_two_threads() -> None:
    assert given_twice(f"{RECIPE}:make_queue_that_looks_first")
    for factory in ("make_queue", "make_queue_of_transactions"):
        assert not given_twice(f"{RECIPE}:{factory}")


def test_a_delivery_whose_lease_is_over_settles_nothing() -> None:
    candidate = made(f"{RECIPE}:make_queue", lease_s=1)
    put(candidate, "m0")
    _, old = taken(candidate.handle(GET))
    candidate.handle(Advance(seconds=1))
    _, new = taken(candidate.handle(GET))
    assert candidate.handle(Acknowledge(delivery=old)) != OK
    assert candidate.handle(Acknowledge(delivery=new)) == OK
