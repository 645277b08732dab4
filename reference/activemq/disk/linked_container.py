"""The linked container: an ordered map from keys to values on disk.

Owns the file `index-<container>` of doubly linked records, beginning with a root, and the map from
keys to records in memory. Callers hold offsets of records and read on from there.

Invariants (AMQ-I30): the records reached from the root by `next` are the entries, in order of their
arrival; `previous` leads back the same way; every other record is free. Each step reads the link
from the file. A reader at an entry may therefore go on after its neighbours were removed, but not
after the entry itself was. The file is written in place and never synced: after a crash it is
deleted and rebuilt.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from brokerproof.reference.activemq.disk.data_files import DATA_FILE_BYTES, DataFiles
from brokerproof.reference.activemq.disk.store_records import (
    LINKS_BYTES,
    NO_ITEM,
    NOT_SET,
    RECORD_BYTES,
    IndexRecord,
    Item,
    Links,
    links_bytes,
    links_of,
    record_bytes,
    record_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from brokerproof.reference.activemq.parameters import FreeListRule
    from brokerproof.reference.shared.disk import Disk

_ROOT: Final = 0
_FREE: Final = links_bytes(Links(False, NOT_SET, NOT_SET))


class FreeList:
    """The records that can be used again, first freed first.

    With `"whole"` all of them are reachable. `"two"` is the defect of 5.1: a freed record is linked
    behind the last one, which stays the last. Only the latest freed record is reached from there;
    the others are lost until the index is loaded again.

    The list is kept in memory only. The release writes these links to the file too, but never reads
    them: a load takes every inactive record as free.
    """

    __slots__ = ("_beyond", "_records", "_rule")

    def __init__(self, rule: FreeListRule, records: list[int]) -> None:
        self._rule: FreeListRule = rule
        self._records = deque(records)
        self._beyond = NOT_SET

    def put(self, offset: int) -> None:
        """Add a free record."""
        if self._rule == "two" and self._records:
            self._beyond = offset
        else:
            self._records.append(offset)

    def take(self) -> int | None:
        """Return a free record, or None."""
        if not self._records:
            return None
        offset = self._records.popleft()
        if not self._records and self._beyond != NOT_SET:
            self._records.append(self._beyond)
            self._beyond = NOT_SET
        return offset

    def reachable(self) -> tuple[int, ...]:
        """Return the records that can still be taken, in order."""
        beyond = () if self._beyond == NOT_SET else (self._beyond,)
        return *self._records, *beyond

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for lists that behave alike."""
        return tuple(self._records), self._beyond


