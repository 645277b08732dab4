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


def checked(solver: z3.Solver, steps: int) -> tuple[z3.CheckSatResult, str]:
    """Return Z3's answer, and its reason if it has none; raises `KeyboardInterrupt` for Ctrl-C.

    `steps` is the limit that the solver was given. Z3 says `canceled` where it is used up, and for
    some solvers where Ctrl-C was pressed too: which it was, only the steps tell.
    """
    if _pressed:
        raise KeyboardInterrupt
    before = _steps(solver)
    answer = solver.check()
    reason = solver.reason_unknown() if answer == z3.unknown else ""
    early = reason == "canceled" and _steps(solver) - before < steps
    if _pressed or early or "interrupted" in reason:
        raise KeyboardInterrupt
    return answer, reason


def _steps(solver: z3.Solver) -> int:
    """Return how many of its steps Z3 has taken, with all solvers of the same context."""
    statistics = solver.statistics()
    names = statistics.keys()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in names else 0


def _note(number: int, _frame: FrameType | None) -> None:
    if _pressed:
        raise KeyboardInterrupt
    _pressed.append(number)
