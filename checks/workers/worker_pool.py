"""A pool of worker processes: tasks run in copies of this process, results come in task order.

The pool owns the processes: their begin and end, and Ctrl-C, which a worker polls and never gets as
an exception. A worker that ends by itself, exceeds its memory, hangs in an operation, or outlives
the cap in seconds is ended, and the result of its task is `Lost`. The pool reads the workers'
output, so that it neither floods the screen nor blocks, and keeps its end.

Each process is a copy of this one (`fork`), so it has every loaded module, from whatever place; a
new interpreter (`spawn`) would have to find a candidate's module again. Results come back pickled.
"""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
import os
import pickle
import signal
import struct
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from types import FrameType, TracebackType
from typing import Final, Generic, Self, SupportsInt, TypeAlias, TypeVar

from brokerproof.candidates.driver.process import memory_of, signal_name
from brokerproof.candidates.signals import SIGNALS
from brokerproof.checks.trace.moves import Move
from brokerproof.checks.workers.watchdog import Notes, take_notes

Result = TypeVar("Result")

Tell: TypeAlias = Callable[[str, int], None]
"""Called with the progress of a task and its operations so far."""

Work: TypeAlias = Callable[[int, Tell, Callable[[], bool]], Result]
"""Does the task of a number, given functions that report progress and say whether to stop."""

POSSIBLE = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
"""Whether processes can be copied: on macOS the system's own libraries may fail in a copy."""

LOOK_S = 0.05
"""How often the pool looks at its workers' memory, time and output."""

OVER_S = 3.0
"""An operation this much beyond its limit is taken to hang."""

LATE_S = 1.5
"""A worker that is still there so long after the cap is ended."""

END_S = 15.0
"""The time for a worker to clean up when no tasks are left."""

PRINTED_BYTES_MAX = 1 << 13
READS_MAX = 64


