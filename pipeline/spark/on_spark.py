"""The engine on Spark for a history of any size, in two shuffles: by message, then by slice.

`parts/judging.py` has the steps; this file distributes them. If the deliveries have to be followed
by consumer, a small shuffle of a few columns comes before these two.

Only results are collected, each a table in Arrow's own form; no row is a Python object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.streams import Ambiguous
from brokerproof.pipeline.intervals.table import SCHEMA as INTERVALS
from brokerproof.pipeline.names import numbers
from brokerproof.pipeline.parts.judging import (
    LOOKED_AT,
    OF_SLICE,
    ONLY_CONTROL,
    SIZES,
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
from brokerproof.pipeline.parts.slices import Cuts
from brokerproof.pipeline.stages import KINDS_OF_CONTROL
from brokerproof.pipeline.tables import PLACE, SCHEMA, in_spark
from brokerproof.spec.histories import CONTROL, MUST_HAVE, Record, Result

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

PLAIN: Final = (
    "run",
    "queue",
    "message",
    "consumer",
    "channel",
    "start",
    "end",
    "position",
    "priority",
    PLACE,
)
"""The columns that go through the first shuffle as they are."""

CODED: Final[dict[str, tuple[str | bool | None, ...]]] = {
    "op": (*sorted(set(MUST_HAVE) - CONTROL),),
    "mode": get_args(get_type_hints(Record)["mode"]),
    "outcome": get_args(Result),
    "persistent": (False, True),
    "redelivered": (None, False, True),
}
"""The columns with few values, which are shuffled as one number, and the values of each."""

CODE: Final = "code"

TOLD: Final = "told"
"""The column of results, each a table in Arrow's form; null in rows that are intervals."""


class OnSpark:
    """A history in Parquet files or folders, whose parts are judged by Spark's workers."""

    def __init__(self, spark: SparkSession, paths: Sequence[str], sizes: Sizes = SIZES) -> None:
        self.sizes = sizes
        self._spark = spark
        self._history = spark.read.parquet(*paths)

    def looks(self) -> Iterator[Look]:
        """Yield the results of a first look at pieces of each file; a worker opens it by itself."""
        files = sorted(self._history.inputFiles())
        every = self._spark.sparkContext.parallelize(files, max(1, len(files)))
        looks = every.flatMap(partial(_looks_at, sampled=self.sizes.sampled))
        yield from looks.toLocalIterator(prefetchPartitions=True)

    def control_records(self) -> pa.Table:
        """Return the records of `KINDS_OF_CONTROL`; of gets at least one of each queue."""
        from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

        chosen = self._history.filter(f.col("op").isin(list(KINDS_OF_CONTROL)))
        few = chosen.select(*SCHEMA.names).mapInArrow(
            lambda batches: _worked_on(batches, control_rows), in_spark(SCHEMA)
        )
        return few.toArrow().cast(SCHEMA)

    def of_consumers(self, asked: OfConsumers, rows: int) -> pa.Table:
        """Return the results of some work; `rows` is the size of the history."""
        from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

        context = self._spark.sparkContext
        parts = max(context.defaultParallelism, math.ceil(rows / self.sizes.part / 2))
        known = context.broadcast(asked.work)
        is_of_kind = f.col("op").isin(list(asked.kinds)) & (f.col("outcome") != "failed")
        chosen = self._history.filter(is_of_kind).select(*asked.columns)
        found = chosen.repartition(parts, "run", "consumer").mapInArrow(
            lambda batches: _worked_on(batches, known.value), in_spark(asked.schema)
        )
        table = found.toArrow().cast(asked.schema)
        known.destroy()
        return table

    def judged(
        self, seen: Seen, control: Control, torn: Ambiguous, left: pa.Table | None
    ) -> Results:
        """Run both stages; with `left`, only for the slices in it, with its rows in front."""
        from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

        context = self._spark.sparkContext
        parts = max(context.defaultParallelism, math.ceil(seen.rows / self.sizes.part))
        known = context.broadcast((control, seen.cuts, torn, left))
        message = f.coalesce(f.col("message"), f.col("start").cast("string"))
        of_messages = self._history.filter(~f.col("op").isin(list(ONLY_CONTROL)))
        coded = of_messages.select(*PLAIN, _coded())
        intervals = coded.repartition(parts, "run", "queue", message).mapInArrow(
            lambda batches: _messages(batches, *known.value),
            f"{in_spark(INTERVALS)}, what string, {TOLD} binary",
        )
        results = intervals.repartition(parts, *OF_SLICE).mapInArrow(
            lambda batches: _slices(batches, known.value[0], known.value[-1]),
            "what string, told binary",
        )
        batches = results.toArrow().to_batches()
        known.destroy()
        return together(
            {what: _read(told)}
            for batch in batches
            for what, told in zip(*(batch.column(n).to_pylist() for n in (0, 1)), strict=True)
        )


