"""The judgement of a history of any size, in steps that an engine does part by part.

A first look counts queues and decides where to cut hot ones. If it does not show that each
consumer's deliveries are in order, the deliveries are brought together by consumer (`streams.py`).
Then all records are brought together by message and judged, and the waiting intervals by slice. The
results are small: violations, rejected rows, counts, and the summaries of slices. If a summary
shows that a slice fails with the rows left by earlier slices, the failing slices alone are judged
again with those rows in front.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals import idle, streams
from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues
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
from brokerproof.pipeline.names import Ints, is_one_of, joint, numbers, ranks
from brokerproof.pipeline.parts.slices import Cuts, left_to, sliced, summary
from brokerproof.pipeline.readers.rejected_rows import ASIDE
from brokerproof.pipeline.results import COVERAGE, Judgement
from brokerproof.pipeline.rules.violations import none, strongest
from brokerproof.pipeline.stages import (
    KINDS_OF_CONTROL,
    by_message,
    by_queue,
    concluded,
    control_of,
)
from brokerproof.pipeline.tables import SCHEMA

Progress: TypeAlias = Callable[[str], None]

OF_SLICE: Final = ("run", "queue", "slice")
"""The columns whose values name a slice."""

ONLY_CONTROL: Final = tuple(kind for kind in KINDS_OF_CONTROL if kind != "empty")
"""The kinds of records that no message has."""

LOOKED_AT: Final = ("op", "run", "queue", "consumer", "start", "end", "position", "outcome")
"""The columns that a first look reads."""


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


SIZES: Final = Sizes()


@dataclass(frozen=True)
class Look:
    """The result of a first look at some records.

    Attributes:
        counted: the number of records of each kind and queue.
        times: of each queue, some of the times at which its records start.
        stretches: the parts of its streams; None if one is not in order as it stands.
        spans: when its queues were busy.
        latest: the greatest start of each run.
    """

    counted: Counter[tuple[str, Key]]
    times: dict[Key, Ints]
    stretches: Stretches | None
    spans: pa.Table
    latest: dict[str, int]


@dataclass(frozen=True)
class Seen:
    """The result of a first look at a history."""

    rows: int
    cuts: Cuts
    queues: frozenset[Key]
    in_order: bool
    spans: tuple[pa.Table, ...]
    latest: dict[str, int]


@dataclass(frozen=True)
class Results:
    """All results of one pass, or of a part of it."""

    violations: pa.Table
    aside: pa.Table
    coverage: pa.Table
    traffic: pa.Table
    summaries: pa.Table


RESULTS: Final = {
    "violations": none().schema,
    "aside": ASIDE,
    "coverage": COVERAGE,
    "traffic": COUNTS,
    "summaries": INTERVALS,
}
"""The tables of results and their columns."""

Told: TypeAlias = dict[str, pa.Table]
"""Some of the tables of results, by name."""


class OfConsumers(NamedTuple):
    """Work on all records of some kinds and a consumer together; those that failed are left out.

    It reads these columns, and its results have the schema.
    """

    kinds: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    work: Callable[[pa.Table], pa.Table]


class Engine(Protocol):
    """Where the parts of a history are, and where they are judged."""

    sizes: Sizes

    def looks(self) -> Iterator[Look]:
        """Yield the results of a first look at all parts."""

    def control_records(self) -> pa.Table:
        """Return the records of `KINDS_OF_CONTROL`; of gets at least one of each queue."""

    def of_consumers(self, asked: OfConsumers, rows: int) -> pa.Table:
        """Return the results of some work; `rows` is the size of the history."""

    def judged(
        self, seen: Seen, control: Control, torn: Ambiguous, left: pa.Table | None
    ) -> Results:
        """Run both stages; with `left`, only for the slices in it, with its rows in front."""


def control_rows(table: pa.Table) -> pa.Table:
    """Return the records of `KINDS_OF_CONTROL` in a table; of gets one of each queue."""
    chosen = is_one_of(table, "op", *ONLY_CONTROL)
    gets = np.flatnonzero(is_one_of(table, "op", "empty"))
    _, first = np.unique(named(table, "queue").number[gets], return_index=True)
    chosen[gets[first]] = True
    return table.filter(pa.array(chosen))


def look_at(table: pa.Table, sampled: int) -> Look:
    """Look at the columns `LOOKED_AT` of some records."""
    queue = named(table, "queue")
    kind, kinds = ranks(table.column("op"))
    width = int(kind.max(initial=0)) + 2
    names = kinds.to_pylist()
    counted = Counter(
        {
            (names[int(pair) % width - 1], queue.keys[int(pair) // width]): int(count)
            for pair, count in zip(*np.unique_counts(joint(queue.number, kind)), strict=True)
        }
    )
    start, number = numbers(table, "start")[::sampled], queue.number[::sampled]
    times = {queue.keys[one]: start[number == one] for one in np.unique(number).tolist()}
    return Look(counted, times, stretches(table), spans_of(table), idle.latest_times(table))


def seen_by(looks: Iterable[Look], sizes: Sizes) -> Seen:
    """Count the records; find where hot queues are cut, and to which queues messages returned."""
    counted: Counter[tuple[str, Key]] = Counter()
    times: dict[Key, list[Ints]] = {}
    parts: list[Stretches | None] = []
    spans: list[pa.Table] = []
    latest: dict[str, int] = {}
    for look in looks:
        counted.update(look.counted)
        parts.append(look.stretches)
        spans.append(look.spans)
        for key, some in look.times.items():
            times.setdefault(key, []).append(some)
        for run, time in look.latest.items():
            latest[run] = max(time, latest.get(run, time))
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
        frozenset(queues),
        are_in_order(parts),
        tuple(spans),
        latest,
    )


def judged_in_parts(
    engine: Engine,
    *,
    begins_late: bool = False,
    known: KnownQueues = NOTHING_SAID,
    stalled_after: int | None = None,
    progress: Progress = lambda _: None,
) -> Judgement:
    """Return the judgement of an engine's history; see `judged_alone`."""
    progress("looking for hot queues")
    seen = seen_by(engine.looks(), engine.sizes)
    progress("reading what is about no single message")
    control = control_of(engine.control_records(), begins_late=begins_late, known=known)
    control.bins = bins_of(seen.spans)
    torn = streams.FOUND.empty_table()
    if not seen.in_order:
        progress("following the deliveries to each consumer")
        work = partial(contradictions, control=control)
        asked = OfConsumers(("deliver",), streams.COLUMNS, streams.FOUND, work)
        torn = engine.of_consumers(asked, seen.rows)
    if stalled_after is not None:
        progress("looking when consumers were free")
        work = partial(idle.idle_spans, control=control, bound=stalled_after)
        asked = OfConsumers(idle.KINDS, idle.COLUMNS, idle.SCHEMA, work)
        spans = engine.of_consumers(asked, seen.rows)
        control.idle = idle.idle_of(spans, control, seen.latest, stalled_after)
    progress(f"judging {seen.rows:,} records")
    rejected = ambiguous(torn)
    told = engine.judged(seen, control, rejected, None)
    left = left_to(told.summaries, control.window_of)
    again = none()
    if left.num_rows:
        progress(f"judging {len(_slices_of(left)):,} slices again, for what was left to them")
        again = engine.judged(seen, control, rejected, left).violations
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


