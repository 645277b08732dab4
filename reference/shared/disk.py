"""Files that are appended to, written in place and read: real ones and simulated ones.

Owns bytes, and which bytes survive a loss of power. Does not interpret them. The contract of both
disks: appended or overwritten bytes are *written*, and are *synced* when `sync` of their file has
returned. A crash may lose bytes that are written and not synced. Other changes (truncate, delete,
rename) are durable when they return. `RealDirectory` gathers appends in file buffers, so that a
small append costs no system call.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

WRITE_BUFFER_BYTES: Final = 256 * 1024
OPEN_FILES_MAX: Final = 64


class PowerLost(Exception):
    """The simulated disk has no power. Every call raises this until `crash` restores the power."""


class Disk(Protocol):
    """One directory of flat file names. A file that does not exist raises `FileNotFoundError`."""

    def append(self, name: str, data: bytes | bytearray) -> None:
        """Append to a file; the file is created if it does not exist."""
        ...

    def write(self, name: str, offset: int, data: bytes | bytearray) -> None:
        """Overwrite a file's bytes from `offset` on; `offset` is at most the file's size."""
        ...

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on, or fewer at the end of the file."""
        ...

    def sync(self, name: str) -> None:
        """Make everything written to a file durable before returning."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to its first `size` bytes; what remains is synced."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a synced file; it atomically replaces a file of the new name."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def size(self, name: str) -> int:
        """Return how many bytes a file has, written or synced."""
        ...


class RealDirectory:
    """The files of one directory; the caller creates the directory and removes it."""

    __slots__ = ("_created", "_descriptors", "_writers", "root")

    def __init__(self, root: Path) -> None:
        self.root = root
        self._writers: dict[str, BinaryIO] = {}
        self._descriptors: dict[str, int] = {}
        self._created: set[str] = set()

    def append(self, name: str, data: bytes | bytearray) -> None:
        """Write at the end of a file; see `Disk`."""
        writer = self._writers.get(name)
        if writer is None:
            writer = self._open_writer(name)
        writer.write(data)

    def write(self, name: str, offset: int, data: bytes | bytearray) -> None:
        """Overwrite a file's bytes; see `Disk`. They go to the operating system at once."""
        self._flush(name)
        descriptor = self._descriptor(name)
        assert offset <= os.fstat(descriptor).st_size, "nothing is written beyond the end of a file"
        written = 0
        while written < len(data):
            written += os.pwrite(descriptor, data[written:], offset + written)

    def _open_writer(self, name: str) -> BinaryIO:
        if len(self._writers) >= OPEN_FILES_MAX:
            self._writers.pop(next(iter(self._writers))).close()
        path = self.root / name
        if not path.exists():
            self._created.add(name)
        writer = self._writers[name] = path.open("ab", buffering=WRITE_BUFFER_BYTES)
        return writer

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return bytes of a file; see `Disk`."""
        self._flush(name)
        return os.pread(self._descriptor(name), size, offset)

    def _descriptor(self, name: str) -> int:
        """Return the descriptor for reads and writes in place; appends have their own writer."""
        descriptor = self._descriptors.get(name)
        if descriptor is None:
            if len(self._descriptors) >= OPEN_FILES_MAX:
                os.close(self._descriptors.pop(next(iter(self._descriptors))))
            descriptor = self._descriptors[name] = os.open(self.root / name, os.O_RDWR)
        return descriptor

    def _flush(self, name: str) -> None:
        writer = self._writers.get(name)
        if writer is not None:
            writer.flush()

    def sync(self, name: str) -> None:
        """Return when a file would survive a crash; see `Disk`."""
        self._flush(name)
        writer = self._writers.get(name)
        if writer is not None:
            os.fsync(writer.fileno())
        else:
            _sync_path(self.root / name, os.O_RDWR)
        if name in self._created:
            self._created.discard(name)
            _sync_path(self.root, os.O_RDONLY)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file; see `Disk`."""
        self._close(name)
        os.truncate(self.root / name, size)
        _sync_path(self.root / name, os.O_RDWR)

    def delete(self, name: str) -> None:
        """Remove a file; see `Disk`."""
        self._close(name)
        self._created.discard(name)
        (self.root / name).unlink()
        _sync_path(self.root, os.O_RDONLY)

    def rename(self, old: str, new: str) -> None:
        """Rename a file; see `Disk`."""
        self._close(old)
        self._close(new)
        self._created -= {old, new}
        (self.root / old).replace(self.root / new)
        _sync_path(self.root, os.O_RDONLY)

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(path.name for path in self.root.iterdir())

    def size(self, name: str) -> int:
        """Return how many bytes a file has; see `Disk`."""
        self._flush(name)
        return (self.root / name).stat().st_size

    def close(self) -> None:
        """Pass all written bytes to the operating system, and close all files."""
        for name in {*self._writers, *self._descriptors}:
            self._close(name)

    def abandon(self) -> None:
        """Close all files as if the process had been killed: buffered bytes are lost."""
        for name in [*self._writers]:
            path = self.root / name
            handed_over = path.stat().st_size
            self._close(name)
            os.truncate(path, handed_over)
        self._created.clear()
        self.close()

    def _close(self, name: str) -> None:
        writer = self._writers.pop(name, None)
        if writer is not None:
            writer.close()
        descriptor = self._descriptors.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)


