"""Frames of AMQP 0-9-1, made and read by hand: the few that load needs, a thousand at a time.

The file owns the bytes. It does not know sockets, clocks and what the frames are for. py-amqp costs
some 0.1 ms a message in objects and callbacks, which would measure the client and not the broker.
Here a publish is three constants and an id, and a delivery three unpackings. Everything is on
channel 1 of its connection. Source: the AMQP 0-9-1 specification (2.3.5 frame details, 4.2 framing)
and RabbitMQ's extensions `confirm.select` and `basic.nack`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Method = tuple[int, int]

CHANNEL_CLOSE: Final[Method] = (20, 40)
CHANNEL_CLOSED: Final[Method] = (20, 41)
CONNECTION_CLOSE: Final[Method] = (10, 50)
CONFIRM_SELECT: Final[Method] = (85, 10)
CONFIRM_SELECTED: Final[Method] = (85, 11)
QUEUE_DECLARE: Final[Method] = (50, 10)
QUEUE_DECLARED: Final[Method] = (50, 11)
QOS: Final[Method] = (60, 10)
QOS_SET: Final[Method] = (60, 11)
CONSUME: Final[Method] = (60, 20)
CONSUMING: Final[Method] = (60, 21)
CANCEL: Final[Method] = (60, 30)
CANCELLED: Final[Method] = (60, 31)
PUBLISH: Final[Method] = (60, 40)
RETURNED: Final[Method] = (60, 50)
DELIVER: Final[Method] = (60, 60)
GET: Final[Method] = (60, 70)
GOT: Final[Method] = (60, 71)
GOT_NOTHING: Final[Method] = (60, 72)
ACKNOWLEDGE: Final[Method] = (60, 80)
NOT_ACKNOWLEDGE: Final[Method] = (60, 120)

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
END = 0xCE
HEARTBEAT_FRAME = bytes([HEARTBEAT, 0, 0, 0, 0, 0, 0, END])

_FRAME = struct.Struct(">BHI")
_METHOD = struct.Struct(">HH")
_SETTLEMENT = struct.Struct(">11sQBB")
_TAG = struct.Struct(">QB")
_HEADER = struct.Struct(">HHQH")

_DELIVERY_MODE, _PRIORITY, _MESSAGE_ID = 1 << 12, 1 << 11, 1 << 7
# Properties before the message id, from the highest bit of the flags down: the width of each, 0 for
# a short string and -1 for a table.
_BEFORE_MESSAGE_ID = (0, 0, -1, 1, 1, 0, 0, 0)


class GarbledFrame(ValueError):
    """The received bytes are no valid frame for this client."""


class Delivery(NamedTuple):
    """A message as received; `identity` is its message id, None if it had none.

    `by_get` says that it answers a get.
    """

    tag: int
    redelivered: bool
    identity: str | None
    size: int
    by_get: bool = False


class Confirm(NamedTuple):
    """The broker's confirm of all publishes up to `tag`, or of that one alone."""

    tag: int
    multiple: bool
    positive: bool


class Answer(NamedTuple):
    """A method that answers one of ours, or that the broker sends by itself."""

    method: Method
    arguments: bytes


@dataclass
class Arrivals:
    """The frames of one read, each kind in the order of the wire."""

    deliveries: list[Delivery] = field(default_factory=list)
    confirms: list[Confirm] = field(default_factory=list)
    returned: list[str | None] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    heartbeats: int = 0


def short(text: str) -> bytes:
    """Return a short string; raises `ValueError` if it is too long for one."""
    encoded = text.encode()
    return bytes([len(encoded)]) + encoded


def frame(kind: int, payload: bytes) -> bytes:
    """Return a frame on channel 1."""
    return _FRAME.pack(kind, 1, len(payload)) + payload + bytes([END])


def method_frame(method: Method, arguments: bytes) -> bytes:
    """Return the frame of a method with its encoded arguments."""
    return frame(METHOD, _METHOD.pack(*method) + arguments)


def passive_declare(queue: str) -> bytes:
    """Return the frame that asks for a queue's numbers of messages and consumers."""
    return method_frame(QUEUE_DECLARE, b"\0\0" + short(queue) + b"\1" + b"\0\0\0\0")


def get(queue: str) -> bytes:
    """Return the frame that requests one message, to be settled."""
    return method_frame(GET, b"\0\0" + short(queue) + b"\0")


def qos(window: int) -> bytes:
    """Return the frame that limits later consumers; 0 is no limit."""
    return method_frame(QOS, struct.pack(">IHB", 0, window, 0))


def consume(queue: str, tag: str) -> bytes:
    """Return the frame that subscribes."""
    return method_frame(CONSUME, b"\0\0" + short(queue) + short(tag) + b"\0" + b"\0\0\0\0")


def cancel(tag: str) -> bytes:
    """Return the frame that ends a subscription."""
    return method_frame(CANCEL, short(tag) + b"\0")


CONFIRM_SELECT_FRAME = method_frame(CONFIRM_SELECT, b"\0")
CHANNEL_CLOSE_FRAME = method_frame(CHANNEL_CLOSE, struct.pack(">HBHH", 200, 0, 0, 0))

_ACKNOWLEDGE = _FRAME.pack(METHOD, 1, 13) + _METHOD.pack(*ACKNOWLEDGE)
_NOT_ACKNOWLEDGE = _FRAME.pack(METHOD, 1, 13) + _METHOD.pack(*NOT_ACKNOWLEDGE)
_REQUEUE = 2


