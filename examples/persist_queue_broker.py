"""persist-queue as a candidate: a library from PyPI, translated and not repaired.

persist-queue keeps a queue in a table of SQLite. Its calls become the operations of the protocol:

    publish         put
    get             get(block=False, raw=True); in mode automatic, then ack at once
    acknowledge     ack
    release         nack
    reject          ack_failed
    close_channel   nack of each delivery that its gets hold, in the order of delivery

Queues by name (here one object each), channels and deliveries are the adapter's, not the library's.
The library has rows only, so a settlement names a message: the adapter passes a second one on like
the first, and the library decides its effect. `get` tells nothing of earlier deliveries.

Not claimed: consumers, since the library has none; durability, although it is the library's
purpose, since a crash here would end the gate too.

    brokerproof check examples/persist_queue_broker.py:make_broker

`docs/findings/third-party-queues.md` has the verdicts and their reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import persistqueue
from persistqueue import AckStatus, Empty, FILOSQLiteAckQueue, SQLiteAckQueue

from brokerproof.spec.messages import PRIORITIES, Fifo
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello, ReleasePosition
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Declare,
    Delete,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    Settlement,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

IN_MEMORY = ":memory:"
RETURNED = int(AckStatus.ready)
"""The status that `nack` gives a row; a row that was never taken has `AckStatus.inited`."""


def make_broker() -> PersistQueueBroker:
    """Return the FIFO queue with acknowledgements, as `get` shows it."""
    return PersistQueueBroker()


def make_broker_that_looks() -> PersistQueueBroker:
    """Return the same, which checks before each get which rows came back.

    The library stores that, and its `get` does not return it.
    """
    return PersistQueueBroker(looks=True)


def make_broker_claiming_tail() -> PersistQueueBroker:
    """Return the same with a wrong claim: messages return to their places, not to the tail."""
    return PersistQueueBroker(looks=True, release_position="tail")


def make_stack() -> PersistQueueBroker:
    """Return the last in, first out queue, which a gate for FIFO queues must refute."""
    return PersistQueueBroker(FILOSQLiteAckQueue, looks=True, release_position=None)


class PersistQueueBroker:
    """Queues of one `kind`, each in a database of its own in memory."""

    def __init__(
        self,
        kind: type[SQLiteAckQueue] = SQLiteAckQueue,
        *,
        looks: bool = False,
        release_position: ReleasePosition | None = "original",
    ) -> None:
        self._kind = kind
        self._looks = looks
        self._release_position = release_position
        self._queues: dict[str, SQLiteAckQueue] = {}
        self._rows: dict[str, tuple[str, int]] = {}
        self._held: dict[str, list[str]] = {}
        self._deliveries_made = 0

    def hello(self) -> Hello:
        """Claim what the library offers: first in, first out, and taking one message at a time."""
        return Hello(
            name=f"persist-queue {self._kind.__name__}",
            version=persistqueue.__version__,
            capabilities=Capabilities(
                get=True,
                settle_by="message",
                redelivered="flag" if self._looks else "none",
                release_position=self._release_position,
            ),
        )

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        match operation:
            case Reset():
                return self._reset()
            case Declare():
                return self._declare(operation)
            case Publish() | Get() | Delete() if operation.queue not in self._queues:
                return refused(f"there is no queue {operation.queue}")
            case Publish():
                return self._publish(operation)
            case Get():
                return self._get(operation)
            case Delete():
                return self._delete(operation)
            case Acknowledge() | Release() | Reject():
                return self._settle(operation)
            case CloseChannel():
                return self._close_channel(operation)
            case Drain():
                return OK
            case _:
                return unsupported(f"persist-queue has no {name_of(operation)}")

    def close(self) -> None:
        """Close the databases."""
        for queue in self._queues.values():
            queue.close()

    def _reset(self) -> Answer:
        self.close()
        for names in (self._queues, self._rows, self._held):
            names.clear()
        self._deliveries_made = 0
        return OK

    def _declare(self, operation: Declare) -> Answer:
        if operation.order != Fifo() or operation.durable or operation.auto_delete:
            return unsupported("only FIFO queues, neither durable nor deleted automatically")
        if operation.queue not in self._queues:
            self._queues[operation.queue] = self._kind(IN_MEMORY)
        return OK

    def _publish(self, operation: Publish) -> Answer:
        message = operation.message
        if message.priority not in PRIORITIES:
            return refused(f"priority {message.priority} is not one of 0 to 9")
        self._queues[operation.queue].put((message.id, bytes(message.size)))
        return OK

    def _get(self, operation: Get) -> Answer:
        queue = self._queues[operation.queue]
        returned = self._returned_rows(queue) if self._looks else frozenset()
        try:
            taken = queue.get(block=False, raw=True)
        except Empty:
            return OK
        row, (message, _) = taken["pqid"], taken["data"]
        delivery = f"d{self._deliveries_made}"
        self._deliveries_made += 1
        self._rows[delivery] = operation.queue, row
        if operation.mode == "automatic":
            queue.ack(id=row)
        else:
            self._held.setdefault(operation.channel, []).append(delivery)
        told = Delivered(
            delivery=delivery,
            consumer=None,
            queue=operation.queue,
            message=message,
            redelivered=row in returned,
        )
        return Answer((told,))

    def _returned_rows(self, queue: SQLiteAckQueue) -> frozenset[int]:
        return frozenset(row["id"] for row in queue.queue() if row["status"] == RETURNED)

    def _settle(self, operation: Settlement) -> Answer:
        if operation.delivery not in self._rows:
            return refused(f"there is no delivery {operation.delivery}")
        name, row = self._rows[operation.delivery]
        queue = self._queues[name]
        match operation:
            case Acknowledge():
                queue.ack(id=row)
            case Release():
                queue.nack(id=row)
            case Reject():
                queue.ack_failed(id=row)
            case _:
                assert_never(operation)
        for held in self._held.values():
            if operation.delivery in held:
                held.remove(operation.delivery)
        return OK

    def _close_channel(self, operation: CloseChannel) -> Answer:
        for delivery in self._held.pop(operation.channel, []):
            name, row = self._rows[delivery]
            self._queues[name].nack(id=row)
        return OK

    def _delete(self, operation: Delete) -> Answer:
        self._queues.pop(operation.queue).close()
        self._rows = {d: at for d, at in self._rows.items() if at[0] != operation.queue}
        self._held = {
            channel: [delivery for delivery in held if delivery in self._rows]
            for channel, held in self._held.items()
        }
        return OK

    # These let the gate search every behaviour of a scope; otherwise it draws random examples.

    def fork(self) -> PersistQueueBroker:
        """Return an independent copy."""
        twin = PersistQueueBroker(
            self._kind, looks=self._looks, release_position=self._release_position
        )
        twin._queues = {name: _copied(queue) for name, queue in self._queues.items()}
        twin._rows = dict(self._rows)
        twin._held = {channel: list(held) for channel, held in self._held.items()}
        twin._deliveries_made = self._deliveries_made
        return twin

    def fingerprint(self) -> Hashable:
        """Return the tables, the deliveries of each channel, and the rows that can be settled."""
        return (
            tuple(
                (name, tuple((row["id"], row["data"], row["status"]) for row in queue.queue()))
                for name, queue in self._queues.items()
            ),
            tuple(
                (channel, tuple(self._rows[delivery] for delivery in held))
                for channel, held in self._held.items()
            ),
            frozenset(self._rows.values()),
        )


def _copied(queue: SQLiteAckQueue) -> SQLiteAckQueue:
    """Return a queue with the same rows and the same cached state.

    The library has no copy operation, so this reads its private fields.
    """
    twin = type(queue)(IN_MEMORY)
    queue._getter.backup(twin._putter)  # type: ignore[attr-defined]  # noqa: SLF001
    twin._unack_cache.update(queue._unack_cache)  # noqa: SLF001
    twin.total = queue.total
    return twin
