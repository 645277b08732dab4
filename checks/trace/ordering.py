"""Relations between messages: the order of two messages, and what a selector means.

The file owns the reading of driver protocol 1, rules 4 and 23, and of the orders. The contract
takes these relations as given: a queue's order is the documents' own, built on these rigid facts.
"""

from __future__ import annotations

from brokerproof.spec.messages import (
    LastValue,
    Message,
    Order,
    PropertyValue,
    Sorted,
    level_of,
)
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Selector


def is_after(earlier: Message, arrival: Message, order: Order, claims: Capabilities) -> bool:
    """Whether a message in the queue is delivered after a new arrival."""
    if isinstance(order, Sorted):
        mine, yours = arrival.properties.get(order.key), earlier.properties.get(order.key)
        return mine is not None and yours is not None and _sorts_before(mine, yours)
    mapping = claims.priority_mapping
    return level_of(earlier.priority, order, mapping) < level_of(arrival.priority, order, mapping)


def _sorts_before(one: PropertyValue, other: PropertyValue) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one < other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one < other
    return False


def replaces(arrival: Message, earlier: Message, order: Order) -> bool:
    """Whether an arrival replaces a message in a last-value queue."""
    if not isinstance(order, LastValue) or order.key not in arrival.properties:
        return False
    return order.key in earlier.properties and is_equal(
        arrival.properties[order.key], earlier.properties[order.key]
    )


def selects(selector: Selector | None, message: Message) -> bool:
    """Whether a message meets a selector: all of its properties present and equal (rule 23)."""
    return selector is None or all(
        name in message.properties and is_equal(message.properties[name], value)
        for name, value in selector.items()
    )


def is_equal(one: PropertyValue, other: PropertyValue) -> bool:
    """Whether two values are equal JSON values of one type: numbers by value, true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and isinstance(other, bool) and one == other
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    return one == other
