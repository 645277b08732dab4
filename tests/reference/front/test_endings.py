"""Auto-close, auto-delete, and exclusive consumers."""

from __future__ import annotations

import pytest

from brokerproof.spec.messages import Fifo, Priority
from brokerproof.spec.protocol.operations import Acknowledge, Cancel, Consume, Declare, SetCredit
from tests.reference.front.reference_bench import Bench

every_variant = pytest.mark.parametrize(
    "address", ["qpid-push", "qpid-push?pointer=inclusive", "qpid-push?runner=drain"]
)


@every_variant
def test_a_consumer_that_closes_itself_takes_what_is_there_and_leaves(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", "b")
    told = bench.consume("c0", auto_close=True) + bench.drain()
    assert (told, bench.closed) == (["c0:a", "c0:b"], ["c0"])
    assert bench.publish("c") == []
    assert bench.acknowledge("a") == []
    assert bench.do(Cancel(consumer="c0")).error is not None


@every_variant
@pytest.mark.parametrize("credit", [None, 0])
def test_on_an_empty_queue_it_leaves_at_once_whatever_its_window(
    address: str, credit: int | None
) -> None:
    bench = Bench(address)
    bench.consume("c0", credit, auto_close=True)
    bench.drain()
    assert bench.closed == ["c0"]


@every_variant
def test_it_stays_while_something_is_left_that_it_has_no_room_for(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", "b")
    bench.consume("c0", 1, auto_close=True)
    bench.drain()
    assert bench.closed == []
    assert bench.acknowledge("a") + bench.drain() == ["c0:b"]
    assert bench.closed == ["c0"]


@every_variant
def test_it_leaves_when_what_was_left_goes_to_another(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", "b", "c")
    bench.consume("c0", 1, auto_close=True)
    bench.drain()
    bench.get()
    bench.drain()
    assert bench.closed == []
    bench.purge()
    bench.drain()
    assert bench.closed == ["c0"]


@every_variant
def test_what_others_hold_does_not_keep_it(address: str) -> None:
    bench = Bench(address)
    bench.publish("a")
    bench.get()
    bench.consume("c0", auto_close=True)
    bench.drain()
    assert bench.closed == ["c0"]


def test_a_browser_that_closes_itself_leaves_when_it_has_seen_all() -> None:
    bench = Bench(order=Priority(2))
    bench.publish("a", "b")
    assert bench.consume("b0", mode="browse", auto_close=True) == ["b0:a", "b0:b"]
    assert bench.closed == ["b0"]


def test_the_name_of_one_that_has_closed_may_be_used_again() -> None:
    bench = Bench()
    bench.consume("c0", auto_close=True)
    assert bench.do(SetCredit(consumer="c0", messages=1)).error is not None
    bench.consume("c0")
    assert bench.publish("a") == ["c0:a"]


@every_variant
def test_a_queue_that_deletes_itself_goes_with_its_last_consumer(address: str) -> None:
    bench = Bench(address, auto_delete=True)
    bench.publish("a", "b")
    bench.consume("c0", 1)
    bench.consume("b0", mode="browse")
    bench.drain()
    bench.cancel("c0")
    assert bench.deleted == []
    bench.cancel("b0")
    assert bench.deleted == ["q"]
    answer = bench.do(Acknowledge(delivery=bench.delivery_of["a"]))
    assert answer.error is not None
    bench.ok(Declare(queue="q", order=Fifo()))
    assert bench.get() == []


@every_variant
def test_it_goes_with_one_that_closes_itself_and_after_that(address: str) -> None:
    bench = Bench(address, auto_delete=True)
    bench.publish("a")
    told = bench.consume("c0", auto_close=True) + bench.drain()
    assert (told, bench.closed, bench.deleted) == (["c0:a"], ["c0"], ["q"])


def test_what_a_closing_channel_returns_goes_with_the_queue() -> None:
    bench = Bench(auto_delete=True)
    bench.publish("a")
    bench.consume("c0", channel="ch")
    bench.consume("c1", channel="ch")
    assert bench.close("ch") == []
    assert bench.deleted == ["q"]


def test_gets_neither_keep_nor_delete_it() -> None:
    bench = Bench(auto_delete=True)
    bench.publish("a")
    bench.get()
    assert bench.deleted == []
    bench.consume("c0")
    bench.cancel("c0")
    assert bench.deleted == ["q"]


@every_variant
def test_an_exclusive_consumer_is_alone(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", exclusive=True)
    assert bench.do(Consume(channel="ch", queue="q", consumer="c1")).error is not None
    bench.cancel("c0")
    bench.consume("c1")
    refused = bench.do(Consume(channel="ch", queue="q", consumer="c2", exclusive=True))
    assert refused.error is not None


def test_a_get_is_let_in_beside_an_exclusive_consumer() -> None:
    bench = Bench()
    bench.consume("c0", 0, exclusive=True)
    bench.publish("a")
    assert bench.get() == ["a"]


def test_one_that_was_refused_shares_no_window_of_its_channel() -> None:
    bench = Bench()
    bench.share("ch", 1)
    bench.consume("c0", channel="ch", exclusive=True)
    bench.do(Consume(channel="ch", queue="q", consumer="c1"))
    assert list(bench.broker.channels["ch"].shares) == ["c0"]


@pytest.mark.parametrize("address", ["qpid-push", "qpid-push?runner=drain"])
def test_a_flush_gives_one_consumer_all_that_it_has_room_for(address: str) -> None:
    bench = Bench(address)
    messages = [f"m{number}" for number in range(25)]
    bench.publish(*messages)
    told = bench.consume("c0", 24) + bench.flush("c0")
    assert told == [f"c0:{message}" for message in messages[:24]]
    assert bench.flush("c0") == []


def test_a_flush_moves_no_other_consumer() -> None:
    bench = Bench("qpid-push?runner=drain")
    bench.consume("c0", 0)
    bench.consume("c1", 0)
    bench.publish("a", "b")
    bench.drain()
    bench.credit("c0", 1)
    bench.credit("c1", 1)
    assert bench.flush("c1") == ["c1:a"]
    assert bench.drain() == ["c0:b"]
