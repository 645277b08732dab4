"""One queue's content on disk: bodies in two stores, positions in its index.

Owns the choice of a message's store, and that a body is written before its position. `moves` and
the queue decide when something is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.disk.message_store import StoreClient
from brokerproof.reference.rabbitmq.paging.statuses import InvariantBroken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
    from brokerproof.reference.rabbitmq.disk.queue_index import QueueIndex
    from brokerproof.reference.rabbitmq.paging.confirms import Confirms
    from brokerproof.reference.rabbitmq.paging.statuses import MessageStatus


class Holdings:
    """A queue's index, and the queue as a client of both stores; syncs go to `confirms`."""

    __slots__ = (
        "index",
        "persistent_client",
        "persistent_store",
        "transient_client",
        "transient_store",
    )

    def __init__(
        self,
        ref: str,
        index: QueueIndex,
        persistent_store: MessageStore,
        transient_store: MessageStore,
        confirms: Confirms,
    ) -> None:
        self.index = index
        index.on_synced = confirms.indices_written
        self.persistent_store = persistent_store
        self.transient_store = transient_store
        self.persistent_client, self.transient_client = (
            StoreClient(ref, confirms.messages_written, confirms.record) for _ in range(2)
        )
        persistent_store.connect(self.persistent_client)
        transient_store.connect(self.transient_client)

    def _store_of(self, status: MessageStatus) -> tuple[MessageStore, StoreClient]:
        if status.is_persistent:
            return self.persistent_store, self.persistent_client
        return self.transient_store, self.transient_client

    def write_message(self, status: MessageStatus) -> None:
        """Write a message's body, unless it is on disk."""
        if not status.msg_on_disk:
            assert status.body is not None, "M3"
            store, client = self._store_of(status)
            store.write(client, status.msg_id, status.body)
            status.msg_on_disk = True

    def write_index(self, status: MessageStatus) -> None:
        """Write a message's position, and its delivery if it had one, unless it is on disk.

        Without the delivery, its acknowledgement would meet an entry that was never delivered.
        """
        if not status.index_on_disk:
            if not status.msg_on_disk:
                raise InvariantBroken("W1")
            self.index.publish(
                status.seq,
                status.msg_id,
                status.expiry,
                is_persistent=status.is_persistent,
                needs_confirming=status.needs_confirming,
            )
            status.index_on_disk = True
            if status.is_delivered:
                self.index.deliver((status.seq,))

    def read_message(self, status: MessageStatus) -> bytes:
        """Return a message's body, from RAM or from its store."""
        if status.body is not None:
            return status.body
        return self._store_of(status)[0].read(status.msg_id)

    def deliver(self, status: MessageStatus) -> None:
        """Note that a message is about to be delivered; only the first time counts."""
        if status.index_on_disk and not status.is_delivered:
            self.index.deliver((status.seq,))

    def remove(self, statuses: Iterable[MessageStatus]) -> int:
        """Remove delivered messages from disk; return the number of persistent ones."""
        indexed: list[int] = []
        transient: list[bytes] = []
        persistent: list[bytes] = []
        for status in statuses:
            if status.msg_on_disk:
                (persistent if status.is_persistent else transient).append(status.msg_id)
                if status.index_on_disk:
                    indexed.append(status.seq)
        if indexed:
            self.index.acknowledge(indexed)
        if persistent:
            self.persistent_store.remove(self.persistent_client, persistent)
        if transient:
            self.transient_store.remove(self.transient_client, transient)
        return len(persistent)

    def remove_transient_bodies(self, statuses: Iterable[MessageStatus]) -> None:
        """Remove the bodies of transient messages; the next start removes their index entries."""
        transient = [one.msg_id for one in statuses if one.msg_on_disk and not one.is_persistent]
        self.transient_store.remove(self.transient_client, transient)

    def disconnect(self) -> None:
        """Disconnect from both stores."""
        self.persistent_store.disconnect(self.persistent_client)
        self.transient_store.disconnect(self.transient_client)
