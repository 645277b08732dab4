"""Selectors: whether a message has all the properties that a subscription asks for.

Owns when two values are equal. Refuses to know subscriptions and entries, and what becomes of a
message that nobody wants.

Source: Qpid, Message Delivery, `hasInterest`; driver protocol 1, rule 23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerproof.spec.protocol.messages import Message, PropertyValue
    from brokerproof.spec.protocol.operations import Selector


def meets(message: Message, selector: Selector) -> bool:
    """Whether every property of a selector is there and equal; nothing meets it half."""
    properties = message.properties
    return all(
        name in properties and is_equal(properties[name], value) for name, value in selector.items()
    )


def is_equal(one: PropertyValue, other: PropertyValue) -> bool:
    """Whether two values are equal as JSON has it: numbers by value, and true is no number."""
    return isinstance(one, bool) is isinstance(other, bool) and one == other
