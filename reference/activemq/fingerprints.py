"""The fingerprint of an ActiveMQ queue; that of its disk is apart.

Owns which parts of the state affect later behaviour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.activemq.cursors.store_cursor import StoreCursor
from brokerproof.reference.activemq.memory.references import Reference
from brokerproof.reference.activemq.queue import CursorQueue

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.activemq.cursors.queue_cursor import Cursor
    from brokerproof.reference.front.consumers import RankedConsumer


def fingerprint_cursor_queue(queue: CursorQueue) -> Hashable:
    """Return a value that is equal for queues that behave alike on equal disks.

    The memory use follows from the messages in memory.
    """
    late = queue.late and (
        tuple([each.id for each in queue.late.references]),
        tuple([_name_subscriber(each) for each in queue.late.consumers]),
    )
    return (
        queue.name,
        queue.order,
        queue.auto_delete,
        queue.durable,
        tuple([each.fingerprint() for each in queue.subscribers]),
        queue.subscribers.fingerprint(),
        tuple([each.consumer.fingerprint() for each in queue.browsers]),
        queue.browsers.fingerprint(),
        tuple([_name_reference(each) for each in queue.paged_in.values()]),
        tuple([_name_reference(each) for each in queue.replaced]),
        tuple(queue.resident),
        queue.pending.fingerprint(),
        tuple(queue.parked),
        late,
        queue.arrivals,
        queue.memory.usage.used,
        queue.audit.fingerprint(),
        tuple([_name_cursor(each) for each in queue.cursor.cursors()]),
        tuple([at.current is at.persistent for at in queue.cursor.levels]),
    )


def _name_subscriber(consumer: RankedConsumer) -> Hashable:
    return consumer.consumer, consumer.is_closed()


def _name_reference(reference: Reference) -> Hashable:
    owner = reference.owner
    return (
        reference.id,
        reference.arrival,
        reference.size,
        reference.redelivered,
        reference.content is not None,
        owner and (owner.channel, None if owner.is_closed() else owner.consumer),
    )


def _name_cursor(cursor: Cursor) -> Hashable:
    if isinstance(cursor, StoreCursor):
        return (
            tuple([(name, each.stored.arrival) for name, each in cursor.batch.items()]),
            cursor.size,
            cursor.cache_enabled,
            cursor.last_cached,
            cursor.needs_reset,
            cursor.store_has_messages,
        )
    return tuple([(each.id, each.arrival, each.size) for each in cursor.pending])
