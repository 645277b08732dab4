"""The disk of queue processes, and the node that runs on it.

Owns which backing queues a queue has there. The node owns how messages are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.storage import Storage
from brokerproof.reference.rabbitmq.paging import Node, fingerprint_node
from brokerproof.reference.rabbitmq.paging.node import file_prefix
from brokerproof.reference.rabbitmq.process.sub_queues import SubQueues, names_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.front.storage import Definition
    from brokerproof.reference.rabbitmq.paging import Parameters
    from brokerproof.reference.shared.disk import Disk
    from brokerproof.spec.messages import Order
    from brokerproof.spec.protocol.candidate import Unsynced


class NodeStorage(Storage):
    """One disk with a node on it; construction starts the node from the disk's content.

    `target` is the number of messages of each backing queue allowed in RAM, None for no limit.
    """

    __slots__ = ("node", "parameters", "target")

    def __init__(
        self, disk: Disk, parameters: Parameters, target: int | None, unsynced: Unsynced
    ) -> None:
        super().__init__(disk, unsynced)
        self.parameters = parameters
        self.target = target
        self.start()

    def start(self) -> None:
        """Load the durable state, and remove files that belong to no queue."""
        names = self.read_definitions()
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
        """Return the backing queues of a queue, and create them for a new one.

        A new durable queue is recorded, so that it comes back after a crash.
        """
        names = names_of(definition.name, definition.order)
        if definition.name not in self.definitions:
            for name in names.values():
                self.node.declare(name, durable=definition.durable)
            self.define(definition)
        by_level = {level: self.node.queues[each] for level, each in names.items()}
        for queue in by_level.values():
            queue.set_target(self.target)
        return SubQueues(definition.order, by_level)

    def delete(self, name: str, order: Order) -> None:
        """Remove a queue: first its definition, then its files."""
        self.undefine(name)
        for each in names_of(name, order).values():
            self.node.delete(each)

    def sync(self) -> None:
        """Make durable what must be so before a client is told."""
        self.node.sync()

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for disks that behave alike; rates are not used here."""
        return fingerprint_node(self.node, with_rates=False)
