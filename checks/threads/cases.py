"""Cases: a few threads on shared objects, and what must hold when all have ended."""

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
    """A case to run under every interleaving.

    Attributes:
        name: its name in reports.
        make: makes the shared objects, anew for each run; gets the run's threads, for an executor
            or the like that starts threads by itself.
        bodies: the body of each thread, by name.
        judge: yields a line for each fault when all threads have ended.
        watches: classes whose attributes no two threads may touch without an order.

    """

    name: str
    make: Callable[[Threads], Shared]
    bodies: Callable[[Shared], Mapping[str, Body]]
    judge: Callable[[Shared], Iterable[str]]
    watches: Sequence[type] = ()

    @contextmanager
    def scheduled(self, watcher: Watcher | None = None) -> Iterator[None]:
        """Put cells under the scheduler, and watch the attributes of `watches`."""
        with scheduled(watcher), watched(self.watches):
            yield

    def begin(self, threads: Threads) -> Shared:
        """Make everything anew, with all threads at their start."""
        shared = self.make(threads)
        for name, body in self.bodies(shared).items():
            threads.start(name, body)
        return shared
