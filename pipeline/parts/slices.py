"""How a hot queue is cut into slices of time, and the summaries for later slices.

A row goes to each slice in which it has a role: it arrived there, began to wait, was delivered, or
was settled. A slice is judged alone. It leaves its *summary* to all later slices, a few rows of the
same table: of each group the early row that a rule would name as its witness, and the late row most
easily found overtaking. If the rows left by earlier slices are not overtaken by that late row, they
are not overtaken by any row of the slice, and its judgement stands. The other slices fail, and are
judged again with the earlier rows in front.

Combining summaries is associative, and an empty summary changes nothing: they are a monoid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.dominance import Early, Late, greatest, running_least, stays_of
from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.intervals.subscriptions import Key
from brokerproof.pipeline.intervals.table import (
    ALL_ROLES,
    ARRIVED,
    ARRIVES,
    CARRY,
    COUNTED,
    ENDED,
    FIRST,
    FREED,
    GIVEN,
    JOINED,
    JOINED_URGENT,
    QUERY,
    RETURNED,
    SCHEMA,
    TAKEN,
    VIEW,
    WAITED,
    with_columns,
)
from brokerproof.pipeline.names import NO_ROW, Ints, Marks, dense, joint, numbers
from brokerproof.pipeline.rules.history_rules import HistoryRule
from brokerproof.pipeline.rules.several_messages import (
    ABOUT_SEVERAL,
    Columns,
    Pairs,
    judged_by,
    pairs_of,
)
from brokerproof.pipeline.rules.windows import Windows, held
from brokerproof.spec.histories import NEVER

LEAVING: Final = tuple(each for each in ABOUT_SEVERAL if each.roles[0] != RETURNED)
"""The rules that leave rows to later slices; a returned message is a row of each slice."""
IN_TURNS: Final = tuple(each for each in LEAVING if each.each_moment)
ONE_BY_ONE: Final = tuple(each for each in LEAVING if not each.each_moment)

_BELOW_ALL: Final = (-1,)

_NOTHING_TAKEN: Final = -(2**31)
"""The greatest held count of a subscriber in a slice without a delivery to it."""


@dataclass(frozen=True)
class Cuts:
    """Where queues are cut: `at` has the times between slices, in order, of each hot queue.

    `returning` are the queues with returned messages. A queue that is not in `at` is whole.
    """

    at: Mapping[Key, Ints] = field(default_factory=dict)
    returning: frozenset[Key] = frozenset()


def sliced(intervals: pa.Table, cuts: Cuts, control: Control) -> pa.Table:
    """Return the rows of each slice, with their roles there; whole queues are slice 0."""
    queue = named(intervals, "queue")
    hot = np.array([key in cuts.at for key in queue.keys], dtype=np.bool_)
    if not hot.any():
        return intervals
    whole = np.flatnonzero(~hot[queue.number])
    parts = [(whole, np.zeros(whole.size, dtype=np.int64), np.full(whole.size, ALL_ROLES))]
    for number, key in enumerate(queue.keys):
        if hot[number]:
            rows = np.flatnonzero(queue.number == number)
            parts += _roles(intervals.take(pa.array(rows)), rows, key, cuts, control)
    row, slice_, role = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((slice_, row))
    row, slice_, role = row[order], slice_[order], role[order]
    new = np.append(True, (row[1:] != row[:-1]) | (slice_[1:] != slice_[:-1]))[: row.size]
    first = np.flatnonzero(new)
    if first.size:
        role = np.bitwise_or.reduceat(role, first)
    return with_columns(intervals.take(pa.array(row[first])), slice=slice_[first], roles=role)


def _roles(
    table: pa.Table, rows: Ints, key: Key, cuts: Cuts, control: Control
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield rows, slices and a role of each, for the rows of one hot queue."""
    bounds = cuts.at[key]
    flags = numbers(table, "flags")
    taken = (flags & (VIEW | QUERY)) == 0
    given = (flags & GIVEN) != 0
    query = (flags & QUERY) != 0
    by_priority = control.facts([key])[0].levels is not None
    emptied = key in control.polled or ("drained", *key) in control.spans
    waits = taken & (by_priority or emptied)
    back = taken & ((flags & FIRST) == 0)
    subscribers = named(table, "consumer")
    limited = np.array([each in control.window_of for each in subscribers.keys], dtype=np.bool_)
    counted = taken & given & limited[subscribers.number]
    compared = taken & given & (by_priority or key in cuts.returning)
    asked: tuple[tuple[int, str, Marks], ...] = (
        (ARRIVED, "published_end", ~query),
        (ARRIVES, "published_start", ~query & given),
        (WAITED, "begun_end", waits),
        (TAKEN, "given_start", compared | query),
        (ENDED, "given_end", (taken & given & by_priority) | query),
        (COUNTED, "given_end", counted),
        (FREED, "freed", counted),
    )
    for role, name, concerned in asked:
        time = numbers(table, name)
        which = np.flatnonzero(concerned & (time < NEVER))
        yield rows[which], slice_of(bounds, time[which]), np.full(which.size, role)
    begun, left = numbers(table, "begun_end"), numbers(table, "left_start")
    which = np.flatnonzero(back & (begun < left))
    first, last = slice_of(bounds, begun[which]), slice_of(bounds, left[which])
    many = last - first + 1
    place = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    yield (
        rows[np.repeat(which, many)],
        np.repeat(first, many) + place,
        np.full(place.size, RETURNED),
    )


