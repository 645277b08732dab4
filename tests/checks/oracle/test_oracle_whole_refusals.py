"""Invalid operations must be refused, valid ones must succeed, and uncertain ones may do either.

Conversations written by hand, with the helpers of `test_oracle_whole.py`.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.spec.messages import Priority
from brokerproof.spec.protocol.answers import OK, ErrorCode
from brokerproof.spec.protocol.operations import Drain
from tests.checks.oracle.test_oracle import (
    Told,
    acknowledge,
    breaches,
    broken,
    cancel,
    close,
    drain,
    failed,
    get,
    given,
    release,
)
from tests.checks.oracle.test_oracle_whole import (
    RESTART,
    WHOLE,
    advance,
    closed,
    crash,
    delete,
    deleted,
    flush,
    make,
    pool,
    purge,
    put,
    subscribe,
    window,
)

# Operations that must be refused.

UP = (make(), subscribe("c"))
DOWN = (make(durable=True), crash())
MUST_BE_REFUSED: dict[str, tuple[tuple[Told, ...], Told]] = {
    "a queue known in another order": (UP, make(order=Priority(3))),
    "a queue known as not durable": (UP, make(durable=True)),
    "a queue known to stay": (UP, make(auto_delete=True)),
    "a priority above 9": (UP, put("m0", priority=10)),
    "a priority below 0": (UP, put("m0", priority=-1)),
    "a publish to no queue": (UP, put("m0", queue="nowhere")),
    "a get of no queue": (UP, get(queue="nowhere")),
    "a purge of no queue": (UP, purge(queue="nowhere")),
    "a deletion of no queue": (UP, delete(queue="nowhere")),
    "a consumer of no queue": (UP, subscribe("d", queues=("nowhere",))),
    "a consumer of two queues, one unknown": (UP, subscribe("d", queues=("q", "nowhere"))),
    "a consumer's name in use": (UP, subscribe("c")),
    "a consumer that begins with a negative window": (UP, subscribe("d", messages=-1)),
    "a cancel of nobody": (UP, cancel("nobody")),
    "a flush of nobody": (UP, flush("nobody")),
    "a negative window of messages": (UP, window("c", messages=-1)),
    "a negative window of bytes": (UP, window("c", size=-1)),
    "a negative window of a channel": (UP, pool("ch0", messages=-1)),
    "a restart of what is up": (UP, RESTART),
    "a publish to what is down": (DOWN, put("m0")),
    "a drain of what is down": (DOWN, drain()),
    "a second crash": (DOWN, crash()),
    "a deletion in what is down": (DOWN, delete()),
    "a queue that a crash has taken": ((make(), crash(), RESTART), put("m0")),
    "a queue that was deleted": ((*UP, delete(closed("c"))), put("m0")),
}


@pytest.mark.parametrize("name", MUST_BE_REFUSED)
def test_what_makes_no_sense_has_to_be_refused(name: str) -> None:
    start, told = MUST_BE_REFUSED[name]
    assert breaches([*start, failed(told, "refused")], WHOLE) == []
    [breach] = breaches([*start, told], WHOLE)
    assert (breach.requirement, breach.witnesses) == ("refuses-what-it-must", ())


SENSE: dict[str, tuple[tuple[Told, ...], Told]] = {
    "the same queue once more": (UP, make()),
    "the highest priority": (UP, put("m0", priority=9)),
    "the lowest priority": (UP, put("m0", priority=0)),
    "a window of nothing": (UP, window("c", messages=0, size=0)),
    "a queue made again": ((*UP, delete(closed("c"))), make(order=Priority(3))),
    "a channel that was never used": (UP, close("nobody's")),
    "a restart of what is down": (DOWN, RESTART),
}


@pytest.mark.parametrize("name", SENSE)
def test_what_makes_sense_must_not_be_refused(name: str) -> None:
    start, told = SENSE[name]
    assert breaches([*start, told], WHOLE) == []
    [breach] = breaches([*start, failed(told, "refused")], WHOLE)
    assert breach.requirement == "does-what-it-claims"


def test_a_definite_refusal_of_another_kind_refuses_as_well() -> None:
    unclaimed = replace(WHOLE, purge=False)
    assert breaches([make(), failed(purge(), "unsupported")], unclaimed) == []


def test_only_what_had_to_be_refused_exercises_that_promise() -> None:
    def counted(*conversation: Told) -> int:
        oracle = Oracle(WHOLE)
        for operation, answer in conversation:
            assert oracle.observe(operation, answer) == []
        return oracle.exercised["refuses-what-it-must"]

    assert counted(make(), put("m0"), (Drain(), OK)) == 0
    assert counted(make(), failed(put("m0", priority=10), "refused")) == 1


# Rule 39: consumers and queues that may have ended by themselves, with the event outstanding.

CLOSES = (make(), subscribe("c", auto_close=True))
MAY_HAVE_CLOSED = {
    "cancel": cancel("c"),
    "flush": flush("c"),
    "windows": window("c", messages=1),
    "the name once more": subscribe("c"),
}


@pytest.mark.parametrize("name", MAY_HAVE_CLOSED)
def test_a_consumer_that_may_have_closed_may_answer_or_not(name: str) -> None:
    told = MAY_HAVE_CLOSED[name]
    refusal = [*CLOSES, failed(told, "refused"), drain(closed("c"))]
    assert broken(refusal, WHOLE) == []
    # A consumer that does not close by itself is there until its closing is told.
    stays = (make(), subscribe("c"))
    if name != "the name once more":
        assert broken([*CLOSES, told], WHOLE) == []
        assert broken([*stays, failed(told, "refused")], WHOLE) == ["does-what-it-claims"]


@pytest.mark.parametrize("name", MAY_HAVE_CLOSED)
def test_a_consumer_whose_closing_was_told_is_not_there(name: str) -> None:
    gone = (*CLOSES, drain(closed("c")))
    assert broken([*gone, failed(MAY_HAVE_CLOSED[name], "refused"), drain()], WHOLE) == []


LEFT = (make(auto_delete=True), subscribe("c"), cancel("c"))
MAY_HAVE_GONE = {
    "publish": put("m0"),
    "get": get(),
    "purge": purge(),
    "delete": delete(),
    "consume": subscribe("d"),
}


@pytest.mark.parametrize("name", MAY_HAVE_GONE)
def test_a_queue_that_may_be_gone_may_answer_or_not(name: str) -> None:
    told = MAY_HAVE_GONE[name]
    assert broken([*LEFT, failed(told, "refused"), drain(deleted())], WHOLE) == []
    assert broken([*LEFT, told], WHOLE) == []
    assert broken([*LEFT, drain(deleted()), told], WHOLE) == ["refuses-what-it-must"]
    # One that was never used, or is in use, is there.
    for start in ((make(auto_delete=True),), (*LEFT[:2], subscribe("e"), cancel("e"))):
        assert broken([*start, failed(told, "refused")], WHOLE) == ["does-what-it-claims"]


def test_a_queue_that_may_be_gone_may_be_declared_again_or_known() -> None:
    assert broken([*LEFT, failed(make(), "refused"), drain(deleted()), make()], WHOLE) == []


def test_what_was_put_into_a_queue_before_it_went_is_gone_with_it() -> None:
    start = [*LEFT, put("m0"), drain(deleted()), make(auto_delete=True)]
    assert broken([*start, get()], WHOLE) == []
    assert broken([*start, get(given("m0", None))], WHOLE) == ["delete-drops"]
    assert broken([*start, subscribe("d"), drain()], WHOLE) == []


def test_a_queue_with_a_new_consumer_is_there_until_that_leaves() -> None:
    start = [*LEFT, subscribe("d")]
    assert broken([*start, drain()], WHOLE) == []
    assert broken([*start, cancel("d"), drain(deleted())], WHOLE) == []
    [named] = broken([*start, drain(deleted())], WHOLE)
    assert named in ("auto-delete-when-unused", "refuses-what-it-must")


def test_a_settlement_of_what_may_have_gone_with_its_queue_may_be_answered_either_way() -> None:
    held = [*LEFT[:2], put("m0", given("m0", "c")), cancel("c")]
    for told in (acknowledge("d0"), release("d0")):
        assert broken([*held, told, drain(deleted())], WHOLE) == []
        assert broken([*held, failed(told, "refused"), drain(deleted())], WHOLE) == []
        # One that is in use is there.
        still = [*held[:-1], failed(told, "refused")]
        assert broken(still, WHOLE) == ["does-what-it-claims"]


def test_a_queue_declared_again_while_it_may_be_gone_is_not_judged() -> None:
    with pytest.raises(Unfollowable, match="may be a new queue"):
        broken([*LEFT, make(auto_delete=True)], WHOLE)


@pytest.mark.parametrize(
    "going",
    [
        [subscribe("c"), failed(cancel("c"), "crashed")],
        [subscribe("c"), failed(close("ch0"), "crashed")],
        [failed(subscribe("c", auto_close=True), "crashed")],
        [subscribe("c"), cancel("c"), failed(put("m0"), "crashed")],
        [subscribe("c"), cancel("c"), crash()],
    ],
)
def test_a_crash_may_hide_that_a_queue_has_deleted_itself(going: list[Told]) -> None:
    after = [RESTART, failed(put("m1"), "refused")]
    with pytest.raises(Unfollowable, match="q may have deleted itself before"):
        broken([make(durable=True, auto_delete=True), *going, *after], WHOLE)
    # One that does not delete itself, or is in use, is there.
    for start in (
        [make(durable=True)],
        [make(durable=True, auto_delete=True), subscribe("e", channel="other")],
    ):
        assert broken([*start, *going, *after], WHOLE) == ["does-what-it-claims"]


# Uncertain operations.


def test_a_broker_that_went_down_by_itself_and_forgets_all_is_not_judged_any_further() -> None:
    volatile = replace(WHOLE, durable=False)
    with pytest.raises(Unfollowable, match="comes back only by a reset"):
        broken([make(), failed(put("m0"), "crashed")], volatile)
    # Its earlier events are judged.
    wrong = failed(put("m0", given("m7", "c")), "crashed")
    assert broken([make(), subscribe("c"), wrong], WHOLE) == ["nothing-invented"]


UNCERTAIN = {
    "crash": (crash(),),
    "restart": (crash(), RESTART),
    "delete": (delete(),),
    "flush": (flush("c"),),
    "advance": (advance(1),),
    "windows": (window("c", messages=1),),
    "consume": (subscribe("d"),),
    "get": (get(),),
    "declare": (make("other"),),
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_what_changes_too_much_and_is_not_certain_ends_the_judging(name: str) -> None:
    *before, told = UNCERTAIN[name]
    with pytest.raises(Unfollowable):
        broken([make(), subscribe("c"), *before, failed(told, "timeout")], WHOLE)


HELD = (make(durable=True), put("m0", persistent=True), get(given("m0", None)))
BACK_AGAIN = given("m0", None, delivery="g0", again=True)
BACK = get(BACK_AGAIN)


@pytest.mark.parametrize("told", [acknowledge("d0"), release("d0"), close("ch0")])
def test_a_crash_after_what_is_not_certain_raises_no_alarm(told: Told) -> None:
    unsure = [*HELD, failed(told, "timeout"), crash(), RESTART]
    assert alarms([*unsure, BACK, drain()]) == []
    if told == acknowledge("d0"):
        assert alarms([*unsure, get(), drain()]) == []


def test_a_crash_after_a_publish_that_is_not_certain_raises_no_alarm() -> None:
    unsure = [make(durable=True), failed(put("m0", persistent=True), "timeout"), crash(), RESTART]
    assert alarms([*unsure, get(), drain()]) == []
    assert alarms([*unsure, get(given("m0", None)), drain()]) == []


@pytest.mark.parametrize("code", ["timeout", "crashed"])
@pytest.mark.parametrize("streams", [False, True])
def test_a_crash_may_lose_what_was_given_and_whose_publish_had_no_answer(
    code: ErrorCode, streams: bool
) -> None:
    claims = replace(WHOLE, event_order="per_consumer") if streams else WHOLE
    held = [make(durable=True), subscribe("c")]
    unsure = [*held, failed(put("m0", given("m0", "c"), persistent=True), code)]
    sure = [*held, put("m0", given("m0", "c"), persistent=True)]
    down = [] if code == "crashed" else [crash()]
    for after in ([RESTART, get(), drain()], [RESTART, get(BACK_AGAIN), drain()]):
        assert broken([*unsure, *down, *after], claims) == []
    assert broken([*sure, crash(), RESTART, get(), drain()], claims) == ["get-finds"]


def test_a_purge_that_is_not_certain_has_dropped_what_is_there_or_not() -> None:
    unsure = [make(), put("m0"), failed(purge(), "timeout")]
    assert broken([*unsure, get()], WHOLE) == []
    assert broken([*unsure, get(given("m0", None))], WHOLE) == []
    assert broken([*unsure, get(), get(given("m0", None))], WHOLE) == ["purge-drops"]


def alarms(conversation: list[Told]) -> list[str]:
    """Return the breaches, as far as the conversation can be followed."""
    try:
        return broken(conversation, WHOLE)
    except Unfollowable:
        return []


def test_a_queue_that_may_be_gone_may_be_declared_with_other_arguments() -> None:
    used = [make(auto_delete=True), subscribe("c")]
    other = make(order=Priority(2), auto_delete=True)
    assert broken([*used, other], WHOLE) == ["refuses-what-it-must"]
    assert broken([*used, cancel("c"), failed(other, "refused")], WHOLE) == []
    with pytest.raises(Unfollowable, match="q may be a new queue, or the same"):
        broken([*used, cancel("c"), other], WHOLE)
