"""The queue process: rotation of consumers, returned messages, and crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from brokerproof.reference.durable_broker import BrokerOnFiles
from brokerproof.reference.rabbitmq.paging import RealDirectory
from brokerproof.reference.rabbitmq.process.queue import QueueProcess
from brokerproof.reference.rabbitmq.process.sub_queues import SubQueues, Tag
from brokerproof.spec.messages import Fifo, Priority
from brokerproof.spec.protocol.candidate import OnDisk, OnThreads
from brokerproof.spec.protocol.operations import Crash, Declare, Delete, Drain, Reset, Restart
from tests.reference.front.reference_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PAGING = "rabbitmq-paging"
TIGHT = "rabbitmq-paging?segment=2&batch=1&journal=2&file=100&target=0"


def process_of(bench: Bench) -> QueueProcess:
    return cast("QueueProcess", bench.broker.queues["q"])


def numbered(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


def subscribers(told: Sequence[str]) -> list[str]:
    return [each.split(":")[0] for each in told]


# Rotation of consumers.


@pytest.mark.parametrize("address", [PAGING, TIGHT])
@pytest.mark.parametrize("messages", [6, 7, 8])
def test_consumers_with_room_are_served_in_turn(address: str, messages: int) -> None:
    bench = Bench(address)
    for name in ("a", "b", "c"):
        bench.consume(name)
    served = subscribers(bench.publish(*numbered(messages)))
    counts = [served.count(name) for name in ("a", "b", "c")]
    assert max(counts) - min(counts) <= 1
    assert served[:3] == ["a", "b", "c"]


def test_consumers_that_are_served_late_are_given_the_gathered_messages_in_order() -> None:
    bench = Bench(TIGHT)
    bench.consume("a", credit=0)
    bench.consume("b", credit=0)
    bench.publish(*numbered(4))
    assert bench.credit("a", 2) == ["a:m0", "a:m1"]
    assert bench.credit("b", 2) == ["b:m2", "b:m3"]


def test_a_blocked_consumer_is_given_nothing_and_costs_no_other_a_turn() -> None:
    bench = Bench(PAGING)
    bench.consume("a", credit=1)
    bench.consume("b")
    assert subscribers(bench.publish(*numbered(4))) == ["a", "b", "b", "b"]
    assert [each.consumer for each in process_of(bench).line.blocked] == ["a"]
    bench.acknowledge("m0")
    assert process_of(bench).line.blocked == []
    assert subscribers(bench.publish("m4", "m5")) == ["b", "a"]


def test_a_higher_priority_is_served_first_as_long_as_it_has_room() -> None:
    bench = Bench(PAGING)
    bench.consume("low")
    bench.consume("high", credit=2, priority=1)
    bench.consume("higher", credit=1, priority=2)
    assert subscribers(bench.publish(*numbered(4))) == ["higher", "high", "high", "low"]
    bench.acknowledge("m1")
    assert subscribers(bench.publish("m4")) == ["high"]


def test_a_window_that_a_channel_shares_wakes_all_its_consumers() -> None:
    bench = Bench(PAGING)
    bench.share("ch", 1)
    bench.consume("a", channel="ch")
    bench.consume("b", channel="ch")
    assert bench.publish("m0", "m1", "m2") == ["a:m0"]
    assert bench.acknowledge("m0") == ["b:m1"]
    assert bench.acknowledge("m1") == ["a:m2"]


def test_a_channel_that_closes_is_served_nothing_by_the_room_that_it_leaves() -> None:
    bench = Bench(PAGING)
    bench.share("ch", 1)
    bench.consume("a", channel="ch")
    bench.consume("b", channel="ch")
    bench.publish("m0", "m1")
    assert bench.close("ch") == []
    assert bench.get() == ["m0"]


def test_a_get_takes_the_first_message_past_all_consumers_in_line() -> None:
    bench = Bench(PAGING)
    bench.consume("a", credit=1)
    bench.publish(*numbered(3))
    assert bench.get() == ["m1"]
    assert bench.acknowledge("m0") == ["a:m2"]


def test_room_that_a_channel_shares_is_there_before_what_returned_is_handed_out() -> None:
    bench = Bench(PAGING)
    bench.share("ch", 1)
    bench.consume("high", channel="ch", priority=1)
    assert bench.publish("m0") == ["high:m0"]
    # One that acknowledges nothing takes no room of its channel.
    bench.consume("low", channel="ch", mode="automatic")
    assert bench.publish("m1") == ["low:m1"]
    assert bench.release("m0") == ["high:m0"]


# Returned messages.


@pytest.mark.parametrize("address", [PAGING, TIGHT])
def test_what_a_closed_channel_held_comes_back_in_its_place_in_one_call(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(address)
    bench.publish(*numbered(5))
    for _ in range(3):
        bench.get("ch")
    calls: list[list[Tag]] = []
    requeue = SubQueues.requeue

    def counted(sub_queues: SubQueues, tags: Iterable[Tag]) -> None:
        calls.append(list(tags))
        requeue(sub_queues, calls[-1])

    monkeypatch.setattr(SubQueues, "requeue", counted)
    bench.close("ch")
    assert [[tag.seq for tag in tags] for tags in calls] == [[0, 1, 2]]
    assert [bench.get()[0] for _ in range(5)] == numbered(5)
    assert bench.redelivered == ["m0", "m1", "m2"]


def test_a_released_message_is_given_to_the_consumer_in_turn() -> None:
    bench = Bench(PAGING)
    bench.consume("a", credit=1)
    bench.publish("m0", "m1")
    assert bench.release("m0") == ["a:m0"]
    assert bench.redelivered == ["m0"]


def test_a_consumer_that_leaves_keeps_its_messages_until_its_channel_closes() -> None:
    bench = Bench(TIGHT)
    bench.consume("a")
    bench.publish("m0")
    bench.cancel("a")
    assert bench.get() == []
    bench.close("channel of a")
    assert bench.get() == ["m0"]


def test_what_goes_straight_to_a_consumer_that_acknowledges_nothing_is_not_kept() -> None:
    bench = Bench(TIGHT, durable=True)
    bench.consume("a", mode="automatic")
    assert bench.publish("m0", persistent=True) == ["a:m0"]
    sub_queues = process_of(bench).sub_queues
    assert sub_queues.by_level[0].next_seq == 0
    assert process_of(bench).unsettled == {}


# Priorities: one backing queue each.


@pytest.mark.parametrize("address", [PAGING, TIGHT])
def test_the_highest_level_with_messages_is_fetched_from_in_order(address: str) -> None:
    bench = Bench(address, Priority(levels=3))
    for message, priority in zip(numbered(6), (0, 2, 1, 2, 0, 9), strict=True):
        bench.publish(message, priority=priority)
    sub_queues = process_of(bench).sub_queues
    assert list(sub_queues.by_level) == [2, 1, 0]
    assert [queue.length for queue in sub_queues.by_level.values()] == [3, 1, 2]
    assert [bench.get()[0] for _ in range(6)] == ["m1", "m3", "m5", "m2", "m0", "m4"]


@pytest.mark.parametrize("address", [PAGING, TIGHT])
def test_what_returns_returns_to_its_level(address: str) -> None:
    bench = Bench(address, Priority(levels=2))
    for message, priority in zip(numbered(4), (0, 1, 0, 1), strict=True):
        bench.publish(message, priority=priority)
    for _ in range(4):
        bench.get("ch")
    bench.acknowledge("m1")
    bench.close("ch")
    assert [bench.get()[0] for _ in range(3)] == ["m3", "m0", "m2"]


# Crashes.


def crashed(bench: Bench) -> None:
    bench.ok(Crash())
    bench.ok(Restart())


@pytest.mark.parametrize("order", [Fifo(), Priority(levels=2)])
@pytest.mark.parametrize("unsynced", ["lost", "torn", "kept"])
def test_what_was_answered_outlives_a_crash(order: Fifo | Priority, unsynced: str) -> None:
    bench = Bench(f"{TIGHT}&unsynced={unsynced}", order, durable=True)
    for message in numbered(5):
        bench.publish(message, persistent=message != "m2")
    for _ in range(3):
        bench.get()
    bench.acknowledge("m1")
    crashed(bench)
    assert [bench.get()[0] for _ in range(3)] == ["m0", "m3", "m4"]
    assert bench.get() == []


def test_what_was_taken_for_good_does_not_come_back() -> None:
    bench = Bench(PAGING, durable=True)
    bench.publish("m0", "m1", persistent=True)
    assert bench.get(mode="automatic") == ["m0"]
    crashed(bench)
    bench.consume("a", mode="automatic")
    crashed(bench)
    assert bench.get() == []


def test_on_files_what_was_answered_outlives_a_crash_and_the_folder_goes_at_the_end() -> None:
    bench = Bench(f"{TIGHT}&disk=files", durable=True)
    broker = bench.broker
    assert isinstance(broker, BrokerOnFiles)
    for what_copies_can in (OnDisk, OnThreads):
        assert not isinstance(broker, what_copies_can)
    bench.publish("m0", "m1", persistent=True)
    bench.publish("m2")
    crashed(bench)
    assert [bench.get()[0] for _ in range(2)] == ["m0", "m1"]
    assert bench.get() == []
    disk = broker.storage.disk
    assert isinstance(disk, RealDirectory)
    folder = disk.root
    assert list(folder.iterdir())
    bench.ok(Reset())
    assert not folder.exists()
    broker.close()


def test_what_files_were_not_handed_is_lost_with_the_process(tmp_path: Path) -> None:
    disk = RealDirectory(tmp_path)
    disk.append("a", b"handed over")
    disk.sync("a")
    disk.append("a", b" and kept back")
    disk.append("b", b"kept back")
    disk.abandon()
    assert RealDirectory(tmp_path).read("a", 0, 99) == b"handed over"
    assert RealDirectory(tmp_path).size("b") == 0


def test_a_queue_comes_back_as_it_was_declared_or_not_at_all() -> None:
    bench = Bench(TIGHT)
    kept = Declare(queue="kept", order=Priority(levels=3), durable=True, auto_delete=True)
    bench.ok(kept)
    bench.ok(Declare(queue="gone", order=Fifo(), durable=True))
    bench.ok(Delete(queue="gone"))
    crashed(bench)
    assert list(bench.broker.queues) == ["kept"]
    bench.ok(kept)
    otherwise = bench.do(Declare(queue="kept", order=Fifo(), durable=True))
    assert otherwise.error is not None
    bench.consume("a", queue="kept")
    bench.cancel("a")
    assert bench.deleted == ["kept"]
    crashed(bench)
    assert list(bench.broker.queues) == []


def test_what_is_down_only_starts() -> None:
    bench = Bench(PAGING)
    again = bench.do(Restart())
    assert again.error is not None
    assert again.error.code == "refused"
    bench.ok(Crash())
    for operation in (Drain(), Crash(), Declare(queue="q", order=Fifo())):
        answer = bench.do(operation)
        assert answer.error is not None
        assert answer.error.code == "refused"
    bench.ok(Restart())


def test_nothing_is_left_on_the_disk_of_queues_that_are_not_there() -> None:
    bench = Bench(TIGHT, durable=True)
    bench.ok(Declare(queue="t", order=Fifo()))
    for message in numbered(4):
        bench.publish(message, queue="t")
    crashed(bench)
    names = process_of(bench).storage.disk.names()
    assert not [name for name in names if name.startswith("queue-t")]


def test_deliveries_are_named_anew_after_a_crash() -> None:
    bench = Bench(PAGING, durable=True)
    bench.publish("m0", persistent=True)
    bench.get()
    before = bench.delivery_of["m0"]
    crashed(bench)
    bench.get()
    assert bench.delivery_of["m0"] != before
