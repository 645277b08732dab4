"""Copies are independent, and states of one fingerprint behave alike.

The second is checked as a bisimulation: two states of one fingerprint, reached by different paths,
must answer every operation alike and go to states of one fingerprint again. A search of a small
scope compares the first state of each fingerprint with later ones.
"""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING, TypeAlias

import pytest

from brokerproof.reference import Broker, make
from brokerproof.reference.systems import SYSTEMS
from brokerproof.spec.messages import (
    Credit,
    Fifo,
    Message,
    Order,
    Priority,
    PropertyValue,
)
from brokerproof.spec.protocol.answers import Answer, Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Delete,
    Drain,
    Flush,
    Get,
    Operation,
    Publish,
    Purge,
    Reject,
    Release,
    Reset,
    SetCredit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.qpid.push.queue import Queue

MESSAGES = ("m0", "m1", "m2")
STATES_MAX = 250
COMPARISONS_MAX = 250


def plain_operations(order: Order) -> list[Operation]:
    """Return operations that name no delivery: consumers with windows of messages."""
    priorities = (0, 9) if isinstance(order, Priority) else (4,)
    return [
        *[
            Publish(queue="q", message=Message(id=message, priority=priority))
            for message in MESSAGES
            for priority in priorities
        ],
        Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(1)),
        Consume(channel="ch0", queue="q", consumer="c1", mode="automatic", credit=Credit(0)),
        Consume(channel="ch1", queue="q", consumer="b0", mode="browse"),
        SetCredit(consumer="c0", messages=0),
        SetCredit(consumer="c0", messages=2),
        SetCredit(consumer="c1", messages=1),
        Cancel(consumer="c0"),
        Cancel(consumer="b0"),
        Get(channel="ch1", queue="q"),
        CloseChannel(channel="ch0"),
        CloseChannel(channel="ch1"),
        Purge(queue="q"),
        Delete(queue="q"),
        Declare(queue="q", order=order),
        Drain(),
    ]


def special_operations(order: Order) -> list[Operation]:
    """Return operations that name no delivery: bytes, channels' windows, and ends by itself."""
    priorities = (0, 9) if isinstance(order, Priority) else (4,)
    return [
        *[
            Publish(queue="q", message=Message(id=message, priority=priority, size=size))
            for message in MESSAGES
            for priority, size in zip(priorities, (1, 3), strict=False)
        ],
        Publish(queue="q", message=Message(id="m0", size=3)),
        Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(None, 2)),
        Consume(channel="ch0", queue="q", consumer="c1"),
        Consume(channel="ch0", queue="q", consumer="a0", credit=Credit(1), auto_close=True),
        Consume(channel="ch1", queue="q", consumer="e0", exclusive=True),
        SetCredit(consumer="c0", bytes=3),
        SetCredit(channel="ch0", messages=1),
        SetCredit(channel="ch0", bytes=2),
        Flush(consumer="c0"),
        Cancel(consumer="c0"),
        Cancel(consumer="c1"),
        Get(channel="ch1", queue="q"),
        CloseChannel(channel="ch0"),
        Declare(queue="q", order=order, auto_delete=True),
        Drain(),
    ]


def selecting_operations(order: Order) -> list[Operation]:
    """Return operations that name no delivery: selectors, and messages that wait or expire."""
    priority = 9 if isinstance(order, Priority) else 4
    red: dict[str, PropertyValue] = {"n": 1}
    blue: dict[str, PropertyValue] = {"n": True}
    return [
        Publish(queue="q", message=Message(id="m0", properties=red)),
        Publish(queue="q", message=Message(id="m0", properties=blue)),
        Publish(queue="q", message=Message(id="m1", priority=priority), not_before_s=1),
        Publish(queue="q", message=Message(id="m1", properties=red), expires_s=1),
        Publish(queue="q", message=Message(id="m2"), not_before_s=1, expires_s=2),
        Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(1), selector=red),
        Consume(channel="ch0", queue="q", consumer="c0", credit=Credit(1), selector=blue),
        Consume(channel="ch1", queue="q", consumer="b0", mode="browse", selector=red),
        Consume(channel="ch1", queue="q", consumer="a0", auto_close=True, selector=red),
        Advance(seconds=1),
        Cancel(consumer="c0"),
        Get(channel="ch1", queue="q"),
        CloseChannel(channel="ch0"),
        Purge(queue="q"),
        Drain(),
    ]


Operations: TypeAlias = "Callable[[Order], list[Operation]]"


def settlements(message: str, delivery: str) -> dict[str, Operation]:
    return {
        f"acknowledge {message}": Acknowledge(delivery=delivery),
        f"release {message}": Release(delivery=delivery),
        f"reject {message}": Reject(delivery=delivery),
    }


def operations(
    broker: Broker, order: Order, fixed: Operations = plain_operations
) -> dict[str, Operation]:
    """Return the possible operations, by names that do not depend on those of deliveries.

    A message is published once on a path: a broker may rely on ids being unique.
    """
    named = {str(operation): operation for operation in fixed(order)}
    for delivery, entry in broker.outbox.unsettled.items():
        assert entry.message is not None
        named |= settlements(entry.message.id, delivery)
    return named


