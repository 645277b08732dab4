"""Selectors: matching, and their effect on other consumers and places."""

from __future__ import annotations

import pytest

from brokerproof.reference.qpid.push.pointers import ReleasedPointer
from brokerproof.reference.qpid.push.subscriptions import is_equal, meets
from brokerproof.spec.messages import Message, Priority, PropertyValue
from brokerproof.spec.protocol.operations import Consume
from tests.reference.front.reference_bench import Bench, queue_in, subscription_in

every_variant = pytest.mark.parametrize(
    "address",
    [
        "qpid-push",
        "qpid-push?pointer=inclusive",
        "qpid-push?pointer=published",
        "qpid-push?runner=drain",
        "qpid-pull",
    ],
)


@every_variant
def test_a_consumer_is_given_what_it_selects_and_the_rest_waits_for_others(address: str) -> None:
    bench = Bench(address)
    bench.publish("plain")
    bench.publish("red", colour="red")
    bench.publish("blue", colour="blue")
    assert bench.consume("c0", colour="red") + bench.drain() == ["c0:red"]
    assert bench.consume("c1") + bench.drain() == ["c1:plain", "c1:blue"]


@every_variant
def test_an_arrival_passes_by_a_consumer_that_does_not_want_it(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", colour="red")
    bench.consume("c1")
    bench.drain()
    assert bench.publish("a", "b", colour="blue") + bench.drain() == ["c1:a", "c1:b"]


@every_variant
def test_a_consumer_is_given_a_message_behind_one_that_it_does_not_want(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", colour="red")
    bench.publish("a", colour="blue")
    bench.drain()
    assert bench.publish("b", colour="red") + bench.drain() == ["c0:b"]
    assert bench.get() == ["a"]


@every_variant
def test_what_one_does_not_want_takes_no_room(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 1, size=2, colour="red")
    bench.publish("large", size=9)
    assert bench.publish("a", "b", colour="red") + bench.drain() == ["c0:a"]
    assert bench.acknowledge("a") + bench.drain() == ["c0:b"]


@every_variant
def test_a_released_message_is_for_the_consumers_that_want_it(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", colour="blue")
    bench.publish("b", colour="red")
    assert bench.get() == ["a"]
    assert bench.consume("c0", colour="red") + bench.drain() == ["c0:b"]
    assert bench.release("a") + bench.drain() == []
    assert bench.release("b") + bench.drain() == ["c0:b"]
    assert bench.consume("c1", colour="blue") + bench.drain() == ["c1:a"]


@every_variant
def test_of_several_that_come_back_the_first_that_is_wanted_goes_first(address: str) -> None:
    bench = Bench(address)
    for message in ("a", "b", "c"):
        bench.publish(message, colour="blue" if message == "a" else "red")
    bench.consume("c0", 1, colour="red")
    bench.drain()
    assert bench.get() == ["a"]
    assert bench.get() == ["c"]
    bench.release("c")
    bench.release("a")
    assert bench.release("b") + bench.drain() == ["c0:b"]
    assert bench.acknowledge("b") + bench.drain() == ["c0:c"]
    assert bench.get() == ["a"]


def test_a_pointer_goes_back_to_a_released_message_that_its_consumer_does_not_want() -> None:
    # As in the releases of Qpid that keep a released pointer: the selector is tested when the
    # pointer reaches the message, and here the runner has not run yet.
    bench = Bench("qpid-push?runner=drain")
    bench.publish("a", colour="blue")
    bench.publish("b", colour="red")
    assert bench.get() == ["a"]
    bench.consume("c0", 1, colour="red")
    assert bench.drain() == ["c0:b"]
    bench.release("a")
    pointer = subscription_in(bench.broker, "c0").pointer
    assert isinstance(pointer, ReleasedPointer)
    place = pointer.place.get()
    assert place is not None
    assert place[1] is next(iter(queue_in(bench.broker).entries.iterator()))
    assert bench.drain() == []


@every_variant
def test_a_consumer_closes_itself_when_nothing_is_left_that_it_wants(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", colour="blue")
    bench.publish("b", colour="red")
    assert bench.consume("c0", auto_close=True, colour="red") + bench.drain() == ["c0:b"]
    assert bench.closed == ["c0"]
    bench.publish("c", "d", colour="red")
    bench.consume("c1", 1, auto_close=True, colour="red")
    bench.drain()
    assert bench.closed == ["c0"]
    assert bench.acknowledge("c") + bench.drain() == ["c1:d"]
    assert bench.closed == ["c0", "c1"]


@every_variant
def test_a_browser_is_shown_what_it_selects(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", colour="red")
    bench.publish("b", colour="blue")
    # Behind the last that it wants: the inclusive pointer shows the last of a queue for ever.
    bench.publish("c", colour="red")
    bench.publish("d", colour="blue")
    assert bench.consume("c0", mode="browse", colour="red") + bench.drain() == ["c0:a", "c0:c"]
    assert bench.get() == ["a"]


@every_variant
def test_a_get_has_no_selector_and_a_flush_keeps_to_its_own(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 0, colour="red")
    bench.publish("a", colour="blue")
    bench.publish("b", "c", colour="red")
    bench.drain()
    assert bench.credit("c0", 1) + bench.flush("c0") + bench.drain() == ["c0:b"]
    assert bench.get() + bench.get() == ["a", "c"]


@pytest.mark.parametrize(
    "address", ["qpid-push", "qpid-push?pointer=inclusive", "qpid-push?runner=drain", "qpid-pull"]
)
def test_more_urgent_messages_that_are_not_wanted_hold_no_consumer_up(address: str) -> None:
    bench = Bench(address, Priority(10))
    bench.publish("low", "lower", priority=1, colour="red")
    bench.publish("high", priority=9, colour="blue")
    assert bench.consume("c0", 1, colour="red") + bench.drain() == ["c0:low"]
    bench.publish("higher", priority=9, colour="blue")
    bench.publish("middle", priority=5, colour="red")
    assert bench.acknowledge("low") + bench.drain() == ["c0:middle"]
    assert bench.acknowledge("middle") + bench.drain() == ["c0:lower"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, 2, False),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (True, False, False),
        (1, "1", False),
        ("a", "a", True),
        ("a", "A", False),
    ],
)
def test_values_are_equal_as_json_has_it(
    one: PropertyValue, other: PropertyValue, equal: bool
) -> None:
    assert is_equal(one, other) is is_equal(other, one) is equal
    assert meets(Message(id="m", properties={"n": one}), {"n": other}) is equal


def test_all_that_is_asked_for_must_be_there() -> None:
    message = Message(id="m", properties={"m": 1, "n": 1})
    assert meets(message, {"n": 1})
    assert meets(message, {"m": 1, "n": 1})
    assert not meets(message, {"m": 1, "n": 2})
    assert not meets(message, {"o": 1})


def test_a_selector_that_asks_for_nothing_is_none() -> None:
    bench = Bench()
    bench.ok(Consume(channel="ch", queue="q", consumer="c0", selector={}))
    bench.ok(Consume(channel="ch", queue="q", consumer="c1", selector=None))
    for name in ("c0", "c1"):
        assert subscription_in(bench.broker, name).selector is None


@pytest.mark.parametrize("other", [True, "1", 2])
def test_states_that_differ_in_a_value_have_different_names(other: PropertyValue) -> None:
    def name(value: PropertyValue, wanted: PropertyValue) -> object:
        bench = Bench()
        bench.publish("a", n=value)
        bench.consume("c0", n=wanted, m="x")
        return bench.broker.fingerprint()

    assert name(1, 1) == name(1, 1)
    assert name(1, 1) != name(other, 1)
    assert name(1, 1) != name(1, other)
