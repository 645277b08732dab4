"""The invariants of the pull model, in every state of a small search, and of broken copies.

The broker runs its jobs on drain alone, and one job at a time is an operation of the search too, so
that states between a notification and the taking are visited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, cast

import pytest

from brokerproof.reference import make
from brokerproof.reference.broker import Broker
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Purge,
    Release,
    Reset,
    SetCredit,
)
from tests.faults.overlay import Edit, plant
from tests.reference.front.reference_bench import queue_in
from tests.reference.qpid.pull.pull_invariants import broken, state_of

STATES_MAX = 700
DRAINED = "qpid-pull?runner=drain"
ORDERS = [Fifo(), Priority(2)]


def began(broker: Broker, order: Order) -> Broker:
    broker.handle(Reset())
    broker.handle(Declare(queue="q", order=order))
    return broker


def operations(broker: Broker, order: Order, published: int) -> Iterator[Operation]:
    """Yield the clients' operations: two consumers of two priorities, a browser, and a get."""
    if published < 2:
        priorities = (0, 9) if isinstance(order, Priority) else (4,)
        for priority in priorities:
            yield Publish(queue="q", message=Message(id=f"m{published}", priority=priority))
    for name, priority in (("c0", 0), ("c1", 0), ("h", 1)):
        channel = "ch0" if name == "c0" else "ch1"
        if name in broker.consumers:
            yield Cancel(consumer=name)
            yield SetCredit(consumer=name, messages=0)
            yield SetCredit(consumer=name, messages=2)
        else:
            yield Consume(
                channel=channel, queue="q", consumer=name, credit=Credit(1), priority=priority
            )
    if "b" not in broker.consumers:
        yield Consume(channel="ch0", queue="q", consumer="b", mode="browse")
    for delivery in broker.outbox.unsettled:
        yield Acknowledge(delivery=delivery)
        yield Release(delivery=delivery)
    yield Get(channel="ch2", queue="q")
    yield CloseChannel(channel="ch1")
    yield Purge(queue="q")
    yield Drain()


def one_job(broker: Broker) -> None:
    if broker.executor.jobs:
        broker.executor.run_next()


Look = Callable[[Broker, Broker, Operation | None], list[str]]
"""The failures of a step; the operation is None if a job has run."""


def first_broken(root: Broker, order: Order, look: Look) -> str | None:
    """Search breadth first; return the first failing step, with its failures."""
    known: set[Hashable] = {(root.fingerprint(), 0)}
    left = deque([(root, 0)])
    while left and len(known) < STATES_MAX:
        broker, published = left.popleft()
        for operation in (None, *operations(broker, order, published)):
            after = broker.fork()
            if operation is None:
                one_job(after)
            else:
                after.handle(operation)
            wrong = look(broker, after, operation)
            if wrong:
                return f"{operation}: {'; '.join(wrong)}"
            many = published + isinstance(operation, Publish)
            name = after.fingerprint(), many
            if name not in known:
                known.add(name)
                left.append((after, many))
    return None


def told(broker: Broker) -> int:
    consumers: Any = queue_in(broker).subscriptions.iterator()
    return sum(state_of(each) == "NOTIFIED" for each in consumers)


def looked(before: Broker, after: Broker, operation: Operation | None) -> list[str]:
    """Return the failures of a state, or of the notifications of an arrival."""
    wrong = broken(after)
    if isinstance(operation, Publish):
        if told(after) > told(before) + 1:
            wrong.append("PULL-4: an arrival has been told to several")
        browsers: Any = queue_in(after).subscriptions.iterator()
        wrong += [
            f"PULL-7: an arrival was not told to {each}"
            for each in browsers
            if state_of(each) == "NON_ACQUIRING" and not each.target.scheduled.value
        ]
    return wrong


