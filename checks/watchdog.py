"""The watchdog: a candidate that does not come back is a finding, not a hang of ours.

A timer ticks once a second while the gate runs. Where an operation has been under way for as many
ticks as its limit has seconds (driver protocol 1, rule 45) the tick raises `Hangs` in the midst of
the candidate's own code. Each finding costs its limit, so a stage ends with the first and nothing
shrinks it. Ticks are counted and no clock is read, since ticks come only while Python code runs:
what a stopped process or a long garbage collection costs is not the candidate's.
It is a timer of the whole process: it works in the main thread of systems that have one, and
elsewhere operations have no limit. What swallows every exception, or hangs outside of Python, is
beyond it. Drivers are not its business: they are given their time by `candidates/driver.py`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from brokerproof.spec.operations import Drain, Operation, name_of

OPERATION_S_MAX = 10.0
DRAIN_S_MAX = 30.0
_TICK_S = 1.0


class Hangs(BaseException):
    """An operation took longer than its limit; the message says which, and how long."""


class _UnderWay:
    operation: Operation | None = None
    ticks = 0


class asking:  # noqa: N801 (used as a with statement reads; a class because it is entered so often)
    """Note that an operation is under way."""

    __slots__ = ("operation",)

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __enter__(self) -> None:
        _UnderWay.ticks = 0
        _UnderWay.operation = self.operation

    def __exit__(self, *_: object) -> None:
        _UnderWay.operation = None


@contextmanager
def watching() -> Iterator[None]:
    """Let the timer tick while the body runs, where that is possible."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return
    before = signal.signal(signal.SIGALRM, _tick)
    signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _tick(_signal: int, _frame: FrameType | None) -> None:
    operation = _UnderWay.operation
    if operation is None:
        return
    limit = DRAIN_S_MAX if isinstance(operation, Drain) else OPERATION_S_MAX
    _UnderWay.ticks += 1
    if _UnderWay.ticks * _TICK_S > limit:
        # It comes again with the next tick where this one falls into a callback that drops it.
        raise Hangs(f"{name_of(operation)} did not come back within {limit:g} s")
