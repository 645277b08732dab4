"""The two disks keep one contract; the simulated one forgets what was not synced, and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokerproof.reference.disk import OPEN_FILES_MAX
from brokerproof.reference.paging import Disk, PowerLost, RealDirectory, SimulatedDisk

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


def test_a_real_file_is_whole_for_whoever_opens_the_directory_next(tmp_path: Path) -> None:
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
    copy = disk.fork()
    disk.append("a", b"2")
    copy.sync("a")
    copy.delete("a")
    assert disk.read("a", 0, 99) == b"12"
    assert disk.unsynced() == {"a": 2}
    assert copy.names() == []
