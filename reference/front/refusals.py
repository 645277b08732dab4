"""How an operation is refused that cannot be carried out; none of it has happened then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.spec.protocol.answers import Error

if TYPE_CHECKING:
    from brokerproof.spec.protocol.messages import Credit
    from brokerproof.spec.protocol.operations import SetCredit


def refused(message: str) -> Error:
    """Refuse what does not exist, is taken already, or has a value that cannot be."""
    return Error("refused", message)


def unsupported(message: str) -> Error:
    """Refuse what was never claimed."""
    return Error("unsupported", message)


def no_window(asked: Credit | SetCredit) -> Error:
    """Refuse limits that no window can have."""
    return refused(f"a window of {asked.messages} messages and {asked.bytes} bytes")
