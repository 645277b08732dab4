"""The limit of every wait for a broker, and the socket on which it is waited for.

Client libraries wait without a limit of their own, or with one for each read. So all connections of
a candidate share one `Deadline`, which every operation starts anew.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokerproof.candidates.wire.address import Address

CONNECT_DEADLINE_S = 10.0
ANSWER_DEADLINE_S = 10.0


class Unanswered(TimeoutError):
    """The broker did not answer in time; the message says which answer is missing."""


def said(late: TimeoutError, limit_s: float) -> str:
    """Return what to say of an operation that was not answered within its limit."""
    missing = f": {late}" if isinstance(late, Unanswered) else ""
    return f"no answer within {limit_s:.0f} s{missing}"


class Deadline:
    """The moment by which a broker must have answered, shared by all connections of a candidate."""

    def __init__(self) -> None:
        self._at = 0.0

    def start(self, seconds: float) -> None:
        """Set the moment to `seconds` from now."""
        self._at = time.monotonic() + seconds

    def remaining_s(self) -> float:
        """Return the time that is left; raises `TimeoutError` when none is."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left


def connected(address: Address, deadline: Deadline) -> socket.socket:
    """Return a socket to the broker, with TLS if the address asks for it; raises `OSError`."""
    plain = socket.create_connection((address.host, address.port), deadline.remaining_s())
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = address.tls()
    if tls is None:
        return plain
    try:
        return tls.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise
