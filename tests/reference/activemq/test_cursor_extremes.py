"""ActiveMQ's queue where much waits, and where the rules of old releases meet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest

from brokerproof.reference.activemq.memory.queue_memory import QueueMemory
from brokerproof.reference.activemq.pending_lists import (
    DispatchPendingList,
    OrderedPendingList,
    Pending,
)
from brokerproof.reference.durable_broker import PoweredBroker
from brokerproof.spec.messages import Credit, Message, Priority, PropertyValue
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Drain,
    Get,
    Publish,
    Purge,
    Restart,
)
from tests.reference.activemq.cursor_scenes import Scene

Entry = TypeVar("Entry", bound=Pending)

SEVERAL_TIMES = 8
"""An entry is met so often at most, however many wait behind it."""


def met_in_taking(count: int, *, prioritized: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many entries are gone by while `count` that were returned are taken singly."""
    met = 0
    original = OrderedPendingList.__iter__

    def counted(entries: OrderedPendingList[Entry]) -> Iterator[Entry]:
        nonlocal met
        for each in original(entries):
            met += 1
            yield each

    scene = Scene("activemq-cursor", Priority(10) if prioritized else None)
    scene.publish(*map(str, range(count)))
    scene.consume("leaves", count)
    scene.do(CloseChannel(channel="ch-leaves"))
    with monkeypatch.context() as patch:
        patch.setattr(OrderedPendingList, "__iter__", counted)
        taken = scene.consume("takes", 1)
        for name in range(count):
            taken += scene.acknowledge(str(name))
    assert taken == [f"takes:{name}" for name in range(count)]
    return met


@pytest.mark.parametrize("prioritized", [False, True])
def test_a_consumer_that_takes_one_at_a_time_does_not_go_by_all_that_wait(
    monkeypatch: pytest.MonkeyPatch, *, prioritized: bool
) -> None:
    met = met_in_taking(200, prioritized=prioritized, monkeypatch=monkeypatch)
    assert met < SEVERAL_TIMES * 200


def test_a_queue_that_copies_all_that_wait_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    lazily = DispatchPendingList.__iter__
    copying = lambda entries: iter([*lazily(entries)])  # noqa: E731 - it replaces a method
    monkeypatch.setattr(DispatchPendingList, "__iter__", copying)
    met = met_in_taking(200, prioritized=False, monkeypatch=monkeypatch)
    assert met > SEVERAL_TIMES * 200


def test_of_what_gave_way_only_what_the_queue_needs_is_there() -> None:
    scene = Scene("activemq-cursor?memory=2200")
    for name in "abc":
        properties: dict[str, PropertyValue] = {"JMSXGroupID": "g", "text": "x" * 20}
        scene.do(
            Publish(queue="q", message=Message(id=name, persistent=True, properties=properties))
        )
    scene.consume("all")
    gave_way = [each for each in scene.queue.paged_in.values() if each.content is None]
    in_memory = [each for each in scene.queue.paged_in.values() if each.content is not None]
    assert {tuple(each.message.properties) for each in gave_way} == {("JMSXGroupID",)}
    assert {tuple(each.message.properties) for each in in_memory} == {("JMSXGroupID", "text")}
    assert len({each.size for each in (*gave_way, *in_memory)}) == 1
    assert [scene.release(name) for name in "ab"] == [["all:a"], ["all:b"]]


def test_pages_that_are_given_out_late_may_be_many() -> None:
    scene = Scene("activemq-cursor-5.1?page=1")
    names = [str(number) for number in range(1_200)]
    scene.publish(*names)
    given = scene.consume("all")
    assert given + scene.given(Drain()) == [f"all:{name}" for name in names]


# Paged in once more, while a consumer holds it (AMQ-1957).

TWICE = "activemq-cursor?paged=replaced"


def with_one_that_is_held_and_was_given_again() -> Scene:
    """Return a queue with two deliveries of message "0"."""
    scene = Scene(f"{TWICE}&depth=0&word=1")
    scene.publish("0", "1", "2")
    assert scene.consume("slow", 1) == ["slow:0"]
    scene.do(Cancel(consumer="slow"))
    # Counted off twice, so that "2" is not looked for.
    assert scene.consume("fast") == ["fast:0", "fast:1"]
    return scene


def test_a_copy_has_both_deliveries_of_what_was_paged_in_twice() -> None:
    scene = with_one_that_is_held_and_was_given_again()
    scene.acknowledge("0")
    for each in (scene.broker, scene.broker.fork()):
        assert len(each.queues) == 1
        assert not each.handle(Get(channel="x", queue="q")).events
        (again,) = each.fork().handle(CloseChannel(channel="ch-slow")).events
        assert isinstance(again, Delivered)
        assert (again.message, again.redelivered) == ("0", True)


def test_what_was_paged_in_twice_is_known_until_both_are_settled() -> None:
    scene = with_one_that_is_held_and_was_given_again()
    first, second = "d0", scene.deliveries["0"]
    assert [each.id for each in scene.queue.replaced] == ["0"]
    states = {scene.broker.fingerprint()}
    for delivery, left in ((second, ["0"]), (first, [])):
        scene.do(Acknowledge(delivery=delivery))
        assert [each.id for each in scene.queue.replaced] == left
        states.add(scene.broker.fingerprint())
    assert len(states) == 3


def settled_before_it_gave_way() -> list[str]:
    """Return the deliveries of a message that was settled once, gave way, and comes back."""
    scene = Scene(f"{TWICE}&memory=1100&depth=1&word=1")
    scene.publish("0")
    scene.browse("looks")
    scene.publish("1", persistent=False)
    scene.publish("2", "3")
    scene.get()
    scene.do(CloseChannel(channel="ch-looks"))
    scene.publish("4")
    automatic = Consume(
        channel="ch-all", queue="q", consumer="all", mode="automatic", credit=Credit(None)
    )
    scene.given(automatic)
    return scene.given(CloseChannel(channel="ch-get"))


def test_what_was_settled_while_it_was_away_is_given_as_the_queue_knows_it() -> None:
    assert settled_before_it_gave_way() == ["all:0"]


def test_where_nothing_is_paged_in_twice_what_gave_way_has_to_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def strict(memory: QueueMemory, *rest: object) -> None:
        memory.may_be_settled_before = False
        load(memory, *rest)  # type: ignore[arg-type]

    load = QueueMemory.load
    monkeypatch.setattr(QueueMemory, "load", strict)
    with pytest.raises(AssertionError, match="what gave way is written somewhere"):
        settled_before_it_gave_way()


# A purge.


def left_by_a_purge(*, held: bool) -> set[int]:
    """Return how many messages are left of 6, by where in a purge the power is lost."""
    left: set[int] = set()
    for at in range(60):
        scene = Scene("activemq-cursor?data=300&unsynced=torn")
        scene.publish(*"abcdef")
        if held:
            scene.get()
        broker = scene.broker
        assert isinstance(broker, PoweredBroker)
        broker.power_lasts(at)
        if broker.handle(Purge(queue="q")).ok:
            return left
        assert broker.handle(Restart()).ok
        count = 0
        while scene.get():
            count += 1
        left.add(count)
    raise AssertionError("a purge of six messages takes fewer changes")


def test_a_purge_happens_whole_where_nothing_is_paged_in() -> None:
    assert left_by_a_purge(held=False) == {0, 6}


def test_a_purge_goes_by_message_where_one_is_held() -> None:
    assert left_by_a_purge(held=True) - {1, 6}
