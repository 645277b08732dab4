"""A driver's process: lines to it and from it within a time limit, and its end.

The file owns pipes, deadlines, the last words on standard error, and the end of every process. It
does not know what a line says. There are no threads: standard error is read while an answer is
awaited, so a full pipe never stops a talkative driver. The common exchange is one write, one poll
and one read.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from brokerproof.candidates.uninterrupted import uninterrupted
from brokerproof.spec.protocol.driver import LINE_BYTES_MAX

CHUNK_BYTES = 2**16
LAST_WORDS_BYTES_MAX = 2**14
LAST_WORDS_LINES_MAX = 8
LAST_WORDS_CHARACTERS_MAX = 500
MEMORY_BYTES_MAX = 4 * 2**30
"""A driver's process that holds more before it answers is ended."""
LOOK_S = 0.25
"""How often the memory of a driver is checked while its answer is awaited."""
_LAST_READS_MAX = 64
_STEP_S = 0.005
_KILLED_S_MAX = 5.0
_PROC = Path("/proc")


@dataclass(frozen=True)
class Limits:
    """The time limits, in seconds (rules 44 and 45)."""

    hello_s: float = 10.0
    operation_s: float = 10.0
    drain_s: float = 30.0
    ending_s: float = 5.0


GUARD_S = Limits().ending_s
"""The time that the guard gives drivers for each step of their end, when the gate is gone."""


class NoAnswer(Exception):
    """A driver did not answer with a line; `hangs` says that its time or its memory ran out.

    `part` is the beginning of a line whose end did not come.
    """

    def __init__(self, what: str, *, hangs: bool = False) -> None:
        super().__init__(what)
        self.hangs = hangs
        self.part = b""


class Ended(NoAnswer):
    """A driver closed a pipe, most likely by ending."""


@dataclass(frozen=True)
class Ending:
    """How a process ended; `signals` had to be sent for it, none if closing its input sufficed."""

    status: int | None
    signals: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.status is not None and self.status < 0:
            return f"was ended by {signal_name(-self.status)}"
        return f"exited with status {self.status}"


