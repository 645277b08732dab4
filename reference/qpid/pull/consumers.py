"""A consumer of a queue from which it pulls: a subscription that knows its queue's node and target.

Owns what ties the two together. Refuses to know the lists (the queue's side) and turns (the
client's side).

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
"""Waits for nobody: what the document's releases give to whoever asks for no priority, and here a
`get` has."""


class QueueConsumer(Subscription):
    """One consumer of one queue, or one `get`; of several queues, one for each.

    It `declines` while it waits for an entry to go that it has no room for, though it has room for
    others. What it waits at may also be an entry that only keeps it from closing itself.
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
        """Whether its client wants what is next at this moment."""
        return self.target.desired.get() and not (
            self.declines.get() and self.awaits.get() is not None
        )

    def share(self, window: ChannelWindow, queue: Served) -> None:
        """Count for a window of its channel from now on, with all that it holds."""
        with self.io_thread():
            super().share(window, queue)

    def io_thread(self) -> Lock:
        """Return the thread of its connection, on which everything is done to it."""
        return self.target.session.connection.io_thread

    def sending(self) -> Lock:
        """Return the lock under which it is sent everything: the thread of its connection."""
        return self.io_thread()

    def notify_work(self) -> None:
        """Be told that there may be work (step 3)."""
        self.target.notify_work()
