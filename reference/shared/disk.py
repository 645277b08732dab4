"""Files that are appended to, written in place and read from, real ones and simulated ones.

Owns bytes, and which of them would survive if the power went now. Refuses to know what the bytes
mean. The contract of both disks: what was appended or written in place is *written*, and *synced*
once `sync` of its file has returned; a crash may lose whatever is written and not synced. All other
changes (truncating, deleting, renaming) are durable when they return.

`RealDirectory` gathers appends in the buffers of its files, so a read sees what was written, and a
small append costs no call of the operating system. `SimulatedDisk` can be copied, can lose its
power before any change, and counts what it was asked for.
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
    """The simulated disk has no power: nothing more is done until `crash` says what is left."""


class Disk(Protocol):
    """One directory of flat file names. A file that does not exist raises `FileNotFoundError`."""

    def append(self, name: str, data: bytes | bytearray) -> None:
        """Write at the end of a file, which is made if it does not exist."""
        ...

    def write(self, name: str, offset: int, data: bytes | bytearray) -> None:
        """Write over a file's bytes from `offset` on, which is not beyond its end."""
        ...

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer where the file ends before."""
        ...

    def sync(self, name: str) -> None:
        """Return when everything written to a file would survive a crash."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to its first `size` bytes; what remains is synced."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a synced file another name, atomically in place of one that has it."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def size(self, name: str) -> int:
        """Return how many bytes a file has, written or synced."""
        ...


class RealDirectory:
    """The files of one directory; whoever makes it gives the directory, and removes it."""

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
        """Write over a file's bytes; see `Disk`. It is handed to the operating system at once."""
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
        """Return what a file is read and written in place through; appends have their own."""
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
        """Hand everything written to the operating system, and let go of all files."""
        for name in {*self._writers, *self._descriptors}:
            self._close(name)

    def abandon(self) -> None:
        """Let go of all files as the end of a process does: what is in buffers is lost."""
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
    """What was overwritten in a file since its last sync, in order, packed.

    Of each time three numbers: how many bytes had been appended before it since that sync, where it
    was, and how many bytes it overwrote; these are kept one behind the other.
    """

    __slots__ = ("numbers", "old")

    def __init__(self, numbers: array[int], old: bytearray) -> None:
        self.numbers = numbers
        self.old = old

    def note(self, appended: int, offset: int, old: bytearray) -> None:
        self.numbers.extend((appended, offset, len(old)))
        self.old += old

    def undo(self, content: bytearray, kept: int) -> int:
        """Restore all but the first `kept` bytes of what was appended and overwritten.

        Return how many appended bytes are among those.
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
    """Content; how many bytes it had at its last sync; what was overwritten since then, if any."""

    __slots__ = ("content", "overwritten", "synced")

    def __init__(
        self, content: bytearray, synced: int, overwritten: _Overwritten | None = None
    ) -> None:
        self.content = content
        self.synced = synced
        self.overwritten = overwritten

    def write(self, offset: int, data: bytes | bytearray) -> None:
        """Overwrite what is there, and append the rest."""
        content = self.content
        old = content[offset : offset + len(data)]
        if old:
            if self.overwritten is None:
                self.overwritten = _Overwritten(array("Q"), bytearray())
            self.overwritten.note(len(content) - self.synced, offset, old)
        content[offset : offset + len(data)] = data

    def unsynced(self) -> int:
        """Return how many bytes were appended and overwritten since the last sync."""
        overwritten = 0 if self.overwritten is None else len(self.overwritten.old)
        return len(self.content) - self.synced + overwritten

    def settle(self) -> None:
        """Count all that is there as synced."""
        self.synced = len(self.content)
        self.overwritten = None

    def crash(self, kept: int) -> None:
        """Undo what was not synced but the first `kept` bytes of it."""
        if self.overwritten is not None:
            kept = self.overwritten.undo(self.content, kept)
        del self.content[self.synced + kept :]
        self.settle()

    def fork(self) -> _SimulatedFile:
        """Return an independent copy."""
        past = self.overwritten
        if past is not None:
            past = _Overwritten(past.numbers[:], past.old[:])
        return _SimulatedFile(self.content[:], self.synced, past)


class SimulatedDisk:
    """Files in memory, which forget at a crash what was not synced.

    The unsynced bytes of a file are a sequence: pieces appended and pieces written in place, in the
    order in which they came. A crash keeps some first bytes of it and undoes the others.

    `counts` says how often each operation was asked for. `changes` is how many changes (all but
    reads and looks) were begun; one that would be number `power_lost_at`, counted from 0, raises
    `PowerLost`. Of an append or a write, any part may have been carried out by then; of other
    changes nothing.
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
        """Lose what is not synced; the power is back, and does not go again by itself.

        Of a file in `kept` so many bytes survive of what was written after its last sync, the first
        ones. A file of which nothing is left is gone.
        """
        kept = kept or {}
        for name, file in list(self._files.items()):
            file.crash(kept.get(name, 0))
            if not file.content:
                del self._files[name]
        self.has_power = True
        self.power_lost_at = None

    def unsynced(self) -> dict[str, int]:
        """Return for each file with any how many of its bytes are written and not synced."""
        sizes = {name: file.unsynced() for name, file in self._files.items()}
        return {name: size for name, size in sizes.items() if size}

    def fork(self) -> SimulatedDisk:
        """Return an independent copy."""
        copy = SimulatedDisk()
        copy._files = {name: file.fork() for name, file in self._files.items()}
        copy.counts = self.counts.copy()
        copy.changes = self.changes
        copy.power_lost_at = self.power_lost_at
        copy.has_power = self.has_power
        return copy

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return each file's bytes, and how many it had at its last sync."""
        return {name: (bytes(file.content), file.synced) for name, file in self._files.items()}

    def overwritten(self) -> dict[str, Hashable]:
        """Return of each file written in place since its last sync what a crash may undo.

        Disks with the same `content` and the same of this are left the same by the same crash.
        """
        return {
            name: (tuple(file.overwritten.numbers), bytes(file.overwritten.old))
            for name, file in self._files.items()
            if file.overwritten is not None
        }

    def power(self) -> Hashable:
        """Return whether there is power, and how many changes it lasts for; None for ever."""
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
        """Count a change; say whether the power lasts to its end."""
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
