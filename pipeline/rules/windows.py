"""The rule about windows: how many deliveries a subscriber had seen and not begun to settle.

It is a sum over time, so earlier slices contribute one number for each subscriber.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals.control import Named, looked_up, named
from brokerproof.pipeline.intervals.table import CARRY, COUNTED, FREED, GIVEN, QUERY, VIEW
from brokerproof.pipeline.names import Ints, joint, numbers
from brokerproof.pipeline.rules.violations import violations
from brokerproof.spec.histories import NEVER

Windows = dict[tuple[str, str], int]
"""The window of subscribers, by run and name; one that is not listed has no limit."""


@dataclass(frozen=True)
class Held:
    """The deliveries that subscribers held after each change, by subscriber and time.

    `row` is a row of the table; `takes` is whether the change is a seen delivery; `held` is the
    number held after it.
    """

    row: Ints
    takes: Ints
    held: Ints
    subscriber: Ints
    window: Ints


def beyond_windows(table: pa.Table, windows: Windows) -> pa.Table:
    """Return the deliveries by which a subscriber exceeded its window."""
    each = held(table, windows)
    wrong = np.flatnonzero((each.takes == 1) & (each.held > each.window))
    rows = each.row[wrong]
    times = numbers(table, "given_start")[rows], numbers(table, "given_end")[rows]
    return violations(
        "more-than-the-window",
        table,
        rows,
        strength=each.held[wrong] - each.window[wrong],
        witness=table.column("consumer").take(pa.array(rows)),
        late=times,
        early=times,
    )


def held(table: pa.Table, windows: Windows) -> Held:
    """Return the least number of deliveries that subscribers with windows held.

    That is the deliveries seen minus the settlements begun; at equal times settlements come first.
    Rows that carry the count of earlier slices have it in `position`.
    """
    subscriber = named(table, "consumer")
    window = looked_up(subscriber, (windows.get(key, NEVER) for key in subscriber.keys))
    flags, roles = numbers(table, "flags"), numbers(table, "roles")
    position, freed = numbers(table, "position"), numbers(table, "freed")
    given = numbers(table, "given_end")
    counted = (window < NEVER) & ((flags & GIVEN) != 0) & ((flags & (VIEW | QUERY)) == 0)
    # A delivery settled by the time it was seen, as in automatic mode, was never certainly held.
    counted &= freed > given
    before = np.flatnonzero((roles & CARRY) != 0)
    settled = np.flatnonzero(counted & ((roles & FREED) != 0) & (freed < NEVER))
    seen = np.flatnonzero(counted & ((roles & COUNTED) != 0))
    row = np.concatenate((before, settled, seen))
    takes = np.repeat((0, 0, 1), (before.size, settled.size, seen.size))
    change = np.concatenate((position[before], np.full(settled.size, -1), np.ones_like(seen)))
    when = np.concatenate((np.full(before.size, -1), freed[settled], given[seen]))
    group = _groups(table, subscriber)[row]
    order = np.lexsort((position[row], takes, when, group))
    row, change, group = row[order], change[order], group[order]
    total = np.cumsum(change)
    begins = np.append(True, group[1:] != group[:-1])[: row.size]
    first = np.maximum.accumulate(np.where(begins, np.arange(row.size), 0))
    return Held(row, takes[order], total - (total - change)[first], group, window[row])


def _groups(table: pa.Table, subscriber: Named) -> Ints:
    return joint(numbers(table, "slice"), subscriber.number)
