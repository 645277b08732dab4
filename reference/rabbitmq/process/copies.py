"""Copying a queue process and naming its state, for searches; its disk is copied separately.

Owns which parts of its state affect later behaviour. No step of the algorithm is here, and none
runs during a copy. The node names the sequence numbers of tags; delivered messages are named by
their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumer_copies import copy_ranked, name_ranked
from brokerproof.reference.rabbitmq.process.queue import HandedOut, QueueProcess

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.front.consumers import RankedConsumer
    from brokerproof.reference.front.outbox import Executor, Outbox

_new = object.__new__


class ProcessCopies:
    """The copies made so far of queue processes."""

    __slots__ = ("consumers", "handed_out")

    def __init__(self) -> None:
        self.consumers: dict[RankedConsumer, RankedConsumer] = {}
        self.handed_out: dict[HandedOut, HandedOut] = {}


def fork_queue_process(
    queue: QueueProcess, outbox: Outbox, executor: Executor, copies: ProcessCopies
) -> QueueProcess:
    """Return a copy of a queue that still uses the original's disk, until `move_to`."""
    copy = _new(QueueProcess)
    copy.name = queue.name
    copy.order = queue.order
    copy.outbox = outbox
    copy.executor = executor
    copy.auto_delete = queue.auto_delete
    copy.durable = queue.durable
    copy.registrations = queue.registrations.fork()
    copy.storage = queue.storage
    copy.sub_queues = queue.sub_queues
    for consumer in queue.line.everybody():
        copies.consumers[consumer] = copy_ranked(consumer)
    copy.line = queue.line.fork(copies.consumers)
    copy.unsettled = {}
    for tag, original in queue.unsettled.items():
        # A closed consumer never changes again, and is shared.
        taker = copies.consumers.get(original.taker, original.taker)
        held = HandedOut(original.message, taker, tag, redelivered=original.redelivered)
        copy.unsettled[tag] = copies.handed_out[original] = held
    return copy


def fingerprint_queue_process(queue: QueueProcess) -> Hashable:
    """Return a value that is equal for queues that behave alike on equal disks."""
    places: dict[int, list[int]] = {}
    for tag in queue.unsettled:
        places.setdefault(tag.level, []).append(tag.seq)
    for seqs in places.values():
        seqs.sort()
    return (
        queue.name,
        queue.order,
        queue.auto_delete,
        queue.durable,
        tuple([name_ranked(each) for each in queue.line.active]),
        tuple([name_ranked(each) for each in queue.line.blocked]),
        tuple(
            [
                (
                    tag.level,
                    places[tag.level].index(tag.seq),
                    held.message.id,
                    held.redelivered,
                    held.taker.channel,
                    None if held.taker.is_closed() else held.taker.consumer,
                )
                for tag, held in queue.unsettled.items()
            ]
        ),
    )
