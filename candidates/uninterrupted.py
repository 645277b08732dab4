"""Ctrl-C and SIGTERM held back while a process is started.

What they raise can come between the fork and the note of the number, or before the child has become
what it is to be. Then nobody knows of the child, and nobody ends it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let what is pressed while the body runs take effect when it has ended.

    The child of the body is not concerned: unlike a mask, a handler does not outlive an exec. Only
    the main thread is ever interrupted, so others are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for pressed in dict.fromkeys(came):
            signal.raise_signal(pressed)
