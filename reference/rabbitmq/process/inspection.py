"""The grey-box view of a queue process: its line and its backing queues.

Owns the reading of the view; it judges nothing and changes nothing. Its disk reads are counted in
`SimulatedDisk.counts`, which is no part of any state.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.paging.inspection import view_of
from brokerproof.reference.rabbitmq.process.queue import message_in
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    DeltaView,
    HandedOutView,
    IndexEntryView,
    InLineView,
    PagingQueueView,
    StatusView,
    StoresView,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from brokerproof.reference.front.consumers import RankedConsumer
    from brokerproof.reference.rabbitmq.disk.message_store import MessageStore
    from brokerproof.reference.rabbitmq.paging import VariableQueue
    from brokerproof.reference.rabbitmq.paging.statuses import MessageStatus
    from brokerproof.reference.rabbitmq.process.queue import QueueProcess


def view_of_process(queue: QueueProcess) -> PagingQueueView:
    """Return the view of a queue process, with the view of each backing queue."""
    alone = len(queue.storage.node.queues) == 1
    return PagingQueueView(
        order=queue.order,
        levels=tuple(
            [
                _level_view(level, backing, alone=alone)
                for level, backing in queue.sub_queues.by_level.items()
            ]
        ),
        in_line=_line_view(queue.line.active),
        blocked=_line_view(queue.line.blocked),
        handed_out=tuple(
            [
                HandedOutView(held.taker.channel, tag.level, tag.seq)
                for tag, held in queue.unsettled.items()
            ]
        ),
    )


def _line_view(part: Iterable[RankedConsumer]) -> tuple[InLineView, ...]:
    return tuple([InLineView(str(each.consumer), not each.is_suspended()) for each in part])


def _level_view(level: int, queue: VariableQueue, *, alone: bool) -> BackingQueueView:
    view = view_of(queue, owns_stores=alone)
    names = _Names(queue)
    delta = view.delta
    return BackingQueueView(
        level=level,
        q1=names.of_all(view.q1),
        q2=names.of_all(view.q2),
        delta=DeltaView(delta.start, delta.count, delta.end),
        q3=names.of_all(view.q3),
        q4=names.of_all(view.q4),
        pending=names.of_all(view.pending[seq] for seq in sorted(view.pending)),
        index=tuple(
            [
                IndexEntryView(
                    entry.seq,
                    names.on_disk(entry.msg_id, persistent=entry.is_persistent),
                    entry.is_persistent,
                    entry.is_delivered,
                )
                for entry in view.entries
            ]
        ),
        stores=None
        if view.references is None
        else StoresView(
            names.of_store(view.references[0], persistent=True),
            names.of_store(view.references[1], persistent=False),
        ),
        next_seq=view.next_seq,
        transient_threshold=view.transient_threshold,
        length=view.length,
        ram_count=view.ram_count,
        persistent_count=view.persistent_count,
        ram_acks=tuple(sorted(view.ram_acks)),
        target=queue.target,
        segment=view.segment,
        batch=queue.parameters.batch,
    )


@functools.lru_cache(maxsize=1 << 12)
def _name_in(body: bytes) -> str:
    return message_in(body).id


class _Names:
    """The names of a queue's messages, which are stored only in their bodies."""

    __slots__ = ("persistent_store", "transient_store")

    def __init__(self, queue: VariableQueue) -> None:
        self.persistent_store: MessageStore = queue.holdings.persistent_store
        self.transient_store: MessageStore = queue.holdings.transient_store

    def on_disk(self, msg_id: bytes, *, persistent: bool) -> str:
        """Return the name of a message by its id in the store."""
        store = self.persistent_store if persistent else self.transient_store
        return _name_in(store.read(msg_id)) if store.contains(msg_id) else msg_id.hex()

    def of_store(
        self, references: Mapping[bytes, int], *, persistent: bool
    ) -> tuple[tuple[str, int], ...]:
        """Return a store's reference count of each message, by name."""
        return tuple(
            sorted(
                [
                    (self.on_disk(msg_id, persistent=persistent), many)
                    for msg_id, many in references.items()
                ]
            )
        )

    def of_all(self, statuses: Iterable[MessageStatus]) -> tuple[StatusView, ...]:
        """Return the view of each status."""
        return tuple([self._status(each) for each in statuses])

    def _status(self, status: MessageStatus) -> StatusView:
        body, persistent = status.body, status.is_persistent
        return StatusView(
            status.seq,
            self.on_disk(status.msg_id, persistent=persistent) if body is None else _name_in(body),
            persistent,
            status.is_delivered,
            body is not None,
            status.msg_on_disk,
            status.index_on_disk,
        )