class LinkedContainer:
    """One container; its name is part of file names.

    Loads existing files of this name, which must be intact: remove them after a crash.
    """

    __slots__ = (
        "_before_last",
        "_data",
        "_disk",
        "_end",
        "_free",
        "_free_rule",
        "_last",
        "_offsets",
        "index_name",
    )

    def __init__(
        self,
        disk: Disk,
        name: str,
        *,
        data_file_bytes: int = DATA_FILE_BYTES,
        free_list: FreeListRule = "whole",
    ) -> None:
        self._disk = disk
        self._data = DataFiles(disk, name, data_file_bytes)
        self._free_rule: FreeListRule = free_list
        self.index_name = f"index-{name}"
        if self.index_name in disk.names():
            self._load()
        else:
            self._make()

    def _make(self) -> None:
        root = IndexRecord(Links(True, NOT_SET, NOT_SET), NO_ITEM, NO_ITEM)
        self._disk.append(self.index_name, record_bytes(root))
        self._end = RECORD_BYTES
        self._offsets: dict[str, int] = {}
        self._last = _ROOT
        self._before_last = NOT_SET
        self._free = FreeList(self._free_rule, [])

    def _load(self) -> None:
        self._end = self._disk.size(self.index_name)
        data = self._disk.read(self.index_name, 0, self._end)
        records = {
            at: record_of(data[at : at + RECORD_BYTES]) for at in range(0, self._end, RECORD_BYTES)
        }
        self._offsets = {}
        self._last, self._before_last = _ROOT, NOT_SET
        items: list[Item] = []
        at = records[_ROOT].links.next
        while at != NOT_SET:
            record = records[at]
            self._offsets[self._data.read(record.key).decode()] = at
            items += (record.key, record.value)
            self._before_last, self._last = self._last, at
            at = record.links.next
        self._data.load(items)
        inactive = [at for at, record in records.items() if not record.links.is_active]
        self._free = FreeList(self._free_rule, inactive)

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: str) -> bool:
        return key in self._offsets

    def put(self, key: str, value: bytes) -> bytes | None:
        """Append an entry; an entry with the same key is removed first, and its value returned."""
        replaced = self.remove(key)
        key_item = self._data.store(key.encode())
        value_item = self._data.store(value)
        offset = self._free.take()
        if offset is None:
            offset = self._end
            self._end += RECORD_BYTES
        self._write_links(self._last, Links(True, self._before_last, offset))
        record = IndexRecord(Links(True, self._last, NOT_SET), key_item, value_item)
        self._disk.write(self.index_name, offset, record_bytes(record))
        self._offsets[key] = offset
        self._before_last, self._last = self._last, offset
        return replaced

    def remove(self, key: str) -> bytes | None:
        """Remove an entry and return its value; None if the key is absent."""
        offset = self._offsets.pop(key, None)
        if offset is None:
            return None
        (_, before, after), key_item, value_item = self._record(offset)
        value = self._data.read(value_item)
        links_before = self.refresh(before)
        self._write_links(before, links_before._replace(next=after))
        if after != NOT_SET:
            links_after = self.refresh(after)
            self._write_links(after, links_after._replace(previous=before))
        if offset == self._last:
            self._last, self._before_last = before, links_before.previous
        elif after == self._last:
            self._before_last = before
        self._data.release(key_item)
        self._data.release(value_item)
        self._disk.write(self.index_name, offset, _FREE)
        self._free.put(offset)
        return value

    def get(self, key: str) -> bytes | None:
        """Return an entry's value, or None."""
        offset = self._offsets.get(key)
        return None if offset is None else self.value_at(offset)

    def offset_of(self, key: str) -> int | None:
        """Return the offset of an entry's record, or None."""
        return self._offsets.get(key)

    def first(self) -> int | None:
        """Return the record of the first entry, or None."""
        return self.next(_ROOT)

    def last(self) -> int | None:
        """Return the record of the last entry, or None."""
        return None if self._last == _ROOT else self._last

    def next(self, offset: int) -> int | None:
        """Return the record after a listed one, or None at the end."""
        after = self.refresh(offset).next
        return None if after == NOT_SET else after

    def previous(self, offset: int) -> int | None:
        """Return the record before a listed one, or None at the beginning."""
        before = self.refresh(offset).previous
        return None if before == _ROOT else before

    def refresh(self, offset: int) -> Links:
        """Read the links of a listed record."""
        links = links_of(self._disk.read(self.index_name, offset, LINKS_BYTES))
        assert links.is_active, "no position stands on a record that was removed"
        return links

    def key_at(self, offset: int) -> str:
        """Return the key of the entry with this record."""
        return self._data.read(self._record(offset).key).decode()

    def value_at(self, offset: int) -> bytes:
        """Return the value of the entry with this record."""
        return self._data.read(self._record(offset).value)

    def entries(self) -> Iterator[tuple[str, bytes]]:
        """Yield keys and values in order; the caller removes nothing meanwhile."""
        at = self.first()
        while at is not None:
            yield self.key_at(at), self.value_at(at)
            at = self.next(at)

    def clear(self) -> None:
        """Remove all entries and files, and start again."""
        self.delete()
        self._make()

    def delete(self) -> None:
        """Remove the container and its files; it is not used any more."""
        self._disk.delete(self.index_name)
        self._data.clear()

    def _record(self, offset: int) -> IndexRecord:
        record = record_of(self._disk.read(self.index_name, offset, RECORD_BYTES))
        assert record.links.is_active, "no position stands on a record that was removed"
        return record

    def _write_links(self, offset: int, links: Links) -> None:
        self._disk.write(self.index_name, offset, links_bytes(links))

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return (
            frozenset(self._offsets.items()),
            self._end,
            self._last,
            self._before_last,
            self._free.fingerprint(),
            self._data.fingerprint(),
        )
