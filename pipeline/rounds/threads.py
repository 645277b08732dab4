"""The threads of rounds: as many as a round has clients, the same ones for every round.

A candidate may keep a connection for each thread; threads that ended with their round would leave
it one more each time. A thread that hangs cannot be ended: it goes with the process.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Job: TypeAlias = Callable[[], None]


@dataclass
class Threads:
    """Threads that wait for jobs."""

    _inboxes: list[queue.SimpleQueue[Job | None]] = field(default_factory=list)

    def run(self, jobs: Sequence[Job], within_s: float) -> list[int]:
        """Run each job on a thread, all begun at once; return those that did not come back.

        An exception of a job is raised here.
        """
        while len(self._inboxes) < len(jobs):
            self._inboxes.append(queue.SimpleQueue())
            threading.Thread(target=_serve, args=(self._inboxes[-1],), daemon=True).start()
        barrier = threading.Barrier(len(jobs))
        ended: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()

        def done(number: int, job: Job) -> None:
            barrier.wait()
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - raised again below
                ended.put((number, error))
            else:
                ended.put((number, None))

        for number, job in enumerate(jobs):
            self._inboxes[number].put(lambda number=number, job=job: done(number, job))  # type: ignore[misc]
        until, stuck = time.monotonic() + within_s, set(range(len(jobs)))
        while stuck:
            try:
                number, error = ended.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if error is not None:
                raise error
            stuck.discard(number)
        return sorted(stuck)

    def end(self) -> None:
        """Let the threads end that wait for a job."""
        for inbox in self._inboxes:
            inbox.put(None)
        self._inboxes.clear()


def _serve(inbox: queue.SimpleQueue[Job | None]) -> None:
    while (job := inbox.get()) is not None:
        job()
