"""The whole queue on a disk that loses its power: at every change of short scripts, and after.

Confirmed, unacknowledged messages are there again (C4); order and bodies are kept; no transient or
unknown message comes back; and the queue goes on working. `PagingBench` checks that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.paging import (
    Disk,
    Node,
    Parameters,
    PowerLost,
    RealDirectory,
    SimulatedDisk,
)
from brokerproof.reference.shared.copies import copied
from tests.reference.rabbitmq.paging.paging_bench import NAME, PagingBench, body, msg_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Script = tuple["Callable[[PagingBench], None]", ...]
TIGHT = Parameters(segment=2, batch=1, journal_limit=4, file_size=90, cache_bytes=0)


def publish(bench: PagingBench) -> None:
    bench.publish(persistent=True)


def publish_transient(bench: PagingBench) -> None:
    bench.publish()


def publish_delivered(bench: PagingBench) -> None:
    bench.publish_delivered(persistent=True)


def fetch(bench: PagingBench) -> None:
    bench.fetch()


def drop(bench: PagingBench) -> None:
    bench.drop()


def acknowledge(bench: PagingBench) -> None:
    bench.acknowledge([min(bench.oracle.pending)])


def requeue(bench: PagingBench) -> None:
    bench.requeue(list(bench.oracle.pending))


def purge(bench: PagingBench) -> None:
    bench.purge()


def page(bench: PagingBench) -> None:
    bench.set_target(0)
    bench.settle()


def sync(bench: PagingBench) -> None:
    bench.sync()


def restart(bench: PagingBench) -> None:
    bench.restart()


SCRIPTS: dict[str, Script] = {
    "through the queue": (publish, publish, sync, fetch, acknowledge, fetch, sync, acknowledge),
    "straight to a consumer": (publish_delivered, sync, publish, acknowledge, sync, drop),
    "paged and brought up": (*(publish,) * 5, page, fetch, sync, fetch, acknowledge, fetch),
    "returned into place": (*(publish,) * 4, fetch, fetch, page, requeue, sync, fetch, publish),
    "persistent among transient": (
        *(publish, publish_transient) * 3,
        page,
        fetch,
        fetch,
        sync,
        acknowledge,
    ),
    "purged": (*(publish,) * 3, fetch, sync, page, purge, publish, sync),
    "stopped and started": (*(publish,) * 3, fetch, restart, publish, fetch, restart, drop, sync),
}


def run(script: Script, power_lost_at: int) -> tuple[PagingBench, bool]:
    """Run a script until the power goes; say whether that was before its end."""
    bench = PagingBench(TIGHT)
    bench.disk.power_lost_at = power_lost_at
    try:
        for each in script:
            each(bench)
    except PowerLost:
        return bench, True
    return bench, False


def remember_what_is_under_way(bench: PagingBench) -> None:
    """Give the oracle the possible effects of the interrupted operation.

    A message that was being published may be there, though unconfirmed; one whose settlement the
    oracle has not seen yet may be gone, and then counts as settled.
    """
    oracle, queue = bench.oracle, bench.queue
    bench.confirmed |= queue.drain_confirmed()
    cut_off = bench.published - 1
    known = {**bench.done, **oracle.ready, **oracle.pending}
    if cut_off >= 0 and msg_id(cut_off) not in {message.msg_id for message in known.values()}:
        message = bench.last_message
        assert message is not None
        bench.done[message.seq] = message
    for seq in bench.done:
        oracle.pending.pop(seq, None)
        oracle.ready.pop(seq, None)


def crashed(script: Script) -> Iterator[tuple[PagingBench, SimulatedDisk]]:
    """Yield for each change of a script the bench and the disk without power."""
    at = 0
    while True:
        bench, was_cut_off = run(script, at)
        if not was_cut_off:
            return
        remember_what_is_under_way(bench)
        yield bench, bench.disk
        at += 1


def parts(disk: SimulatedDisk) -> Iterator[dict[str, int]]:
    """Yield how much unsynced data is kept: none, all, or a part of each file."""
    unsynced = disk.unsynced()
    yield {}
    yield unsynced
    for name, size in unsynced.items():
        for kept in {1, size // 2, size - 1}:
            yield {**unsynced, name: kept}
            yield {name: kept}


def goes_on(bench: PagingBench) -> None:
    """Use a queue that was recovered: publish, page, drain, each message with its own body."""
    bench.publish(persistent=True)
    page(bench)
    while bench.oracle.ready:
        bench.fetch()
    bench.acknowledge(list(bench.oracle.pending))
    bench.sync()


def recovered(bench: PagingBench, disk: SimulatedDisk) -> PagingBench:
    """Return a bench on a disk that has its power again, with the other's knowledge."""
    again = object.__new__(PagingBench)
    again.__dict__.update(bench.__dict__)
    again.done = dict(bench.done)
    again.confirmed = set(bench.confirmed)
    again.disk = disk
    again.start()
    return again


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_power_may_go_at_any_change(name: str) -> None:
    count = 0
    for bench, disk in crashed(SCRIPTS[name]):
        for kept in parts(disk):
            torn = copied(disk)
            torn.crash(kept)
            again = recovered(bench, torn)
            again.adopt_what_survived(was_stopping=restart in SCRIPTS[name])
            goes_on(again)
            count += 1
    assert count > 20


