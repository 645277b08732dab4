"""A backing queue as it stands, as the view that `inspect` shows of it.

Owns the reading of a queue's state. Nothing moves by it: a read of the disk is counted there
(`SimulatedDisk.counts`), which is part of no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from brokerproof.reference.rabbitmq.disk.index_recovery import live_entries
from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
from brokerproof.reference.rabbitmq.disk.records import IndexEntry
from brokerproof.reference.rabbitmq.paging.statuses import MessageStatus
from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    DeltaView,
    IndexEntryView,
    StatusView,
    StoresView,
)


def view_of(
    queue: VariableQueue, name_in: Callable[[bytes], str], *, level: int, owns_stores: bool
) -> BackingQueueView:
    """Return a queue's state; `name_in` reads a message's name from its body.

    `owns_stores` says that no other queue shares its stores.
    """
    names = _Names(queue, name_in)
    delta = queue.delta
    entries = [
        entry
        for entry in live_entries(queue.holdings.index)
        if entry.is_persistent or entry.seq >= queue.transient_threshold
    ]
    return BackingQueueView(
        level=level,
        q1=names.of_all(queue.q1),
        q2=names.of_all(queue.q2),
        delta=DeltaView(delta.start, delta.count, delta.end),
        q3=names.of_all(queue.q3),
        q4=names.of_all(queue.q4),
        pending=names.of_all(queue.pending[seq] for seq in sorted(queue.pending)),
        index=names.of_index(entries),
        stores=StoresView(names.of_store(persistent=True), names.of_store(persistent=False))
        if owns_stores
        else None,
        next_seq=queue.next_seq,
        transient_threshold=queue.transient_threshold,
        length=queue.length,
        ram_count=queue.ram_count,
        persistent_count=queue.persistent_count,
        ram_acks=tuple(sorted(queue.ram_acks.seqs())),
        target=queue.target,
        segment=queue.parameters.segment,
        batch=queue.parameters.batch,
    )


class _Names:
    """The names of a queue's messages, which only their bodies have."""

    __slots__ = ("name_in", "persistent_store", "transient_store")

    def __init__(self, queue: VariableQueue, name_in: Callable[[bytes], str]) -> None:
        self.name_in = name_in
        self.persistent_store: MessageStore = queue.holdings.persistent_store
        self.transient_store: MessageStore = queue.holdings.transient_store

    def on_disk(self, msg_id: bytes, *, persistent: bool) -> str:
        """Return the name of a message by the store's id for it."""
        store = self.persistent_store if persistent else self.transient_store
        return self.name_in(store.read(msg_id)) if store.contains(msg_id) else msg_id.hex()

    def of_store(self, *, persistent: bool) -> tuple[tuple[str, int], ...]:
        """Return how often a store refers to each message, by name."""
        store = self.persistent_store if persistent else self.transient_store
        return tuple(
            sorted(
                [
                    (self.on_disk(msg_id, persistent=persistent), location.references)
                    for msg_id, location in store.index.items()
                ]
            )
        )

    def of_index(self, entries: Iterable[IndexEntry]) -> tuple[IndexEntryView, ...]:
        """Return the view of each entry."""
        return tuple(
            [
                IndexEntryView(
                    entry.seq,
                    self.on_disk(entry.msg_id, persistent=entry.is_persistent),
                    entry.is_persistent,
                    entry.is_delivered,
                )
                for entry in entries
            ]
        )

    def of_all(self, statuses: Iterable[MessageStatus]) -> tuple[StatusView, ...]:
        """Return the view of each status."""
        return tuple([self._status(each) for each in statuses])

    def _status(self, status: MessageStatus) -> StatusView:
        body, persistent = status.body, status.is_persistent
        return StatusView(
            status.seq,
            self.on_disk(status.msg_id, persistent=persistent)
            if body is None
            else self.name_in(body),
            persistent,
            status.is_delivered,
            body is not None,
            status.msg_on_disk,
            status.index_on_disk,
        )
