"""The message store by itself: references, files, compaction, syncs, and both ways back."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.disk import store_recovery
from brokerproof.reference.rabbitmq.disk.message_store import MessageStore, StoreClient
from brokerproof.reference.rabbitmq.disk.store_index import (
    RECENT_MAX,
    Location,
    PackedTable,
    StoreIndex,
)
from brokerproof.reference.rabbitmq.paging import Parameters, PowerLost, SimulatedDisk
from brokerproof.reference.shared.copies import copied
from tests.reference.rabbitmq.paging.paging_bench import msg_id

if TYPE_CHECKING:
    from collections.abc import Collection

BODY = b"x" * 15
RECORD = 40
"""Bytes of a record with such a body."""
PARAMETERS = Parameters(file_size=3 * RECORD, cache_bytes=0)


class Client(StoreClient):
    """A client that remembers its notifications."""

    def __init__(self, ref: str = "c") -> None:
        super().__init__(ref, self.note_written, self.note_ignored)
        self.written: list[bytes] = []
        self.ignored: list[bytes] = []

    def note_written(self, msg_ids: Collection[bytes]) -> None:
        """Remember that writes are durable."""
        self.written += sorted(msg_ids)

    def note_ignored(self, msg_ids: Collection[bytes]) -> None:
        """Remember that writes need not be durable any more."""
        self.ignored += sorted(msg_ids)


def store_on(disk: SimulatedDisk, parameters: Parameters = PARAMETERS) -> MessageStore:
    return MessageStore(disk, "s", parameters, durable=True)


def filled(disk: SimulatedDisk, count: int) -> tuple[MessageStore, Client]:
    """Return a store with so many messages of one client."""
    store, client = store_on(disk), Client()
    store.connect(client)
    for number in range(count):
        store.write(client, msg_id(number), BODY)
    return store, client


def assert_sizes(store: MessageStore) -> None:
    """Compare the store's counts with the disk and the index."""
    on_disk = {name for name in store.disk.names() if name.endswith(".rdq")}
    assert on_disk <= {file.name for file in store.files.values()}
    for file in store.files.values():
        size = store.disk.size(file.name) if file.name in on_disk else 0
        located = [at.size for _, at in store.index.items() if at.file == file.number]
        assert (file.size, file.used) == (size, sum(located))
        assert file.used or file is store.current, "a file without anything in use is gone"
    assert store.size == sum(file.size for file in store.files.values())
    assert store.used == sum(file.used for file in store.files.values())


def test_a_message_written_twice_is_there_until_it_is_removed_twice() -> None:
    disk = SimulatedDisk()
    store, client, other = store_on(disk), Client("a"), Client("b")
    store.connect(client)
    store.connect(other)
    store.write(client, msg_id(1), BODY)
    store.write(other, msg_id(1), BODY)
    assert disk.counts["append"] == 1
    store.remove(client, [msg_id(1)])
    assert store.read(msg_id(1)) == BODY
    store.remove(other, [msg_id(1)])
    assert not store.contains(msg_id(1))
    with pytest.raises(KeyError):
        store.read(msg_id(1))
    with pytest.raises(AssertionError, match="written before it is removed"):
        store.remove(other, [msg_id(1)])


def test_each_client_is_told_of_its_own_writes_once() -> None:
    store, client, other = store_on(SimulatedDisk()), Client("a"), Client("b")
    store.connect(client)
    store.connect(other)
    store.write(client, msg_id(1), BODY)
    store.write(client, msg_id(2), BODY)
    store.write(other, msg_id(2), BODY)
    store.remove(client, [msg_id(1)])
    assert (client.ignored, client.written) == ([msg_id(1)], [])
    assert store.needs_sync()
    store.sync()
    store.sync()
    assert (client.ignored, client.written) == ([msg_id(1)], [msg_id(2)])
    assert (other.ignored, other.written) == ([], [msg_id(2)])
    assert not store.needs_sync()
    store.remove(client, [msg_id(2)])
    assert client.ignored == [msg_id(1)], "what was synced is not ignored"


