"""Ctrl-C and SIGTERM held back while a process is started.

Their exception can come between the fork and the record of the child's number, or before the child
has started its program. Then the parent does not know the child, and does not end it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from brokerproof.candidates.signals import handled_by


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the body has ended.

    The child is not affected: unlike a mask, a handler does not outlive an exec. Only the main
    thread is ever interrupted, so other threads change nothing.
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
