"""A first look at a history: where its hot queues are cut, and what the steps must know before.

Each piece is looked at by itself, and the results are put together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals.control import named
from brokerproof.pipeline.intervals.idle import latest_times
from brokerproof.pipeline.intervals.streams import Stretches, are_in_order, stretches
from brokerproof.pipeline.intervals.subscriptions import Key
from brokerproof.pipeline.intervals.traffic import spans_of
from brokerproof.pipeline.names import Ints, Marks, is_one_of, joint, numbers, ranks
from brokerproof.pipeline.parts.slices import Cuts
from brokerproof.pipeline.stages import KINDS_OF_CONTROL

ONLY_CONTROL: Final = tuple(kind for kind in KINDS_OF_CONTROL if kind != "empty")
"""The kinds of records that no message has."""


@dataclass(frozen=True)
class Sizes:
    """How the work is cut.

    Attributes:
        part: the number of records in a worker's memory at once, about; each takes a kilobyte.
        hot: the publishes and deliveries of a slice of a hot queue.
        sampled: one row in this many is read to find where hot queues are cut.
    """

    part: int = 400_000
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


LOOKED: Final = ("op", "run", "queue", "consumer", "start", "end", "position", "outcome")
"""The columns that a first look needs."""


def control_rows(table: pa.Table) -> Marks:
    """Return which records are of `KINDS_OF_CONTROL`; of gets one of each queue."""
    chosen = is_one_of(table, "op", *ONLY_CONTROL)
    gets = np.flatnonzero(is_one_of(table, "op", "empty"))
    _, first = np.unique(named(table, "queue").number[gets], return_index=True)
    chosen[gets[first]] = True
    return chosen


def look_at(table: pa.Table, sampled: int) -> Look:
    """Return a first look at some records."""
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
    return Look(counted, times, stretches(table), spans_of(table), latest_times(table))


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
