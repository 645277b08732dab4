"""How messages reach subscriptions: on arrival, or by the one asynchronous runner.

Owns the three walks over subscriptions (on arrival, the runner's, the flush of one) and their
common step. The queue decides when a walk starts. Invariants: a subscription is given an entry only
if it is the first available one that it wants, so it overtakes nothing; a subscription's pointer
moves before anything is sent to it.

Source: Qpid, Message Delivery, section Asynchronous Delivery (`deliverAsync`, `processQueue`), the
section before it on delivering to a subscription, and Subscriptions (`flushSubscription`). The
document wishes for the common part of the last two to be factored out: `attempt_delivery`.
Models: `models/qpid/pointer_queue.py` for a delivery, `threads/queue_runner.py` for the runner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.front.consumers import Consumer
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.queue import Queue
    from brokerproof.reference.qpid.push.subscriptions import Subscription

MAX_ASYNC_DELIVERIES = 10
"""The number of messages that one run delivers before other queues run (the document's slice)."""

STRAIGHT_THROUGH_LAPS = 2
"""From the marker to the end, then once round: the extra lap finds subscriptions just missed."""


class Runner:
    """One scheduled run of a queue's asynchronous delivery."""

    __slots__ = ("queue",)

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def __repr__(self) -> str:
        return f"the runner of {self.queue.name}"

    def run(self) -> None:
        """Deliver one slice; schedules itself again when the slice was used up."""
        process_queue(self.queue, self)

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Return whether `leaving` is its queue."""
        return leaving is self.queue

    def name(self) -> Hashable:
        """Return its queue's name."""
        return self.queue.name


class FlushRunner:
    """The first job of a new subscription: it delivers the messages already present."""

    __slots__ = ("queue", "subscription")

    def __init__(self, queue: Queue, subscription: Subscription) -> None:
        self.queue = queue
        self.subscription = subscription

    def __repr__(self) -> str:
        return f"the flush of {self.subscription.consumer}"

    def run(self) -> None:
        """Flush one slice; schedules itself again while there are more messages and room."""
        complete = flush_subscription(self.queue, self.subscription, MAX_ASYNC_DELIVERIES)
        if not complete and not self.subscription.is_suspended():
            self.queue.executor.execute(self)

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Return whether `leaving` is its queue or its subscription."""
        return leaving is self.queue or leaving is self.subscription

    def name(self) -> Hashable:
        """Return the names of its queue and its consumer."""
        return self.queue.name, self.subscription.consumer


def deliver_straight_through(queue: Queue, entry: QueueEntry) -> None:
    """Offer an arrival to all subscriptions in turn, starting behind the one last tried."""
    node = queue.subscriptions.advance_marker()
    laps = STRAIGHT_THROUGH_LAPS
    while entry.is_available() and laps != 0:
        if node is None:
            laps -= 1
            node = queue.subscriptions.head
        elif node.subscription is not None:
            deliver_to_subscription(queue, node.subscription, entry)
        node = node.find_next()


def deliver_to_subscription(queue: Queue, subscription: Subscription, entry: QueueEntry) -> None:
    """Give `entry` to a subscription if it is the very next one for it, and there is room.

    A subscription with older entries to process refuses. This test keeps the order.
    """
    with subscription.send_lock:
        if (
            subscription.pointer.next_available(queue.entries, subscription) is entry
            and not subscription.is_suspended()
            and subscription.allocate_credit(entry)
        ):
            if _is_still_next(queue, subscription, entry) and (
                not subscription.mode.acquires or entry.acquire(subscription.owning_state)
            ):
                deliver_message(queue, subscription, entry)
            else:
                subscription.restore_credit(entry)


def _is_still_next(queue: Queue, subscription: Subscription, entry: QueueEntry) -> bool:
    """Return whether an entry is still the first one for a subscription that has taken room.

    The printed algorithm does not check again. But the room may come from a message that the
    subscription has released since the search, and that message comes first.
    """
    if not subscription.mode.uses_credit:
        return True
    return subscription.pointer.next_available(queue.entries, subscription) is entry


def deliver_message(queue: Queue, subscription: Subscription, entry: QueueEntry) -> None:
    """Send an entry that has been acquired, or is browsed."""
    # The pointer first: a release after the sending must find a pointer that it can move back.
    subscription.pointer.given(queue.entries, entry)
    if subscription.mode.settled_when_sent:
        deleted = entry.delete(subscription.owning_state)
        assert deleted, "an entry was taken from the one that had just acquired it"
    queue.outbox.send(subscription, entry)
    if subscription.mode.acquires:
        queue.sent(entry, subscription)
        entry_taken(queue, entry, subscription)


def await_entry(queue: Queue, subscription: Subscription, entry: QueueEntry) -> None:
    """Treat a subscription as suspended until an entry has gone that it has no room for.

    QPID-1187: it has room in general, so without this the runner would try it for ever. Returned
    room changes the state in any case.
    """
    before = subscription.awaits.get_and_set(entry)
    if before is None:
        queue.waiting.increment_and_get()
    if before is not entry and not entry.is_available():
        # The thread that took it may not have seen that a subscription waits.
        queue.deliver_async()


def entry_taken(queue: Queue, entry: QueueEntry, by: Subscription | None = None) -> None:
    """Resume the subscriptions that wait at an acquired entry, except the one that got it."""
    if queue.waiting.get() == 0:
        return
    for subscription in queue.subscriptions.iterator():
        if subscription.awaits.compare_and_set(entry, None):
            queue.waiting.decrement_and_get()
            if subscription is not by:
                queue.may_go_on(subscription)


def close_or_wait(queue: Queue, subscription: Subscription) -> None:
    """Close an auto-close subscription if no entry is left for it; otherwise it waits at that.

    Such an entry is one that it has no room for. In the document a subscription at the tail is
    closed as the walk leaves it; in later releases only if nothing is available to it (QPID-6393),
    as clients are promised.
    """
    with subscription.send_lock:
        if not subscription.is_open():
            return
        entry = next_for(queue, subscription)
        if entry is not None:
            await_entry(queue, subscription, entry)
            return
    queue.close_by_itself(subscription)


def next_for(queue: Queue, subscription: Subscription) -> QueueEntry | None:
    """Return the next entry for a subscription, and remove expired entries before it.

    An arrival's check does not use it: expired entries before the arrival are the runner's.
    """
    while True:
        entry = subscription.pointer.next_available(queue.entries, subscription)
        if entry is None or not queue.has_expired(entry):
            return entry
        queue.take_off(entry)


def attempt_delivery(queue: Queue, subscription: Subscription) -> tuple[bool, bool]:
    """Give one subscription its next entry; return whether it was given, and whether it is *done*.

    A subscription is done at the tail of the queue, or when it can be given nothing now.
    """
    with subscription.send_lock:
        # Also for a suspended one: a pointer that stays behind keeps passed entries from
        # collection.
        entry = next_for(queue, subscription)
        if entry is None or subscription.is_suspended():
            return False, True
        if not subscription.allocate_credit(entry):
            # It has room in general but not for this message, which happens with bytes only.
            await_entry(queue, subscription, entry)
            return False, True
        if not _is_still_next(queue, subscription, entry):
            subscription.restore_credit(entry)
            return False, False
        delivered = not subscription.mode.acquires or entry.acquire(subscription.owning_state)
        if delivered:
            deliver_message(queue, subscription, entry)
            if not subscription.mode.acquires:
                subscription.pointer.browsed(queue.entries, entry)
        else:
            subscription.restore_credit(entry)
        return delivered, queue.entries.next(entry) is None


def process_queue(queue: Queue, runner: Runner) -> None:
    """Run the asynchronous delivery until nothing can be left to do, or the slice is used up.

    The runner frees its slot and takes it again before each loop. A thread that finds the slot free
    may start another runner, but only one runs at a time. A state change counted during a loop
    forces another loop, so no thread waits for a run to end in order to start the next. If the
    countdown of deliveries ends it, it is scheduled to run again.
    """
    slot = queue.asynchronous_runner
    previous_count = None
    delivery_incomplete = True
    extra_loops = 1
    deliveries = MAX_ASYNC_DELIVERIES

    slot.compare_and_set(runner, None)
    while deliveries != 0:
        count = queue.state_change_count.get()
        if count == previous_count and not delivery_incomplete:
            break
        if not slot.compare_and_set(None, runner):
            break
        # One more loop after all are done: the last step of one may have let another move.
        if count != previous_count:
            extra_loops = 1
        previous_count = count
        delivery_incomplete = queue.subscriptions.size.get() != 0
        done = True
        for subscription in queue.subscriptions.iterator():
            delivered, subscription_done = attempt_delivery(queue, subscription)
            done = done and subscription_done and not delivered
            if subscription.auto_close and subscription_done and not delivered:
                close_or_wait(queue, subscription)
            if delivered:
                deliveries -= 1
                if deliveries == 0:
                    # As printed, the count is checked between loops only: with several
                    # subscriptions it passes 0 there and never stops the run. Later releases check
                    # here.
                    break
        if not done:
            extra_loops = 1
        elif extra_loops == 0:
            delivery_incomplete = False
        else:
            extra_loops -= 1
        slot.set(None)

    # The slice stopped the run, not a lack of messages or credit; another thread may have been
    # faster.
    if deliveries == 0 and slot.compare_and_set(None, runner):
        queue.executor.execute(runner)


def flush_subscription(queue: Queue, subscription: Subscription, deliveries_max: int) -> bool:
    """Give one subscription all that it can be given, up to a slice; return whether it is done."""
    done = False
    deliveries = deliveries_max
    while not subscription.is_suspended() and not done and deliveries != 0:
        delivered, done = attempt_delivery(queue, subscription)
        if delivered:
            deliveries -= 1
    if subscription.auto_close and (done or subscription.is_suspended()):
        close_or_wait(queue, subscription)
    # Other pointers may still be parked on the delivered entries, which keeps these from
    # collection.
    for other in queue.subscriptions.iterator():
        if other.mode.acquires:
            other.pointer.next_available(queue.entries, other)
    return done
