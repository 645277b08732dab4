"""Deleted queues, consumers that end, places after a return, and time: the details.

Conversations written by hand, with the helpers of `test_oracle_whole.py`. Numbers in brackets are
the rules of driver protocol 1.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.checks.oracle.explanations import expected_and_seen
from brokerproof.spec.messages import LastValue, Priority, Sorted
from brokerproof.spec.protocol.answers import Accepted
from brokerproof.spec.protocol.capabilities import Capabilities
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
    DURABLE,
    HEAD,
    HELD,
    PARKS,
    RESTART,
    TAIL,
    WHOLE,
    advance,
    closed,
    crash,
    delete,
    deleted,
    make,
    parked,
    purge,
    put,
    subscribe,
    window,
)

PER_CONSUMER = replace(WHOLE, event_order="per_consumer")

in_either_order = pytest.mark.parametrize(
    "claims", [WHOLE, PER_CONSUMER], ids=["total", "per-consumer"]
)


# Consumers that close themselves (6).


@in_either_order
def test_a_closing_told_late_happened_before_what_arrived_since(claims: Capabilities) -> None:
    start = [make(), subscribe("c", auto_close=True), put("m0")]
    assert broken([*start, drain(closed("c")), get(given("m0", None))], claims) == []
    assert broken([*start, drain(given("m0", "c"), closed("c"))], claims) == []
    assert broken([*start, drain(given("m0", "c"))], claims) == ["auto-close-happens"]


@in_either_order
@pytest.mark.parametrize("left", [cancel("c"), close("ch0")], ids=["cancel", "close"])
def test_a_closing_may_be_told_after_its_client_has_left(claims: Capabilities, left: Told) -> None:
    start = [make(), subscribe("c", auto_close=True), left, put("m0")]
    assert broken([*start, drain(closed("c"))], claims) == []
    assert broken([*start, drain()], claims) == []
    assert broken([*start, drain(given("m0", "c"))], claims) == ["only-to-subscribers"]


@in_either_order
def test_nothing_is_delivered_after_a_closing(claims: Capabilities) -> None:
    start = [make(), subscribe("c", auto_close=True), drain(closed("c")), put("m0")]
    assert broken([*start, drain(given("m0", "c"))], claims) == ["only-to-subscribers"]


def test_a_consumer_stays_open_while_something_is_left_that_it_has_no_room_for() -> None:
    start = [make(), put("m0"), put("m1"), subscribe("c", messages=1, auto_close=True)]
    assert broken([*start, drain(given("m0", "c"))], WHOLE) == []
    early = [*start, drain(given("m0", "c"), closed("c"))]
    assert broken(early, WHOLE) == ["auto-close-at-the-end"]
    taken = [*start, drain(given("m0", "c")), get(given("m1", None))]
    assert broken([*taken, drain(closed("c"))], WHOLE) == []
    assert broken([*taken, drain()], WHOLE) == ["auto-close-happens"]


def test_what_others_hold_or_a_selector_leaves_out_is_not_left_for_a_consumer() -> None:
    held = [make(), put("m0"), HELD, subscribe("c", auto_close=True)]
    assert broken([*held, drain(closed("c"))], WHOLE) == []
    red: dict[str, str | int | float | bool] = {"colour": "red"}
    other = [make(), put("m0", colour="blue"), subscribe("c", selector=red, auto_close=True)]
    assert broken([*other, drain(closed("c"))], WHOLE) == []
    assert broken([*other, drain()], WHOLE) == ["auto-close-happens"]


def test_what_a_consumer_holds_when_it_closes_can_be_settled_as_before() -> None:
    start = [make(), put("m0"), subscribe("c", auto_close=True)]
    ended = [*start, drain(given("m0", "c"), closed("c"))]
    assert broken([*ended, failed(acknowledge("d0"), "refused")], WHOLE) == ["does-what-it-claims"]
    again = given("m0", None, delivery="g0", again=True)
    assert broken([*ended, release("d0"), get(again)], WHOLE) == []


def test_a_browser_closes_when_it_has_seen_everything() -> None:
    start = [make(), put("m0"), subscribe("b", mode="browse", auto_close=True)]
    assert broken([*start, drain(given("m0", "b"), closed("b"))], WHOLE) == []
    assert broken([*start, drain(closed("b"))], WHOLE) == ["auto-close-at-the-end"]
    assert broken([*start, drain(given("m0", "b"))], WHOLE) == ["auto-close-happens"]


def test_a_browser_may_wait_at_what_came_back_ahead_of_its_place() -> None:
    """It need not be shown m1, which was taken when it came, and may not have passed it either."""
    start = [make(), put("m0"), put("m1"), get(given("m0", None)), get(given("m1", None))]
    waits = subscribe("b", messages=0, mode="browse", auto_close=True)
    back = [*start, release("d0"), waits, release("d1"), get(given("m0", None, again=True))]
    assert broken([*back, drain()], WHOLE) == []
    assert broken([*back, drain(closed("b"))], WHOLE) == []
    shown = [*start, release("d0"), subscribe("b", mode="browse", auto_close=True)]
    seen = given("m0", "b", again=True, delivery="b0")
    assert broken([*shown, drain(seen)], WHOLE) == ["auto-close-happens"]


# Queues that are deleted, by their client or by themselves (7, 8, 17).


@in_either_order
def test_what_is_told_after_a_deletion_may_have_happened_before_it(claims: Capabilities) -> None:
    start = [make(), subscribe("c"), put("m0"), delete()]
    assert broken([*start, drain(given("m0", "c"), closed("c"))], claims) == []
    assert broken([*start, drain(closed("c"))], claims) == []
    [named] = broken([*start, drain(closed("c"), given("m0", "c"))], claims)
    assert named in ("only-to-subscribers", "delete-drops")
    assert broken([*start, drain(given("m0", "c"))], claims) == ["deletion-is-told"]


def test_a_queue_made_again_is_another_queue() -> None:
    start = [make(), put("m0"), HELD, delete(), make(order=Priority(2))]
    assert broken([*start, failed(acknowledge("d0"), "refused"), get(), drain()], WHOLE) == []
    back = given("m0", None, delivery="g0", again=True)
    for told in (release("d0"), close("ch0")):
        assert broken([*start, told, get(), drain()], WHOLE) == []
        assert broken([*start, told, get(back)], WHOLE) == ["delete-drops"]
    urgent = [*start, put("m1", priority=0), put("m2", priority=9)]
    assert broken([*urgent, get(given("m2", None))], WHOLE) == []
    assert broken([*urgent, get(given("m1", None))], WHOLE) == ["priority-order"]


def test_a_deletion_that_was_asked_for_is_not_told() -> None:
    assert broken([make(auto_delete=True), delete(), drain(deleted())], WHOLE) == ["protocol"]


@pytest.mark.parametrize("leaving", [cancel("c"), close("ch0")], ids=["cancel", "close"])
def test_a_consumer_that_may_have_left_need_not_be_told_of_a_deletion(leaving: Told) -> None:
    start = [make(), subscribe("c"), failed(leaving, "timeout")]
    for told in (delete(), delete(closed("c"))):
        assert broken([*start, told, drain()], WHOLE) == []
    assert broken([*start[:-1], delete(), drain()], WHOLE) == ["deletion-is-told"]


def test_a_queue_that_was_never_used_does_not_delete_itself() -> None:
    start = [make(auto_delete=True), put("m0"), get(given("m0", None))]
    assert broken([*start, drain()], WHOLE) == []
    assert broken([*start, drain(deleted())], WHOLE) == ["auto-delete-when-unused"]


@pytest.mark.parametrize("leaving", [cancel("c"), close("ch0")], ids=["cancel", "close"])
def test_a_queue_deletes_itself_with_all_that_is_in_it(leaving: Told) -> None:
    start = [make(auto_delete=True), subscribe("c", mode="browse"), put("m0", given("m0", "c"))]
    gone = [*start, leaving, drain(deleted())]
    assert broken([*gone, make(), get()], WHOLE) == []
    assert broken([*gone, make(), get(given("m0", None, delivery="g0"))], WHOLE) == ["delete-drops"]


def test_a_queue_goes_when_its_last_consumer_has_closed_itself() -> None:
    start = [make(auto_delete=True), subscribe("c", auto_close=True)]
    assert broken([*start, drain(closed("c"), deleted())], WHOLE) == []
    assert broken([*start, drain(deleted(), closed("c"))], WHOLE) == ["auto-delete-when-unused"]
    assert broken([*start, drain(closed("c"))], WHOLE) == ["auto-delete-happens"]


def test_a_queue_that_stays_is_not_deleted_by_itself() -> None:
    start = [make(), subscribe("c"), cancel("c")]
    assert broken([*start, drain(deleted())], WHOLE) == ["auto-delete-when-unused"]


# Purges, with late events (31).


@in_either_order
def test_what_was_purged_may_have_been_delivered_before(claims: Capabilities) -> None:
    start = [make(), subscribe("c", messages=1), put("m0"), put("m1"), purge()]
    assert broken([*start, drain(given("m0", "c")), acknowledge("d0"), drain()], claims) == []
    assert broken([*start, drain()], claims) == []
    late = [*start, drain(), put("m2"), drain(given("m0", "c"))]
    assert broken(late, claims) == ["purge-drops"]


def test_what_was_held_during_a_purge_comes_back_when_it_is_released() -> None:
    start = [make(), put("m0"), put("m1"), HELD, purge(), release("d0")]
    again = given("m0", None, delivery="g0", again=True)
    assert broken([*start, get(again), get()], WHOLE) == []
    assert broken([*start, get(again), get(given("m1", None))], WHOLE) == ["purge-drops"]


# Consumers of several queues, and those that are alone.


def test_a_consumer_of_two_queues_is_given_both_in_any_mixture_of_their_orders() -> None:
    start = [make(), make("r"), subscribe("c", queues=("q", "r")), put("m0"), put("m1")]
    start += [put("n2", queue="r"), put("n3", queue="r")]
    m0, m1 = given("m0", "c"), given("m1", "c")
    n2, n3 = (given(n, "c", delivery=f"r{n}", queue="r") for n in ("n2", "n3"))
    for order in ((m0, n2, m1, n3), (n2, n3, m0, m1), (n2, m0, m1, n3)):
        assert broken([*start, drain(*order)], WHOLE) == []
    assert broken([*start, drain(m0, m1, n2)], WHOLE) == ["quiescence"]
    assert broken([*start, drain(n3, m0, m1, n2)], WHOLE) == ["fifo-order"]


def test_a_consumer_of_two_queues_ends_with_either() -> None:
    start = [make(), make("r", auto_delete=True), subscribe("c", queues=("q", "r")), delete()]
    assert broken([*start, drain(closed("c"), deleted("r"))], WHOLE) == []
    assert broken([*start, drain(closed("c"))], WHOLE) == ["auto-delete-happens"]
    assert broken([*start, drain(deleted("r"))], WHOLE) == ["deletion-is-told"]


def test_an_exclusive_consumer_stands_in_the_way_in_its_own_queues_only() -> None:
    start = [make(), make("r"), subscribe("c", exclusive=True)]
    assert broken([*start, subscribe("d", queues=("r",)), get(), drain()], WHOLE) == []
    assert broken([*start, subscribe("d", queues=("r", "q"))], WHOLE) == ["exclusive-is-alone"]
    assert broken([*start, cancel("c"), subscribe("d", exclusive=True)], WHOLE) == []
    free = failed(subscribe("d", exclusive=True), "refused")
    assert broken([*start, cancel("c"), free], WHOLE) == ["does-what-it-claims"]


# Publishes that wait for room.


def test_a_parked_message_is_not_there_until_it_was_accepted() -> None:
    accepted = Accepted(message="m1")
    start = [make(), put("m0"), parked(put("m1"))]
    taken = [*start, HELD, get()]
    assert broken([*taken, drain(accepted), get(given("m1", None))], PARKS) == []
    assert broken([*taken, get(given("m1", None))], PARKS) == ["nothing-invented"]
    assert broken([*start, drain(accepted, accepted)], PARKS) == ["protocol"]
    assert broken([make(), put("m0"), drain(Accepted(message="m0"))], PARKS) == ["protocol"]


def test_a_parked_message_has_its_place_from_when_it_was_accepted() -> None:
    start = [make(), parked(put("m0")), put("m1"), drain(Accepted(message="m0"))]
    assert broken([*start, get(given("m1", None)), get(given("m0", None))], PARKS) == []
    assert broken([*start, get(given("m0", None))], PARKS) == ["fifo-order"]


def test_what_takes_the_room_up_may_be_held_or_in_another_queue() -> None:
    start = [make(), make("r"), put("m0", queue="r"), parked(put("m1"))]
    held = get(given("m0", None, queue="r"), queue="r")
    assert broken([*start, drain(), held, drain()], PARKS) == []
    settled = [*start, held, acknowledge("d0")]
    assert broken([*settled, drain(Accepted(message="m1")), drain()], PARKS) == []
    assert broken([*settled, drain()], PARKS) == ["parked-publish-taken"]


def test_what_has_expired_takes_no_room() -> None:
    start = [make(), put("m0", expires=1), parked(put("m1")), drain(), advance(1)]
    assert broken([*start, drain(Accepted(message="m1"))], PARKS) == []
    assert broken([*start, drain()], PARKS) == ["parked-publish-taken"]
    held = [*start[:-1], HELD, advance(1)]
    assert broken([*held, drain()], PARKS) == []


def test_what_is_parked_and_what_ends_by_itself_is_told_in_words() -> None:
    [breach] = breaches([make(), put("m0"), parked(put("m1")), purge(), drain()], PARKS)
    expected = "m1, which is parked, to be accepted: nothing is there"
    assert expected_and_seen(breach) == (expected, "nothing more")
    [breach] = breaches([make(), subscribe("c", auto_close=True), drain()], WHOLE)
    expected = "what ends by itself to have ended, and to be told"
    assert expected_and_seen(breach) == (expected, "nothing more")


def test_a_parked_message_goes_with_its_queue() -> None:
    start = [make(), parked(put("m0")), delete(), make()]
    assert broken([*start, get(), drain()], PARKS) == []
    assert broken([*start, drain(Accepted(message="m0"))], PARKS) == ["protocol"]


# Queues of last values, and sorted ones.

LAST = make(order=LastValue("k"))


def test_what_is_held_while_a_later_one_of_its_value_comes_does_not_return() -> None:
    start = [LAST, put("m0", k=1), HELD, put("m1", k=1)]
    again = given("m0", None, delivery="g0", again=True)
    for told in (release("d0"), close("ch0")):
        assert broken([*start, told, get(given("m1", None)), get()], WHOLE) == []
        assert broken([*start, told, get(again)], WHOLE) == ["last-value-only"]
    assert broken([*start, get(given("m1", None)), release("d0"), get()], WHOLE) == []


def test_a_publish_without_an_answer_may_be_the_one_that_replaces() -> None:
    start = [LAST, failed(put("m0", k=1), "timeout"), put("m1", k=1)]
    for ends in ((get(given("m0", None)), get()), (get(given("m1", None)), get(given("m0", None)))):
        assert broken([*start, *ends, drain()], WHOLE) == []
    both = (get(given("m0", None)), get(given("m1", None)))
    assert broken([*start, *both], WHOLE) == ["last-value-only"]


def test_what_has_another_value_or_none_stays() -> None:
    start = [LAST, put("m0", k=1), put("m1", k="1"), put("m2"), put("m3", k=True), put("m4")]
    every = [get(given(f"m{number}", None)) for number in range(5)]
    assert broken([*start, *every, get()], WHOLE) == []
    assert broken([*start, get(given("m1", None))], WHOLE) == ["fifo-order"]


def test_an_arrival_stands_at_the_tail_though_it_replaces_what_was_first() -> None:
    start = [LAST, put("m0", k=1), put("m1", k=2), put("m2", k=1.0)]
    assert broken([*start, get(given("m1", None)), get(given("m2", None))], WHOLE) == []
    assert broken([*start, get(given("m2", None))], WHOLE) == ["fifo-order"]


def test_equal_keys_are_sorted_by_arrival_and_a_return_keeps_its_place() -> None:
    start = [make(order=Sorted("k")), put("m0", k="b"), put("m1", k="a"), put("m2", k="a")]
    first = get(given("m1", None))
    assert broken([*start, first, get(given("m2", None)), HELD], WHOLE) == []
    assert broken([*start, get(given("m2", None))], WHOLE) == ["sorted-order"]
    back = [*start, first, release("d1")]
    assert broken([*back, get(given("m1", None, again=True))], WHOLE) == []
    assert broken([*back, get(given("m2", None))], WHOLE) == ["sorted-order"]


# Where returned messages go (14).


def taken(message: str, *, again: bool = False) -> Told:
    """Take one message, which may have come back, and keep it."""
    return get(given(message, None, again=again))


TWO_HELD = (make(), put("m0"), put("m1"), put("m2"), taken("m0"), taken("m1"))


@pytest.mark.parametrize(
    ("claims", "returned", "order"),
    [
        (WHOLE, [close("ch0")], "m0 m1 m2"),
        (WHOLE, [release("d1"), release("d0")], "m0 m1 m2"),
        (TAIL, [close("ch0")], "m2 m0 m1"),
        (TAIL, [release("d1"), release("d0")], "m2 m1 m0"),
        (HEAD, [close("ch0")], "m0 m1 m2"),
        (HEAD, [release("d1"), release("d0")], "m1 m0 m2"),
    ],
)
def test_returned_messages_stand_where_the_broker_claims(
    claims: Capabilities, returned: list[Told], order: str
) -> None:
    lawful = order.split()
    for last in (lawful, lawful[:1]):
        takes = [taken(message, again=message != "m2") for message in last]
        assert broken([*TWO_HELD, *returned, *takes], claims) == []
    for wrong in set(lawful[1:]):
        [named] = broken([*TWO_HELD, *returned, taken(wrong, again=wrong != "m2")], claims)
        expected = "returns-where-claimed" if claims != WHOLE else "release-rewinds"
        assert named == expected


def test_a_broker_that_claims_no_place_may_return_messages_anywhere() -> None:
    nowhere = replace(WHOLE, release_position=None)
    for order in ("m0 m1 m2", "m2 m1 m0", "m1 m2 m0"):
        takes = [taken(message, again=message != "m2") for message in order.split()]
        assert broken([*TWO_HELD, close("ch0"), *takes], nowhere) == []


def test_a_broker_that_claims_no_place_is_not_asked_for_the_level_of_what_returned() -> None:
    start = [make(order=Priority(10)), put("m0", priority=0), taken("m0"), put("m1", priority=9)]
    back = [*start, release("d0")]
    nowhere = replace(WHOLE, release_position=None)
    assert broken([*back, taken("m0", again=True)], nowhere) == []
    assert broken([*back, taken("m0", again=True)], WHOLE) == ["priority-order"]
    never = [make(order=Priority(10)), put("m0", priority=0), put("m1", priority=9)]
    assert broken([*never, taken("m0")], nowhere) == ["priority-order"]


@pytest.mark.parametrize("claims", [TAIL, HEAD], ids=["tail", "head"])
def test_the_tail_and_the_head_are_those_of_a_priority_level(claims: Capabilities) -> None:
    start = [make(order=Priority(10)), put("m0", priority=9), put("m1", priority=0)]
    back = [*start, taken("m0"), release("d0")]
    assert broken([*back, taken("m0", again=True)], claims) == []
    # A broker that overtakes a returned message did not put it back in its place.
    assert broken([*back, taken("m1")], claims) == ["returns-where-claimed"]


# The clock.


def test_the_holder_of_an_expired_message_may_settle_it_but_not_give_it_back() -> None:
    start = [make(), put("m0", expires=1), HELD, advance(1)]
    assert broken([*start, failed(acknowledge("d0"), "refused")], WHOLE) == ["does-what-it-claims"]
    back = [*start, release("d0")]
    assert broken([*back, get(), drain()], WHOLE) == []
    again = get(given("m0", None, delivery="g0", again=True))
    assert broken([*back, again], WHOLE) == ["gone-when-expired"]


def test_times_count_from_the_publish() -> None:
    start = [make(), advance(5), put("m0", due=1, expires=2), put("m1")]
    assert broken([*start, get(given("m1", None)), get()], WHOLE) == []
    assert broken([*start, HELD], WHOLE) == ["held-until-its-time"]
    assert broken([*start, advance(1), HELD], WHOLE) == []
    assert broken([*start, advance(1), get(given("m1", None))], WHOLE) == ["fifo-order"]
    assert broken([*start, advance(2), HELD], WHOLE) == ["gone-when-expired"]


def test_what_becomes_due_has_to_be_given() -> None:
    start = [make(), subscribe("c"), put("m0", due=1), drain(), advance(1)]
    assert broken([*start, drain(given("m0", "c"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == ["quiescence"]


def test_an_event_told_after_the_clock_moved_may_have_happened_before() -> None:
    start = [make(), subscribe("c"), put("m0", expires=1), advance(1)]
    assert broken([*start, drain(given("m0", "c"))], WHOLE) == []
    assert broken([*start, drain()], WHOLE) == []
    assert broken([*start, drain(), put("m1"), drain(given("m0", "c"))], WHOLE) == [
        "gone-when-expired"
    ]


def test_a_browser_need_not_be_shown_what_was_not_due_when_it_went_by() -> None:
    start = [make(), put("m0", due=1), subscribe("b", mode="browse"), put("m1")]
    passed = [*start, drain(given("m1", "b")), advance(1)]
    assert broken([*passed, drain()], WHOLE) == []
    due = [make(), put("m0", due=1), advance(1), subscribe("b", mode="browse"), drain()]
    assert broken(due, WHOLE) == ["browser-sees-all"]


# Crashes (10, 11, 27, 37).


def test_what_a_crash_tells_was_before_it_and_nothing_is_told_later() -> None:
    start = [*DURABLE, subscribe("c")]
    told = [*start, crash(given("m0", "c")), RESTART]
    for again in (True, False):
        assert broken([*told, get(given("m0", None, delivery="g", again=again))], WHOLE) == []
    assert broken([*told, get()], WHOLE) == ["get-finds"]
    late = [*start, crash(), RESTART, drain(given("m0", "c"))]
    assert broken(late, WHOLE) == ["only-to-subscribers"]


def test_a_message_not_acquired_before_a_crash_is_not_marked_as_redelivered() -> None:
    start = [*DURABLE, crash(), RESTART]
    assert broken([*start, get(given("m0", None, again=True)), drain()], WHOLE) == [
        "redelivered-flag"
    ]


@pytest.mark.parametrize(("durable", "persistent"), [(True, False), (False, True), (False, False)])
def test_only_persistent_messages_of_durable_queues_survive(
    durable: bool, persistent: bool
) -> None:
    start = [make(durable=durable), put("m0", persistent=persistent), crash(), RESTART]
    again = [*start, *([] if durable else [make()])]
    assert broken([*again, get(), drain()], WHOLE) == []
    assert broken([*again, get(given("m0", None))], WHOLE) == ["transient-is-lost"]
    if not durable:
        assert broken([*start, get()], WHOLE) == ["refuses-what-it-must"]


def test_a_restart_keeps_places_and_brings_back_no_consumers() -> None:
    start = [make(durable=True), *(put(f"m{n}", persistent=True) for n in range(3))]
    start += [HELD, subscribe("c", given("m1", "c"), messages=1), crash(), RESTART]
    m0, m1 = (given(f"m{n}", None, delivery=f"g{n}", again=True) for n in range(2))
    assert broken([*start, drain(), get(m0), get(m1), taken("m2")], WHOLE) == []
    assert broken([*start, taken("m2")], WHOLE) == ["fifo-order"]
    assert broken([*start, failed(window("c"), "refused")], WHOLE) == []
    assert broken([*start, failed(acknowledge("d0"), "refused")], WHOLE) == []
    assert broken([*start, subscribe("d", given("m0", "d", delivery="x"), messages=1)], WHOLE) == []


def test_a_queue_that_deletes_itself_waits_for_its_next_consumer_after_a_restart() -> None:
    start = [make(durable=True, auto_delete=True), subscribe("c"), crash(), RESTART]
    assert broken([*start, drain()], WHOLE) == []
    used = [*start, subscribe("d"), cancel("d")]
    assert broken([*used, drain(deleted())], WHOLE) == []
    assert broken([*used, drain()], WHOLE) == ["auto-delete-happens"]
    assert broken([*start, drain(deleted())], WHOLE) == ["auto-delete-when-unused"]


@pytest.mark.parametrize("claims", [TAIL, HEAD], ids=["tail", "head"])
def test_after_a_restart_what_had_returned_may_be_at_either_place(claims: Capabilities) -> None:
    start = [make(durable=True), put("m0", persistent=True), put("m1", persistent=True)]
    start += [HELD, release("d0"), crash(), RESTART]
    first, second = given("m0", None, delivery="g0", again=True), given("m1", None)
    assert broken([*start, get(first), get(second)], claims) == []
    assert broken([*start, get(second), get(first)], claims) == []


@pytest.mark.parametrize("claims", [TAIL, HEAD], ids=["tail", "head"])
def test_a_consumer_may_wait_at_what_may_be_first_after_a_restart(claims: Capabilities) -> None:
    def restarted(size: int) -> list[Told]:
        start = [make(durable=True), put("m0", persistent=True, size=size)]
        start += [put("m1", persistent=True), HELD, crash(), RESTART]
        return [*start, subscribe("c", size=4), drain()]

    assert broken(restarted(size=5), claims) == []
    [breach] = breaches(restarted(size=4), claims)
    assert breach.requirement == "quiescence"
    assert expected_and_seen(breach)[0] == "m0 or m1 to be given to a consumer that is free"
