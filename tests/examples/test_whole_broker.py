"""The whole broker keeps its promises: a readable example for each rule that can be observed.

Numbers in brackets are the rules of driver protocol 1. Clocks, parking, crashes, refusals, laziness
and copies are in `test_whole_broker_options`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.spec.messages import Fifo, LastValue, Priority, PriorityMapping, Sorted
from brokerproof.spec.protocol.operations import ConsumeMode
from examples.whole_broker import WholeBroker, make_broker, make_head_broker, make_tail_broker
from tests.examples.whole_broker_client import Talk, with_messages

# Orders.


def test_what_comes_first_goes_first() -> None:
    assert with_messages("m0", "m1", "m2").take_all() == ["m0", "m1", "m2"]


def test_in_a_fifo_queue_priority_has_no_effect() -> None:  # (35)
    talk = Talk()
    talk.publish("low", priority=0)
    talk.publish("high", priority=9)
    assert talk.take_all() == ["low", "high"]


def test_higher_levels_go_first_and_arrival_decides_within_one() -> None:
    talk = Talk(order=Priority(2))
    for message, priority in {"a": 4, "b": 5, "c": 0, "d": 9}.items():
        talk.publish(message, priority=priority)
    assert talk.take_all() == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    ("mapping", "taken"),
    [
        ("amqp", ["p5", "p9", "p4", "p0", "p3", "p1"]),  # 0-3, 4, 5-9
        ("clamp", ["p3", "p4", "p5", "p9", "p1", "p0"]),  # 0, 1, 2-9
    ],
)
def test_the_mapping_says_what_three_levels_are(  # (4)
    mapping: PriorityMapping, taken: list[str]
) -> None:
    talk = Talk(WholeBroker(priority_mapping=mapping), Priority(3))
    for priority in (0, 3, 4, 1, 5, 9):
        talk.publish(f"p{priority}", priority=priority)
    assert talk.take_all() == taken


def test_a_sorted_queue_gives_the_smallest_first() -> None:
    talk = Talk(order=Sorted("key"))
    for message, key in {"a": 2, "b": 10, "c": 1.5, "d": 2}.items():
        talk.publish(message, key=key)
    assert talk.take_all() == ["c", "a", "d", "b"]


def test_a_sorted_queue_takes_strings_or_numbers_but_not_both() -> None:
    talk = Talk(order=Sorted("key"))
    assert talk.publish("none") == ["refused"]
    assert talk.publish("truth", key=True) == ["refused"]
    assert talk.publish("b", key="b") == []
    assert talk.publish("one", key=1) == ["refused"]
    talk.publish("a", key="a")
    assert talk.take_all() == ["a", "b"]


def test_a_last_value_queue_keeps_the_last_of_each_value_at_the_tail() -> None:
    talk = Talk(order=LastValue("key"))
    talk.publish("old", key=1)
    talk.publish("plain")
    talk.publish("truth", key=True)  # which is not 1 (23)
    talk.publish("new", key=1.0)
    assert talk.take_all() == ["plain", "truth", "new"]


def test_what_is_held_is_replaced_when_it_would_return() -> None:
    talk = Talk(order=LastValue("key"))
    talk.publish("held", key=1)
    talk.publish("other", key=2)
    talk.get()
    talk.get()
    talk.publish("later", key=1)
    assert talk.take_all() == ["later"]
    talk.release("held")
    talk.release("other")
    assert talk.take_all() == ["other"]


# Settlement and return.


def test_settlements_are_final_and_a_second_one_is_refused() -> None:  # (13)
    talk = with_messages("m0", "m1", "m2")
    for settle in (talk.acknowledge, talk.reject):
        [message] = [line.split()[0] for line in talk.get()]
        assert settle(message) == []
        assert [each(message) for each in (talk.acknowledge, talk.release, talk.reject)] == [
            ["refused"]
        ] * 3
    assert talk.take_all() == ["m2"]


def test_what_comes_back_is_marked() -> None:  # (11)
    talk = with_messages("m0")
    talk.browse("b")
    assert talk.get() == ["m0 → get"]
    talk.release("m0")
    assert talk.browse("b2") == ["m0 → b2 again"]
    assert talk.get(mode="automatic") == ["m0 → get again"]


def test_browsing_marks_nothing() -> None:  # (11)
    talk = with_messages("m0")
    assert talk.browse("b") == ["m0 → b"]
    assert talk.acknowledge("m0") == ["refused"]
    assert talk.get() == ["m0 → get"]


def test_a_released_message_goes_straight_back_to_the_only_consumer() -> None:  # (34)
    talk = with_messages("m0")
    assert talk.consume("c") == ["m0 → c"]
    assert talk.release("m0") == ["m0 → c again"]


@pytest.mark.parametrize(
    ("broker", "taken"),
    [
        (make_broker, ["m0", "m1", "m2", "m3"]),
        (make_tail_broker, ["m2", "m3", "m1", "m0"]),
        (make_head_broker, ["m1", "m0", "m2", "m3"]),
    ],
)
def test_each_position_of_return(
    broker: Callable[[], WholeBroker], taken: list[str]
) -> None:  # (14)
    talk = with_messages("m0", "m1", "m2", "m3", broker=broker())
    talk.get()
    talk.get()
    talk.release("m1")
    talk.release("m0")
    assert talk.take_all() == taken


@pytest.mark.parametrize(
    ("broker", "taken"),
    [
        (make_broker, ["high", "m0", "m1", "m2"]),
        (make_tail_broker, ["high", "m2", "m1", "m0"]),
        (make_head_broker, ["high", "m1", "m0", "m2"]),
    ],
)
def test_a_closing_channel_returns_in_the_order_of_delivery(  # (14)
    broker: Callable[[], WholeBroker], taken: list[str]
) -> None:
    talk = Talk(broker(), Priority(2))
    talk.publish("high", priority=9)
    for message in ("m0", "m1", "m2"):
        talk.publish(message, odd=message == "m1")
    talk.consume("c", selector={"odd": True})  # m1 is delivered first
    talk.get(channel="other")
    talk.get()
    talk.close()
    talk.close("other")
    assert talk.take_all() == taken


def test_closing_a_channel_releases_what_a_cancelled_consumer_held() -> None:  # (32)
    talk = with_messages("m0", "m1")
    talk.consume("c", credit=(1, None))
    assert talk.cancel("c") == []
    assert talk.cancel("c") == ["refused"]
    assert talk.get(mode="automatic") == ["m1 → get"]
    talk.close()
    assert talk.get() == ["m0 → get again"]


# Windows.


def test_a_window_of_messages_lets_through_as_many() -> None:
    talk = with_messages("m0", "m1", "m2")
    assert talk.consume("c", credit=(2, None)) == ["m0 → c", "m1 → c"]
    assert talk.acknowledge("m1") == ["m2 → c"]


def test_a_consumer_waits_at_what_is_too_large_and_others_may_take_it() -> None:  # (5)
    talk = Talk()
    talk.publish("large", size=4)
    talk.publish("small", size=1)
    assert talk.consume("c", credit=(None, 3)) == []
    assert talk.get() == ["large → get", "small → c"]


def test_bytes_are_counted_until_settled() -> None:
    talk = Talk()
    for message in ("m0", "m1", "m2"):
        talk.publish(message, size=2)
    assert talk.consume("c", credit=(None, 5)) == ["m0 → c", "m1 → c"]
    assert talk.reject("m0") == ["m2 → c"]


def test_a_broker_may_give_what_is_larger_than_the_window_to_the_idle() -> None:  # (5)
    talk = Talk(WholeBroker(oversize="when_idle"))
    talk.publish("large", size=9)
    talk.publish("small", size=1)
    assert talk.consume("paused", credit=(None, 0)) == []
    assert talk.consume("c", credit=(None, 3)) == ["large → c"]
    assert talk.acknowledge("large") == ["small → c"]


def test_credit_replaces_both_limits_and_takes_nothing_back() -> None:  # (22)
    talk = with_messages("m0", "m1", "m2", "m3")
    talk.consume("c", credit=(2, None))
    assert talk.credit(1, of="c") == []
    assert talk.acknowledge("m0") == []
    assert talk.acknowledge("m1") == ["m2 → c"]
    assert talk.credit(None, 1, of="c") == []
    assert talk.credit(of="c") == ["m3 → c"]


def test_a_channel_has_a_window_that_its_consumers_share() -> None:
    talk = with_messages("m0", "m1", "m2", "m3")
    talk.credit(2, of_channel="ch")
    talk.consume("c0", credit=(1, None))
    assert talk.consume("c1") == ["m1 → c1"]
    talk.consume("c2", credit=(None, None))
    assert talk.acknowledge("m1") == ["m2 → c1"]
    # What a consumer that has left holds fills no window any more (32), nor what a get holds (19).
    assert talk.cancel("c1") == ["m3 → c2"]


def test_a_closed_channel_forgets_its_window() -> None:  # (25)
    talk = with_messages("m0")
    talk.credit(0, of_channel="ch")
    assert talk.consume("c") == []
    talk.close()
    assert talk.consume("c2") == ["m0 → c2"]


@pytest.mark.parametrize("mode", ["automatic", "browse"])
def test_a_consumer_that_settles_nothing_fills_no_window_but_is_stopped_by_one(
    mode: ConsumeMode,
) -> None:  # (3)
    talk = with_messages("m0", "m1")
    assert talk.consume("c", mode=mode, credit=(1, 2)) == ["m0 → c", "m1 → c"]
    talk.publish("large", size=3)
    assert talk.publish("m2") == []
    assert talk.credit(1, 3, of="c") == ["large → c", "m2 → c"]
    talk.credit(0, of="c")
    assert talk.publish("m3") == []
    assert talk.credit(1, of="c") == ["m3 → c"]


def test_get_asks_no_window() -> None:  # (19)
    talk = with_messages("m0")
    talk.credit(0, 0, of_channel="ch")
    assert talk.get() == ["m0 → get"]


# Who is given what.


def test_a_selector_compares_as_json_does() -> None:  # (23)
    talk = Talk()
    talk.publish("one", n=1)
    talk.publish("true", n=True)
    talk.publish("text", n="1")
    talk.publish("more", n=1.0, colour="red")
    talk.publish("none")
    assert talk.consume("c", selector={"n": 1}) == ["one → c", "more → c"]
    assert talk.consume("t", selector={"n": True}) == ["true → t"]
    assert talk.consume("r", selector={"n": 1, "colour": "red"}) == []
    assert talk.consume("all", selector={}) == ["text → all", "none → all"]


def test_no_consumer_is_served_before_one_of_higher_priority_that_has_room() -> None:  # (20)
    talk = Talk()
    talk.consume("low", priority=-1)
    talk.consume("high", priority=2, credit=(1, None))
    assert talk.publish("m0") == ["m0 → high"]
    assert talk.publish("m1") == ["m1 → low"]
    assert talk.acknowledge("m0") == []
    assert talk.publish("m2") == ["m2 → high"]


def test_one_of_higher_priority_goes_on_when_what_he_waited_at_is_taken() -> None:  # (5, 20)
    talk = Talk()
    talk.publish("large", size=9)
    talk.publish("small")
    talk.consume("high", priority=1, credit=(None, 1))
    talk.credit(0, of_channel="paused")
    talk.consume("low0", channel="paused")
    talk.consume("low1", channel="paused")
    assert talk.credit(of_channel="paused") == ["large → low0", "small → high"]


def test_a_consumer_of_several_queues_is_given_from_each() -> None:
    talk = Talk()
    talk.declare("r")
    talk.publish("large", size=9)
    talk.publish("behind")
    talk.publish("other", to="r")
    assert talk.consume("c", "q", "r", credit=(None, 2)) == ["other → c"]
    assert talk.get() == ["large → get", "behind → c"]


def test_an_exclusive_consumer_and_another_refuse_each_other() -> None:
    talk = with_messages("m0", "m1")
    talk.declare("r")
    talk.browse("b")
    assert talk.consume("c", exclusive=True) == ["refused"]
    talk.cancel("b")
    assert talk.consume("c", exclusive=True, credit=(1, None)) == ["m0 → c"]
    assert talk.browse("b2") == ["refused"]
    assert talk.consume("d", "r", "q") == ["refused"]
    assert talk.get() == ["m1 → get"]  # it is no consumer
    talk.cancel("c")
    assert talk.browse("b3") == []


# Browsers.


def test_a_browser_is_shown_what_is_available_and_what_arrives_once() -> None:  # (9)
    talk = with_messages("m0", "m1")
    talk.get()
    assert talk.browse("b") == ["m1 → b"]
    assert talk.publish("m2") == ["m2 → b"]
    assert talk.drain() == []


def test_a_release_behind_a_browsers_place_is_not_shown() -> None:  # (9)
    talk = with_messages("m0", "m1")
    talk.get()
    talk.browse("b")
    assert talk.release("m0") == []
    assert talk.browse("b2") == ["m0 → b2 again", "m1 → b2"]


@pytest.mark.parametrize("broker", [make_tail_broker, make_head_broker])
def test_no_return_shows_a_browser_anything_again(broker: Callable[[], WholeBroker]) -> None:  # (9)
    talk = with_messages("m0", "m1", broker=broker())
    talk.browse("b")
    talk.get()
    assert talk.release("m0") == []


def test_a_browser_is_shown_an_arrival_of_higher_priority_and_nothing_twice() -> None:  # (9)
    talk = Talk(order=Priority(2))
    talk.publish("low", priority=0)
    talk.browse("b")
    assert talk.publish("high", priority=9) == ["high → b"]


def test_a_paused_browser_keeps_its_place() -> None:  # (3, 9)
    talk = with_messages("m0")
    talk.browse("b", credit=(0, None))
    talk.get()
    talk.release("m0")
    assert talk.credit(of="b") == ["m0 → b again"]


# What ends by itself.


def test_auto_close_comes_after_the_last_delivery() -> None:  # (6)
    talk = with_messages("m0", "m1")
    assert talk.consume("c", auto_close=True) == ["m0 → c", "m1 → c", "c closed"]
    assert talk.acknowledge("m0") == []
    assert talk.cancel("c") == ["refused"]  # (39)
    assert talk.consume("d", auto_close=True, credit=(0, None)) == ["d closed"]


def test_auto_close_waits_while_something_is_left_for_it() -> None:  # (6)
    talk = with_messages("m0", "m1")
    assert talk.consume("c", auto_close=True, credit=(1, None)) == ["m0 → c"]
    assert talk.get() == ["m1 → get", "c closed"]


def test_a_browser_closes_when_its_place_is_at_the_end() -> None:  # (6)
    talk = with_messages("m0")
    shown = talk.consume("b", mode="browse", auto_close=True)
    assert shown == ["m0 → b", "b closed"]


def test_an_auto_delete_queue_goes_with_its_last_consumer() -> None:  # (7, 17)
    talk = Talk()
    talk.declare("t", auto_delete=True)
    talk.publish("m0", to="t")
    talk.publish("m1", to="t")
    assert talk.get("t") == ["m0 → get"]  # a get does not count as a consumer (19)
    talk.consume("c", "t", credit=(0, None))
    talk.consume("b", "t", mode="browse", credit=(0, None))
    assert talk.cancel("c") == []
    assert talk.cancel("b") == ["t deleted"]
    assert talk.release("m0") == ["refused"]
    talk.declare("t")
    assert talk.get("t") == []  # declared again it is empty (25)


def test_a_closing_comes_before_the_deletion_that_it_caused() -> None:  # (21)
    talk = Talk()
    talk.declare("t", auto_delete=True)
    assert talk.consume("c", "t", auto_close=True) == ["c closed", "t deleted"]


def test_unused_queues_go_when_a_channel_closes_and_its_consumers_are_not_told() -> None:
    talk = Talk()
    for queue in ("t", "u"):
        talk.declare(queue, auto_delete=True)
    talk.consume("c", "t", "u")
    talk.consume("d", "u", channel="other")
    assert talk.close() == ["t deleted"]  # (8, 33)
    assert talk.close("other") == ["u deleted"]
    assert talk.close("never seen") == []  # (25)


def test_delete_tells_the_consumers_but_not_the_queue() -> None:  # (8, 17)
    talk = with_messages("m0")
    talk.declare("t", auto_delete=True)
    talk.consume("c", "q", "t")
    assert talk.delete() == ["c closed", "t deleted"]
    assert talk.acknowledge("m0") == ["refused"]
    assert talk.delete() == ["refused"]


def test_purge_drops_what_is_available_only() -> None:  # (31)
    talk = with_messages("m0", "m1")
    talk.get()
    assert talk.purge() == []
    assert talk.get() == []
    talk.release("m0")
    assert talk.take_all() == ["m0"]


def test_declaring_again_is_well_if_everything_is_equal() -> None:  # (26)
    talk = with_messages("m0")
    assert talk.declare("q", Fifo()) == []
    assert talk.declare("q", Priority(2)) == ["refused"]
    assert talk.declare("q", durable=True) == ["refused"]
    assert talk.declare("p", Priority(11)) == ["unsupported"]
    assert talk.take_all() == ["m0"]