def _sync_path(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Overwritten:
    """The bytes overwritten in a file since its last sync, in order, packed.

    Each overwrite adds three numbers: the bytes appended since that sync before it, its offset, and
    its size.
    """

    __slots__ = ("numbers", "old")

    def __init__(self, numbers: array[int], old: bytearray) -> None:
        self.numbers = numbers
        self.old = old

    def note(self, appended: int, offset: int, old: bytearray) -> None:
        self.numbers.extend((appended, offset, len(old)))
        self.old += old

    def undo(self, content: bytearray, kept: int) -> int:
        """Undo appends and overwrites, except for their first `kept` bytes.

        Return how many of the kept bytes are appended ones.
        """
        numbers = self.numbers
        appended = first = part = 0
        for first in range(0, len(numbers), 3):
            gap = numbers[first] - appended
            appended += min(gap, kept)
            kept -= min(gap, kept)
            part = min(numbers[first + 2], kept)
            if part < numbers[first + 2]:
                break
            kept -= part
        else:
            return appended + kept
        end = len(self.old)
        for each in range(len(numbers) - 3, first - 1, -3):
            offset, size = numbers[each + 1], numbers[each + 2]
            skipped = part if each == first else 0
            content[offset + skipped : offset + size] = self.old[end - size + skipped : end]
            end -= size
        return appended


class _SimulatedFile:
    """One file: its content, its size at the last sync, and the bytes overwritten since then."""

    __slots__ = ("content", "overwritten", "synced")

    def __init__(
        self, content: bytearray, synced: int, overwritten: _Overwritten | None = None
    ) -> None:
        self.content = content
        self.synced = synced
        self.overwritten = overwritten

    def write(self, offset: int, data: bytes | bytearray) -> None:
        """Overwrite existing bytes, and append the rest."""
        content = self.content
        old = content[offset : offset + len(data)]
        if old:
            if self.overwritten is None:
                self.overwritten = _Overwritten(array("Q"), bytearray())
            self.overwritten.note(len(content) - self.synced, offset, old)
        content[offset : offset + len(data)] = data

    def unsynced(self) -> int:
        """Return the number of bytes appended and overwritten since the last sync."""
        overwritten = 0 if self.overwritten is None else len(self.overwritten.old)
        return len(self.content) - self.synced + overwritten

    def settle(self) -> None:
        """Mark all content as synced."""
        self.synced = len(self.content)
        self.overwritten = None

    def crash(self, kept: int) -> None:
        """Undo the unsynced changes, except for their first `kept` bytes."""
        if self.overwritten is not None:
            kept = self.overwritten.undo(self.content, kept)
        del self.content[self.synced + kept :]
        self.settle()


class SimulatedDisk:
    """Files in memory. A crash loses the unsynced changes.

    The unsynced bytes of a file are a sequence of appends and overwrites in the order in which they
    came. A crash keeps a prefix of it and undoes the rest.

    `counts` has the number of calls by operation. `changes` is the number of changes begun; `read`,
    `names` and `size` are not changes. Change number `power_lost_at`, counted from 0, raises
    `PowerLost`. An append or a write may then have been carried out in part, other changes not at
    all.
    """

    __slots__ = ("_files", "changes", "counts", "has_power", "power_lost_at")

    def __init__(self) -> None:
        self._files: dict[str, _SimulatedFile] = {}
        self.counts: Counter[str] = Counter(
            dict.fromkeys(("append", "read", "sync", "truncate", "delete", "rename"), 0)
        )
        self.changes = 0
        self.power_lost_at: int | None = None
        self.has_power = True

    def append(self, name: str, data: bytes | bytearray) -> None:
        """Write at the end of a file; see `Disk`."""
        goes_on = self._begin_change("append")
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _SimulatedFile(bytearray(), 0)
        file.content += data
        if not goes_on:
            self._lose_power()

    def write(self, name: str, offset: int, data: bytes | bytearray) -> None:
        """Write over a file's bytes; see `Disk`."""
        goes_on = self._begin_change("write")
        file = self._file(name)
        assert offset <= len(file.content), "nothing is written beyond the end of a file"
        file.write(offset, data)
        if not goes_on:
            self._lose_power()

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return bytes of a file; see `Disk`."""
        self._look("read")
        return bytes(self._file(name).content[offset : offset + size])

    def sync(self, name: str) -> None:
        """Return when a file would survive a crash; see `Disk`."""
        self._change("sync")
        self._file(name).settle()

    def truncate(self, name: str, size: int) -> None:
        """Cut a file; see `Disk`."""
        self._change("truncate")
        file = self._file(name)
        del file.content[size:]
        file.settle()

    def delete(self, name: str) -> None:
        """Remove a file; see `Disk`."""
        self._change("delete")
        self._file(name)
        del self._files[name]

    def rename(self, old: str, new: str) -> None:
        """Rename a file; see `Disk`."""
        self._change("rename")
        file = self._file(old)
        assert not file.unsynced(), "what is renamed into place must be synced"
        self._files[new] = file
        del self._files[old]

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        self._look(None)
        return sorted(self._files)

    def size(self, name: str) -> int:
        """Return how many bytes a file has; see `Disk`."""
        self._look(None)
        return len(self._file(name).content)

    def crash(self, kept: Mapping[str, int] | None = None) -> None:
        """Lose the unsynced bytes and restore the power, which then stays on.

        For a file in `kept`, that many of its first unsynced bytes survive. An empty file is
        removed.
        """
        kept = kept or {}
        for name, file in list(self._files.items()):
            file.crash(kept.get(name, 0))
            if not file.content:
                del self._files[name]
        self.has_power = True
        self.power_lost_at = None

    def unsynced(self) -> dict[str, int]:
        """Return the number of unsynced bytes of each file that has any."""
        sizes = {name: file.unsynced() for name, file in self._files.items()}
        return {name: size for name, size in sizes.items() if size}

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return each file's bytes, and its size at the last sync."""
        return {name: (bytes(file.content), file.synced) for name, file in self._files.items()}

    def overwritten(self) -> dict[str, Hashable]:
        """Return, for each file written in place since its last sync, the bytes a crash may undo.

        Disks that are equal in this and in `content` are equal after the same crash.
        """
        return {
            name: (tuple(file.overwritten.numbers), bytes(file.overwritten.old))
            for name, file in self._files.items()
            if file.overwritten is not None
        }

    def power(self) -> Hashable:
        """Return whether there is power, and for how many more changes; None for no limit."""
        left = None if self.power_lost_at is None else self.power_lost_at - self.changes
        return self.has_power, left

    def _file(self, name: str) -> _SimulatedFile:
        file = self._files.get(name)
        if file is None:
            raise FileNotFoundError(name)
        return file

    def _look(self, kind: str | None) -> None:
        if not self.has_power:
            self._lose_power()
        if kind is not None:
            self.counts[kind] += 1

    def _begin_change(self, kind: str) -> bool:
        """Count a change; return whether the power lasts to its end."""
        self._look(kind)
        goes_on = self.changes != self.power_lost_at
        self.changes += 1
        return goes_on

    def _change(self, kind: str) -> None:
        if not self._begin_change(kind):
            self._lose_power()

    def _lose_power(self) -> None:
        self.has_power = False
        raise PowerLost("the simulated disk has no power")
