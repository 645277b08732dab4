"""The connections of one candidate: one for control, one for each channel in use, some idle.

The pool owns opening, reuse and dropping of connections. It does not know the operations.
Connections outlive the examples, since opening one costs more than most examples do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from brokerproof.candidates.unavailable import CandidateUnavailable


class Closable(Protocol):
    """A connection."""

    def close(self) -> object:
        """Close it by the protocol."""
        ...

    def collect(self) -> object:
        """Drop it without a word to the broker."""
        ...


ConnectionT = TypeVar("ConnectionT", bound=Closable)


class Pool(Generic[ConnectionT]):
    """Connections that `connect` opens; construction opens the first, `control`.

    `connect` raises `CandidateUnavailable`, from a `TimeoutError` when the broker is late. `lost`
    are the errors of a connection that has gone.
    """

    def __init__(
        self, connect: Callable[[], ConnectionT], lost: tuple[type[Exception], ...]
    ) -> None:
        self._connect = connect
        self._lost = lost
        self._idle: list[ConnectionT] = []
        self._used: list[ConnectionT] = []
        self.control = connect()

    def take(self) -> ConnectionT:
        """Return a connection for the caller alone.

        Raises `TimeoutError` or `ConnectionError`: a broker that takes no more connections in the
        middle of an operation has failed that operation.
        """
        connection = self._idle.pop() if self._idle else self._one_more()
        self._used.append(connection)
        return connection

    def _one_more(self) -> ConnectionT:
        try:
            return self._connect()
        except CandidateUnavailable as unavailable:
            late = isinstance(unavailable.__cause__, TimeoutError)
            kind = TimeoutError if late else ConnectionError
            raise kind(str(unavailable)) from unavailable

    def give_back(self, connection: ConnectionT) -> None:
        """Take back a connection on which nothing is left open."""
        self._used.remove(connection)
        self._idle.append(connection)

    def discard(self, connection: ConnectionT) -> None:
        """Forget a connection that has gone."""
        self._used.remove(connection)

    def renew(self) -> None:
        """Drop every connection and open a control connection anew.

        Raises `CandidateUnavailable` when there is no broker any more.
        """
        self.drop()
        self.control = self._connect()

    def renew_control(self) -> None:
        """Drop the control connection alone and open it anew; raises as `take` does."""
        self.control.collect()
        self.control = self._one_more()

    def close(self) -> None:
        """Close every connection, by the protocol as long as the broker answers."""
        with contextlib.suppress(*self._lost):
            for connection in self._all():
                connection.close()
        self.drop()

    def drop(self) -> None:
        """Drop every connection without a word to the broker."""
        for connection in self._all():
            connection.collect()
        self._idle.clear()
        self._used.clear()

    def _all(self) -> Iterator[ConnectionT]:
        yield from self._used
        yield from self._idle
        yield self.control
