"""Handlers of Ctrl-C and of SIGTERM, by which CI hosts cancel a job.

Each handler is put back at the end. Only the main thread gets signals, so other threads change
nothing. The file does not know what the handlers do.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], None]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def handled_by(handler: Handler | signal.Handlers) -> Iterator[None]:
    """Let `handler` handle the signals while the body runs, in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, its in before.items():
            signal.signal(number, its)
