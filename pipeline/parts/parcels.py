"""How a history is divided: pieces that are read at once, parts that are judged at once, parcels.

A *piece* is some row groups of the history's files. Each piece sends a *parcel* to each part: the
rows that belong there, in Arrow's own form. Results travel in the same form. Rows of one message,
consumer or slice have equal words, and so go to the same part.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from brokerproof.pipeline.intervals.control import Named, named
from brokerproof.pipeline.names import NAMES, numbers, with_numbered_names

Words: TypeAlias = NDArray[np.uint64]
"""A number for each row of a table, which decides the row's part."""

Parcel: TypeAlias = tuple[int, bytes]
"""The number of a part, and a table for it."""

Told: TypeAlias = dict[str, pa.Table]
"""Some tables of results, by name."""

_WHAT: Final = b"what"
"""The key in a parcel's metadata for the name of its result."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class Piece(NamedTuple):
    """Some row groups of some files."""

    rows: int
    groups: tuple[tuple[Path, tuple[int, ...]], ...]

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read some columns of the rows, or all; columns with few names come as numbers."""
        tables = [
            pq.ParquetFile(path, read_dictionary=[*NAMES]).read_row_groups(groups, columns)
            for path, groups in self.groups
        ]
        table = pa.concat_tables(tables).replace_schema_metadata(None)
        return with_numbered_names(table.select(columns or table.column_names))


def pieces_of(files: Iterable[Path], most: int) -> Iterator[Piece]:
    """Yield all row groups, as many together as have at most so many rows, but at least one."""
    rows, groups = 0, dict[Path, tuple[int, ...]]()
    for path in files:
        metadata = pq.read_metadata(path)
        groups.setdefault(path, ())
        for number in range(metadata.num_row_groups):
            more = metadata.row_group(number).num_rows
            if rows and rows + more > most:
                yield Piece(rows, tuple(groups.items()))
                rows, groups = 0, {}
            rows += more
            groups[path] = (*groups.get(path, ()), number)
    if groups:
        yield Piece(rows, tuple(groups.items()))


def words_of(names: Named) -> Words:
    """Return words that depend on a row's run and name."""
    words = [zlib.crc32("\0".join(key).encode()) for key in names.keys]
    return np.array(words or [0], dtype="<u8")[names.number]


def words_of_messages(table: pa.Table) -> Words:
    """Return words that depend on a row's queue and message.

    Of the name they take the first and the last eight bytes. Records without a message are spread
    by time.
    """
    column = table.column("message").combine_chunks()
    is_named = np.asarray(column.is_valid())
    _, offsets, content = column.buffers()
    offsets = np.frombuffer(offsets, dtype="<i4")[column.offset :][: len(column) + 1]
    padded = np.concatenate([np.zeros(8, "u1"), np.frombuffer(content, "u1"), np.zeros(8, "u1")])
    eights: Words = np.ndarray(padded.size - 7, dtype="<u8", buffer=padded, strides=(1,))
    missing = (np.maximum(8 - np.diff(offsets), 0) * 8).astype("<u8")
    first = eights[offsets[:-1] + 8] << missing
    last = eights[offsets[1:]] >> missing
    names = np.where(is_named, first * _ODD + last, numbers(table, "start").view("<u8"))
    return names * _ODD + words_of(named(table, "queue"))


def parcels(table: pa.Table, words: Words, parts: int) -> Iterator[Parcel]:
    """Yield the rows of a table by part."""
    if not table.num_rows:
        return
    part = _mixed(words) % np.uint64(parts)
    order = np.argsort(part.astype(np.uint16 if parts < 1 << 16 else np.int64), kind="stable")
    [batch] = table.take(pa.array(order)).combine_chunks().to_batches()
    ends = np.cumsum(np.bincount(part.astype(np.int64), minlength=parts)).tolist()
    for number, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > first:
            yield number, _written(batch.slice(first, end - first))


def parcels_of_results(told: Told, part: int) -> Iterator[Parcel]:
    """Yield results for a part that passes them on."""
    for name, table in told.items():
        if table.num_rows:
            named_table = table.replace_schema_metadata({_WHAT: name.encode()})
            yield part, _written(named_table)


def opened(contents: Sequence[bytes]) -> tuple[pa.Table | None, list[Told]]:
    """Return the rows in some parcels as one table, None without any, and the results."""
    rows: list[pa.Table] = []
    told: list[Told] = []
    for content in contents:
        table = pa.ipc.open_stream(content).read_all()
        if (what := (table.schema.metadata or {}).get(_WHAT)) is None:
            rows.append(table)
        else:
            told.append({what.decode(): table.replace_schema_metadata(None)})
    return pa.concat_tables(rows) if rows else None, told


def _written(table: pa.Table | pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def _mixed(words: Words) -> Words:
    """Return numbers in which each bit depends on many of the given ones (splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words
