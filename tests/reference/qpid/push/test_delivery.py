"""The reference broker's deliveries and their order: the documents' examples."""

from __future__ import annotations

import itertools

import pytest

from brokerproof.spec.messages import PRIORITIES, Fifo, Message, Order, Priority, level_of
from brokerproof.spec.protocol.operations import Declare, Publish
from tests.reference.front.reference_bench import Bench, queue_in

ADDRESSES = [
    f"qpid-push?pointer={pointer}&runner={runner}"
    for pointer in ("released", "inclusive")
    for runner in ("eager", "drain")
]
ORDERS: list[Order] = [Fifo(), Priority(1), Priority(2), Priority(10)]

every_variant = pytest.mark.parametrize("address", ADDRESSES)
every_order = pytest.mark.parametrize("order", ORDERS, ids=str)


@every_variant
@every_order
def test_messages_of_one_priority_are_delivered_first_in_first_out(
    address: str, order: Order
) -> None:
    bench = Bench(address, order)
    bench.publish("a", "b", "c")
    told = bench.consume("c0") + bench.drain()
    assert told == ["c0:a", "c0:b", "c0:c"]


@every_variant
def test_an_arrival_goes_straight_to_a_consumer_that_waits_for_it(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0")
    bench.drain()
    assert bench.publish("a") == ["c0:a"]


@every_variant
def test_arrivals_are_offered_round(address: str) -> None:
    bench = Bench(address)
    for consumer in ("c0", "c1", "c2"):
        bench.consume(consumer)
    bench.drain()
    told = bench.publish("a", "b", "c", "d")
    assert told == ["c0:a", "c1:b", "c2:c", "c0:d"]


@every_variant
@pytest.mark.parametrize("levels", range(1, 11))
def test_higher_levels_go_first_whatever_the_order_of_arrival(address: str, levels: int) -> None:
    bench = Bench(address, Priority(levels))
    arrivals = [(f"m{priority}{turn}", priority) for turn in "ab" for priority in (4, 9, 0, 5, 3)]
    for message, priority in arrivals:
        bench.publish(message, priority=priority)
    expected = sorted(arrivals, key=lambda one: -level_of(one[1], Priority(levels)))
    told = bench.consume("c0") + bench.drain()
    assert told == [f"c0:{message}" for message, _ in expected]


@every_variant
def test_priority_has_no_effect_in_a_fifo_queue(address: str) -> None:
    bench = Bench(address)
    for priority in PRIORITIES:
        bench.publish(f"m{priority}", priority=priority)
    told = bench.consume("c0") + bench.drain()
    assert told == [f"c0:m{priority}" for priority in PRIORITIES]


@every_order
@pytest.mark.parametrize("pointer", ["released", "inclusive"])
def test_an_arrival_never_overtakes_what_waits_for_the_same_consumer(
    pointer: str, order: Order
) -> None:
    # There is room again and the runner has not run yet, so the arrival finds a consumer that could
    # take it.
    bench = Bench(f"qpid-push?pointer={pointer}&runner=drain", order)
    bench.consume("c0", 1)
    bench.drain()
    assert bench.publish("a", "b") == ["c0:a"]
    bench.acknowledge("a")
    assert bench.publish("c") == []
    assert bench.drain() == ["c0:b"]
    assert bench.acknowledge("b") + bench.drain() == ["c0:c"]


@every_variant
def test_an_arrival_of_higher_priority_is_found_by_a_pointer_that_is_ahead(address: str) -> None:
    bench = Bench(address, Priority(10))
    bench.consume("c0", 1)
    bench.publish("low", "later", priority=0)
    bench.drain()
    bench.publish("high", priority=9)
    told = bench.acknowledge("low") + bench.drain()
    assert told == ["c0:high"]


@every_variant
def test_a_level_with_larger_numbers_does_not_hide_an_arrival(address: str) -> None:
    # Entries are numbered within their level, so order must not be read off the numbers alone: the
    # pointer stands on the first of the low level when the third of the high level arrives.
    bench = Bench(address, Priority(10))
    bench.consume("c0", 1)
    bench.publish("high one", "high two", priority=4)
    bench.publish("low", priority=0)
    bench.acknowledge("high one")
    bench.drain()
    bench.acknowledge("high two")
    bench.drain()
    bench.publish("high three", priority=4)
    told = bench.acknowledge("low") + bench.drain()
    assert told == ["c0:high three"]


@every_variant
def test_one_run_delivers_more_messages_than_its_slice_by_running_again(address: str) -> None:
    bench = Bench(address)
    messages = [f"m{number:02}" for number in range(35)]
    bench.consume("c0", 0)
    bench.publish(*messages)
    told = bench.credit("c0", None) + bench.drain()
    assert told == [f"c0:{message}" for message in messages]


@every_variant
def test_a_slice_ends_with_several_consumers_too(address: str) -> None:
    bench = Bench(address)
    messages = [f"m{number:02}" for number in range(35)]
    for consumer in ("c0", "c1", "c2"):
        bench.consume(consumer, 0)
    bench.publish(*messages)
    told = []
    for consumer in ("c0", "c1", "c2"):
        told += bench.credit(consumer, 9)
    told += bench.drain()
    assert [one.partition(":")[2] for one in told] == messages[:27]


@pytest.mark.parametrize("pointer", ["released", "inclusive", "published"])
def test_two_queues_on_one_executor_take_turns_by_slices(pointer: str) -> None:
    bench = Bench(f"qpid-push?pointer={pointer}&runner=drain")
    bench.ok(Declare(queue="other", order=Fifo()))
    for consumer, queue in (("c0", "q"), ("c1", "other")):
        bench.consume(consumer, 0, queue=queue)
        bench.publish(*[f"{queue}{number:02}" for number in range(25)], queue=queue)
    bench.drain()
    told = bench.credit("c0", None) + bench.credit("c1", None) + bench.drain()
    # Ten of the one, ten of the other, and so on: no queue waits for the other one's end.
    turns = [consumer for consumer, _ in itertools.groupby(one.partition(":")[0] for one in told)]
    assert turns == ["c0", "c1"] * 3
    assert [told.count(one) for one in dict.fromkeys(told)] == [1] * 50


@every_variant
def test_two_queues_do_not_touch_each_other(address: str) -> None:
    bench = Bench(address)
    bench.ok(Declare(queue="other", order=Priority(2)))
    bench.consume("c0")
    bench.consume("c1", queue="other")
    bench.drain()
    assert bench.publish("a") == ["c0:a"]
    assert bench.publish("b", queue="other") == ["c1:b"]
    bench.purge()
    assert bench.publish("c", queue="other") == ["c1:c"]


def test_a_scheduled_runner_waits_for_the_drain_and_arrivals_do_not() -> None:
    bench = Bench("qpid-push?runner=drain")
    bench.consume("c0", 1)
    assert bench.publish("a", "b") == ["c0:a"]
    assert bench.acknowledge("a") == []
    assert bench.drain() == ["c0:b"]


def test_each_run_of_the_runner_is_one_slice() -> None:
    bench = Bench("qpid-push?runner=drain")
    for consumer in ("c0", "c1", "c2"):
        bench.consume(consumer)
        bench.drain()
        bench.credit(consumer, 0)
    bench.publish(*[f"m{number}" for number in range(25)])
    for consumer in ("c0", "c1", "c2"):
        bench.credit(consumer, None)
    executor, outbox = bench.broker.executor, bench.broker.outbox
    slices = []
    while executor.jobs:
        before = len(outbox.events)
        executor.run_next()
        slices.append(len(outbox.events) - before)
    assert slices == [10, 10, 5]


@every_variant
def test_automatic_consumers_are_never_suspended_but_by_a_window_of_nothing(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 1, mode="automatic")
    bench.drain()
    assert bench.publish("a", "b") == ["c0:a", "c0:b"]
    bench.credit("c0", 0)
    assert bench.publish("c") + bench.drain() == []


@every_variant
def test_credit_bounds_what_is_unsettled(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 2)
    told = bench.publish("a", "b", "c", "d") + bench.drain()
    assert told == ["c0:a", "c0:b"]
    assert bench.acknowledge("b") + bench.drain() == ["c0:c"]
    assert bench.credit("c0", 1) + bench.drain() == []
    assert bench.acknowledge("a") + bench.drain() == []
    assert bench.acknowledge("c") + bench.drain() == ["c0:d"]


@every_variant
def test_a_paused_consumer_leaves_messages_to_others(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 0)
    bench.consume("c1")
    assert bench.publish("a") + bench.drain() == ["c1:a"]


def test_get_takes_the_first_available_message_or_nothing() -> None:
    bench = Bench()
    assert bench.get() == []
    bench.publish("a", "b")
    assert bench.get() == ["a"]
    assert bench.get(mode="automatic") == ["b"]
    assert bench.get() == []
    bench.release("a")
    assert bench.get() == ["a"]
    assert bench.redelivered == ["a"]


def test_get_takes_one_message_even_if_it_is_settled_at_once() -> None:
    bench = Bench()
    bench.publish("a", "b")
    assert bench.get(mode="automatic") == ["a"]


def test_get_leaves_no_subscription_behind() -> None:
    bench = Bench()
    bench.publish("a")
    bench.get()
    assert queue_in(bench.broker).subscriptions.size.get() == 0


def test_get_leaves_the_turn_of_consumers_alone() -> None:
    bench = Bench()
    bench.consume("c0")
    bench.consume("c1")
    assert bench.publish("a") == ["c0:a"]
    bench.get()
    assert bench.publish("b") == ["c1:b"]


def test_publish_refuses_nothing_that_is_allowed() -> None:
    bench = Bench()
    for priority in PRIORITIES:
        message = Message(id=f"m{priority}", priority=priority, size=0)
        assert bench.do(Publish(queue="q", message=message)).ok
