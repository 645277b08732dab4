"""One connection of a load: opened by py-amqp, then spoken in frames made by hand.

The file owns the socket and its limits, and the two times of every request: before it was sent, and
after its answer was read. The owner of a link gets all frames in the order of the
wire, also those that arrive before an awaited answer. The link does not interpret frames.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import amqp

from brokerproof.candidates.amqp091.connection import LOST, Connection, connect
from brokerproof.candidates.amqp091.load.frames import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_FRAME,
    CHANNEL_CLOSED,
    CONNECTION_CLOSE,
    HEARTBEAT_FRAME,
    Arrivals,
    GarbledFrame,
    Method,
    Reader,
    text_of_close,
)
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import CONNECT_DEADLINE_S, Deadline

READ_BYTES = 262_144
ANSWER_S_MAX = 60.0
"""The longest wait for an answer, or for the socket to take a frame."""

POLL_S = 0.05


class LinkLost(Exception):
    """The connection cannot be used any more; the message is one line and says why."""


class Request(NamedTuple):
    """A request with its answer: the moment before it was sent, and that after it was read."""

    start: int
    end: int
    arguments: bytes


Take = Callable[[Arrivals, int], None]
"""Takes the arrivals, and the moment right after they were read."""


class Clock:
    """Nanoseconds since `zero`, of the one clock that all processes of a machine share."""

    def __init__(self, zero: int) -> None:
        self._zero = zero

    def now(self) -> int:
        """Return the time; later calls, in any process, never return less."""
        return time.monotonic_ns() - self._zero


class Link:
    """A connection with one open channel; construction connects, and raises `LinkLost`."""

    def __init__(self, address: Address, clock: Clock, take: Take) -> None:
        self._clock = clock
        self._take = take
        self._connection = _open(address)
        transport = self._connection.transport
        self._socket = transport.sock
        # From here on only this link reads.
        self._reader = Reader(transport._read_buffer)  # noqa: SLF001
        self._answers: dict[Method, tuple[int, bytes]] = {}

    def send(self, frames: bytes) -> None:
        """Hand frames to the socket; raises `LinkLost`."""
        self._socket.settimeout(ANSWER_S_MAX)
        try:
            self._socket.sendall(frames)
        except OSError as error:
            raise LinkLost(f"sending failed with {described(error)}") from error

    def pump(self, seconds: float) -> bool:
        """Read once, waiting up to `seconds`, and hand over the arrivals; False without any.

        Raises `LinkLost` if the broker has gone, or closes the channel or the connection.
        """
        self._socket.settimeout(seconds)
        try:
            received = self._socket.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError as error:
            raise LinkLost(f"reading failed with {described(error)}") from error
        at = self._clock.now()
        if not received:
            raise LinkLost("the broker hung up")
        try:
            arrivals = self._reader.read(received)
        except GarbledFrame as error:
            raise LinkLost(f"the broker sent what makes no sense: {error}") from error
        closing = None
        for answer in arrivals.answers:
            if answer.method in (CHANNEL_CLOSE, CONNECTION_CLOSE):
                closing = f"the broker closed it: {text_of_close(answer.arguments)}"
            self._answers[answer.method] = at, answer.arguments
        self._take(arrivals, at)
        if closing is not None:
            raise LinkLost(closing)
        if arrivals.heartbeats:
            self.send(HEARTBEAT_FRAME)
        return True

    def ask(self, request: bytes, *answers: Method) -> tuple[Method, Request]:
        """Send a request and wait for one of its answers; raises `LinkLost`, also after too long.

        No such answer may be outstanding.
        """
        for method in answers:
            self._answers.pop(method, None)
        start = self._clock.now()
        self.send(request)
        until = time.monotonic() + ANSWER_S_MAX
        while True:
            for method in answers:
                if method in self._answers:
                    end, arguments = self._answers.pop(method)
                    return method, Request(start, end, arguments)
            if time.monotonic() > until:
                raise LinkLost(f"no answer within {ANSWER_S_MAX:.0f} s")
            self.pump(POLL_S)

    def close_channel(self) -> Request:
        """Close the channel, and return the times of that; no request is possible afterwards."""
        _, asked = self.ask(CHANNEL_CLOSE_FRAME, CHANNEL_CLOSED)
        return asked

    def drop(self) -> None:
        """Close the socket; a broker that has gone is no error."""
        self._connection.collect()


def _open(address: Address) -> Connection:
    deadline = Deadline()
    deadline.start(CONNECT_DEADLINE_S)
    try:
        connection = connect(address, deadline)
    except CandidateUnavailable as error:
        raise LinkLost(str(error)) from error
    try:
        connection.channel()
    except (amqp.AMQPError, *LOST) as error:
        connection.collect()
        raise LinkLost(f"no channel: {described(error)}") from error
    return connection
