"""A queue of the system `qpid-pull`: it notifies consumers, and they take messages.

Owns the queue's side of a notification: the choice of the notified consumers after an arrival, a
return or a departure, and the taking of one message. `targets` and `sessions` own the way to the
wire. Invariant (PULL-1): while a message is available that an interested consumer could be given, a
consumer that could take one has been notified and has not looked since, or is about to look.

All operations on a consumer run on its connection's thread, one at a time. Publishers, purges and
notifications come from any thread.

Source: Qpid, pull consumers. Points that the page leaves open follow the releases
(`AbstractQueue`): `notifyConsumers`, `setNotifyWorkDesired`, `deliverSingleMessage`,
`attemptDelivery`, `requeue`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumers import Terms
from brokerproof.reference.front.credit import Window
from brokerproof.reference.qpid.pull.consumer_lists import ConsumerLists
from brokerproof.reference.qpid.pull.consumers import HIGHEST_PRIORITY, QueueConsumer
from brokerproof.reference.qpid.pull.targets import ConsumerTarget
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference
from brokerproof.spec.protocol.answers import ConsumerClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from brokerproof.reference.front.consumers import Mode
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.qpid.pull.sessions import Clients, Session
    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.pointers import Pointer
    from brokerproof.reference.qpid.push.subscriptions import Subscription
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.messages import Message, Order


class PullQueue(Queue):
    """One queue; its subscriptions are pull consumers, listed by their state."""

    __slots__ = ("active_count", "clients")

    subscriptions: ConsumerLists  # type: ignore[assignment]

    def __init__(
        self,
        name: str,
        order: Order,
        make_pointer: Callable[[QueueEntry], Pointer],
        outbox: Outbox,
        executor: Executor,
        clients: Clients,
    ) -> None:
        super().__init__(name, order, make_pointer, outbox, executor)
        self.subscriptions = ConsumerLists()
        self.clients = clients
        self.active_count = AtomicInteger()

    # What clients do.

    def enqueue(self, message: Message, times: Times | None = None) -> None:
        """Add a message and notify (steps 1 and 2)."""
        assert times is None, "here a clock is not claimed"
        entry = self.entries.add(message)
        if entry.is_available():
            self._check_subscriptions_not_ahead_of_delivery(entry)
            self._let_go_on_before(entry)
            self._notify_consumers(entry)

    def new_subscription(self, terms: Terms) -> QueueConsumer:
        """Return a consumer with its pointer at the head, and its target; both are inactive."""
        made = QueueConsumer(self.name, terms, self.make_pointer(self.entries.get_head()))
        made.declines = AtomicFlag()
        made.node = AtomicReference(None)
        made.priority = terms.priority
        made.target = ConsumerTarget(self.clients.session(terms.channel))
        made.all_queues = (self.name,)
        return made

    def subscribe(self, subscription: Subscription, others: Sequence[Queue] = ()) -> bool:
        """Register a consumer; its target then declares interest if it has room.

        The target has a consumer in each queue subscribed to; they share its window. Either all
        queues accept it, or none.
        """
        first = _puller(subscription)
        consumers = [(self, first), *[(each, each.beside(first)) for each in map(_pulled, others)]]
        with first.io_thread():
            entered: list[PullQueue] = []
            for queue, consumer in consumers:
                if not queue.registrations.enter(consumer.exclusive):
                    for each in entered:
                        each.registrations.leave()
                    self._forget_unused(first.target.session)
                    return False
                entered.append(queue)
            self._open(first.target, consumers)
            if any(queue.goes() for queue in entered):
                # A deletion may have looked for consumers before these were registered. Nothing was
                # sent to them yet, since sending runs on this thread.
                self._close(first.target)
                return False
            return True

    def beside(self, first: QueueConsumer) -> QueueConsumer:
        """Return a consumer of this queue for the target of a consumer of another queue."""
        made = self.new_subscription(
            Terms(
                first.channel,
                first.mode,
                first.credit,
                first.consumer,
                first.auto_close,
                first.exclusive,
                first.priority,
                first.selector,
            )
        )
        made.target = first.target
        made.shared = first.shared
        return made

    def unsubscribe(self, subscription: Subscription) -> bool:
        """Remove a consumer, which keeps its deliveries; return whether it was present."""
        consumer = _puller(subscription)
        with consumer.io_thread():
            return self._close(consumer.target)

    def get(self, channel: str, mode: Mode) -> bool:
        """Deliver at most one message to a temporary consumer; return whether there was one."""
        consumer = self.new_subscription(Terms(channel, mode, Window(1), priority=HIGHEST_PRIORITY))
        with consumer.io_thread():
            self._open(consumer.target, [(self, consumer)])
            was_sent = consumer.target.send_next_message()
            self._close(consumer.target)
            return was_sent

    def flush(self, subscription: Subscription) -> None:
        """Let one consumer take all that it can be given, before anything else happens."""
        consumer = _puller(subscription)
        with consumer.io_thread():
            while consumer.target.process_pending():
                pass

    def set_limits(
        self, subscription: Subscription, limit: int | None, byte_limit: int | None
    ) -> None:
        """Replace a consumer's window."""
        consumer = _puller(subscription)
        with consumer.io_thread():
            consumer.set_limits(limit, byte_limit)
            _credit_changed(consumer)

    def remove(self, entry: QueueEntry, subscription: Subscription) -> None:
        """Settle a delivery whose message was acknowledged or rejected."""
        consumer = _puller(subscription)
        with consumer.io_thread():
            super().remove(entry, subscription)
            _credit_changed(consumer)

    def release(self, deliveries: Iterable[tuple[QueueEntry, Subscription]]) -> None:
        """Return messages to the queue, each to its place, where consumers find them again."""
        for entry, subscription in deliveries:
            consumer = _puller(subscription)
            with consumer.io_thread():
                super().release(((entry, subscription),))
                _credit_changed(consumer)

    def deliver_async(self) -> None:
        """Do nothing: there is no runner; a change of credit notifies the target."""

    def credit_restored(self) -> None:
        """Do nothing: a changed channel window notifies its session."""

    def may_go_on(self, subscription: Subscription) -> None:
        """Give a consumer a turn: the entry that it waited at has gone."""
        _puller(subscription).notify_work()

    def close_by_itself(self, subscription: Subscription) -> None:
        """Remove an auto-close consumer, on its connection's thread, and tell its client."""
        target = _puller(subscription).target
        queues = [queue for queue, _ in target.pulls_from]
        if self._close(target):
            assert subscription.consumer is not None, "a get does not close itself"
            if self.outbox.gone(subscription):
                self.outbox.tell(ConsumerClosed(consumer=subscription.consumer))
            for queue in queues:
                queue.delete_if_unused()

    # What targets do.

    def set_notify_work_desired(self, consumer: QueueConsumer, desired: bool) -> None:
        """Record that a consumer wants messages, and notify it; or no more, and notify another.

        A consumer that wants no more may have been notified, and its message waits for the next
        one. Consumers with a priority below the notified ones are not tried: the notified ones will
        do the same. Browsers of a lower priority gave way to it, and look again; the releases
        forget them.
        """
        if not self.subscriptions.set_interest(consumer, desired):
            return
        if desired:
            self.active_count.increment_and_get()
            self._notify_consumer(consumer)
            return
        self.active_count.decrement_and_get()
        for browser in self.subscriptions.non_acquiring_iterator():
            if browser.priority < consumer.priority:
                self._notify_consumer(browser)
        highest = self.subscriptions.highest_notified_priority()
        for other in self.subscriptions.interested_iterator():
            if other.priority < highest or self._notify_consumer(other):
                break

    def deliver_single_message(self, consumer: QueueConsumer) -> QueueEntry | None:
        """Return the next message for a consumer, acquired for it, or None (step 11).

        The consumer is interested again before it looks: it is notified again of an arrival that it
        misses. If it finds a message it counts as notified, since it will come again. If it finds
        none, another consumer with work is notified.
        """
        self.subscriptions.set_notified(consumer, False)
        if consumer.is_suspended():
            # Only to advance the pointer, so that passed entries can be collected.
            consumer.pointer.next_available(self.entries, consumer)
            return None
        entry = self._attempt_delivery(consumer)
        if entry is not None:
            self.subscriptions.set_notified(consumer, True)
        elif consumer.mode.acquires:
            self._notify_others(consumer)
        return entry

    def unregister(self, consumer: QueueConsumer) -> None:
        """Remove a consumer whose target wants nothing more.

        It leaves the lists first, so that no notifier meets it. Then it is closed, and then its
        pointer releases the queue.
        """
        removed = self.subscriptions.remove(consumer)
        assert removed, "a consumer leaves its queue once"
        consumer.close()
        self.stop_waiting(consumer)
        consumer.pointer.clear()
        if consumer.consumer is not None:
            self.registrations.leave()
            consumer.leave_channel()

    def wait_at(self, consumer: QueueConsumer, entry: QueueEntry) -> None:
        """Give a consumer a turn when an entry is not its next one any more."""
        if consumer.awaits.get_and_set(entry) is None:
            self.waiting.increment_and_get()
        # A thread that has taken it, or put one before it, may not have seen this consumer wait.
        following = consumer.pointer.next_available(self.entries, consumer)
        if following is not entry and self.stop_waiting(consumer):
            consumer.notify_work()

    def stop_waiting(self, consumer: QueueConsumer) -> bool:
        """End a consumer's wait at an entry; return whether it waited."""
        waited = consumer.awaits.get_and_set(None) is not None
        if waited:
            self.waiting.decrement_and_get()
        return waited

    def resume(self, consumer: QueueConsumer) -> None:
        """Record that a consumer wants messages again, if the entry that it declined has gone."""
        if consumer.awaits.get() is None and consumer.declines.compare_and_set(True, False):
            self.set_notify_work_desired(consumer, consumer.target.desired.get())

    # What follows from these.

    def _open(
        self, target: ConsumerTarget, consumers: Sequence[tuple[PullQueue, QueueConsumer]]
    ) -> None:
        names = tuple([queue.name for queue, _ in consumers])
        for queue, consumer in consumers:
            consumer.all_queues = names
            consumer.open()
            queue.subscriptions.add(consumer)
        target.session.all_targets.append(target)
        target.open(consumers)

    def _close(self, target: ConsumerTarget) -> bool:
        if not target.is_open:
            return False
        target.close()
        session = target.session
        session.all_targets.remove(target)
        self._forget_unused(session)
        # The room of its unsettled deliveries now belongs to the channel's other consumers.
        session.credit_changed()
        return True

    def _forget_unused(self, session: Session) -> None:
        if not session.all_targets:
            self.clients.leave(session)

    def _attempt_delivery(self, consumer: QueueConsumer) -> QueueEntry | None:
        entry = consumer.pointer.next_available(self.entries, consumer)
        if entry is None or not self._no_higher_priority_with_credit(consumer, entry):
            return None
        if not consumer.allocate_credit(entry):
            self._decline(consumer, entry)
            return None
        if consumer.mode.acquires and not entry.acquire(consumer.owning_state):
            consumer.restore_credit(entry)
            return None
        return entry

    def _decline(self, consumer: QueueConsumer, entry: QueueEntry) -> None:
        """Make a consumer uninterested until an entry has gone that it has no room for.

        In the document's releases (seen in 9.2.1 and 10.1.0) it stays interested. Two such
        consumers then notify each other for ever of an entry that neither has room for: each that
        finds no work notifies another that has.
        """
        consumer.declines.compare_and_set(False, True)
        if consumer.awaits.get_and_set(entry) is None:
            self.waiting.increment_and_get()
        self.set_notify_work_desired(consumer, False)
        self.wait_at(consumer, entry)

    def _notify_consumers(self, entry: QueueEntry) -> None:
        """Notify every browser of an arrival, and one consumer that could take it."""
        for browser in self.subscriptions.non_acquiring_iterator():
            if browser.has_interest(entry):
                self._notify_consumer(browser)
        for consumer in self.subscriptions.interested_iterator():
            if not entry.is_available():
                break
            if consumer.has_interest(entry) and (
                self._notify_consumer(consumer)
                or not self._no_higher_priority_with_credit(consumer, entry)
            ):
                break

    def _notify_others(self, excluded: QueueConsumer) -> None:
        """Notify the first interested consumer that has work, except the excluded one."""
        for consumer in self.subscriptions.interested_iterator():
            if consumer is not excluded and self._notify_consumer(consumer):
                break

    def _notify_consumer(self, consumer: QueueConsumer) -> bool:
        """Notify a consumer if there is work for it; return whether it was notified."""
        if self._has_work(consumer) and self.subscriptions.set_notified(consumer, True):
            consumer.notify_work()
            return True
        return False

    def _has_work(self, consumer: QueueConsumer) -> bool:
        if not consumer.mode.acquires:
            return True
        entry = consumer.pointer.next_available(self.entries, consumer)
        return entry is not None and self._no_higher_priority_with_credit(consumer, entry)

    def _no_higher_priority_with_credit(self, consumer: QueueConsumer, entry: QueueEntry) -> bool:
        """Return whether no consumer of a higher priority wants `entry` and can take it."""
        for other in self.subscriptions.iterator():
            if other.priority <= consumer.priority:
                break
            if (
                other.is_notify_work_desired()
                and other.mode.acquires
                and other.has_interest(entry)
                and other.pointer.next_available(self.entries, other) is not None
            ):
                return False
        return True

    def _requeue(self, entry: QueueEntry) -> None:
        """Move back every pointer beyond a released entry, and notify each consumer.

        Browsers' pointers stay. Others may be back already, by an arrival without notification.
        """
        for consumer in self.subscriptions.iterator():
            if not entry.is_available():
                break
            if consumer.mode.acquires:
                consumer.pointer.rewind(entry, consumer)
                self._notify_consumer(consumer)
        self._let_go_on_before(entry)

    def _let_go_on_before(self, entry: QueueEntry) -> None:
        """Give a turn to the consumers that wait at an entry behind this one."""
        if self.waiting.get() == 0:
            return
        for consumer in self.subscriptions.iterator():
            awaited = consumer.awaits.get()
            if (
                awaited is not None
                and entry.compare_to(awaited) < 0
                and consumer.awaits.compare_and_set(awaited, None)
            ):
                self.waiting.decrement_and_get()
                consumer.notify_work()


def _credit_changed(consumer: QueueConsumer) -> None:
    if consumer.shared.get() is None:
        consumer.target.credit_changed()
    else:
        consumer.target.session.credit_changed()


def _pulled(queue: Queue) -> PullQueue:
    assert isinstance(queue, PullQueue), "a consumer that pulls does so from each of its queues"
    return queue


def _puller(subscription: Subscription) -> QueueConsumer:
    assert isinstance(subscription, QueueConsumer), "it has subscribed to a queue of another system"
    return subscription
