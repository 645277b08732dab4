"""Selectors: whether a message has all the properties that a subscription asks for.

Owns the equality of two values. Does not know subscriptions and entries. The queue decides what
becomes of a message that matches no selector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerproof.spec.messages import Message, PropertyValue
    from brokerproof.spec.protocol.operations import Selector


def meets(message: Message, selector: Selector) -> bool:
    """Return whether the message has every property of the selector with an equal value."""
    properties = message.properties
    return all(
        name in properties and is_equal(properties[name], value) for name, value in selector.items()
    )


def is_equal(one: PropertyValue, other: PropertyValue) -> bool:
    """Return whether two values are equal as in JSON: numbers by value; a boolean is no number."""
    return isinstance(one, bool) is isinstance(other, bool) and one == other
