"""Files that are appended to and read from, real ones and simulated ones.

Owns bytes, and which of them would survive if the power went now. Refuses to know what the bytes
mean. The contract of both disks: what was appended is *written*, and *synced* once `sync` of its
file has returned; a crash may lose whatever is written and not synced. All other changes
(truncating, deleting, renaming) are durable when they return.

`RealDirectory` gathers appends in the buffers of its files, so a read sees what was written, and a
small append costs no call of the operating system. `SimulatedDisk` can be copied, can lose its
power before any change, and counts what it was asked for.
"""

from __future__ import annotations

import os
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

    __slots__ = ("_created", "_readers", "_writers", "root")

    def __init__(self, root: Path) -> None:
        self.root = root
        self._writers: dict[str, BinaryIO] = {}
        self._readers: dict[str, int] = {}
        self._created: set[str] = set()

    def append(self, name: str, data: bytes | bytearray) -> None:
        """Write at the end of a file; see `Disk`."""
        writer = self._writers.get(name)
        if writer is None:
            writer = self._open_writer(name)
        writer.write(data)

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
        reader = self._readers.get(name)
        if reader is None:
            if len(self._readers) >= OPEN_FILES_MAX:
                os.close(self._readers.pop(next(iter(self._readers))))
            reader = self._readers[name] = os.open(self.root / name, os.O_RDONLY)
        return os.pread(reader, size, offset)

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
        for name in {*self._writers, *self._readers}:
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
        reader = self._readers.pop(name, None)
        if reader is not None:
            os.close(reader)


def _sync_path(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _SimulatedFile:
    """Content, and how many bytes of it are synced."""

    __slots__ = ("content", "synced")

    def __init__(self, content: bytearray, synced: int) -> None:
        self.content = content
        self.synced = synced


class SimulatedDisk:
    """Files in memory, which forget at a crash what was not synced.

    `counts` says how often each operation was asked for. `changes` is how many changes (all but
    reads and looks) were begun; one that would be number `power_lost_at`, counted from 0, raises
    `PowerLost`. Of an append, any part may have been carried out by then; of other changes nothing.
    """

    __slots__ = ("_files", "changes", "counts", "has_power", "power_lost_at")

    def __init__(self) -> None:
        self._files: dict[str, _SimulatedFile] = {}
        self.counts = dict.fromkeys(("append", "read", "sync", "truncate", "delete", "rename"), 0)
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

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Return bytes of a file; see `Disk`."""
        self._look("read")
        return bytes(self._file(name).content[offset : offset + size])

    def sync(self, name: str) -> None:
        """Return when a file would survive a crash; see `Disk`."""
        self._change("sync")
        file = self._file(name)
        file.synced = len(file.content)

    def truncate(self, name: str, size: int) -> None:
        """Cut a file; see `Disk`."""
        self._change("truncate")
        file = self._file(name)
        del file.content[size:]
        file.synced = len(file.content)

    def delete(self, name: str) -> None:
        """Remove a file; see `Disk`."""
        self._change("delete")
        self._file(name)
        del self._files[name]

    def rename(self, old: str, new: str) -> None:
        """Rename a file; see `Disk`."""
        self._change("rename")
        file = self._file(old)
        assert file.synced == len(file.content), "what is renamed into place must be synced"
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

        Of a file in `kept` so many bytes survive of what was written after its last sync. A file
        of which nothing is left is gone.
        """
        kept = kept or {}
        for name, file in list(self._files.items()):
            survivors = file.synced + kept.get(name, 0)
            del file.content[survivors:]
            file.synced = len(file.content)
            if survivors == 0:
                del self._files[name]
        self.has_power = True
        self.power_lost_at = None

    def unsynced(self) -> dict[str, int]:
        """Return for each file with any how many of its bytes are written and not synced."""
        sizes = {name: len(file.content) - file.synced for name, file in self._files.items()}
        return {name: size for name, size in sizes.items() if size}

    def fork(self) -> SimulatedDisk:
        """Return an independent copy."""
        copy = SimulatedDisk()
        copy._files = {
            name: _SimulatedFile(file.content[:], file.synced) for name, file in self._files.items()
        }
        copy.counts = self.counts.copy()
        copy.changes = self.changes
        copy.power_lost_at = self.power_lost_at
        copy.has_power = self.has_power
        return copy

    def content(self) -> dict[str, tuple[bytes, int]]:
        """Return each file's bytes, and how many of them are synced."""
        return {name: (bytes(file.content), file.synced) for name, file in self._files.items()}

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
