"""Ctrl-C while Z3 is asked: raised between two questions, never in the middle of one.

Z3's own bindings lose an exception that is raised in them, or turn it into another; and Z3 takes
the signal for itself while it searches, and then has no answer. So a signal is noted here, and
`checked` raises it before the next question. A second signal is raised at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import z3

_pressed: list[int] = []


@contextmanager
def between_questions() -> Iterator[None]:
    """Let Ctrl-C wait for the question's end while the body runs, where signals can be had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _pressed.clear()
    before = signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _pressed.clear()


def checked(solver: z3.Solver) -> tuple[z3.CheckSatResult, str]:
    """Return Z3's answer, and its reason if it has none; raises `KeyboardInterrupt` for Ctrl-C."""
    if _pressed:
        raise KeyboardInterrupt
    answer = solver.check()
    reason = solver.reason_unknown() if answer == z3.unknown else ""
    if _pressed or "interrupted" in reason:
        raise KeyboardInterrupt
    return answer, reason


def _note(number: int, _frame: FrameType | None) -> None:
    if _pressed:
        raise KeyboardInterrupt
    _pressed.append(number)
