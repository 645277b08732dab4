"""How pulling consumers get messages: notification, taking, and handing over."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from brokerproof.reference import make
from brokerproof.reference.broker import Broker
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.answers import ConsumerClosed, QueueDeleted
from brokerproof.spec.protocol.operations import (
    Cancel,
    Consume,
    Declare,
    Delete,
    Drain,
    Flush,
    Publish,
    Reset,
    SetCredit,
)
from tests.faults.overlay import Edit, plant
from tests.reference.front.reference_bench import Bench, queue_in
from tests.reference.qpid.pull.pull_invariants import state_of

PULL = "qpid-pull"
DRAINED = "qpid-pull?runner=drain"
every_form = pytest.mark.parametrize("connections", ["channel", "shared"])


def of_priority(bench: Bench, consumer: str, priority: int, window: int | None = 1) -> list[str]:
    return bench.ok(
        Consume(
            channel=f"channel of {consumer}",
            queue="q",
            consumer=consumer,
            credit=Credit(window),
            priority=priority,
        )
    )


def of_both(bench: Bench, consumer: str, window: int | None = None) -> list[str]:
    return bench.ok(
        Consume(
            channel=f"channel of {consumer}",
            queue="q",
            queues=("q", "q1"),
            consumer=consumer,
            credit=Credit(window),
        )
    )


def states(bench: Bench) -> dict[str | None, str]:
    consumers: Any = queue_in(bench.broker).subscriptions.iterator()
    return {each.consumer: state_of(each) for each in consumers}


@every_form
def test_an_arrival_is_told_to_one_and_reaches_the_wire_by_its_connection(connections: str) -> None:
    bench = Bench(f"{DRAINED}&connections={connections}")
    bench.consume("c0")
    bench.consume("c1")
    assert bench.publish("a") == []
    assert states(bench) == {"c0": "NOTIFIED", "c1": "INTERESTED"}
    (job,) = bench.broker.executor.jobs
    assert repr(job) == (
        "the work of all channels" if connections == "shared" else "the work of channel of c0"
    )
    assert bench.drain() == ["c0:a"]
    assert states(bench) == {"c0": "INTERESTED", "c1": "INTERESTED"}


def test_a_second_arrival_is_told_to_the_next() -> None:
    bench = Bench(DRAINED)
    for name in ("c0", "c1"):
        bench.consume(name)
    bench.publish("a", "b", "c")
    assert states(bench) == {"c0": "NOTIFIED", "c1": "NOTIFIED"}
    assert sorted(told[3:] for told in bench.drain()) == ["a", "b", "c"]


def test_a_consumer_that_has_had_its_turn_waits_behind_the_others() -> None:
    bench = Bench(PULL)
    for name in ("c0", "c1", "c2"):
        bench.consume(name)
    told = bench.publish("a", "b", "c", "d")
    assert told == ["c0:a", "c1:b", "c2:c", "c0:d"]


WAKES = """\
        for browser in self.subscriptions.non_acquiring_iterator():
            if browser.priority < consumer.priority:
                self._notify_consumer(browser)
