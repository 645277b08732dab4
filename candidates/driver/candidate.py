"""A candidate that is a program of its own, in any language, named ``exec:COMMAND``.

The file owns the gate's side of driver protocol 1: the requests, the form of answers, and the words
for a driver's faults, one line each. It does not judge whether an answer is right. The next reset
starts a failed driver again, so that a gate can go on and shorten its findings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import select
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from brokerproof.candidates.driver.claims import unknown_names
from brokerproof.candidates.driver.process import (
    DriverProcess,
    Ended,
    Ending,
    Limits,
    NoAnswer,
)
from brokerproof.candidates.driver.self_check import BrokerproofErrs, SelfCheck
from brokerproof.candidates.unavailable import CandidateUnavailable, described
from brokerproof.spec.protocol.answers import EVENTS_MAX, Answer, shortened
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.driver import AnswerShape, DriverAnswer, DriverHello
from brokerproof.spec.protocol.operations import Drain, Operation, Reset, name_of

FORM = "exec:"
_HELLO = b'{"id":0,"op":"hello","protocol":1}\n'
_BOM = b"\xef\xbb\xbf"
_LIMITS = Limits()

KNOWN_MAX = 1 << 14
"""The most answers whose meaning is cached."""
KNOWN_BYTES_MAX = 1 << 10
"""A longer answer is not cached."""

HURRIED_S = 0.3
"""The time for a process to end when the gate is interrupted or out of time."""

PART_BYTES_MAX = 80
"""The most of an unfinished line that is shown."""


class DriverFault(Exception):
    """A driver broke the protocol; the message is one line that begins with the operation.

    `hangs` says that its time ran out.
    """

    def __init__(self, what: str, *, hangs: bool = False) -> None:
        super().__init__(what)
        self.hangs = hangs


class Played(Protocol):
    """An operation that was sent, and the answer to it."""

    @property
    def operation(self) -> Operation:
        """The operation."""
        ...

    @property
    def answer(self) -> Answer:
        """The answer."""
        ...


class DriverCandidate:
    """A driver under the gate; construction starts it and reads its hello.

    Raises `CandidateUnavailable`, later `DriverFault`, and `BrokerproofErrs` if our own request is
    wrong. Any fault of a driver ends its process.
    """

    def __init__(
        self,
        address: str,
        limits: Limits = _LIMITS,
        process_of: Callable[[Sequence[str]], DriverProcess] = DriverProcess,
    ) -> None:
        self._limits, self._process_of = limits, process_of
        self._command = _command_of(address)
        if not hasattr(select, "poll"):
            raise CandidateUnavailable(
                address,
                what="drivers need pipes that can be polled, which this system does not have",
                remedy="run the gate on Linux or macOS",
            )
        self._process: DriverProcess | None = None
        self._fault = DriverFault("it was not started")
        self._stubborn = False
        self._next, self._check, self._sent = 0, SelfCheck(), 0.0
        self._encode = msgspec.json.Encoder().encode
        self._check_form = msgspec.json.Decoder(AnswerShape).decode
        self._decode = msgspec.json.Decoder(DriverAnswer).decode
        self._known: dict[bytes, Answer] = {}
        self.warnings: tuple[str, ...] = ()
        try:
            self._hello = self._start()
        except DriverFault as fault:
            raise CandidateUnavailable(
                address,
                what=str(fault),
                remedy="see docs/reference/protocol.md, Lines and processes",
            ) from fault
        except OSError as error:
            raise CandidateUnavailable(
                address,
                what=f"it cannot be started: {error.strerror or described(error)}",
                remedy="check the program's name, and that it may be executed",
            ) from error

    def hello(self) -> Hello:
        """Return the driver's hello from its first start."""
        return self._hello

    def handle(self, operation: Operation) -> Answer:
        """Send an operation to the driver; raises `DriverFault`."""
        name = name_of(operation)
        if self._process is None:
            if not isinstance(operation, Reset):
                raise DriverFault(str(self._fault), hangs=self._fault.hangs)
            self._start_again()
        limit_s = self._limit_s(operation)
        line = self._line(operation)
        try:
            end = self._send(name, line, limit_s)
            told = self._understood(name, self._answered(name, end, limit_s), self._next - 1)
        except (DriverFault, BrokerproofErrs):
            raise
        except BaseException as error:
            self._abandon(name, error)
            raise
        self._check.after(told)
        return told

    def first_difference(self, played: Sequence[Played]) -> tuple[int, Answer | DriverFault] | None:
        """Send the operations again; return the first answer that differs, with its number.

        A fault is a difference too; at most one operation is sent beyond the first. To save time,
        an answer is checked while the driver works on the next request, and the request after that
        is encoded then.
        """
        if self._process is None:
            return (0, self._fault) if played else None
        at, name = 0, ""
        try:
            line, answered = self._line(played[0].operation) if played else b"", b""
            for number, each in enumerate(played):
                at, name, limit_s = number, name_of(each.operation), self._limit_s(each.operation)
                end = self._send(name, line, limit_s)
                if number:
                    at = number - 1
                    said = self._understood(name, answered, self._next - 2)
                    if said != played[at].answer:
                        # A fault of the request under way comes after the difference.
                        with contextlib.suppress(DriverFault):
                            self._answered(name, end, limit_s)
                            self._check.after(each.answer)
                        return at, said
                at = number
                if number + 1 < len(played):
                    line = self._line(played[number + 1].operation)
                answered = self._answered(name, end, limit_s)
                self._check.after(each.answer)
            if not played:
                return None
            told = self._understood(name, answered, self._next - 1)
            return None if told == played[at].answer else (at, told)
        except DriverFault as fault:
            return at, fault
        except BrokerproofErrs:
            raise
        except BaseException as error:
            self._abandon(name, error)
            raise

    def give_up(self, what: str) -> None:
        """End the driver because of an answer; the next reset starts it again."""
        if self._process is not None:
            self._fault = DriverFault(what)
            self._end_process(deaf=True)

    def close(self) -> None:
        """End the driver."""
        self.end()

    def end(self) -> str:
        """End the driver; return the fault of its end, or an empty text (rule 44).

        A failed driver has been ended already. One that had to be killed before is killed at once.
        """
        was_killed_before = self._stubborn
        signals = " and ".join(self._end_process().signals)
        if not signals:
            return ""
        if was_killed_before:
            return "it was killed without being waited for, since it had to be killed before"
        grace_s = self._limits.ending_s
        return f"no end within {grace_s:g} s of the end of its input; it took {signals}"

    # One request.

    def _limit_s(self, operation: Operation) -> float:
        return self._limits.drain_s if type(operation) is Drain else self._limits.operation_s

    def _line(self, operation: Operation) -> bytes:
        """Return the next request."""
        try:
            body = self._encode(operation)
        except (UnicodeEncodeError, OverflowError) as error:
            name = name_of(operation)
            raise BrokerproofErrs(f"{name} cannot be written as JSON: {error}") from error
        return b'{"id":%d,%b\n' % (self._next, body[1:])

    def _send(self, name: str, line: bytes, limit_s: float) -> float:
        """Send a request, and return when its answer must be there."""
        assert self._process is not None
        self._check.before(line)
        self._next += 1
        self._sent = time.monotonic()
        try:
            return self._process.send(line, limit_s)
        except NoAnswer as error:
            raise self._not_answered(name, error, limit_s) from error

    def _answered(self, name: str, end: float, limit_s: float) -> bytes:
        """Return the line that answers the last request."""
        assert self._process is not None
        try:
            return self._process.receive(end)
        except NoAnswer as error:
            raise self._not_answered(name, error, limit_s) from error

    def _understood(self, name: str, line: bytes, asked: int) -> Answer:
        """Return the answer to request `asked` in a line.

        A search gets the same answers again and again. An answer that differs from an earlier one
        only in the id, which leads the line, has the same meaning.
        """
        said = _behind_the_id(line, asked)
        known = self._known.get(said)
        if known is not None:
            return known
        self._check_text(name, line)
        try:
            self._check_form(line)
            answer = self._decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._out_of_form(name, line, error) from error
        wrong = _wrong_id(answer.id, asked) or _contradiction(answer)
        if wrong:
            raise self._failed(name, wrong)
        events = () if answer.events is msgspec.UNSET else answer.events
        told = shortened(Answer(events, answer.error, parked=answer.parked))
        if len(told.events) > EVENTS_MAX:
            raise self._failed(name, f"it told {len(events):,} events, not at most {EVENTS_MAX:,}")
        if said and b'"id"' not in said and len(said) <= KNOWN_BYTES_MAX:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[said] = told
        return told

    def _check_text(self, name: str, line: bytes) -> None:
        """Check that an answer is a line of UTF-8 and not empty."""
        if not line.isascii():
            if line.startswith(_BOM):
                raise self._failed(name, "its answer begins with a byte order mark")
            try:
                line.decode()
            except UnicodeDecodeError as error:
                raise self._failed(name, f"its answer is not UTF-8: {error}") from error
        if not line.strip():
            raise self._failed(name, "it answered with an empty line")

    # Faults.

    def _out_of_form(self, name: str, line: bytes, error: Exception) -> DriverFault:
        begun = line[:PART_BYTES_MAX].decode("utf-8", "replace")
        return self._failed(name, f"its answer is not in form: {error}: {begun!r}")

    def _not_answered(self, name: str, error: NoAnswer, limit_s: float) -> DriverFault:
        half = ""
        if error.part:
            begun = error.part[:PART_BYTES_MAX].decode("utf-8", "replace")
            half = f", after {len(error.part)} bytes of a line that was not ended: {begun!r}"
        if error.hangs:
            what = str(error) or f"no answer within {limit_s:g} s"
            return self._failed(name, f"{what}{half}", hangs=True)
        return self._failed(name, f"{error}{half}", ended=isinstance(error, Ended), half=half)

    def _failed(
        self, name: str, what: str, *, hangs: bool = False, ended: bool = False, half: str = ""
    ) -> DriverFault:
        """End the process and return the fault, with how it ended and its last words."""
        process = self._process
        assert process is not None
        # Its output while it is being ended is no reason, unless it was ending by itself.
        last_words = process.last_words
        ending = self._end_process(deaf=not ended)
        if ended:
            last_words = process.last_words
            how = what if ending.signals else f"the driver {ending}{half}"
            what = f"no answer, {how}"
        if last_words:
            what += f"; it said last: {last_words}"
        self._fault = DriverFault(f"{name}: {what}", hangs=hangs)
        return self._fault

    def _abandon(self, name: str, error: BaseException) -> None:
        """End the process during a request: its answer would be taken for the next one's.

        The error is Ctrl-C or the end of a cap in seconds; it gets a note of the request under way.
        """
        self._fault = DriverFault(f"{name}: interrupted")
        error.add_note(f"{name} had not been answered for {time.monotonic() - self._sent:.1f} s")
        self.hurry()
        self._end_process(deaf=True)

    def hurry(self) -> None:
        """Shorten the time for the process to end, from now on."""
        self._limits = dataclasses.replace(self._limits, ending_s=HURRIED_S)

    # Beginning and end.

    def _start(self) -> Hello:
        """Start the process and read its hello; raises `DriverFault` and `OSError`."""
        self._process = self._process_of(self._command)
        self._next, self._check = 0, SelfCheck()
        try:
            limit_s = self._limits.hello_s
            end = self._send("hello", _HELLO, limit_s)
            return self._introduced(self._answered("hello", end, limit_s))
        except (DriverFault, BrokerproofErrs):
            raise
        except BaseException as error:
            self._abandon("hello", error)
            raise

    def _introduced(self, line: bytes) -> Hello:
        """Return the hello in a line."""
        self._check_text("hello", line)
        try:
            answer = msgspec.json.decode(line, type=DriverHello)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._out_of_form("hello", line, error) from error
        if wrong := _wrong_id(answer.id, 0):
            raise self._failed("hello", wrong)
        hello = _introduction(answer)
        if isinstance(hello, str):
            raise self._failed("hello", hello)
        self.warnings = unknown_names(line)
        self._check.after()
        return hello

    def _start_again(self) -> None:
        """Start the driver after it failed; its hello must be the same again."""
        try:
            hello = self._start()
        except OSError as error:
            why = error.strerror or described(error)
            self._fault = DriverFault(f"it cannot be started again: {why}")
            raise self._fault from error
        except DriverFault as fault:
            self._fault = DriverFault(f"when it was started again, {fault}", hangs=fault.hangs)
            raise self._fault from fault
        if hello != self._hello:
            raise self._failed("hello", "it introduced itself differently when started again")

    def _end_process(self, *, deaf: bool = False) -> Ending:
        """End the process, if there is one; one that had to be killed once is killed at once."""
        process, self._process = self._process, None
        if process is None:
            return Ending(None)
        ending = process.end(self._limits.ending_s, deaf=deaf, at_once=self._stubborn)
        self._stubborn = self._stubborn or signal.SIGKILL.name in ending.signals
        return ending


