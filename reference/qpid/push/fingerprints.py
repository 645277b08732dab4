"""Copying a queue and naming its state, for searches of all behaviours.

Owns which parts of a state affect later behaviour. No step of an algorithm is here, and none runs
during a copy, so cells are read directly, and objects are filled without their constructors. A
search does both hundreds of thousands of times, hence the plain loops.

Copies and names leave out, safely:

* Dispensed entries without a parked pointer, the sweeps' counters and their high-water mark. They
  only decide when dead links are cut; `next` and the iterators return the same before and after
  (the entry list's invariant), so a copy is as if a sweep had just run. The last entry of a list is
  kept even if it is dispensed, because arrivals are linked to it.
* The absolute numbers of entries: only their order is used.
* The count of state changes: it is compared only within one run of the runner, and none is active.
* The names of deliveries: new names do not matter, outstanding ones are known by their entries.

Pointers are named as they stand, not as the next search would leave them. The two should be
equivalent, but that is a claim of the algorithm, and it must not hide a fault in the search.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from brokerproof.reference.activemq.cursors.references import Reference
from brokerproof.reference.activemq.fingerprints import (
    CursorCopies,
    fingerprint_cursor_queue,
    fork_cursor_queue,
)
from brokerproof.reference.activemq.queue import CursorQueue
from brokerproof.reference.front.consumers import RankedConsumer
from brokerproof.reference.front.credit import Window
from brokerproof.reference.qpid.pull.fingerprints import (
    ClientCopies,
    copy_consumers,
    name_consumers,
)
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.reference.qpid.push.delivery import Runner
from brokerproof.reference.qpid.push.entries import (
    AVAILABLE,
    HEAD_STATE,
    HELD,
    EntryState,
    Phase,
    QueueEntry,
)
from brokerproof.reference.qpid.push.entry_list import QueueEntryList, StandardEntryList
from brokerproof.reference.qpid.push.looks import subscriptions_of
from brokerproof.reference.qpid.push.priority_list import PriorityEntryList
from brokerproof.reference.qpid.push.queue import Queue
from brokerproof.reference.qpid.push.subscription_list import SubscriptionList, SubscriptionNode
from brokerproof.reference.qpid.push.subscriptions import Subscription
from brokerproof.reference.rabbitmq.process.copies import (
    ProcessCopies,
    fingerprint_queue_process,
    fork_queue_process,
)
from brokerproof.reference.rabbitmq.process.queue import HandedOut, QueueProcess
from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference, Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from brokerproof.reference.front.consumers import Consumer, Held
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.spec.protocol.messages import PropertyValue


_new = object.__new__


class Copies:
    """The copies made so far: each original has one copy."""

    __slots__ = (
        "clients",
        "cursors",
        "entries",
        "processes",
        "queues",
        "states",
        "subscriptions",
    )

    def __init__(self, executor: Executor) -> None:
        self.clients = ClientCopies(executor)
        self.processes = ProcessCopies()
        self.cursors = CursorCopies()
        self.queues: dict[str, AnyQueue] = {}
        self.entries: dict[QueueEntry, QueueEntry] = {}
        self.states: dict[EntryState, EntryState] = {}
        self.subscriptions: dict[Subscription, Subscription] = {}

    def consumer(self, consumer: Consumer) -> Consumer:
        """Return the copy of a registered consumer."""
        if isinstance(consumer, Subscription):
            return self.subscriptions[consumer]
        assert isinstance(consumer, RankedConsumer)
        known = self.processes.consumers.get(consumer)
        return self.cursors.consumers[consumer] if known is None else known

    def queue_of_pointers(self, name: str) -> Queue:
        """Return the copy of a queue that has pointers."""
        queue = self.queues[name]
        assert isinstance(queue, Queue)
        return queue

    def held(self, held: Held) -> Held:
        """Return the copy of a sent message."""
        if isinstance(held, QueueEntry):
            return self.entries[held]
        if isinstance(held, Reference):
            return self.cursors.references[held]
        assert isinstance(held, HandedOut)
        return self.processes.handed_out[held]

    def entry(self, entry: QueueEntry) -> QueueEntry:
        """Return the copy of an entry; a dispensed one has a copy only for a parked pointer."""
        copy = self.entries.get(entry)
        if copy is None:
            copy = self._parked(entry)
        return copy

    def _parked(self, entry: QueueEntry) -> QueueEntry:
        assert entry.state.value.dispensed, "only dispensed entries are left out of a copy"
        copy = self.entries[entry] = _copy_entry(
            entry,
            self.entries[entry.sub_list.head].sub_list,
            AtomicReference(entry.state.value),
        )
        following = entry.next.value
        while following is not None and following not in self.entries:
            following = following.next.value
        copy.next.value = following and self.entries[following]
        return copy


def fork_queue(queue: AnyQueue, outbox: Outbox, executor: Executor, copies: Copies) -> AnyQueue:
    """Return an independent copy of a queue; `copies` is shared by all queues of a broker."""
    if isinstance(queue, QueueProcess):
        return fork_queue_process(queue, outbox, executor, copies.processes)
    if isinstance(queue, CursorQueue):
        return fork_cursor_queue(queue, outbox, executor, copies.cursors)
    assert isinstance(queue, Queue)
    return _fork_queue_of_pointers(queue, outbox, executor, copies)


def _fork_queue_of_pointers(
    queue: Queue, outbox: Outbox, executor: Executor, copies: Copies
) -> Queue:
    copy = _new(type(queue))
    copy.name = queue.name
    copy.order = queue.order
    copy.make_pointer = queue.make_pointer
    copy.outbox = outbox
    copy.executor = executor
    copy.auto_delete = queue.auto_delete
    copy.durable = queue.durable
    copy.registrations = queue.registrations.fork()
    copy.waiting = AtomicInteger(queue.waiting.value)
    copy.state_change_count = AtomicInteger(queue.state_change_count.value)
    # Subscriptions before entries, whose states name them; entries before pointers, which refer to
    # them.
    if isinstance(queue, PullQueue):
        assert isinstance(copy, PullQueue)
        copy.active_count = AtomicInteger(queue.active_count.value)
        copy.subscriptions = copy_consumers(
            queue.subscriptions, lambda each: _copy_subscription(each, copies), copies.clients
        )
    else:
        copy.subscriptions = _copy_subscriptions(queue.subscriptions, copies)
    copy.entries = _copy_entries(queue.entries, copies)
    for original, subscription in copies.subscriptions.items():
        if original.queue == queue.name:
            subscription.pointer = original.pointer.fork(copies.entry)
            awaited = original.awaits.value
            if awaited is not None:
                subscription.awaits.value = copies.entry(awaited)
    runner = queue.asynchronous_runner.value
    copy.asynchronous_runner = AtomicReference(None if runner is None else Runner(copy))
    return copy


def _copy_entries(entries: QueueEntryList, copies: Copies) -> QueueEntryList:
    if isinstance(entries, PriorityEntryList):
        copy = _new(PriorityEntryList)
        copy.order = entries.order
        copy.best_first = [_copy_list(one, copies) for one in entries.best_first]
        return copy
    assert isinstance(entries, StandardEntryList)
    return _copy_list(entries, copies)


def _copy_list(one: StandardEntryList, copies: Copies) -> StandardEntryList:
    known, states = copies.entries, copies.states
    copy = _new(StandardEntryList)
    copy.level = one.level
    copy.scavenge_threshold = one.scavenge_threshold
    copy.scavenges = AtomicInteger()
    copy.unscavenged_high_water_mark = AtomicReference(None)
    original = one.head
    last = copy.head = known[original] = _copy_entry(original, copy, HEAD_STATE)
    following = original.next.value
    while following is not None:
        beyond = following.next.value
        state = following.state.value
        if beyond is None or not state.dispensed:
            state_copy: AtomicReference[EntryState] = _new(AtomicReference)
            state_copy.value = states.get(state, state) if state is not AVAILABLE else state
            linked = known[following] = _copy_entry(following, copy, state_copy)
            last.next.value = linked
            last = linked
        following = beyond
    # The tail is a hint: one outside the copy stood on an entry that arrivals would pass anyway.
    copy.tail = AtomicReference(known.get(one.tail.value, last))
    return copy


def _copy_entry(
    entry: QueueEntry, sub_list: StandardEntryList, state: AtomicReference[EntryState]
) -> QueueEntry:
    copy = _new(QueueEntry)
    copy.id = entry.id
    copy.sub_list = sub_list
    copy.message = entry.message
    copy.redelivered = entry.redelivered
    copy.times = entry.times
    copy.state = state
    following: AtomicReference[QueueEntry | None] = _new(AtomicReference)
    following.value = None
    copy.next = following
    return copy


def _copy_subscriptions(listed: SubscriptionList, copies: Copies) -> SubscriptionList:
    copy = _new(SubscriptionList)
    copy.size = AtomicInteger(listed.size.value)
    last = copy.head = marker = SubscriptionNode()
    # A marker on a removed node moves to the last one before it: the next turn is the same.
    marked = listed.marker.value
    turn = _first_live(marked)
    node = listed.head.next.value
    while node is not None:
        subscription = node.subscription
        if subscription is not None and not node.deleted.value:
            if node is turn:
                marker = last
            linked = _new(SubscriptionNode)
            linked.subscription = _copy_subscription(subscription, copies)
            linked.deleted = deleted = _new(AtomicFlag)
            deleted.value = False
            following: AtomicReference[SubscriptionNode | None] = _new(AtomicReference)
            following.value = None
            linked.next = following
            last.next.value = linked
            last = linked
        node = node.next.value
    if turn is None and marked is not listed.head:
        marker = last
    copy.tail = AtomicReference(last)
    copy.marker = AtomicReference(marker)
    return copy


def _first_live(node: SubscriptionNode) -> SubscriptionNode | None:
    following = node.next.value
    while following is not None and following.deleted.value:
        following = following.next.value
    return following


def _copy_subscription(subscription: Subscription, copies: Copies) -> Subscription:
    copy = _new(type(subscription))
    copy.consumer = subscription.consumer
    copy.channel = subscription.channel
    copy.queue = subscription.queue
    copy.mode = subscription.mode
    copy.auto_close = subscription.auto_close
    copy.exclusive = subscription.exclusive
    copy.selector = subscription.selector
    own = subscription.credit
    copy.credit = credit = _new(Window)
    credit.limit = own.limit
    credit.byte_limit = own.byte_limit
    credit.used = own.used
    credit.used_bytes = own.used_bytes
    # The broker copies channel windows; the awaited entry is copied later.
    copy.shared = shared = _new(AtomicReference)
    shared.value = None
    copy.awaits = awaits = _new(AtomicReference)
    awaits.value = None
    copy.state = state = _new(AtomicReference)
    state.value = subscription.state.value
    copy.send_lock = lock = _new(Lock)
    lock.held = False
    copy.owning_state = owning = _new(EntryState)
    owning.phase = subscription.owning_state.phase
    owning.dispensed = False
    owning.stealable = False
    owning.holder = copy
    copies.states[subscription.owning_state] = owning
    copy.stealable_state = None
    if subscription.stealable_state is not None:
        copy.stealable_state = EntryState(Phase.ACQUIRED, copy, stealable=True)
        copies.states[subscription.stealable_state] = copy.stealable_state
    copies.subscriptions[subscription] = copy
    return copy


def fingerprint_queue(queue: AnyQueue) -> Hashable:
    """Return a value that is equal for states of the queue that behave alike."""
    if isinstance(queue, QueueProcess):
        return fingerprint_queue_process(queue)
    if isinstance(queue, CursorQueue):
        return fingerprint_cursor_queue(queue)
    assert isinstance(queue, Queue)
    return _fingerprint_queue_of_pointers(queue)


def _fingerprint_queue_of_pointers(queue: Queue) -> Hashable:
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
    if isinstance(queue, PullQueue):
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