def _looks_at(file: str, sampled: int) -> Iterator[Look]:
    system, path = pa.fs.FileSystem.from_uri(file)
    with pq.ParquetFile(
        system.open_input_file(path), read_dictionary=["op", "run", "queue", "consumer", "outcome"]
    ) as parquet:
        for batch in parquet.iter_batches(1 << 20, columns=list(LOOKED_AT)):
            yield look_at(pa.Table.from_batches([batch]), sampled)


def _worked_on(
    batches: Iterator[pa.RecordBatch], work: Callable[[pa.Table], pa.Table]
) -> Iterator[pa.RecordBatch]:
    if parts := list(batches):
        yield from work(_table_of(parts)).to_batches()


def _table_of(parts: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(parts).replace_schema_metadata(None)


def _coded() -> Column:
    """Return the expression that encodes all columns with few values as one number."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    code, size = f.lit(0), 1
    for name, values in CODED.items():
        column = f.col(name)
        number = f.lit(0)
        for which, value in enumerate(values):
            is_it = column.isNull() if value is None else column == f.lit(value)
            number = f.when(is_it, which * size).otherwise(number)
        code, size = code + number, size * len(values)
    return code.cast("short").alias(CODE)


def _decoded(table: pa.Table) -> pa.Table:
    """Return a table with the encoded columns restored."""
    code = numbers(table, CODE)
    table = table.drop_columns([CODE])
    for name, values in CODED.items():
        code, number = np.divmod(code, len(values))
        known = pa.array(values, SCHEMA.field(name).type)
        column = pa.DictionaryArray.from_arrays(pa.array(number, pa.int32()), known)
        if not pa.types.is_string(known.type):
            column = known.take(column.indices)
        table = table.append_column(name, column)
    return table


def _messages(
    batches: Iterator[pa.RecordBatch],
    control: Control,
    cuts: Cuts,
    torn: Ambiguous,
    left: pa.Table | None,
) -> Iterator[pa.RecordBatch]:
    """Judge the messages of a part; yield their waiting intervals, and the results."""
    parts = list(batches)
    if not parts:
        return
    table = _decoded(_table_of(parts))
    told, intervals = judged_messages(table, control, cuts, torn)
    if left is None:
        yield from _as_rows(told, spread=int(numbers(table, PLACE)[0]))
    else:
        intervals = in_slices_of(intervals, left)
    size = intervals.num_rows
    intervals = intervals.append_column("what", pa.nulls(size, pa.string()))
    yield from intervals.append_column(TOLD, pa.nulls(size, pa.binary())).to_batches()


def _slices(
    batches: Iterator[pa.RecordBatch], control: Control, left: pa.Table | None
) -> Iterator[pa.RecordBatch]:
    """Judge the slices of a part; yield their results, and pass on earlier ones."""
    parts = []
    for batch in batches:
        is_told = pc.is_valid(batch.column(TOLD))
        yield from pa.Table.from_batches(
            [batch.filter(is_told).select(["what", TOLD])]
        ).to_batches()
        parts.append(batch.filter(pc.invert(is_told)).select(INTERVALS.names))
    if not parts:
        return
    told = judged_slices(pa.Table.from_batches(parts).cast(INTERVALS), control, left)
    for batch in _as_rows(told, spread=0):
        yield batch.select(["what", TOLD])


def _as_rows(results: Told, spread: int) -> Iterator[pa.RecordBatch]:
    """Yield results as rows of the second shuffle; `spread` decides where they go."""
    rows = {name: _written(table) for name, table in results.items() if table.num_rows}
    if not rows:
        return
    size = len(rows)
    columns = {each.name: pa.nulls(size, each.type) for each in INTERVALS}
    columns["slice"] = pa.array([-1 - spread % 1021] * size, pa.int32())
    columns["what"] = pa.array(list(rows), pa.string())
    columns[TOLD] = pa.array(list(rows.values()), pa.binary())
    yield from pa.table(columns).to_batches()


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


def _read(told: bytes) -> pa.Table:
    return pa.ipc.open_stream(told).read_all()