"""


@pytest.mark.parametrize("wakes", [True, False])
def test_a_browser_that_gave_way_to_a_consumer_without_room_looks_again(*, wakes: bool) -> None:
    bench = Bench(PULL)
    if not wakes:
        bench.broker = cast("Broker", plant([Edit("qpid/pull/queue.py", WAKES, "")], PULL)())
        bench.ok(Declare(queue="q", order=Fifo()))
    browser = Consume(channel="ch0", queue="q", consumer="b", mode="browse", credit=Credit(None))
    takes = replace(browser, channel="ch1", consumer="c", mode="automatic")
    bench.ok(replace(takes, credit=Credit(None, 4), priority=1))
    bench.ok(browser)
    publish = Publish(queue="q", message=Message(id="a", size=5))
    assert bench.ok(publish) + bench.drain() == (["b:a"] if wakes else [])


@pytest.mark.parametrize("leave", ["cancel", "pause", "close"])
def test_a_notice_to_a_consumer_that_does_not_come_goes_to_another(leave: str) -> None:
    bench = Bench(DRAINED)
    bench.consume("c0")
    bench.consume("c1")
    bench.publish("a")
    assert states(bench)["c0"] == "NOTIFIED"
    if leave == "cancel":
        bench.cancel("c0")
    elif leave == "pause":
        bench.credit("c0", 0)
    else:
        bench.close("channel of c0")
    assert states(bench)["c1"] == "NOTIFIED"
    assert bench.drain() == ["c1:a"]


def test_a_consumer_that_is_full_leaves_the_next_message_to_another() -> None:
    bench = Bench(DRAINED)
    bench.consume("c0", 1)
    bench.consume("c1", 1)
    bench.publish("a", "b")
    # c0 takes one and is full; c1 is already notified of the other.
    assert bench.drain() == ["c0:a", "c1:b"]
    assert states(bench) == {"c0": "NOT_INTERESTED", "c1": "NOT_INTERESTED"}


def test_browsers_are_all_told_of_each_arrival_and_never_move() -> None:
    bench = Bench(DRAINED)
    for name in ("b0", "b1"):
        bench.consume(name, mode="browse")
    bench.consume("c0")
    bench.drain()
    bench.publish("a")
    assert states(bench) == {"b0": "NON_ACQUIRING", "b1": "NON_ACQUIRING", "c0": "NOTIFIED"}
    assert len(bench.broker.executor.jobs) == 3
    assert bench.drain() == ["b0:a", "b1:a", "c0:a"]


def test_a_paused_browser_is_not_told() -> None:
    bench = Bench(DRAINED)
    bench.consume("b0", 0, mode="browse")
    bench.publish("a")
    assert states(bench) == {"b0": "NOT_INTERESTED"}
    assert bench.broker.executor.jobs == []
    bench.credit("b0", 1)
    assert bench.drain() == ["b0:a"]


def test_a_full_consumer_is_spared_until_it_has_room() -> None:
    bench = Bench(PULL)
    bench.consume("c0", 1)
    assert bench.publish("a") == ["c0:a"]
    assert states(bench) == {"c0": "NOT_INTERESTED"}
    assert bench.publish("b") == []
    assert bench.acknowledge("a") == ["c0:b"]


def test_the_highest_priority_with_room_takes() -> None:
    bench = Bench(PULL)
    of_priority(bench, "low", 0, None)
    of_priority(bench, "high", 1)
    assert bench.publish("a", "b") == ["high:a", "low:b"]
    bench.publish("c")
    assert bench.acknowledge("a") == []
    assert bench.publish("d") == ["high:d"]


def test_a_lower_priority_takes_over_when_the_higher_one_goes() -> None:
    bench = Bench(DRAINED)
    of_priority(bench, "low", 0)
    of_priority(bench, "high", 1)
    bench.publish("a")
    assert states(bench) == {"high": "NOTIFIED", "low": "INTERESTED"}
    bench.credit("high", 0)
    assert bench.drain() == ["low:a"]


PUBLISHED_ORDER = Edit(
    "qpid/pull/targets.py",
    """
        if self.desired.compare_and_set(not desired, desired):
            for queue, consumer in self.pulls_from:
                queue.set_notify_work_desired(consumer, desired)
""",
    """
        if self.desired.get() is not desired:
            for queue, consumer in self.pulls_from:
                queue.set_notify_work_desired(consumer, desired)
            self.desired.compare_and_set(not desired, desired)
