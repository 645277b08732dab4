"""The internal counters of a queue, as the view that `spec` describes.

Owns that reading, and judges nothing. Like `fingerprints` it runs between operations only, so cells
are read directly. It runs often, hence the plain loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.looks import placed, pulls, subscriptions_of
from brokerproof.reference.qpid.pull.consumer_lists import REMOVED
from brokerproof.reference.qpid.pull.consumers import QueueConsumer
from brokerproof.spec.qpid.counters import (
    Counters,
    ListCounters,
    Mark,
    PullCounters,
    SubscriptionCounters,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from brokerproof.reference.qpid.pull.queue import PullQueue
    from brokerproof.reference.qpid.pull.sessions import Connection, Session
    from brokerproof.reference.qpid.push.entry_list import StandardEntryList
    from brokerproof.reference.qpid.push.queue import Queue
    from brokerproof.reference.qpid.push.subscriptions import Subscription
    from brokerproof.reference.shared.atomics import AtomicFlag


def counters_of(queue: Queue, subscriptions: Sequence[Subscription]) -> Counters:
    """Return the internal counters of a queue whose view shows these subscriptions."""
    pull = None
    if pulls(queue):
        pull = _pull_counters(queue, subscriptions)
    return Counters(
        lists=tuple([_list_counters(each) for each in queue.entries.sub_lists()]),
        subscriptions=tuple([_subscription_counters(each) for each in subscriptions]),
        counted=queue.subscriptions.size.value,
        waiting=queue.waiting.value,
        pull=pull,
    )


def _list_counters(one: StandardEntryList) -> ListCounters:
    numbers: list[int] = []
    entry = one.head.next.value
    first = 0
    while entry is not None:
        if not entry.state.value.dispensed:
            first = first or entry.id
            numbers.append(entry.id - first)
        last = entry
        entry = entry.next.value
    tail = one.tail.value
    to_the_end = 0
    while tail.next.value is not None:
        tail = tail.next.value
        to_the_end += 1
    is_reached = one.head.next.value is None or tail is last
    return ListCounters(one.level, tuple(numbers), to_the_end if is_reached else None)


def _subscription_counters(subscription: Subscription) -> SubscriptionCounters:
    credit, state, priority = subscription.credit, "", 0
    if isinstance(subscription, QueueConsumer):
        node, priority = subscription.node.value, subscription.priority
        state = REMOVED.value if node is None else node.state.value
        if len(subscription.all_queues) > 1:
            return SubscriptionCounters(None, None, _waits(subscription), state, priority)
    return SubscriptionCounters(
        credit.used, credit.used_bytes, _waits(subscription), state, priority
    )


def _waits(subscription: Subscription) -> bool:
    return subscription.awaits.value is not None


def _pull_counters(queue: PullQueue, subscriptions: Sequence[Subscription]) -> PullCounters:
    lists = queue.subscriptions
    listed: dict[Subscription, list[tuple[str, int]]] = {each: [] for each in subscriptions}
    for state, priority, consumer in placed(lists):
        listed.setdefault(consumer, []).append((state.value, priority))
    parted = (lists.all, lists.interested, lists.notified)
    return PullCounters(
        wanting=queue.active_count.value,
        priorities=tuple([tuple([priority for priority, _ in each.value]) for each in parted]),
        listed=tuple([tuple(each) for each in listed.values()]),
        marks=tuple(
            _marks(each for each in subscriptions_of(queue) if isinstance(each, QueueConsumer))
        ),
    )


def _marks(consumers: Iterable[QueueConsumer]) -> Iterator[Mark]:
    """Yield the waiting targets, and the sessions and connections that they belong to."""
    sessions: dict[Session, None] = {}
    for each in consumers:
        target, session = each.target, each.target.session
        sessions[session] = None
        yield from _mark(str(each.consumer), target.scheduled, target in session.targets.line.items)
    connections: dict[Connection, None] = {}
    for session in sessions:
        connection = session.connection
        connections[connection] = None
        waits = session in connection.sessions.line.items
        yield from _mark(f"channel {session.channel}", session.scheduled, waits)
    for connection in connections:
        waits = any(job is connection for job in connection.executor.jobs)
        yield from _mark(f"connection of {connection.name_of_client}", connection.scheduled, waits)


def _mark(name: str, scheduled: AtomicFlag, waits: bool) -> Iterator[Mark]:
    if scheduled.value or waits:
        yield Mark(name, scheduled.value, waits)
