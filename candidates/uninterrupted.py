"""Ctrl-C and SIGTERM held back while a process is started.

What they raise can come between the fork and the note of the number, or before the child has become
what it is to be. Then nobody knows of the child, and nobody ends it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from brokerproof.candidates.signals import handled_by


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let what is pressed while the body runs take effect when it has ended.

    The child of the body is not concerned: unlike a mask, a handler does not outlive an exec. Only
    the main thread is ever interrupted, so others are left alone.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    try:
        with handled_by(note):
            yield
    finally:
        for pressed in dict.fromkeys(came):
            signal.raise_signal(pressed)