def cores() -> int:
    """Return how many processes of ours can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Jobs:
    """A number of processes; one process sets it, and copies of the process see the change."""

    def __init__(self, jobs: int) -> None:
        self._page = mmap.mmap(-1, _JOBS.size)
        self.set(jobs)

    def set(self, jobs: int) -> None:
        """Change the number."""
        _JOBS.pack_into(self._page, 0, jobs)

    def __int__(self) -> int:
        return int(_JOBS.unpack_from(self._page)[0])


_JOBS = struct.Struct("<I")


@dataclass(frozen=True)
class Lost:
    """A worker ended during the task of this number; `how` is one line.

    `moves` is the trace that it was running, if it noted one. `by_itself`: it ended within an
    operation, and not by a kill that may have come from outside. `hangs`: an operation did not come
    back. `late`: the cap in seconds had passed.
    """

    task: int
    how: str
    moves: tuple[Move, ...] = ()
    by_itself: bool = False
    hangs: bool = False
    late: bool = False


_OUR_ENDS: Final[weakref.WeakSet[Connection]] = weakref.WeakSet()
"""The ends of all pipes to workers that this process has."""


@dataclass
class _Worker:
    """A process, the pipes to it, its notes, and the number of its task."""

    process: ForkProcess
    pipe: Connection
    output: int
    notes: Notes
    copied: int
    task: int | None = None
    printed: bytes = b""
    prints: bool = True
    asked: tuple[int, float] = (-1, 0.0)
    """The number of the last operation seen under way, and when it was seen first."""

    @property
    def number(self) -> int:
        """The number of the process."""
        assert self.process.pid is not None
        return self.process.pid

    def memory(self) -> int:
        """Return how many bytes the process holds beyond those that it was copied with."""
        return memory_of(self.number) - self.copied

    def over_its_time(self) -> str:
        """Return the limit passed by an operation that does not come back, or an empty text."""
        noted, now = self.notes.read(), time.monotonic()
        if not noted.limit_s or noted.asked != self.asked[0]:
            self.asked = noted.asked, now
        elif now - self.asked[1] > noted.limit_s + OVER_S:
            return f"did not come back within {noted.limit_s:g} s"
        return ""

    def hear(self) -> None:
        """Read what the process has printed, and keep the end of it."""
        with suppress(BlockingIOError):
            for _ in range(READS_MAX):
                said = os.read(self.output, 1 << 16)
                if not said:
                    self.prints = False
                    return
                self.printed = (self.printed + said)[-PRINTED_BYTES_MAX:]


@dataclass
class WorkerPool(Generic[Result]):
    """Tasks, numbered from 0, done by workers; a context manager that ends them all.

    `cap` is the time by `time.monotonic` at which workers stop by themselves. The pool ends a
    worker that is still there `LATE_S` later, or that holds more than `memory_max` bytes. `printed`
    is the end of the output of ended workers. `at_end` is called in each worker when the pool ends;
    a busy worker is interrupted before.
    """

    work: Work[Result]
    tasks: int
    jobs: SupportsInt
    cap: float | None = None
    memory_max: int | None = None
    at_end: Callable[[], None] | None = None
    printed: str = ""
    _begun: int = 0
    _taken: int = 0
    _done: dict[int, Result | Lost] = field(default_factory=dict)
    _interrupted: bool = False
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        """End all processes, busy or not; with `at_end` they may clean up before."""
        if self.at_end is not None:
            self.interrupt()
            for worker in self._workers:
                worker.pipe.close()
                worker.process.join(self._patience_s())
        while self._workers:
            self._end(self._workers[-1])

    def _patience_s(self) -> float:
        left = END_S if self.cap is None else self.cap + LATE_S - time.monotonic()
        return max(0.0, min(END_S, left))

    def interrupt(self) -> None:
        """Let busy workers stop with their results so far, and begin no more tasks."""
        self._interrupted = True
        for worker in self._workers:
            if worker.task is not None:
                with suppress(ProcessLookupError):
                    os.kill(worker.number, signal.SIGINT)

    def results(self, tell: Tell, may_begin: Callable[[], bool]) -> Iterator[Result | Lost]:
        """Yield the results of the tasks that are begun, in order, from the first not yet taken.

        After `interrupt` this yields the results so far of busy workers.
        """
        for come in self.looks(tell, may_begin):
            yield from come

    def looks(self, tell: Tell, may_begin: Callable[[], bool]) -> Iterator[list[Result | Lost]]:
        """Yield the same one by one, and an empty list after each look that found none."""
        while True:
            while self._taken in self._done:
                self._taken += 1
                yield [self._done.pop(self._taken - 1)]
            self._begin(may_begin)
            busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
            if not busy:
                if self._taken in self._done:
                    continue
                return
            outputs = [worker.output for worker in busy.values() if worker.prints]
            for ready in wait([*busy, *outputs], LOOK_S):
                if isinstance(ready, Connection):
                    self._hear(busy[ready], tell)
            for worker in busy.values():
                if worker in self._workers:
                    worker.hear()
                    self._look(worker)
            yield []

    def said(self) -> str:
        """Return the end of what the workers printed, busy ones included."""
        last = b"".join([worker.printed for worker in self._workers])
        return (self.printed + last.decode("utf-8", "replace"))[-PRINTED_BYTES_MAX:]

    def _begin(self, may_begin: Callable[[], bool]) -> None:
        """Give tasks to idle workers, and start as many workers as allowed."""
        while self._begun < self.tasks and not self._interrupted:
            free = next((each for each in self._workers if each.task is None), None)
            if (free is None and len(self._workers) >= int(self.jobs)) or not may_begin():
                return
            worker = free or self._start()
            with _uninterrupted():
                worker.task = self._begun
                self._begun += 1
                with suppress(BrokenPipeError):  # a worker that has ended is noticed by its silence
                    worker.pipe.send(worker.task)

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("fork")
        pipe, theirs = context.Pipe()
        output, their_output = os.pipe()
        os.set_blocking(output, False)
        notes = Notes()
        # A copy of this end in another process, of this pool or another, would keep it open.
        _OUR_ENDS.add(pipe)
        ours = [*_OUR_ENDS]
        arguments = self.work, self.at_end, theirs, their_output, ours, notes, os.getpid()
        process = context.Process(target=_serve, args=arguments)
        with _uninterrupted():  # until the copy has seen to signals itself
            process.start()
        theirs.close()
        os.close(their_output)
        worker = _Worker(process, pipe, output, notes, memory_of("self"))
        self._workers.append(worker)
        return worker

    def _hear(self, worker: _Worker, tell: Tell) -> None:
        """Receive a message of a process: its progress, its result, or its exception."""
        told: tuple[str, int] | None = None
        raised: Exception | None = None
        try:
            with _uninterrupted():
                match worker.pipe.recv():
                    case "told", told:
                        pass
                    case "raised", raised:
                        pass
                    case "done", result:
                        assert worker.task is not None
                        self._done[worker.task], worker.task = result, None
                        if self.memory_max and worker.memory() > self.memory_max / 2:
                            self._end(worker)  # what it holds would count against its next task
        except (EOFError, OSError, pickle.UnpicklingError):
            worker.process.join(OVER_S)
            self._lose(worker, _ending(worker.process.exitcode))
        if told is not None:
            tell(*told)
        if raised is not None:
            raise raised

    def _look(self, worker: _Worker) -> None:
        """End a worker that has passed a limit, or notice that it has ended."""
        if worker.task is None or worker.pipe.poll():
            return
        if worker.process.exitcode is not None:
            self._lose(worker, _ending(worker.process.exitcode))
        elif self.memory_max is not None and worker.memory() > self.memory_max:
            held = f"held more than {self.memory_max / 1e9:.1f} GB of memory"
            self._lose(worker, f"was ended because it {held}")
        elif over := worker.over_its_time():
            self._lose(worker, over, hangs=True)
        elif self.cap is not None and time.monotonic() > self.cap + LATE_S:
            self._lose(worker, "was ended because the cap in seconds had passed", late=True)

    def _lose(self, worker: _Worker, how: str, *, hangs: bool = False, late: bool = False) -> None:
        assert worker.task is not None
        noted, status = worker.notes.read(), worker.process.exitcode
        by_itself = noted.limit_s > 0 and status not in (None, -signal.SIGKILL)
        lost = Lost(worker.task, how, noted.moves, by_itself, hangs, late)
        self._done[worker.task] = lost
        self._end(worker)

    def _end(self, worker: _Worker) -> None:
        """End a process and its children, and keep the end of its output."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.number, signal.SIGKILL)
        worker.process.kill()
        worker.process.join()
        worker.hear()
        worker.pipe.close()
        os.close(worker.output)
        self.printed = self.said()
        self._workers.remove(worker)