def _behind_the_id(line: bytes, asked: int) -> bytes:
    """Return the rest of a line after the id of the request, or nothing without that id."""
    for beginning in (b'{"id":%d,' % asked, b'{"id": %d,' % asked):
        if line.startswith(beginning):
            return line[len(beginning) :]
    return b""


def _command_of(address: str) -> list[str]:
    remedy = f"write {FORM} and a command line, such as {FORM}'python driver.py'"
    try:
        command = shlex.split(address.removeprefix(FORM))
    except ValueError as error:
        raise CandidateUnavailable(address, what=f"{error}".lower(), remedy=remedy) from error
    if not command:
        raise CandidateUnavailable(address, what="this names no program", remedy=remedy)
    return command


def _introduction(answer: DriverHello) -> Hello | str:
    """Return the hello in an answer, or the fault of the answer."""
    if not answer.ok or answer.error is not None:
        reason = "no reason" if answer.error is None else answer.error.message or answer.error.code
        return f"it was answered with an error: {reason}"
    if answer.name is msgspec.UNSET:
        return "its answer lacks the field `name`"
    if answer.version is msgspec.UNSET:
        return "its answer lacks the field `version`"
    if answer.capabilities is msgspec.UNSET:
        return "its answer lacks the field `capabilities`"
    if answer.events:
        return "its answer has events"
    # The result of `inspect` has no form on the wire yet (rule 50).
    claims = msgspec.structs.replace(answer.capabilities, inspect=False)
    return Hello(name=answer.name, version=answer.version, capabilities=claims)


def _wrong_id(answered: int, asked: int) -> str:
    """Return the fault of an answer's id, or an empty text."""
    if answered == asked:
        return ""
    if answered == asked - 1:
        return f"request {answered} was answered twice"
    return f"its answer has the id {answered}, the request has {asked}"


def _contradiction(answer: DriverAnswer) -> str:
    """Return a contradiction within an answer, or an empty text."""
    if answer.ok and answer.error is not None:
        return "its answer is ok and has an error"
    if not answer.ok and answer.error is None:
        return "its answer is not ok and lacks the field `error`"
    if answer.ok and answer.events is msgspec.UNSET:
        return "its answer is ok and lacks the field `events`"
    return ""
