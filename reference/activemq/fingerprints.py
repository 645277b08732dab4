"""Copying an ActiveMQ queue and naming its state, for searches; its disk is copied separately.

Owns which parts of the state affect later behaviour. No step of the algorithm is here, and none
runs during a copy.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from brokerproof.reference.activemq.cursors.queue_cursor import LevelCursors, QueueCursor
from brokerproof.reference.activemq.cursors.references import Reference
from brokerproof.reference.activemq.cursors.store_cursor import Cached, StoreCursor
from brokerproof.reference.activemq.cursors.transient_cursors import FileCursor, MemoryCursor
from brokerproof.reference.activemq.memory_usage import UsageCopies
from brokerproof.reference.activemq.queue import CursorQueue, Late
from brokerproof.reference.activemq.queue_memory import QueueMemory
from brokerproof.reference.front.consumer_copies import copy_ranked, name_ranked

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.activemq.cursors.queue_cursor import Cursor
    from brokerproof.reference.activemq.memory_usage import Charged, MemoryUsage
    from brokerproof.reference.front.consumers import RankedConsumer
    from brokerproof.reference.front.outbox import Executor, Outbox

_new = object.__new__


class CursorCopies:
    """The copies made so far of ActiveMQ queues; closed consumers are shared, not copied."""

    __slots__ = ("consumers", "references")

    def __init__(self) -> None:
        self.consumers: dict[RankedConsumer, RankedConsumer] = {}
        self.references: dict[Reference, Reference] = {}


class _Copying:
    """The copying of one queue."""

    def __init__(self, copies: CursorCopies, nodes: dict[MemoryUsage, MemoryUsage]) -> None:
        self.copies = copies
        self.nodes = nodes
        self.contents: dict[Charged, Charged] = {}

    def content(self, content: Charged) -> Charged:
        """Return the copy of a message's content."""
        copy = self.contents.get(content)
        if copy is None:
            copy = self.contents[content] = content.fork(self.nodes)
        return copy

    def reference(self, reference: Reference) -> Reference:
        """Return the copy of a message."""
        copy = self.copies.references.get(reference)
        if copy is None:
            copy = self.copies.references[reference] = _new(Reference)
            copy.arrival = reference.arrival
            copy.message = reference.message
            copy.level = reference.level
            copy.kept = reference.kept
            copy.redelivered = reference.redelivered
            copy.is_gone = reference.is_gone
            copy.content = reference.content and self.content(reference.content)
            copy.size = reference.size
            owner = reference.owner
            copy.owner = owner and self.copies.consumers.get(owner, owner)
        return copy


def fork_cursor_queue(
    queue: CursorQueue, outbox: Outbox, executor: Executor, copies: CursorCopies
) -> CursorQueue:
    """Return a copy of a queue that still uses the original's disk, until `move_to`."""
    copy = _new(CursorQueue)
    copy.name = queue.name
    copy.order = queue.order
    copy.outbox = outbox
    copy.executor = executor
    copy.auto_delete = queue.auto_delete
    copy.durable = queue.durable
    copy.registrations = queue.registrations.fork()
    copy.storage = queue.storage
    copy.parameters = queue.parameters
    for consumer in (*queue.takers, *(each.consumer for each in queue.browsers)):
        copies.consumers[consumer] = copy_ranked(consumer)
    copy.takers = queue.takers.fork(copies.consumers)
    usages = UsageCopies()
    copy.memory = memory = _new(QueueMemory)
    memory.usage = queue.memory.usage.fork(usages)
    memory.minimum = queue.memory.minimum
    memory.water_mark = queue.memory.water_mark
    memory.is_strict = queue.memory.is_strict
    memory.may_be_settled_before = queue.memory.may_be_settled_before
    copying = _Copying(copies, usages.nodes)
    copy.audit = queue.audit.fork()
    copy.paged_in = {name: copying.reference(each) for name, each in queue.paged_in.items()}
    copy.resident = {name: copying.reference(each) for name, each in queue.resident.items()}
    copy.replaced = [copying.reference(each) for each in queue.replaced]
    copy.fresh = queue.fresh.copy()
    copy.pending = queue.pending.fork(copying.reference)
    copy.browsers = queue.browsers.fork(copies.consumers, copying.reference)
    copy.parked = queue.parked.copy()
    copy.last_waits = queue.last_waits
    copy.arrivals = queue.arrivals
    late = queue.late
    copy.late = late and Late(
        [copying.reference(each) for each in late.references],
        [copies.consumers.get(each, each) for each in late.consumers],
    )
    copy.cursor = QueueCursor([_copy_level(each, copy, copying) for each in queue.cursor.levels])
    return copy


def _copy_level(original: LevelCursors, queue: CursorQueue, copying: _Copying) -> LevelCursors:
    persistent = original.persistent and _copy_store_cursor(original.persistent, queue, copying)
    transient = _copy_transient(original.transient, queue, copying)
    copy = LevelCursors(original.level, persistent, transient, original.classes)
    if persistent is not None and original.current is original.transient:
        copy.current = transient
    return copy


def _copy_store_cursor(cursor: StoreCursor, queue: CursorQueue, copying: _Copying) -> StoreCursor:
    copy = _new(StoreCursor)
    copy.store = cursor.store
    copy.level = cursor.level
    copy.memory = queue.memory
    copy.parameters = cursor.parameters
    copy.queue = queue
    copy.batch = OrderedDict(
        (name, Cached(each.stored, copying.content(each.content)))
        for name, each in cursor.batch.items()
    )
    copy.size = cursor.size
    copy.cache_enabled = cursor.cache_enabled
    copy.last_cached = cursor.last_cached
    copy.needs_reset = cursor.needs_reset
    copy.store_has_messages = cursor.store_has_messages
    return copy


def _copy_transient(cursor: MemoryCursor, queue: CursorQueue, copying: _Copying) -> MemoryCursor:
    copy = _new(type(cursor))
    copy.level = cursor.level
    copy.memory = queue.memory
    copy.queue = queue
    copy.pending = deque([copying.reference(each) for each in cursor.pending])
    if isinstance(cursor, FileCursor):
        assert isinstance(copy, FileCursor)
        copy.disk = cursor.disk
        copy.swapped = cursor.swapped
    return copy


def fingerprint_cursor_queue(queue: CursorQueue) -> Hashable:
    """Return a value that is equal for queues that behave alike on equal disks.

    The memory use follows from the messages in memory.
    """
    late = queue.late and (
        tuple([each.id for each in queue.late.references]),
        tuple([_name_taker(each) for each in queue.late.consumers]),
    )
    return (
        queue.name,
        queue.order,
        queue.auto_delete,
        queue.durable,
        tuple([name_ranked(each) for each in queue.takers]),
        queue.takers.fingerprint(),
        tuple([name_ranked(each.consumer) for each in queue.browsers]),
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


def _name_taker(consumer: RankedConsumer) -> Hashable:
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
