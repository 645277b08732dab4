"""One kernel for all rules of two comparisons: who is overtaken, in columns and without pairs.

A rule asks of a late thing whether an early one of its group has a smaller key and a greater value
than the late one's. Sorted by key, the greatest value so far answers that for all: O(n log n). What
is known of earlier keys is the row with the greatest value of each group, and nothing else, so
slices of the key's range can be judged one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]

NOBODY = -1


@dataclass(frozen=True)
class Early:
    """What may be overtaken: group, key and value of each; `rank` settles ties, smaller is first.

    A rank of None stands for the order in which they are given.
    """

    group: Ints
    key: Ints
    value: Ints
    rank: Ints | None = None


@dataclass(frozen=True)
class Late:
    """What may overtake: an early one of its group of a key below `key`, a value above `bound`."""

    group: Ints
    key: Ints
    bound: Ints


def overtaken(early: Early, late: Late) -> Ints:
    """Return for each late one which early one witnesses that it overtakes, or `NOBODY`.

    Of all that do, it is the one of the greatest value, and of those the one of the lowest rank.
    """
    found = np.full(late.key.size, NOBODY, dtype=np.int64)
    if early.key.size == 0 or late.key.size == 0:
        return found
    keys, group_of_early, group_of_late = _comparable(early, late)
    if keys is None:
        by_key = np.argsort(early.key, kind="stable")
        upto = np.searchsorted(early.key[by_key], late.key, side="left")
        first = np.zeros(late.key.size, dtype=np.int64)
    else:
        key_of_early, key_of_late, first_key_of_late = keys
        by_key = np.argsort(key_of_early, kind="stable")
        in_order = key_of_early[by_key]
        upto = np.searchsorted(in_order, key_of_late, side="left")
        first = np.searchsorted(in_order, first_key_of_late, side="left")
    some = upto > first
    if not some.any():
        return found
    strength = _strength(early)
    # A later group begins above all that an earlier one can reach.
    lifted = strength[by_key] + group_of_early[by_key] * np.int64(early.key.size)
    best_so_far = np.maximum.accumulate(lifted)
    best = best_so_far[upto[some] - 1] - group_of_late[some] * np.int64(early.key.size)
    by_strength = np.empty_like(strength)
    by_strength[strength] = np.arange(strength.size)
    witness = by_strength[best]
    is_overtaken = early.value[witness] > late.bound[some]
    found[np.flatnonzero(some)[is_overtaken]] = witness[is_overtaken]
    return found


def greatest(early: Early) -> Ints:
    """Return of each group the row that stands for all of it towards greater keys."""
    if early.key.size == 0:
        return np.empty(0, dtype=np.int64)
    strength = _strength(early)
    order = np.lexsort((strength, early.group))
    last = np.append(early.group[order][1:] != early.group[order][:-1], True)
    return np.sort(order[last])


def _strength(early: Early) -> Ints:
    """Return the place of each row in the order of value, then of rank turned round."""
    if early.rank is None:
        order = np.argsort(early.value[::-1], kind="stable")
        order = early.value.size - 1 - order
    else:
        order = np.lexsort((-early.rank, early.value))
    strength = np.empty(order.size, dtype=np.int64)
    strength[order] = np.arange(order.size)
    return strength


def _comparable(early: Early, late: Late) -> tuple[tuple[Ints, Ints, Ints] | None, Ints, Ints]:
    """Return keys that also tell groups apart, and the groups numbered from 0.

    There are no such keys, and no need of them, where all are of one group.
    """
    lowest, highest = _range(early.group, late.group)
    if lowest == highest:
        nothing = np.zeros(1, dtype=np.int64)
        return (
            None,
            np.broadcast_to(nothing, early.group.shape),
            np.broadcast_to(nothing, late.group.shape),
        )
    groups = np.unique(early.group)
    group_of_early = np.searchsorted(groups, early.group)
    group_of_late = np.searchsorted(groups, late.group)
    known = group_of_late < groups.size
    known &= groups[np.minimum(group_of_late, groups.size - 1)] == late.group
    both = np.concatenate((early.key, late.key))
    order = np.argsort(both, kind="stable")
    rank = np.empty(both.size, dtype=np.int64)
    in_order = both[order]
    rank[order] = np.cumsum(np.append(True, in_order[1:] != in_order[:-1]))
    many = np.int64(both.size + 1)
    key_of_early = group_of_early * many + rank[: early.key.size]
    key_of_late = group_of_late * many + np.where(known, rank[early.key.size :], 0)
    return (key_of_early, key_of_late, group_of_late * many), group_of_early, group_of_late


def _range(first: Ints, second: Ints) -> tuple[int, int]:
    lowest = min(int(first.min()), int(second.min()))
    highest = max(int(first.max()), int(second.max()))
    return lowest, highest
