"""The grey-box view of an ActiveMQ queue: its cursors and its paged-in messages.

Owns the reading of the view; it judges nothing and changes nothing. Its disk reads are counted in
`SimulatedDisk.counts`, which is no part of any state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.activemq.cursors.store_cursor import PRODUCER, StoreCursor
from brokerproof.reference.activemq.cursors.transient_cursors import FileCursor
from brokerproof.reference.activemq.groups import membership_of
from brokerproof.reference.activemq.memory.references import Reference, Stored, decoded
from brokerproof.spec.activemq.view import (
    AuditView,
    CursorLevelView,
    CursorQueueView,
    HeldView,
    MemoryView,
    ParkedView,
    PendingView,
    ReferenceView,
    StoredView,
    SubscriberView,
)
from brokerproof.spec.messages import level_of

if TYPE_CHECKING:
    from brokerproof.reference.activemq.cursors.queue_cursor import LevelCursors
    from brokerproof.reference.activemq.disk.linked_container import LinkedContainer
    from brokerproof.reference.activemq.memory.usage import Charged
    from brokerproof.reference.activemq.queue import CursorQueue
    from brokerproof.reference.front.consumers import RankedConsumer


def view_of_cursor_queue(queue: CursorQueue) -> CursorQueueView:
    """Return the view of a queue."""
    audit, usage = queue.audit, queue.memory.usage
    return CursorQueueView(
        order=queue.order,
        levels=tuple([_level_view(each, queue) for each in queue.cursor.levels]),
        paged_in=tuple([_reference_view(each, queue) for each in queue.paged_in.values()]),
        returned=tuple([each.id for each in queue.pending.redelivered]),
        waiting=tuple([each.id for each in queue.pending.paged_in]),
        late=tuple([each.id for each in queue.late.references]) if queue.late else (),
        held=_held(queue),
        subscribers=tuple([_subscriber_view(each, queue) for each in queue.subscribers]),
        parked=tuple(
            [ParkedView(each.id, queue.memory.size_of(each)) for each in queue.parked.values()]
        ),
        arrivals=queue.arrivals,
        audit=AuditView(
            audit.first_of(PRODUCER), audit.covered() // audit.word_bits, audit.word_bits
        ),
        memory=MemoryView(usage.used, usage.limit),
    )


def _held(queue: CursorQueue) -> tuple[HeldView, ...]:
    held: list[HeldView] = []
    for _, entry in queue.outbox.outstanding():
        holder = entry.holder()
        if isinstance(entry, Reference) and holder is not None and holder.queue == queue.name:
            held.append(HeldView(entry.id, holder.channel, holder.consumer))
    return tuple(held)


def _subscriber_view(subscriber: RankedConsumer, queue: CursorQueue) -> SubscriberView:
    name = str(subscriber.consumer)
    has_room = not subscriber.is_suspended() and queue.subscribers.election.admits(name)
    return SubscriberView(name, subscriber.channel, has_room, subscriber.mode.settled_when_sent)


def _level_view(at: LevelCursors, queue: CursorQueue) -> CursorLevelView:
    transient, persistent = at.transient, at.persistent
    view = CursorLevelView(
        level=at.level,
        in_memory=tuple(
            [_pending_view(each.stored(), each.content, queue) for each in transient.pending]
        ),
        on_disk=_listed(transient.disk, queue) if isinstance(transient, FileCursor) else (),
    )
    return view if persistent is None else _with_store(view, persistent, queue)


def _with_store(view: CursorLevelView, cursor: StoreCursor, queue: CursorQueue) -> CursorLevelView:
    """Return the view of a level, with the content of its store and the read position."""
    store = cursor.store
    references, container = store.references, store.references.container
    position = references.pos
    stored: list[Stored] = []
    read, outdated = None, False
    at = container.first()
    while at is not None:
        key = container.key_at(at)
        is_there = not store.is_acknowledged(key)
        if is_there:
            stored.append(decoded(store.message(container.value_at(at))))
        if at == position:
            read = len(stored)
        outdated |= not is_there and (at == position or key == references.last_id)
        at = container.next(at)
    values = [store.get(key) for key in store.added]
    stored += [decoded(value) for value in values if value is not None]
    return CursorLevelView(
        level=view.level,
        stored=tuple([_stored_view(each, queue) for each in stored]),
        read=read,
        starts_over=cursor.needs_reset,
        outdated=outdated,
        recovered=references.last_id,
        cached=cursor.last_cached,
        batch=tuple(
            [_pending_view(each.stored, each.content, queue) for each in cursor.batch.values()]
        ),
        cache_enabled=cursor.cache_enabled,
        size=cursor.size,
        in_memory=view.in_memory,
        on_disk=view.on_disk,
    )


def _stored_view(stored: Stored, queue: CursorQueue) -> StoredView:
    size = queue.memory.size_of(stored.message)
    suppressed = queue.audit.probe(PRODUCER, stored.arrival)
    return StoredView(stored.message.id, stored.arrival, size, suppressed)


def _pending_view(stored: Stored, content: Charged | None, queue: CursorQueue) -> PendingView:
    size = queue.memory.size_of(stored.message)
    references = 0 if content is None else content.references
    return PendingView(stored.message.id, stored.arrival, size, references)


def _listed(disk: LinkedContainer, queue: CursorQueue) -> tuple[PendingView, ...]:
    return tuple([_pending_view(decoded(value), None, queue) for _, value in disk.entries()])


def _reference_view(reference: Reference, queue: CursorQueue) -> ReferenceView:
    owner, content = reference.owner, reference.content
    return ReferenceView(
        message=reference.id,
        number=reference.arrival,
        size=reference.size,
        level=level_of(reference.message.priority, queue.order),
        persistent=reference.kept,
        references=0 if content is None else content.references,
        redelivered=reference.redelivered,
        grouped=membership_of(reference.message) is not None,
        channel=None if owner is None else owner.channel,
        holder=None if owner is None else owner.consumer,
    )
