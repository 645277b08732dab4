"""AMQP 0-9-1 connections that always answer in time, over py-amqp.

The file owns the sockets, and turns every failure into one of three: `TimeoutError` (no answer in
time), `LOST` (the connection cannot be used any more) and `amqp.ChannelError` (the broker closed a
channel and said why). It does not know what the frames are for.

py-amqp reads and waits without a limit of its own. So both ends of the socket share one `Deadline`,
which every operation starts anew. py-amqp also reads a frame in three small pieces; here one read
takes all that has arrived. Frames are handled strictly in the order of the wire, in the thread that
waits.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
from collections.abc import Callable, Sequence

import amqp
from amqp import spec as methods
from amqp.transport import TCPTransport

from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import Deadline
from brokerproof.spec.protocol.answers import Error

READ_BYTES = 65_536

LOST: tuple[type[Exception], ...] = (amqp.exceptions.ConnectionError, OSError)
"""Raised when a connection is gone or out of step; `TimeoutError` is one of them."""

CLOSED: tuple[type[Exception], ...] = (amqp.AMQPError, OSError)
"""`LOST`, or raised when the broker has closed a channel."""

# Errors of py-amqp on invalid frames, such as one for a channel that is closed.
_GARBLED = (LookupError, ValueError, TypeError, struct.error)

_QUICK_ACKNOWLEDGEMENT = getattr(socket, "TCP_QUICKACK", None)


class _Transport(TCPTransport):  # type: ignore[misc] # py-amqp has no types
    """A socket that obeys a deadline and acknowledges TCP packets at once; `tls` encrypts it."""

    sock: socket.socket

    def __init__(self, address: Address, tls: ssl.SSLContext | None, deadline: Deadline) -> None:
        self._deadline = deadline
        self._tls = tls
        self._name = address.host
        super().__init__(address.host_and_port, connect_timeout=deadline.remaining_s())

    def _setup_transport(self) -> None:
        if self._tls is not None:
            plain = self.sock
            plain.settimeout(self._deadline.remaining_s())
            self.sock = self._tls.wrap_socket(plain, server_hostname=self._name)
        super()._setup_transport()
        self._quick_recv = self._receive
        self._write = self._send

    def _receive(self, _bytes_wanted: int) -> bytes:
        self.sock.settimeout(self._deadline.remaining_s())
        received: bytes = self.sock.recv(READ_BYTES)
        # A broker with Nagle's algorithm would else wait 40 ms for our delayed acknowledgement.
        # The kernel forgets the setting, so it is made after each read.
        if _QUICK_ACKNOWLEDGEMENT is not None:
            self.sock.setsockopt(socket.IPPROTO_TCP, _QUICK_ACKNOWLEDGEMENT, 1)
        return received

    def _send(self, frames: bytes) -> None:
        self.sock.settimeout(self._deadline.remaining_s())
        self.sock.sendall(frames)

    @property
    def has_more(self) -> bool:
        """Whether bytes have been read from the network, and not yet been handled."""
        return bool(self._read_buffer) or (
            isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0
        )


class _Channel(amqp.Channel):  # type: ignore[misc] # py-amqp has no types
    """A channel that goes on taking deliveries until its closing is answered.

    `closed_by_broker` has what to call when the broker confirms a cancel that was not requested:
    so Broker-J tells that a consumer has closed itself.
    """

    def __init__(self, *arguments: object, **named: object) -> None:
        self.closed_by_broker: dict[str, Callable[[], None]] = {}
        super().__init__(*arguments, **named)

    def _on_basic_cancel_ok(self, consumer_tag: str) -> None:
        super()._on_basic_cancel_ok(consumer_tag)
        if (closed := self.closed_by_broker.pop(consumer_tag, None)) is not None:
            closed()

    # py-amqp drops these deliveries; the broker has handed them over, so they must be told.
    _ALLOWED_METHODS_WHEN_CLOSING = (
        *amqp.Channel._ALLOWED_METHODS_WHEN_CLOSING,  # noqa: SLF001 - extends its own rule
        methods.Basic.Deliver,
        methods.Basic.Cancel,
        methods.Basic.CancelOk,
    )


class Connection(amqp.Connection):  # type: ignore[misc] # py-amqp has no types
    """A connection to `address` whose every wait ends at `deadline`; made by `connect`."""

    Channel = _Channel
    # Without connection.blocked: py-amqp would look for it before each publish. A blocked publisher
    # gets no confirm, and so runs into the deadline.
    negotiate_capabilities = {  # noqa: RUF012 - the library's own attribute
        "consumer_cancel_notify": True,
        "authentication_failure_close": True,
    }

    def __init__(self, address: Address, deadline: Deadline) -> None:
        self._deadline = deadline
        self._address = address
        self._tls = address.tls()
        super().__init__(
            host=address.host_and_port,
            userid=address.user,
            password=address.password,
            login_method="PLAIN",
            virtual_host=address.virtual_host,
        )

    def Transport(self, *_: object, **__: object) -> _Transport:  # noqa: N802
        """Return the socket below; py-amqp calls it under this name."""
        return _Transport(self._address, self._tls, self._deadline)

    def blocking_read(self, timeout: float | None = None) -> object:  # noqa: ARG002
        """Handle one frame; the deadline stands in for `timeout`."""
        try:
            return self.on_inbound_frame(self.transport.read_frame())
        except _GARBLED as error:
            raise amqp.UnexpectedFrame(
                f"the broker sent a frame that makes no sense here: {described(error)}"
            ) from error

    def take_in_rest(self) -> bool:
        """Handle the frames that were read with an earlier one: the socket does not show them.

        Returns whether there were any.
        """
        had_more = False
        while self.transport.has_more:
            had_more = True
            self.drain_events()
        return had_more

    @property
    def product(self) -> tuple[str, str]:
        """The broker's name and version, as it gave them."""
        given = self.server_properties
        return str(given.get("product", "unnamed")), str(given.get("version", "unknown"))

    @property
    def announces_cancelled_consumers(self) -> bool:
        """Whether the broker tells a consumer that its queue has gone."""
        return bool(self.server_capabilities.get("consumer_cancel_notify"))


