"""A message reference of a queue, and the form in which the store keeps it.

Owns the state of a reference: paged in, held by a consumer, returned, gone. `queue_memory` decides
whether its content stays in memory.

A reference is all that a queue needs of a paged-in message; the content is in memory only while it
is charged. ActiveMQ 4 and 5.0 had such a reference, with only the id of a stored message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from brokerproof.spec.messages import Message

if TYPE_CHECKING:
    from brokerproof.reference.activemq.memory.usage import Charged
    from brokerproof.reference.front.consumers import RankedConsumer


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """A stored message, and its number in its queue, counted from 1."""

    arrival: int
    message: Message


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Stored)


def encoded(stored: Stored) -> bytes:
    """Return the bytes of a stored message."""
    return _ENCODER.encode(stored)


def decoded(value: bytes) -> Stored:
    """Return the message of stored bytes."""
    return _DECODER.decode(value)


class Reference:
    """A message of one queue that is in memory, or could be again.

    `content` is None if it is not in memory. Then `message` has only what the queue needs, and
    `size` is still the charge of the content. A `kept` message is in the store and comes back after
    a crash. `level` is its priority level; `owner` is the consumer that holds it.
    """

    __slots__ = (
        "arrival",
        "content",
        "is_gone",
        "kept",
        "level",
        "message",
        "owner",
        "redelivered",
        "size",
    )

    def __init__(self, stored: Stored, level: int, content: Charged, *, kept: bool) -> None:
        self.arrival = stored.arrival
        self.message = stored.message
        self.level = level
        self.content: Charged | None = content
        self.size = content.size
        self.kept = kept
        self.owner: RankedConsumer | None = None
        self.redelivered = False
        self.is_gone = False

    def __repr__(self) -> str:
        return f"<{self.message.id}, number {self.arrival}>"

    @property
    def id(self) -> str:
        """The message's id."""
        return self.message.id

    @property
    def priority(self) -> int:
        """The order key of pending lists."""
        return self.level

    def stored(self) -> Stored:
        """Return the form for the disk; the content must be in memory."""
        assert self.content is not None, "of what gave way not all is known"
        return Stored(self.arrival, self.message)

    def holder(self) -> RankedConsumer | None:
        """Return the consumer that holds it, or None."""
        return self.owner

    def is_dispensed(self) -> bool:
        """Return whether it has left its queue for good."""
        return self.is_gone
