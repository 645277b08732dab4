"""The journal: replay, torn writes, and when a file is deleted."""

from __future__ import annotations

import pytest

from brokerproof.reference.activemq.disk import journal as journal_module
from brokerproof.reference.activemq.disk.journal import (
    Journal,
    JournalRecord,
    Kind,
    Location,
    location_of,
)
from brokerproof.reference.shared.copies import copied
from brokerproof.reference.shared.disk import SimulatedDisk

FILE_BYTES = 60
"""A file takes three records of these tests."""


def journal_on(disk: SimulatedDisk) -> Journal:
    return Journal(disk, FILE_BYTES)


def replayed(disk: SimulatedDisk) -> list[JournalRecord]:
    return list(journal_on(disk).replay())


def told(records: list[JournalRecord]) -> list[tuple[Kind, str, str]]:
    """Return the contents of records, without their positions."""
    return [(record.kind, record.queue, record.key) for record in records]


def test_what_is_appended_is_replayed_in_order_over_many_files() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    locations = {key: journal.add("a", key, key.encode() * 3) for key in ("1", "2", "ß", "4")}
    journal.acknowledge("b", "2")
    journal.clear("a")
    records = replayed(disk)
    assert told(records) == [
        *((Kind.ADD, "a", key) for key in locations),
        (Kind.ACKNOWLEDGE, "b", "2"),
        (Kind.CLEAR, "a", ""),
    ]
    assert {record.key: record.location for record in records[:4]} == locations
    for key, location in locations.items():
        assert journal.read(location) == journal_on(disk).read(location) == key.encode() * 3
        assert location_of(location.packed()) == location
    assert len(disk.names()) == 2


def test_a_message_is_read_only_where_one_was_added() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    location = journal.add("a", "1", b"")
    journal.acknowledge("a", "1")
    assert journal.read(location) == b""
    with pytest.raises(AssertionError, match="a message that was added"):
        journal.read(Location(1, location.size, location.size))


def test_a_full_file_is_synced_before_the_next_begins() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    for key in "1234567":
        journal.add("a", key, b"value")
        assert list(disk.unsynced()) == [disk.names()[-1]]
    assert journal.is_dirty
    journal.sync()
    assert disk.unsynced() == {}
    assert not journal.is_dirty
    syncs = disk.counts["sync"]
    journal.sync()
    assert disk.counts["sync"] == syncs


def test_files_at_the_front_go_when_nothing_in_them_is_in_use_and_that_is_durable() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    locations = [journal.add("a", key, b"value") for key in "1234567"]
    journal.sync()
    assert disk.names() == ["journal-1", "journal-2", "journal-3"]
    for location in locations[3:6]:
        journal.release(location)
    journal.sync()
    assert len(disk.names()) == 3, "the first is in use, and what acknowledges may be of it"
    for location in locations[:3]:
        journal.release(location)
    assert len(disk.names()) == 3, "what was acknowledged may not be durable yet"
    journal.acknowledge("a", "1")
    journal.sync()
    assert disk.names() == ["journal-3"]
    journal.release(locations[6])
    journal.sync()
    assert disk.names() == ["journal-3"], "it is written to"
    with pytest.raises(AssertionError, match="only what was held"):
        journal.release(locations[6])


def test_a_tail_that_is_torn_or_missing_ends_the_replay_of_its_file() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    sizes = [journal.add("a", key, b"value").size for key in "12"]
    total = sum(sizes)
    for kept in range(total + 1):
        torn = copied(disk)
        torn.crash({"journal-1": kept})
        whole = sum(kept >= sum(sizes[:count]) for count in (1, 2))
        again = journal_on(torn)
        records = list(again.replay())
        assert [record.key for record in records] == ["1", "2"][:whole]
        for record in records:
            again.hold(record.location)
        again.add("a", "3", b"value")
        again.sync()
        torn.crash()
        assert [record.key for record in replayed(torn)] == [*["1", "2"][:whole], "3"]


def find_bytes_that_are_wrong() -> None:
    """Change each byte of two records, one at a time, and replay."""
    disk = SimulatedDisk()
    journal = journal_on(disk)
    first = journal.add("a", "1", b"value")
    second = journal.add("a", "2", b"value")
    sound = replayed(disk)
    for at in range(first.size + second.size):
        changed = copied(disk)
        [byte] = changed.read("journal-1", at, 1)
        changed.write("journal-1", at, bytes([byte ^ 1]))
        assert replayed(changed) == sound[: at >= first.size]


def test_a_byte_that_is_wrong_ends_the_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    find_bytes_that_are_wrong()
    monkeypatch.setattr(journal_module, "crc32", lambda _: 0)
    with pytest.raises((AssertionError, ValueError)):
        find_bytes_that_are_wrong()


def test_damage_in_an_older_file_loses_what_is_behind_it_in_that_file_alone() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    locations = [journal.add("a", key, b"value") for key in "12345"]
    disk.write("journal-1", locations[1].offset, b"\xff")
    assert [record.key for record in replayed(disk)] == ["1", "4", "5"]


def test_what_a_replay_has_found_is_durable() -> None:
    disk = SimulatedDisk()
    journal_on(disk).add("a", "1", b"value")
    assert disk.unsynced() != {}
    replayed(disk)
    disk.crash()
    assert [record.key for record in replayed(disk)] == ["1"]


def test_a_file_that_was_made_and_never_written_to_has_no_records_and_goes() -> None:
    disk = SimulatedDisk()
    disk.append("journal-7", b"")
    journal = journal_on(disk)
    assert list(journal.replay()) == []
    assert journal.add("a", "1", b"value").file == 8
    journal.sync()
    assert disk.names() == ["journal-8"]


def test_a_journal_that_was_replayed_goes_on_in_a_new_file() -> None:
    disk = SimulatedDisk()
    journal_on(disk).add("a", "1", b"value")
    again = journal_on(disk)
    [record] = again.replay()
    again.hold(record.location)
    added = again.add("a", "2", b"value")
    assert (record.location.file, added.file) == (1, 2)
    again.sync()
    assert disk.names() == ["journal-1", "journal-2"]
    again.release(record.location)
    again.sync()
    assert disk.names() == ["journal-2"]


def test_a_copy_goes_its_own_way_and_has_the_name_of_its_original() -> None:
    disk = SimulatedDisk()
    journal = journal_on(disk)
    location = journal.add("a", "1", b"value")
    copy = copied(journal)
    assert copy.fingerprint() == journal.fingerprint()
    copy.release(location)
    assert copy.fingerprint() != journal.fingerprint()
    journal.release(location)
    assert copy.fingerprint() == journal.fingerprint()
    journal.sync()
    assert copy.is_dirty
    assert copy.fingerprint() != journal.fingerprint()
    copy.add("a", "2", b"value")
    assert told(replayed(disk)) == [(Kind.ADD, "a", "1")]
