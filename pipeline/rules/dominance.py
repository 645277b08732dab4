"""The kernel of all rules of two comparisons: which early rows are overtaken, without pairs.

For each late row, a rule needs an early row of its group with a smaller key and a greater value.
Sorted by key, the greatest value so far answers that for all: O(n log n). Of earlier keys only the
row with the greatest value of each group matters, so slices of the key's range can be judged one by
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]

NO_ROW = -1


@dataclass(frozen=True)
class Early:
    """The rows that may be overtaken: group, key and value; the smaller `rank` wins ties.

    A rank of None stands for the order of the rows.
    """

    group: Ints
    key: Ints
    value: Ints
    rank: Ints | None = None


@dataclass(frozen=True)
class Late:
    """The rows that may overtake an early one whose key is below `key` and value above `bound`."""

    group: Ints
    key: Ints
    bound: Ints


def overtaken(early: Early, late: Late) -> Ints:
    """Return for each late row the early row that it overtakes, or `NO_ROW`.

    Of several, it is the one of the greatest value, and of those the one of the lowest rank.
    """
    found = np.full(late.key.size, NO_ROW, dtype=np.int64)
    if early.key.size == 0 or late.key.size == 0:
        return found
    group_of_late, group_of_early = _numbered_groups(late.group, early.group)
    # Among equal keys the late rows come first: an equal key is not below.
    order = _in_order(
        np.concatenate((group_of_late, group_of_early)), np.concatenate((late.key, early.key))
    )
    is_early = order >= late.key.size
    strength, by_strength = _strength(early)
    # A later group begins above all values that an earlier one can reach.
    floor = np.concatenate((group_of_late, group_of_early)) * np.int64(early.key.size + 1)
    lifted = floor[order]
    lifted[is_early] += strength[order[is_early] - late.key.size] + 1
    best_so_far = np.maximum.accumulate(lifted)
    asked = order[~is_early]
    best = best_so_far[~is_early] - floor[asked] - 1
    witness = by_strength[best]
    wins = (best != NO_ROW) & (early.value[witness] > late.bound[asked])
    found[asked[wins]] = witness[wins]
    return found


def _numbered_groups(*groups: Ints) -> list[Ints]:
    """Return the groups numbered from 0."""
    both = np.concatenate(groups)
    lowest = int(both.min())
    if int(both.max()) == lowest:
        number = np.zeros(both.size, dtype=np.int64)
    else:
        _, number = dense(both - lowest)
    return np.split(number, np.cumsum([each.size for each in groups])[:-1])


def _in_order(group: Ints, key: Ints) -> Ints:
    """Return rows by group and key; the sort is stable."""
    by_key = np.argsort(key, kind="stable")
    most = int(group.max(initial=0))
    if most == 0:
        return by_key
    # Groups are few, and short numbers are sorted in linear time.
    short = group.astype(np.uint16) if most < 1 << 16 else group
    return by_key[np.argsort(short[by_key], kind="stable")]


def dense(number: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in order, and for each number its place among them.

    The result of `np.unique`; numbers that are close together need no sorting.
    """
    most = int(number.max(initial=0))
    if int(number.min(initial=0)) < 0 or most > 4 * number.size + 1024:
        distinct, place = np.unique(number, return_inverse=True)
        return distinct, place.astype(np.int64)
    there = np.zeros(most + 1, dtype=np.bool_)
    there[number] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[number]


def greatest(early: Early) -> Ints:
    """Return the row of each group that represents it towards greater keys."""
    if early.key.size == 0:
        return np.empty(0, dtype=np.int64)
    strength, _ = _strength(early)
    order = np.lexsort((strength, early.group))
    last = np.append(early.group[order][1:] != early.group[order][:-1], True)
    return np.sort(order[last])


def _strength(early: Early) -> tuple[Ints, Ints]:
    """Return the place of each row by value, then by descending rank, and the inverse."""
    if early.rank is None:
        order = np.argsort(early.value[::-1], kind="stable")
        order = early.value.size - 1 - order
    else:
        order = np.lexsort((-early.rank, early.value))
    strength = np.empty(order.size, dtype=np.int64)
    strength[order] = np.arange(order.size)
    return strength, order
