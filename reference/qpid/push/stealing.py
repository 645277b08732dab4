"""A push queue that can take sent entries back from its consumers (Qpid since 0.30).

Owns when an entry is unstealable: while it is sent, and while it is settled. In between the queue
may take it, which here only a deletion of the queue does. `entries` owns the moves of a state.

Invariant: a deletion touches no entry that another thread is sending or settling. That thread
checks, after each change that makes the entry available or stealable, whether the queue is being
deleted, and then drops the entry. The deletion is announced before it looks at any entry, so one of
the two threads sees the other. In the later releases the deletion leaves a task with the entry, to
run at its next change of state.

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
    """A queue that takes sent entries back from its consumers when it is deleted."""

    __slots__ = ()

    steals = True

    def sent(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Make a sent entry stealable; if the queue is being deleted, drop it at once."""
        if subscription.mode.settled_when_sent or not entry.make_stealable(subscription):
            return
        if self.goes():
            self._drop(entry)
            self.outbox.forget_what_has_gone()

    def remove(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Settle a delivery that was acknowledged or rejected, unless the queue has taken it."""
        if not entry.make_unstealable(subscription):
            return
        if entry.delete_stealable() and subscription.restore_credit(entry):
            self.deliver_async()

    def release(self, deliveries: Iterable[tuple[QueueEntry, Subscription]]) -> None:
        """Return messages that the queue has not taken; a queue being deleted drops them."""
        for entry, subscription in deliveries:
            if not entry.make_unstealable(subscription):
                continue
            entry.redelivered = True
            if not entry.release_stealable(subscription):
                continue
            if self.goes():
                self.take_off(entry)
                continue
            # In the order of a queue that cannot steal, for the same reason.
            self._requeue(entry)
            if subscription.restore_credit(entry):
                self.deliver_async()

    def _drop(self, entry: QueueEntry) -> None:
        """Drop an entry of a queue being deleted, unless another thread sends or settles it."""
        if entry.steal():
            entry.delete(ACQUIRED_BY_QUEUE)
            entry_taken(self, entry)
        else:
            self.take_off(entry)
