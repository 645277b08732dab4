"""The queue of ActiveMQ from outside: its deliveries, whatever is in memory and on disk."""

from __future__ import annotations

import pytest
from msgspec import structs

from brokerproof.reference.activemq.exclusive import ExclusiveElection
from brokerproof.reference.activemq.groups import GroupRule, Taking
from brokerproof.spec.messages import Message, Priority, PropertyValue
from brokerproof.spec.protocol.answers import Accepted
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Drain,
    Publish,
    Restart,
)
from tests.reference.activemq.cursor_scenes import ONE_MESSAGE, Scene


@pytest.mark.parametrize("page", [1, 2, 4])
@pytest.mark.parametrize("memory", [1100, 2200, 3300, 4400, 0])
def test_all_is_given_in_order_whatever_is_in_memory(memory: int, page: int) -> None:
    scene = Scene(f"activemq-cursor?memory={memory}&page={page}&depth=1&word=2")
    names = [f"m{number}" for number in range(9)]
    for number, name in enumerate(names):
        scene.publish(name, persistent=number % 3 != 1)
    assert scene.consume("c") == [f"c:{name}" for name in names]
    for name in names:
        scene.acknowledge(name)
    assert scene.get() == []
    assert scene.queue.memory.usage.used == 0


def test_what_a_consumer_gives_back_comes_first_in_the_order_of_return() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}")
    scene.publish("a", "b", "c", "d")
    assert scene.consume("x", 2) == ["x:a", "x:b"]
    scene.do(Cancel(consumer="x"))
    scene.release("b")
    scene.release("a")
    assert scene.consume("y") == ["y:b", "y:a", "y:c", "y:d"]


def test_a_higher_level_goes_first_though_a_lower_one_fills_memory() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}", Priority(10))
    scene.publish("low", "lower", priority=1)
    scene.publish("high", priority=9)
    assert scene.get() == ["get:high"]
    scene.release("high")
    assert scene.consume("c") == ["c:high", "c:low", "c:lower"]


def test_in_one_store_for_all_levels_order_is_within_a_page() -> None:
    scene = Scene("activemq-cursor?levels=together&page=2", Priority(10))
    scene.publish("low", "lower", priority=1)
    scene.publish("high", priority=9)
    assert scene.get() == ["get:low"]


def test_the_classes_apart_are_in_order_each_by_itself() -> None:
    merged, apart = (Scene(f"activemq-cursor?classes={each}") for each in ("merged", "apart"))
    for scene in (merged, apart):
        scene.publish("a", persistent=False)
        scene.publish("b")
        scene.publish("c", persistent=False)
    assert merged.consume("x") == ["x:a", "x:b", "x:c"]
    assert apart.consume("x") == ["x:b", "x:a", "x:c"]


def test_what_is_persistent_comes_back_after_a_crash_in_order() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}")
    scene.publish("a", "b")
    scene.publish("gone", persistent=False)
    scene.publish("c", "d")
    scene.consume("x", 2)
    scene.acknowledge("a")
    scene.do(Crash())
    scene.do(Restart())
    assert scene.consume("y") == ["y:b", "y:c", "y:d"]


def test_in_memory_alone_a_publisher_waits_for_room_and_is_told() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}&transient=memory", durable=False)
    scene.publish("a")
    for name in ("b", "c"):
        answer = scene.do(Publish(queue="q", message=Message(id=name)))
        assert answer.parked
        assert answer.events == ()
    assert scene.get() == ["get:a"]
    answer = scene.do(Acknowledge(delivery=scene.deliveries["a"]))
    assert answer.events == (Accepted(message="b"),)
    assert scene.consume("x") == ["x:b"]
    assert scene.acknowledge("b") == ["x:c"]


def test_a_consumer_of_higher_priority_is_served_until_it_is_full() -> None:
    scene = Scene("activemq-cursor")
    scene.consume("low", priority=1)
    scene.consume("high", 2, priority=2)
    assert scene.publish("a", "b", "c") == ["high:a", "high:b", "low:c"]


def test_equal_consumers_are_served_in_turn() -> None:
    scene = Scene("activemq-cursor")
    for name in ("x", "y", "z"):
        scene.consume(name)
    given = scene.publish(*(f"m{number}" for number in range(7)))
    assert [each.partition(":")[0] for each in given] == list("xyzxyzx")


def group_goes_to_one_consumer() -> None:
    """Demand that a group goes to one consumer until that leaves, and blocks no other message."""
    scene = Scene("activemq-cursor")
    for name in ("x", "y"):
        scene.consume(name, 2)

    def publish(name: str, group: str) -> list[str]:
        message = Message(id=name, persistent=True, properties={"JMSXGroupID": group})
        return scene.given(Publish(queue="q", message=message))

    assert publish("a1", "a") == ["x:a1"]
    assert publish("b1", "b") == ["y:b1"]
    assert publish("a2", "a") == ["x:a2"]
    # Its consumer is full, and no other may have it; messages behind it are not held back.
    assert publish("a3", "a") == []
    assert publish("b2", "b") == ["y:b2"]
    scene.acknowledge("b1")
    assert scene.given(Cancel(consumer="x")) == ["y:a3"]


def test_a_group_goes_to_one_consumer_until_that_leaves() -> None:
    group_goes_to_one_consumer()


def test_a_group_that_goes_to_anybody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupRule, "take", lambda *_: Taking.TAKEN)
    with pytest.raises(AssertionError, match="'y:a3'"):
        group_goes_to_one_consumer()


