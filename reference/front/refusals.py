"""The refusals of operations; a refused operation has had no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.spec.protocol.answers import Error

if TYPE_CHECKING:
    from brokerproof.spec.messages import Credit
    from brokerproof.spec.protocol.operations import SetCredit


def refused(message: str) -> Error:
    """Refuse an unknown name, a name in use, or an impossible value."""
    return Error("refused", message)


def unsupported(message: str) -> Error:
    """Refuse an operation beyond the claims."""
    return Error("unsupported", message)


def no_window(asked: Credit | SetCredit) -> Error:
    """Refuse limits that no window can have."""
    return refused(f"a window of {asked.messages} messages and {asked.bytes} bytes")
