"""The gate on the recipes for Redis; `docs/findings/redis.md` has the reasons of each verdict."""

from __future__ import annotations

import os

import pytest

from brokerproof.checks.gate.gate import Budget
from brokerproof.checks.verdicts import Outcome
from brokerproof.spec.protocol.answers import OK, Answer
from brokerproof.spec.protocol.operations import Acknowledge, Advance, Get, Release
from examples.recipes.redis_server import INSTALL, PROGRAM
from tests.examples.recipes_client import (
    file_of,
    given_twice,
    ids,
    judged,
    made,
    play,
    put,
    taken,
    trace,
)

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(
        not PROGRAM.exists() and not os.environ.get("CI"),
        reason=f"there is no {PROGRAM}; {INSTALL}",
    ),
]

GET = Get(channel="ch", queue="q")

CORE = frozenset(
    {
        "nothing-lost",
        "nothing-twice",
        "nothing-invented",
        "right-queue",
        "fifo-order",
        "get-finds",
        "close-releases",
        "does-what-it-claims",
        "protocol",
        "refuses-what-it-must",
    }
)
LEASES = frozenset({"lease-holds", "lease-renewed", "lease-ends", "delivery-count"})


def test_the_list_keeps_all_that_it_claims() -> None:
    report = judged("redis_list.py:make_queue", Budget(operations=500, examples=5))
    assert ids(report, Outcome.BROKEN) == set()
    assert ids(report, Outcome.KEPT) == CORE | {"returns-where-claimed"}


def test_a_list_that_only_pops_loses_what_a_channel_held() -> None:
    report = judged("redis_list.py:make_queue_that_only_pops", Budget(operations=1_200, examples=0))
    # Without a list of what is held, a release cannot see that the message was rejected before.
    assert ids(report, Outcome.BROKEN) == {"close-releases", "nothing-twice"}
    assert trace(report, "close-releases") == [
        "declare q0 fifo: ok",
        "publish m0 to q0: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
        "close_channel ch0: ok",
        "get from q0 on ch0 mode=acknowledge: nothing",
    ]


def test_a_list_that_looks_first_gives_a_message_to_two_threads() -> None:
    assert given_twice("redis_list.py:make_queue_that_looks_first")
    assert not given_twice("redis_list.py:make_queue")


def test_the_stream_keeps_all_that_it_claims() -> None:
    report = judged("redis_stream.py:make_queue", Budget(operations=200, examples=4))
    assert ids(report, Outcome.BROKEN) == set()
    assert ids(report, Outcome.KEPT) == CORE | LEASES | {"release-rewinds", "redelivered-flag"}


@pytest.mark.thorough
def test_a_lease_of_half_its_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = file_of(made("redis_stream.py:make_queue"))
    whole = module._lease_ms
    monkeypatch.setattr(module, "_lease_ms", lambda queue: whole(queue) // 2)
    report = judged("redis_stream.py:make_queue", Budget(operations=200, examples=0))
    assert "lease-holds" in ids(report, Outcome.BROKEN)


def test_a_deleted_consumer_takes_its_messages_with_it() -> None:
    address = "redis_stream.py:make_queue_that_deletes_consumers"
    report = judged(address, Budget(operations=1, examples=20))
    assert ids(report, Outcome.BROKEN) == {"close-releases"}
    assert trace(report, "close-releases") == [
        "declare q0 fifo: ok",
        "publish m0 to q0 priority=0: ok",
        "get from q0 on ch0 mode=acknowledge: m0 → the get",
        "drain: ok",
        "close_channel ch0: ok",
        "drain: ok",
        "get from q0 on last mode=acknowledge: nothing",
    ]


@pytest.mark.parametrize(
    ("factory", "found"), [("make_queue", ["m10"]), ("make_queue_that_ignores_the_cursor", [])]
)
def test_the_cursor_leads_to_what_returned_behind_ten(factory: str, found: list[str]) -> None:
    candidate = made(f"redis_stream.py:{factory}")
    put(candidate, *(f"m{number}" for number in range(12)))
    deliveries = [taken(candidate.handle(GET))[1] for _ in range(12)]
    returned, again = play(candidate, Release(delivery=deliveries[10]), GET)
    assert returned == OK
    assert [taken(Answer((event,)))[0] for event in again.events] == found


def test_an_entry_is_acknowledged_by_an_old_delivery_too() -> None:
    # XACK looks its argument up in the entries of the group: deliveries have no names.
    candidate = made("redis_stream.py:make_queue", lease_s=1)
    put(candidate, "m0")
    _, old = taken(candidate.handle(GET))
    candidate.handle(Advance(seconds=1))
    _, new = taken(candidate.handle(GET))
    assert candidate.handle(Acknowledge(delivery=old)) == OK
    assert candidate.handle(Acknowledge(delivery=new)) != OK


def test_the_stream_gives_a_message_to_one_thread() -> None:
    assert not given_twice("redis_stream.py:make_queue")


def test_an_answer_after_too_much_time_is_not_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = made("redis_stream.py:make_queue", lease_s=1)
    put(candidate, "m0", "m1")
    assert candidate.handle(GET).ok
    monkeypatch.setattr(candidate, "second_s", 0.0)
    late = candidate.handle(GET)
    assert late.error is not None
    assert late.error.code == "timeout"
