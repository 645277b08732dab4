"""A consuming client on the broker's side: it is notified, gets turns, and pulls messages.

Owns whether the client wants messages, and the queue from which it takes the next. Does not know
which consumer a queue notifies, nor when turns come. Except for `desired`, it is accessed on the
connection's thread only.

Source: Qpid, pull consumers, sections High-level Overview and Simple Flow (steps 3 and 10 to 12).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.push.delivery import deliver_message
from brokerproof.reference.shared.atomics import AtomicFlag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from brokerproof.reference.qpid.pull.consumers import QueueConsumer
    from brokerproof.reference.qpid.pull.queue import PullQueue
    from brokerproof.reference.qpid.pull.sessions import Session
    from brokerproof.reference.qpid.push.entries import QueueEntry


class ConsumerTarget:
    """One client's consumer, with a consumer of each of its queues."""

    __slots__ = ("at", "desired", "is_open", "pulls_from", "scheduled", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.scheduled = AtomicFlag()
        self.desired = AtomicFlag()
        self.is_open = True
        self.pulls_from: tuple[tuple[PullQueue, QueueConsumer], ...] = ()
        self.at = 0
        """The index of the queue to try next, kept between turns."""

    def open(self, consumers: Sequence[tuple[PullQueue, QueueConsumer]]) -> None:
        """Pull from these queues from now on, and tell them whether there is room."""
        self.pulls_from = tuple(consumers)
        # No iterator yet: the first search begins at the first queue and goes round once.
        self.at = len(self.pulls_from)
        self.update_notify_work_desired()
        if consumers[0][1].auto_close:
            # If the queues are empty, no notification would ever come.
            self.notify_work()

    def credit_changed(self) -> None:
        """Update the client's interest; entries without room before may fit now."""
        self.update_notify_work_desired()
        for queue, consumer in self.pulls_from:
            queue.stop_waiting(consumer)
            queue.resume(consumer)
            if consumer.auto_close:
                # It may have to wait for another entry, or for the same one without wanting it.
                self.notify_work()

    def notify_work(self) -> None:
        """Ask for a turn."""
        self.session.notify_work(self)

    def update_notify_work_desired(self) -> None:
        """Tell the queues when the client begins or ceases to want messages."""
        consumers = self.pulls_from
        self._set_notify_work_desired(
            self.is_open and bool(consumers) and not consumers[0][1].is_suspended()
        )

    def _set_notify_work_desired(self, desired: bool) -> None:
        # Before the queues are told: they read it when they choose another consumer to notify, and
        # would otherwise count on the one that has just declined.
        if self.desired.compare_and_set(not desired, desired):
            for queue, consumer in self.pulls_from:
                queue.set_notify_work_desired(consumer, desired)

    def process_pending(self) -> bool:
        """Use a turn: send one message; return whether there was one."""
        if not self.is_open:
            return False
        for queue, consumer in self.pulls_from:
            queue.resume(consumer)
        at = self.at
        if self.send_next_message():
            return True
        # Without room it has not looked. With a window of one message, the turn after each delivery
        # would otherwise leave the search at the last queue, and the first queue would starve the
        # others.
        if not self.desired.get():
            self.at = at
        self._close_if_done()
        return False

    def send_next_message(self) -> bool:
        """Pull from one queue after the other until one gives a message; send it.

        The position is kept: the next search begins behind the queue that gave the last message. A
        search goes round at most once.
        """
        is_second_lap = False
        while True:
            if self.at >= len(self.pulls_from):
                if is_second_lap:
                    return False
                is_second_lap = True
                self.at = 0
            if not self.pulls_from:
                return False
            queue, consumer = self.pulls_from[self.at]
            self.at += 1
            entry = queue.deliver_single_message(consumer)
            if entry is not None:
                self._send(queue, consumer, entry)
                return True

    def _send(self, queue: PullQueue, consumer: QueueConsumer, entry: QueueEntry) -> None:
        """Send a message (step 12)."""
        deliver_message(queue, consumer, entry)
        if consumer.shared.get() is None:
            self.update_notify_work_desired()
        else:
            for target in self.session.all_targets:
                target.update_notify_work_desired()

    def _close_if_done(self) -> None:
        """Close an auto-close consumer if no queue has anything left for it.

        Otherwise wait until the remaining entries have gone, perhaps to other consumers.
        """
        if not self.pulls_from or not self.pulls_from[0][1].auto_close:
            return
        left = [
            (queue, consumer, entry)
            for queue, consumer in self.pulls_from
            if (entry := consumer.pointer.next_available(queue.entries, consumer)) is not None
        ]
        for queue, consumer, entry in left:
            queue.wait_at(consumer, entry)
        if not left:
            queue, consumer = self.pulls_from[0]
            queue.close_by_itself(consumer)

    def close(self) -> None:
        """Want nothing more and take no more turns; then the consumers leave their queues.

        The interest ends first: a queue that has notified one of them must learn that it will not
        come, while the consumers are still registered.
        """
        self.is_open = False
        self._set_notify_work_desired(False)
        for queue, consumer in self.pulls_from:
            queue.unregister(consumer)
        self.pulls_from = ()
        self.session.targets.remove(self)
