"""Ctrl-C during Z3 queries: raised between two queries, never in the middle of one.

Z3's bindings lose an exception that is raised in them, or turn it into another. Z3 itself takes the
signal during a search, and then has no answer. So a signal is recorded here, and `checked` raises
it before the next query. A second signal is raised at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import z3

_pressed: list[int] = []

LIMIT = "its limit of steps was reached"
"""The reason for an answer in place of Z3's `canceled` and `push canceled`."""


@contextmanager
def between_questions() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a query in the body, if this thread can handle signals."""
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


@contextmanager
def at_once() -> Iterator[None]:
    """Let Ctrl-C interrupt the body, which asks Z3 nothing; raises `KeyboardInterrupt`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if _pressed:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def checked(solver: z3.Solver, steps: int) -> tuple[z3.CheckSatResult, str]:
    """Return Z3's answer, and its reason if it has none; raises `KeyboardInterrupt` for Ctrl-C.

    `steps` is the solver's limit. Z3 says `canceled` at its limit, and for some solvers after
    Ctrl-C too; the number of steps taken tells the two apart.
    """
    if _pressed:
        raise KeyboardInterrupt
    before = _steps(solver)
    answer = solver.check()
    reason = solver.reason_unknown() if answer == z3.unknown else ""
    early = reason == "canceled" and _steps(solver) - before < steps
    if _pressed or early or "interrupted" in reason:
        raise KeyboardInterrupt
    return answer, LIMIT if "canceled" in reason else reason


def _steps(solver: z3.Solver) -> int:
    """Return the number of Z3's steps so far, over all solvers of the context."""
    statistics = solver.statistics()
    names = statistics.keys()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in names else 0


def _note(number: int, _frame: FrameType | None) -> None:
    if _pressed:
        raise KeyboardInterrupt
    _pressed.append(number)
