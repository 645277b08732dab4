"""The disk of ActiveMQ's queues: a store for each level, and temporary lists.

Owns which stores and lists a queue has, and the cursors over them. `journaled_store` owns how a
store keeps a message.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from brokerproof.reference.activemq.cursors.queue_cursor import LevelCursors, QueueCursor
from brokerproof.reference.activemq.cursors.store_cursor import StoreCursor
from brokerproof.reference.activemq.cursors.transient_cursors import FileCursor, MemoryCursor
from brokerproof.reference.activemq.disk.journaled_store import QueueStores
from brokerproof.reference.activemq.disk.linked_container import LinkedContainer
from brokerproof.reference.activemq.disk.reference_store import StoreParameters
from brokerproof.reference.activemq.memory.references import decoded
from brokerproof.reference.front.storage import Storage
from brokerproof.reference.shared.disk import SimulatedDisk
from brokerproof.spec.messages import Priority

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.activemq.cursors.store_cursor import Surroundings
    from brokerproof.reference.activemq.memory.queue_memory import QueueMemory
    from brokerproof.reference.activemq.parameters import CursorParameters
    from brokerproof.reference.front.storage import Definition
    from brokerproof.reference.shared.disk import Disk
    from brokerproof.spec.messages import Order
    from brokerproof.spec.protocol.candidate import Unsynced


LARGE_BYTES: Final = 1 << 20
"""Searches do not fill a file of this size, in bytes."""


def levels_of(order: Order, parameters: CursorParameters) -> list[int]:
    """Return the levels that have their own stores, the highest first."""
    if isinstance(order, Priority) and parameters.levels == "apart":
        return list(reversed(range(order.levels)))
    return [0]


def store_name(queue: str, level: int) -> str:
    """Return the name of a store; hashed, since a queue's name may be no valid file name."""
    return f"{blake2b(queue.encode(), digest_size=12).hexdigest()}.{level}"


class CursorStorage(Storage):
    """One disk with the stores of all queues; construction loads the disk's content.

    `pending` and `swapped` are the temporary lists, by the name of the store that they belong to.
    """

    __slots__ = ("is_down", "parameters", "pending", "stores", "swapped")

    def __init__(self, disk: Disk, parameters: CursorParameters, unsynced: Unsynced) -> None:
        super().__init__(disk, unsynced)
        self.parameters = parameters
        self.start()

    def start(self) -> None:
        """Load the durable state, and remove files that belong to no queue."""
        self.is_down = False
        self.read_definitions()
        self.pending: dict[str, LinkedContainer] = {}
        self.swapped: dict[str, LinkedContainer] = {}
        parameters = StoreParameters(
            reading=self.parameters.read,
            duplicates=self.parameters.duplicates,
            set_batch="honoured" if self.parameters.cache == "placed" else "ignored",
            free_list=self.parameters.free_list,
            data_file_bytes=self.parameters.data,
            journal_file_bytes=self.parameters.data,
            front_max=self.parameters.lag,
        )
        self.stores = QueueStores(
            self.disk,
            parameters,
            [
                store_name(each.name, level)
                for each in self.definitions.values()
                for level in levels_of(each.order, self.parameters)
            ],
        )

    def open(
        self, definition: Definition, memory: QueueMemory, queue: Surroundings
    ) -> tuple[QueueCursor, int]:
        """Return the cursors of a queue, and its highest known arrival number.

        A new durable queue is recorded, so that it comes back after a crash.
        """
        if definition.name not in self.definitions:
            self.define(definition)
        levels: list[LevelCursors] = []
        arrivals = 0
        for level in levels_of(definition.order, self.parameters):
            name = store_name(definition.name, level)
            persistent = None
            if definition.durable:
                store = self.stores.open(name)
                persistent = StoreCursor(store, level, memory, self.parameters, queue)
                last = store.references.container.last()
                if last is not None:
                    value = store.message(store.references.container.value_at(last))
                    arrivals = max(arrivals, decoded(value).arrival)
            transient = MemoryCursor(level, memory, queue)
            if self.parameters.transient == "file" or definition.durable:
                # Where another cursor needs memory, no message may occupy it for good.
                transient = self._file_cursor(name, level, memory, queue)
            classes = self.parameters.classes
            levels.append(LevelCursors(level, persistent, transient, classes))
        return QueueCursor(levels), arrivals

    def _file_cursor(
        self, name: str, level: int, memory: QueueMemory, queue: Surroundings
    ) -> FileCursor:
        self.pending[name] = LinkedContainer(self.disk, f"pending.{name}")
        self.swapped[name] = LinkedContainer(self.disk, f"swapped.{name}")
        return FileCursor(level, memory, queue, self.pending[name], self.swapped[name])

    def house(self, queue: str, order: Order, cursor: QueueCursor) -> None:
        """Connect the cursors of a copied queue to the stores and lists of this storage."""
        for level in levels_of(order, self.parameters):
            name, at = store_name(queue, level), cursor.at(level)
            if at.persistent is not None:
                at.persistent.store = self.stores.open(name)
            if isinstance(at.transient, FileCursor):
                at.transient.disk = self.pending[name]
                at.transient.swapped = self.swapped[name]

    def delete(self, queue: str, order: Order) -> None:
        """Remove a queue: first its definition, then its files."""
        self.undefine(queue)
        for level in levels_of(order, self.parameters):
            name = store_name(queue, level)
            if name in self.stores.names():
                self.stores.delete(name)
            for lists in (self.pending, self.swapped):
                if name in lists:
                    lists.pop(name).delete()
        self.stores.sync()

    def crash(self) -> None:
        """Lose the unsynced bytes; the stores are not used before the next start."""
        super().crash()
        self.is_down = True

    def sync(self) -> None:
        """Make durable what must be so before a client is told."""
        self.stores.sync()

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for disks that behave alike.

        Where files are small, their content counts: behaviour shows when a file ends and is
        removed.
        """
        disk = self.disk
        assert isinstance(disk, SimulatedDisk), "what is on a real disk is not named"
        if self.is_down or self.parameters.data < LARGE_BYTES:
            content = tuple(sorted(disk.content().items()))
            overwritten = tuple(sorted(disk.overwritten().items()))
            stores = None if self.is_down else self.stores.fingerprint()
            return content, overwritten, stores, disk.power()
        lists = [*self.pending.items(), *self.swapped.items()]
        return (
            tuple(self.definitions),
            self.stores.meaning(),
            tuple([(name, _name_list(each)) for name, each in lists]),
            disk.power(),
        )


def _name_list(container: LinkedContainer) -> Hashable:
    return tuple([key for key, _ in container.entries()])
