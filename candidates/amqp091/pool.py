"""The connections of one candidate: one for control, one for each channel in use, some idle.

The pool owns opening, reuse and dropping of connections, and the control channel for operations
that the protocol does not tie to a channel. It does not know the operations. Connections outlive
the examples, since opening one costs more than most examples do.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import amqp

from brokerproof.candidates.amqp091.connection import Address, Connection, Deadline, connect
from brokerproof.candidates.unavailable import CandidateUnavailable, described

if TYPE_CHECKING:
    from collections.abc import Iterator


class Pool:
    """Connections to `address`, all under one `deadline`; construction opens the first.

    Raises `CandidateUnavailable` when that fails.
    """

    def __init__(self, address: Address, deadline: Deadline) -> None:
        self._address = address
        self._deadline = deadline
        self._idle: list[Connection] = []
        self._used: list[Connection] = []
        self.returned: list[str] = []
        self._open_control()

    def _open_control(self) -> None:
        self.control_connection = connect(self._address, self._deadline)
        try:
            self.control: amqp.Channel = self.control_connection.channel()
        except (amqp.AMQPError, OSError) as error:
            self.control_connection.collect()
            raise CandidateUnavailable(
                str(self._address),
                what=f"the first channel failed with {described(error)}",
                remedy="look into the broker's log",
            ) from error
        self.control.events["basic_return"].add(lambda why, *_: self.returned.append(str(why)))

    def take(self) -> Connection:
        """Return a connection for the caller alone.

        Raises `TimeoutError` or `ConnectionError`: a broker that takes no more connections in the
        middle of an operation has failed that operation.
        """
        if self._idle:
            connection = self._idle.pop()
        else:
            try:
                connection = connect(self._address, self._deadline)
            except CandidateUnavailable as unavailable:
                late = isinstance(unavailable.__cause__, TimeoutError)
                kind = TimeoutError if late else ConnectionError
                raise kind(str(unavailable)) from unavailable
        self._used.append(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Take back a connection whose channel has been closed."""
        self._used.remove(connection)
        self._idle.append(connection)

    def renew(self) -> None:
        """Drop every connection and open a control connection anew.

        Raises `CandidateUnavailable` when there is no broker any more.
        """
        self._drop()
        self._open_control()

    def close(self) -> None:
        """Close every connection, by the protocol as long as the broker answers."""
        with contextlib.suppress(amqp.AMQPError, OSError):
            for connection in self._all():
                connection.close()
        self._drop()

    def _drop(self) -> None:
        for connection in self._all():
            connection.collect()
        self._idle.clear()
        self._used.clear()

    def _all(self) -> Iterator[Connection]:
        yield from self._used
        yield from self._idle
        yield self.control_connection
