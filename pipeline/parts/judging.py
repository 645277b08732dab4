"""The judgement of a history of any size, part by part: the steps, and what an engine must do.

A first look counts queues and decides where to cut hot ones. If it does not show that each
consumer's deliveries are in order, the deliveries are brought together by consumer (`streams.py`).
Then all records are brought together by message and judged, and the waiting intervals by slice. The
results are small: violations, rejected rows, counts, and the summaries of slices. If a summary
shows that a slice fails with the rows left by earlier slices, the failing slices alone are judged
again with those rows in front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals import idle, streams
from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues
from brokerproof.pipeline.intervals.streams import (
    Ambiguous,
    ambiguous,
    clock_step,
    contradictions,
)
from brokerproof.pipeline.intervals.table import SCHEMA as INTERVALS
from brokerproof.pipeline.intervals.traffic import COUNTS, bins_of, total
from brokerproof.pipeline.names import is_one_of, numbers
from brokerproof.pipeline.parts.looks import (
    LOOKED,
    ONLY_CONTROL,
    SIZES,
    Look,
    Sizes,
    control_rows,
    look_at,
    seen_by,
)
from brokerproof.pipeline.parts.parcels import (
    Parcel,
    Piece,
    Told,
    opened,
    parcels,
    parcels_of_results,
    pieces_of,
    words_of,
    words_of_messages,
)
from brokerproof.pipeline.parts.slices import Cuts, left_to, sliced, summary
from brokerproof.pipeline.readers.rejected_rows import ASIDE
from brokerproof.pipeline.results import COVERAGE, Judgement
from brokerproof.pipeline.rules.violations import none, strongest
from brokerproof.pipeline.stages import by_message, by_queue, concluded, control_of
from brokerproof.pipeline.tables import PLACE, SCHEMA

Progress: TypeAlias = Callable[[str], None]

OF_MESSAGES: Final = (
    *("op", "run", "queue", "message", "consumer", "channel", "start", "end", "position"),
    *("priority", "persistent", "redelivered", "mode", "outcome", PLACE),
)
"""The columns of the records of messages."""


@dataclass(frozen=True)
class _Results:
    """All results of one pass."""

    violations: pa.Table
    aside: pa.Table
    coverage: pa.Table
    traffic: pa.Table
    summaries: pa.Table


_RESULTS: Final = {
    "violations": none().schema,
    "aside": ASIDE,
    "coverage": COVERAGE,
    "traffic": COUNTS,
    "summaries": INTERVALS,
}
"""The tables of results and their columns."""

ItemT_co = TypeVar("ItemT_co", covariant=True)
Made = TypeVar("Made")


class Parts(Protocol[ItemT_co]):
    """Items that are worked on one at a time, wherever an engine keeps them.

    Work is a function that can be pickled.
    """

    def each(self, work: Callable[[ItemT_co], Made]) -> Iterable[Made]:
        """Return the results of work on each item."""
        ...

    def exchanged(
        self, work: Callable[[ItemT_co], Iterable[Parcel]], parts: int
    ) -> Parts[Sequence[bytes]]:
        """Return, for each part, the parcels that the items have for it."""
        ...


class Engine(Protocol):
    """Where pieces are read and parts are judged; `jobs` is how many at once."""

    @property
    def jobs(self) -> int:
        """The number of items that are worked on at once."""
        ...

    def of(self, pieces: Sequence[Piece]) -> Parts[Piece]:
        """Return the pieces of a history for work by this engine."""
        ...


class _OfConsumers(NamedTuple):
    """Work on all records of some kinds and a consumer together; those that failed are left out.

    It reads these columns, and its results have the schema.
    """

    kinds: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    work: Callable[[pa.Table], pa.Table]

    def sent(self, piece: Piece, parts: int) -> Iterator[Parcel]:
        """Yield the records of a piece by consumer."""
        table = piece.table(self.columns)
        happened = ~is_one_of(table, "outcome", "failed")
        table = table.filter(pa.array(is_one_of(table, "op", *self.kinds) & happened))
        yield from parcels(table, words_of(named(table, "consumer")), parts)

    def worked(self, contents: Sequence[bytes]) -> pa.Table:
        """Return the results of a part."""
        table, _ = opened(contents)
        return self.schema.empty_table() if table is None else self.work(table)

    def results(self, pieces: Parts[Piece], parts: int) -> pa.Table:
        """Return the results of all parts."""
        exchanged = pieces.exchanged(partial(self.sent, parts=parts), parts)
        return pa.concat_tables([self.schema.empty_table(), *exchanged.each(self.worked)])


def judged_in_parts(
    engine: Engine,
    files: Sequence[Path],
    *,
    begins_late: bool = False,
    known: KnownQueues = NOTHING_SAID,
    stalled_after: int | None = None,
    progress: Progress = lambda _: None,
    sizes: Sizes = SIZES,
) -> Judgement:
    """Return the judgement of a history in Parquet files; see `judged_alone`."""
    all_pieces = [*pieces_of(files, sizes.part)]
    parts = max(engine.jobs, math.ceil(sum(piece.rows for piece in all_pieces) / sizes.part))
    pieces = engine.of(all_pieces)
    progress("looking for hot queues")
    looks = [*pieces.each(partial(_looked, sampled=sizes.sampled))]
    seen = seen_by((look for look, _ in looks), sizes)
    records = pa.concat_tables([control for _, control in looks])
    control = control_of(records, begins_late=begins_late, known=known)
    control.bins = bins_of(seen.spans)
    torn = streams.FOUND.empty_table()
    if not seen.in_order:
        progress("following the deliveries to each consumer")
        work = partial(contradictions, control=control)
        asked = _OfConsumers(("deliver",), streams.COLUMNS, streams.FOUND, work)
        torn = asked.results(pieces, parts)
    if stalled_after is not None:
        progress("looking when consumers were free")
        work = partial(idle.idle_spans, control=control, bound=stalled_after)
        asked = _OfConsumers(idle.KINDS, idle.COLUMNS, idle.SCHEMA, work)
        spans = asked.results(pieces, parts)
        control.idle = idle.idle_of(spans, control, seen.latest, stalled_after)
    progress(f"judging {seen.rows:,} records")
    judge = partial(_judged_messages, control=control, cuts=seen.cuts, torn=ambiguous(torn))
    messages = pieces.exchanged(partial(_of_messages, parts=parts), parts)
    slices = messages.exchanged(partial(judge, parts=parts), parts)
    told = _together(slices.each(partial(_judged_slices, control=control)))
    left = left_to(told.summaries, control.window_of)
    again = none()
    if left.num_rows:
        progress(f"judging {len(_slices_of(left)):,} slices again, for what was left to them")
        again = _together(
            slices.each(partial(_judged_again, control=control, left=left))
        ).violations
    # A history without records of messages has no parts, but all requirements are judged.
    of_none = by_message(SCHEMA.empty_table(), control).coverage
    wrong, coverage = concluded([told.violations, again], [told.coverage, of_none], control)
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


def _looked(piece: Piece, sampled: int) -> tuple[Look, pa.Table]:
    """Return a first look at a piece, and its control records."""
    table = piece.table(LOOKED)
    chosen = control_rows(table)
    control = piece.table().filter(pa.array(chosen)) if chosen.any() else SCHEMA.empty_table()
    return look_at(table, sampled), control.cast(SCHEMA)


def _of_messages(piece: Piece, parts: int) -> Iterator[Parcel]:
    """Yield the records of a piece by message."""
    table = piece.table(OF_MESSAGES)
    others = is_one_of(table, "op", *ONLY_CONTROL)
    if others.any():
        table = table.filter(pa.array(~others))
    yield from parcels(table, words_of_messages(table), parts)


def _judged_messages(
    contents: Sequence[bytes], control: Control, cuts: Cuts, torn: Ambiguous, parts: int
) -> Iterator[Parcel]:
    """Judge the messages of a part; yield the results, and the waiting intervals by slice."""
    table, _ = opened(contents)
    if table is None:
        return
    stage = by_message(table, control, torn)
    told = {
        "violations": stage.violations,
        "aside": stage.aside,
        "coverage": stage.coverage,
        "traffic": stage.traffic,
    }
    yield from parcels_of_results(told, int(numbers(table, PLACE)[0]) % parts)
    intervals = sliced(stage.intervals, cuts, control)
    of_slice = words_of(named(intervals, "queue")) + numbers(intervals, "slice").view(np.uint64)
    yield from parcels(intervals, of_slice, parts)


def _judged_slices(contents: Sequence[bytes], control: Control) -> list[Told]:
    """Judge the slices of a part; return their results, and those that were sent here."""
    intervals, told = opened(contents)
    if intervals is not None:
        told.append(
            {
                "summaries": summary(intervals, control.window_of),
                "violations": strongest(list(by_queue(intervals, control))),
            }
        )
    return told


def _judged_again(contents: Sequence[bytes], control: Control, left: pa.Table) -> list[Told]:
    """Judge those slices of a part to which rows were left, with these rows in front."""
    intervals, _ = opened(contents)
    if intervals is None:
        return []
    failing = _in_slices_of(intervals, left)
    both = pa.concat_tables([_in_slices_of(left, failing), failing])
    return [{"violations": strongest(list(by_queue(both, control)))}]


def _together(parts: Iterable[list[Told]]) -> _Results:
    """Return the results of all parts as one."""
    found: dict[str, list[pa.Table]] = {name: [] for name in _RESULTS}
    for told in (each for part in parts for each in part):
        for name, table in told.items():
            found[name].append(table)
    return _Results(
        **{
            name: pa.concat_tables([schema.empty_table(), *found[name]])
            for name, schema in _RESULTS.items()
        }
    )


_OF_SLICE: Final = ("run", "queue", "slice")


def _slices_of(table: pa.Table) -> set[tuple[str, str, int]]:
    """Return the slices of a table's rows."""
    distinct = table.group_by(list(_OF_SLICE)).aggregate([])
    return set(zip(*(distinct.column(name).to_pylist() for name in _OF_SLICE), strict=True))


def _in_slices_of(intervals: pa.Table, others: pa.Table) -> pa.Table:
    """Return the intervals in the slices of others."""
    failing = _slices_of(others)
    queue = named(intervals, "queue")
    slices = numbers(intervals, "slice")
    chosen = np.zeros(intervals.num_rows, dtype=np.bool_)
    for number, key in enumerate(queue.keys):
        wanted = [each for run, name, each in failing if (run, name) == key]
        if wanted:
            chosen |= (queue.number == number) & np.isin(slices, wanted)
    return intervals.filter(pa.array(chosen))