def judged_messages(
    table: pa.Table, control: Control, cuts: Cuts, torn: Ambiguous
) -> tuple[Told, pa.Table]:
    """Judge the messages of a part; return the results and the waiting intervals by slice."""
    stage = by_message(table, control, torn)
    told = {
        "violations": stage.violations,
        "aside": stage.aside,
        "coverage": stage.coverage,
        "traffic": stage.traffic,
    }
    return told, sliced(stage.intervals, cuts, control)


def judged_slices(intervals: pa.Table, control: Control, left: pa.Table | None) -> Told:
    """Judge the slices of a part; with `left`, its rows are in front, and there is no summary."""
    told = {}
    if left is None:
        told["summaries"] = summary(intervals, control.window_of)
    else:
        intervals = pa.concat_tables([in_slices_of(left, intervals), intervals])
    told["violations"] = strongest(list(by_queue(intervals, control)))
    return told


def together(parts: Iterable[Told]) -> Results:
    """Return the results of several parts as one."""
    found: dict[str, list[pa.Table]] = {name: [] for name in RESULTS}
    for part in parts:
        for name, table in part.items():
            found[name].append(table)
    return Results(
        **{
            name: pa.concat_tables([schema.empty_table(), *found[name]])
            for name, schema in RESULTS.items()
        }
    )


def _slices_of(table: pa.Table) -> set[tuple[str, str, int]]:
    """Return the slices of a table's rows."""
    distinct = table.group_by(list(OF_SLICE)).aggregate([])
    return set(zip(*(distinct.column(name).to_pylist() for name in OF_SLICE), strict=True))


def in_slices_of(intervals: pa.Table, others: pa.Table) -> pa.Table:
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
