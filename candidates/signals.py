"""Who handles Ctrl-C, and being asked to end, which CI hosts do when they cancel a job.

Owns that a handler is put back. Refuses to know what the handlers do. Only the main thread gets
signals, so others are left alone.
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
    """Let `handler` have the signals while the body runs, where they can be had."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, its in before.items():
            signal.signal(number, its)
