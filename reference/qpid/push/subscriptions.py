"""A subscription: a consumer of a queue with pointers.

Owns what it has beyond a `Consumer`: its pointer, the entry that it waits at, and its selector with
the equality of two values. The pointer owns the position. The queue offers the messages, and
decides what becomes of a message that matches no selector.

Source: Qpid, Message Delivery, section Subscriptions. Model: `models/qpid/pointer_queue.py`; the
channel of a subscription is in `pointer_queue_progress.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumers import Consumer
from brokerproof.reference.qpid.push.entries import EntryState, Phase, QueueEntry
from brokerproof.reference.shared.atomics import AtomicReference

if TYPE_CHECKING:
    from brokerproof.reference.front.consumers import Terms
    from brokerproof.reference.qpid.push.pointers import Pointer
    from brokerproof.spec.messages import Message, PropertyValue
    from brokerproof.spec.protocol.operations import Selector


class Subscription(Consumer):
    """The relationship of an AMQP Channel and a queue: one consumer, or one `get`.

    `awaits` is the entry that it waits at, having no room for it. An entry that it holds is in its
    `owning_state`. With a `stealable_state` that is so only during sending and settling; in between
    the entry is in the stealable state. An `auto_close` subscription leaves when no message is left
    for it. With a `selector` it wants only matching messages.
    """

    __slots__ = (
        "auto_close",
        "awaits",
        "owning_state",
        "pointer",
        "selector",
        "stealable_state",
    )

    def __init__(
        self, queue: str, terms: Terms, pointer: Pointer, *, stealable: bool = False
    ) -> None:
        super().__init__(queue, terms)
        self.pointer = pointer
        self.auto_close = terms.auto_close
        self.selector = terms.selector
        self.awaits: AtomicReference[QueueEntry | None] = AtomicReference(None)
        self.owning_state = EntryState(Phase.ACQUIRED, self)
        self.stealable_state = (
            EntryState(Phase.ACQUIRED, self, stealable=True) if stealable else None
        )

    def has_interest(self, entry: QueueEntry) -> bool:
        """Return whether it wants a message; without a selector it wants every one."""
        assert entry.message is not None, "a dummy head is never offered"
        return self.selector is None or meets(entry.message, self.selector)


def meets(message: Message, selector: Selector) -> bool:
    """Return whether the message has every property of the selector with an equal value."""
    properties = message.properties
    return all(
        name in properties and is_equal(properties[name], value) for name, value in selector.items()
    )


def is_equal(one: PropertyValue, other: PropertyValue) -> bool:
    """Return whether two values are equal as in JSON: numbers by value; a boolean is no number."""
    return isinstance(one, bool) is isinstance(other, bool) and one == other
