"""Ctrl-C, remembered, so that code which swallows the exception does not lose it.

A request to end (SIGTERM) counts as Ctrl-C: a CI host cancels a job by it. Python drops exceptions
in a finalizer or in a callback of the garbage collector, and a candidate may catch anything. So the
signal is noted as well as raised, and checked where a run can stop.

While commands load, Ctrl-C ends the process at once. Nothing has begun that would have to be
undone, and half-loaded modules swallow an exception or turn it into another error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from brokerproof.candidates.signals import handled_by

STATUS = 3
"""The exit status of an interrupted command, equal to `ExitStatus.INCONCLUSIVE`.

It is a number here, since the verdicts are among the modules still to be loaded.
"""


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process with one line when Ctrl-C comes while the body loads modules."""
    with handled_by(_end):
        yield


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted before anything was run (exit status 3)\n")
    os._exit(STATUS)


class Interrupts:
    """Whether Ctrl-C was pressed inside `listening`."""

    def __init__(self) -> None:
        self.pressed = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note Ctrl-C while the body runs, where signals can be handled, and raise it as always."""
        with handled_by(self._note):
            yield

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self.pressed = True
        raise KeyboardInterrupt

    def raise_if_pressed(self) -> None:
        """Raise an interrupt that may have been swallowed."""
        if self.pressed:
            raise KeyboardInterrupt
