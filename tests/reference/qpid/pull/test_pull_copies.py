"""Copies of a pull broker are independent, and equal fingerprints mean equal behaviour."""

from __future__ import annotations

import random

import pytest

from brokerproof.reference.qpid import fingerprints
from brokerproof.spec.messages import Fifo, Order, Priority
from tests.reference.front.test_copies import first_difference, operations, start

ADDRESSES = ["qpid-pull", "qpid-pull?runner=drain", "qpid-pull?runner=drain&connections=shared"]
ORDERS: list[Order] = [Fifo(), Priority(2)]


@pytest.mark.each_time(2)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_states_of_one_name_behave_alike(address: str, order: Order) -> None:
    assert first_difference(address, order) is None


def test_a_name_that_forgets_the_lists_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "name_consumers", lambda _: ())
    assert first_difference("qpid-pull?runner=drain", Fifo()) is not None


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_copy_and_its_original_go_separate_ways(address: str) -> None:
    choice = random.Random(5)  # noqa: S311 - a repeatable choice is wanted
    order = Fifo()
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
def test_a_copy_answers_as_its_original_would(address: str) -> None:
    choice = random.Random(6)  # noqa: S311 - a repeatable choice is wanted
    order = Fifo()
    for _ in range(20):
        never_copied, always_copied = start(address, order), start(address, order)
        for _ in range(15):
            operation = choice.choice(list(operations(never_copied, order).values()))
            always_copied = always_copied.fork()
            assert always_copied.handle(operation) == never_copied.handle(operation)
            assert always_copied.fingerprint() == never_copied.fingerprint()
