"""The stores of a broker against plain maps: messages, files and names."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.activemq.disk.journal import location_of
from brokerproof.reference.activemq.disk.journaled_store import JournaledStore, QueueStores
from brokerproof.reference.activemq.disk.reference_store import Recovered, StoreParameters
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import Disk, PowerLost, RealDirectory, SimulatedDisk
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

QUEUES = ("a", "b")
KEYS = "1234"
TIGHT = StoreParameters(data_file_bytes=70, journal_file_bytes=90, front_max=3)

State = tuple[tuple[tuple[str, bytes], ...], ...]
"""Keys and messages of each queue, in order."""


class Subscriber:
    """A listener with unlimited memory, which remembers the messages it was shown."""

    def __init__(self, says: Recovered = Recovered.TAKEN) -> None:
        self.taken: list[tuple[str, bytes]] = []
        self.says = says

    def has_space(self) -> bool:
        """There is always memory."""
        return True

    def recover(self, key: str, value: bytes) -> Recovered:
        """Take whatever comes, or say so of it."""
        self.taken.append((key, value))
        return self.says


class Bench:
    """Stores beside plain maps; `possible` are the states after a crash, the newest last."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.stores = QueueStores(self.disk, TIGHT, QUEUES)
        self.expected: dict[str, dict[str, bytes]] = {queue: {} for queue in QUEUES}
        self.possible = [self.state()]
        self.added = 0

    def state(self) -> State:
        """Return the expected messages."""
        return tuple(tuple(self.expected[queue].items()) for queue in QUEUES)

    def run(self, change: str) -> None:
        """Carry out one change, such as `add a 1`; its effect counts as possible before."""
        verb, queue, key, *_ = [*change.split(), "a", ""]
        messages = self.expected[queue]
        store = self.stores.open(queue)
        if verb == "add":
            self.added += 1
            value = b"%d" % self.added * (self.added % 5)
            messages.pop(key, None)
            messages[key] = value
            self.possible.append(self.state())
            store.add(key, value)
        elif verb == "remove":
            was_there = messages.pop(key, None) is not None
            self.possible.append(self.state())
            assert store.remove(key) == was_there
        elif verb in {"clear", "delete"}:
            messages.clear()
            self.possible.append(self.state())
            if verb == "clear":
                store.clear()
            else:
                self.stores.delete(queue)
                self.stores.open(queue)
        elif verb == "flush":
            store.flush()
        elif verb == "read":
            store.recover_next(2, Subscriber())
        else:
            assert verb == "sync"
            self.stores.sync()
            assert not self.stores.needs_sync()
            journal = self.stores._journal
            first = min(journal._in_use, default=journal._number)
            assert first == journal._number or journal._in_use[first], "the front is in use"
            self.possible = [self.state()]

    def check(self) -> None:
        """Hold a copy of the stores against the maps, and the files against the stores."""
        disk, stores = copied((self.disk, self.stores))
        assert stores.fingerprint() == self.stores.fingerprint()
        for queue in QUEUES:
            for key in KEYS:
                assert stores.open(queue).get(key) == self.expected[queue].get(key)
        self.check_files(disk, stores)
        assert shown(stores) == self.state()
        self.check_files(disk, stores)
        for queue in QUEUES:
            assert stores.open(queue).count() == len(self.expected[queue])
            assert stores.open(queue).added == stores.open(queue).acknowledged == {}

    def check_files(self, disk: SimulatedDisk, stores: QueueStores) -> None:
        """Each journal file's count is how many messages in it an index or a front refers to."""
        held = Counter[int]()
        for queue in QUEUES:
            store = stores.open(queue)
            held.update(location.file for location in store.added.values())
            entries = store.references.container.entries()
            held.update(location_of(reference).file for _, reference in entries)
        journal = stores._journal
        assert Counter(journal._in_use) == held
        numbers = {int(name.split("-")[1]) for name in disk.names() if name.startswith("journal")}
        assert numbers == set(journal._in_use)

    def restart(self) -> None:
        """Stop without warning, but keep all that was written; and start."""
        self.disk.crash(self.disk.unsynced())
        self.stores = QueueStores(self.disk, TIGHT, QUEUES)
        self.possible = [self.state()]