def acknowledge(tag: int) -> bytes:
    """Return the frame that acknowledges one delivery."""
    return _SETTLEMENT.pack(_ACKNOWLEDGE, tag, 0, END)


def release(tag: int) -> bytes:
    """Return the frame that returns one delivery to its queue."""
    return _SETTLEMENT.pack(_NOT_ACKNOWLEDGE, tag, _REQUEUE, END)


class PublishForm:
    """The common part of publishes to one queue; ids are `id_bytes` long, bodies `body`."""

    def __init__(
        self, queue: str, id_bytes: int, body: bytes, *, persistent: bool, priority: int | None
    ) -> None:
        mandatory = b"\1"
        flags = _DELIVERY_MODE | _MESSAGE_ID | (0 if priority is None else _PRIORITY)
        properties = bytes([2 if persistent else 1])
        properties += b"" if priority is None else bytes([priority])
        properties += bytes([id_bytes])
        header = _HEADER.pack(60, 0, len(body), flags) + properties
        self.before_id = (
            method_frame(PUBLISH, b"\0\0" + short("") + short(queue) + mandatory)
            + _FRAME.pack(HEADER, 1, len(header) + id_bytes)
            + header
        )
        self.after_id = bytes([END]) + (frame(BODY, body) if body else b"")


class Reader:
    """Turns the bytes of a connection into arrivals, however they are cut into pieces."""

    def __init__(self, already_read: bytes = b"") -> None:
        self._rest = already_read
        self._content: Answer | None = None
        self._header: tuple[str | None, int] | None = None
        self._body_left = 0

    def read(self, received: bytes) -> Arrivals:
        """Return the frames that are complete now; raises `GarbledFrame`."""
        arrivals = Arrivals()
        data = self._rest + received if self._rest else received
        at, length = 0, len(data)
        try:
            while at + 8 <= length:
                kind, _, size = _FRAME.unpack_from(data, at)
                end = at + 7 + size
                if end >= length:
                    break
                if data[end] != END:
                    raise GarbledFrame(f"a frame ends in {data[end]:#04x}")
                self._take(kind, data[at + 7 : end], arrivals)
                at = end + 1
        except (struct.error, IndexError) as error:
            raise GarbledFrame("a frame is too short for what it says it is") from error
        self._rest = data[at:]
        return arrivals

    def _take(self, kind: int, payload: bytes, arrivals: Arrivals) -> None:
        if kind == METHOD:
            self._take_method(payload, arrivals)
        elif kind == HEADER:
            _, _, size, flags = _HEADER.unpack_from(payload)
            self._header = (_message_id(payload, flags), size)
            self._body_left = size
            if not size:
                self._complete(arrivals)
        elif kind == BODY:
            self._body_left -= len(payload)
            if self._body_left <= 0:
                self._complete(arrivals)
        elif kind == HEARTBEAT:
            arrivals.heartbeats += 1
        else:
            raise GarbledFrame(f"a frame is of the unknown type {kind}")

    def _take_method(self, payload: bytes, arrivals: Arrivals) -> None:
        method = _METHOD.unpack_from(payload)
        if method in (DELIVER, GOT, RETURNED):
            self._content = Answer(method, payload)
        elif method in (ACKNOWLEDGE, NOT_ACKNOWLEDGE):
            tag, bits = _TAG.unpack_from(payload, 4)
            arrivals.confirms.append(Confirm(tag, bool(bits & 1), method == ACKNOWLEDGE))
        else:
            arrivals.answers.append(Answer(method, payload[4:]))

    def _complete(self, arrivals: Arrivals) -> None:
        """Add a message that is complete: its method, its header, its body."""
        if self._content is None or self._header is None:
            raise GarbledFrame("a message comes without its method")
        (method, payload), (identity, size) = self._content, self._header
        self._content = self._header = None
        if method == RETURNED:
            arrivals.returned.append(identity)
            return
        # A delivery names its consumer first.
        at = 5 + payload[4] if method == DELIVER else 4
        tag, redelivered = _TAG.unpack_from(payload, at)
        arrivals.deliveries.append(Delivery(tag, bool(redelivered), identity, size, method == GOT))
        if method == GOT:
            arrivals.answers.append(Answer(method, b""))


def _message_id(payload: bytes, flags: int) -> str | None:
    """Return the message id among the properties of a header."""
    if not flags & _MESSAGE_ID:
        return None
    at, bit = _HEADER.size, 1 << 15
    for width in _BEFORE_MESSAGE_ID:
        if flags & bit:
            if width > 0:
                at += width
            elif width == 0:
                at += 1 + payload[at]
            else:
                at += 4 + int.from_bytes(payload[at : at + 4], "big")
        bit >>= 1
    return payload[at + 1 : at + 1 + payload[at]].decode(errors="replace") or None


def text_of_close(arguments: bytes) -> str:
    """Return why the broker closed a channel or a connection."""
    code = int.from_bytes(arguments[:2], "big")
    return f"{code} {arguments[3 : 3 + arguments[2]].decode(errors='replace')}"


def ready_messages(arguments: bytes) -> tuple[int, int]:
    """Return the numbers of ready messages and of consumers in the answer to a declare."""
    ready, consumers = struct.unpack_from(">II", arguments, 1 + arguments[0])
    return ready, consumers
