"""The engine on this machine for a history of any size: processes, and files between them.

`parts/judging.py` has the steps. The history is read once, a piece at a time. The rows of a piece
are grouped by the part of their message and written to a file, with one batch for each part. So a
part is read from all files without the rest of them. The waiting intervals go to their slices in
the same way. A process holds one piece or one part at a time: disk space limits the size of a
history, memory does not.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from brokerproof.checks.errors import CannotRun
from brokerproof.checks.workers.worker_pool import Lost, cores, in_order
from brokerproof.pipeline.intervals.control import Control, Named, named
from brokerproof.pipeline.intervals.streams import Ambiguous
from brokerproof.pipeline.intervals.table import SCHEMA as INTERVALS
from brokerproof.pipeline.names import NAMES, is_one_of, numbers, with_numbered_names
from brokerproof.pipeline.parts.judging import (
    ONLY_CONTROL,
    Look,
    OfConsumers,
    Results,
    Seen,
    Sizes,
    Told,
    control_rows,
    in_slices_of,
    judged_messages,
    judged_slices,
    look_at,
    together,
)
from brokerproof.pipeline.tables import PLACE, SCHEMA

SIZES: Final = Sizes(part=400_000)

OF_MESSAGES: Final = (
    *("op", "run", "queue", "message", "consumer", "channel", "start", "end", "position"),
    *("priority", "persistent", "redelivered", "mode", "outcome", PLACE),
)
"""The columns of the records of messages."""

_Made = TypeVar("_Made")
_Words = NDArray[np.uint64]


_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class OnThisMachine:
    """A history in Parquet files, whose parts are judged by processes.

    `folder` is empty, and takes the files between the processes: about a hundred bytes for each
    record. `jobs` is the number of processes, by default that of the cores.
    """

    def __init__(
        self, files: Sequence[Path], folder: Path, sizes: Sizes = SIZES, jobs: int | None = None
    ) -> None:
        self.sizes = sizes
        self._folder = folder
        self._jobs = jobs or cores()
        self._pieces = [*_pieces(files, sizes.part)]
        self._control: list[pa.Table] = []
        rows = sum(piece.rows for piece in self._pieces)
        self._parts = max(self._jobs, math.ceil(rows / sizes.part))

    def looks(self) -> Iterator[Look]:
        """Yield the results of a first look at each piece, and group its rows by message."""

        def looked(number: int) -> tuple[Look, pa.Table]:
            table = self._pieces[number].table()
            others = is_one_of(table, "op", *ONLY_CONTROL)
            of_messages = table.select(OF_MESSAGES)
            if others.any():
                of_messages = of_messages.filter(pa.array(~others))
            self._group(of_messages, _of_messages(of_messages), "messages", number)
            return look_at(table, self.sizes.sampled), control_rows(table).cast(SCHEMA)

        for look, control in self._each(looked, len(self._pieces)):
            self._control.append(control)
            yield look

    def control_records(self) -> pa.Table:
        """Return the records of `KINDS_OF_CONTROL` that the first look has found."""
        return pa.concat_tables(self._control)

    def of_consumers(self, asked: OfConsumers, rows: int) -> pa.Table:
        """Return the results of some work; `rows` is the size of the history."""
        del rows

        def chosen(number: int) -> None:
            table = self._pieces[number].table()
            happened = ~is_one_of(table, "outcome", "failed")
            table = table.filter(pa.array(is_one_of(table, "op", *asked.kinds) & happened))
            table = table.select(asked.columns)
            self._group(table, _words_of(named(table, "consumer")), "consumers", number)

        def worked(part: int) -> pa.Table:
            return asked.work(self._grouped("consumers", part))

        for _ in self._each(chosen, len(self._pieces)):
            pass
        found = [*self._each(worked, self._parts)]
        return pa.concat_tables([asked.schema.empty_table(), *found])

    def judged(
        self, seen: Seen, control: Control, torn: Ambiguous, left: pa.Table | None
    ) -> Results:
        """Run both stages; with `left`, only the second one, with its rows in front."""

        def messages(part: int) -> Told:
            table = self._grouped("messages", part)
            told, intervals = judged_messages(table, control, seen.cuts, torn)
            slices = _words_of(named(intervals, "queue")) + numbers(intervals, "slice").view("<u8")
            self._group(intervals, slices, "slices", part)
            return told

        def slices(part: int) -> Told:
            intervals = self._grouped("slices", part).cast(INTERVALS)
            if left is not None:
                intervals = in_slices_of(intervals, left)
            return judged_slices(intervals, control, left)

        found = [] if left is not None else [*self._each(messages, self._parts)]
        return together([*found, *self._each(slices, self._parts)])

    def _each(self, work: Callable[[int], _Made], tasks: int) -> Iterator[_Made]:
        """Yield the results of tasks in their order; raises `CannotRun` if a process ends."""
        for made in in_order(lambda number, _: work(number), tasks, self._jobs, lambda *_: None):
            if isinstance(made, Lost):
                raise CannotRun(
                    f"a process that judged a part of the history {made.how}; if memory is scarce, "
                    "use --engine spark"
                )
            yield made

    def _group(self, table: pa.Table, words: _Words, name: str, number: int) -> None:
        """Write the rows of a table by part: a batch for each, from words that decide which."""
        part = _mixed(words) % self._parts
        ends = np.cumsum(np.bincount(part, minlength=self._parts)).tolist()
        order = np.argsort(part.astype(np.uint16), kind="stable")
        columns = [column.combine_chunks() for column in table.take(pa.array(order)).columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=table.schema)
        path = self._folder / f"{name}-{number:06}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as file:
            for first, end in zip([0, *ends], ends, strict=False):
                file.write_batch(batch.slice(first, end - first))

    def _grouped(self, name: str, part: int) -> pa.Table:
        """Return the rows of a part from all files of this name."""
        paths = sorted(self._folder.glob(f"{name}-*.arrow"))
        batches = [pa.ipc.open_file(pa.memory_map(str(path))).get_batch(part) for path in paths]
        return pa.Table.from_batches(batches)


class _Piece(NamedTuple):
    """Some row groups of some files."""

    rows: int
    groups: tuple[tuple[Path, tuple[int, ...]], ...]

    def table(self) -> pa.Table:
        """Read the rows; columns with few names come as numbers."""
        tables = [
            pq.ParquetFile(path, read_dictionary=[*NAMES]).read_row_groups(groups)
            for path, groups in self.groups
        ]
        return with_numbered_names(pa.concat_tables(tables))


def _pieces(files: Iterable[Path], most: int) -> Iterator[_Piece]:
    """Yield all row groups, as many together as have at most so many rows, but at least one."""
    rows, groups = 0, dict[Path, tuple[int, ...]]()
    for path in files:
        metadata = pq.read_metadata(path)
        groups.setdefault(path, ())
        for number in range(metadata.num_row_groups):
            more = metadata.row_group(number).num_rows
            if rows and rows + more > most:
                yield _Piece(rows, tuple(groups.items()))
                rows, groups = 0, {}
            rows += more
            groups[path] = (*groups.get(path, ()), number)
    if groups:
        yield _Piece(rows, tuple(groups.items()))


def _words_of(names: Named) -> _Words:
    """Return a number for each row that depends on its run and its name."""
    words = [zlib.crc32("\0".join(key).encode()) for key in names.keys]
    return np.array(words or [0], dtype="<u8")[names.number]


def _of_messages(table: pa.Table) -> _Words:
    """Return a number for each row that depends on its queue and message.

    Of the name it takes the first and the last eight bytes. Records without a message are spread by
    time.
    """
    column = table.column("message").combine_chunks()
    is_named = np.asarray(column.is_valid())
    _, offsets, content = column.buffers()
    offsets = np.frombuffer(offsets, dtype="<i4")[column.offset :][: len(column) + 1]
    padded = np.concatenate([np.zeros(8, "u1"), np.frombuffer(content, "u1"), np.zeros(8, "u1")])
    eights: _Words = np.ndarray(padded.size - 7, dtype="<u8", buffer=padded, strides=(1,))
    missing = (np.maximum(8 - np.diff(offsets), 0) * 8).astype("<u8")
    first = eights[offsets[:-1] + 8] << missing
    last = eights[offsets[1:]] >> missing
    names = np.where(is_named, first * _ODD + last, numbers(table, "start").view("<u8"))
    return names * _ODD + _words_of(named(table, "queue"))


def _mixed(words: _Words) -> _Words:
    """Return numbers in which each bit depends on many of the given ones (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words
