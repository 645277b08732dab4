"""A queue of the system `qpid-push`: its entries, its subscriptions, and the start of deliveries.

Owns the life of an entry from enqueueing to deletion, and the registration and removal of
subscriptions in the documented order. `delivery` owns the walks over subscriptions, `entry_list`
the order, the broker the clients.

Source: Qpid, Message Delivery; for the check on arrival Qpid, Priority Queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from brokerproof.reference.front.consumers import Terms
from brokerproof.reference.front.credit import Window
from brokerproof.reference.front.queue import FrontQueue
from brokerproof.reference.qpid.push.delivery import (
    MAX_ASYNC_DELIVERIES,
    FlushRunner,
    Runner,
    deliver_straight_through,
    entry_taken,
    flush_subscription,
)
from brokerproof.reference.qpid.push.entries import (
    ACQUIRED_BY_QUEUE,
    IN_THE_QUEUE,
    EntryState,
    Phase,
    QueueEntry,
)
from brokerproof.reference.qpid.push.entry_list import QueueEntryList, StandardEntryList
from brokerproof.reference.qpid.push.priority_list import PriorityEntryList
from brokerproof.reference.qpid.push.subscription_list import SubscriptionList
from brokerproof.reference.qpid.push.subscriptions import Subscription
from brokerproof.reference.shared.atomics import AtomicInteger, AtomicReference
from brokerproof.spec.messages import Message, Order, Priority
from brokerproof.spec.protocol.answers import ConsumerClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from brokerproof.reference.front.consumers import Mode
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.qpid.push.pointers import Pointer
    from brokerproof.reference.shared.clock import Times


class Queue(FrontQueue[QueueEntry, Subscription]):
    """One queue; every method is the effect of one client operation or one job on it.

    `waiting` is the number of subscriptions that wait at an entry without room for it. A queue that
    `steals` may take back entries that it has sent.
    """

    steals: ClassVar[bool] = False

    __slots__ = (
        "asynchronous_runner",
        "entries",
        "make_pointer",
        "state_change_count",
        "subscriptions",
        "waiting",
    )

    def __init__(
        self,
        name: str,
        order: Order,
        make_pointer: Callable[[QueueEntry], Pointer],
        outbox: Outbox,
        executor: Executor,
    ) -> None:
        super().__init__(name, order, outbox, executor)
        self.make_pointer = make_pointer
        self.entries: QueueEntryList = (
            PriorityEntryList(order) if isinstance(order, Priority) else StandardEntryList()
        )
        self.subscriptions = SubscriptionList()
        self.waiting = AtomicInteger()
        self.state_change_count = AtomicInteger()
        self.asynchronous_runner: AtomicReference[Runner | None] = AtomicReference(None)

    def enqueue(self, message: Message, times: Times | None = None) -> None:
        """Add a message and offer it to a subscription at once; otherwise schedule the runner."""
        entry = self.entries.add(message, times)
        if times is not None:
            # Housekeeping may have run since the times were computed.
            self.check_status(entry)
        deliver_straight_through(self, entry)
        if entry.is_available():
            self._check_subscriptions_not_ahead_of_delivery(entry)
            self.deliver_async()

    def housekeep(self) -> None:
        """Check each entry once after time has passed; an arrival meanwhile checks itself."""
        for entry in self.entries.iterator():
            self.check_status(entry)

    def has_expired(self, entry: QueueEntry) -> bool:
        """Return whether an entry has expired."""
        times = entry.times
        return (
            times is not None and times.over is not None and self.executor.clock.now() >= times.over
        )

    def check_status(self, entry: QueueEntry) -> None:
        """Remove an expired entry; make a held one available if its time has come.

        The second is followed by the same steps as a release.
        """
        times = entry.times
        if self.has_expired(entry):
            self.take_off(entry)
        elif (
            times is not None
            and times.due is not None
            and self.executor.clock.now() >= times.due
            and entry.let_go()
        ):
            self._requeue(entry)

    def take_off(self, entry: QueueEntry) -> None:
        """Remove an entry that no subscription holds, and resume subscriptions waiting at it."""
        if entry.acquire(ACQUIRED_BY_QUEUE) or entry.acquire_held(ACQUIRED_BY_QUEUE):
            entry.delete(ACQUIRED_BY_QUEUE)
            entry_taken(self, entry)

    def deliver_async(self) -> None:
        """Count a change of state; schedule the runner unless one is scheduled or runs."""
        self.state_change_count.increment_and_get()
        runner = Runner(self)
        if self.asynchronous_runner.compare_and_set(None, runner):
            self.executor.execute(runner)

    def credit_restored(self) -> None:
        """Note that a consumer may have room again."""
        self.deliver_async()

    def may_go_on(self, subscription: Subscription) -> None:  # noqa: ARG002 - all are looked at
        """Note that the entry at which a subscription waits has gone."""
        self.deliver_async()

    def new_subscription(self, terms: Terms) -> Subscription:
        """Return a subscription with its pointer at the head; `subscribe` registers it."""
        assert terms.priority == 0, "here all consumers are offered messages in turn"
        pointer = self.make_pointer(self.entries.get_head())
        return Subscription(self.name, terms, pointer, stealable=self.steals)

    def subscribe(self, subscription: Subscription, others: Sequence[Queue] = ()) -> bool:
        """Register a consumer and start the delivery to it; return whether it was accepted.

        `others` are further queues that it subscribes to, if the system supports that.
        """
        assert not others, "here a subscription is of one queue"
        if not self.registrations.enter(subscription.exclusive):
            return False
        self.subscriptions.add(subscription)
        if self.goes():
            # A deletion may have looked for subscriptions before this one was there.
            self.unsubscribe(subscription)
            return False
        # Open it only now: no thread gives it an entry that a deletion would not see.
        subscription.open()
        self.executor.execute(FlushRunner(self, subscription))
        return True

    def unsubscribe(self, subscription: Subscription) -> bool:
        """Remove a subscription so that no delivery to it follows; return whether this call did it.

        It leaves the list first, so that no new walk meets it. Then it is closed under its lock, so
        that no walk that has met it goes on with it. Then its pointer releases the queue. It keeps
        the entries that it holds. Of several callers exactly one gets True; for all of them no
        delivery follows.
        """
        if not self.subscriptions.remove(subscription):
            subscription.close()
            return False
        subscription.close()
        if subscription.awaits.get_and_set(None) is not None:
            self.waiting.decrement_and_get()
        if subscription.consumer is not None:
            self.registrations.leave()
            subscription.leave_channel()
        subscription.pointer.clear()
        self.executor.withdraw(subscription)
        return True

    def close_by_itself(self, subscription: Subscription) -> None:
        """Remove an auto-close consumer, and tell its client."""
        if self.unsubscribe(subscription):
            assert subscription.consumer is not None, "a get does not close itself"
            # If its client has just ended it, the client gets that answer and no event.
            if self.outbox.gone(subscription):
                self.outbox.tell(ConsumerClosed(consumer=subscription.consumer))
            self.delete_if_unused()

    def get(self, channel: str, mode: Mode) -> bool:
        """Deliver at most one message to a temporary subscription; return whether there was one."""
        subscription = self.new_subscription(Terms(channel, mode, Window(1)))
        subscription.open()
        self.subscriptions.add(subscription)
        flush_subscription(self, subscription, MAX_ASYNC_DELIVERIES)
        self.unsubscribe(subscription)
        messages, _ = subscription.credit.usage()
        return messages > 0

    def flush(self, subscription: Subscription) -> None:
        """Give one subscription all that it can be given, before anything else happens."""
        while not flush_subscription(self, subscription, MAX_ASYNC_DELIVERIES):
            if subscription.is_suspended():
                break

    def set_limits(
        self, subscription: Subscription, limit: int | None, byte_limit: int | None
    ) -> None:
        """Replace a subscription's window."""
        if subscription.set_limits(limit, byte_limit):
            self.deliver_async()

    def sent(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Do nothing: a subscription keeps a sent entry until it is settled."""

    def remove(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Settle a delivery whose message was acknowledged or rejected."""
        deleted = entry.delete(subscription.owning_state)
        # It was not deleted if the queue itself is being deleted now.
        if deleted and subscription.restore_credit(entry):
            self.deliver_async()

    def release(self, deliveries: Iterable[tuple[QueueEntry, Subscription]]) -> None:
        """Return messages to the queue, each to its place, where subscriptions find them again.

        The redelivered flag is set here and not by the change of state: it says that an earlier
        delivery had acquired the message, which a purge, for one, does not.
        """
        for entry, subscription in deliveries:
            entry.redelivered = True
            if not entry.release(subscription.owning_state):
                continue
            # Room last: with room and a pointer not yet moved back, a subscription would be given
            # entries behind the one that it has just returned.
            self._requeue(entry)
            if subscription.restore_credit(entry):
                self.deliver_async()

    def purge(self) -> None:
        """Drop the available entries; entries acquired meanwhile stay with their holders."""
        for entry in self.entries.iterator():
            if entry.acquire(ACQUIRED_BY_QUEUE):
                entry.delete(ACQUIRED_BY_QUEUE)
                entry_taken(self, entry)

    def drop_everything(self) -> list[Subscription]:
        """Drop all entries, acquired ones too, and return the subscriptions that had to leave."""
        leaving = [each for each in self.subscriptions.iterator() if self.unsubscribe(each)]
        for entry in self.entries.iterator():
            self._drop(entry)
        self.outbox.forget_what_has_gone()
        self.executor.withdraw(self)
        return leaving

    def _drop(self, entry: QueueEntry) -> None:
        """Drop an entry of a queue that is being deleted, whatever its holder.

        It retries while the entry is in the queue: the holder may be settling it, and then it is
        gone, or is available again. An entry that is being sent is delivered first.
        """
        holding: EntryState = entry.state.get()
        while holding.phase in IN_THE_QUEUE:
            holder = holding.holder
            if holding.phase is not Phase.ACQUIRED:
                self.take_off(entry)
            elif holder is None:
                return  # the purge that acquired it takes it off
            elif holder.is_closed():
                entry.delete(holding)
            else:
                with holder.sending():
                    entry.delete(holding)
            holding = entry.state.get()

    def _requeue(self, entry: QueueEntry) -> None:
        """Move back every pointer beyond a released entry, except browsers'.

        A browser would be shown again all that it has seen behind the entry.
        """
        for subscription in self.subscriptions.iterator():
            if subscription.mode.acquires:
                subscription.pointer.rewind(entry, subscription)
        self.deliver_async()

    def _check_subscriptions_not_ahead_of_delivery(self, entry: QueueEntry) -> None:
        """Move back every pointer beyond an arrival, browsers' too.

        It ends as soon as the arrival is acquired. In arrival order no pointer can be beyond an
        arrival, so only a priority queue does this.
        """
        if isinstance(self.order, Priority):
            for subscription in self.subscriptions.iterator():
                if entry.is_acquired():
                    break
                subscription.pointer.not_ahead_of(entry)
