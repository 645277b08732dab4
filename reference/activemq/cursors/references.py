"""A message as a queue knows it, and what of it the store keeps.

Owns a reference's place in the life of a message: paged in, with a consumer, returned, gone.
Refuses to know whether its content is in memory because somebody wants it there (`queue_memory`).

A reference is all that a queue needs of a message that is paged in; its content is in memory only
as long as it is charged for. ActiveMQ 4 and 5.0 had such a reference, which kept the id alone of
what the store could give back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from brokerproof.spec.protocol.messages import Message

if TYPE_CHECKING:
    from brokerproof.reference.activemq.memory_usage import Charged
    from brokerproof.reference.front.consumers import RankedConsumer


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """What the store keeps: a message, and the how manieth of its queue it is, from 1 on."""

    arrival: int
    message: Message


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Stored)


def encoded(stored: Stored) -> bytes:
    """Return what is written of a message."""
    return _ENCODER.encode(stored)


def decoded(value: bytes) -> Stored:
    """Return the message that was written."""
    return _DECODER.decode(value)


class Reference:
    """A message of one queue that is in memory, or could be again.

    `content` is None where it is not in memory; of `message` only what the queue needs is there
    then, and `size` is what the content is charged. `kept` says that it is in the store, and comes
    back after a crash. `level` is its level of priority; `owner` whoever it was given to.
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
        """What pending lists are ordered by."""
        return self.level

    def stored(self) -> Stored:
        """Return what is kept of it on disk, as long as it is in memory."""
        assert self.content is not None, "of what gave way not all is known"
        return Stored(self.arrival, self.message)

    def holder(self) -> RankedConsumer | None:
        """Return who has it, if somebody has."""
        return self.owner

    def is_dispensed(self) -> bool:
        """Whether it is out of its queue for good."""
        return self.is_gone
