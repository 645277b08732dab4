"""The engine on this machine for a history of any size: processes, and files between them.

`parts/judging.py` has the steps. Each process holds one piece or one part at a time: disk space
limits the size of a history, memory does not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from brokerproof.checks.errors import CannotRun
from brokerproof.checks.workers.worker_pool import Lost, cores, in_order
from brokerproof.pipeline.parts.judging import Made
from brokerproof.pipeline.parts.parcels import Parcel, Piece

Item = TypeVar("Item")


@dataclass(frozen=True)
class Processes:
    """Processes of this machine. `folder` takes the files between them.

    The files have about a hundred bytes for each record. `jobs` is by default the number of cores.
    """

    folder: Path
    jobs: int = field(default_factory=cores)

    def of(self, pieces: Sequence[Piece]) -> _Items[Piece]:
        """Return the pieces of a history for work by these processes."""
        return _Items(self, len(pieces), pieces.__getitem__)


@dataclass(frozen=True)
class _Items(Generic[Item]):
    """Items by number, each read by the process that works on it."""

    processes: Processes
    many: int
    item: Callable[[int], Item]

    def each(self, work: Callable[[Item], Made]) -> Iterator[Made]:
        """Yield the results of work on each item; raises `CannotRun` if a process ends."""
        return self._each(lambda number: work(self.item(number)))

    def exchanged(
        self, work: Callable[[Item], Iterable[Parcel]], parts: int
    ) -> _Items[Sequence[bytes]]:
        """Write the parcels of each item to a file, and return those for each part."""
        folder = Path(tempfile.mkdtemp(dir=self.processes.folder))

        def sent(number: int) -> list[tuple[int, int, int]]:
            index = []
            with (folder / str(number)).open("wb") as file:
                for part, content in work(self.item(number)):
                    index.append((part, file.tell(), len(content)))
                    file.write(content)
            return index

        places: list[list[tuple[Path, int, int]]] = [[] for _ in range(parts)]
        for number, index in enumerate(self._each(sent)):
            for part, at, size in index:
                places[part].append((folder / str(number), at, size))

        def received(part: int) -> list[bytes]:
            return [_read(*place) for place in places[part]]

        return _Items(self.processes, parts, received)

    def _each(self, work: Callable[[int], Made]) -> Iterator[Made]:
        jobs = self.processes.jobs
        for made in in_order(lambda number, _: work(number), self.many, jobs, lambda *_: None):
            if isinstance(made, Lost):
                raise CannotRun(f"a process that judged a part of the history {made.how}")
            yield made


def _read(path: Path, at: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(size)
