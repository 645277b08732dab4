"""The grey-box view of a queue: its list and its pointers.

Owns the reading of the documents' structures as the view that `spec` describes. It judges nothing.
Like `fingerprints` it runs between operations only, so cells are read directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from brokerproof.reference.qpid.counters import counters_of
from brokerproof.reference.qpid.looks import placed, pulls, subscriptions_of
from brokerproof.reference.qpid.pull.consumer_lists import (
    INTERESTED,
    NON_ACQUIRING,
    NOT_INTERESTED,
    NOTIFIED,
    NodeState,
)
from brokerproof.reference.qpid.push.entries import AVAILABLE, HELD
from brokerproof.reference.qpid.push.pointers import ReleasedPointer
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.spec.qpid.view import (
    ConsumerListsView,
    EntryView,
    PointerQueueView,
    SubscriptionView,
)

if TYPE_CHECKING:
    from brokerproof.reference.qpid.push.entries import QueueEntry
    from brokerproof.reference.qpid.push.subscriptions import Subscription


def view_of(queue: Queue) -> PointerQueueView:
    """Return the view of a queue whose pointers are of the released form."""
    subscriptions = subscriptions_of(queue)
    # A walk by the broker's own algorithm; its result is shown.
    entries = list(queue.entries.iterator())
    for entry in entries:
        holder = entry.state.value.holder
        if holder is not None and holder not in subscriptions:
            subscriptions.append(holder)
    places = [_places(each) for each in subscriptions]
    gone = [at for both in places for at in both if at is not None and _is_no_more(at)]
    if gone:
        entries = sorted({*entries, *gone}, key=lambda e: (-e.sub_list.level, e.id))
    number = {entry: at for at, entry in enumerate(entries, start=1)}
    return PointerQueueView(
        order=queue.order,
        entries=tuple([_entry_view(entry, subscriptions) for entry in entries]),
        subscriptions=tuple(
            [
                _subscription_view(each, number, *both)
                for each, both in zip(subscriptions, places, strict=True)
            ]
        ),
        lists=_lists_view(queue, subscriptions),
        counters=counters_of(queue, subscriptions),
    )


def _lists_view(queue: Queue, subscriptions: list[Subscription]) -> ConsumerListsView | None:
    if not pulls(queue):
        return None
    numbers = {each: number for number, each in enumerate(subscriptions)}
    listed: dict[NodeState, list[int]] = {}
    for state, _, consumer in placed(queue.subscriptions):
        listed.setdefault(state, []).append(numbers[consumer])

    def shown(state: NodeState) -> tuple[int, ...]:
        return tuple(listed.get(state, ()))

    return ConsumerListsView(
        interested=shown(INTERESTED),
        notified=shown(NOTIFIED),
        not_interested=shown(NOT_INTERESTED),
        non_acquiring=shown(NON_ACQUIRING),
    )


def _places(subscription: Subscription) -> tuple[QueueEntry | None, QueueEntry | None]:
    pointer = subscription.pointer
    assert isinstance(pointer, ReleasedPointer), "only this form is claimed to be shown"
    return pointer.place.value or (None, None)


def _is_no_more(entry: QueueEntry) -> bool:
    """Return whether an entry is shown only for a pointer parked on it; a head never is."""
    return entry.message is not None and entry.state.value.dispensed


def _entry_view(entry: QueueEntry, subscriptions: list[Subscription]) -> EntryView:
    assert entry.message is not None, "a dummy head is no entry of the view"
    level, state = entry.sub_list.level, entry.state.value
    expires = entry.times is not None and entry.times.over is not None
    if state is AVAILABLE or state is HELD:
        where: Literal["available", "held"] = "held" if state is HELD else "available"
        return EntryView(entry.message.id, level, where, expires=expires)
    if state.dispensed:
        return EntryView(entry.message.id, level, "dequeued")
    assert state.holder is not None, "the queue itself holds nothing between operations"
    holder = subscriptions.index(state.holder)
    return EntryView(entry.message.id, level, "acquired", holder, expires)


def _subscription_view(
    subscription: Subscription,
    number: dict[QueueEntry, int],
    last_seen: QueueEntry | None,
    released: QueueEntry | None,
) -> SubscriptionView:
    return SubscriptionView(
        consumer=subscription.consumer,
        channel=subscription.channel,
        browses=not subscription.mode.acquires,
        settles_when_sent=subscription.mode.settled_when_sent,
        active=not subscription.is_closed(),
        # All dummy heads have the number 0: no entry is ever between them.
        last_seen=0 if last_seen is None else number.get(last_seen, 0),
        released=None if released is None else number[released],
        unwanted=()
        if subscription.selector is None
        else tuple([at for each, at in number.items() if not subscription.has_interest(each)]),
    )
