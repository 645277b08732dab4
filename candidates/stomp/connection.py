"""STOMP connections that always answer in time.

The file owns the socket, the greeting, receipts and the order of frames: a frame is handled when it
is read, in the order of the wire, in the thread that waits for something. Every failure is a
`TimeoutError` (no answer in time), a `BrokerError` (the broker sent an ERROR frame) or another
`ConnectionError` (the connection is gone or out of step). It does not know what messages are for.

Libraries for STOMP read in a thread of their own, which loses the order between messages and
receipts; the argument for a drain needs that order.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from typing import TYPE_CHECKING

from brokerproof.candidates.stomp.frames import (
    VERSIONS,
    Frame,
    GarbledFrameError,
    Reader,
    Version,
    encoded,
)
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.candidates.wire.deadline import Unanswered, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from brokerproof.candidates.wire.address import Address
    from brokerproof.candidates.wire.deadline import Deadline

READ_BYTES = 65_536
REASON_CHARACTERS_MAX = 300

_QUICK_ACKNOWLEDGEMENT = getattr(socket, "TCP_QUICKACK", None)


class BrokerError(ConnectionError):
    """The broker sent an ERROR frame; `receipt` is that of the request which it refuses, or None.

    The specifications require the broker to close the connection afterwards (1.0 allows it).
    """

    def __init__(self, frame: Frame) -> None:
        self.receipt = frame.headers.get("receipt-id")
        message = frame.headers.get("message", "")
        body = frame.body.decode(errors="replace")
        text = " ".join((message if message in body else f"{message} {body}").split())
        super().__init__(f"the broker answered ERROR: {text[:REASON_CHARACTERS_MAX]}")


def _drop(_message: Frame) -> None:
    """Take no notice of a message on a connection without subscriptions."""


class Connection:
    """An open connection; `take` is called for each MESSAGE frame, in the order of the wire.

    `version` is the STOMP version that was agreed on, `product` the server's name and version.
    """

    def __init__(self, address: Address, deadline: Deadline, versions: Sequence[Version]) -> None:
        self._deadline = deadline
        self._asked: dict[str, str] = {}
        self._receipts: set[str] = set()
        self._requests = 0
        self.take: Callable[[Frame], None] = _drop
        self.version: Version = versions[0]
        self._socket = connected(address, deadline)
        try:
            greeting = self._greet(address, versions)
        except BaseException:
            self.collect()
            raise
        server, _, version = greeting.get("server", "").split(" ")[0].partition("/")
        self.product = (server or "unnamed", version or "unknown")

    def _greet(self, address: Address, versions: Sequence[Version]) -> Mapping[str, str]:
        # A server of 1.0 knows none of the headers that later versions added, and ignores them.
        headers = {
            "accept-version": ",".join(versions),
            "host": address.virtual_host,
            "login": address.user,
            "passcode": address.password,
            "heart-beat": "0,0",
        }
        self._reader = Reader(self.version)
        self._waiting: list[Frame] = []
        self.send(Frame("CONNECT", headers))
        while not self._waiting:
            self._receive()
        first = self._waiting.pop(0)
        if first.command == "ERROR":
            raise BrokerError(first)
        if first.command != "CONNECTED":
            raise GarbledFrameError(f"the broker greets with {first.command[:80]!r}")
        agreed = first.headers.get("version", "1.0")
        if agreed not in versions:
            raise GarbledFrameError(f"the broker wants STOMP {agreed}, not {'/'.join(versions)}")
        self.version = self._reader.version = next(each for each in VERSIONS if each == agreed)
        return first.headers

    # Sending and waiting.

    def send(self, frame: Frame) -> None:
        """Send a frame and wait for nothing."""
        self._socket.settimeout(self._deadline.remaining_s())
        self._socket.sendall(encoded(frame, self.version))

    def ask(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> str:
        """Send a frame that the broker must confirm, and return the name of the receipt."""
        self._requests += 1
        receipt = f"r{self._requests}"
        self._asked[receipt] = command
        self.send(Frame(command, {**headers, "receipt": receipt}, body))
        return receipt

    def wait_for(self, receipt: str) -> None:
        """Read until the receipt has come; the messages before it are taken."""
        self._handle_waiting()
        while receipt not in self._receipts:
            try:
                self._receive()
            except TimeoutError as error:
                raise Unanswered(f"there is no RECEIPT for {self._asked[receipt]}") from error
            self._handle_waiting()
        self._receipts.discard(receipt)
        del self._asked[receipt]

    def request(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a frame and wait for its receipt."""
        self.wait_for(self.ask(command, headers, body))

    def read_what_is_there(self) -> None:
        """Read once, without waiting longer than the deadline, and take the messages."""
        self._handle_waiting()
        self._receive()
        self._handle_waiting()

    def _receive(self) -> None:
        self._socket.settimeout(self._deadline.remaining_s())
        arrived = self._socket.recv(READ_BYTES)
        # A broker with Nagle's algorithm would else wait 40 ms for our delayed acknowledgement.
        # The kernel forgets the setting, so it is made after each read.
        if _QUICK_ACKNOWLEDGEMENT is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICK_ACKNOWLEDGEMENT, 1)
        if not arrived:
            raise ConnectionResetError("the broker hung up")
        # TLS may have decrypted more than was asked for; `select` does not see that.
        while isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            arrived += self._socket.recv(READ_BYTES)
        self._waiting += self._reader.read(arrived)

    def _handle_waiting(self) -> None:
        while self._waiting:
            frame = self._waiting.pop(0)
            match frame.command:
                case "MESSAGE":
                    self.take(frame)
                case "RECEIPT":
                    self._receipts.add(frame.headers.get("receipt-id", ""))
                case "ERROR":
                    raise BrokerError(frame)
                case other:
                    raise GarbledFrameError(f"the broker sent the frame {other[:80]!r}")

    # The end.

    def close(self) -> None:
        """Part by DISCONNECT; the messages before its receipt are taken.

        A server of 1.0 may hang up instead of sending the receipt.
        """
        try:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                self.request("DISCONNECT", {})
        finally:
            self.collect()

    def collect(self) -> None:
        """Close the socket without a word."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def fileno(self) -> int:
        """Return the socket's number, for `select`."""
        return self._socket.fileno()


def arrived(connections: Iterable[Connection], seconds: float) -> list[Connection]:
    """Return the connections that have something to read, or none after `seconds` of silence."""
    return select.select(list(connections), [], [], seconds)[0]


def connect(address: Address, deadline: Deadline, versions: Sequence[Version]) -> Connection:
    """Return an open connection; raises `CandidateUnavailable` if none opens in time."""
    try:
        return Connection(address, deadline, versions)
    except OSError as error:
        raise CandidateUnavailable(
            str(address),
            what=_reason(error),
            remedy="check that the broker runs, which users may log in, and the virtual host, "
            "which is the path of the address",
        ) from error


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "the broker did not greet us in time"
    if isinstance(error, ConnectionRefusedError):
        return "no server listens there"
    return str(error) if isinstance(error, BrokerError) else described(error)
