"""A push queue whose consumers' acquisitions can be stolen by the queue itself (Qpid since 0.30).

Owns when an entry is unstealable: while it is sent, and while it is settled. In between the queue
may take it away from its consumer, which here only a deletion of the queue does. Refuses to know
the states' own moves (`entries`) and how a queue delivers.

What it keeps: a deletion touches nothing that another thread is just sending or settling. That is
left to the thread, which looks, after each change by which the entry can be taken again, whether
the queue goes, and drops it then. The deletion says that the queue goes before it looks at any
entry, so one of the two sees the other. In the later releases the deletion leaves a task with the
entry, to be run at its next change of state; here whoever makes that change asks.

Source: Qpid 0.30 to 6.1 (`makeAcquisitionStealable`, `makeAcquisitionUnstealable`,
`acquireOrSteal`), as notes on these releases have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.push.delivery import entry_taken
from brokerproof.reference.qpid.push.entries import ACQUIRED_BY_QUEUE, QueueEntry
from brokerproof.reference.qpid.push.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokerproof.reference.qpid.push.subscriptions import Subscription


class StealingQueue(Queue):
    """A queue that takes away what its consumers were sent, when it goes."""

    __slots__ = ()

    steals = True

    def sent(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Let an entry be stolen that was sent; where the queue goes, at once."""
        if subscription.mode.settled_when_sent or not entry.make_stealable(subscription):
            return
        if self.goes():
            self._drop(entry)
            self.outbox.forget_what_has_gone()

    def remove(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Settle a delivery whose message is done with, unless the queue has taken that away."""
        if not entry.make_unstealable(subscription):
            return
        if entry.delete_stealable() and subscription.restore_credit(entry):
            self.deliver_async()

    def release(self, deliveries: Iterable[tuple[QueueEntry, Subscription]]) -> None:
        """Return messages to the queue, unless it has taken them away; if it goes, they go."""
        for entry, subscription in deliveries:
            if not entry.make_unstealable(subscription):
                continue
            entry.redelivered = True
            if not entry.release_stealable(subscription):
                continue
            if self.goes():
                self.take_off(entry)
                continue
            # In the order, and for the reason, of a queue that cannot steal.
            self._requeue(entry)
            if subscription.restore_credit(entry):
                self.deliver_async()

    def _drop(self, entry: QueueEntry) -> None:
        """Drop an entry of a queue that goes, unless somebody just sends or settles it."""
        if entry.steal():
            entry.delete(ACQUIRED_BY_QUEUE)
            entry_taken(self, entry)
        else:
            self.take_off(entry)
