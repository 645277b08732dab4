"""How messages reach subscriptions: at once when they arrive, or by the one asynchronous runner.

Owns the three walks over subscriptions (straight through, the runner's, the flush of one) and the
step that all share. Refuses to know why a walk is started. What the walks keep: a subscription is
given an entry only if it is the first available one that it wants, so nothing is overtaken; a
subscription's place is moved before anything is sent to it.

Source: Qpid, Message Delivery, section Asynchronous Delivery (`deliverAsync`, `processQueue`), the
section before it on delivering to a subscription, and Subscriptions (`flushSubscription`). The
document wishes for the common part of the last two to be factored out; `attempt_delivery` is that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from brokerproof.reference.front.consumers import Consumer
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.queue import Queue
    from brokerproof.reference.qpid.push.snapshots import Copies
    from brokerproof.reference.qpid.push.subscriptions import Subscription

MAX_ASYNC_DELIVERIES = 10
"""How many messages one run delivers before other queues have their turn (the document's slice)."""

STRAIGHT_THROUGH_LAPS = 2
"""From the marker to the end, then once round: the extra lap catches what was just missed."""


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
        """Whether `leaving` is its queue."""
        return leaving is self.queue

    def name(self) -> Hashable:
        """Return its queue's name."""
        return self.queue.name

    def fork(self, copies: Copies) -> Runner:
        """Return the runner of the queue's copy: the one in its slot, if it is this one's."""
        queue = copies.queue_of_pointers(self.queue.name)
        if self.queue.asynchronous_runner.value is not self:
            return Runner(queue)
        assert queue.asynchronous_runner.value is not None, "a queue is copied with its slot"
        return queue.asynchronous_runner.value


class FlushRunner:
    """The job that a new subscription starts with: whatever is there already goes to it."""

    __slots__ = ("queue", "subscription")

    def __init__(self, queue: Queue, subscription: Subscription) -> None:
        self.queue = queue
        self.subscription = subscription

    def __repr__(self) -> str:
        return f"the flush of {self.subscription.consumer}"

    def run(self) -> None:
        """Flush one slice; schedules itself again while there is more and room for it."""
        complete = flush_subscription(self.queue, self.subscription, MAX_ASYNC_DELIVERIES)
        if not complete and not self.subscription.is_suspended():
            self.queue.executor.execute(self)

    def serves(self, leaving: AnyQueue | Consumer) -> bool:
        """Whether `leaving` is its queue or its subscription."""
        return leaving is self.queue or leaving is self.subscription

    def name(self) -> Hashable:
        """Return the names of its queue and its consumer."""
        return self.queue.name, self.subscription.consumer

    def fork(self, copies: Copies) -> FlushRunner:
        """Return the job that flushes the subscription's copy."""
        queue = copies.queue_of_pointers(self.queue.name)
        return FlushRunner(queue, copies.subscriptions[self.subscription])


def deliver_straight_through(queue: Queue, entry: QueueEntry) -> None:
    """Offer an arrival round, starting behind the subscription that was offered the one before."""
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
    """Give `entry` to one subscription if it is the very next one for it, and there is room.

    A subscription with older work undone refuses: this test is what keeps the order.
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
    """Whether an entry is still the first one for a subscription, now that it has taken room.

    As printed nobody looks again. But the room may have come back with a message that the
    subscription has released since it was looked for: that one comes first.
    """
    if not subscription.mode.uses_credit:
        return True
    return subscription.pointer.next_available(queue.entries, subscription) is entry


def deliver_message(queue: Queue, subscription: Subscription, entry: QueueEntry) -> None:
    """Send an entry that has been acquired, or is browsed."""
    # The place first: a release that follows the sending must find a pointer that it can move back.
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

    QPID-1187: it has room in general, so nothing else would keep it from being tried for ever. Room
    that comes back is a change of state in any case.
    """
    before = subscription.awaits.get_and_set(entry)
    if before is None:
        queue.waiting.increment_and_get()
    if before is not entry and not entry.is_available():
        # Whoever took it may not have seen that somebody waits.
        queue.deliver_async()


def entry_taken(queue: Queue, entry: QueueEntry, by: Subscription | None = None) -> None:
    """Let those go on who wait at an entry that has been acquired, besides the one it went to."""
    if queue.waiting.get() == 0:
        return
    for subscription in queue.subscriptions.iterator():
        if subscription.awaits.compare_and_set(entry, None):
            queue.waiting.decrement_and_get()
            if subscription is not by:
                queue.may_go_on(subscription)


def close_or_wait(queue: Queue, subscription: Subscription) -> None:
    """Close a subscription that closes itself if nothing is left for it; else it waits for that.

    What is left is something that it has no room for. In the document a subscription at the tail
    is closed as the walk leaves it; in later releases only if nothing is available to it
    (QPID-6393), which is what clients are promised.
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
    """Return what a subscription can be given next; what has expired is taken off on the way.

    Who only asks whether an arrival is next need not: what stands before it is the runner's.
    """
    while True:
        entry = subscription.pointer.next_available(queue.entries, subscription)
        if entry is None or not queue.has_expired(entry):
            return entry
        queue.take_off(entry)


def attempt_delivery(queue: Queue, subscription: Subscription) -> tuple[bool, bool]:
    """Try to give one subscription its next entry; return whether it was, and whether it is *done*.

    Done is a subscription that stands at the tail of the queue or can be given nothing for now.
    """
    with subscription.send_lock:
        # Also when it is suspended: a pointer that stays behind keeps all that went by from being
        # collected.
        entry = next_for(queue, subscription)
        if entry is None or subscription.is_suspended():
            return False, True
        if not subscription.allocate_credit(entry):
            # Room in general, and none for this message: only bytes are like that.
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

    The runner gives its slot back and takes it again before each loop, so that whoever finds the
    slot free may start another; there is never more than one that runs. A change of state that is
    counted while a loop runs makes another loop necessary, which is why nobody has to wait for a
    run to end in order to start the next.
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
        # One loop more after all are done: the last step of one may have let another move.
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
                    # As printed the count is looked at between loops only: with several
                    # subscriptions it passes 0 there and never stops the run. Later releases look
                    # here.
                    break
        if not done:
            extra_loops = 1
        elif extra_loops == 0:
            delivery_incomplete = False
        else:
            extra_loops -= 1
        slot.set(None)

    # What stopped the run was its slice, not a lack of messages or credit; somebody may have been
    # faster.
    if deliveries == 0 and slot.compare_and_set(None, runner):
        queue.executor.execute(runner)


def flush_subscription(queue: Queue, subscription: Subscription, deliveries_max: int) -> bool:
    """Give one subscription all that it can be given, up to a slice; say whether it is done."""
    done = False
    deliveries = deliveries_max
    while not subscription.is_suspended() and not done and deliveries != 0:
        delivered, done = attempt_delivery(queue, subscription)
        if delivered:
            deliveries -= 1
    if subscription.auto_close and (done or subscription.is_suspended()):
        close_or_wait(queue, subscription)
    # The others may not have been moved over what has just gone; parked they would keep it from
    # collection.
    for other in queue.subscriptions.iterator():
        if other.mode.acquires:
            other.pointer.next_available(queue.entries, other)
    return done