def in_order(
    work: Callable[[int, Tell], Result],
    tasks: int,
    jobs: int,
    tell: Tell,
    memory_max: int | None = None,
) -> Generator[Result | Lost, None, None]:
    """Yield the results of tasks in their order; without a second process, in this one.

    To close the generator early ends its processes. A process that holds more than half of
    `memory_max` bytes after a task is replaced.
    """
    if min(jobs, tasks) < 2 or not POSSIBLE:
        for number in range(tasks):
            yield work(number, tell)
        return

    def task(number: int, tell: Tell, _is_to_stop: Callable[[], bool]) -> Result:
        return work(number, tell)

    with WorkerPool(task, tasks, jobs, memory_max=memory_max) as pool:
        yield from pool.results(tell, lambda: True)


def _ending(status: int | None) -> str:
    if status is None:
        return "closed the pipe by which it reports"
    if status < 0:
        return f"was ended by {signal_name(-status)}"
    return f"ended with status {status}"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block signals, so that none cuts a message in two; they take effect after the body."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_PR_SET_PDEATHSIG = 1


def _serve(
    work: Work[Result],
    at_end: Callable[[], None] | None,
    pipe: Connection,
    output: int,
    others: Sequence[Connection],
    notes: Notes,
    parent: int,
) -> None:
    """Do tasks as they come, in a process of its own, until there are no more."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    for other in others:
        other.close()
    _print_to(output)
    take_notes(notes)
    pressed: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)

    for number in SIGNALS:
        signal.signal(number, note)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def tell(what: str, operations: int) -> None:
        pipe.send(("told", (what, operations)))

    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task = pipe.recv()
            try:
                pipe.send(("done", work(task, tell, lambda: bool(pressed))))
            except MemoryError:
                pipe.send(("done", Lost(task, "ran out of memory", notes.read().moves)))
            except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
                error.add_note(traceback.format_exc())
                pipe.send(("raised", error))
    if at_end is not None:
        at_end()


def _print_to(output: int) -> None:
    """Send all output of this process to the pool, and close its input."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for place in (1, 2):
        os.dup2(output, place)
    os.close(nothing)
    os.close(output)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
