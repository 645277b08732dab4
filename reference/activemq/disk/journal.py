"""The journal: the changes to the messages of all queues of a broker, in order.

Owns the files `journal-<number>` and their records. After a crash everything else is rebuilt from
it. A record adds a message, acknowledges one, or clears a queue. Its checksum detects a torn
record. The caller that adds a message says when the message is no longer in use.

Syncing: `sync` makes all earlier records durable. A caller syncs before it tells a client that a
message is safe or gone. Only the current file can have unsynced records, since it is synced before
the next one begins. A file at the front is deleted when no message in it is in use, and only right
after a sync, so that the acknowledgement or replacement of its messages is durable. Only the first
file may be deleted: an acknowledgement in it may concern a message in an earlier one.
"""

from __future__ import annotations

import enum
import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from brokerproof.reference.shared.disk import SimulatedDisk

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from brokerproof.reference.shared.disk import Disk

JOURNAL_FILE_BYTES: Final = 32 * 1024 * 1024
_FILE_NAME: Final = re.compile(r"journal-(\d+)")
_HEADER: Final = struct.Struct(">BIII")
"""A record's kind, and the sizes of queue name, message name and message in bytes."""
_CHECKSUM: Final = struct.Struct(">I")
_LOCATION: Final = struct.Struct(">IQI")


class Kind(enum.IntEnum):
    """The kind of a record."""

    ADD = 1
    ACKNOWLEDGE = 2
    CLEAR = 3


class Location(NamedTuple):
    """The location of a record: the file's number, offset and size in bytes."""

    file: int
    offset: int
    size: int

    def packed(self) -> bytes:
        """Return it as bytes, for an index."""
        return _LOCATION.pack(*self)


class JournalRecord(NamedTuple):
    """A record as a replay returns it; the key is empty for a cleared queue."""

    kind: Kind
    queue: str
    key: str
    location: Location


def location_of(packed: bytes) -> Location:
    """Return the location that was packed."""
    return Location(*_LOCATION.unpack(packed))


def _record_bytes(kind: Kind, queue: str, key: str, value: bytes) -> bytes:
    queue_bytes, key_bytes = queue.encode(), key.encode()
    header = _HEADER.pack(kind, len(queue_bytes), len(key_bytes), len(value))
    record = b"".join((header, queue_bytes, key_bytes, value))
    return record + _CHECKSUM.pack(crc32(record))


def _value_in(record: bytes) -> bytes:
    kind, queue_size, key_size, value_size = _HEADER.unpack_from(record)
    assert kind == Kind.ADD, "a location leads to a message that was added"
    start = _HEADER.size + queue_size + key_size
    assert start + value_size + _CHECKSUM.size == len(record), "what a location leads to is whole"
    return record[start : start + value_size]


def _records_in(data: bytes, file: int) -> Iterator[JournalRecord]:
    """Yield the records of a file up to the first torn one."""
    at = 0
    while at + _HEADER.size + _CHECKSUM.size <= len(data):
        kind, queue_size, key_size, value_size = _HEADER.unpack_from(data, at)
        key_at = at + _HEADER.size + queue_size
        end = key_at + key_size + value_size
        if end + _CHECKSUM.size > len(data):
            return
        if _CHECKSUM.unpack_from(data, end)[0] != crc32(memoryview(data)[at:end]):
            return
        queue = data[at + _HEADER.size : key_at].decode()
        key = data[key_at : key_at + key_size].decode()
        size = end + _CHECKSUM.size - at
        yield JournalRecord(Kind(kind), queue, key, Location(file, at, size))
        at += size


def _name(number: int) -> str:
    return f"journal-{number}"


class Journal:
    """The journal of a broker; a file takes no more records once it has `file_bytes`.

    If files exist, `replay` must be called before any other method.
    """

    __slots__ = ("_disk", "_file_bytes", "_in_use", "_number", "_size", "is_dirty")

    def __init__(self, disk: Disk, file_bytes: int = JOURNAL_FILE_BYTES) -> None:
        assert file_bytes > 0, "a file has room for something"
        self._disk = disk
        self._file_bytes = file_bytes
        found = (_FILE_NAME.fullmatch(each) for each in disk.names())
        self._in_use = dict.fromkeys(sorted(int(each[1]) for each in found if each), 0)
        self._number = max(self._in_use, default=0) + 1
        self._size = 0
        self.is_dirty = False

    def records(self) -> Iterator[JournalRecord]:
        """Yield all whole records in order."""
        for number in self._in_use:
            name = _name(number)
            yield from _records_in(self._disk.read(name, 0, self._disk.size(name)), number)

    def replay(self) -> Iterator[JournalRecord]:
        """Yield all records on disk; the caller then calls `hold` for each message in use.

        A torn record ends its file, and later records go into a new file. The last file is synced
        first, because a record that was found is not therefore durable. The caller must hold all
        messages in use before it appends or syncs.
        """
        if self._in_use:
            self._disk.sync(_name(max(self._in_use)))
        yield from self.records()

    def add(self, queue: str, key: str, value: bytes) -> Location:
        """Append a message, hold it, and return its location."""
        location = self._append(_record_bytes(Kind.ADD, queue, key, value))
        self.hold(location)
        return location

    def acknowledge(self, queue: str, key: str) -> None:
        """Append the acknowledgement of a message."""
        self._append(_record_bytes(Kind.ACKNOWLEDGE, queue, key, b""))

    def clear(self, queue: str) -> None:
        """Append that a queue has been cleared."""
        self._append(_record_bytes(Kind.CLEAR, queue, "", b""))

    def read(self, location: Location) -> bytes:
        """Return the message at a location."""
        return _value_in(self._disk.read(_name(location.file), location.offset, location.size))

    def value_of(self, record: JournalRecord) -> bytes:
        """Return the message of a record; empty bytes for other kinds."""
        return self.read(record.location) if record.kind is Kind.ADD else b""

    def hold(self, location: Location) -> None:
        """Count a message as in use, so that its file stays."""
        self._in_use[location.file] += 1

    def release(self, location: Location) -> None:
        """Count a message as no longer in use, because of a later record."""
        self._in_use[location.file] -= 1
        assert self._in_use[location.file] >= 0, "only what was held is released"

    def sync(self) -> None:
        """Make all records durable, and delete the unused files at the front."""
        if self.is_dirty:
            self._disk.sync(_name(self._number))
            self.is_dirty = False
        while self._in_use:
            first = next(iter(self._in_use))
            if self._in_use[first] or first == self._number:
                break
            self._disk.delete(_name(first))
            del self._in_use[first]

    def is_synced(self, record: JournalRecord) -> bool:
        """Return whether a record on a simulated disk is synced, and so survives every crash."""
        assert isinstance(self._disk, SimulatedDisk), "only a simulated disk says what is synced"
        name = _name(record.location.file)
        synced = self._disk.size(name) - self._disk.unsynced().get(name, 0)
        return record.location.offset + record.location.size <= synced

    def _append(self, record: bytes) -> Location:
        if self._size >= self._file_bytes:
            self.sync()
            self._number += 1
            self._size = 0
        location = Location(self._number, self._size, len(record))
        self._disk.append(_name(self._number), record)
        self._in_use.setdefault(self._number, 0)
        self._size += len(record)
        self.is_dirty = True
        return location

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return self._number, self._size, self.is_dirty, tuple(self._in_use.items())
