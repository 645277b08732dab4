"""What an ActiveMQ queue looks like inside: the grey-box view of its cursors and what is paged in.

Owns that reading, and nothing of what should be. Nothing moves by it: what it reads of the disk is
counted there (`SimulatedDisk.counts`), which is no part of any state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.cursor.references import decoded
from brokerproof.reference.cursor.store_cursor import PRODUCER, StoreCursor
from brokerproof.reference.cursor.transient_cursors import FileCursor
from brokerproof.spec.cursor_inspections import (
    CursorLevelView,
    CursorQueueView,
    MemoryView,
    NumberedView,
    ReferenceView,
    TakerView,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from brokerproof.reference.consumers import Held
    from brokerproof.reference.cursor.queue import CursorQueue
    from brokerproof.reference.cursor.queue_cursor import LevelCursors
    from brokerproof.reference.cursor.references import Reference, Stored


def view_of_cursor_queue(queue: CursorQueue) -> CursorQueueView:
    """Return the view of a queue."""
    first = queue.audit.first_of(PRODUCER)
    known = {held for _, held in queue.outbox.outstanding()}
    return CursorQueueView(
        order=queue.order,
        levels=tuple([_level_view(each, queue) for each in queue.cursor.levels]),
        paged_in=tuple([_reference_view(each, known) for each in queue.paged_in.values()]),
        returned=tuple([each.id for each in queue.pending.redelivered]),
        waiting=tuple([each.id for each in queue.pending.paged_in]),
        late=tuple([each.id for each in queue.late.references]) if queue.late else (),
        takers=tuple(
            [TakerView(str(each.consumer), not each.is_suspended()) for each in queue.takers]
        ),
        parked=tuple(queue.parked),
        window=None if first is None else (first, queue.audit.covered()),
        memory=_memory_view(queue),
    )


def _memory_view(queue: CursorQueue) -> MemoryView:
    contents = [each.content for each in queue.paged_in.values()]
    for cursor in queue.cursor.cursors():
        if isinstance(cursor, StoreCursor):
            contents += [each.content for each in cursor.batch.values()]
        else:
            contents += [each.content for each in cursor.pending]
    sizes = [each.size for each in {id(each): each for each in contents if each}.values()]
    usage = queue.memory.usage
    return MemoryView(usage.used, usage.limit, sum(sizes), max(sizes, default=0))


def _level_view(at: LevelCursors, queue: CursorQueue) -> CursorLevelView:
    transient = at.transient
    in_memory = tuple(
        [
            NumberedView(each.id, each.arrival, each.content is not None)
            for each in transient.pending
        ]
    )
    on_disk: tuple[NumberedView, ...] = ()
    if isinstance(transient, FileCursor):
        values = [decoded(value) for _, value in transient.disk.entries()]
        on_disk = tuple([NumberedView(each.message.id, each.arrival) for each in values])
    cursor = at.persistent
    if cursor is None:
        return CursorLevelView(level=at.level, in_memory=in_memory, on_disk=on_disk)
    stored, read = _stored(cursor)
    return CursorLevelView(
        level=at.level,
        stored=tuple([_numbered(each, queue, cursor) for each in stored]),
        read=read,
        batch=tuple([_numbered(each.stored, queue, cursor) for each in cursor.batch.values()]),
        cache_enabled=cursor.cache_enabled,
        size=cursor.size,
        in_memory=in_memory,
        on_disk=on_disk,
    )


def _stored(cursor: StoreCursor) -> tuple[list[Stored], int | None]:
    """Return what is stored in its order, and how much of it is not behind the position."""
    store = cursor.store
    container = store.references.container
    position = None if cursor.needs_reset else store.references.pos
    stored: list[Stored] = []
    read = None
    at = container.first()
    while at is not None:
        key = container.key_at(at)
        if not store.is_acknowledged(key):
            stored.append(decoded(store.message(container.value_at(at))))
        if at == position:
            read = len(stored)
        at = container.next(at)
    values = [store.get(key) for key in store.added]
    stored += [decoded(value) for value in values if value is not None]
    return stored, read


def _numbered(stored: Stored, queue: CursorQueue, cursor: StoreCursor) -> NumberedView:
    name = stored.message.id
    return NumberedView(
        name,
        stored.arrival,
        name in cursor.batch or name in queue.resident,
        queue.audit.probe(PRODUCER, stored.arrival),
    )


def _reference_view(reference: Reference, known: Collection[Held]) -> ReferenceView:
    owner = reference.owner
    return ReferenceView(
        reference.id,
        reference.arrival,
        reference.level,
        reference.kept,
        reference.content is not None,
        reference.redelivered,
        None if owner is None else owner.channel,
        None if owner is None else owner.consumer,
        owner is None or reference in known,
    )
