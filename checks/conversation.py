"""The exchange with a candidate: one request, one answer.

No act of a candidate becomes a traceback of ours: exceptions and malformed answers are returned as
`Misbehaviour`, a finding. `BrokerproofErrs`, a fault of the gate towards a driver, is no finding
and passes through. This file also owns how a candidate is copied.
"""

from __future__ import annotations

import contextlib
import copy
import mmap
import pickle
import sys
import traceback
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast, get_args

from brokerproof.candidates.driver.candidate import DriverCandidate, DriverFault, Played
from brokerproof.checks.workers import watchdog
from brokerproof.spec.protocol.answers import (
    EVENTS_MAX,
    Accepted,
    Answer,
    ConsumerClosed,
    Delivered,
    Error,
    Event,
    LeaseExpired,
    QueueDeleted,
    shortened,
)
from brokerproof.spec.protocol.candidate import Candidate, Fingerprinted, Forkable
from brokerproof.spec.protocol.driver import LINE_BYTES_MAX, NAME_CHARACTERS_MAX
from brokerproof.spec.protocol.operations import Operation, Reset, name_of

T = TypeVar("T")


@dataclass(frozen=True)
class Misbehaviour:
    """A candidate did something that is not a valid answer; `what` is one line.

    `ends` says that its process ended, or was ended: the next run begins with another.
    """

    what: str
    hangs: bool = False
    ends: bool = False


def ask(candidate: Candidate, operation: Operation) -> Answer | Misbehaviour:
    """Hand over one operation; return the answer, or the misbehaviour in its place.

    A driver keeps its own time limits and checks its answers; it reports a fault in one line.
    """
    if isinstance(candidate, DriverCandidate):
        try:
            return candidate.handle(operation)
        except DriverFault as fault:
            return Misbehaviour(str(fault), hangs=fault.hangs, ends=True)
    try:
        with watchdog.asking(operation):
            answer = candidate.handle(operation)
    except watchdog.Hangs as hangs:
        return Misbehaviour(str(hangs), hangs=True)
    # A candidate may raise anything, and may even try to end the process: all of it is a finding.
    except (Exception, SystemExit) as raised:  # noqa: BLE001
        return _raised(operation, raised)
    if not isinstance(answer, Answer):
        return Misbehaviour(f"{name_of(operation)} returned {type(answer).__name__}, not an Answer")
    events, error = cast("tuple[object, object]", (answer.events, answer.error))
    if not isinstance(events, tuple):
        return Misbehaviour(f"{name_of(operation)} told {type(events).__name__}, not a tuple")
    if len(events) > EVENTS_MAX:
        many = f"{len(events):,} events; at most {EVENTS_MAX:,} are allowed"
        return Misbehaviour(f"{name_of(operation)} was answered with {many}")
    if error is not None and not isinstance(error, Error):
        return Misbehaviour(f"{name_of(operation)} failed with {type(error).__name__}, no Error")
    for event in events:
        if not isinstance(event, _EVENTS):
            return Misbehaviour(f"{name_of(operation)} told {type(event).__name__}, not an event")
    if events or error is not None or answer.parked is not False:
        what = _malformed(answer)
        if what:
            return Misbehaviour(f"{name_of(operation)} was answered with {what}")
    return shortened(answer)


class Tracebacks:
    """Tracebacks of a candidate's own code if wanted, each printed once over all workers."""

    MAX = 3
    CHARACTERS_MAX = 4_000
    _wanted = False
    _printed = mmap.mmap(-1, 4 * MAX)

    @classmethod
    @contextlib.contextmanager
    def asked(cls, wanted: bool) -> Iterator[None]:
        """Show tracebacks in the body, if wanted."""
        before, cls._wanted = cls._wanted, wanted
        try:
            yield
        finally:
            cls._wanted = before

    @classmethod
    def of(cls, raised: BaseException | None) -> str:
        """Return the traceback of an exception, or nothing if none is wanted."""
        if raised is None or not cls._wanted:
            return ""
        # The first frame is ours.
        own = raised.__traceback__ and raised.__traceback__.tb_next
        lines = traceback.format_exception(type(raised), raised, own)
        return "".join(lines)[-cls.CHARACTERS_MAX :]

    @classmethod
    def show(cls, raised: BaseException) -> None:
        """Print the traceback of an exception if it is new, and fewer than `MAX` were printed."""
        text = cls.of(raised)
        number = zlib.crc32(text.encode("utf-8", "replace")).to_bytes(4, "big")
        known = [cls._printed[4 * place :][:4] for place in range(cls.MAX)]
        if not text or number in known or bytes(4) not in known:
            return
        place = 4 * known.index(bytes(4))
        cls._printed[place : place + 4] = number
        with contextlib.suppress(ValueError, OSError):  # closed by the candidate
            sys.stderr.write(text)