def slice_of(bounds: Ints, time: Ints) -> Ints:
    """Return the slices of times, from 1."""
    return np.searchsorted(bounds, time, side="right").astype(np.int64) + 1


def summary(table: pa.Table, windows: Windows) -> pa.Table:
    """Return the summaries of a table's slices; whole queues have none."""
    part = table.filter(pc.greater(table.column("slice"), 0))
    if not part.num_rows:
        return part
    columns = Columns.of(part)
    kept = [_counted(part, windows), *_joined(part, columns), *_ended(part, columns)]
    for rule in ONE_BY_ONE:
        kept += _left(part, columns, rule)
        for pairs in pairs_of(rule, columns):
            rows = np.flatnonzero(pairs.late)
            kept.append(_rows(part, rows[_soonest(columns, pairs, rows)], rule.roles[1]))
    return pa.concat_tables(kept)


def _left(table: pa.Table, columns: Columns, rule: HistoryRule) -> Iterator[pa.Table]:
    """Yield the early rows that represent all others towards later slices."""
    for pairs in pairs_of(rule, columns, _BELOW_ALL):
        rows = np.flatnonzero(pairs.early)
        yield _rows(table, rows[_standing_for_all(columns, pairs, rows)], rule.roles[0])


def _joined(table: pa.Table, columns: Columns) -> Iterator[pa.Table]:
    """Yield since when a message was always present, of any level and of each level or higher.

    That is the early row that leaves last, with the begin of its stay.
    """
    is_first = (columns.flags & (FIRST | VIEW | QUERY)) == FIRST
    levels = dense(columns.level[is_first])[0].tolist()
    for rule in {each.roles: each for each in IN_TURNS}.values():
        role = rule.roles[0] & ~WAITED
        below = [each - 1 for each in levels]
        of = levels if role == JOINED_URGENT else [0]
        for level, pairs in zip(of, pairs_of(rule, columns, below), strict=True):
            rows = np.flatnonzero(pairs.early)
            early = pairs.of_early(columns, rows)
            last = _greatest_by_name(columns, early, rows, early.group)
            stays = stays_of(early)
            yield with_columns(
                _rows(table, rows[last], role),
                begun_end=stays.begin[stays.of[last]],
                level=np.full(last.size, level),
            )


def _ended(table: pa.Table, columns: Columns) -> Iterator[pa.Table]:
    """Yield the late rows that overtake a covering chain if any of their group and level does.

    The chain from earlier slices must last until `given_end`: from then on the slice's own messages
    continue it, or the late message had been delivered. If the late span began in an earlier slice,
    the chain must also have begun before it, and of several such rows none is easiest for all.
    """
    for pairs in (each for rule in IN_TURNS for each in pairs_of(rule, columns)):
        rows = np.flatnonzero(pairs.late)
        late = pairs.of_late(columns, rows)
        stays = stays_of(pairs.of_early(columns, np.flatnonzero(pairs.early)))
        around = stays.around(Late(late.group, late.bound, late.bound))
        until = np.where(around == NO_ROW, late.bound, np.append(stays.begin, 0)[around])
        group = joint(late.group, columns.level[rows] + 1)
        begins_here = columns.plays(TAKEN)[rows]
        here, before = np.flatnonzero(begins_here), np.flatnonzero(~begins_here)
        easiest = here[greatest(Early(group[here], until[here], -until[here]))]
        order = before[np.lexsort((until[before], -late.key[before], group[before]))]
        new = np.append(True, group[order][1:] != group[order][:-1])[: order.size]
        least = running_least(until[order], new)
        sooner = new.copy()
        sooner[1:] |= least[1:] < least[:-1]
        chosen = np.concatenate((easiest, order[sooner]))
        yield with_columns(
            _rows(table, rows[chosen], ENDED),
            given_start=np.minimum(late.key, until)[chosen],
            given_end=until[chosen],
        )


def _standing_for_all(columns: Columns, pairs: Pairs, rows: Ints) -> Ints:
    """Return the early rows that represent their group and level towards later slices."""
    early = pairs.of_early(columns, rows)
    return _greatest_by_name(columns, early, rows, joint(early.group, columns.level[rows]))


