"""Recordings: a load is put on a broker, and the notes of its workers become one history.

Owns the order and the files of the history: JSON Lines with a version line, or a folder of Parquet.
The broker's wire and the judgement are elsewhere. Invariants: records come in the order of their
starts, each valid; memory is bounded for any length; a history exists whole or not at all.
"""

from __future__ import annotations

import heapq
import itertools
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from brokerproof.candidates.amqp091.load.load import Outcome, Progress, run_load
from brokerproof.candidates.amqp091.load.notes import Load
from brokerproof.candidates.crash_commands import Power
from brokerproof.spec.histories import VERSION, Record, what_is_wrong

JSON_LINES: Final = ".jsonl"
"""A history with this suffix is a file of JSON Lines; any other is a folder of Parquet."""

PART_ROWS: Final = 1_000_000
LINES_HELD: Final = 10_000
HEADER: Final = {"brokerproof_history": VERSION}


@dataclass
class Written:
    """The size of a history: its records by kind and outcome, and its duration."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: int = 0
    last: int = 0

    @property
    def records(self) -> int:
        """The number of records."""
        return self.counts.total()

    def of(self, op: str, outcome: str | None = None) -> int:
        """Return the number of records of a kind, of any outcome or of one."""
        return sum(n for (o, r), n in self.counts.items() if o == op and outcome in (None, r))

    @property
    def seconds(self) -> float:
        """From the first publish to the last delivery or confirm."""
        return (self.last - self.first) / 1e9


@dataclass(frozen=True)
class Recording:
    """A written history, and the outcome of the load."""

    written: Written
    outcome: Outcome
    writing_s: float


def record_load(
    load: Load,
    url: str,
    out: Path,
    *,
    power: Power | None = None,
    stop_asked: Callable[[], bool] = lambda: False,
    told: Callable[[Progress], None] = lambda _: None,
) -> Recording:
    """Put a load on the broker at `url` and write its history to `out`, which must not exist.

    Raises the errors of `run_load`, and `OSError`. A load that ended early leaves the history up to
    then.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the history: it is as large, and may not fit into memory.
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        outcome = run_load(load, url, Path(folder), power=power, stop_asked=stop_asked, told=told)
        begun = time.monotonic()
        told(outcome.progress._replace(doing="writing"))
        written = Written()
        write_history(out, counted(merged(outcome.files), written))
        return Recording(written, outcome, time.monotonic() - begun)


def merged(files: tuple[Path, ...]) -> Iterator[Record]:
    """Yield the records of files, each sorted by start, in the order of starts."""
    return heapq.merge(*map(_records_of, files), key=attrgetter("start"))


def _records_of(path: Path) -> Iterator[Record]:
    decode = msgspec.json.Decoder(Record).decode
    with path.open("rb") as lines:
        for line in lines:
            record = decode(line)
            assert (wrong := what_is_wrong(record)) is None, f"{path.name}: {wrong}"
            yield record


def counted(records: Iterator[Record], written: Written) -> Iterator[Record]:
    """Yield records and note their size."""
    for record in records:
        written.counts[record.op, record.outcome] += 1
        if record.op == "publish":
            written.first = written.first or record.start
        if record.op in ("publish", "deliver") and record.end is not None:
            written.last = max(written.last, record.end)
        yield record


def write_history(out: Path, records: Iterator[Record]) -> None:
    """Write a history to `out`, whole or not at all; the name decides the form."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.unfinished")
    try:
        if out.suffix == JSON_LINES:
            _write_lines(unfinished, records)
        else:
            unfinished.mkdir()
            _write_parts(unfinished, records)
        unfinished.rename(out)
    except BaseException:
        if unfinished.is_dir():
            shutil.rmtree(unfinished)
        unfinished.unlink(missing_ok=True)
        raise


def _write_lines(path: Path, records: Iterator[Record]) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        file.write(encoder.encode(HEADER) + b"\n")
        while some := list(itertools.islice(records, LINES_HELD)):
            file.write(encoder.encode_lines(some))


def _write_parts(folder: Path, records: Iterator[Record]) -> None:
    from brokerproof.pipeline import tables  # noqa: PLC0415 (Arrow is an extra, and slow to load)

    names: list[str] = []
    while True:
        names.append(f"part-{len(names):05d}.parquet")
        some = itertools.islice(records, PART_ROWS)
        if (first := next(some, None)) is None:
            return
        # Each names those before it, so that a place is unique across all of them.
        tables.write(folder / names[-1], itertools.chain([first], some), names)