""",
)


@pytest.mark.parametrize("published", [False, True])
def test_a_lower_priority_is_left_waiting_only_as_published(published: bool) -> None:
    bench = Bench(DRAINED)
    if published:
        bench.broker = cast("Broker", plant([PUBLISHED_ORDER], DRAINED)())
        bench.ok(Reset())
        bench.ok(Declare(queue="q", order=Fifo()))
    of_priority(bench, "low", 0)
    of_priority(bench, "high", 1)
    bench.publish("a", "b")
    assert states(bench) == {"high": "NOTIFIED", "low": "INTERESTED"}
    assert bench.drain() == (["high:a"] if published else ["high:a", "low:b"])


def test_a_get_waits_for_no_consumer() -> None:
    bench = Bench(DRAINED)
    of_priority(bench, "high", 7)
    bench.publish("a")
    assert bench.get() == ["a"]
    assert bench.drain() == []
    assert states(bench) == {"high": "INTERESTED"}


@pytest.mark.parametrize("order", [Fifo(), Priority(2)], ids=str)
def test_what_is_returned_comes_again_before_what_lies_behind(order: Order) -> None:
    bench = Bench(PULL, order)
    bench.consume("c0", 1)
    bench.publish("a", "b")
    assert bench.release("a") == ["c0:a"]
    assert bench.redelivered == ["a"]


# Room for some messages and not for others.


def test_a_consumer_without_room_for_the_next_message_lets_others_take_it() -> None:
    bench = Bench(PULL)
    bench.consume("small", size=3)
    bench.publish("a", "b", size=2)
    assert states(bench) == {"small": "NOT_INTERESTED"}
    assert bench.consume("large") == ["large:b"]
    assert states(bench)["small"] == "INTERESTED"
    bench.credit("large", 0)
    assert bench.publish("c", size=1) == ["small:c"]


def test_bytes_that_come_back_are_looked_at_again() -> None:
    bench = Bench(PULL)
    bench.consume("c0", size=3)
    bench.publish("a", "b", size=2)
    assert bench.acknowledge("a") == ["c0:b"]


def test_an_arrival_before_what_there_is_no_room_for_is_taken() -> None:
    bench = Bench(PULL, Priority(levels=3))
    bench.consume("c", size=4)
    assert bench.publish("held", size=1) == ["c:held"]
    assert bench.publish("large", size=5) == []
    assert bench.publish("behind", size=1) == []
    assert bench.publish("urgent", priority=9, size=2) == ["c:urgent"]


def test_what_is_returned_before_what_there_is_no_room_for_is_taken() -> None:
    bench = Bench(PULL)
    bench.consume("d", 1)
    bench.publish("first", size=2)
    bench.consume("c", size=4)
    assert bench.publish("held", size=1) == ["c:held"]
    assert bench.publish("large", size=5) == []
    bench.credit("d", 0)
    assert bench.release("first") == ["c:first"]


PUBLISHED_AWAIT = Edit(
    "qpid/pull/queue.py",
    """
            self._decline(consumer, entry)
            return None
""",
    """
            return None