def _greatest_by_name(columns: Columns, early: Early, rows: Ints, group: Ints) -> Ints:
    """Return the early row of each group with the greatest value; the first name settles ties."""
    groups, number = dense(group)
    most = np.full(groups.size, np.iinfo(np.int64).min)
    np.maximum.at(most, number, early.value)
    equal = np.flatnonzero((early.value == most[number]) & (early.key < NEVER))
    rank = columns.rank(rows[equal])
    return equal[greatest(Early(group[equal], early.key[equal], early.value[equal], rank))]


def _soonest(columns: Columns, pairs: Pairs, rows: Ints) -> Ints:
    """Return the late rows that overtake if any of their group and level does."""
    late = pairs.of_late(columns, rows)
    group = joint(late.group, columns.level[rows] + 1)
    return greatest(Early(group, late.key, -late.bound))


def _counted(table: pa.Table, windows: Windows) -> pa.Table:
    """Return a row for each slice and subscriber that counts its deliveries.

    `position` is the change of its held count over the slice, `level` the greatest change at a
    delivery. That can be negative, after many settlements.
    """
    each = held(table, windows)
    if not each.row.size:
        return SCHEMA.empty_table()
    last = np.append(each.subscriber[1:] != each.subscriber[:-1], True)
    first = np.flatnonzero(np.append(True, last[:-1]))
    most = np.maximum.reduceat(np.where(each.takes == 1, each.held, _NOTHING_TAKEN), first)
    rows = _rows(table, each.row[last], CARRY)
    return with_columns(rows, position=each.held[last], level=most)


def _rows(table: pa.Table, rows: Ints, role: int) -> pa.Table:
    return with_columns(table.take(pa.array(rows)), roles=np.full(rows.size, role))


def left_to(summaries: pa.Table, windows: Windows) -> pa.Table:
    """Return the rows left to each slice that has to be judged again."""
    found: list[pa.Table] = []
    queue = named(summaries, "queue")
    for number in range(len(queue.keys)):
        of_queue = summaries.filter(pa.array(queue.number == number))
        found += _left_in_queue(of_queue, windows)
    return pa.concat_tables(found) if found else SCHEMA.empty_table()


def _left_in_queue(summaries: pa.Table, windows: Windows) -> Iterator[pa.Table]:
    roles = numbers(summaries, "roles")
    slices = numbers(summaries, "slice")
    early_roles = ARRIVED | WAITED | JOINED | JOINED_URGENT
    left = SCHEMA.empty_table()
    counted = SCHEMA.empty_table()
    for each in np.unique(slices).tolist():
        here = slices == each
        late = summaries.filter(pa.array(here & ((roles & (ARRIVES | TAKEN | ENDED)) != 0)))
        subscribers = summaries.filter(pa.array(here & (roles == CARRY)))
        before = _moved(pa.concat_tables([left, counted]), each)
        if _overtakes(before, late) or _exceeds(counted, subscribers, windows):
            yield before
        own = summaries.filter(pa.array(here & ((roles & early_roles) != 0)))
        left = _combined(pa.concat_tables([left, own]))
        counted = _added(counted, subscribers)


def _moved(table: pa.Table, number: int) -> pa.Table:
    return with_columns(table, slice=np.full(table.num_rows, number))


def _overtakes(before: pa.Table, late: pa.Table) -> bool:
    columns = Columns.of(pa.concat_tables([before, late]))
    return any(wrong.num_rows for rule in LEAVING for wrong in judged_by(rule, columns))


def _combined(table: pa.Table) -> pa.Table:
    """Return the rows that represent the rows of several slices."""
    together = _moved(table, 1)
    columns = Columns.of(together)
    kept = [each for rule in ONE_BY_ONE for each in _left(together, columns, rule)]
    return pa.concat_tables([*kept, *_joined(together, columns)])


def _added(counted: pa.Table, subscribers: pa.Table) -> pa.Table:
    """Return the held counts of subscribers after one more slice."""
    together = pa.concat_tables([counted, subscribers])
    subscriber = named(together, "consumer")
    total = np.zeros(len(subscriber.keys), dtype=np.int64)
    np.add.at(total, subscriber.number, numbers(together, "position"))
    _, first = np.unique(subscriber.number, return_index=True)
    return with_columns(together.take(pa.array(first)), position=total)


def _exceeds(counted: pa.Table, subscribers: pa.Table, windows: Windows) -> bool:
    """Return whether a subscriber may exceed its window in a slice, with its earlier count."""
    together = pa.concat_tables([counted, subscribers])
    subscriber = named(together, "consumer")
    held_before = np.zeros(len(subscriber.keys), dtype=np.int64)
    size = counted.num_rows
    np.add.at(held_before, subscriber.number[:size], numbers(counted, "position"))
    most = np.full(len(subscriber.keys), _NOTHING_TAKEN, dtype=np.int64)
    np.maximum.at(most, subscriber.number[size:], numbers(subscribers, "level"))
    limits = np.array([windows.get(key, NEVER) for key in subscriber.keys], dtype=np.int64)
    return bool((held_before + most > limits).any())
