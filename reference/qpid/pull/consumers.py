"""A consumer in a pull queue: a subscription that knows its node and its target.

Owns that connection. The queue owns the lists, and the client's side the turns.

Source: Qpid, pull consumers, section High-level Overview: "due to multi-queue consumers a
ConsumerTarget has one or more Consumers associated with one queue each".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.push.subscriptions import Subscription
from brokerproof.reference.shared.atomics import AtomicFlag, AtomicReference, Lock

if TYPE_CHECKING:
    from brokerproof.reference.front.credit import ChannelWindow, Served
    from brokerproof.reference.qpid.pull.consumer_lists import ConsumerNode
    from brokerproof.reference.qpid.pull.targets import ConsumerTarget

HIGHEST_PRIORITY = 2**31 - 1
"""Defers to no consumer: the document's releases give it to a consumer without a priority, and here
a `get` has it."""


class QueueConsumer(Subscription):
    """One consumer of one queue, or one `get`; a consumer of several queues has one for each.

    It `declines` while it waits at an entry that it has no room for, although it has room for
    others. `awaits` may also be an entry that only keeps an auto-close consumer open.
    """

    __slots__ = ("all_queues", "declines", "node", "priority", "target")

    all_queues: tuple[str, ...]
    declines: AtomicFlag

    node: AtomicReference[ConsumerNode | None]
    priority: int
    target: ConsumerTarget

    def queues(self) -> tuple[str, ...]:
        """Return the names of all queues that its target pulls from, or did."""
        return self.all_queues

    def is_notify_work_desired(self) -> bool:
        """Return whether its client wants the next message at this moment."""
        return self.target.desired.get() and not (
            self.declines.get() and self.awaits.get() is not None
        )

    def share(self, window: ChannelWindow, queue: Served) -> None:
        """Join the window of its channel, with all that it holds."""
        with self.io_thread():
            super().share(window, queue)

    def io_thread(self) -> Lock:
        """Return the thread of its connection, on which all its operations run."""
        return self.target.session.connection.io_thread

    def sending(self) -> Lock:
        """Return the lock that is held during each send to it: the thread of its connection."""
        return self.io_thread()

    def notify_work(self) -> None:
        """Receive a notification of work (step 3)."""
        self.target.notify_work()