def without_names(answer: Answer) -> object:
    events = [
        (event.consumer, event.message, event.redelivered)
        if isinstance(event, Delivered)
        else event
        for event in answer.events
    ]
    return events, answer.error and answer.error.code


def start(address: str, order: Order, *, auto_delete: bool = False) -> Broker:
    broker = make(address)
    broker.handle(Reset())
    broker.handle(Declare(queue="q", order=order, auto_delete=auto_delete))
    return broker


def first_difference(
    address: str, order: Order, seed: int = 1, fixed: Operations = plain_operations
) -> str | None:
    """Return the different answers of two states of one fingerprint, or None."""
    choice = random.Random(seed)  # noqa: S311 - a repeatable choice is wanted
    root = start(address, order, auto_delete=fixed is special_operations)
    found: dict[Hashable, tuple[Broker, frozenset[str]]] = {root.fingerprint(): (root, frozenset())}
    frontier = [(root, frozenset[str]())]
    comparisons = 0
    while frontier and comparisons < COMPARISONS_MAX:
        # Mostly the newest, for depth; now and then any, for breadth.
        at = -1 if choice.random() < 0.5 else choice.randrange(len(frontier))
        broker, published = frontier.pop(at)
        for operation in operations(broker, order, fixed).values():
            now_published = published
            if isinstance(operation, Publish):
                if operation.message.id in published:
                    continue
                now_published = published | {operation.message.id}
            successor = broker.fork()
            successor.handle(operation)
            name = successor.fingerprint(), now_published
            if name not in found:
                if len(found) < STATES_MAX:
                    found[name] = successor, now_published
                    frontier.append((successor, now_published))
            elif choice.random() < 0.2:
                comparisons += 1
                difference = compare(found[name][0], successor, order, fixed)
                if difference is not None:
                    return difference
    return None


def compare(one: Broker, other: Broker, order: Order, fixed: Operations) -> str | None:
    ones, others = operations(one, order, fixed), operations(other, order, fixed)
    if ones.keys() != others.keys():
        return f"what can be done differs: {ones.keys() ^ others.keys()}"
    for name in ones:
        one_copy, other_copy = one.fork(), other.fork()
        answers = one_copy.handle(ones[name]), other_copy.handle(others[name])
        if without_names(answers[0]) != without_names(answers[1]):
            return f"{name}: {answers[0]} and {answers[1]}"
        if one_copy.fingerprint() != other_copy.fingerprint():
            return f"{name} leads to {one_copy.fingerprint()} and {other_copy.fingerprint()}"
    return None


ADDRESSES = [
    f"qpid-push?pointer={pointer}&runner={runner}"
    for pointer in ("released", "inclusive")
    for runner in ("eager", "drain")
]


@pytest.mark.each_time(4)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", [Fifo(), Priority(2)], ids=str)
@pytest.mark.parametrize("fixed", [plain_operations, special_operations, selecting_operations])
def test_states_of_one_name_behave_alike(address: str, order: Order, fixed: Operations) -> None:
    assert first_difference(address, order, fixed=fixed) is None


@pytest.mark.parametrize("part", [2, 3], ids=["entries", "turn"])
def test_a_fingerprint_without_a_part_is_found_out(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = SYSTEMS["qpid-push"]

    def careless(queue: Queue) -> Hashable:
        whole = system.fingerprint(queue)
        assert isinstance(whole, tuple)
        return whole[:part] + whole[part + 1 :]

    monkeypatch.setitem(SYSTEMS, "qpid-push", dataclasses.replace(system, fingerprint=careless))
    assert any(first_difference("qpid-push", Fifo(), seed) for seed in range(5))


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", [Fifo(), Priority(3)], ids=str)
@pytest.mark.parametrize("fixed", [plain_operations, special_operations, selecting_operations])
def test_a_copy_and_its_original_go_separate_ways(
    address: str, order: Order, fixed: Operations
) -> None:
    choice = random.Random(2)  # noqa: S311 - a repeatable choice is wanted
    for _ in range(20):
        original, twin = start(address, order), start(address, order)
        for _ in range(12):
            name = choice.choice(list(operations(original, order, fixed)))
            copy = original.fork()
            assert copy.fingerprint() == original.fingerprint()
            for _ in range(4):
                copy.handle(choice.choice(list(operations(copy, order, fixed).values())))
            assert original.handle(operations(original, order, fixed)[name]) == twin.handle(
                operations(twin, order, fixed)[name]
            )
            assert original.fingerprint() == twin.fingerprint()


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", [Fifo(), Priority(3)], ids=str)
@pytest.mark.parametrize("fixed", [plain_operations, special_operations, selecting_operations])
def test_a_copy_answers_as_its_original_would(
    address: str, order: Order, fixed: Operations
) -> None:
    choice = random.Random(3)  # noqa: S311 - a repeatable choice is wanted
    for _ in range(30):
        never_copied = start(address, order)
        always_copied = start(address, order)
        for _ in range(15):
            operation = choice.choice(list(operations(never_copied, order, fixed).values()))
            always_copied = always_copied.fork()
            assert always_copied.handle(operation) == never_copied.handle(operation)
            assert always_copied.fingerprint() == never_copied.fingerprint()
