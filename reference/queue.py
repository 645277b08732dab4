"""A queue of the system `qpid-push`: its entries, its subscriptions, and what starts a delivery.

Owns the life of an entry from enqueueing to deletion, and registering and removing subscriptions in
the documented order. Refuses to know how a walk over subscriptions goes (`delivery`), how an order
is kept (`entry_list`), and anything about clients (the broker).

Source: Qpid, Message Delivery; for the check on arrival Qpid, Priority Queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.atomics import AtomicInteger, AtomicReference
from brokerproof.reference.credit import MessageCredit
from brokerproof.reference.delivery import (
    MAX_ASYNC_DELIVERIES,
    FlushRunner,
    Runner,
    deliver_straight_through,
    flush_subscription,
)
from brokerproof.reference.entries import ACQUIRED_BY_QUEUE, EntryState, QueueEntry
from brokerproof.reference.entry_list import QueueEntryList, StandardEntryList
from brokerproof.reference.priority_list import PriorityEntryList
from brokerproof.reference.subscription_list import SubscriptionList
from brokerproof.reference.subscriptions import Mode, Subscription
from brokerproof.spec.messages import Message, Order, Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from brokerproof.reference.outbox import Executor, Outbox
    from brokerproof.reference.pointers import Pointer


class Queue:
    """One queue; every method is what one client operation or one job does to it."""

    __slots__ = (
        "asynchronous_runner",
        "entries",
        "executor",
        "make_pointer",
        "name",
        "order",
        "outbox",
        "state_change_count",
        "subscriptions",
    )

    def __init__(
        self,
        name: str,
        order: Order,
        make_pointer: Callable[[QueueEntry], Pointer],
        outbox: Outbox,
        executor: Executor,
    ) -> None:
        self.name = name
        self.order = order
        self.make_pointer = make_pointer
        self.outbox = outbox
        self.executor = executor
        self.entries: QueueEntryList = (
            PriorityEntryList(order) if isinstance(order, Priority) else StandardEntryList()
        )
        self.subscriptions = SubscriptionList()
        self.state_change_count = AtomicInteger()
        self.asynchronous_runner: AtomicReference[Runner | None] = AtomicReference(None)

    def enqueue(self, message: Message) -> None:
        """Take a message in, and straight out to a subscription that is ready, or by the runner."""
        entry = self.entries.add(message)
        deliver_straight_through(self, entry)
        if entry.is_available():
            self._check_subscriptions_not_ahead_of_delivery(entry)
            self.deliver_async()

    def deliver_async(self) -> None:
        """Note that something has changed; schedule the runner unless one is scheduled or runs."""
        self.state_change_count.increment_and_get()
        runner = Runner(self)
        if self.asynchronous_runner.compare_and_set(None, runner):
            self.executor.execute(runner)

    def subscribe(
        self, *, consumer: str, channel: str, mode: Mode, credit: MessageCredit
    ) -> Subscription:
        """Register a consumer, its pointer at the head, and kick off delivery of what is there."""
        subscription = self._new_subscription(consumer, channel, mode, credit)
        self.subscriptions.add(subscription)
        self.executor.execute(FlushRunner(self, subscription))
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription, in an order that lets nobody deliver to it afterwards.

        Out of the list first, so that no walk that starts now meets it; then closed under its lock,
        so that no walk that has met it goes on with it; then its pointer lets go of the queue. What
        it holds stays acquired.
        """
        removed = self.subscriptions.remove(subscription)
        assert removed, "a subscription leaves its queue once"
        subscription.close()
        subscription.pointer.clear()
        self.executor.withdraw(subscription)

    def get(self, channel: str, mode: Mode) -> None:
        """Deliver at most one message to a subscription that exists for this only."""
        subscription = self._new_subscription(None, channel, mode, MessageCredit(1))
        self.subscriptions.add(subscription)
        flush_subscription(self, subscription, MAX_ASYNC_DELIVERIES)
        self.unsubscribe(subscription)

    def set_limit(self, subscription: Subscription, limit: int | None) -> None:
        """Replace a subscription's window of messages."""
        if subscription.set_limit(limit):
            self.deliver_async()

    def remove(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Settle a delivery whose message is done with: acknowledged, or rejected."""
        deleted = entry.delete(subscription.owning_state)
        assert deleted, "an unsettled delivery's entry is with its subscription"
        if subscription.restore_credit():
            self.deliver_async()

    def release(self, deliveries: Iterable[tuple[QueueEntry, Subscription]]) -> None:
        """Return messages to the queue, each to its place; each will be seen again.

        The redelivered flag is set here and not by the change of state: it says that an earlier
        delivery had acquired the message, which a purge, for one, does not.
        """
        for entry, subscription in deliveries:
            entry.redelivered = True
            released = entry.release(subscription.owning_state)
            assert released, "an unsettled delivery's entry is with its subscription"
            # Room last: with it, and a pointer that has not come back yet, a subscription would be
            # given what lies behind the message that it has just returned.
            self._requeue(entry)
            if subscription.restore_credit():
                self.deliver_async()

    def purge(self) -> None:
        """Drop what is available; what somebody has acquired in the meantime is left to them."""
        for entry in self.entries.iterator():
            if entry.acquire(ACQUIRED_BY_QUEUE):
                entry.delete(ACQUIRED_BY_QUEUE)

    def delete(self) -> list[Subscription]:
        """Drop everything, acquired entries too, and return the subscriptions that went with it."""
        leaving = list(self.subscriptions.iterator())
        for subscription in leaving:
            self.unsubscribe(subscription)
        for entry in self.entries.iterator():
            entry.acquire(ACQUIRED_BY_QUEUE)
            holding: EntryState = entry.state.get()
            entry.delete(holding)
        self.executor.withdraw(self)
        return leaving

    def _requeue(self, entry: QueueEntry) -> None:
        """Move every pointer back that is beyond a released entry, but no browser's.

        A browser that was moved back would be shown again all that it has seen behind the entry.
        """
        for subscription in self.subscriptions.iterator():
            if subscription.mode.acquires:
                subscription.pointer.rewind(entry, subscription)
        self.deliver_async()

    def _check_subscriptions_not_ahead_of_delivery(self, entry: QueueEntry) -> None:
        """Move every pointer back that is beyond an arrival, browsers' too.

        It ends as soon as somebody has acquired the arrival. In arrival order nothing can be beyond
        an arrival, so only an order by priority does this.
        """
        if isinstance(self.order, Priority):
            for subscription in self.subscriptions.iterator():
                if entry.is_acquired():
                    break
                subscription.pointer.not_ahead_of(entry)

    def _new_subscription(
        self, consumer: str | None, channel: str, mode: Mode, credit: MessageCredit
    ) -> Subscription:
        return Subscription(
            consumer=consumer,
            channel=channel,
            queue=self.name,
            mode=mode,
            credit=credit,
            pointer=self.make_pointer(self.entries.get_head()),
        )