def test_a_store_that_is_wiped_anyway_is_never_synced() -> None:
    disk = SimulatedDisk()
    store, client = MessageStore(disk, "s", PARAMETERS, durable=False), Client()
    store.connect(client)
    for number in range(7):
        store.write(client, msg_id(number), BODY)
    store.remove(client, [msg_id(0)])
    assert not store.needs_sync()
    store.sync()
    assert disk.counts["sync"] == 0
    assert (client.written, client.ignored) == ([], [])
    assert [store.read(msg_id(number)) for number in (1, 6)] == [BODY, BODY]


def test_a_full_file_is_synced_and_followed_by_a_new_one() -> None:
    disk = SimulatedDisk()
    store, client = filled(disk, 3)
    assert client.written == [msg_id(0), msg_id(1), msg_id(2)]
    assert store.current.number == 1
    store.write(client, msg_id(3), BODY)
    assert disk.unsynced() == {"s.1.rdq": RECORD}
    assert_sizes(store)


def test_a_file_goes_with_its_last_message_and_the_current_one_stays() -> None:
    store, client = filled(SimulatedDisk(), 4)
    store.remove(client, [msg_id(0), msg_id(1)])
    assert store.disk.names() == ["s.0.rdq", "s.1.rdq"]
    store.remove(client, [msg_id(2), msg_id(3)])
    assert store.disk.names() == ["s.1.rdq"]
    assert_sizes(store)


def test_much_garbage_is_compacted_and_nothing_in_use_is_lost() -> None:
    disk = SimulatedDisk()
    store, client = filled(disk, 9)
    before = disk.counts["rename"]
    store.remove(client, [msg_id(number) for number in (0, 1, 4, 5, 7)])
    assert disk.counts["rename"] == before + 1
    for number in (2, 3, 6, 8):
        assert store.read(msg_id(number)) == BODY
    assert store.index.get(msg_id(3)) == Location(1, 0, RECORD, RECORD)
    assert "s.1.rdq" not in disk.names()
    assert_sizes(store)


def test_little_garbage_is_left_where_it_is() -> None:
    disk = SimulatedDisk()
    store, client = filled(disk, 9)
    store.remove(client, [msg_id(number) for number in (0, 3, 6, 7)])
    assert disk.counts["rename"] == 0
    assert_sizes(store)


def test_what_was_just_written_is_read_without_the_disk() -> None:
    disk = SimulatedDisk()
    store, client = store_on(disk, Parameters(cache_bytes=2 * RECORD)), Client()
    store.connect(client)
    for number in range(3):
        store.write(client, msg_id(number), b"%d" % number * 15)
    assert [store.read(msg_id(number)) for number in (2, 0)] == [b"2" * 15, b"0" * 15]
    assert disk.counts["read"] == 1
    store.remove(client, [msg_id(2)])
    assert not store.contains(msg_id(2))


def test_a_torn_record_is_left_out_and_cut_off() -> None:
    for kept in range(RECORD + 1):
        disk = SimulatedDisk()
        store, client = filled(disk, 1)
        store.sync()
        store.write(client, msg_id(1), BODY)
        disk.crash({"s.0.rdq": kept})
        recovered = store_on(disk)
        store_recovery.recover_from_files(recovered, {msg_id(0): 1, msg_id(1): 1})
        assert recovered.contains(msg_id(0))
        assert recovered.contains(msg_id(1)) == (kept == RECORD)
        assert_sizes(recovered)


def test_after_a_crash_what_no_index_refers_to_is_garbage() -> None:
    disk = SimulatedDisk()
    filled(disk, 7)
    disk.crash({"s.2.rdq": RECORD})
    store, client = store_on(disk), Client()
    store_recovery.recover_from_files(store, {msg_id(0): 2, msg_id(5): 1})
    store.connect(client)
    assert [number for number in range(7) if store.contains(msg_id(number))] == [0, 5]
    assert "s.2.rdq" not in disk.names()
    assert_sizes(store)
    store.remove(client, [msg_id(0)])
    assert store.contains(msg_id(0)), "two referred to it"


