"""Idle spans: when a consumer was certainly subscribed, had room, and was given nothing.

A consumer is idle from when it has seen all deliveries so far and has certainly settled enough of
them, until its next delivery can have been made or it may have left. Owns these spans; `stalls.py`
uses them. A consumer with gaps in its stream, or with a reused name, has none.

All deliveries and settlements of a consumer must be in the table; different consumers are
independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals.control import Control, Idle, named
from brokerproof.pipeline.intervals.subscriptions import (
    Leavings,
    Subscription,
    Times,
    happened_by,
)
from brokerproof.pipeline.names import Ints, Marks, is_one_of, joint, numbers
from brokerproof.spec.histories import NEVER

NO_DELIVERY: Final = -1

COLUMNS: Final = ("op", "run", "queue", "consumer", "start", "end", "position", "outcome")
"""The columns that are read."""

KINDS: Final = ("deliver", "acknowledge", "reject", "release")
"""The kinds of records that are read."""

SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "consumer")),
        *((name, pa.int64()) for name in ("position", "since", "until", "seen")),
    ]
)
"""An idle span: it lasts until the consumer's delivery at `position` can have been made.

That delivery was seen at `seen`. After the last delivery the position is `NO_DELIVERY`, and both
times are the earliest at which the consumer may have left.
"""


def of_consumers(history: pa.Table) -> pa.Table:
    """Return the part of a history that is read."""
    happened = is_one_of(history, "op", *KINDS) & ~is_one_of(history, "outcome", "failed")
    return history.filter(pa.array(happened)).select(COLUMNS)


def latest_times(history: pa.Table) -> dict[str, int]:
    """Return the greatest start of each run."""
    latest = history.group_by("run").aggregate([("start", "max")])
    return {row["run"]: row["start_max"] for row in latest.to_pylist()}


def idle_spans(table: pa.Table, control: Control, bound: int) -> pa.Table:
    """Return the idle spans of a table's consumers that are longer than the limit.

    The last span of each consumer is included whatever its length, to show which had deliveries.
    The spans of a consumer with deliveries out of sequence begin at `NEVER`.
    """
    subscriber = named(table, "consumer")
    subscribed = {each.subscriber: each for each in control.subscriptions}
    known = [subscribed.get(key) for key in subscriber.keys]
    concerned = np.array([each is not None for each in known], dtype=np.bool_)[subscriber.number]
    given = concerned & is_one_of(table, "op", "deliver")
    rows = np.flatnonzero(given)
    if not rows.size:
        return SCHEMA.empty_table()
    position = numbers(table, "position")
    rows = rows[np.lexsort((position[rows], subscriber.number[rows]))]
    group = subscriber.number[rows]
    first = np.append(True, group[1:] != group[:-1])
    number = np.arange(rows.size) - np.flatnonzero(first)[np.cumsum(first) - 1]
    start, end = numbers(table, "start"), numbers(table, "end", NEVER)
    done = _settled(table, rows, joint(subscriber.number, position), concerned & ~given)
    torn = _torn(group, first, position[rows] != number, end[rows])
    there = np.array([0 if each is None else each.end for each in known], dtype=np.int64)
    leavings = control.leavings
    stays = np.array([0 if e is None else stays_until(e, leavings) for e in known], dtype=np.int64)
    room = np.array([_room(each) for each in known], dtype=np.int64)
    of_next = _Next(group, first, number, start[rows], end[rows], done)
    since, until, seen, owner, at = of_next.spans(there, stays, room)
    since = np.where(torn[owner], NEVER, since)
    wanted = (at == NO_DELIVERY) | (seen - since > bound)
    names = [subscriber.keys[each] for each in owner[wanted].tolist()]
    return pa.table(
        {
            "run": pa.array([run for run, _ in names], pa.string()),
            "consumer": pa.array([name for _, name in names], pa.string()),
            "position": at[wanted],
            "since": since[wanted],
            "until": until[wanted],
            "seen": seen[wanted],
        },
        schema=SCHEMA,
    )


def _room(each: Subscription | None) -> int:
    """Return the number of unsettled deliveries a consumer may hold, `NEVER` without a limit."""
    if each is None or each.record.mode != "acknowledge":
        return NEVER
    return each.record.window or NEVER


def _settled(table: pa.Table, rows: Ints, key: Ints, settling: Marks) -> Ints:
    """Return the time by which each delivery was certainly settled, or `NEVER`."""
    certain = np.flatnonzero(settling & is_one_of(table, "outcome", "ok"))
    end = numbers(table, "end", NEVER)
    order = np.argsort(key[rows], kind="stable")
    done = np.full(rows.size, NEVER, dtype=np.int64)
    at = np.searchsorted(key[rows], key[certain], sorter=order)
    at = order[np.minimum(at, rows.size - 1)]
    same = key[rows[at]] == key[certain]
    np.minimum.at(done, at[same], end[certain[same]])
    return np.maximum(done, end[rows])


def _torn(group: Ints, first: Marks, misplaced: Marks, end: Ints) -> Marks:
    """Return, by number, the consumers with deliveries out of sequence."""
    backwards = ~first & (end < np.append(-1, end[:-1]))
    wrong = np.zeros(int(group.max()) + 1, dtype=np.bool_)
    wrong[group[misplaced | backwards]] = True
    return wrong


@dataclass(frozen=True)
class _Next:
    """The deliveries of consumers, in stream order, and when each was settled."""

    group: Ints
    first: Marks
    number: Ints
    start: Ints
    end: Ints
    done: Ints

    def spans(self, there: Ints, stays: Ints, room: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Return begin, latest end, seen end, consumer and delivery of each span.

        The spans before deliveries come first, then those after the last of each consumer. There is
        room before delivery k when k minus the window have been settled, whichever they are: a
        delivery settled before delivery k is seen is an earlier one.
        """
        last = np.flatnonzero(np.append(self.first[1:], True))
        owner = np.concatenate((self.group, self.group[last]))
        count = np.concatenate((self.number, self.number[last] + 1))
        before = np.append(0, self.end[:-1])
        seen_all = np.concatenate((np.where(self.first, 0, before), self.end[last]))
        ordered = self.done[np.lexsort((self.done, self.group))]
        begin = np.flatnonzero(self.first)[np.cumsum(self.first) - 1]
        begin = np.concatenate((begin, begin[last]))
        needed = count - room[owner]
        freed = np.where(needed >= 0, ordered[begin + np.maximum(needed, 0)], 0)
        since = np.maximum(np.maximum(there[owner], seen_all), freed)
        until = np.minimum(np.concatenate((self.start, stays[self.group[last]])), stays[owner])
        seen = np.minimum(np.concatenate((self.end, stays[self.group[last]])), stays[owner])
        at = np.concatenate((self.number, np.full(last.size, NO_DELIVERY)))
        return since, until, seen, owner, at


