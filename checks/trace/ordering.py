"""The order of two messages in a queue, and which message replaces another.

The file owns the reading of the orders of driver protocol 1. The contract takes these relations as
given: a queue's order is the documents' own, built on these rigid facts.
"""

from __future__ import annotations

from brokerproof.spec.messages import (
    LastValue,
    Message,
    Order,
    PropertyValue,
    Sorted,
    is_equal,
    level_of,
)
from brokerproof.spec.protocol.capabilities import Capabilities


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