@pytest.mark.each_time(3)
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_power_may_go_again_while_the_queue_comes_back(name: str) -> None:
    count = 0
    for bench, disk in crashed(SCRIPTS[name]):
        for first in ({}, disk.unsynced()):
            torn = copied(disk)
            torn.crash(first)
            at = torn.changes
            while True:
                again = copied(torn)
                again.power_lost_at = at
                try:
                    Node(again, TIGHT, [NAME])
                except PowerLost:
                    again.crash({name: size // 2 for name, size in again.unsynced().items()})
                    survivor = recovered(bench, again)
                    survivor.adopt_what_survived(was_stopping=restart in SCRIPTS[name])
                    goes_on(survivor)
                    count += 1
                    at += 1
                else:
                    break
    assert count > 20


def test_real_files_have_the_bytes_of_simulated_ones(tmp_path: Path) -> None:
    simulated, real = SimulatedDisk(), RealDirectory(tmp_path)
    disks: tuple[Disk, ...] = (simulated, real)
    for disk in disks:
        node = Node(disk, TIGHT)
        queue = node.declare(NAME, durable=True)
        for start in range(3):
            queue.set_target(start)
            for number in range(start * 40, start * 40 + 40):
                queue.publish(msg_id(number), body(number), persistent=number % 3 > 0)
                if number % 2:
                    fetched = queue.fetch(ack_required=True)
                    assert fetched is not None
                    assert fetched.tag is not None
                    if number % 4 == 1:
                        queue.acknowledge([fetched.tag])
            node.sync()
            if start < 2:
                node.terminate()
                node = Node(disk, TIGHT, [NAME])
                queue = node.queues[NAME]
    real.close()
    content = {name: content for name, (content, _) in simulated.content().items()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == content
    assert len(content) > 10


def test_after_a_crash_nothing_is_left_of_transient_messages() -> None:
    bench = PagingBench(TIGHT)
    for _ in range(12):
        bench.publish()
    page(bench)
    bench.sync()
    for kind in (".rdq", ".idx"):
        assert any(name.endswith(kind) for name in bench.disk.names())
    bench.crash()
    assert bench.queue.length == 0
    assert [name for name in bench.disk.names() if name.endswith((".rdq", ".idx"))] == []


def test_a_message_without_its_body_is_forgotten() -> None:
    bench = PagingBench(Parameters(segment=2))
    bench.publish(persistent=True)
    bench.publish(persistent=True)
    bench.queue.sync()
    # They were never confirmed: the store was never synced.
    assert bench.confirmed == set()
    bench.crash()
    assert bench.queue.length == 0


def test_a_queue_whose_own_stop_was_clean_knows_its_deliveries() -> None:
    bench = PagingBench()
    bench.publish(persistent=True)
    bench.publish(persistent=True)
    bench.fetch()
    bench.node.terminate()
    store_terms = [name for name in bench.disk.names() if name.startswith("store-persistent.terms")]
    for name in store_terms:
        bench.disk.delete(name)
    node = Node(bench.disk, bench.parameters, [NAME])
    first = node.queues[NAME].fetch(ack_required=False)
    second = node.queues[NAME].fetch(ack_required=False)
    assert first is not None
    assert second is not None
    assert store_terms
    assert (first.body, first.redelivered) == (body(0), True)
    assert (second.body, second.redelivered) == (body(1), False)


def test_queues_that_share_a_message_share_its_body() -> None:
    disk = SimulatedDisk()
    node = Node(disk, TIGHT)
    for name in ("a", "b"):
        node.declare(name, durable=True).publish(msg_id(1), body(1), persistent=True)
    node.sync()
    assert len(node.persistent_store.index) == 1
    disk.crash()
    node = Node(disk, TIGHT, ["a", "b"])
    fetched = node.queues["a"].fetch(ack_required=False)
    assert fetched is not None
    assert fetched.body == body(1)
    node.sync()
    node.terminate()
    node = Node(disk, TIGHT, ["a", "b"])
    assert node.queues["a"].length == 0
    fetched = node.queues["b"].fetch(ack_required=False)
    assert fetched is not None
    assert fetched.body == body(1)
    assert len(node.persistent_store.index) == 0