def idle_of(spans: pa.Table, control: Control, latest: dict[str, int], bound: int) -> Idle:
    """Return the idle spans longer than the limit, including consumers without deliveries.

    `latest` is the time of the last record of each run, beyond which nothing is known.
    """
    known = [each for each in control.subscriptions if _can_be_told(each, control)]
    served = {
        (row["run"], row["consumer"]) for row in spans.select(["run", "consumer"]).to_pylist()
    }
    subscribers = {each.subscriber for each in known}
    rows = [row for row in spans.to_pylist() if (row["run"], row["consumer"]) in subscribers]
    for each in known:
        if each.subscriber not in served:
            stays = stays_until(each, control.leavings)
            times = {"since": each.end, "until": stays, "seen": stays}
            run, name = each.subscriber
            rows.append({"run": run, "consumer": name, "position": NO_DELIVERY, **times})
    return Idle(
        pa.Table.from_pylist(list(_long(rows, latest, bound)), schema=SCHEMA), tuple(known), bound
    )


def _can_be_told(each: Subscription, control: Control) -> bool:
    """Return whether a subscription takes every message, and its name is not reused."""
    record = each.record
    takes_all = record.mode != "browse" and not record.selective
    return takes_all and (record.run, record.consumer or "") not in control.reused


def stays_until(each: Subscription, leavings: Leavings) -> int:
    """Return until when a consumer was certainly subscribed: any possible end counts."""
    record = each.record
    run = record.run
    ends: Times = [
        (cancel.start, happened_by(cancel))
        for cancel in leavings.cancels.get((run, record.consumer or ""), [])
    ]
    if record.channel is not None:
        ends += leavings.closes.get((run, record.channel), [])
    else:
        # A consumer of unknown channel may be on any.
        ends += (
            close for key, closes in leavings.closes.items() if key[0] == run for close in closes
        )
    ends += leavings.deletions.get((run, record.queue or ""), [])
    ends += leavings.crashes.get(run, [])
    return min((start for start, end in ends if end >= record.start), default=NEVER)


def _long(
    rows: Iterable[dict[str, object]], latest: dict[str, int], bound: int
) -> Iterator[dict[str, object]]:
    """Yield the spans that are longer than the limit, up to the last record."""
    for row in rows:
        ends = latest.get(str(row["run"]), 0)
        until, seen = (min(int(str(row[name])), ends) for name in ("until", "seen"))
        if seen - int(str(row["since"])) > bound:
            yield {**row, "until": until, "seen": seen}
