"""The self-check: each request is checked against the protocol before it leaves.

An error found here is the gate's own, not the driver's. The check reads the bytes that leave, by
rules stated here a second time, and knows nothing of how a request was made. It does not judge
which requests are sensible, or what a driver should answer.
"""

from __future__ import annotations

import msgspec

from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.driver import LINE_BYTES_MAX, RequestShape, SayHello

KNOWN_MAX = 1 << 14
"""The most bodies of requests that are remembered as valid."""
KNOWN_BYTES_MAX = 1 << 10
"""A longer body is not remembered."""

_HAVE_A_TURN = ("hello", "reset", "publish", "consume", "credit")


class BrokerproofErrs(BaseException):
    """Brokerproof was about to break its own protocol; this is no fault of the candidate.

    It is not an `Exception`, so that no handler takes it for a candidate's failure.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"brokerproof itself is wrong, and the driver is not to blame: {what}; "
            "please report this with the command that you ran"
        )


class SelfCheck:
    """The requests to a driver since it was started, as far as the rules need them."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(RequestShape)
        self._next = 0
        self._waiting = False
        self._said_hello = False
        self._messages: set[str] = set()
        self._consumers: set[str] = set()
        self._new: tuple[set[str], str] | None = None
        self._known: dict[bytes, msgspec.Struct | None] = {}
        """What follows the id in valid requests; None if such a request is valid at any time."""

    def before(self, line: bytes) -> None:
        """Check a line that is about to leave; raises `BrokerproofErrs`."""
        beginning = b'{"id":%d,' % self._next
        body = line[len(beginning) :] if line.startswith(beginning) else b""
        if body in self._known and self._said_hello and not self._waiting:
            known = self._known[body]
            wrong = "" if known is None else self._out_of_turn(known)
        else:
            wrong = self._wrong(line, body)
        if wrong:
            shown = line[:200].decode("utf-8", "replace").rstrip("\n")
            raise BrokerproofErrs(f"{wrong} in the request {shown}")
        self._next += 1
        self._waiting = True

    def after(self, answer: Answer | None = None) -> None:
        """Note that the request was answered: the next may leave.

        An id counts as used unless the driver says for certain that the operation did not happen.
        """
        self._waiting = False
        if self._new is None:
            return
        used, name = self._new
        if answer is None or answer.error is None or not answer.error.definite:
            used.add(name)
        self._new = None

    def _wrong(self, line: bytes, body: bytes) -> str:
        """Return the fault of a line, or an empty text; `body` follows its id, if that is known."""
        if self._waiting:
            return "the last request is not answered yet (rule 41)"
        if len(line) > LINE_BYTES_MAX + 1:
            return f"a line of more than {LINE_BYTES_MAX} bytes (rule 43)"
        if line.find(b"\n") != len(line) - 1 or line.endswith(b"\r\n"):
            return "not one line with its end (rule 43)"
        try:
            request = self._decoder.decode(line)
        except (UnicodeDecodeError, msgspec.DecodeError) as error:
            return f"{error} (rules 36, 43, 54 and 55)"
        if request.id != self._next:
            return f"the id {request.id} where {self._next} is the next (rule 42)"
        if body and len(body) <= KNOWN_BYTES_MAX:
            self._remember(body, request)
        return self._out_of_turn(request)

    def _remember(self, body: bytes, request: msgspec.Struct) -> None:
        """Remember a body that is valid behind any leading id.

        A body with an id of its own is not remembered: that id would replace the leading one.
        """
        another = self._decoder.decode(b'{"id":%d,%b' % (self._next + 1, body))
        if another.id == self._next + 1:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            kind = request.__struct_config__.tag
            self._known[body] = request if kind in _HAVE_A_TURN else None

    def _out_of_turn(self, request: msgspec.Struct) -> str:
        """Return the fault of a request in the present state, or an empty text."""
        if isinstance(request, SayHello):
            self._said_hello = True
            return ""
        if not self._said_hello:
            return "an operation before hello (rule 47)"
        match request.__struct_config__.tag:
            case "reset":
                self._messages.clear()
                self._consumers.clear()
            case "publish":
                return self._used(self._messages, request.message.id, "message", 16)  # type: ignore[attr-defined]
            case "consume":
                return self._used(self._consumers, request.consumer, "consumer", 25)  # type: ignore[attr-defined]
            case "credit":
                if (request.consumer is None) == (request.channel is None):  # type: ignore[attr-defined]
                    return "credit is for either a consumer or a channel"
        return ""

    def _used(self, names: set[str], name: str, what: str, rule: int) -> str:
        if name in names:
            return f"the {what} id {name!r} for the second time since the last reset (rule {rule})"
        self._new = (names, name)
        return ""
