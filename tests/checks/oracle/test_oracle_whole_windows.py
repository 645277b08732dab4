"""Windows that change, count bytes, and are shared: permitted and required deliveries.

Conversations written by hand, with the helpers of `test_oracle_whole.py`. Numbers in brackets are
the rules of driver protocol 1.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.spec.protocol.answers import Accepted
from brokerproof.spec.protocol.operations import ConsumeMode
from examples.whole_broker_claims import everything
from tests.checks.oracle.test_oracle import (
    Told,
    acknowledge,
    broken,
    cancel,
    close,
    drain,
    get,
    given,
    release,
)
from tests.checks.oracle.test_oracle_whole import (
    WHOLE,
    advance,
    closed,
    flush,
    make,
    pool,
    purge,
    put,
    subscribe,
    window,
)

WHEN_IDLE = everything(oversize="when_idle")
THREE = (make(), put("m0"), put("m1"), put("m2"))


# Windows that change (22).


def test_lowering_a_window_takes_nothing_back_and_closes_it_until_less_is_held() -> None:
    start = [*THREE, subscribe("c", given("m0", "c"), given("m1", "c"), messages=2)]
    lowered = [*start, window("c", messages=1)]
    assert broken([*lowered, drain(), acknowledge("d0"), drain()], WHOLE) == []
    assert broken([*lowered, get(given("m0", None, delivery="g"))], WHOLE) == ["nothing-twice"]
    one = [*lowered, acknowledge("d0"), drain(given("m2", "c"))]
    assert broken(one, WHOLE) == ["credit-not-exceeded"]
    none = [*lowered, acknowledge("d0"), acknowledge("d1")]
    assert broken([*none, drain(given("m2", "c"))], WHOLE) == []
    assert broken([*none, drain()], WHOLE) == ["credit-used"]


def test_a_raised_window_has_to_be_used() -> None:
    start = [*THREE, subscribe("c", given("m0", "c"), messages=1), window("c", messages=2)]
    assert broken([*start, drain(given("m1", "c"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == ["credit-used"]
    assert broken([*start, drain(given("m1", "c"), given("m2", "c"))], WHOLE) == [
        "credit-not-exceeded"
    ]


def test_a_window_of_nothing_is_a_pause_and_no_window_is_none() -> None:
    paused = [*THREE, subscribe("c", messages=0)]
    assert broken([*paused, drain()], WHOLE) == []
    assert broken([*paused, drain(given("m0", "c"))], WHOLE) == ["credit-not-exceeded"]
    everything_else = (given("m0", "c"), given("m1", "c"), given("m2", "c"))
    assert broken([*paused, window("c"), drain(*everything_else)], WHOLE) == []


def test_both_fields_are_replaced_together() -> None:
    start = [*THREE, subscribe("c", messages=0, size=0), window("c", size=1)]
    assert broken([*start, drain(given("m0", "c"))], WHOLE) == []
    assert broken([*start, drain(given("m0", "c"), given("m1", "c"))], WHOLE) == [
        "byte-credit-not-exceeded"
    ]


def test_an_event_told_late_may_have_happened_before_its_window_was_lowered() -> None:
    start = [*THREE, subscribe("c", messages=2), window("c", messages=0)]
    assert broken([*start, drain(given("m0", "c"), given("m1", "c"))], WHOLE) == []
    told = [*start, drain(), put("m3"), drain(given("m0", "c"))]
    assert broken(told, WHOLE) == ["credit-not-exceeded"]


# Windows of bytes (5).

WAITS = (make(), subscribe("c", size=2), put("m0", size=3), put("m1"))


def test_a_consumer_waits_at_what_does_not_fit() -> None:
    assert broken([*WAITS, drain()], WHOLE) == []
    assert broken([*WAITS, drain(given("m1", "c"))], WHOLE) == ["fifo-order"]
    assert broken([*WAITS, drain(given("m0", "c"))], WHOLE) == ["byte-credit-not-exceeded"]


def test_others_may_take_what_a_consumer_waits_at_and_then_it_goes_on() -> None:
    by_get = [*WAITS, get(given("m0", None))]
    assert broken([*by_get, drain(given("m1", "c"))], WHOLE) == []
    assert broken([*by_get, drain()], WHOLE) == ["quiescence"]
    by_another = [*WAITS, subscribe("d", given("m0", "d"), messages=1)]
    assert broken([*by_another, drain(given("m1", "c"))], WHOLE) == []
    assert broken([*by_another, drain()], WHOLE) == ["quiescence"]


def test_what_was_waited_at_and_comes_back_stops_the_consumer_again() -> None:
    start = [*WAITS, get(given("m0", None)), drain(given("m1", "c")), put("m2"), drain()]
    assert broken(start, WHOLE) == ["quiescence"]
    back = [*start[:-2], release("d0"), put("m2")]
    assert broken([*back, drain()], WHOLE) == []
    assert broken([*back, drain(given("m2", "c"))], WHOLE) == ["release-rewinds"]


def test_a_window_is_full_of_bytes_or_of_messages_whichever_comes_first() -> None:
    start = [make(), subscribe("c", messages=2, size=4), put("m0", given("m0", "c"), size=4)]
    full = [*start, put("m1"), drain(given("m1", "c"))]
    assert broken(full, WHOLE) == ["byte-credit-not-exceeded"]
    two = [make(), subscribe("c", messages=1, size=4), put("m0", given("m0", "c")), put("m1")]
    assert broken([*two, drain(given("m1", "c"))], WHOLE) == ["credit-not-exceeded"]


def test_a_message_larger_than_the_window_goes_to_an_idle_consumer_where_that_is_claimed() -> None:
    start = [make(), subscribe("c", size=2), put("m0", size=3)]
    assert broken([*start, drain(given("m0", "c"))], WHEN_IDLE) == []
    assert broken([*start, drain()], WHEN_IDLE) == ["quiescence"]
    busy = [make(), subscribe("c", size=2), put("m0", given("m0", "c")), put("m1", size=3)]
    assert broken([*busy, drain()], WHEN_IDLE) == []
    assert broken([*busy, drain(given("m1", "c"))], WHEN_IDLE) == ["byte-credit-not-exceeded"]
    assert broken([*busy, acknowledge("d0"), drain(given("m1", "c"))], WHEN_IDLE) == []


def test_what_just_does_not_fit_beside_what_is_held_is_not_larger_than_the_window() -> None:
    start = [make(), subscribe("c", size=2), put("m0", given("m0", "c")), put("m1", size=2)]
    assert broken([*start, drain(given("m1", "c"))], WHEN_IDLE) == ["byte-credit-not-exceeded"]


def test_no_message_goes_through_a_window_of_no_bytes() -> None:
    start = [make(), subscribe("c", size=0), put("m0", size=0)]
    for claims in (WHOLE, WHEN_IDLE):
        assert broken([*start, drain()], claims) == []
        assert broken([*start, drain(given("m0", "c"))], claims) == ["byte-credit-not-exceeded"]


# Those that never fill their windows (3).

NEVER_FILLS: tuple[ConsumeMode, ...] = ("automatic", "browse")


@pytest.mark.parametrize("mode", NEVER_FILLS)
def test_those_that_settle_nothing_never_fill_their_windows(mode: ConsumeMode) -> None:
    owed = "quiescence" if mode == "automatic" else "browser-sees-all"
    for start in (
        [*THREE, subscribe("c", messages=1, mode=mode)],
        [*THREE, subscribe("c", size=1, mode=mode)],
        [*THREE, subscribe("c", messages=0, mode=mode), pool("ch0", messages=1, size=1)],
    ):
        begun = [*start, window("c", messages=1)]
        every = (given("m0", "c"), given("m1", "c"), given("m2", "c"))
        assert broken([*begun, drain(*every)], WHOLE) == []
        assert broken([*begun, drain()], WHOLE) == [owed]


@pytest.mark.parametrize("mode", NEVER_FILLS)
def test_a_window_of_nothing_stops_them_too(mode: ConsumeMode) -> None:
    for paused, requirement in (
        (subscribe("c", messages=0, mode=mode), "credit-not-exceeded"),
        (subscribe("c", size=0, mode=mode), "byte-credit-not-exceeded"),
    ):
        assert broken([*THREE, paused, drain()], WHOLE) == []
        assert broken([*THREE, paused, drain(given("m0", "c"))], WHOLE) == [requirement]


@pytest.mark.parametrize("mode", NEVER_FILLS)
def test_they_too_wait_at_what_is_larger_than_their_window(mode: ConsumeMode) -> None:
    start = [make(), subscribe("c", size=2, mode=mode), put("m0", size=3), put("m1")]
    assert broken([*start, drain()], WHOLE) == []
    assert broken([*start, drain(given("m0", "c"))], WHOLE) == ["byte-credit-not-exceeded"]
    overtaking = broken([*start, drain(given("m1", "c"))], WHOLE)
    assert overtaking == ["fifo-order" if mode == "automatic" else "browser-in-order"]


@pytest.mark.parametrize("mode", NEVER_FILLS)
def test_whether_they_are_idle_is_left_open(mode: ConsumeMode) -> None:
    start = [make(), subscribe("c", size=2, mode=mode), put("m0", size=3)]
    assert broken([*start, drain()], WHEN_IDLE) == []
    assert broken([*start, drain(given("m0", "c"))], WHEN_IDLE) == []


def test_a_browser_may_go_on_behind_what_was_taken_from_before_it() -> None:
    start = [make(), subscribe("b", size=2, mode="browse"), put("m0", size=3), put("m1")]
    taken = [*start, get(given("m0", None))]
    assert broken([*taken, drain(given("m1", "b", delivery="b1"))], WHOLE) == []
    assert broken([*taken, drain()], WHOLE) == ["browser-sees-all"]


def test_a_browser_may_wait_at_what_came_back_before_its_place_had_passed_it() -> None:
    start = [make(), put("m0", size=3), put("m1"), get(given("m0", None))]
    for size, owed in ((2, []), (3, ["browser-sees-all"])):
        back = [*start, subscribe("b", size=size, mode="browse"), release("d0")]
        assert broken([*back, drain()], WHOLE) == owed
        assert broken([*back, drain(given("m1", "b", delivery="b1"))], WHOLE) == []


# Windows of a channel.

POOL = (make(), subscribe("c"), subscribe("d"), pool("ch0", messages=1))


def test_the_window_of_a_channel_concerns_its_own_consumers_only() -> None:
    start = [*POOL, subscribe("e", channel="ch1"), put("m0", given("m0", "c")), put("m1")]
    assert broken([*start, drain(given("m1", "e"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == ["quiescence"]
    assert broken([*start, drain(given("m1", "d"))], WHOLE) == ["channel-credit-not-exceeded"]


def test_what_a_get_holds_is_in_no_window() -> None:
    start = [*POOL, put("m0"), get(given("m0", None)), put("m1")]
    assert broken([*start, drain(given("m1", "c"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == ["quiescence"]


def test_a_consumer_that_is_cancelled_gives_its_channels_window_back() -> None:
    start = [*POOL, put("m0", given("m0", "c")), put("m1"), cancel("c")]
    assert broken([*start, drain(given("m1", "d"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == ["quiescence"]
    # Its deliveries can be settled as before, and give no room back twice.
    settled = [*start, drain(given("m1", "d")), acknowledge("d0"), put("m2")]
    assert broken([*settled, drain()], WHOLE) == []
    assert broken([*settled, drain(given("m2", "d"))], WHOLE) == ["channel-credit-not-exceeded"]


def test_a_consumer_that_closed_itself_gives_its_channels_window_back() -> None:
    start = [make(), put("m0"), subscribe("c", given("m0", "c"), auto_close=True)]
    start += [drain(closed("c")), subscribe("d"), pool("ch0", messages=1), put("m1")]
    assert broken([*start, drain(given("m1", "d"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == ["quiescence"]


def test_a_channels_window_goes_with_the_channel() -> None:
    start = [*POOL, put("m0", given("m0", "c")), close("ch0"), subscribe("e"), put("m1")]
    both = (given("m0", "e", again=True), given("m1", "e"))
    assert broken([*start, drain(*both)], WHOLE) == []
    assert broken([*start, drain(both[0])], WHOLE) == ["quiescence"]


def test_a_channels_window_may_count_bytes() -> None:
    start = [make(), subscribe("c"), subscribe("d"), pool("ch0", size=2)]
    begun: list[Told] = [*start, put("m0", given("m0", "c"), size=2), put("m1")]
    assert broken([*begun, drain()], WHOLE) == []
    assert broken([*begun, drain(given("m1", "d"))], WHOLE) == ["channel-credit-not-exceeded"]
    assert broken([*begun, release("d0", given("m0", "d", again=True)), drain()], WHOLE) == []


# Flushing.


def test_a_flush_says_no_more_than_what_the_window_lets_through() -> None:
    start = [*THREE, subscribe("c", messages=1)]
    assert broken([*start, flush("c", given("m0", "c")), drain()], WHOLE) == []
    assert broken([*start, flush("c"), drain(given("m0", "c"))], WHOLE) == []
    waiting = [*WAITS, flush("c")]
    assert broken([*waiting, drain()], WHOLE) == []


def test_what_a_flush_passed_over_it_may_not_deliver_after_other_operations() -> None:
    start = [*THREE, subscribe("c", messages=1), drain(given("m0", "c")), acknowledge("d0")]
    assert broken([*start, flush("c"), get(given("m1", None))], WHOLE) == ["flush-delivers"]
    assert broken([*start, flush("c", given("m1", "c")), get(given("m2", None))], WHOLE) == []


def test_a_purge_or_the_time_leaves_nothing_to_flush() -> None:
    start = [make(), subscribe("c", messages=0), put("m0", expires=1), put("m1", due=1)]
    assert broken([*start, purge(), window("c"), flush("c"), drain()], WHOLE) == []
    due = [*start, advance(1), window("c")]
    assert broken([*due, flush("c", given("m1", "c")), drain()], WHOLE) == []
    assert broken([*due, flush("c"), drain()], WHOLE) == ["flush-delivers"]


def test_what_a_flush_makes_room_for_is_delivered_before_its_answer() -> None:
    start = [make(), subscribe("c", messages=0, mode="automatic"), put("m0")]
    operation, answer = put("m1")
    parked = (operation, replace(answer, parked=True))
    events = (given("m0", "c"), Accepted(message="m1"), given("m1", "c"))
    parks = everything(parks=True)
    conversation = [*start, parked, window("c")]
    assert broken([*conversation, flush("c", *events), drain()], parks) == []
    assert broken([*conversation, flush("c", *events[:2]), drain()], parks) == ["flush-delivers"]
