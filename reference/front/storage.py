"""A broker's disk, for every documented system: the definitions of durable queues, and crashes.

Owns the definitions, which are written before a declaration is answered, and what a crash leaves.
Each system's storage owns how messages are kept.

Of the unsynced bytes, a crash of a simulated disk leaves none, all, or the first half of each file,
as the settings say; the half tears a record in two. A crash of real files leaves the bytes that
were passed to the operating system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from brokerproof.reference.shared.disk import RealDirectory, SimulatedDisk
from brokerproof.spec.messages import Order

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.shared.disk import Disk
    from brokerproof.spec.protocol.candidate import Unsynced

DEFINITIONS = "definitions"
DRAFT = "definitions.draft"


class Definition(msgspec.Struct, frozen=True):
    """The options that a queue was declared with."""

    name: str
    order: Order
    durable: bool = False
    auto_delete: bool = False


_DECODER = msgspec.json.Decoder(tuple[Definition, ...])


class TemporaryFiles(RealDirectory):
    """Real files in a temporary folder that is removed with them."""

    __slots__ = ("_folder",)

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="brokerproof-files-")
        super().__init__(Path(self._folder.name))

    def remove(self) -> None:
        """Close the files and remove the folder."""
        self.close()
        self._folder.cleanup()


class Storage(ABC):
    """One disk and its durable state; `definitions` holds the durable queues by name."""

    __slots__ = ("definitions", "disk", "unsynced")

    def __init__(self, disk: Disk, unsynced: Unsynced) -> None:
        self.disk = disk
        self.unsynced: Unsynced = unsynced
        self.definitions: dict[str, Definition] = {}

    @abstractmethod
    def start(self) -> None:
        """Load the durable state, and remove files that belong to no queue."""

    @abstractmethod
    def sync(self) -> None:
        """Make durable what must be so before a client is told."""

    @abstractmethod
    def fingerprint(self) -> Hashable:
        """Return a value that is equal for disks that behave alike."""

    def read_definitions(self) -> list[str]:
        """Read the definitions, and return the names of all files."""
        names = self.disk.names()
        if DRAFT in names:
            self.disk.delete(DRAFT)
        self.definitions = {}
        if DEFINITIONS in names:
            text = self.disk.read(DEFINITIONS, 0, self.disk.size(DEFINITIONS))
            self.definitions = {each.name: each for each in _DECODER.decode(text)}
        return names

    def define(self, definition: Definition) -> None:
        """Record a new queue; a durable one comes back after a crash."""
        if definition.durable:
            self.definitions[definition.name] = definition
            self._write_definitions()

    def undefine(self, name: str) -> None:
        """Remove a queue's definition."""
        if self.definitions.pop(name, None) is not None:
            self._write_definitions()

    def _write_definitions(self) -> None:
        self.disk.append(DRAFT, msgspec.json.encode(tuple(self.definitions.values())))
        self.disk.sync(DRAFT)
        self.disk.rename(DRAFT, DEFINITIONS)

    def crash(self) -> None:
        """Crash: lose the unsynced bytes, as the settings say."""
        disk = self.disk
        if isinstance(disk, RealDirectory):
            disk.abandon()
            return
        assert isinstance(disk, SimulatedDisk)
        written = disk.unsynced()
        kept = {"lost": {}, "torn": {n: -(-size // 2) for n, size in written.items()}}
        disk.crash(kept.get(self.unsynced, written))

    def close(self) -> None:
        """Release resources outside this process."""
        if isinstance(self.disk, TemporaryFiles):
            self.disk.remove()
