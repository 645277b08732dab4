"""The kernel for rules that are shown at each moment of a span: who is overtaken by turns.

What waits from its key to its value, both left out, is one of several whose waits meet or overlap:
a *stay* of the queue, in which it was never without one. Stays do not overlap, so a span lies
within one if and only if it lies within the last one that begins before it. To join waits takes a
sort and the greatest value so far; the stays are then asked by the kernel for two comparisons. That
is O(n log n) and has no loop over rows.

Of what is before a time, all that matters to later times is the stay that goes on over it: where it
began, and the row with the greatest value. That one row is a summary, and rows that are joined with
those of a later slice make the summary of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerproof.pipeline.rules.dominance import NOBODY, Early, Ints, Late, Marks, overtaken


@dataclass(frozen=True)
class Spans:
    """What may be overtaking: whenever from `start` to `end` of each it is asked of its group."""

    group: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True)
class Stays:
    """When groups were never without one; `of` says for each early row in which stay it lies."""

    group: Ints
    begin: Ints
    end: Ints
    of: Ints

    def around(self, group: Ints, start: Ints, end: Ints) -> Ints:
        """Return which stay of its group each span lies within, or `NOBODY`."""
        return overtaken(Early(self.group, self.begin, self.end), Late(group, start, end))


def stays_of(early: Early) -> Stays:
    """Return the stays that waits make together."""
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
    """Return the greatest value so far since the last mark."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(values.size, dtype=np.int64)
    rank[order] = np.arange(values.size)
    lift = (np.cumsum(begins) - 1) * np.int64(values.size)
    most: Ints = values[order[np.maximum.accumulate(rank + lift) - lift]]
    return most


def overtaken_in_turns(early: Early, late: Spans) -> tuple[Ints, Ints]:
    """Return for each late one the last of those that it overtakes by turns, and when they began.

    The last is the early one of the greatest value that began before the span ended, of several the
    one of the lowest rank. It is `NOBODY` where at some moment of the span nobody waited.
    """
    last = np.full(late.end.size, NOBODY, dtype=np.int64)
    since = np.full(late.end.size, NOBODY, dtype=np.int64)
    if early.key.size == 0 or late.end.size == 0:
        return last, since
    stays = stays_of(early)
    within = stays.around(late.group, late.start, late.end)
    wrong = np.flatnonzero(within != NOBODY)
    some = Late(late.group[wrong], late.end[wrong], late.end[wrong])
    last[wrong] = overtaken(early, some)
    since[wrong] = stays.begin[within[wrong]]
    return last, since
