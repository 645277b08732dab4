"""Ctrl-C while a process is started: it takes effect afterwards, and always."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from brokerproof.candidates.signals import SIGNALS
from brokerproof.candidates.uninterrupted import uninterrupted


@pytest.fixture(autouse=True)
def _as_at_a_terminal() -> object:
    """Let Ctrl-C raise, however the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressed_before(note: Callable[[], None]) -> None:
    signal.raise_signal(signal.SIGINT)
    note()


def fail() -> None:
    raise OSError("no such program")


def test_what_is_pressed_meanwhile_takes_effect_when_all_is_noted() -> None:
    noted = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        pressed_before(lambda: noted.append("the process"))
    assert noted == ["the process"]


def test_without_it_nothing_would_be_noted() -> None:
    noted: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        pressed_before(lambda: noted.append("the process"))
    assert noted == []


def test_it_takes_effect_too_where_the_start_fails() -> None:
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        pressed_before(fail)


def test_afterwards_all_is_as_before() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with uninterrupted():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_the_child_is_interrupted_as_ever() -> None:
    raising = "import os, signal; os.kill(os.getpid(), signal.SIGTERM); print('still here')"
    with uninterrupted():
        child = subprocess.Popen([sys.executable, "-c", raising], stdout=subprocess.PIPE)
    said, _ = child.communicate(timeout=30)
    assert said == b""
    assert child.returncode == -signal.SIGTERM


def test_other_threads_are_left_alone() -> None:
    handlers = []

    def ask() -> None:
        with uninterrupted():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
