"""A consuming client on the broker's side: it is notified, has turns, and pulls when it has one.

Owns whether the client wants messages, and from which of its queues it takes the next. Refuses to
know which consumer a queue notifies, and when turns come.

All but `desired` is touched on the connection's thread alone.

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
        """Which of them the iterator that is kept between turns comes to next."""

    def open(self, consumers: Sequence[tuple[PullQueue, QueueConsumer]]) -> None:
        """Pull from these queues from now on, and say so to them if there is room."""
        self.pulls_from = tuple(consumers)
        # No iterator yet: the first search begins anew, and goes round once.
        self.at = len(self.pulls_from)
        self.update_notify_work_desired()
        if consumers[0][1].auto_close:
            # There may be nothing, and then nobody tells it so.
            self.notify_work()

    def credit_changed(self) -> None:
        """Say again what is wanted: room has come or gone, for what had none before too."""
        self.update_notify_work_desired()
        for queue, consumer in self.pulls_from:
            queue.stop_waiting(consumer)
            queue.resume(consumer)
            if consumer.auto_close:
                # It may have to wait for something else, or for the same without wanting it.
                self.notify_work()

    def notify_work(self) -> None:
        """Want a turn."""
        self.session.notify_work(self)

    def update_notify_work_desired(self) -> None:
        """Tell the queues when the client begins to want messages, or ends to; only then."""
        consumers = self.pulls_from
        self._set_notify_work_desired(
            self.is_open and bool(consumers) and not consumers[0][1].is_suspended()
        )

    def _set_notify_work_desired(self, desired: bool) -> None:
        # Before the queues are told: they look at it when they choose whom else to notify, and
        # would otherwise spare the work for the one who has just declined it.
        if self.desired.compare_and_set(not desired, desired):
            for queue, consumer in self.pulls_from:
                queue.set_notify_work_desired(consumer, desired)

    def process_pending(self) -> bool:
        """Use a turn: send one message, and say whether there was one."""
        if not self.is_open:
            return False
        for queue, consumer in self.pulls_from:
            queue.resume(consumer)
        at = self.at
        if self.send_next_message():
            return True
        # Who had no room has not looked: with a window of one message the turn that follows each
        # would otherwise end all searches at the last queue, and the first would starve the others.
        if not self.desired.get():
            self.at = at
        self._close_if_done()
        return False

    def send_next_message(self) -> bool:
        """Pull from one queue after the other until one gives a message; send that.

        The iterator over the queues is kept, so the next search begins behind the one that gave
        the last; at most once round.
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
        """Put a message on the wire (step 12)."""
        deliver_message(queue, consumer, entry)
        if consumer.shared.get() is None:
            self.update_notify_work_desired()
        else:
            for target in self.session.all_targets:
                target.update_notify_work_desired()

    def _close_if_done(self) -> None:
        """Close, if the client has asked for that, when no queue has anything left for it.

        Else wait for what is left to go, to somebody else perhaps.
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
        """Want nothing and have no turn any more; the consumers leave their queues then.

        In this order: a queue that has notified one of them must find out that it will not come,
        while the consumers are still known here.
        """
        self.is_open = False
        self._set_notify_work_desired(False)
        for queue, consumer in self.pulls_from:
            queue.unregister(consumer)
        self.pulls_from = ()
        self.session.targets.remove(self)
