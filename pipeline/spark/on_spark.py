"""The engine on Spark for a history of any size, in two shuffles: by message, then by slice.

If the files alone do not show that each consumer's deliveries are in order, a small shuffle before
these follows each consumer: a few columns of the deliveries (`streams.py`).

`stages.py` has the stages; this file distributes them. A first look at a few columns counts queues
and decides where to cut hot ones. Then the history is read once. Its rows are shuffled by message
and judged, and the waiting intervals are shuffled by slice. The results are small: violations,
rejected rows, counts, and the summaries of slices. If a summary shows that a slice fails with the
rows left by earlier slices, the failing slices alone are judged again with those rows in front.

Only these results are collected, each a table in Arrow's own form; no row is a Python object.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from brokerproof.pipeline.intervals import idle
from brokerproof.pipeline.intervals.control import Control, Idle, named
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues
from brokerproof.pipeline.intervals.streams import COLUMNS as STREAMS
from brokerproof.pipeline.intervals.streams import FOUND as CONTRADICTIONS
from brokerproof.pipeline.intervals.streams import (
    Ambiguous,
    Stretches,
    ambiguous,
    are_in_order,
    clock_step,
    contradictions,
    stretches,
)
from brokerproof.pipeline.intervals.subscriptions import Key
from brokerproof.pipeline.intervals.table import SCHEMA as INTERVALS
from brokerproof.pipeline.intervals.traffic import COUNTS, bins_of, spans_of, total
from brokerproof.pipeline.names import Ints, joint, numbers, ranks
from brokerproof.pipeline.readers.rejected_rows import ASIDE
from brokerproof.pipeline.results import COVERAGE, Judgement
from brokerproof.pipeline.rules.violations import none, strongest
from brokerproof.pipeline.spark.slices import Cuts, left_to, sliced, summary
from brokerproof.pipeline.stages import KINDS_OF_CONTROL, by_message, by_queue, concluded
from brokerproof.pipeline.tables import PLACE, SCHEMA, in_spark, records_of
from brokerproof.spec.histories import CONTROL, MUST_HAVE, Record, Result

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Sizes:
    """How the work is cut.

    Attributes:
        part: the number of records in a worker's memory at once, about; each takes a kilobyte.
        hot: the publishes and deliveries of a slice of a hot queue.
        sampled: one row in this many is read to find where hot queues are cut.
    """

    part: int = 1_000_000
    hot: int = 600_000
    sampled: int = 200


_SIZES: Final = Sizes()

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

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Seen:
    """The result of a first look at a history."""

    rows: int
    cuts: Cuts
    sizes: Sizes
    queues: frozenset[Key]
    in_order: bool
    spans: tuple[pa.Table, ...]


def judged_on_spark(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    begins_late: bool = False,
    known: KnownQueues = NOTHING_SAID,
    stalled_after: int | None = None,
    progress: Progress = lambda _: None,
    sizes: Sizes = _SIZES,
) -> Judgement:
    """Return the judgement of a history in Parquet files or folders; see `judged_alone`."""
    history = spark.read.parquet(*paths)
    progress("looking for hot queues")
    seen = first_look(history, sizes)
    progress("reading what is about no single message")
    control = control_on_spark(history, begins_late=begins_late, known=known)
    control.bins = bins_of(seen.spans)
    torn = CONTRADICTIONS.empty_table()
    if not seen.in_order:
        progress("following the deliveries to each consumer")
        torn = _contradictions(history, seen, control)
    if stalled_after is not None:
        progress("looking when consumers were free")
        control.idle = _idle_on_spark(history, control, stalled_after, _parts(history, seen))
    progress(f"judging {seen.rows:,} records")
    rejected = ambiguous(torn)
    told = _told(history, seen, control, rejected, None)
    left = left_to(told.summaries, control.window_of)
    again = none()
    if left.num_rows:
        failing = len(_slices_of(left))
        progress(f"judging {failing:,} slices again, for what was left to them")
        again = _told(history, seen, control, rejected, left).violations
    wrong, coverage = concluded([told.violations, again], [told.coverage], control)
    return Judgement(
        wrong,
        told.aside,
        coverage,
        tuple(sorted(seen.queues)),
        tuple(control.undeclared(sorted(seen.queues))),
        stalled_after=stalled_after,
        begins_late=begins_late,
        clock_step=clock_step(torn),
        bins=control.bins,
        traffic=total([told.traffic], control.bins),
    )


_OF_SLICE: Final = ("run", "queue", "slice")


def first_look(history: DataFrame, sizes: Sizes = _SIZES) -> Seen:
    """Count the records; find where hot queues are cut, and to which queues messages returned."""
    files = sorted(history.inputFiles())
    spark = history.sparkSession.sparkContext
    looks = spark.parallelize(files, max(1, len(files))).map(
        partial(looked_at, sampled=sizes.sampled)
    )
    counted: Counter[tuple[str, Key]] = Counter()
    times: dict[Key, list[Ints]] = {}
    streams: list[Stretches | None] = []
    spans: list[pa.Table] = []
    for look in looks.toLocalIterator(prefetchPartitions=True):
        counted.update(look.counted)
        streams += look.streams
        spans += look.spans
        for key, some in look.times.items():
            times.setdefault(key, []).append(some)
    everywhere = {run for (op, (run, _)) in counted if op in {"close", "crash", "get"}}
    queues = {key for _, key in counted if key[1]}
    returning = frozenset(key for key in queues if key[0] in everywhere or counted["release", key])
    at = {}
    for key in queues:
        size = counted["deliver", key] + counted["publish", key]
        if size > 2 * sizes.hot and key in times:
            many = math.ceil(size / sizes.hot)
            order = np.sort(np.concatenate(times[key]))
            at[key] = np.unique(order[np.arange(1, many) * order.size // many])
    return Seen(
        counted.total(),
        Cuts(at, returning),
        sizes,
        frozenset(queues),
        are_in_order(streams),
        tuple(spans),
    )


@dataclass(frozen=True)
class Look:
    """The result of a first look at a file.

    Attributes:
        counted: the number of records of each kind and queue.
        times: of each queue, some of the times at which its records start.
        streams: the parts of its streams.
        spans: when its queues were busy.
    """

    counted: Counter[tuple[str, Key]]
    times: dict[Key, Ints]
    streams: tuple[Stretches | None, ...]
    spans: tuple[pa.Table, ...]


def looked_at(file: str, sampled: int) -> Look:
    """Read a few columns of a Parquet file; a worker opens it by itself."""
    system, path = pa.fs.FileSystem.from_uri(file)
    counted: Counter[tuple[str, Key]] = Counter()
    times: dict[Key, list[Ints]] = {}
    streams: list[Stretches | None] = []
    spans: list[pa.Table] = []
    with pq.ParquetFile(
        system.open_input_file(path), read_dictionary=["op", "run", "queue", "consumer", "outcome"]
    ) as parquet:
        for batch in parquet.iter_batches(1 << 20, columns=list(_LOOKED_AT)):
            table = pa.Table.from_batches([batch])
            streams.append(stretches(table))
            spans.append(spans_of(table))
            queue = named(table, "queue")
            kind, kinds = ranks(table.column("op"))
            both = joint(queue.number, kind)
            width = int(kind.max(initial=0)) + 2
            names = kinds.to_pylist()
            for pair, count in zip(*np.unique_counts(both), strict=True):
                key = queue.keys[int(pair) // width]
                counted[names[int(pair) % width - 1], key] += int(count)
            start = numbers(table, "start")[::sampled]
            number = queue.number[::sampled]
            for one in np.unique(number).tolist():
                times.setdefault(queue.keys[one], []).append(start[number == one])
    some_times = {key: np.concatenate(some) for key, some in times.items()}
    return Look(counted, some_times, tuple(streams), tuple(spans))


_LOOKED_AT: Final = ("op", "run", "queue", "consumer", "start", "end", "position", "outcome")


def control_on_spark(
    history: DataFrame, *, begins_late: bool, known: KnownQueues = NOTHING_SAID
) -> Control:
    """Return the control records of a history, which fit in memory."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    kinds = list(KINDS_OF_CONTROL)
    chosen = history.filter(f.col("op").isin(kinds)).select(*SCHEMA.names)
    table = chosen.mapInArrow(_one_get_of_each_queue, chosen.schema).toArrow()
    batches = table.cast(SCHEMA).to_batches()
    records = (record for batch in batches for record in records_of(batch))
    return Control.of(records, begins_late=begins_late, known=known)


