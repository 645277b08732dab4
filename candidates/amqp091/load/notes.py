"""The data that the workers of a load share and leave: the plan, counters, files of records.

The file owns their form. Invariant: the records of one file are in the order of their starts, so
that files can be merged without holding them in memory.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Protocol, Self

import msgspec

from brokerproof.candidates.amqp091.load.link import Clock, LinkLost
from brokerproof.candidates.wire.address import Address
from brokerproof.spec.histories import Record

SUFFIX = ".jsonl"
FAULT_SUFFIX = ".fault"
LINES_HELD_MAX = 2000
RESTART_S_MAX = 180.0
POLL_S = 0.02


@dataclass(frozen=True)
class Load:
    """The plan of a load.

    Attributes:
        messages: how many are published in all, unless `seconds` end before.
        consumers: how many each queue has.
        window: how many unsettled messages a consumer may hold, and how many unconfirmed ones a
            producer may have.
        levels: levels of priority of each queue, None for first in first out.
        persistent: whether messages are persistent, and queues durable.
        release_share: the share of first deliveries that is returned to the queue.
        gets: how many single messages are requested besides.
        kills: how often the broker is killed and started again.
        body_bytes: the size of each message.

    """

    messages: int = 10_000
    queues: int = 1
    producers: int = 2
    consumers: int = 2
    window: int = 100
    levels: int | None = None
    persistent: bool = False
    release_share: float = 0.0
    seconds: float | None = None
    gets: int = 0
    kills: int = 0
    seed: int = 0
    body_bytes: int = 16


STOP_PRODUCING, STOP_CONSUMING, KILLS, RESTARTS, ALLOWED, FIRST_FREE = range(6)
"""The cells that the parent process writes; the workers' cells follow.

`ALLOWED` is how many messages each producer may have published by now.
"""

READY, CONFIRMED, ENDED, DELIVERED, UNSETTLED, GETS_MADE = range(6)
"""The counters of a worker.

`READY`: whether it was ever ready to begin. `CONFIRMED`: messages confirmed to it. `ENDED`:
publishes with a known or given-up outcome. `DELIVERED`: deliveries to it. `UNSETTLED`: deliveries
whose settlement may not have taken effect. `GETS_MADE`: gets that it has made.
"""


class Cells(Protocol):
    """Numbers in memory that several processes share."""

    def __getitem__(self, cell: int, /) -> int: ...
    def __setitem__(self, cell: int, value: int, /) -> None: ...


class Shared:
    """Numbers that the processes of a load share: each has one writer, so no lock is needed."""

    COUNTERS = 6

    def __init__(self, cells: Cells, owner: int) -> None:
        self._cells = cells
        self._owner = owner

    @classmethod
    def cells_for(cls, workers: int) -> int:
        """Return how many cells a load of so many workers needs."""
        return FIRST_FREE + cls.COUNTERS * workers

    def __getitem__(self, cell: int) -> int:
        return self._cells[cell]

    def __setitem__(self, cell: int, value: int) -> None:
        self._cells[cell] = value

    def is_orphan(self) -> bool:
        """Whether the process that started the workers is gone, so that none can stop them."""
        return os.getpid() != self._owner and os.getppid() != self._owner

    def counter(self, worker: int, which: int) -> Counter:
        """Return a counter of one worker."""
        return Counter(self._cells, FIRST_FREE + self.COUNTERS * worker + which)

    def await_broker(self) -> int:
        """Wait until no kill is under way; return the number of restarts; raises `LinkLost`."""
        until = time.monotonic() + RESTART_S_MAX
        while True:
            restarts = self[RESTARTS]
            if self[KILLS] == restarts or self[STOP_CONSUMING]:
                return restarts
            if time.monotonic() > until or self.is_orphan():
                raise LinkLost("the broker was not started again in time")
            time.sleep(POLL_S)


@dataclass
class Counter:
    """One number of one worker."""

    cells: Cells
    cell: int

    @property
    def value(self) -> int:
        """The present value."""
        return self.cells[self.cell]

    @value.setter
    def value(self, value: int) -> None:
        self.cells[self.cell] = value


@dataclass
class Notes:
    """A file of records, written by one worker in the order of their starts."""

    path: Path
    _file: IO[bytes] = field(init=False)
    _lines: list[bytes] = field(default_factory=list)
    _encode: msgspec.json.Encoder = field(default_factory=msgspec.json.Encoder)
    _latest: int = 0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._flush()
        self._file.close()

    def write_lost(self, channel: str, since: int) -> None:
        """Record the loss of a channel opened after `since`; all records here are its answers.

        It closed at some moment after the request of the last of them.
        """
        start = max(since, self._latest)
        self.write(Record(op="close", channel=channel, start=start, outcome="unknown"))

    def write(self, record: Record) -> None:
        """Write the next record; it starts no earlier than the one before."""
        assert record.start >= self._latest, f"{record} starts before {self._latest}"
        self._latest = record.start
        self._lines.append(self._encode.encode(record))
        if len(self._lines) >= LINES_HELD_MAX:
            self._flush()

    def _flush(self) -> None:
        self._file.writelines(line + b"\n" for line in self._lines)
        self._lines.clear()


class SubscriberNotes(NamedTuple):
    """The files of a consumer: events, deliveries to consumers, results of gets, settlements."""

    events: Notes
    deliveries: Notes
    gets: Notes
    settlements: Notes


@dataclass(frozen=True)
class Task:
    """The task of one worker; `number` counts the workers, `index` those of its kind.

    `queues` are its queues, as named in the history and at the broker.
    """

    load: Load
    address: Address
    folder: Path
    zero: int
    number: int
    index: int
    name: str
    queues: tuple[tuple[str, str], ...]

    @property
    def clock(self) -> Clock:
        """The clock of the recording."""
        return Clock(self.zero)

    @property
    def seed(self) -> str:
        """The seed of this worker's random numbers."""
        return f"{self.load.seed} {self.name}"

    def notes(self, kind: str) -> Notes:
        """Return a file for records of one kind."""
        return Notes(self.folder / f"{self.name}.{kind}{SUFFIX}")
