"""How queues come and go at a broker of AMQP 1.0, which has no frames for that.

Where the broker speaks AMQP 0-9-1 too, queues are declared, deleted and purged there. Otherwise the
first link to an address makes the queue, and the broker deletes it once it is unused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import amqp

from brokerproof.candidates.amqp091.connection import CLOSED, Connection, connect
from brokerproof.candidates.amqp091.dialect import Dialect
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.candidate import OK
from brokerproof.candidates.wire.deadline import Deadline
from brokerproof.candidates.wire.errors import refused
from brokerproof.candidates.wire.example import Queue
from brokerproof.spec.protocol.answers import Error

GONE = CLOSED
"""The errors of the connection for management; `OSError` is one of them."""


class Queues(Protocol):
    """Makes and removes queues by their names at the broker."""

    def make(self, queue: Queue) -> Error | None:
        """Declare a queue, which the broker refuses if it exists with other arguments."""
        ...

    def remove(self, name: str) -> Error | None:
        """Delete a queue; one that has gone is no error."""
        ...

    def clear(self, name: str) -> Error | None:
        """Purge a queue."""
        ...

    def why_gone(self, name: str) -> str:
        """Return the broker's message when there is no such queue, or an empty text."""
        ...

    def renew(self) -> None:
        """Connect anew; raises `CandidateUnavailable`."""
        ...

    def close(self) -> None:
        """Drop the connection."""
        ...


class QueuesOverAmqp091:
    """Queues by the methods of AMQP 0-9-1, on a connection of their own.

    Construction connects, and raises `CandidateUnavailable`.
    """

    def __init__(self, address: Address, deadline: Deadline, dialect: Dialect) -> None:
        self._address = replace(address, protocol="amqp091", port=address.manage or address.port)
        self._deadline = deadline
        self._dialect = dialect
        self._connection: Connection | None = None
        self.renew()

    def renew(self) -> None:
        """Connect anew; raises `CandidateUnavailable`."""
        self.close()
        self._connection = connect(self._address, self._deadline)
        self._channel: amqp.Channel = self._connection.channel()

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.collect()

    def make(self, queue: Queue) -> Error | None:
        """Declare a queue."""
        declared = queue.declared
        arguments = self._dialect.of_order(declared.order)
        return self._asked(
            lambda: self._channel.queue_declare(
                queue.name,
                durable=declared.durable,
                auto_delete=declared.auto_delete,
                arguments=arguments,
            )
        )

    def remove(self, name: str) -> Error | None:
        """Delete a queue; one that has gone is no error."""
        if self.why_gone(name):
            return OK
        return self._asked(lambda: self._channel.queue_delete(name))

    def clear(self, name: str) -> Error | None:
        """Purge a queue."""
        return self._asked(lambda: self._channel.queue_purge(name))

    def why_gone(self, name: str) -> str:
        """Return the broker's message when there is no such queue, or an empty text."""
        try:
            self._channel.queue_declare(name, passive=True)
        except amqp.NotFound as not_found:
            return str(not_found)
        return ""

    def _asked(self, request: Callable[[], object]) -> Error | None:
        try:
            request()
        except amqp.ChannelError as closed:
            return refused(str(closed))
        return OK


class QueuesByUse:
    """Queues that their first link makes; `empty` takes all messages of one away.

    What is not empty would stay at the broker for ever, since only an empty queue goes by itself.
    """

    def __init__(self, empty: Callable[[str], None]) -> None:
        self._empty = empty

    def make(self, queue: Queue) -> Error | None:  # noqa: ARG002
        """Do nothing: the first message makes the queue."""
        return OK

    def remove(self, name: str) -> Error | None:
        """Take all messages away."""
        self._empty(name)
        return OK

    def clear(self, name: str) -> Error | None:
        """Take all messages away."""
        self._empty(name)
        return OK

    def why_gone(self, name: str) -> str:  # noqa: ARG002
        """Return an empty text: a link would make the queue again."""
        return ""

    def renew(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: there is no connection."""
