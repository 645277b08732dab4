"""Cases: a few threads on something that they share, and what must hold when all have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from brokerproof.checks.threads.plain_attributes import watched
from brokerproof.checks.threads.threads import Body, Threads, Watcher, scheduled

Shared = TypeVar("Shared")


@dataclass(frozen=True)
class Case(Generic[Shared]):
    """What is to run under every interleaving.

    Attributes:
        name: what reports call it.
        make: makes what is shared, anew for each run; gets the run's threads, for what starts
            threads by itself, as an executor does.
        bodies: what each thread does, by name.
        judge: tells in a line each what is wrong when all threads have ended; nothing, if nothing.
        watches: classes of whose attributes no two threads may touch one without order.

    """

    name: str
    make: Callable[[Threads], Shared]
    bodies: Callable[[Shared], Mapping[str, Body]]
    judge: Callable[[Shared], Iterable[str]]
    watches: Sequence[type] = ()

    @contextmanager
    def scheduled(self, watcher: Watcher | None = None) -> Iterator[None]:
        """Put cells under the scheduler, and watch what is to be watched."""
        with scheduled(watcher), watched(self.watches):
            yield

    def begin(self, threads: Threads) -> Shared:
        """Make everything anew, with all threads at their start."""
        shared = self.make(threads)
        for name, body in self.bodies(shared).items():
            threads.start(name, body)
        return shared
