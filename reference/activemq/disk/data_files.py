"""The data files of a container: keys and values in sequence, with a use count for each file.

Owns the files `data-<container>-<number>`, their sizes and their deletion. Invariant: a file's
count is the number of its items in use, and a file without any is deleted, unless it is the one
written to (AMQ-I32). As in the release, an entry's key and value count separately; they may lie in
different files. Nothing here is synced: recovery does not read these files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from brokerproof.reference.activemq.disk.store_records import (
    HEAD_BYTES,
    Item,
    content_of,
    item_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from brokerproof.reference.shared.disk import Disk

DATA_FILE_BYTES: Final = 32 * 1024 * 1024


class DataFiles:
    """The data files of one container; the current one grows to at most `file_bytes`."""

    __slots__ = ("_disk", "_file_bytes", "_number", "_prefix", "_size", "in_use")

    def __init__(self, disk: Disk, container: str, file_bytes: int) -> None:
        assert file_bytes > 0, "a file has room for something"
        self._disk = disk
        self._prefix = f"data-{container}-"
        self._file_bytes = file_bytes
        self._number = 1
        self._size = 0
        self.in_use: dict[int, int] = {}

    def store(self, content: bytes) -> Item:
        """Write an item and count it as in use."""
        data = item_bytes(content)
        if self._size and self._size + len(data) > self._file_bytes:
            full = self._number
            self._number += 1
            self._size = 0
            if not self.in_use[full]:
                self._delete(full)
        item = Item(self._number, self._size, len(content))
        self._disk.append(self._name(self._number), data)
        self._size += len(data)
        self.in_use[self._number] = self.in_use.get(self._number, 0) + 1
        return item

    def read(self, item: Item) -> bytes:
        """Return the content of an item."""
        data = self._disk.read(self._name(item.file), item.offset, HEAD_BYTES + item.size)
        return content_of(data, item)

    def release(self, item: Item) -> None:
        """Count an item as no longer in use."""
        self.in_use[item.file] -= 1
        if not self.in_use[item.file] and item.file != self._number:
            self._delete(item.file)

    def load(self, items: Iterable[Item]) -> None:
        """Load the files of an earlier run; `items` are the items in use."""
        pattern = re.escape(self._prefix) + r"(\d+)"
        found = (re.fullmatch(pattern, each) for each in self._disk.names())
        self.in_use = {int(each[1]): 0 for each in found if each}
        for item in items:
            self.in_use[item.file] += 1
        self._number = max(self.in_use, default=1)
        self._size = self._disk.size(self._name(self._number)) if self.in_use else 0
        for number in [each for each, count in self.in_use.items() if not count]:
            if number != self._number:
                self._delete(number)

    def clear(self) -> None:
        """Remove all files."""
        for number in list(self.in_use):
            self._delete(number)
        self._number = 1
        self._size = 0

    def _delete(self, number: int) -> None:
        del self.in_use[number]
        self._disk.delete(self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._prefix}{number}"

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for states that behave alike on equal disks."""
        return self._number, self._size, frozenset(self.in_use.items())
