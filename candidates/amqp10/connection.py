"""AMQP 1.0 connections that always answer in time, over the engine of python-qpid-proton.

The file owns the socket, and moves bytes between it and the engine only while an operation waits:
there is no thread, no reactor, and no credit but what the adapter gives. Every failure becomes
`TimeoutError` (no answer in time), `Closed` (the broker has ended a link, a session or the
connection, and said why) or `LOST`. It does not know what links are for.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import TypeVar

import proton

from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.address import Address
from brokerproof.candidates.wire.deadline import Deadline, connected

READ_BYTES = 65_536

EMPTY_FRAME = bytes((0, 0, 0, 8, 2, 0, 0, 0))
"""A frame without a body, which only shows that the peer is there (AMQP 1.0, 2.4.5)."""

NUDGE_S = 0.005
"""How long the end of a session may be unanswered before an empty frame is sent, and again."""

_QUICK_ACKNOWLEDGEMENT = getattr(socket, "TCP_QUICKACK", None)
_DETACHED = (proton.Event.LINK_REMOTE_CLOSE, proton.Event.LINK_REMOTE_DETACH)
_REMOTE_OPEN = proton.Endpoint.REMOTE_ACTIVE | proton.Endpoint.REMOTE_CLOSED

LinkT = TypeVar("LinkT", bound=proton.Link)
Receive = Callable[[proton.Delivery, bytes], None]


class Closed(Exception):
    """The broker has ended a link, a session or the connection; the message is its reason."""


LOST: tuple[type[Exception], ...] = (Closed, proton.ProtonException, OSError)
"""Raised when a connection is gone or out of step; `TimeoutError` is one of them."""


class Connection:
    """An open connection to `address`; raises `LOST` if none opens before `deadline`.

    `host` is what the broker takes for its virtual host, or None. `receivers` get the deliveries of
    a link, by its name; `closers` are called when the broker ends a link without being asked.
    """

    def __init__(self, address: Address, deadline: Deadline, host: str | None) -> None:
        self._deadline = deadline
        self._links_made = 0
        self._asked_to_close: set[str] = set()
        self._detached: set[str] = set()
        self.receivers: dict[str, Receive] = {}
        self.closers: dict[str, Callable[[], None]] = {}
        self._socket = connected(address, deadline)
        try:
            self._open(address, host)
        except BaseException:
            self.collect()
            raise

    def _open(self, address: Address, host: str | None) -> None:
        self._engine = proton.Connection()
        self._events = proton.Collector()
        self._engine.collect(self._events)
        self._engine.container = f"brokerproof-{id(self):x}"
        if host is not None:
            self._engine.hostname = host
        self._engine.user, self._engine.password = address.user, address.password
        self._transport = proton.Transport()
        mechanisms = self._transport.sasl()
        mechanisms.allow_insecure_mechs = True
        mechanisms.allowed_mechs("PLAIN")
        self._transport.bind(self._engine)
        self._engine.open()
        self.until(lambda: bool(self._engine.state & _REMOTE_OPEN))

    @property
    def product(self) -> tuple[str, str]:
        """The broker's name and version, as it gave them."""
        given = self._engine.remote_properties or {}
        return str(given.get("product", "unnamed")), str(given.get("version", "unknown"))

    def session(self) -> proton.Session:
        """Return a new session, begun by both sides."""
        session = self._engine.session()
        session.open()
        self.until(lambda: bool(session.state & _REMOTE_OPEN))
        return session

    def end(self, session: proton.Session) -> None:
        """End a session; what its links held has returned when the broker answers."""
        session.close()
        self.flush()
        while not session.state & proton.Endpoint.REMOTE_CLOSED:
            # Artemis may answer only with its next read, and that comes up to 2 s later by itself.
            if select.select([self], [], [], min(NUDGE_S, self._deadline.remaining_s()))[0]:
                self.take_in()
            else:
                self._socket.sendall(EMPTY_FRAME)
        session.free()

    def link_name(self) -> str:
        """Return a new name for a link."""
        self._links_made += 1
        return f"l{self._links_made}"

    def attach(self, link: LinkT) -> LinkT:
        """Attach a link that has been set up; raises `Closed` if the broker refuses it."""
        self.closers.setdefault(link.name, lambda: None)
        link.open()
        self.until(lambda: bool(link.state & _REMOTE_OPEN))
        # A refusal is an answer without a source or target, and a detach after it.
        terminus = link.remote_target if link.is_sender else link.remote_source
        if not terminus.address:
            self.until(lambda: self.has_gone(link))
        self.raise_if_gone(link)
        return link

    def raise_if_gone(self, link: proton.Link) -> None:
        """Raise `Closed` with the broker's reason if it has ended a link."""
        if self.has_gone(link):
            why = _reason(link)
            link.close()
            self.forget(link)
            raise Closed(why)

    def drain(self, link: proton.Receiver, credit: int) -> None:
        """Give a link so much more credit, and have the broker use it now or return it all."""
        link.drain(credit)
        self.until(lambda: not link.draining())

    def detach(self, link: proton.Link) -> None:
        """Detach a link for good."""
        self._asked_to_close.add(link.name)
        link.close()
        self.until(lambda: self.has_gone(link))
        self.forget(link)

    def forget(self, link: proton.Link) -> None:
        """Forget a link that both sides have ended."""
        for known in (self.receivers, self.closers):
            known.pop(link.name, None)
        self._asked_to_close.discard(link.name)
        # To free a link settles what it holds, without an outcome. Its session frees it in the end.
        if not link.unsettled:
            link.free()

    def has_gone(self, link: proton.Link) -> bool:
        """Return whether the broker has ended a link."""
        # RabbitMQ 3 detaches without closing.
        return bool(link.state & proton.Endpoint.REMOTE_CLOSED) or link.name in self._detached

    def until(self, condition: Callable[[], bool]) -> None:
        """Send and receive until something is the case; raises `TimeoutError` and `LOST`."""
        self.flush()
        while not condition():
            self._socket.settimeout(self._deadline.remaining_s())
            self._receive(self._socket.recv(READ_BYTES))
            self.flush()

    def flush(self) -> None:
        """Send all that the engine has to say."""
        while (pending := self._transport.pending()) > 0:
            frames = self._transport.peek(pending)
            assert frames is not None
            self._socket.settimeout(self._deadline.remaining_s())
            self._socket.sendall(frames)
            self._transport.pop(len(frames))

    def take_in(self) -> None:
        """Handle what has arrived; called once something has."""
        self._socket.settimeout(self._deadline.remaining_s())
        self._receive(self._socket.recv(READ_BYTES))
        self.flush()

    def fileno(self) -> int:
        """Return the number by which the system waits for the socket."""
        return self._socket.fileno()

    def _receive(self, received: bytes) -> None:
        if not received:
            raise ConnectionResetError("the broker hung up")
        # A broker with Nagle's algorithm would else wait 40 ms for our delayed acknowledgement.
        if _QUICK_ACKNOWLEDGEMENT is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICK_ACKNOWLEDGEMENT, 1)
        while received:
            room = self._transport.capacity()
            if room <= 0:
                raise Closed(f"the engine takes no more: {self._transport.condition}")
            self._transport.push(received[:room])
            received = received[room:]
            self._handle_events()

    def _handle_events(self) -> None:
        while (event := self._events.peek()) is not None:
            kind, link, session = event.type, event.link, event.session
            if kind == proton.Event.DELIVERY and event.delivery is not None:
                self._take(event.delivery)
            elif kind in _DETACHED and link is not None:
                self._link_gone(link)
            elif kind == proton.Event.SESSION_REMOTE_CLOSE and session is not None:
                if session.state & proton.Endpoint.LOCAL_ACTIVE:
                    raise Closed(f"the broker ended a session: {_reason(session)}")
            elif kind == proton.Event.CONNECTION_REMOTE_CLOSE:
                if self._engine.state & proton.Endpoint.LOCAL_ACTIVE:
                    raise Closed(f"the broker closed the connection: {_reason(self._engine)}")
            elif kind == proton.Event.TRANSPORT_ERROR:
                raise Closed(f"the connection failed: {self._transport.condition}")
            self._events.pop()

    def _take(self, delivery: proton.Delivery) -> None:
        link = delivery.link
        if link.is_sender or not delivery.readable or delivery.partial:
            return
        message = link.recv(delivery.pending) or b""
        link.advance()
        if (take := self.receivers.get(link.name)) is not None:
            take(delivery, message)

    def _link_gone(self, link: proton.Link) -> None:
        self._detached.add(link.name)
        if link.name in self._asked_to_close or link.state & proton.Endpoint.LOCAL_CLOSED:
            return
        if (closed := self.closers.get(link.name)) is not None:
            closed()

    def close(self) -> None:
        """Close the connection by the protocol."""
        self._engine.close()
        self.until(lambda: bool(self._engine.state & proton.Endpoint.REMOTE_CLOSED))
        self.collect()

    def collect(self) -> None:
        """Drop the connection without a word to the broker."""
        self._socket.close()


def connect(address: Address, deadline: Deadline, host: str | None) -> Connection:
    """Return an open connection; raises `CandidateUnavailable` if none opens in time."""
    try:
        return Connection(address, deadline, host)
    except LOST as error:
        raise CandidateUnavailable(
            str(address),
            what=_why(error),
            remedy="check that the broker runs and which users may log in",
        ) from error


def heard(connections: Iterable[Connection], seconds: float) -> bool:
    """Handle what arrives on the connections; return whether anything did within some time."""
    known = list(connections)
    for connection in known:
        connection.flush()
    ready = select.select(known, [], [], seconds)[0]
    for each in ready:
        each.take_in()
    return bool(ready)


def _reason(endpoint: proton.Endpoint) -> str:
    condition = endpoint.remote_condition
    if condition is None:
        return "no reason given"
    return f"{condition.name}: {condition.description}" if condition.description else condition.name


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the broker did not greet us in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason}; trust its certificate with ?ca=FILE"
    if isinstance(error, ConnectionRefusedError):
        return "no server listens there"
    return described(error)
