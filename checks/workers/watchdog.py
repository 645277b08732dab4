"""The watchdog: an operation that hangs is a finding, and a cap in seconds is kept.

A timer ticks while the gate runs. If an operation exceeds its limit (driver protocol 1, rule 45),
the tick raises `Hangs` inside the candidate's own code. Each such finding costs its limit, so a
stage ends with the first and does not shrink it. Ticks are counted instead of reading a clock:
ticks come only while Python code runs, so the time of a stopped process or of a long garbage
collection is not charged to the candidate. Only the cap is read from the clock: `CapReached` leaves
a step that is still under way when it has passed.

The timer works in the main thread, on systems that have one; elsewhere operations have no limit. A
candidate that swallows every exception, or hangs outside of Python, escapes it. Then the worker
pool ends the process and reads the operation under way from `Notes`. Drivers keep their own time
limits (`candidates/driver/candidate.py`).
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

import msgspec

from brokerproof.checks.trace.moves import Move
from brokerproof.spec.protocol.operations import Drain, Operation, name_of

OPERATION_S_MAX = 10.0
DRAIN_S_MAX = 30.0
TICK_S = 0.5
CAP_S = 0.3
"""The extra time for a step that is under way at the cap."""


class Hangs(BaseException):
    """An operation took longer than its limit; the message says which, and how long."""


class CapReached(BaseException):
    """The cap in seconds has passed during a step; its texts say what was under way."""

    @property
    def under_way(self) -> str:
        """The operations that had not returned, if any."""
        return "; ".join(filter(None, [str(self), *getattr(self, "__notes__", ())]))


class Step(Protocol):
    """A step of a run, by its move."""

    @property
    def move(self) -> Move:
        """The move that was made."""
        ...


_HEAD = struct.Struct("<QdI")
"""The number of operations begun, the limit of the one under way or 0, the length of the notes."""


@dataclass(frozen=True)
class Noted:
    """A process's last note: the number of its operation, the operation's limit, and its trace."""

    asked: int
    limit_s: float
    moves: tuple[Move, ...]


class Notes:
    """A page of memory that a worker writes and its pool reads, also when the worker is gone."""

    BYTES = 1 << 20

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, self.BYTES)
        self._asked = 0
        self._last: object = None
        self._steps = 0
        self._prefix = b""

    def under_way(self, limit_s: float) -> None:
        """Note that an operation begins, or with 0 that it has ended."""
        self._asked += 1
        self._page[:16] = _UNDER_WAY(self._asked, limit_s)

    def trace(self, before: Sequence[Step], move: Move) -> None:
        """Note the steps of a run and the move that is made now."""
        last = before[-1] if before else None
        if last is not self._last or len(before) != self._steps:
            self._prefix = b"".join([_encoded(each.move) for each in before])
            self._last, self._steps = last, len(before)
        text = _ARRAY(0xDC, self._steps + 1) + self._prefix + _encoded(move)
        if len(text) <= self.BYTES - _HEAD.size:
            self._page[16 : _HEAD.size + len(text)] = _LENGTH(len(text)) + text

    def read(self) -> Noted:
        """Return the last note."""
        asked, limit_s, length = _HEAD.unpack_from(self._page)
        text = self._page[_HEAD.size : _HEAD.size + length]
        try:
            moves = msgspec.msgpack.decode(text, type=tuple[Move, ...]) if length else ()
        except msgspec.DecodeError:  # the process was ended in the midst of a note
            moves = ()
        return Noted(asked, limit_s, moves)


_UNDER_WAY = struct.Struct("<Qd").pack
_LENGTH = struct.Struct("<I").pack
_ARRAY = struct.Struct(">BH").pack
"""The head of an array in MessagePack: a search notes the same beginning again and again."""
_encoded = msgspec.msgpack.Encoder().encode


class _State:
    operation: Operation | None = None
    ticks = 0
    notes: Notes | None = None
    process = os.getpid()
    cap: float | None = None
    capped = False


def take_notes(notes: Notes) -> None:
    """Let this process, a worker, note its operations from now on."""
    _State.notes, _State.process = notes, os.getpid()


def note_trace(before: Callable[[], Sequence[Step]], move: Move) -> None:
    """Note which trace is being run, if this process is a worker."""
    if _State.notes is not None:
        _State.notes.trace(before(), move)


class asking:  # noqa: N801 (used as a with statement reads; a class because it is entered so often)
    """Note that an operation is under way."""

    __slots__ = ("operation",)

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __enter__(self) -> None:
        _State.ticks = 0
        _State.operation = self.operation
        if _State.notes is not None:
            _State.notes.under_way(limit_of(self.operation))

    def __exit__(self, *_: object) -> None:
        _State.operation = None
        if _State.notes is not None:
            if os.getpid() != _State.process:
                os._exit(0)  # a copy of this process that the candidate has made is no worker
            _State.notes.under_way(0.0)


def limit_of(operation: Operation) -> float:
    """Return how many seconds an operation may take."""
    return DRAIN_S_MAX if isinstance(operation, Drain) else OPERATION_S_MAX


@contextmanager
def watching(cap: float | None = None) -> Iterator[None]:
    """Let the timer tick while the body runs, where that is possible.

    `cap` is the time by `time.monotonic` after which a step is left with `CapReached`.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return
    before, cap_before = signal.signal(signal.SIGALRM, _tick), _State.cap
    _State.cap, _State.capped = cap, False
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _State.cap = cap_before
        signal.signal(signal.SIGALRM, before)


def _under_way(operation: Operation | None) -> str:
    if operation is None:
        return ""
    return f"{name_of(operation)} had not come back for {_State.ticks * TICK_S:g} s"


def _tick(_signal: int, _frame: FrameType | None) -> None:
    operation = _State.operation
    _State.ticks += 1
    if _State.cap is not None and time.monotonic() > _State.cap + CAP_S:
        # Once is enough for our own code; a candidate's may swallow it.
        if operation is not None or not _State.capped:
            _State.capped = True
            raise CapReached(_under_way(operation))
        return
    if operation is None:
        return
    limit = limit_of(operation)
    if _State.ticks * TICK_S > limit:
        raise Hangs(f"{name_of(operation)} did not come back within {limit:g} s")
