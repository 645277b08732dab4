"""A watch on Spark: batches of files, each judged from the state that the previous batch left.

Spark's stream names the new files of a batch and records them in its checkpoint; a batch that was
cut short gets the same files again. All else is a function of the batch's files and the state
before it (`state.py`), so a repeated batch gives the same results. After the shuffle by queue each
part is judged alone (`watching.py`); one worker judges a queue.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from brokerproof.checks.errors import CannotRun
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues
from brokerproof.pipeline.readers.rejected_rows import Category, Rejected
from brokerproof.pipeline.rules.violations import SCHEMA, strongest
from brokerproof.pipeline.tables import PLACE, file_and_line, place_of, records_of
from brokerproof.pipeline.watch.files import (
    ROWS_AND_TOLD,
    ROWS_IN_SPARK,
    SUFFIXES,
    TOLD,
    FileTold,
    path_of,
    records_and_told,
    rows_of_files,
    told_row,
)
from brokerproof.pipeline.watch.state import (
    REJECTED,
    ROWS,
    VIOLATIONS,
    Carried,
    Folder,
    State,
)
from brokerproof.pipeline.watch.watching import (
    Clock,
    QueueState,
    Raised,
    Subscribers,
    judged,
    states_of,
    still_needed,
    subscribers_of,
)
from brokerproof.spec.histories import CONTROL, NEVER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FILES_OF_A_BATCH: Final = 16
"""The largest number of files read at once; the others go to later batches."""
FOR_EVER: Final = "36500d"
"""How much older than the newest a file may be: Spark's default leaves out files older than a week.
"""
NAMES_SHOWN: Final = 5
"""The largest number of undecided queues that are named."""
_BINARY_FILES: Final = "path string, modificationTime timestamp, length long, content binary"


@dataclass(frozen=True)
class Batch:
    """The results of a batch: violations raised and withdrawn, and rejected rows.

    `clocks` says in a line for each queue where the clock of its recorder went back.
    """

    carried: Carried
    raised: list[dict[str, Any]] = field(default_factory=list)
    withdrawn: list[dict[str, Any]] = field(default_factory=list)
    aside: list[Rejected] = field(default_factory=list)
    written: Path = Path()
    clocks: tuple[str, ...] = ()


@dataclass
class Watch:
    """A watch over a directory. `late` and `keep` are in the unit of the history's times.

    `say` is called with each batch once its state is written; `known` has facts about undeclared
    queues. `failed` is the error of a batch, since Spark reports it in its own words.
    """

    spark: SparkSession
    folder: Folder
    late: int
    keep: int | None
    say: Callable[[Batch], None]
    known: KnownQueues = NOTHING_SAID
    failed: Exception | None = None
    stopped: bool = False
    working: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, directory: Path, *, once: bool, interval_s: float) -> StreamingQuery:
        """Start to watch; with `once`, only the files that exist now."""
        paths = (
            self.spark.readStream.format("binaryFile")
            .schema(_BINARY_FILES)
            .option("pathGlobFilter", f"*.{{{','.join(SUFFIXES)}}}")
            .option("maxFilesPerTrigger", FILES_OF_A_BATCH)
            .option("maxFileAge", FOR_EVER)
            .load(str(directory.resolve()))
            .select("path")
        )
        writer = paths.writeStream.foreachBatch(self._batch_of_spark).option(
            "checkpointLocation", str(self.folder.checkpoint)
        )
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{interval_s} seconds").start()

    def stop(self, query: StreamingQuery, wait_s: float) -> bool:
        """Stop between two batches; return whether one has ended within that time.

        An interrupted batch has to be judged again.
        """
        if not self.working.acquire(timeout=wait_s):
            return False
        try:
            self.stopped = True
            query.stop()
        finally:
            self.working.release()
        return True

    def leave_batch(self) -> None:
        """Let the current batch fail; a restarted watch judges it again."""
        self.spark.sparkContext.cancelAllJobs()

    def _batch_of_spark(self, paths: DataFrame, batch: int) -> None:
        with self.working:
            if self.stopped:
                raise InterruptedError("the watch has been stopped")
            try:
                self.batch([path_of(row["path"]) for row in paths.collect()], batch)
            except Exception as error:
                self.failed = error
                raise

    def batch(self, paths: Sequence[str], batch: int) -> None:
        """Judge some new files, unless that was done.

        Raises `StateIsMissing`, and `CannotRun` if they declare a queue other than `known` says.
        """
        if self.folder.has(batch):
            return
        before = self.folder.left_by(batch - 1)
        in_order = sorted(paths)
        first = before.carried.files
        clock = Clock({}, self.late, self.keep, place_of(first, 0))
        new = self._read(in_order, first).persist()
        try:
            self._judge(before, new, clock, batch, in_order)
        finally:
            new.unpersist()

    def finish(self) -> None:
        """Judge the rest as if no more files came."""
        before = self.folder.latest()
        if before is None or self.folder.has(before.carried.batch, end=True):
            return
        nothing = place_of(before.carried.files, 0)
        clock = Clock({}, self.late, self.keep, nothing, finished=True)
        self._judge(before, self._read([], 0), clock, before.carried.batch, ())

    def _read(self, paths: Sequence[str], first: int) -> DataFrame:
        names = list(paths)
        numbers = self.spark.range(0, len(names), 1, max(1, len(names)))

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            of_files = (n for batch in batches for n in batch.column(0).to_pylist())
            return rows_of_files(names, first, of_files)

        return numbers.mapInArrow(read, ROWS_IN_SPARK)

    def _judge(
        self, before: State, new: DataFrame, clock: Clock, batch: int, paths: Sequence[str]
    ) -> None:
        from pyspark.sql import functions as f  # noqa: PLC0415 (an extra)

        about_none = f.col(TOLD).isNotNull() | f.col("op").isin(sorted(CONTROL))
        small = new.filter(about_none).toArrow()
        fresh, files_told = records_and_told(small.to_batches())
        for record in (each for part in fresh.to_batches() for each in records_of(part)):
            if (contradiction := self.known.contradiction(record)) is not None:
                raise CannotRun(contradiction)
        of_files = [msgspec.msgpack.decode(each, type=FileTold) for each in files_told]
        carried = _counted(before.carried, of_files, batch, before.carried.files + len(paths))
        clock = Clock(
            carried.newest,
            clock.late,
            clock.keep,
            clock.fresh_from,
            frozenset(fresh.column("run").to_pylist()),
            clock.finished,
        )
        control = pa.concat_tables([before.control, fresh]).sort_by(PLACE)
        into = self.folder.begin(batch, end=clock.finished) / ROWS
        records = new.filter(~about_none)
        if before.rows is not None:
            kept = self.spark.read.schema(ROWS_IN_SPARK).parquet(str(before.rows))
            records = records.union(kept)
        _judged_by_queue(records, control, clock, self.known).write.parquet(str(into))
        states = _states_in(into)
        self._tell(carried, control, states, of_files, clock, paths)

    def _tell(
        self,
        carried: Carried,
        control: pa.Table,
        states: Sequence[QueueState],
        of_files: Sequence[FileTold],
        clock: Clock,
        paths: Sequence[str],
    ) -> None:
        """Write the results of the batch, and then that it is done."""
        end = clock.finished
        raised = [row for state in states for row in state.found]
        raised.sort(key=lambda row: (row["late_end"], *(row[n] for n in _KEY)))
        withdrawn = [_row(state, each) for state in states for each in state.withdrawn]
        withdrawn.sort(key=lambda row: [row[n] for n in _KEY])
        aside = [each for told in of_files for each in told.aside]
        carried.raised += len(raised)
        carried.withdrawn += len(withdrawn)
        carried.strangers += sum(state.strangers for state in states)
        unjudged = sum((Counter(state.unjudged) for state in states), Counter[Category]())
        carried.unjudged = dict(unjudged)
        undecided = sorted({state.queue for state in states if state.pending})
        carried.undecided, carried.first_undecided = len(undecided), undecided[:NAMES_SHOWN]
        lines = [{"said": "raised", **row} for row in raised]
        lines += [{"said": "withdrawn", **row} for row in withdrawn]
        written = self.folder.tell(VIOLATIONS, carried.batch, lines, end=end)
        self.folder.tell(REJECTED, carried.batch, aside, end=end)
        if clock.keep is not None:
            control = still_needed(control, _oldest(states, clock))
        elif end:
            stays = [row for state in states for row in state.stays]
            self.folder.write_result(strongest([pa.Table.from_pylist(stays, SCHEMA)]))
        self.folder.finish(carried, control, end=end)
        clocks = tuple(sorted(clock_lines(states, paths, carried.files)))
        self.say(Batch(carried, raised, withdrawn, aside, written, clocks))


def clock_lines(states: Sequence[QueueState], paths: Sequence[str], files: int) -> Iterator[str]:
    """Yield where clocks went back; `files` are all files so far, `paths` the last of them."""
    for state in states:
        if state.clock_step is not None:
            number, line = file_and_line(state.clock_step.place)
            at = number - files + len(paths)
            yield (
                f"{paths[at] if at >= 0 else 'an earlier file'}:{line}: {state.clock_step}: "
                f"messages of queue {state.queue}, run {state.run}, whose deliveries contradict "
                "others for that are not judged"
            )


_KEY: Final = ("run", "queue", "requirement", "message")


def _row(state: QueueState, each: Raised) -> dict[str, Any]:
    return {"run": state.run, "queue": state.queue, **msgspec.structs.asdict(each)}


def _counted(before: Carried, told: Sequence[FileTold], batch: int, files: int) -> Carried:
    """Return the carried counts with the rows of some more files."""
    account = before.account
    newest = dict(before.newest)
    for each in told:
        account.add(each.rows, each.checked, each.by_category)
        for run, time in each.newest.items():
            newest[run] = max(time, newest.get(run, 0))
    return msgspec.structs.replace(
        before,
        batch=batch,
        files=files,
        newest=newest,
        rows=account.rows,
        checked=account.checked,
        aside=dict(account.by_category),
    )


def _judged_by_queue(
    records: DataFrame, control: pa.Table, clock: Clock, queues: KnownQueues
) -> DataFrame:
    """Return the kept records and the states of queues, of all parts."""
    spark = records.sparkSession
    told = (record for batch in control.to_batches() for record in records_of(batch))
    of_control = Control.of(told, known=queues)
    known = spark.sparkContext.broadcast((of_control, subscribers_of(control), clock))
    parts = spark.sparkContext.defaultParallelism
    return records.repartition(parts, "run", "queue").mapInArrow(
        lambda batches: _judged_part(batches, *known.value), ROWS_IN_SPARK
    )


def _judged_part(
    batches: Iterator[pa.RecordBatch], control: Control, subscribers: Subscribers, clock: Clock
) -> Iterator[pa.RecordBatch]:
    table, told = records_and_told(list(batches))
    if not table.num_rows and not told:
        return
    kept, states = judged(table, states_of(told), control, subscribers, clock)
    nothing = pa.nulls(kept.num_rows, pa.binary())
    yield from kept.append_column(TOLD, nothing).cast(ROWS_AND_TOLD).to_batches()
    for state in states:
        yield told_row(msgspec.msgpack.encode(state), state.run, state.queue)


def _states_in(rows: Path) -> list[QueueState]:
    """Return the states of queues that a batch wrote."""
    told = ds.dataset(rows, format="parquet").to_table(
        columns=[TOLD], filter=ds.field(TOLD).is_valid()
    )
    return states_of(pc.cast(told.column(TOLD), pa.binary()).to_pylist())


def _oldest(states: Sequence[QueueState], clock: Clock) -> dict[str, int]:
    """Return for each run the time before which no record is kept, and none comes."""
    oldest: dict[str, int] = {}
    for state in states:
        coming = clock.forgets_before(state.run)
        oldest[state.run] = min(state.oldest, coming, oldest.get(state.run, NEVER))
    return oldest
