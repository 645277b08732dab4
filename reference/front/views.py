"""The inspection view of a queue of any documented system.

Owns which function shows which kind of queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.activemq.inspection import view_of_cursor_queue
from brokerproof.reference.activemq.queue import CursorQueue
from brokerproof.reference.qpid.push.inspection import view_of
from brokerproof.reference.rabbitmq.process.inspection import view_of_process
from brokerproof.reference.rabbitmq.process.queue import QueueProcess

if TYPE_CHECKING:
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.spec.protocol.answers import Inspection


def shown(queue: AnyQueue) -> Inspection:
    """Return the view of a queue."""
    if isinstance(queue, QueueProcess):
        return view_of_process(queue)
    return view_of_cursor_queue(queue) if isinstance(queue, CursorQueue) else view_of(queue)