def shown(stores: QueueStores) -> State:
    """Return the stores' messages, by a full recovery."""
    state = []
    for queue in QUEUES:
        subscriber = Subscriber()
        assert stores.open(queue).recover(subscriber) == len(subscriber.taken)
        state.append(tuple(subscriber.taken))
    return tuple(state)


MOVES = ("add",) * 8 + ("remove",) * 7 + ("flush", "read", "sync", "sync", "clear", "delete")


def walk(seed: int) -> None:
    """Change stores at random, with restarts and copies among it."""
    draw = random.Random(seed)  # noqa: S311
    bench = Bench()
    for _ in range(70):
        if draw.random() < 0.03:
            bench.restart()
        else:
            queue = "a" if draw.random() < 0.7 else "b"
            bench.run(f"{draw.choice(MOVES)} {queue} {draw.choice(KEYS)}")
        bench.check()


@pytest.mark.parametrize("seed", range(20))
def test_any_run_has_what_plain_maps_have(seed: int) -> None:
    walk(seed)


def test_a_front_that_is_full_is_flushed() -> None:
    store = Bench().stores.open("a")
    for key in KEYS[: TIGHT.front_max]:
        store.add(key, b"")
    assert len(store.references.container) == 0
    store.add("4", b"")
    assert (len(store.references.container), store.added) == (4, {})
    for key in KEYS[: TIGHT.front_max]:
        store.remove(key)
    assert len(store.references.container) == 4
    store.remove("4")
    assert (len(store.references.container), store.acknowledged) == (0, {})


def test_what_is_dropped_from_the_front_never_reaches_the_index() -> None:
    bench = Bench()
    writes = bench.disk.counts["write"]
    store = bench.stores.open("a")
    store.add("1", b"")
    assert store.remove("1")
    assert not store.remove("1")
    assert store.count() == 0
    assert bench.disk.counts["write"] == writes


def test_nothing_syncs_by_itself_but_where_a_file_of_the_journal_begins() -> None:
    disk = SimulatedDisk()
    stores = QueueStores(disk, StoreParameters(journal_file_bytes=1_000), ["a"])
    store = stores.open("a")
    for number in range(200):
        store.add(str(number), b"x" * 10)
        store.flush()
        store.remove(str(number - 3))
    assert disk.counts["sync"] == stores._journal._number - 1 > 5


def test_queues_of_any_name_have_files_of_their_own() -> None:
    disk = SimulatedDisk()
    names = ["..", "a", "a-1", "a/b", "q ß", ""]
    stores = QueueStores(disk, TIGHT, names)
    for number, name in enumerate(names):
        stores.open(name).add("1", b"%d" % number)
        stores.open(name).flush()
    assert not any("/" in name for name in disk.names())
    assert len(disk.names()) == 2 * len(names) + len(stores._journal._in_use)
    stores.sync()
    stores = QueueStores(disk, TIGHT, names)
    assert stores.names() == sorted(names)
    for number, name in enumerate(names):
        assert stores.open(name).get("1") == b"%d" % number
        stores.delete(name)
    stores.sync()
    assert [name for name in disk.names() if not name.startswith("journal-")] == []


STEPS = (
    *("add 1", "add 2", "remove 1", "remove 2", "flush", "read", "pass", "reset"),
    *("sync", "clear", "crash", "crash with all that was written"),
)


def after(stores: QueueStores, disk: SimulatedDisk, step: str) -> tuple[QueueStores, Hashable]:
    """Carry out a step, and return the resulting stores, and the messages seen."""
    verb, *keys = step.split()
    store = stores.open("a")
    seen: Hashable = None
    if verb == "add":
        store.add(keys[0], keys[0].encode())
    elif verb == "remove":
        seen = store.remove(keys[0])
    elif verb == "flush":
        store.flush()
    elif verb in {"read", "pass"}:
        subscriber = Subscriber(Recovered.TAKEN if verb == "read" else Recovered.DUPLICATE)
        seen = (store.recover_next(1, subscriber), tuple(subscriber.taken))
    elif verb == "reset":
        store.reset_batching()
    elif verb == "sync":
        stores.sync()
    elif verb == "clear":
        store.clear()
    else:
        disk.crash(disk.unsynced() if keys else None)
        stores = QueueStores(disk, TIGHT, QUEUES)
        seen = shown(stores)
    return stores, seen


