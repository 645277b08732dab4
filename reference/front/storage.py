"""A broker's disk, whichever documented system runs on it: what durable queues were declared as.

Owns the definitions of queues, which are written before a declaration is answered, and what a crash
leaves. Refuses to know how messages are kept: each system's storage says that.

Of what was written and not synced, a crash of a simulated disk leaves nothing, all, or of each file
the first half, as the settings say: the last tears a record in two. Of real files it leaves what
the operating system was handed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from brokerproof.reference.shared.disk import RealDirectory, SimulatedDisk
from brokerproof.spec.protocol.messages import Order

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Self

    from brokerproof.reference.shared.disk import Disk
    from brokerproof.spec.protocol.candidate import Unsynced

DEFINITIONS = "definitions"
DRAFT = "definitions.draft"


class Definition(msgspec.Struct, frozen=True):
    """What a queue was declared as."""

    name: str
    order: Order
    durable: bool = False
    auto_delete: bool = False


_DECODER = msgspec.json.Decoder(tuple[Definition, ...])


class TemporaryFiles(RealDirectory):
    """Real files, in a temporary folder that goes with them."""

    __slots__ = ("_folder",)

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="brokerproof-files-")
        super().__init__(Path(self._folder.name))

    def remove(self) -> None:
        """Let go of the files, and of the folder."""
        self.close()
        self._folder.cleanup()


class Storage(ABC):
    """One disk, and what is durable on it; `definitions` are those of durable queues, by name."""

    __slots__ = ("definitions", "disk", "unsynced")

    def __init__(self, disk: Disk, unsynced: Unsynced) -> None:
        self.disk = disk
        self.unsynced: Unsynced = unsynced
        self.definitions: dict[str, Definition] = {}

    @abstractmethod
    def start(self) -> None:
        """Come back with what is durable, and remove what belongs to no queue."""

    @abstractmethod
    def sync(self) -> None:
        """Make durable what has to outlive a crash before a client is told that it does."""

    @abstractmethod
    def fork(self) -> Self:
        """Return an independent copy."""

    @abstractmethod
    def fingerprint(self) -> Hashable:
        """Return a value that is equal for disks on which everything goes on alike."""

    def read_definitions(self) -> list[str]:
        """Return the names of all files, when the definitions among them have been read."""
        names = self.disk.names()
        if DRAFT in names:
            self.disk.delete(DRAFT)
        self.definitions = {}
        if DEFINITIONS in names:
            text = self.disk.read(DEFINITIONS, 0, self.disk.size(DEFINITIONS))
            self.definitions = {each.name: each for each in _DECODER.decode(text)}
        return names

    def define(self, definition: Definition) -> None:
        """Note a new queue, which will come back if it is durable."""
        if definition.durable:
            self.definitions[definition.name] = definition
            self._write_definitions()

    def undefine(self, name: str) -> None:
        """Let a queue come back no more."""
        if self.definitions.pop(name, None) is not None:
            self._write_definitions()

    def _write_definitions(self) -> None:
        self.disk.append(DRAFT, msgspec.json.encode(tuple(self.definitions.values())))
        self.disk.sync(DRAFT)
        self.disk.rename(DRAFT, DEFINITIONS)

    def crash(self) -> None:
        """Lose what is not synced, as the settings say."""
        disk = self.disk
        if isinstance(disk, RealDirectory):
            disk.abandon()
            return
        assert isinstance(disk, SimulatedDisk)
        written = disk.unsynced()
        kept = {"lost": {}, "torn": {n: -(-size // 2) for n, size in written.items()}}
        disk.crash(kept.get(self.unsynced, written))

    def close(self) -> None:
        """Give back what is outside of this process."""
        if isinstance(self.disk, TemporaryFiles):
            self.disk.remove()
