"""Idle spans on Spark: the records of each consumer are shuffled to one worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from brokerproof.pipeline.intervals.control import Control, Idle
from brokerproof.pipeline.intervals.idle import COLUMNS, KINDS, SCHEMA, idle_of, idle_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def idle_on_spark(history: DataFrame, control: Control, bound: int, parts: int) -> Idle:
    """Return the idle spans longer than the limit; the rows are shuffled to `parts` parts."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    known = history.sparkSession.sparkContext.broadcast(control)
    chosen = history.filter(f.col("op").isin(list(KINDS)) & (f.col("outcome") != "failed"))
    of_consumers = chosen.select(*COLUMNS).repartition(parts, "run", "consumer")
    kinds = {pa.string(): "string", pa.int64(): "long"}
    spans = of_consumers.mapInArrow(
        lambda batches: _idle_in_part(batches, known.value, bound),
        ", ".join(f"{each.name} {kinds[each.type]}" for each in SCHEMA),
    ).toArrow()
    known.destroy()
    latest = history.groupBy("run").agg(f.max("start")).collect()
    times = {run: int(time) for run, time in latest}
    return idle_of(spans.cast(SCHEMA), control, times, bound)


def _idle_in_part(
    batches: Iterator[pa.RecordBatch], control: Control, bound: int
) -> Iterator[pa.RecordBatch]:
    if parts := list(batches):
        table = pa.Table.from_batches(parts).replace_schema_metadata(None)
        yield from idle_spans(table, control, bound).to_batches()