def test_after_a_clean_stop_the_store_is_as_it_was() -> None:
    disk = SimulatedDisk()
    store, client = filled(disk, 7)
    store.remove(client, [msg_id(1)])
    store.write(client, msg_id(6), BODY)
    store.terminate(["c"])
    disk.crash()
    reads = disk.counts["read"]
    terms = (again := store_on(disk)).terms()
    assert terms is not None
    assert terms.clients == ["c"]
    store_recovery.recover_cleanly(again, terms)
    assert disk.counts["read"] == reads + 1, "no file of messages was scanned"
    assert again.index.items() == store.index.items()
    assert_sizes(again)
    assert [again.read(msg_id(number)) for number in (0, 6)] == [BODY, BODY]


def test_a_crash_within_a_compaction_loses_nothing() -> None:
    numbers = range(9)
    removed = (0, 1, 4, 5, 7)
    crashes = 0
    while True:
        disk = SimulatedDisk()
        store, client = filled(disk, 9)
        store.sync()
        disk.power_lost_at = disk.changes + crashes
        try:
            store.remove(client, [msg_id(number) for number in removed])
        except PowerLost:
            unsynced = disk.unsynced()
            for part in (0, 1, 2):
                torn = copied(disk)
                torn.crash({name: size * part // 2 for name, size in unsynced.items()})
                again = store_on(torn)
                left = [number for number in numbers if number not in removed]
                store_recovery.recover_from_files(again, {msg_id(number): 1 for number in left})
                assert [again.read(msg_id(number)) for number in left] == [BODY] * len(left)
                assert_sizes(again)
            crashes += 1
        else:
            break
    assert crashes == 4, "the draft's append and sync, its rename, the right file's deletion"


@pytest.mark.parametrize("seed", range(5))
def test_any_run_keeps_references_and_sizes(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    store, clients = store_on(SimulatedDisk()), [Client("a"), Client("b")]
    for client in clients:
        store.connect(client)
    held: list[tuple[Client, bytes]] = []
    for number in range(150):
        if draw.random() < 0.5 or not held:
            one = draw.choice(clients), msg_id(draw.randrange(number + 1))
            if one not in held:
                store.write(*one, BODY + one[1][-1:])
                held.append(one)
        else:
            client, removed = held.pop(draw.randrange(len(held)))
            store.remove(client, [removed])
        assert_sizes(store)
        for _, each in held:
            assert store.read(each) == BODY + each[-1:]
        references = {each: location.references for each, location in store.index.items()}
        ids = [each for _, each in held]
        assert references == {each: ids.count(each) for each in ids}


@pytest.mark.parametrize("seed", range(5))
def test_the_packed_table_is_a_mapping(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    table, expected = PackedTable(), dict[bytes, Location]()
    for number in range(2_000):
        key = msg_id(draw.randrange(150))
        if draw.random() < 0.5:
            table.put(key, Location(1, number, number, number))
            expected[key] = Location(1, number, number, number)
        else:
            assert table.pop(key) == expected.pop(key, None)
        assert table.get(key) == expected.get(key)
        assert len(table) == len(expected)
    assert dict(table.items()) == expected
    copy = copied(table)
    for key in list(expected):
        assert copy.pop(key) == expected[key]
    assert dict(table.items()) == expected
    assert dict(copy.items()) == {}


def test_the_index_moves_what_is_not_recent_and_finds_it_there() -> None:
    index = StoreIndex()
    count = RECENT_MAX + 100
    for number in range(count):
        index.put(msg_id(number), Location(1, 0, number, 1))
    assert len(index) == count
    assert index.get(msg_id(7)) == index.pop(msg_id(7)) == Location(1, 0, 7, 1)
    assert index.get(msg_id(7)) is None
    assert index.get(msg_id(count - 1)) == Location(1, 0, count - 1, 1)
    assert len(index.items()) == len(index) == count - 1
    again = StoreIndex()
    again.load(index.dump())
    assert again.items() == index.items()
    assert again.dump() == index.dump()