def seen_after(stores: QueueStores, disk: SimulatedDisk) -> Hashable:
    """Return the views after each step and each pair of steps, and the meanings."""
    seen: list[tuple[Hashable, Hashable]] = []
    for first in STEPS:
        begun, at_first = copied((stores, disk))
        then, one = after(begun, at_first, first)
        seen.append((one, then.meaning()))
        seen += [
            (after(*copied((then, at_first)), second)[1], None)
            for second in ("read", "remove 1", "crash")
        ]
    return tuple(seen)


def meet_all_meanings() -> int:
    """Visit stores by their meaning; where one is met twice, hold both against each other."""
    disk = SimulatedDisk()
    stores = QueueStores(disk, TIGHT, QUEUES)
    known = {stores.meaning(): (stores.fingerprint(), seen_after(stores, disk))}
    front = [(stores, disk)]
    compared = 0
    for _ in range(4):
        reached = []
        for stores, disk in front:
            for step in STEPS:
                begun, its_disk = copied((stores, disk))
                copy, _ = after(begun, its_disk, step)
                meaning = copy.meaning()
                if meaning not in known:
                    known[meaning] = copy.fingerprint(), seen_after(copy, its_disk)
                    reached.append((copy, its_disk))
                elif known[meaning][0] != copy.fingerprint():
                    assert seen_after(copy, its_disk) == known[meaning][1]
                    compared += 1
        front = reached
    return compared


def test_stores_of_one_meaning_behave_alike() -> None:
    assert meet_all_meanings() > 100


@pytest.mark.parametrize(
    ("owner", "old", "new"),
    [
        (JournaledStore, "entries, pos,", "entries, None,"),
        (JournaledStore, "references.last_id", "None"),
        (JournaledStore, "frozenset(self.acknowledged)", "None"),
        (JournaledStore, "added, frozenset", "None, frozenset"),
        (QueueStores, "return stores, kept, pending", "return stores, kept, ()"),
        (QueueStores, "return stores, kept, pending", "return stores, (), pending"),
    ],
)
def test_a_meaning_that_leaves_something_out_is_found_out(
    monkeypatch: pytest.MonkeyPatch, owner: type, old: str, new: str
) -> None:
    plant(monkeypatch, owner, "meaning", old, new)
    with pytest.raises(AssertionError):
        meet_all_meanings()


def test_to_ask_for_the_meaning_changes_nothing() -> None:
    disk = SimulatedDisk()
    stores = QueueStores(disk, TIGHT, QUEUES)
    stores.open("a").add("1", b"1")
    stores.open("a").flush()
    before = disk.content(), disk.counts.copy(), disk.changes, stores.fingerprint()
    meaning = stores.meaning()
    assert (disk.content(), disk.counts, disk.changes, stores.fingerprint()) == before
    disk.power_lost_at = disk.changes
    with pytest.raises(PowerLost):
        stores.sync()
    assert stores.meaning() == meaning


def test_real_files_have_the_bytes_of_simulated_ones(tmp_path: Path) -> None:
    simulated, real = SimulatedDisk(), RealDirectory(tmp_path)
    disks: tuple[Disk, ...] = (simulated, real)
    for disk in disks:
        stores = QueueStores(disk, TIGHT, QUEUES)
        draw = random.Random(2)  # noqa: S311
        for number in range(300):
            store = stores.open(draw.choice(QUEUES))
            key = draw.choice("123456789")
            if draw.random() < 0.6:
                store.add(key, b"%d" % number)
            else:
                store.remove(key)
            if number % 40 == 0:
                stores.sync()
            if number % 130 == 129:
                stores.sync()
                stores = QueueStores(disk, TIGHT, QUEUES)
        stores.sync()
    real.close()
    content = {name: content for name, (content, _) in simulated.content().items()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == content
    assert len(content) > 6
