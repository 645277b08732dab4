"""Copies are independent, and what has the same name behaves alike.

The second is checked as a bisimulation: two states of one name, reached by different paths, must
answer every operation alike and go to states of one name again. A search of a small scope compares
the first state that it finds of each name with later ones.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from brokerproof.reference import Broker, make
from brokerproof.reference import snapshots as snapshots_module
from brokerproof.spec.answers import Answer, Delivered
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.operations import (
    Acknowledge,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    Delete,
    Drain,
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

MESSAGES = ("m0", "m1", "m2")
STATES_MAX = 250
COMPARISONS_MAX = 250


def fixed_operations(order: Order) -> list[Operation]:
    """Return the operations that name no delivery."""
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


def settlements(message: str, delivery: str) -> dict[str, Operation]:
    return {
        f"acknowledge {message}": Acknowledge(delivery=delivery),
        f"release {message}": Release(delivery=delivery),
        f"reject {message}": Reject(delivery=delivery),
    }


def operations(broker: Broker, order: Order) -> dict[str, Operation]:
    """Return what can be done, by names that do not hang on the names of deliveries.

    A message is published once on a path: a broker may rely on ids being unique.
    """
    named = {str(operation): operation for operation in fixed_operations(order)}
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


def start(address: str, order: Order) -> Broker:
    broker = make(address)
    broker.handle(Reset())
    broker.handle(Declare(queue="q", order=order))
    return broker


def first_difference(address: str, order: Order, seed: int = 1) -> str | None:
    """Return what two states of one name answered differently, or None if nothing was found."""
    choice = random.Random(seed)  # noqa: S311 - a repeatable choice is wanted
    root = start(address, order)
    found: dict[Hashable, tuple[Broker, frozenset[str]]] = {root.fingerprint(): (root, frozenset())}
    frontier = [(root, frozenset[str]())]
    comparisons = 0
    while frontier and comparisons < COMPARISONS_MAX:
        # Mostly the newest, for depth; now and then any, for breadth.
        at = -1 if choice.random() < 0.5 else choice.randrange(len(frontier))
        broker, published = frontier.pop(at)
        for operation in operations(broker, order).values():
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
                difference = compare(found[name][0], successor, order)
                if difference is not None:
                    return difference
    return None


def compare(one: Broker, other: Broker, order: Order) -> str | None:
    ones, others = operations(one, order), operations(other, order)
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


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", [Fifo(), Priority(2)], ids=str)
def test_states_of_one_name_behave_alike(address: str, order: Order) -> None:
    assert first_difference(address, order) is None


def leave_out(what: int) -> Callable[[object], Hashable]:
    """Return a fingerprint that forgets one of a queue's parts, as a careless one might."""
    honest = snapshots_module.fingerprint_queue

    def careless(queue: object) -> Hashable:
        whole = honest(queue)  # type: ignore[arg-type]
        assert isinstance(whole, tuple)
        return whole[:what] + whole[what + 1 :]

    return careless


def test_a_name_that_forgets_the_round_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brokerproof.reference.broker.fingerprint_queue", leave_out(3))
    assert any(first_difference("qpid-push", Fifo(), seed) for seed in range(5))


def test_a_name_that_forgets_what_is_in_the_queue_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("brokerproof.reference.broker.fingerprint_queue", leave_out(2))
    assert first_difference("qpid-push", Fifo()) is not None


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", [Fifo(), Priority(3)], ids=str)
def test_a_copy_and_its_original_go_separate_ways(address: str, order: Order) -> None:
    choice = random.Random(2)  # noqa: S311 - a repeatable choice is wanted
    for _ in range(20):
        original, twin = start(address, order), start(address, order)
        for _ in range(12):
            name = choice.choice(list(operations(original, order)))
            copy = original.fork()
            assert copy.fingerprint() == original.fingerprint()
            for _ in range(4):
                copy.handle(choice.choice(list(operations(copy, order).values())))
            assert original.handle(operations(original, order)[name]) == twin.handle(
                operations(twin, order)[name]
            )
            assert original.fingerprint() == twin.fingerprint()


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", [Fifo(), Priority(3)], ids=str)
def test_a_copy_answers_as_its_original_would(address: str, order: Order) -> None:
    choice = random.Random(3)  # noqa: S311 - a repeatable choice is wanted
    for _ in range(30):
        never_copied = start(address, order)
        always_copied = start(address, order)
        for _ in range(15):
            operation = choice.choice(list(operations(never_copied, order).values()))
            always_copied = always_copied.fork()
            assert always_copied.handle(operation) == never_copied.handle(operation)
            assert always_copied.fingerprint() == never_copied.fingerprint()
