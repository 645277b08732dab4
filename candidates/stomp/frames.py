"""Frames of STOMP 1.0, 1.1 and 1.2: to bytes, and from the bytes of a stream.

The file owns the grammar, the escapes of each version and the limits of a frame. It does no I/O and
does not know what a frame asks for.

Source: the STOMP specifications 1.0, 1.1 and 1.2, sections *Frames* (1.0: *Protocol*), *Value
Encoding* and *Repeated Header Entries*. STOMP 1.0 has no escapes. Version 1.2 adds one for the
carriage return, and lets a line end with one. CONNECT and CONNECTED are never escaped, because they
settle the version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Version: TypeAlias = Literal["1.0", "1.1", "1.2"]

VERSIONS: tuple[Version, ...] = ("1.0", "1.1", "1.2")

HEAD_BYTES_MAX = 2**20
"""The most bytes of a command and its headers: far more than a broker's own limits."""

BODY_BYTES_MAX = 2**28
"""The most bytes of a body."""

_ESCAPES: dict[Version, dict[str, str]] = {
    "1.0": {},
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.2": {"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"},
}
_UNESCAPES = {
    version: {escape[1]: plain for plain, escape in escapes.items()}
    for version, escapes in _ESCAPES.items()
}
_NEVER_ESCAPED = frozenset(("CONNECT", "CONNECTED", "STOMP"))


class GarbledFrameError(ConnectionError):
    """The stream is not STOMP, or a text has no form in its version; the connection is useless."""


@dataclass(frozen=True)
class Frame:
    """A command, its headers and its body."""

    command: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def encoded(frame: Frame, version: Version) -> bytes:
    """Return the bytes of a frame; one with a body states its length.

    Raises `GarbledFrameError` for a header that the version cannot express.
    """
    lines = [frame.command]
    escapes = str.maketrans({} if frame.command in _NEVER_ESCAPED else {**_ESCAPES[version]})
    for name, value in frame.headers.items():
        texts = [name.translate(escapes), value.translate(escapes)]
        if ":" in texts[0] or any(sign in text for text in texts for sign in "\n\r\0"):
            raise GarbledFrameError(f"STOMP {version} has no form for the header {name!r}")
        lines.append(":".join(texts))
    if frame.body or frame.command == "SEND":
        lines.append(f"content-length:{len(frame.body)}")
    return "\n".join((*lines, "", "")).encode() + frame.body + b"\0"


class Reader:
    r"""Takes bytes as they arrive and gives the frames that are complete.

    >>> reader = Reader("1.2")
    >>> [frame.headers for frame in reader.read(b"RECEIPT\nreceipt-id:a\\cb\n\n\0\nREC")]
    [{'receipt-id': 'a:b'}]
    """

    def __init__(self, version: Version) -> None:
        self.version = version
        self._bytes = bytearray()

    def read(self, arrived: bytes) -> Iterator[Frame]:
        """Yield each frame that is complete with what has arrived.

        Raises `GarbledFrameError`.
        """
        self._bytes += arrived
        while (frame := self._first()) is not None:
            yield frame

    def _first(self) -> Frame | None:
        waiting = self._bytes
        # Ends of lines between frames are heart-beats or padding.
        start = len(waiting) - len(waiting.lstrip(b"\r\n"))
        del waiting[:start]
        end = _end_of_head(waiting)
        if end is None:
            if len(waiting) > HEAD_BYTES_MAX:
                raise GarbledFrameError(f"a frame's head has more than {HEAD_BYTES_MAX} bytes")
            return None
        command, headers = self._head(bytes(waiting[:end]))
        length = _length(headers)
        if length is None:
            stop = waiting.find(b"\0", end)
            if stop < 0:
                if len(waiting) - end > BODY_BYTES_MAX:
                    raise GarbledFrameError(f"a body has more than {BODY_BYTES_MAX} bytes")
                return None
        else:
            stop = end + length
            if len(waiting) <= stop:
                return None
            if waiting[stop] != 0:
                raise GarbledFrameError("a body is longer than its content-length")
        body = bytes(waiting[end:stop])
        del waiting[: stop + 1]
        return Frame(command, headers, body)

    def _head(self, head: bytes) -> tuple[str, dict[str, str]]:
        try:
            lines = head.decode().split("\n")
        except UnicodeDecodeError as error:
            raise GarbledFrameError(f"a frame's head is not UTF-8: {error}") from error
        command, *entries = (line.removesuffix("\r") for line in lines)
        headers: dict[str, str] = {}
        for entry in entries:
            if not entry:
                continue
            name, colon, value = entry.partition(":")
            if not colon:
                raise GarbledFrameError(f"a header has no colon: {entry[:80]!r}")
            if command not in _NEVER_ESCAPED:
                name, value = self._unescaped(name), self._unescaped(value)
            # Of repeated headers the first counts.
            headers.setdefault(name, value)
        return command, headers

    def _unescaped(self, text: str) -> str:
        escapes = _UNESCAPES[self.version]
        if "\\" not in text or not escapes:
            return text
        signs = iter(text)
        plain = []
        for sign in signs:
            if sign == "\\":
                code = next(signs, "")
                if code not in escapes:
                    raise GarbledFrameError(f"STOMP {self.version} has no escape \\{code}")
                plain.append(escapes[code])
            else:
                plain.append(sign)
        return "".join(plain)


def _end_of_head(waiting: bytearray) -> int | None:
    """Return where the body begins: after the first empty line."""
    ends = [at + len(mark) for mark in (b"\n\n", b"\n\r\n") if (at := waiting.find(mark)) >= 0]
    return min(ends, default=None)


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("content-length")
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) > BODY_BYTES_MAX:
        raise GarbledFrameError(f"a content-length of {text[:80]!r}")
    return int(text)
