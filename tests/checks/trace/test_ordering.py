"""Delivery order, selectors, and equality of values: tables and twins."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from brokerproof.checks.trace.ordering import is_after, replaces
from brokerproof.spec.messages import (
    Fifo,
    LastValue,
    Message,
    Order,
    Priority,
    PropertyValue,
    Sorted,
    is_equal,
    selects,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Publish, Selector
from examples.whole_broker_queue import entry_for, equal, matches

CLAIMS = Capabilities(get=True)
VALUES: tuple[PropertyValue, ...] = (0, 1, 1.0, 1.5, True, False, "", "1", "true", "a", "b", -1)
"""Only the second and the third are equal, though Python takes true for 1 (rule 23)."""


def message(name: str, priority: int = 4, **properties: PropertyValue) -> Message:
    return Message(id=name, priority=priority, properties=properties)


# Equality (rule 23).


@pytest.mark.parametrize(("one", "other"), list(itertools.product(range(len(VALUES)), repeat=2)))
def test_values_are_equal_within_one_type_and_numbers_by_value(one: int, other: int) -> None:
    pair = VALUES[one], VALUES[other]
    expected = one == other or {one, other} == {1, 2}
    assert is_equal(*pair) == expected
    # The example broker was written from the protocol's text alone.
    assert equal(*pair) == expected


SELECTORS: list[tuple[Selector | None, dict[str, PropertyValue], bool]] = [
    (None, {}, True),
    ({}, {}, True),
    ({}, {"k": 1}, True),
    ({"k": 1}, {"k": 1}, True),
    ({"k": 1}, {"k": 1.0, "other": "x"}, True),
    ({"k": 1}, {}, False),
    ({"k": 1}, {"k": True}, False),
    ({"k": False}, {"k": 0}, False),
    ({"k": "1"}, {"k": 1}, False),
    ({"k": 1, "l": 2}, {"k": 1}, False),
    ({"k": 1, "l": 2}, {"k": 1, "l": 3}, False),
    ({"k": 1, "l": 2}, {"l": 2, "k": 1}, True),
]


@pytest.mark.parametrize(("selector", "properties", "met"), SELECTORS)
def test_a_message_meets_a_selector_if_it_has_all_of_it(
    selector: Selector | None, properties: dict[str, PropertyValue], met: bool
) -> None:
    asked = Message(id="m0", properties=properties)
    assert selects(selector, asked) == met
    assert matches(asked, selector) == met


# Delivery order.


AFTER: list[tuple[Order, Message, Message, bool]] = [
    (Fifo(), message("m0", 0), message("m1", 9), False),
    (LastValue("k"), message("m0", 0, k=1), message("m1", 9, k=1), False),
    (Priority(10), message("m0", 0), message("m1", 9), True),
    (Priority(10), message("m0", 9), message("m1", 0), False),
    (Priority(10), message("m0", 4), message("m1", 4), False),
    (Priority(2), message("m0", 0), message("m1", 4), False),
    (Priority(2), message("m0", 4), message("m1", 5), True),
    (Priority(1), message("m0", 0), message("m1", 9), False),
    (Sorted("k"), message("m0", k=2), message("m1", k=1), True),
    (Sorted("k"), message("m0", k=1), message("m1", k=2), False),
    (Sorted("k"), message("m0", k=1), message("m1", k=1.0), False),
    (Sorted("k"), message("m0", k=2), message("m1", k=1.5), True),
    (Sorted("k"), message("m0", k="b"), message("m1", k="a"), True),
    (Sorted("k"), message("m0", k="a"), message("m1", k="b"), False),
    (Sorted("k"), message("m0", k=9), message("m1", k=10), False),
    (Sorted("k"), message("m0", k="9"), message("m1", k="10"), True),
    (Sorted("k"), message("m0", 0, k=1), message("m1", 9, k=1), False),
]


@pytest.mark.parametrize(("order", "earlier", "arrival", "is_later"), AFTER)
def test_an_arrival_goes_ahead_of_what_its_order_sets_after_it(
    order: Order, earlier: Message, arrival: Message, is_later: bool
) -> None:
    assert is_after(earlier, arrival, order, CLAIMS) == is_later
    ranks = [_rank(each, order) for each in (earlier, arrival)]
    assert (ranks[1] < ranks[0]) == is_later


def _rank(of: Message, order: Order) -> tuple[float, str]:
    return entry_for(Publish(queue="q", message=of), order, "amqp").rank


def test_which_levels_there_are_is_claimed() -> None:
    earlier, arrival = message("m0", 2), message("m1", 5)
    assert is_after(earlier, arrival, Priority(3), CLAIMS)
    clamps = replace(CLAIMS, priority_mapping="clamp")
    assert not is_after(earlier, arrival, Priority(3), clamps)


# Last values.


REPLACES: list[tuple[Order, Message, Message, bool]] = [
    (LastValue("k"), message("m1", k=1), message("m0", k=1), True),
    (LastValue("k"), message("m1", k=1.0), message("m0", k=1), True),
    (LastValue("k"), message("m1", k=True), message("m0", k=1), False),
    (LastValue("k"), message("m1", k="1"), message("m0", k=1), False),
    (LastValue("k"), message("m1", k=2), message("m0", k=1), False),
    (LastValue("k"), message("m1"), message("m0", k=1), False),
    (LastValue("k"), message("m1", k=1), message("m0"), False),
    (LastValue("k"), message("m1"), message("m0"), False),
    (LastValue("k"), message("m1", k=1, l=2), message("m0", k=1, l=3), True),
    (Fifo(), message("m1", k=1), message("m0", k=1), False),
    (Sorted("k"), message("m1", k=1), message("m0", k=1), False),
]


@pytest.mark.parametrize(("order", "arrival", "earlier", "replaced"), REPLACES)
def test_an_arrival_replaces_what_has_its_value(
    order: Order, arrival: Message, earlier: Message, replaced: bool
) -> None:
    assert replaces(arrival, earlier, order) == replaced