class DriverProcess:
    """A running driver, the leader of a process group of its own; raises `OSError`."""

    def __init__(self, command: Sequence[str]) -> None:
        with uninterrupted():
            _Guard.start()
            self._process = subprocess.Popen(  # noqa: S603 (what to run is the user's to say)
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
            # A session's first process leads its group, whose number is that of the process.
            self.group = self._process.pid
            _Guard.tell("watch", self.group)
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes if pipe is not None)
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        self._said_last = b""
        self._words = 0
        self._ending: Ending | None = None

    def exchange(self, line: bytes, within_s: float) -> bytes:
        """Send a line and return the line that answers it, without its end.

        Raises `NoAnswer`; the process can then only be ended.
        """
        return self.receive(self.send(line, within_s))

    def send(self, line: bytes, within_s: float) -> float:
        """Send a line; return the time by which its answer must be there. Raises `NoAnswer`."""
        end, self._words = time.monotonic() + within_s, 0
        try:
            sent = os.write(self._in, line)
        except (BlockingIOError, BrokenPipeError):
            sent = 0
        if sent < len(line):
            self._send_rest(line[sent:], end)
        return end

    def receive(self, end: float) -> bytes:
        """Return the line that answers the last request, without its end. Raises `NoAnswer`."""
        chunk = self._received(end)
        # The common answer comes whole and alone.
        if len(chunk) <= LINE_BYTES_MAX and chunk.find(b"\n") == len(chunk) - 1 >= 0:
            return chunk[:-1].removesuffix(b"\r")
        chunks: list[bytes] = []
        length = 0
        while True:
            if not chunk:
                ended = Ended("its output ended")
                ended.part = b"".join(chunks)
                raise ended
            place = chunk.find(b"\n")
            if place >= 0:
                break
            chunks.append(chunk)
            length += len(chunk)
            # A line of this length may still be a longest one with its carriage return.
            if length > LINE_BYTES_MAX + 1:
                break
            try:
                chunk = self._received(end)
            except NoAnswer as error:
                error.part = b"".join(chunks)
                raise
        # A carriage return before the end belongs to the end.
        whole = b"".join((*chunks, chunk[:place])).removesuffix(b"\r") if place >= 0 else b""
        if place < 0 or len(whole) > LINE_BYTES_MAX:
            raise NoAnswer(f"it answered with a line of more than {LINE_BYTES_MAX} bytes")
        if place + 1 < len(chunk):
            raise NoAnswer("it answered with more than one line")
        return whole

    def _send_rest(self, line: bytes, end: float) -> None:
        """Write the rest of a line; meanwhile standard error is read."""
        view = memoryview(line)
        while view:
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                self._wait_to_send(end)
            except BrokenPipeError:
                raise Ended("its input was closed") from None

    def _wait_to_send(self, end: float) -> None:
        """Wait until the pipe takes more; raises `NoAnswer` if an answer comes instead."""
        self._poll.register(self._in, select.POLLOUT)
        try:
            ready = [pipe for pipe, _ in self._ready(end)]
        finally:
            self._poll.unregister(self._in)
        if self._err in ready:
            self._listen()
        if self._out in ready and self._in not in ready:
            raise NoAnswer("it answered before it had read the request")

    def _received(self, end: float) -> bytes:
        """Return the next bytes of standard output, none if it has ended."""
        while True:
            for pipe, _ in self._ready(end):
                if pipe == self._out:
                    return os.read(self._out, CHUNK_BYTES)
                self._listen()
                if self._words > LINE_BYTES_MAX:
                    written = f"{LINE_BYTES_MAX} bytes to standard error"
                    raise NoAnswer(f"it wrote more than {written} before it answered")

    def _ready(self, end: float) -> list[tuple[int, int]]:
        while True:
            # A deadline is a millisecond late rather than early, so that a poll is never in vain.
            left_s = max(0.0, end - time.monotonic())
            ready = self._poll.poll(min(left_s, LOOK_S) * 1000 + 1)
            if left_s == 0:
                raise NoAnswer("", hangs=True)
            if ready:
                return ready
            if memory_of(self.group) > MEMORY_BYTES_MAX:
                held = f"{MEMORY_BYTES_MAX / 2**30:g} GiB of memory"
                raise NoAnswer(f"it held more than {held} before it answered", hangs=True)

    def _listen(self) -> None:
        """Read the available bytes of standard error, and keep the last ones."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._err, CHUNK_BYTES)
            if not said:
                self._poll.unregister(self._err)
            self._keep(said)
            self._words += len(said)

    def _keep(self, said: bytes) -> None:
        self._said_last = (self._said_last + said)[-LAST_WORDS_BYTES_MAX:]

    @property
    def last_words(self) -> str:
        """The last lines of standard error in one line; empty if there are none."""
        text = self._said_last.decode("utf-8", "replace")
        lines = [" ".join(line.split()) for line in text.splitlines()]
        last = " / ".join([line for line in lines if line][-LAST_WORDS_LINES_MAX:])
        short = len(last) <= LAST_WORDS_CHARACTERS_MAX
        return last if short else f"…{last[1 - LAST_WORDS_CHARACTERS_MAX :]}"

    # The end.

    def end(self, grace_s: float, *, deaf: bool = False, at_once: bool = False) -> Ending:
        """Close its input, and make sure that the whole process group ends (rule 44).

        With `deaf` its output is closed too, which ends a process that never stops writing.
        `at_once` skips the wait. No process of the group is left, even if a step of this fails.
        """
        if self._ending is not None:
            return self._ending
        signals: list[str] = []
        try:
            self._close(self._process.stdin)
            if deaf:
                self._stop_listening()
            ended = not at_once and self._leader_ended_within(grace_s)
            if not ended and not at_once:
                signals.append(signal.SIGTERM.name)
                os.killpg(self.group, signal.SIGTERM)
                ended = self._leader_ended_within(grace_s)
            if ended:
                self._end_what_it_left(grace_s)
        finally:
            if not self._leader_ended_within(0):
                signals.append(signal.SIGKILL.name)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
            status = self._process.wait()
            # A killed process disappears only a moment after the signal.
            self._gone_within(_KILLED_S_MAX)
            self._hear_out()
            _Guard.tell("forget", self.group)
        self._ending = Ending(status, tuple(signals))
        return self._ending

    def _stop_listening(self) -> None:
        with contextlib.suppress(KeyError):
            self._poll.unregister(self._out)
        self._close(self._process.stdout)

    @staticmethod
    def _close(pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        pipe.close()

    def _leader_ended_within(self, seconds: float) -> bool:
        """Wait for the process to end; do not free its number, where the system can do so."""
        end = time.monotonic() + seconds
        while not self._leader_has_ended():
            if time.monotonic() >= end:
                return False
            self._discard(_STEP_S)
        return True

    def _leader_has_ended(self) -> bool:
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.group, look) is not None

    def _end_what_it_left(self, grace_s: float) -> None:
        """Ask the processes that the leader left in its group to end, and wait for that."""
        if not has_members(self.group):
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, signal.SIGTERM)
        self._gone_within(grace_s)

    def _gone_within(self, seconds: float) -> None:
        """Wait for the processes of the group to be gone, except a leader not yet waited for."""
        end = time.monotonic() + seconds
        while has_members(self.group) and time.monotonic() < end:
            self._discard(_STEP_S)

    def _discard(self, seconds: float) -> None:
        """Wait at most so long, and read all output, so that no process blocks on a full pipe."""
        for pipe, _ in self._poll.poll(seconds * 1000):
            if pipe == self._err:
                self._listen()
            elif not os.read(self._out, CHUNK_BYTES):
                self._poll.unregister(self._out)

    def _hear_out(self) -> None:
        """Read the last output, and close the pipes."""
        for _ in range(_LAST_READS_MAX):
            try:
                said = os.read(self._err, CHUNK_BYTES)
            except BlockingIOError:
                break
            if not said:
                break
            self._keep(said)
        self._close(self._process.stdout)
        self._close(self._process.stderr)


def has_members(group: int) -> bool:
    """Return whether a process group has a running process; dead ones do not count."""
    if not _PROC.is_dir():
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True
    for folder in list(_PROC.iterdir()):
        if folder.name.isdigit():
            # A process may go while its file is being read.
            with contextlib.suppress(OSError):
                # After the name in parentheses come the state, the parent and the group.
                words = Path(folder, "stat").read_bytes().rpartition(b")")[2].split()
                if int(words[2]) == group and words[0] not in (b"Z", b"X"):
                    return True
    return False


def memory_of(process: int | Literal["self"]) -> int:
    """Return how many bytes of memory a process holds; 0 if the system does not tell."""
    try:
        pages = Path(_PROC, str(process), "statm").read_bytes().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def signal_name(number: int) -> str:
    """Return a signal's name, or its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Guard:
    """The one process that ends the drivers when this one is killed before it could do so."""

    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls) -> None:
        """Start it, if it does not run."""
        if cls.process is not None and cls.process.poll() is None:
            return
        script = str(Path(__file__).with_name("guard.py"))
        cls.process = subprocess.Popen(  # noqa: S603 (a script of our own)
            [sys.executable, "-I", "-S", script, str(GUARD_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    @classmethod
    def tell(cls, order: Literal["watch", "forget"], group: int) -> None:
        """Make it watch a process group, or forget it."""
        if cls.process is not None and cls.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                cls.process.stdin.write(f"{order} {group}\n".encode())

    @classmethod
    def stop(cls) -> None:
        """Close its input and wait for its end, which comes at once if no driver is left."""
        if cls.process is not None and cls.process.stdin is not None:
            cls.process.stdin.close()
            cls.process.wait()
            cls.process = None


atexit.register(_Guard.stop)
