"""Messages that come back, are dropped, or whose consumer leaves."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from brokerproof.spec.messages import Fifo, Priority
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Declare,
    Delete,
    Drain,
    Reject,
    Release,
)
from tests.reference.front.reference_bench import Bench

if TYPE_CHECKING:
    from brokerproof.spec.protocol.answers import Answer

every_pointer = pytest.mark.parametrize(
    "address", ["qpid-push", "qpid-push?pointer=inclusive", "qpid-push?runner=drain"]
)


@every_pointer
@pytest.mark.parametrize("returned", list(permutations("abc")))
def test_released_messages_come_back_in_queue_order_whatever_the_order_of_release(
    address: str, returned: tuple[str, ...]
) -> None:
    bench = Bench(address)
    bench.consume("c0")
    bench.publish("a", "b", "c", "d")
    bench.drain()
    bench.credit("c0", 0)
    for message in returned:
        bench.release(message)
    told = bench.credit("c0", None) + bench.drain()
    assert told == ["c0:a", "c0:b", "c0:c"]
    assert bench.redelivered == ["a", "b", "c"]


def test_a_message_released_onto_the_very_place_of_a_pointer_is_seen_first() -> None:
    # The search steps onto the first message, which another has, after both were released; when it
    # is released again it is *at* the pointer, not before it.
    bench = Bench()
    bench.publish("a", "b")
    bench.consume("c0")
    bench.credit("c0", 0)
    bench.release("b")
    bench.release("a")
    bench.get()
    bench.publish("c")
    bench.release("a")
    assert bench.credit("c0", None) == ["c0:a", "c0:b", "c0:c"]


@every_pointer
def test_a_release_rewinds_every_acquiring_consumer(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 2)
    bench.consume("c1", 2)
    bench.publish("a", "b", "c", "d")
    bench.drain()
    bench.credit("c0", 0)
    assert bench.release("a") + bench.drain() == []
    assert bench.acknowledge("b") + bench.drain() == ["c1:a"]


@every_pointer
def test_a_released_message_may_go_straight_back(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 1)
    bench.publish("a")
    assert bench.release("a") + bench.drain() == ["c0:a"]


def test_a_release_never_shows_a_browser_anything_again() -> None:
    bench = Bench()
    bench.publish("a", "b", "c")
    assert bench.consume("b0", mode="browse") == ["b0:a", "b0:b", "b0:c"]
    bench.get()
    assert bench.release("a") == []
    assert bench.drain() == []


def test_a_browser_is_shown_what_arrives_and_takes_nothing() -> None:
    bench = Bench()
    bench.consume("b0", mode="browse")
    assert bench.publish("a") == ["b0:a"]
    assert bench.consume("b1", mode="browse") == ["b1:a"]
    assert bench.get() == ["a"]


def test_a_browser_is_not_shown_an_acquired_message() -> None:
    bench = Bench()
    bench.publish("a", "b")
    bench.get()
    assert bench.consume("b0", mode="browse") == ["b0:b"]


def test_a_browser_sees_that_a_message_is_redelivered() -> None:
    bench = Bench()
    bench.publish("a")
    bench.consume("b0", mode="browse")
    bench.get()
    bench.release("a")
    bench.consume("b1", mode="browse")
    assert bench.redelivered == ["a"]


def test_browsing_does_not_make_a_message_redelivered() -> None:
    bench = Bench()
    bench.publish("a")
    bench.consume("b0", mode="browse")
    bench.consume("c0")
    assert bench.redelivered == []


def test_a_paused_browser_is_shown_nothing() -> None:
    bench = Bench()
    bench.publish("a")
    assert bench.consume("b0", 0, mode="browse") == []
    assert bench.credit("b0", 1) == ["b0:a"]
    assert bench.publish("b") == ["b0:b"]


def test_what_a_browser_is_shown_cannot_be_settled() -> None:
    bench = Bench()
    bench.publish("a")
    bench.consume("b0", mode="browse")
    assert _refused(bench.do(Acknowledge(delivery=bench.delivery_of["a"])))


def test_on_a_priority_queue_an_arrival_moves_a_browser_back() -> None:
    # The documents' own loop moves every pointer; they say only of releases that browsers are
    # spared.
    bench = Bench(order=Priority(2))
    bench.publish("low", priority=0)
    bench.consume("b0", mode="browse")
    assert bench.publish("high", priority=9) == ["b0:high", "b0:low"]


def test_the_inclusive_pointer_shows_a_browser_the_last_message_for_ever() -> None:
    bench = Bench("qpid-push?pointer=inclusive")
    bench.publish("a")
    assert bench.consume("b0", mode="browse") == ["b0:a"]
    assert "b0:a" in bench.publish("b"), "the pointer stayed on the last message"
    answer = bench.do(Drain())
    assert answer.error is not None
    assert answer.error.code == "timeout"


@every_pointer
def test_a_rejected_message_is_gone(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 1)
    bench.publish("a", "b")
    assert bench.reject("a") + bench.drain() == ["c0:b"]
    bench.cancel("c0")
    assert bench.get() == []


@every_pointer
def test_cancel_leaves_deliveries_with_the_client(address: str) -> None:
    bench = Bench(address)
    bench.consume("c0", 1)
    bench.publish("a", "b")
    bench.cancel("c0")
    assert bench.get() == ["b"]
    bench.release("a")
    assert bench.get() == ["a"]
    bench.acknowledge("a")
    bench.acknowledge("b")
    assert bench.get() == []


@every_pointer
def test_a_cancelled_consumer_is_given_nothing(address: str) -> None:
    bench = Bench(address)
    bench.publish("a")
    bench.consume("c0", 0)
    bench.consume("c1", 0)
    bench.cancel("c0")
    bench.publish("b")
    assert bench.credit("c1", None) + bench.drain() == ["c1:a", "c1:b"]


@every_pointer
def test_a_closing_channel_releases_what_it_holds_and_gives_its_consumers_nothing(
    address: str,
) -> None:
    bench = Bench(address)
    bench.consume("c0", 1, channel="going")
    bench.consume("c1", 1, channel="going")
    bench.consume("c2", 0, channel="staying")
    bench.publish("a", "b", "c")
    bench.get(channel="going")
    assert bench.close("going") + bench.drain() == []
    assert bench.credit("c2", None) + bench.drain() == ["c2:a", "c2:b", "c2:c"]
    assert bench.redelivered == ["a", "b", "c"]


def test_closing_a_channel_releases_what_its_cancelled_consumers_held() -> None:
    bench = Bench()
    bench.consume("c0", channel="one")
    bench.publish("a")
    bench.cancel("c0")
    bench.close("one")
    assert bench.get() == ["a"]


def test_closing_an_unknown_channel_is_no_error() -> None:
    assert Bench().close("nobody's") == []


@every_pointer
def test_purge_drops_what_is_available_and_nothing_else(address: str) -> None:
    bench = Bench(address)
    bench.publish("a", "b", "c")
    bench.get()
    bench.purge()
    assert bench.get() == []
    bench.release("a")
    assert bench.get() == ["a"]


def test_deleting_a_queue_closes_its_consumers_and_voids_its_deliveries() -> None:
    bench = Bench()
    bench.consume("c0", 1)
    bench.publish("a", "b")
    assert bench.ok(Delete(queue="q")) == []
    assert bench.closed == ["c0"]
    for settlement in (Acknowledge, Release, Reject):
        assert _refused(bench.do(settlement(delivery=bench.delivery_of["a"])))
    assert _refused(bench.do(Delete(queue="q")))


def test_a_queue_of_a_deleted_name_is_new_and_empty() -> None:
    bench = Bench("qpid-push?runner=drain")
    bench.publish("a")
    bench.consume("c0")
    bench.ok(Delete(queue="q"))
    bench.ok(Declare(queue="q", order=Fifo()))
    bench.consume("c0")
    assert bench.drain() == []
    assert bench.publish("b") == ["c0:b"]


@every_pointer
def test_the_round_goes_on_where_a_consumer_left(address: str) -> None:
    bench = Bench(address)
    for consumer in ("c0", "c1", "c2"):
        bench.consume(consumer)
    bench.drain()
    assert bench.publish("a", "b") == ["c0:a", "c1:b"]
    bench.cancel("c1")
    assert bench.publish("c", "d") == ["c2:c", "c0:d"]


def _refused(answer: Answer) -> bool:
    return answer.error is not None and answer.error.code == "refused"
