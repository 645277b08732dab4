"""The kernel of rules about each moment of a span: which covering chains are overtaken.

A row waits from its key to its value, both excluded. Waits that meet or overlap form a *stay* of
the queue, during which it was never empty. Stays do not overlap, so a span lies within one if and
only if it lies within the last one that begins before it. A sort and the greatest value so far join
the waits; the kernel of two comparisons then finds the stays. O(n log n), without a loop over rows.

Of the rows before a time, later times need only the stay that continues over it: its begin, and the
row with the greatest value. That row is a summary. Joined with the rows of a later slice, it gives
the summary of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerproof.pipeline.rules.dominance import NO_ROW, Early, Ints, Late, Marks, overtaken


@dataclass(frozen=True)
class Spans:
    """The rows that may overtake: the rule must hold at each moment from `start` to `end`."""

    group: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True)
class Stays:
    """The spans during which groups were never empty; `of` is the stay of each early row."""

    group: Ints
    begin: Ints
    end: Ints
    of: Ints

    def around(self, group: Ints, start: Ints, end: Ints) -> Ints:
        """Return the stay of its group around each span, or `NO_ROW`."""
        return overtaken(Early(self.group, self.begin, self.end), Late(group, start, end))


def stays_of(early: Early) -> Stays:
    """Return the stays that waits form."""
    order = np.lexsort((early.key, early.group))
    group, key = early.group[order], early.key[order]
    new_group = np.append(True, group[1:] != group[:-1])[: group.size]
    most = _most_so_far(early.value[order], new_group)
    new = new_group.copy()
    new[1:] |= key[1:] >= most[:-1]
    of = np.empty(order.size, dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    last = np.append(new[1:], True)[: new.size]
    return Stays(group[new], key[new], most[last], of)


def _most_so_far(values: Ints, begins: Marks) -> Ints:
    """Return the greatest value since the last mark."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(values.size, dtype=np.int64)
    rank[order] = np.arange(values.size)
    lift = (np.cumsum(begins) - 1) * np.int64(values.size)
    most: Ints = values[order[np.maximum.accumulate(rank + lift) - lift]]
    return most


def overtaken_in_turns(early: Early, late: Spans) -> tuple[Ints, Ints]:
    """Return for each late row the last row of the chain that it overtakes, and the chain's begin.

    The last row has the greatest value of those that began before the span ended, and of several
    the lowest rank. It is `NO_ROW` if no row waited at some moment of the span.
    """
    last = np.full(late.end.size, NO_ROW, dtype=np.int64)
    since = np.full(late.end.size, NO_ROW, dtype=np.int64)
    if early.key.size == 0 or late.end.size == 0:
        return last, since
    stays = stays_of(early)
    within = stays.around(late.group, late.start, late.end)
    wrong = np.flatnonzero(within != NO_ROW)
    some = Late(late.group[wrong], late.end[wrong], late.end[wrong])
    last[wrong] = overtaken(early, some)
    since[wrong] = stays.begin[within[wrong]]
    return last, since
