"""Ctrl-C, remembered: what swallows the exception does not swallow that it was pressed.

Being asked to end (SIGTERM) is taken for the same: that is how a CI host cancels a job.

Python drops what is raised in a finalizer or in a callback of the garbage collector, and a
candidate may catch anything. So the signal is noted as well as raised, and asked for where a run
can stop.

While commands are loaded nothing has been begun that would have to be undone, and modules that are
half loaded swallow what is raised in them or make another error of it. There the process ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from brokerproof.candidates.signals import handled_by

STATUS = 3
"""What a command ends with that was interrupted: nothing can be said (`ExitStatus.INCONCLUSIVE`).

It stands here as a number, for the verdicts are among what is still to be loaded.
"""


@contextmanager
def ending_at_once() -> Iterator[None]:
    """End the process in one line when Ctrl-C comes while the body loads what is to be run."""
    with handled_by(_end):
        yield


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted before anything was run\n")
    os._exit(STATUS)


class Interrupts:
    """Whether Ctrl-C was pressed while it was listened for."""

    def __init__(self) -> None:
        self.pressed = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note Ctrl-C while the body runs, where signals can be had, and raise it as always."""
        with handled_by(self._note):
            yield

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self.pressed = True
        raise KeyboardInterrupt

    def raise_if_pressed(self) -> None:
        """Raise what may have been swallowed."""
        if self.pressed:
            raise KeyboardInterrupt