def elected_has_the_queue() -> None:
    """Demand that other consumers get no new messages while an exclusive one is elected."""
    scene = Scene("activemq-cursor")
    # No operation uses this, since the protocol would have the others refused.
    scene.broker.claimed = structs.replace(scene.broker.claimed, exclusive=True)

    def consume(name: str, *, exclusive: bool) -> list[str]:
        return scene.given(
            Consume(channel=f"ch-{name}", queue="q", consumer=name, exclusive=exclusive)
        )

    assert scene.publish("a", "b") == []
    assert consume("plain", exclusive=False) == ["plain:a", "plain:b"]
    assert consume("first", exclusive=True) == consume("second", exclusive=True) == []
    assert scene.publish("c", "d") == ["first:c", "first:d"]
    # A returned message goes to the elected consumer, too.
    assert scene.release("b") == ["first:b"]
    assert scene.given(Cancel(consumer="first")) == []
    assert scene.publish("e") == ["second:e"]
    assert scene.given(CloseChannel(channel="ch-second")) == ["plain:e"]
    assert scene.publish("f") == ["plain:f"]


def test_while_an_exclusive_consumer_is_elected_no_other_is_given_anything() -> None:
    elected_has_the_queue()


def test_an_election_that_admits_all_consumers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExclusiveElection, "admits", lambda *_: True)
    with pytest.raises(AssertionError, match="'plain:c'"):
        elected_has_the_queue()


@pytest.mark.parametrize(
    ("defect", "left"),
    [
        ("audit=5.1", ["m1", "m2", "m3"]),
        ("audit=5.1&leaving=keeps", []),
        ("audit=5.2", []),
    ],
)
def test_an_audit_that_guesses_loses_what_a_closed_consumer_left(
    defect: str, left: list[str]
) -> None:
    scene = Scene(f"activemq-cursor?depth=2&word=2&{defect}")
    names = [f"m{number}" for number in range(1, 7)]
    scene.publish(*names)
    scene.consume("x", 0)
    scene.do(Cancel(consumer="x"))
    given = scene.consume("y")
    assert [each for each in names if f"y:{each}" not in given] == left


def test_a_message_given_to_a_consumer_that_has_left_is_lost_and_keeps_its_memory() -> None:
    for detached, given in (("refused", ["y:a"]), ("accepted", [])):
        scene = Scene(f"activemq-cursor?detached={detached}")
        scene.consume("x")
        scene.publish("a")
        scene.do(CloseChannel(channel="ch-x"))
        assert scene.consume("y") + scene.given(Drain()) == given
        assert scene.queue.memory.usage.used == 1025


def test_a_browser_takes_nothing_and_is_never_shown_again_what_comes_back() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}&page=1")
    scene.publish("a", "b")
    scene.publish("c", persistent=False)
    assert scene.browse("look") == ["look:a", "look:b", "look:c"]
    assert scene.publish("d") == ["look:d"]
    assert scene.consume("x", 2) == ["x:a", "x:b"]
    assert scene.release("b") == ["x:b"]
    scene.do(Cancel(consumer="x"))
    assert scene.release("a") == []
    assert scene.browse("late") == ["late:a", "late:c", "late:d"]
    assert scene.consume("y") == ["y:a", "y:c", "y:d"]


def test_a_browser_sees_by_priority_and_what_came_is_given_in_order_afterwards() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}", Priority(10))
    scene.publish("low", priority=1)
    scene.publish("high", priority=9)
    assert scene.browse("look") == ["look:high", "look:low"]
    scene.publish("middle", priority=5)
    assert scene.consume("c") == ["c:high", "c:middle", "c:low"]


@pytest.mark.parametrize(
    ("read", "given"),
    [("stop", ["x:a", "x:b", "x:c"]), ("document", ["x:a", "x:b", "x:c"]), ("advance", ["x:a"])],
)
def test_a_loop_that_goes_on_without_memory_skips_what_it_has_no_room_for(
    read: str, given: list[str]
) -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}&page=2&read={read}")
    scene.publish("a", "b")
    scene.publish("c", persistent=False)
    assert [each for each in scene.consume("x") if each != "x:c" or read != "advance"] == given


def test_5_1_pages_in_what_was_delivered_and_never_acknowledged_once_more() -> None:
    scene = Scene("activemq-cursor?page=2&pages=inflight")
    scene.publish(*"abcdefgh")
    assert scene.consume("stays", 1) == ["stays:a"]
    assert list(scene.queue.paged_in) == ["a", "b", "c"], "a page beside the one delivered"
    scene.do(CloseChannel(channel="ch-stays"))
    assert scene.consume("comes", 1) == ["comes:a"]
    assert list(scene.queue.paged_in) == ["a", "b", "c", "d"], "a is counted twice"


def test_what_its_group_keeps_back_gives_way_to_what_can_be_given() -> None:
    scene = Scene(f"activemq-cursor?{ONE_MESSAGE}", Priority(10))
    grouped: dict[str, PropertyValue] = {"JMSXGroupID": "g"}

    def publish(name: str) -> list[str]:
        message = Message(id=name, persistent=True, priority=9, properties=grouped)
        return scene.given(Publish(queue="q", message=message))

    scene.consume("owner", 1)
    assert publish("first") == ["owner:first"]
    scene.publish("low", priority=1)
    assert scene.get() == ["get:low"]
    assert publish("second") == []
    assert scene.release("low") == []
    # Both are paged in then, one after the other, and there is memory for one.
    assert scene.consume("free") == ["free:low"]
    assert scene.acknowledge("first") == ["owner:second"]
