"""What a queue of any documented system shows of its inside.

Owns which kind of view is of which kind of queue, and nothing of the views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.cursor.inspection import view_of_cursor_queue
from brokerproof.reference.cursor.queue import CursorQueue
from brokerproof.reference.inspection import view_of
from brokerproof.reference.queue_process.inspection import view_of_process
from brokerproof.reference.queue_process.queue import QueueProcess

if TYPE_CHECKING:
    from brokerproof.reference.front_queue import AnyQueue
    from brokerproof.spec.inspections import Inspection


def shown(queue: AnyQueue) -> Inspection:
    """Return the view of a queue."""
    if isinstance(queue, QueueProcess):
        return view_of_process(queue)
    return view_of_cursor_queue(queue) if isinstance(queue, CursorQueue) else view_of(queue)
