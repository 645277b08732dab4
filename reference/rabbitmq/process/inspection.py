"""The grey-box view of a queue process: its line and its backing queues.

Owns the reading of the view; it judges nothing and changes nothing. Its disk reads are counted in
`SimulatedDisk.counts`, which is no part of any state.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from brokerproof.reference.rabbitmq.paging.inspection import view_of
from brokerproof.reference.rabbitmq.process.queue import message_in
from brokerproof.spec.rabbitmq.view import HandedOutView, InLineView, PagingQueueView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.reference.front.consumers import RankedConsumer
    from brokerproof.reference.rabbitmq.process.queue import QueueProcess


def view_of_process(queue: QueueProcess) -> PagingQueueView:
    """Return the view of a queue process, with the view of each backing queue."""
    alone = len(queue.storage.node.queues) == 1
    return PagingQueueView(
        order=queue.order,
        levels=tuple(
            [
                view_of(backing, _name_in, level=level, owns_stores=alone)
                for level, backing in queue.sub_queues.by_level.items()
            ]
        ),
        in_line=_line_view(queue.line.active),
        blocked=_line_view(queue.line.blocked),
        handed_out=tuple(
            [
                HandedOutView(held.subscriber.channel, tag.level, tag.seq)
                for tag, held in queue.unsettled.items()
            ]
        ),
    )


def _line_view(part: Iterable[RankedConsumer]) -> tuple[InLineView, ...]:
    return tuple([InLineView(str(each.consumer), not each.is_suspended()) for each in part])


@functools.lru_cache(maxsize=1 << 12)
def _name_in(body: bytes) -> str:
    return message_in(body).id
