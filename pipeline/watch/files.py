"""The files of a watch, read by Spark's workers with the readers of `trace check`.

Spark's stream only says which files are new. Here a worker opens each file, so that bad rows are
rejected with file and line, as everywhere. An unreadable file is one rejected row; it does not end
the watch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.readers.rejected_rows import Category, Rejected, reject
from brokerproof.pipeline.readers.sources import PACKED_SUFFIXES, source_of
from brokerproof.pipeline.tables import PLACE, SCHEMA, UnreadableHistory, in_spark, place_of

SUFFIXES: Final = (
    "parquet",
    *(f"{lines}{packed}" for lines in ("jsonl", "ndjson") for packed in ("", *PACKED_SUFFIXES)),
)
"""The suffixes of the files that are read."""

TOLD: Final = "told"
"""The column of states of files and queues; null in rows that are records."""

ROWS_AND_TOLD: Final = pa.schema(
    [*(pa.field(each.name, each.type) for each in SCHEMA), pa.field(TOLD, pa.binary())]
)
"""Records, and beside them encoded states; all may be null."""

ROWS_IN_SPARK: Final = in_spark(ROWS_AND_TOLD)


class FileTold(msgspec.Struct, kw_only=True):
    """The row counts of a file; `newest` is the greatest start of each run in it."""

    rows: int = 0
    checked: int = 0
    aside: list[Rejected] = []
    newest: dict[str, int] = {}

    @property
    def by_category(self) -> Counter[Category]:
        """The number of rejected rows by reason."""
        return Counter(each.category for each in self.aside)


def rows_of_files(
    paths: Sequence[str], first: int, numbers: Iterator[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of some of these files, and after each file its row counts.

    The files are numbered from `first` on; a place tells which of all files a record is from.
    """
    for number in numbers:
        told = FileTold()
        path = Path(paths[number])
        try:
            for chunk in source_of(path).chunks(path, ""):
                told.rows += chunk.rows
                told.checked += chunk.rows - len(chunk.rejected)
                told.aside += chunk.rejected
                batch = chunk.batch
                newest = (
                    pa.Table.from_batches([batch]).group_by("run").aggregate([("start", "max")])
                )
                for row in newest.to_pylist():
                    told.newest[row["run"]] = max(row["start_max"], told.newest.get(row["run"], 0))
                base = pa.scalar(place_of(first + number, 0), pa.int64())
                places = pc.add(batch.column(PLACE), base)
                nothing = pa.nulls(batch.num_rows, pa.binary())
                columns = [places if name == PLACE else batch.column(name) for name in SCHEMA.names]
                yield pa.RecordBatch.from_arrays([*columns, nothing], schema=ROWS_AND_TOLD)
        except UnreadableHistory as error:
            told.rows += 1
            told.aside.append(reject("unreadable", str(error), str(path), 0))
        yield told_row(msgspec.msgpack.encode(told))


def told_row(told: bytes, run: str | None = None, queue: str | None = None) -> pa.RecordBatch:
    """Return a row that is no record but an encoded state, of a queue or of none."""
    values = {"run": run, "queue": queue, TOLD: told}
    columns = [pa.array([values.get(each.name)], each.type) for each in ROWS_AND_TOLD]
    return pa.RecordBatch.from_arrays(columns, schema=ROWS_AND_TOLD)


def records_and_told(batches: Sequence[pa.RecordBatch]) -> tuple[pa.Table, list[bytes]]:
    """Return the records of some rows, and the encoded states beside them."""
    table = (
        pa.Table.from_batches(batches).cast(ROWS_AND_TOLD)
        if batches
        else ROWS_AND_TOLD.empty_table()
    )
    is_told = pc.is_valid(table.column(TOLD))
    records = table.filter(pc.invert(is_told)).select(SCHEMA.names).cast(SCHEMA)
    return records.replace_schema_metadata(None), table.filter(is_told).column(TOLD).to_pylist()


def path_of(address: str) -> str:
    """Return the path of an address of Spark's, which is not escaped.

    >>> path_of("file:/tmp/a b.jsonl"), path_of("file:///tmp/a%20b.jsonl")
    ('/tmp/a b.jsonl', '/tmp/a%20b.jsonl')
    """
    return address.removeprefix("file:").replace("///", "/", 1)
