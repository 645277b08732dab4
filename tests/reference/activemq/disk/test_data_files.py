"""Data files: how large they become, and that they go with their last item (AMQ-I32)."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from brokerproof.reference.activemq.disk.data_files import DataFiles
from brokerproof.reference.activemq.disk.store_records import HEAD_BYTES, Item
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import SimulatedDisk
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

FILE_BYTES = 30


def assert_counts(files: DataFiles, disk: SimulatedDisk, items: dict[Item, bytes]) -> None:
    """Hold counts and files against the items in use."""
    counts = Counter(item.file for item in items)
    numbers = [int(name.rpartition("-")[2]) for name in disk.names()]
    assert files.in_use == {number: counts[number] for number in numbers}
    written_to = max(numbers, default=0)
    assert all(counts[number] for number in numbers if number != written_to)
    for number in numbers:
        size = disk.size(f"data-c-{number}")
        assert size <= FILE_BYTES or size == HEAD_BYTES + 40, "only an item that is larger fills it"
    for item, content in items.items():
        assert files.read(item) == content


def walk(seed: int) -> None:
    """Store, release, load and copy at random."""
    draw = random.Random(seed)  # noqa: S311
    disk = SimulatedDisk()
    files = DataFiles(disk, "c", FILE_BYTES)
    items: dict[Item, bytes] = {}
    for number in range(60):
        move = draw.random()
        if move < 0.55 or not items:
            content = bytes([number]) * draw.choice((0, 1, 7, 12, 40))
            items[files.store(content)] = content
        elif move < 0.9:
            item = draw.choice(list(items))
            del items[item]
            files.release(item)
        elif move < 0.95:
            files = DataFiles(disk, "c", FILE_BYTES)
            files.load(items)
        else:
            disk, files = copied((disk, files))
        assert_counts(files, disk, items)
    files.clear()
    assert disk.names() == []
    assert files.read(files.store(b"anew")) == b"anew"


@pytest.mark.parametrize("seed", range(20))
def test_a_file_is_there_while_an_item_in_it_is_in_use(seed: int) -> None:
    walk(seed)


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        ("release", " and item.file != self._number", ""),
        ("release", "self.in_use[item.file] -= 1", "pass"),
        ("release", "not self.in_use[item.file] and", "False and"),
        ("store", "if not self.in_use[full]:", "if False:"),
        ("store", "self._size + len(data) > self._file_bytes", "self._size > self._file_bytes"),
        ("load", "self.in_use[item.file] += 1", "self.in_use[item.file] = 1"),
        ("load", "self._disk.size(self._name(self._number)) if self.in_use else 0", "0"),
    ],
)
def test_a_count_that_is_wrong_is_found_out(
    monkeypatch: pytest.MonkeyPatch, function: str, old: str, new: str
) -> None:
    plant(monkeypatch, DataFiles, function, old, new)
    with pytest.raises((AssertionError, FileNotFoundError, KeyError)):  # noqa: PT012
        for seed in range(20):
            walk(seed)


def test_names_of_containers_that_begin_alike_are_told_apart() -> None:
    disk = SimulatedDisk()
    longer = DataFiles(disk, "c-1", FILE_BYTES)
    longer.store(b"its own")
    files = DataFiles(disk, "c", FILE_BYTES)
    files.load([])
    assert files.in_use == {}


def test_states_that_behave_alike_have_one_name() -> None:
    disk = SimulatedDisk()
    files = DataFiles(disk, "c", FILE_BYTES)
    copy = copied(files)
    assert files.fingerprint() == copy.fingerprint()
    item = copy.store(b"1")
    assert files.fingerprint() != copy.fingerprint()
    files.store(b"1")
    assert files.fingerprint() == copy.fingerprint()
    copy.release(item)
    assert files.fingerprint() != copy.fingerprint()
