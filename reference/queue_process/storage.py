"""A broker's disk: the node that runs on it, and what durable queues were declared as.

Owns what comes back after a crash, down to the definitions of queues, which are written before a
declaration is answered. Refuses to know consumers and how messages are kept.

Of what was written and not synced, a crash of a simulated disk leaves nothing, all, or of each file
the first half, as the settings say: the last tears a record in two. Of real files it leaves what
the operating system was handed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from brokerproof.reference.paging import Node, RealDirectory, SimulatedDisk, fork_node
from brokerproof.reference.paging.node import file_prefix
from brokerproof.reference.queue_process.sub_queues import SubQueues, names_of
from brokerproof.spec.messages import Order

if TYPE_CHECKING:
    from brokerproof.reference.paging import Disk, Parameters
    from brokerproof.spec.candidate import Unsynced

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


class Storage:
    """One disk with a node on it; construction starts the node with what the disk has.

    `target` is how many messages of each backing queue may be in RAM, None for any number.
    """

    __slots__ = ("definitions", "disk", "node", "parameters", "target", "unsynced")

    def __init__(
        self, disk: Disk, parameters: Parameters, target: int | None, unsynced: Unsynced
    ) -> None:
        self.disk = disk
        self.parameters = parameters
        self.target = target
        self.unsynced: Unsynced = unsynced
        self.start()

    def start(self) -> None:
        """Come back with what is durable, and remove what belongs to no queue."""
        names = self.disk.names()
        if DRAFT in names:
            self.disk.delete(DRAFT)
        self.definitions: dict[str, Definition] = {}
        if DEFINITIONS in names:
            text = self.disk.read(DEFINITIONS, 0, self.disk.size(DEFINITIONS))
            self.definitions = {each.name: each for each in _DECODER.decode(text)}
        durable = [
            name
            for definition in self.definitions.values()
            for name in names_of(definition.name, definition.order).values()
        ]
        known = tuple(f"{file_prefix(name)}." for name in durable)
        for name in names:
            if name.startswith("queue-") and not name.startswith(known):
                self.disk.delete(name)
        self.node = Node(self.disk, self.parameters, durable)

    def open(self, definition: Definition) -> SubQueues:
        """Return the backing queues of a queue, which is new unless it has come back.

        If it is durable, it will come back from now on.
        """
        names = names_of(definition.name, definition.order)
        if definition.name not in self.definitions:
            for name in names.values():
                self.node.declare(name, durable=definition.durable)
            if definition.durable:
                self.definitions[definition.name] = definition
                self._write_definitions()
        by_level = {level: self.node.queues[each] for level, each in names.items()}
        for queue in by_level.values():
            queue.set_target(self.target)
        return SubQueues(definition.order, by_level)

    def delete(self, name: str, order: Order) -> None:
        """Remove a queue: what says that there is one first, then all that there is of it."""
        if self.definitions.pop(name, None) is not None:
            self._write_definitions()
        for each in names_of(name, order).values():
            self.node.delete(each)

    def _write_definitions(self) -> None:
        self.disk.append(DRAFT, msgspec.json.encode(tuple(self.definitions.values())))
        self.disk.sync(DRAFT)
        self.disk.rename(DRAFT, DEFINITIONS)

    def sync(self) -> None:
        """Make durable what has to outlive a crash before a client is told that it does."""
        self.node.sync()

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

    def fork(self) -> Storage:
        """Return an independent copy."""
        copy = object.__new__(Storage)
        copy.node = fork_node(self.node)
        copy.disk = copy.node.disk
        copy.parameters = self.parameters
        copy.target = self.target
        copy.unsynced = self.unsynced
        copy.definitions = self.definitions.copy()
        return copy
