"""Contradictory streams: positions that come twice, or that go against time.

The positions of a subscriber's deliveries give their order. Two deliveries at one position, or one
seen before an earlier one can have been made, are an error of the recorder, whatever the broker
did. Rules rely on positions, so all records of the messages of such deliveries are rejected. All
deliveries to a subscriber must be in the table.

If the clock of a recorder goes back once, most deliveries contradict others until it has caught up.
The delivery that was seen most too early is the first one after that, and shows the size at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.dominance import Early, Late, overtaken, running_least
from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.intervals.subscribers import told_apart
from brokerproof.pipeline.names import NO_ROW, Ints, is_one_of, joint, numbers, ranks, texts
from brokerproof.pipeline.tables import PLACE
from brokerproof.spec.histories import NEVER

Ambiguous: TypeAlias = Mapping[tuple[str, str, str], str]
"""The ambiguous messages, by run, queue and name, each with the reason."""

NONE_AMBIGUOUS: Final[Ambiguous] = {}

TWICE: Final = "one position stands twice among the deliveries to its consumer"
AGAINST_TIME: Final = (
    "the positions of the deliveries to its consumer go against time: "
    "a later one was seen before an earlier one can have been made"
)

COLUMNS: Final = (
    "op",
    "run",
    "queue",
    "message",
    "consumer",
    "channel",
    "start",
    "end",
    "position",
    "outcome",
    PLACE,
)
"""The columns that are read."""

KEY: Final = ("run", "queue", "message")
FOUND: Final = pa.schema(
    [
        *((name, pa.string()) for name in (*KEY, "reason")),
        ("too_early", pa.int64()),
        (PLACE, pa.int64()),
    ]
)
"""A message of contradictory deliveries. `too_early` is by how much the delivery at the place was
seen before the latest of those in front can have been made, 0 if it was not.
"""


class ClockStep(NamedTuple):
    """The clock of a recorder went back: by how much at least, and the first delivery after it."""

    by: int
    place: int

    def __str__(self) -> str:
        return (
            f"the clock of the recorder went back by at least {self.by:,}, or the positions are "
            "wrong"
        )


def contradictions(history: pa.Table, control: Control) -> pa.Table:
    """Return the messages of contradictory deliveries, once each, with the reason.

    Only deliveries are read; other records may be missing.
    """
    history = told_apart(history, control).history
    given = is_one_of(history, "op", "deliver") & ~is_one_of(history, "outcome", "failed")
    rows = np.flatnonzero(given)
    stream = joint(named(history, "consumer").number[rows], ranks(history.column("queue"))[0][rows])
    position = numbers(history, "position")[rows]
    start, end = numbers(history, "start")[rows], numbers(history, "end", NEVER)[rows]
    order = np.argsort(stream, kind="stable")
    if not _ascends(stream[order], position[order], strictly=True):
        order = np.lexsort((position, stream))
    of, at = stream[order], position[order]
    reason = np.zeros(order.size, dtype=np.int64)
    too_early = _too_early(of, start[order], end[order])
    if too_early.any():
        reason[_against_time(of, at, start[order], end[order])] = 2
    twice = np.flatnonzero((of[1:] == of[:-1]) & (at[1:] == at[:-1]))
    reason[twice] = reason[twice + 1] = 1
    wrong = np.flatnonzero(reason)
    named_by = rows[order[wrong]]
    found = {name: texts(history.column(name), pa.array(named_by)) for name in KEY}
    found["reason"] = pa.array([TWICE, AGAINST_TIME]).take(pa.array(reason[wrong] - 1))
    found["too_early"] = too_early[wrong]
    found[PLACE] = numbers(history, PLACE)[named_by]
    rest = (("reason", "descending"), ("too_early", "descending"), (PLACE, "ascending"))
    in_order = pa.table(found, schema=FOUND).sort_by([*((k, "ascending") for k in KEY), *rest])
    first = [(name, "first") for name, _ in rest]
    return in_order.group_by(KEY, use_threads=False).aggregate(first).rename_columns(FOUND.names)


def clock_step(found: pa.Table) -> ClockStep | None:
    """Return the greatest step back of a clock in a table of contradictions, or None."""
    by = pc.max(found.column("too_early")).as_py()
    if not by:
        return None
    return ClockStep(
        by, pc.min(found.filter(pc.equal(found.column("too_early"), by))[PLACE]).as_py()
    )


@dataclass(frozen=True)
class Stretch:
    """A part of a stream that is in order by itself: its positions and its range of times."""

    first: int
    last: int
    latest_start: int
    earliest_end: int


Stretches: TypeAlias = Mapping[tuple[str, str, str], Stretch]
"""By run, queue and consumer."""


def stretches(history: pa.Table) -> Stretches | None:
    """Return the part of each stream in some rows; None if one is not in order as it stands.

    This costs less than `contradictions`. A reused name of a consumer is one stream here: if the
    whole is in order, so is each part.
    """
    given = is_one_of(history, "op", "deliver") & ~is_one_of(history, "outcome", "failed")
    is_placed = pc.is_valid(history.column("position")).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(given & is_placed)
    if not rows.size:
        return {}
    stream = joint(named(history, "consumer").number[rows], ranks(history.column("queue"))[0][rows])
    order = np.argsort(stream, kind="stable")
    of, rows = stream[order], rows[order]
    position = numbers(history, "position")[rows]
    start, end = numbers(history, "start")[rows], numbers(history, "end", NEVER)[rows]
    if not _ascends(of, position, strictly=True) or _too_early(of, start, end).any():
        return None
    begins = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
    ends = np.append(begins[1:], of.size) - 1
    names = [
        texts(history.column(name), pa.array(rows[begins])).to_pylist()
        for name in ("run", "queue", "consumer")
    ]
    latest, earliest = np.maximum.reduceat(start, begins), np.minimum.reduceat(end, begins)
    values = (position[begins], position[ends], latest, earliest)
    parts = zip(*(each.tolist() for each in values), strict=True)
    return {key: Stretch(*part) for key, part in zip(zip(*names, strict=True), parts, strict=True)}


def are_in_order(parts: Iterable[Stretches | None]) -> bool:
    """Return whether the streams of these parts certainly have no contradiction.

    Returns False as well if the parts do not show it.
    """
    streams: dict[tuple[str, str, str], list[Stretch]] = {}
    for part in parts:
        if part is None:
            return False
        for key, stretch in part.items():
            streams.setdefault(key, []).append(stretch)
    return all(map(_follow_each_other, streams.values()))


def _follow_each_other(stream: list[Stretch]) -> bool:
    latest, last = -1, -1
    for each in sorted(stream, key=lambda stretch: stretch.first):
        if each.first <= last or each.earliest_end < latest:
            return False
        last, latest = each.last, max(latest, each.latest_start)
    return True


def ambiguous(found: pa.Table) -> Ambiguous:
    """Return the messages in a table of contradictions."""
    return {(row["run"], row["queue"], row["message"]): row["reason"] for row in found.to_pylist()}


def _ascends(stream: Ints, values: Ints, *, strictly: bool = False) -> bool:
    """Return whether values do not go back within any of several adjacent streams."""
    least = 1 if strictly else 0
    goes_on = values[1:] - values[:-1] >= least
    return bool((goes_on | (stream[1:] != stream[:-1])).all())


def _too_early(stream: Ints, start: Ints, end: Ints) -> Ints:
    """Return by how much each delivery was seen before an earlier one can have been made."""
    latest = start
    if not _ascends(stream, start):
        latest = -running_least(-start, np.append(True, stream[1:] != stream[:-1]))
    early = np.where(stream[1:] == stream[:-1], latest[:-1] - end[1:], 0)
    return np.append(0, np.maximum(early, 0))[: stream.size]


def _against_time(stream: Ints, position: Ints, start: Ints, end: Ints) -> Ints:
    """Return deliveries seen before one of a smaller position can have been made, and those."""
    late = overtaken(Early(stream, position, start), Late(stream, position, end))
    early = overtaken(Early(stream, -position, -end), Late(stream, -position, -start))
    return np.flatnonzero((late != NO_ROW) | (early != NO_ROW))