""",
)


@pytest.mark.parametrize("published", [False, True])
def test_two_that_have_no_room_tell_each_other_for_ever_only_as_published(published: bool) -> None:
    bench = Bench(DRAINED)
    if published:
        bench.broker = cast("Broker", plant([PUBLISHED_AWAIT], DRAINED)())
        bench.ok(Reset())
        bench.ok(Declare(queue="q", order=Fifo()))
    for name in ("c0", "c1"):
        bench.consume(name, size=3)
    bench.publish("a", "b", "c", size=2)
    assert len(bench.broker.executor.jobs) == 2
    answer = bench.do(Drain())
    assert len(answer.events) == 2
    assert answer.ok != published
    assert bool(bench.broker.executor.jobs) == published


# Closing by itself.


def test_a_consumer_closes_itself_when_a_get_takes_the_last_message() -> None:
    bench = Bench(PULL)
    bench.publish("a", "b")
    bench.ok(Consume(channel="ch", queue="q", consumer="c0", credit=Credit(1), auto_close=True))
    assert bench.closed == []
    assert bench.get() == ["b"]
    assert bench.closed == ["c0"]


def test_a_consumer_closes_itself_when_all_of_its_queues_are_empty() -> None:
    bench = two_queues()
    bench.publish("x", queue="q1")
    told = bench.ok(
        Consume(channel="ch", queue="q", queues=("q", "q1"), consumer="c0", auto_close=True)
    )
    assert told == ["c0:x"]
    assert bench.closed == ["c0"]


def test_the_window_of_a_channel_wakes_the_consumers_that_share_it() -> None:
    bench = Bench(PULL)
    bench.consume("c0", channel="ch")
    bench.consume("c1", channel="ch")
    bench.ok(SetCredit(channel="ch", messages=1))
    assert bench.publish("a", "b") == ["c0:a"]
    assert states(bench) == {"c0": "NOT_INTERESTED", "c1": "NOT_INTERESTED"}
    assert bench.acknowledge("a") == ["c0:b"]
    assert bench.ok(SetCredit(channel="ch", messages=2)) == []
    assert bench.publish("c") == ["c0:c"]


# Several queues.


def two_queues(address: str = PULL) -> Bench:
    bench = Bench(address)
    bench.ok(Declare(queue="q1", order=Fifo()))
    return bench


def two_in_turn(bench: Bench) -> list[str]:
    """Return the deliveries to a window of one message, with two messages in each of two queues."""
    of_both(bench, "c0", 1)
    told = bench.publish("a", "b") + bench.publish("x", "y", queue="q1")
    for _ in range(3):
        told += bench.acknowledge(told[-1].partition(":")[2])
    return told


PUBLISHED_TURN = Edit("qpid/pull/targets.py", "            self.at = at\n", "            pass\n")


@pytest.mark.parametrize("published", [False, True])
def test_with_a_window_of_one_the_first_queue_starves_the_others_only_as_published(
    published: bool,
) -> None:
    bench = two_queues()
    if published:
        bench.broker = cast("Broker", plant([PUBLISHED_TURN], PULL)())
        bench.ok(Reset())
        for name in ("q", "q1"):
            bench.ok(Declare(queue=name, order=Fifo()))
    assert two_in_turn(bench) == (
        ["c0:a", "c0:b", "c0:x", "c0:y"] if published else ["c0:a", "c0:x", "c0:b", "c0:y"]
    )


@every_form
def test_a_consumer_of_several_queues_takes_from_them_in_turn(connections: str) -> None:
    bench = two_queues(f"{DRAINED}&connections={connections}")
    bench.publish("a", "b", "c")
    bench.publish("x", "y", queue="q1")
    of_both(bench, "c0")
    assert bench.drain() == ["c0:a", "c0:x", "c0:b", "c0:y", "c0:c"]


def test_the_turn_is_kept_between_searches() -> None:
    bench = two_queues()
    of_both(bench, "c0", 1)
    bench.publish("a", "b")
    bench.publish("x", queue="q1")
    assert bench.acknowledge("a") == ["c0:x"]
    assert bench.acknowledge("x") == ["c0:b"]


def test_one_window_is_for_all_of_its_queues() -> None:
    bench = two_queues()
    of_both(bench, "c0", 1)
    assert bench.publish("a") == ["c0:a"]
    assert bench.publish("x", queue="q1") == []
    copy = bench.broker.fork()
    assert copy.fingerprint() == bench.broker.fingerprint()
    assert bench.acknowledge("a") == ["c0:x"]
    bench.broker = copy
    assert bench.acknowledge("a") == ["c0:x"]


def test_a_consumer_that_loses_one_of_its_queues_leaves_them_all() -> None:
    bench = two_queues()
    of_both(bench, "c0")
    bench.ok(Delete(queue="q1"))
    assert bench.closed == ["c0"]
    assert bench.publish("a") == []
    assert not bench.do(Cancel(consumer="c0")).ok


def test_a_queue_that_deletes_itself_goes_when_its_last_consumer_loses_another() -> None:
    bench = Bench(PULL)
    bench.ok(Declare(queue="q1", order=Fifo(), auto_delete=True))
    of_both(bench, "c0")
    of_both(bench, "c1")
    told = bench.do(Delete(queue="q")).events
    assert told == (
        ConsumerClosed(consumer="c0"),
        ConsumerClosed(consumer="c1"),
        QueueDeleted(queue="q1"),
    )
    assert not bench.do(Publish(queue="q1", message=Message(id="a"))).ok


def test_exclusive_on_several_queues_is_all_or_nothing() -> None:
    bench = two_queues()
    bench.consume("other", queue="q1")
    refused = bench.do(
        Consume(channel="ch", queue="q", queues=("q", "q1"), consumer="c", exclusive=True)
    )
    assert refused.error is not None
    assert refused.error.code == "refused"
    assert bench.ok(Consume(channel="ch", queue="q", consumer="c", exclusive=True)) == []


def test_a_slice_ends_and_the_rest_comes_with_the_next() -> None:
    bench = Bench(DRAINED)
    bench.consume("c0")
    bench.consume("c1")
    bench.publish(*(f"m{number}" for number in range(25)))
    assert bench.broker.executor.run_next()
    assert len(bench.broker.executor.jobs) == 2
    assert len(bench.drain()) == 25


def test_a_flush_delivers_before_anything_else() -> None:
    bench = Bench(DRAINED)
    bench.consume("c0", 2)
    bench.publish("a", "b", "c")
    assert bench.ok(Flush(consumer="c0")) == ["c0:a", "c0:b"]


def test_queues_that_push_and_queues_that_pull_live_in_one_broker() -> None:
    broker = make(PULL)
    broker.declare("pushed", Fifo(), "qpid-push")
    broker.declare("pulled", Fifo())
    for name in ("pushed", "pulled"):
        broker.handle(Consume(channel="ch", queue=name, consumer=f"of {name}"))
        copy = broker.fork()
        for each in (broker, copy):
            answer = each.handle(Publish(queue=name, message=Message(id=f"in {name}")))
            assert len(answer.events) == 1