@pytest.mark.parametrize("address", [DRAINED, f"{DRAINED}&connections=shared"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_every_state_keeps_the_invariants(address: str, order: Order) -> None:
    assert first_broken(began(make(address), order), order, looked) is None


FAULTS = {
    "QCM-1: moved without being taken out": [
        Edit(
            "qpid/pull/consumer_lists.py",
            "            if self.entry is not None:\n                self.entry.remove()\n",
            "",
        )
    ],
    "QCM-2: a browser is told like the others": [
        Edit(
            "qpid/pull/consumer_lists.py",
            "    False: {NOT_INTERESTED: NON_ACQUIRING},",
            "    False: {NOT_INTERESTED: INTERESTED},",
        )
    ],
    "QCM-3: the lowest priority first": [
        Edit("qpid/pull/consumer_lists.py", "key=lambda pair: -pair[0]", "key=lambda pair: pair[0]")
    ],
    "QCM-4: a consumer that leaves stays counted": [
        Edit("qpid/pull/consumer_lists.py", "            self.size.decrement_and_get()\n", "")
    ],
    "PULL-1: no consumer is told of what was returned": [
        Edit(
            "qpid/pull/queue.py",
            """
                consumer.pointer.rewind(entry, consumer)
                self._notify_consumer(consumer)
""",
            "                pass\n",
        )
    ],
    "PULL-1: closed before its queues are told (QPID-7971)": [
        Edit(
            "qpid/pull/targets.py",
            """
        self._set_notify_work_desired(False)
        for queue, consumer in self.pulls_from:
            queue.unregister(consumer)
        self.pulls_from = ()
""",
            """
        consumers, self.pulls_from = self.pulls_from, ()
        self._set_notify_work_desired(False)
        for queue, consumer in consumers:
            queue.unregister(consumer)
""",
        )
    ],
    "PULL-1: wanting less is told before it is noted (B-27)": [
        Edit(
            "qpid/pull/targets.py",
            """
        if self.desired.compare_and_set(not desired, desired):
            for queue, consumer in self.pulls_from:
                queue.set_notify_work_desired(consumer, desired)
""",
            """
        if self.desired.get() is not desired:
            for queue, consumer in self.pulls_from:
                queue.set_notify_work_desired(consumer, desired)
            self.desired.compare_and_set(not desired, desired)
""",
        )
    ],
    "PULL-1: a full consumer hands nothing over": [
        Edit(
            "qpid/pull/queue.py",
            "            if other.priority < highest or self._notify_consumer(other):\n",
            "            if other is not None:\n",
        )
    ],
    "PULL-2: notified on a consumer that looked in vain": [
        Edit(
            "qpid/pull/queue.py",
            "        self.subscriptions.set_notified(consumer, False)\n        if",
            "        if",
        )
    ],
    "PULL-4: an arrival is told to all consumers": [
        Edit(
            "qpid/pull/queue.py",
            """
                self._notify_consumer(consumer)
                or not self._no_higher_priority_with_credit(consumer, entry)
            ):
                break
""",
            """
                self._notify_consumer(consumer)
                and not self._no_higher_priority_with_credit(consumer, entry)
            ):
                break
""",
        )
    ],
    "PULL-7: only browsers without priority are told": [
        Edit(
            "qpid/pull/queue.py",
            "            if browser.has_interest(entry):\n",
            "            if browser.has_interest(entry) and entry.message.id == 'm0':\n",
        )
    ],
    "SCH-1: a mark is never taken off": [
        Edit(
            "qpid/pull/sessions.py",
            """
            item.scheduled.compare_and_set(True, False)
        return item
""",
            """
            pass
        return item
""",
        )
    ],
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_broken_copy_is_found_by_the_invariant_that_it_breaks(what: str) -> None:
    named = what.partition(":")[0]

    def only_named(before: Broker, after: Broker, operation: Operation | None) -> list[str]:
        return [each for each in looked(before, after, operation) if each.startswith(named)]

    broker = cast("Broker", plant(FAULTS[what], DRAINED)())
    assert first_broken(began(broker, Fifo()), Fifo(), only_named) is not None
