"""The fingerprint of a queue, for searches of all behaviours.

Owns which parts of a state affect later behaviour. No step of an algorithm runs meanwhile, so cells
are read directly. A search does this hundreds of thousands of times, hence the plain loops.

Fingerprints leave out, safely:

* Dispensed entries without a parked pointer, the sweeps' counters and their high-water mark. They
  only decide when dead links are cut; `next` and the iterators return the same before and after
  (the entry list's invariant).
* The absolute numbers of entries: only their order is used.
* The count of state changes: it is compared only within one run of the runner, and none is active.
* The names of deliveries: new names do not matter, outstanding ones are known by their entries.

Pointers are named as they stand, not as the next search would leave them. The two should be
equivalent, but that is a claim of the algorithm, and it must not hide a fault in the search.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from brokerproof.reference.qpid.looks import pulls, subscriptions_of
from brokerproof.reference.qpid.pull.fingerprints import name_consumers
from brokerproof.reference.qpid.push.entries import (
    AVAILABLE,
    HELD,
    QueueEntry,
)
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.reference.qpid.push.subscription_list import SubscriptionNode
from brokerproof.reference.qpid.push.subscriptions import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from brokerproof.spec.messages import PropertyValue


def _first_live(node: SubscriptionNode) -> SubscriptionNode | None:
    following = node.next.value
    while following is not None and following.deleted.value:
        following = following.next.value
    return following


def fingerprint_queue(queue: Queue) -> Hashable:
    """Return a value that is equal for states of the queue that behave alike."""
    numbers: dict[QueueEntry, int] = {}
    live: list[Hashable] = []
    number = 0
    for one in queue.entries.sub_lists():
        # Heads and entries parked behind a live one have even numbers, live entries odd ones.
        numbers[one.head] = number
        entry = one.head.next.value
        while entry is not None:
            state = entry.state.value
            if not state.dispensed:
                numbers[entry] = number + 1
                number += 2
                assert entry.message is not None
                live.append(entry.message.id)
                live.append(entry.message.size)
                live.append(entry.redelivered)
                if entry.message.properties:
                    live.append((_name_values(entry.message.properties),))
                if entry.times is not None:
                    live.append(entry.times.left(queue.executor.clock.seconds))
                if state is HELD:
                    live.append("held")
                elif state is not AVAILABLE:
                    holder = state.holder
                    assert holder is not None, "the queue itself holds nothing between operations"
                    live.append((holder.channel, None if holder.is_closed() else holder.consumer))
                    if state.stealable:
                        live.append("stealable")
            entry = entry.next.value
        live.append(None)
        number += 2

    def position(entry: QueueEntry) -> int:
        known = numbers.get(entry)
        if known is None:
            known = numbers[entry.sub_list.head]
            other = entry.sub_list.head.next.value
            while other is not None and other.id < entry.id:
                if not other.state.value.dispensed:
                    known += 2
                other = other.next.value
        return known

    live += [_name_subscription(each, position) for each in subscriptions_of(queue)]
    if pulls(queue):
        named = name_consumers(queue.subscriptions)
        return queue.name, queue.order, tuple(live), named, queue.auto_delete
    turn = _first_live(queue.subscriptions.marker.value)
    return (
        queue.name,
        queue.order,
        tuple(live),
        # The next turn; None is "the next to come, or else the first", which differs from the
        # first.
        None if turn is None or turn.subscription is None else turn.subscription.consumer,
        queue.asynchronous_runner.value is None,
        queue.auto_delete,
    )


def _name_subscription(
    subscription: Subscription, position: Callable[[QueueEntry], int]
) -> Hashable:
    credit, awaited = subscription.credit, subscription.awaits.value
    return (
        subscription.consumer,
        subscription.channel,
        subscription.mode,
        subscription.auto_close,
        subscription.exclusive,
        credit.limit,
        credit.used,
        credit.byte_limit,
        credit.used_bytes,
        subscription.pointer.fingerprint(position),
        None if awaited is None else position(awaited),
        subscription.selector and _name_values(subscription.selector),
    )


def _name_values(values: Mapping[str, PropertyValue]) -> Hashable:
    """Return a name of properties or of a selector in which true, 1 and "1" differ."""
    return repr(sorted(values.items(), key=itemgetter(0)))