def connect(address: Address, deadline: Deadline) -> Connection:
    """Return an open connection; raises `CandidateUnavailable` if none opens in time."""
    connection = Connection(address, deadline)
    try:
        connection.connect()
    except (amqp.AMQPError, OSError) as error:
        connection.collect()
        raise CandidateUnavailable(
            str(address),
            what=_reason(error),
            remedy="check that the broker runs and which users may log in",
        ) from error
    return connection


def heard(connections: Sequence[Connection], seconds: float) -> bool:
    """Handle what arrives on the connections; return whether anything did within some time."""
    if any(connection.take_in_rest() for connection in connections):
        return True
    by_socket = {connection.sock: connection for connection in connections}
    ready = select.select(list(by_socket), [], [], seconds)[0]
    for each in ready:
        by_socket[each].drain_events()
        by_socket[each].take_in_rest()
    return bool(ready)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the broker did not greet us in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason}; trust its certificate with ?ca=FILE"
    if isinstance(error, ConnectionRefusedError):
        return "no server listens there"
    return described(error)


def told_as_errors(lost: Exception, *, durable: bool) -> tuple[Error, Error]:
    """Return the error to answer, and the one for all operations before the next reset.

    A broker that gives a reason for closing the connection is still there: the failure concerns
    this connection. A broker that hangs up, or is being shut down, has gone. If it claims
    `durable`, the outcome is left open even then: `crashed` would require it to have kept every
    settlement, and it owes that only after the wait of `wire/crashes.py`.
    """
    spoke = isinstance(lost, amqp.exceptions.ConnectionError)
    if durable or (spoke and not isinstance(lost, amqp.ConnectionForced)):
        error = Error("internal", f"the connection was lost: {described(lost)}")
        return error, error
    return Error("crashed", described(lost)), Error(
        "refused", "the broker went down; reset to go on"
    )