def _one_get_of_each_queue(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    known: set[Key] = set()
    for batch in batches:
        gets = np.flatnonzero(pc.equal(batch.column("op"), "empty").to_numpy(zero_copy_only=False))
        keep = np.ones(batch.num_rows, dtype=np.bool_)
        keep[gets] = False
        queues = named(pa.Table.from_batches([batch]), "queue")
        found, first = np.unique(queues.number[gets], return_index=True)
        for number, at in zip(found.tolist(), first.tolist(), strict=True):
            if queues.keys[number] not in known:
                known.add(queues.keys[number])
                keep[gets[at]] = True
        yield batch.filter(pa.array(keep))


@dataclass(frozen=True)
class Results:
    """All results of one pass."""

    violations: pa.Table
    aside: pa.Table
    coverage: pa.Table
    traffic: pa.Table
    summaries: pa.Table


def _contradictions(history: DataFrame, seen: Seen, control: Control) -> pa.Table:
    """Return the messages of deliveries that contradict others to their subscribers."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    spark = history.sparkSession
    known = spark.sparkContext.broadcast(control)
    parts = _parts(history, seen)
    given = history.filter((f.col("op") == "deliver") & (f.col("outcome") != "failed"))
    of_subscribers = given.select(*STREAMS).repartition(parts, "run", "queue", "consumer")
    found = of_subscribers.mapInArrow(
        lambda batches: _contradicting(batches, known.value),
        in_spark(CONTRADICTIONS),
    ).toArrow()
    known.destroy()
    return found.cast(CONTRADICTIONS)


def _parts(history: DataFrame, seen: Seen) -> int:
    """Return the number of parts for a shuffle of a few columns of all records."""
    spark = history.sparkSession
    return max(spark.sparkContext.defaultParallelism, math.ceil(seen.rows / seen.sizes.part / 2))


def _contradicting(batches: Iterator[pa.RecordBatch], control: Control) -> Iterator[pa.RecordBatch]:
    if parts := list(batches):
        table = pa.Table.from_batches(parts).replace_schema_metadata(None)
        yield from contradictions(table, control).to_batches()


def _told(
    history: DataFrame, seen: Seen, control: Control, torn: Ambiguous, left: pa.Table | None
) -> Results:
    """Run both stages; with `left`, only for the slices in it, with its rows in front."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    spark = history.sparkSession
    parts = max(spark.sparkContext.defaultParallelism, math.ceil(seen.rows / seen.sizes.part))
    known = spark.sparkContext.broadcast((control, seen.cuts, torn, left))
    together = f.coalesce(f.col("message"), f.col("start").cast("string"))
    messages = history.filter(~f.col("op").isin(list(_ONLY_CONTROL))).select(*PLAIN, _coded())
    intervals = messages.repartition(parts, "run", "queue", together).mapInArrow(
        lambda batches: _messages(batches, *known.value),
        f"{in_spark(INTERVALS)}, what string, {TOLD} binary",
    )
    results = intervals.repartition(parts, *_OF_SLICE).mapInArrow(
        lambda batches: _slices(batches, known.value[0], known.value[-1]),
        "what string, told binary",
    )
    found: dict[str, list[pa.Table]] = {name: [] for name in _RESULTS}
    for batch in results.toArrow().to_batches():
        for what, told in zip(*(batch.column(n).to_pylist() for n in (0, 1)), strict=True):
            found[what].append(_read(told))
    known.destroy()
    return Results(
        **{
            name: pa.concat_tables([schema.empty_table(), *found[name]])
            for name, schema in _RESULTS.items()
        }
    )


_ONLY_CONTROL: Final = tuple(kind for kind in KINDS_OF_CONTROL if kind != "empty")
_RESULTS: Final = {
    "violations": none().schema,
    "aside": ASIDE,
    "coverage": COVERAGE,
    "traffic": COUNTS,
    "summaries": INTERVALS,
}


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
    table = _decoded(pa.Table.from_batches(parts).replace_schema_metadata(None))
    stage = by_message(table, control, torn)
    intervals = sliced(stage.intervals, cuts, control)
    if left is None:
        results = {
            "violations": stage.violations,
            "aside": stage.aside,
            "coverage": stage.coverage,
            "traffic": stage.traffic,
        }
        yield from _as_rows(results, spread=int(numbers(table, PLACE)[0]))
    else:
        intervals = intervals.filter(_is_in(intervals, left))
    size = intervals.num_rows
    intervals = intervals.append_column("what", pa.nulls(size, pa.string()))
    yield from intervals.append_column(TOLD, pa.nulls(size, pa.binary())).to_batches()


def _slices_of(table: pa.Table) -> set[tuple[str, str, int]]:
    """Return the slices of a table's rows."""
    distinct = table.group_by(list(_OF_SLICE)).aggregate([])
    return set(zip(*(distinct.column(name).to_pylist() for name in _OF_SLICE), strict=True))


def _is_in(intervals: pa.Table, left: pa.Table) -> pa.Array:
    """Return which rows belong to the slices in `left`."""
    failing = _slices_of(left)
    queue = named(intervals, "queue")
    slices = numbers(intervals, "slice")
    chosen = np.zeros(intervals.num_rows, dtype=np.bool_)
    for number, key in enumerate(queue.keys):
        wanted = [each for run, name, each in failing if (run, name) == key]
        if wanted:
            chosen |= (queue.number == number) & np.isin(slices, wanted)
    return pa.array(chosen)


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
    table = pa.Table.from_batches(parts).cast(INTERVALS)
    results = {}
    if left is None:
        results["summaries"] = summary(table, control.window_of)
    else:
        table = pa.concat_tables([left.filter(_is_in(left, table)), table])
    results["violations"] = strongest(list(by_queue(table, control)))
    for batch in _as_rows(results, spread=0):
        yield batch.select(["what", TOLD])


def _as_rows(results: dict[str, pa.Table], spread: int) -> Iterator[pa.RecordBatch]:
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


def _idle_on_spark(history: DataFrame, control: Control, bound: int, parts: int) -> Idle:
    """Return the idle spans longer than the limit; the rows are shuffled to `parts` parts."""
    from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

    known = history.sparkSession.sparkContext.broadcast(control)
    chosen = history.filter(f.col("op").isin(list(idle.KINDS)) & (f.col("outcome") != "failed"))
    of_consumers = chosen.select(*idle.COLUMNS).repartition(parts, "run", "consumer")
    spans = of_consumers.mapInArrow(
        lambda batches: _idle_in_part(batches, known.value, bound),
        in_spark(idle.SCHEMA),
    ).toArrow()
    known.destroy()
    latest = history.groupBy("run").agg(f.max("start")).collect()
    times = {run: int(time) for run, time in latest}
    return idle.idle_of(spans.cast(idle.SCHEMA), control, times, bound)


def _idle_in_part(
    batches: Iterator[pa.RecordBatch], control: Control, bound: int
) -> Iterator[pa.RecordBatch]:
    if parts := list(batches):
        table = pa.Table.from_batches(parts).replace_schema_metadata(None)
        yield from idle.idle_spans(table, control, bound).to_batches()