def _raised(operation: Operation, raised: BaseException) -> Misbehaviour:
    """Return the finding for an exception, with the first line of its text."""
    try:
        text = str(raised)[:1_000].partition("\n")[0][:200]
    except Exception:  # noqa: BLE001 - the text of a candidate's own exception is its own code
        text = "(its text cannot be had)"
    Tracebacks.show(raised)
    return Misbehaviour(f"{name_of(operation)} raised {type(raised).__name__}: {text}")


_EVENTS = get_args(Event)

_FIELDS: dict[type, tuple[tuple[str, type | tuple[type, ...]], ...]] = {
    Delivered: (
        ("delivery", str),
        ("consumer", (str, type(None))),
        ("queue", str),
        ("message", str),
        ("redelivered", bool),
        ("count", (int, type(None))),
    ),
    ConsumerClosed: (("consumer", str),),
    QueueDeleted: (("queue", str),),
    Accepted: (("message", str),),
    LeaseExpired: (("message", str),),
    Error: (("code", str), ("message", str)),
    Answer: (("parked", bool),),
}
"""Types that a struct does not check when made in Python; a driver's are checked on reading."""


def _malformed(answer: Answer) -> str:
    """Return which field of an answer has a wrong type or length, or an empty text."""
    parts = (answer, *answer.events)
    for part in parts if answer.error is None else (*parts, answer.error):
        for field, kind in _FIELDS.get(type(part), ()):
            value = getattr(part, field)
            if not isinstance(value, kind):
                return (
                    f"{type(part).__name__} whose field `{field}` is of type {type(value).__name__}"
                )
            length = len(value) if type(value) is str else 1
            if not (
                length <= LINE_BYTES_MAX
                if part is answer.error
                else 1 <= length <= NAME_CHARACTERS_MAX
            ):
                return f"{type(part).__name__} whose field `{field}` has {length:,} characters"
    return ""


def first_difference(
    candidate: Candidate, played: Sequence[Played]
) -> tuple[int, Answer | Misbehaviour] | None:
    """Send the operations again; return the first answer that differs, with its number."""
    if isinstance(candidate, DriverCandidate):
        different = candidate.first_difference(played)
        if different is None:
            return None
        number, told = different
        if isinstance(told, DriverFault):
            return number, Misbehaviour(str(told), hangs=told.hangs)
        return number, told
    for number, each in enumerate(played):
        answer = ask(candidate, each.operation)
        if answer != each.answer:
            return number, answer
    return None


class CannotStart(Exception):
    """A candidate does not answer its first reset correctly; the message is one line."""


def reset(candidate: Candidate) -> None:
    """Reset a candidate; raises `CannotStart` if the reset fails."""
    answer = ask(candidate, Reset())
    if isinstance(answer, Misbehaviour):
        raise CannotStart(answer.what)
    if answer.error is not None:
        raise CannotStart(f"reset was answered {answer.error.code}: {answer.error.message}")
    if answer.events:
        raise CannotStart("reset was answered with events; its list of events is empty")


class CannotCopy(Exception):
    """A candidate could be copied before and cannot be now; the message is one line."""


@dataclass(frozen=True)
class Copier:
    """How a candidate is copied and its state fingerprinted; both raise `CannotCopy`."""

    fork: Callable[[Candidate], Candidate]
    fingerprint: Callable[[Candidate], Hashable]


def copier_of(candidate: Candidate) -> Copier | str:
    """Return how to copy a candidate, or in one line why it cannot be copied."""
    copier = Copier(
        _guarded(_own_fork if isinstance(candidate, Forkable) else copy.deepcopy),
        _guarded(_own_fingerprint if isinstance(candidate, Fingerprinted) else pickle.dumps),
    )
    try:
        copier.fingerprint(copier.fork(candidate))
    except CannotCopy as error:
        return str(error)
    return copier


# The copier is chosen once: a check for each of many thousand copies would take time.
def _own_fork(candidate: Candidate) -> Candidate:
    return cast("Candidate", cast("Forkable", candidate).fork())


def _own_fingerprint(candidate: Candidate) -> Hashable:
    return cast("Fingerprinted", candidate).fingerprint()


def _guarded(function: Callable[[Candidate], T]) -> Callable[[Candidate], T]:
    def guarded(candidate: Candidate) -> T:
        try:
            return function(candidate)
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:100]}"
            raise CannotCopy(f"it cannot be copied ({what})") from error

    return guarded
