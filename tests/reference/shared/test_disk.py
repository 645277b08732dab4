"""The two disks keep one contract; the simulated one loses unsynced data, and counts changes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.rabbitmq.paging import Disk, PowerLost, RealDirectory, SimulatedDisk
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import OPEN_FILES_MAX, _Overwritten
from tests.reference.rabbitmq.paging.test_paging_mistakes import plant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "simulated":
        yield SimulatedDisk()
    else:
        directory = RealDirectory(tmp_path)
        yield directory
        directory.close()


def test_what_is_appended_is_read_before_any_sync(disk: Disk) -> None:
    disk.append("a", b"one")
    disk.append("a", bytearray(b"two"))
    assert disk.read("a", 1, 4) == b"netw"
    assert disk.read("a", 4, 99) == b"wo"
    assert disk.size("a") == 6


def test_a_file_can_be_cut_renamed_in_place_of_another_and_deleted(disk: Disk) -> None:
    disk.append("a", b"content")
    disk.append("b", b"other")
    disk.sync("a")
    disk.truncate("a", 4)
    disk.append("a", b"!")
    disk.sync("a")
    assert disk.names() == ["a", "b"]
    disk.rename("a", "b")
    assert disk.names() == ["b"]
    assert disk.read("b", 0, 99) == b"cont!"
    disk.append("b", b"?")
    assert disk.size("b") == 6
    disk.delete("b")
    assert disk.names() == []


def test_a_file_that_does_not_exist_is_an_error(disk: Disk) -> None:
    with pytest.raises(FileNotFoundError):
        disk.read("a", 0, 1)
    with pytest.raises(FileNotFoundError):
        disk.size("a")
    with pytest.raises(FileNotFoundError):
        disk.delete("a")


def test_more_files_than_may_be_open_are_written_and_read(disk: Disk) -> None:
    names = [f"file{number}" for number in range(OPEN_FILES_MAX + 3)]
    for _ in range(2):
        for name in names:
            disk.append(name, name.encode())
    assert [disk.read(name, 0, 99) for name in names] == [name.encode() * 2 for name in names]
    for name in names:
        disk.sync(name)


def test_a_real_file_is_whole_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    disk = RealDirectory(tmp_path)
    disk.append("a", b"kept")
    disk.close()
    reopened = RealDirectory(tmp_path)
    assert reopened.read("a", 0, 99) == b"kept"
    reopened.close()


@pytest.mark.parametrize(("kept", "left"), [(0, b"synced"), (2, b"syncedlo"), (99, b"syncedlost")])
def test_a_crash_keeps_what_was_synced_and_any_part_of_the_rest(kept: int, left: bytes) -> None:
    disk = SimulatedDisk()
    disk.append("a", b"synced")
    disk.sync("a")
    disk.append("a", b"lo")
    disk.append("a", b"st")
    disk.append("b", b"never synced")
    assert disk.unsynced() == {"a": 4, "b": 12}
    disk.crash({"a": kept})
    assert disk.read("a", 0, 99) == left
    assert disk.names() == ["a"]
    assert disk.unsynced() == {}


def test_the_power_goes_at_the_change_asked_for_and_stays_away() -> None:
    disk = SimulatedDisk()
    disk.power_lost_at = 2
    disk.append("a", b"1")
    disk.sync("a")
    with pytest.raises(PowerLost):
        disk.append("a", b"2")
    with pytest.raises(PowerLost):
        disk.read("a", 0, 1)
    assert disk.unsynced() == {"a": 1}, "the append may have been carried out, or a part of it"
    disk.crash()
    assert disk.read("a", 0, 99) == b"1"
    disk.power_lost_at = disk.changes
    with pytest.raises(PowerLost):
        disk.delete("a")
    disk.crash()
    assert disk.names() == ["a"]


def test_operations_are_counted_by_kind() -> None:
    disk = SimulatedDisk()
    disk.append("a", b"1")
    disk.sync("a")
    disk.read("a", 0, 1)
    disk.read("a", 0, 1)
    assert disk.counts == {
        "append": 1,
        "read": 2,
        "sync": 1,
        "truncate": 0,
        "delete": 0,
        "rename": 0,
    }


def test_a_copy_goes_its_own_way() -> None:
    disk = SimulatedDisk()
    disk.append("a", b"1")
    copy = copied(disk)
    disk.append("a", b"2")
    copy.sync("a")
    copy.delete("a")
    assert disk.read("a", 0, 99) == b"12"
    assert disk.unsynced() == {"a": 2}
    assert copy.names() == []


def test_bytes_are_written_over_others_and_beyond_the_end_go_on(disk: Disk) -> None:
    disk.append("a", b"abcdef")
    disk.write("a", 1, b"BC")
    assert disk.read("a", 0, 99) == b"aBCdef"
    disk.write("a", 5, bytearray(b"FG"))
    disk.write("a", 7, b"H")
    disk.append("a", b"i")
    disk.write("a", 0, b"A")
    disk.sync("a")
    assert disk.read("a", 0, 99) == b"ABCdeFGHi"
    assert disk.size("a") == 9


def test_nothing_is_written_beyond_the_end_or_into_a_file_that_is_not_there(disk: Disk) -> None:
    disk.append("a", b"1")
    with pytest.raises(AssertionError, match="beyond the end"):
        disk.write("a", 2, b"3")
    with pytest.raises(FileNotFoundError):
        disk.write("b", 0, b"1")
    assert disk.names() == ["a"]


def test_what_was_written_in_place_outlives_the_process(tmp_path: Path) -> None:
    disk = RealDirectory(tmp_path)
    disk.append("a", b"abc")
    disk.write("a", 1, b"B")
    disk.append("a", b"lost in a buffer")
    disk.abandon()
    assert (tmp_path / "a").read_bytes() == b"aBc"


Change = tuple[int | None, bytes]
"""Bytes written at an offset, or appended (None)."""


def random_changes(draw: random.Random, size: int) -> list[Change]:
    """Draw some changes of a file that has so many bytes."""
    changes: list[Change] = []
    for _ in range(draw.randrange(1, 7)):
        data = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 5)))
        offset = draw.randrange(size + 1) if draw.random() < 0.6 else None
        changes.append((offset, data))
        size = max(size, (size if offset is None else offset) + len(data))
    return changes


def make(disk: Disk, changes: list[Change]) -> None:
    for offset, data in changes:
        if offset is None:
            disk.append("a", data)
        else:
            disk.write("a", offset, data)


def left_of(synced: bytes, changes: list[Change], kept: int) -> bytes:
    """Return the disk after a crash, by making the changes anew, byte by byte."""
    content = bytearray(synced)
    for offset, data in changes:
        at = len(content) if offset is None else offset
        content[at : at + len(data[:kept])] = data[:kept]
        kept -= len(data[:kept])
    return bytes(content)


def crash_everywhere(draw: random.Random) -> None:
    """Crash a disk with every part of some changes kept, and hold it against the changes."""
    disk = SimulatedDisk()
    synced = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 6)))
    disk.append("a", synced)
    disk.sync("a")
    changes = random_changes(draw, len(synced))
    make(disk, changes)
    total = sum(len(data) for _, data in changes)
    assert disk.unsynced() == {"a": total}
    for kept in range(total + 2):
        copy = copied(disk)
        copy.crash({"a": kept})
        assert copy.content() == {"a": (expected := left_of(synced, changes, kept), len(expected))}
        assert copy.unsynced() == copy.overwritten() == {}
    disk.sync("a")
    disk.crash()
    assert disk.read("a", 0, 99) == left_of(synced, changes, total)


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_keeps_the_first_part_of_what_was_appended_and_written(seed: int) -> None:
    crash_everywhere(random.Random(seed))  # noqa: S311


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("skipped = part if each == first else 0", "skipped = 0"),
        ("range(len(numbers) - 3, first - 1, -3)", "range(first, len(numbers), 3)"),
        ("appended += min(gap, kept)", "appended += gap"),
        ("return appended + kept", "return appended"),
    ],
)
def test_a_disk_that_undoes_wrongly_is_found_out(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    plant(monkeypatch, _Overwritten, "undo", old, new)
    with pytest.raises(AssertionError):  # noqa: PT012 - one of the seeds
        for seed in range(40):
            crash_everywhere(random.Random(seed))  # noqa: S311


@pytest.mark.parametrize("seed", range(5))
def test_both_disks_have_the_same_bytes_after_the_same_changes(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)  # noqa: S311
    real, simulated = RealDirectory(tmp_path), SimulatedDisk()
    for each in (real, simulated):
        each.append("a", b"begun")
    for _ in range(20):
        changes = random_changes(draw, simulated.size("a"))
        make(real, changes)
        make(simulated, changes)
        assert real.read("a", 0, 999) == simulated.read("a", 0, 999)
    real.close()


def test_the_power_goes_within_a_write() -> None:
    disk = SimulatedDisk()
    disk.append("a", b"abcd")
    disk.sync("a")
    disk.power_lost_at = disk.changes
    with pytest.raises(PowerLost):
        disk.write("a", 1, b"XYZ")
    assert disk.unsynced() == {"a": 3}
    disk.crash({"a": 2})
    assert disk.read("a", 0, 99) == b"aXYd"
    assert disk.counts["write"] == 1


def test_disks_that_a_crash_leaves_different_are_told_apart() -> None:
    disk = SimulatedDisk()
    disk.append("a", b"ab")
    disk.sync("a")
    copy = copied(disk)
    for each, pieces in ((disk, ((0, b"x"), (1, b"y"))), (copy, ((1, b"y"), (0, b"x")))):
        for offset, data in pieces:
            each.write("a", offset, data)
    assert disk.content() == copy.content()
    assert disk.overwritten() != copy.overwritten()
    assert copied(disk).overwritten() == disk.overwritten()
    disk.crash({"a": 1})
    copy.crash({"a": 1})
    assert (disk.read("a", 0, 2), copy.read("a", 0, 2)) == (b"xb", b"ay")


def test_what_was_written_in_place_and_not_synced_is_not_renamed() -> None:
    disk = SimulatedDisk()
    disk.append("a", b"ab")
    disk.sync("a")
    disk.write("a", 0, b"x")
    with pytest.raises(AssertionError, match="must be synced"):
        disk.rename("a", "b")
