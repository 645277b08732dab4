"""The errors that adapters answer, and the limits of messages that a protocol has."""

from __future__ import annotations

from dataclasses import dataclass

from brokerproof.spec.messages import PRIORITIES, Message
from brokerproof.spec.protocol.answers import Error


def refused(message: str) -> Error:
    """Return the error of an operation that does not fit the state or breaks the protocol."""
    return Error("refused", message)


def unsupported(message: str) -> Error:
    """Return the error of an operation that is not claimed."""
    return Error("unsupported", message)


@dataclass(frozen=True)
class MessageLimits:
    """The largest message that a protocol carries; all sizes in bytes of UTF-8."""

    name_bytes: int
    header_bytes: int
    body_bytes: int
    integer_bits: int = 64

    def unsendable(self, message: Message) -> Error | None:
        """Return the error for a message that breaks driver protocol 1 or does not fit."""
        if message.priority not in PRIORITIES:
            return refused("priorities are 0 to 9")
        if not 0 <= message.size <= self.body_bytes:
            return refused(f"sizes are 0 to {self.body_bytes} bytes")
        unfit = self._unfit(message)
        return None if unfit is None else unsupported(unfit)

    def _unfit(self, message: Message) -> str | None:
        values = message.properties.values()
        try:
            names = [len(name.encode()) for name in (message.id, *message.properties)]
            texts = [len(value.encode()) for value in values if isinstance(value, str)]
        except UnicodeEncodeError:
            return "no text with halves of surrogate pairs"
        if max(names) > self.name_bytes:
            return f"no ids and property names of more than {self.name_bytes} bytes"
        if sum(names) + sum(texts) > self.header_bytes:
            return f"no properties of more than {self.header_bytes} bytes"
        most = 2 ** (self.integer_bits - 1)
        if any(isinstance(value, int) and not -most <= value < most for value in values):
            return f"no integers of more than {self.integer_bits} bits"
        return None
