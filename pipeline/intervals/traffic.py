"""The traffic of the busiest queues over time, as a picture of it needs it: counts in a few bins.

The time of a queue, from its first publish to its last delivery, is cut into `BINS` equal bins. A
message waits from its publish or return until a delivery is seen, or until a purge, a deletion or a
crash may have dropped it. Each part of a history is counted by itself where its messages are judged
anyway, and the counts are added. So the size is bounded for any number of records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals.control import Bins, Named, named
from brokerproof.pipeline.intervals.table import Waits
from brokerproof.pipeline.names import NO_ROW, Ints, is_one_of, numbers
from brokerproof.spec.histories import NEVER

QUEUES: Final = 12
"""The largest number of queues that are counted."""

BINS: Final = 100

SPANS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "queue")),
        *((name, pa.int64()) for name in ("many", "first", "last")),
    ]
)
"""How many publishes and deliveries a queue has, and from when to when."""

COUNTS: Final = pa.schema([(name, pa.int64()) for name in ("begun", "ended", "given", "slowest")])
"""Of each bin, queue by queue: the waits that began and ended in it, the deliveries that were seen
in it, and the longest wait that one of these ended.
"""


def spans_of(history: pa.Table) -> pa.Table:
    """Return when the queues in some rows were busy."""
    published = is_one_of(history, "op", "publish")
    rows = np.flatnonzero(published | is_one_of(history, "op", "deliver"))
    queue = named(history, "queue")
    number, size = queue.number[rows], len(queue.keys)
    at = np.where(published, numbers(history, "start"), numbers(history, "end"))[rows]
    first = np.full(size, NEVER, dtype=np.int64)
    np.minimum.at(first, number, at)
    last = np.zeros(size, dtype=np.int64)
    np.maximum.at(last, number, at)
    run, name = (pa.array([key[n] for key in queue.keys], pa.string()) for n in (0, 1))
    many = np.bincount(number, minlength=size)
    return pa.table([run, name, many, first, last], schema=SPANS).filter(pa.array(many > 0))


def bins_of(spans: Iterable[pa.Table]) -> Bins:
    """Return the bins of the busiest queues in all parts of a history."""
    together = pa.concat_tables([SPANS.empty_table(), *spans]).group_by(["run", "queue"])
    busy = together.aggregate([("many", "sum"), ("first", "min"), ("last", "max")])
    order = [("many_sum", "descending"), ("run", "ascending"), ("queue", "ascending")]
    rows = busy.sort_by(order).slice(0, QUEUES).to_pylist()
    return Bins(
        tuple((row["run"], row["queue"]) for row in rows),
        tuple(row["first_min"] for row in rows),
        tuple((row["last_max"] - row["first_min"]) // BINS + 1 for row in rows),
    )


def traffic_of(waits: Waits, queue: Named, bins: Bins) -> pa.Table:
    """Return the counts of some intervals; a wait that may not have begun is left out."""
    number = bins.numbers_of(queue.keys)[waits.queue]
    given = waits.given != NO_ROW
    rows = np.flatnonzero((number >= 0) & (given | (waits.begun_end < NEVER)))
    begun, given, number = waits.begun_start[rows], given[rows], number[rows]
    left = np.where(waits.left_start[rows] < begun, NEVER, waits.left_start[rows])
    ended = np.maximum(np.where(given, waits.given_end[rows], left), begun)
    size = len(bins.keys) * BINS
    seen = cells(bins, number, ended)
    slowest = np.zeros(size, dtype=np.int64)
    np.maximum.at(slowest, seen[given], (ended - begun)[given])
    counts = (cells(bins, number, begun), seen[ended < NEVER], seen[given])
    return pa.table(
        [*(np.bincount(each, minlength=size) for each in counts), slowest], schema=COUNTS
    )


def cells(bins: Bins, number: Ints, at: Ints) -> Ints:
    """Return the bins of times of queues; times beyond a queue's own go to its first or last."""
    first, width = (np.array(each, dtype=np.int64)[number] for each in (bins.first, bins.width))
    cell: Ints = number * BINS + np.clip((at - first) // width, 0, BINS - 1)
    return cell


def total(counts: Iterable[pa.Table], bins: Bins) -> pa.Table:
    """Return the counts of a whole history, from those of its parts in one table or several."""
    size = len(bins.keys) * BINS
    whole = pa.concat_tables([pa.table([np.zeros(size, dtype=np.int64)] * 4, COUNTS), *counts])
    if not size:
        return whole
    parts = {name: numbers(whole, name).reshape(-1, size) for name in COUNTS.names}
    slowest = parts.pop("slowest").max(axis=0)
    return pa.table([*(each.sum(axis=0) for each in parts.values()), slowest], schema=COUNTS)
