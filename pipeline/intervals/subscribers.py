"""Subscribers in columns: the subscription of a consumer's name to which each row belongs.

A delivery belongs to the subscription that existed at some moment of its span, on its channel if it
names one. If there is none or several, its message is ambiguous, and all its records are rejected.
A settlement belongs to the subscriber of the delivery that it settles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.intervals.control import Control, Named, named
from brokerproof.pipeline.intervals.subscriptions import Key, Subscription
from brokerproof.pipeline.names import (
    NO_ROW,
    Ints,
    Marks,
    is_one_of,
    joint,
    message_numbers,
    numbers,
    texts,
)
from brokerproof.spec.histories import NEVER

UNCLEAR = (
    "which of the subscriptions by the name of its consumer was given it is not known; "
    "record channels and cancels"
)


@dataclass(frozen=True)
class ToldApart:
    """A history whose subscribers have unique names, and the ambiguous deliveries.

    `unclear` are the rows of those.
    """

    history: pa.Table
    unclear: Ints


def told_apart(history: pa.Table, control: Control) -> ToldApart:
    """Return a history with unique names of subscribers."""
    nothing = np.empty(0, dtype=np.int64)
    if not control.reused:
        return ToldApart(history, nothing)
    subscriber = named(history, "consumer")
    reused = np.array([key in control.reused for key in subscriber.keys], dtype=np.bool_)
    concerned = reused[subscriber.number]
    given = np.flatnonzero(concerned & is_one_of(history, "op", "deliver"))
    if not given.size:
        return ToldApart(history, nothing)
    names = _Names(["?"], np.zeros(history.num_rows, dtype=np.int64))
    _name_deliveries(history, control, subscriber, given, names)
    settles = concerned & is_one_of(history, "op", "acknowledge", "release", "reject", "extend")
    unclear = _name_settlements(history, subscriber, given, np.flatnonzero(settles), names)
    return ToldApart(_renamed(history, names), unclear)


@dataclass
class _Names:
    """The names of subscribers, and the name of each row; rows with 0 keep theirs."""

    names: list[str]
    of_row: Ints

    def add(self, name: str) -> int:
        self.names.append(name)
        return len(self.names) - 1


def _name_deliveries(
    history: pa.Table, control: Control, subscriber: Named, given: Ints, names: _Names
) -> None:
    queue, channel = named(history, "queue"), named(history, "channel")
    start, end = numbers(history, "start"), numbers(history, "end", NEVER)
    for rows in _groups(given, subscriber.number, queue.number, channel.number):
        row = int(rows[0])
        of_queue = queue.keys[queue.number[row]][1]
        of_channel = channel.keys[channel.number[row]][1]
        there = [
            each
            for each in control.reused[subscriber.keys[subscriber.number[row]]]
            if each.record.queue == of_queue
        ]
        on_it = [each for each in there if (each.record.channel or "") == of_channel]
        candidates = on_it or there
        which = the_only_one(candidates, start[rows], end[rows])
        known = np.array([names.add(each.name) for each in candidates] + [0])
        names.of_row[rows] = known[which]


def _groups(rows: Ints, *keys: Ints) -> list[Ints]:
    """Return rows in groups of equal keys."""
    both = joint(*(key[rows] for key in keys))
    order = np.argsort(both, kind="stable")
    bounds = np.flatnonzero(np.diff(both[order])) + 1
    return np.split(rows[order], bounds)


def the_only_one(subscriptions: Sequence[Subscription], start: Ints, end: Ints) -> Ints:
    """Return for each span the number of its only subscription, or `NO_ROW`.

    That subscription began by the end of the span and had not left before its start. Differences of
    cumulated sums over begins and leaves give the number of such subscriptions and, if there is
    one, its index.
    """
    begun = np.array([each.start for each in subscriptions], dtype=np.int64)
    left = np.array([max(each.left, each.start) for each in subscriptions], dtype=np.int64)
    by_begin, by_end = np.argsort(begun, kind="stable"), np.argsort(left, kind="stable")
    many_begun = np.searchsorted(begun[by_begin], end, side="right")
    many_left = np.searchsorted(left[by_end], start, side="left")
    sums_begun = np.append(0, np.cumsum(by_begin))
    sums_left = np.append(0, np.cumsum(by_end))
    which = sums_begun[many_begun] - sums_left[many_left]
    return np.where(many_begun - many_left == 1, which, NO_ROW)


def _name_settlements(
    history: pa.Table, subscriber: Named, given: Ints, settling: Ints, names: _Names
) -> Ints:
    """Name settlements like their deliveries; return the ambiguous deliveries."""
    message = message_numbers(history, named(history, "queue").number)
    both = np.concatenate((given, settling))
    keys = (message, subscriber.number, numbers(history, "position"))
    _, number = np.unique(np.stack([key[both] for key in keys]), axis=1, return_inverse=True)
    number = number.reshape(-1)
    of_given, of_settling = number[: given.size], number[given.size :]
    least = np.full(int(number.max()) + 1, len(names.names), dtype=np.int64)
    most = np.zeros_like(least)
    np.minimum.at(least, of_given, names.of_row[given])
    np.maximum.at(most, of_given, names.of_row[given])
    names.of_row[settling] = np.where(least == most, most, 0)[of_settling]
    unclear: Marks = (names.of_row[given] == 0) | (least != most)[of_given]
    return given[unclear]


def _renamed(history: pa.Table, names: _Names) -> pa.Table:
    column = texts(history.column("consumer"), pa.array(np.arange(history.num_rows)))
    told = pa.array(names.names).take(pa.array(names.of_row))
    is_told = pa.array(names.of_row > 0)
    renamed = pc.if_else(is_told, told, column)
    at = history.schema.get_field_index("consumer")
    return history.set_column(at, "consumer", renamed)


def keys_of(table: pa.Table) -> list[Key]:
    """Return the queues, by run and name, in a table's rows."""
    return [key for key in named(table, "queue").keys if key[1]]
