"""Side by side: tasks done in several processes at once, their results taken in the tasks' order.

Owns the processes: how they begin, that Ctrl-C reaches them as a question that they ask and never
as an exception, and that none is left behind. Refuses to know what the tasks are. Each process is a
copy of this one (`fork`), so it has whatever was loaded, from wherever it came; a new interpreter
(`spawn`) would have to find a candidate's module again. What was worked out comes back pickled.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from types import FrameType, TracebackType
from typing import Generic, Self, TypeAlias, TypeVar

from brokerproof.candidates.driver_process import signal_name
from brokerproof.candidates.signals import SIGNALS

Result = TypeVar("Result")

Tell: TypeAlias = Callable[[str, int], None]
"""Told what a task has got to, and the operations so far."""

Work: TypeAlias = Callable[[int, Tell, Callable[[], bool]], Result]
"""Does the task of a number; told of progress, and asking whether it is to stop."""

POSSIBLE = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
"""Whether processes can be copied: on macOS the system's own libraries may fail in a copy."""


def cores() -> int:
    """Return how many processes of ours can run at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessEnded(Exception):
    """A process ended in the midst of the task of this number; the message says how."""

    def __init__(self, task: int, how: str) -> None:
        super().__init__(how)
        self.task = task


@dataclass
class _Worker:
    """A process, the pipe to it, and the number of the task that it is at."""

    process: ForkProcess
    pipe: Connection
    task: int | None = None


class SideBySide(Generic[Result]):
    """So many tasks, done by so many processes; as a context manager, which ends them all."""

    def __init__(self, work: Work[Result], tasks: int, jobs: int) -> None:
        self._tasks = tasks
        self._begun = self._taken = 0
        self._done: dict[int, Result] = {}
        self._interrupted = False
        self._workers: list[_Worker] = []
        context = multiprocessing.get_context("fork")
        for _ in range(min(jobs, tasks)):
            pipe, theirs = context.Pipe()
            # A copy of this end in another process would keep it open when this process is gone.
            ours = [pipe, *(each.pipe for each in self._workers)]
            process = context.Process(target=_serve, args=(work, theirs, ours), daemon=True)
            with _uninterrupted():  # until the copy has seen to signals itself
                process.start()
            theirs.close()
            self._workers.append(_Worker(process, pipe))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the processes, whatever they are at."""
        for worker in self._workers:
            worker.pipe.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def interrupt(self) -> None:
        """Let those at work stop with what they have, and begin nothing more."""
        self._interrupted = True
        for worker in self._workers:
            if worker.process.pid is not None and worker.task is not None:
                with suppress(ProcessLookupError):
                    os.kill(worker.process.pid, signal.SIGINT)

    def results(self, tell: Tell, may_begin: Callable[[], bool]) -> Iterator[Result]:
        """Yield the results of the tasks that are begun, in order, from the first not yet taken.

        Raises `ProcessEnded`. After `interrupt` this yields what those at work had.
        """
        while True:
            while self._taken in self._done:
                self._taken += 1
                yield self._done.pop(self._taken - 1)
            self._begin(may_begin)
            busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                self._hear(busy[pipe], tell)

    def _begin(self, may_begin: Callable[[], bool]) -> None:
        for worker in self._workers:
            if self._interrupted or self._begun == self._tasks or not may_begin():
                return
            if worker.task is None:
                with _uninterrupted():
                    worker.task = self._begun
                    self._begun += 1
                    with suppress(BrokenPipeError):  # whoever has ended is found out by its silence
                        worker.pipe.send(worker.task)

    def _hear(self, worker: _Worker, tell: Tell) -> None:
        """Take what a process says: how far it is, or its result."""
        task = worker.task
        assert task is not None
        told: tuple[str, int] | None = None
        try:
            with _uninterrupted():
                is_result, said = worker.pipe.recv()
                if is_result:
                    self._done[task], worker.task = said, None
                else:
                    told = said
        except (EOFError, ConnectionResetError):
            worker.process.join()
            raise ProcessEnded(task, _ending(worker.process.exitcode)) from None
        if told is not None:
            tell(*told)


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was ended by {signal_name(-status)}"
    return f"ended with status {status}"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let no signal cut a message in two: it is raised when the body has ended."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(work: Work[Result], pipe: Connection, others: Sequence[Connection]) -> None:
    """Do tasks as they come, in a process of its own, until nobody gives any."""
    for other in others:
        other.close()
    pressed: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)

    for number in SIGNALS:
        signal.signal(number, note)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task = pipe.recv()
            result = work(
                task,
                lambda what, operations: pipe.send((False, (what, operations))),
                lambda: bool(pressed),
            )
            pipe.send((True, result))
