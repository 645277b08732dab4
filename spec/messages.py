"""Messages, queue orders and credit: the values that operations carry.

Owns how messages and queues are described on the wire, the level of a priority among *n* levels and
the meaning of a selector (driver protocol 1, rules 4 and 23). A broker's behaviour is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

PropertyValue: TypeAlias = str | int | float | bool

PRIORITIES = range(10)
"""The priorities a message may have (AMQP 0-9-1 and JMS: 0 to 9, higher is more urgent)."""

DEFAULT_PRIORITY = 4
"""The priority of a message whose publisher names none (JMS; Qpid, Priority Queues)."""

NUMBER_MAX = 2**31 - 1
"""The largest size in bytes and the largest credit window (driver protocol 1, rule 54)."""


class Fifo(msgspec.Struct, frozen=True, tag_field="kind", tag="fifo"):
    """First in, first out; a message's priority has no effect."""


class Priority(msgspec.Struct, frozen=True, tag_field="kind", tag="priority"):
    """Higher priority first, first in first out within each of `levels` levels."""

    levels: int


class Sorted(msgspec.Struct, frozen=True, tag_field="kind", tag="sorted"):
    """By the value of the property `key`, the smallest first; of equals, the first in first out.

    Values of a queue are all strings or all numbers; a message without the property is `refused`.
    """

    key: str


class LastValue(msgspec.Struct, frozen=True, tag_field="kind", tag="last_value"):
    """First in, first out, but of available messages with equal `key` only the last one stays.

    An arrival drops the available message with the same value of the property and goes to the tail.
    An acquired message stays; if it is released after a later one of its value has arrived, it is
    dropped. A message without the property replaces none and is replaced by none.
    """

    key: str


class Unordered(msgspec.Struct, frozen=True, tag_field="kind", tag="none"):
    """No order: any available message may be the next, and nothing is asked of browsers' order."""


Order: TypeAlias = Fifo | Priority | Sorted | LastValue | Unordered
PriorityMapping: TypeAlias = Literal["amqp", "clamp"]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as its publisher hands it over; `size` is the exact length of its body in bytes.

    While a consumer holds a message of a `group`, no other consumer is given one of that group.
    """

    id: str
    priority: int = DEFAULT_PRIORITY
    size: int = 1
    persistent: bool = False
    properties: dict[str, PropertyValue] = {}
    group: str | None = None


class Credit(msgspec.Struct, frozen=True):
    """A window of unsettled messages and bytes; None is unlimited, 0 is a pause."""

    messages: int | None = None
    bytes: int | None = None


def level_of(priority: int, order: Order, mapping: PriorityMapping = "amqp") -> int:
    """Return the level, 0 the lowest, that a message of `priority` has in a queue of `order`.

    ``amqp`` is the rule of the Priority Queues document, which takes it from AMQP 0-10: the levels
    are centred on the default priority, so that two levels divide 0-4 from 5-9. ``clamp`` is
    RabbitMQ's: a priority above the highest level counts as the highest level.

    >>> [level_of(p, Priority(3)) for p in PRIORITIES]
    [0, 0, 0, 0, 1, 2, 2, 2, 2, 2]
    """
    if not isinstance(order, Priority):
        return 0
    top = order.levels - 1
    if mapping == "clamp":
        return min(priority, top)
    lowest_class_ends_at = 5 - (order.levels + 1) // 2
    return max(0, min(priority - lowest_class_ends_at, top))


def selects(selector: Mapping[str, PropertyValue] | None, message: Message) -> bool:
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
