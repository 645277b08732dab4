"""The kernel of rules of three comparisons: two keys must be smaller, and a value greater.

The early rows are sorted by their first key and cut into blocks of each power of two. The rows
before a place form one block for each power in its binary representation, and in each block a
search by the second key finds the greatest value. That is O((n + m) log² n), without a loop over
rows. Source: the range tree of Bentley (Decomposable Searching Problems, 1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerproof.pipeline.rules.dominance import NO_ROW, Early, Ints, Late, overtaken


@dataclass(frozen=True)
class EarlyOfTwoKeys:
    """The rows that may be overtaken; the smaller `rank` wins ties."""

    group: Ints
    first_key: Ints
    second_key: Ints
    value: Ints
    rank: Ints


@dataclass(frozen=True)
class LateOfTwoKeys:
    """The rows that may overtake one with smaller keys and a value above `bound`."""

    group: Ints
    first_key: Ints
    second_key: Ints
    bound: Ints


def overtaken_of_two_keys(early: EarlyOfTwoKeys, late: LateOfTwoKeys) -> Ints:
    """Return for each late row the row that it overtakes, or `NO_ROW`; see `overtaken`."""
    found = np.full(late.bound.size, NO_ROW, dtype=np.int64)
    # Most late rows overtake none by the second key alone, which is a quick test.
    by_second = overtaken(
        Early(early.group, early.second_key, early.value),
        Late(late.group, late.second_key, late.bound),
    )
    asked = np.flatnonzero(by_second != NO_ROW)
    if asked.size:
        some = LateOfTwoKeys(
            late.group[asked], late.first_key[asked], late.second_key[asked], late.bound[asked]
        )
        found[asked] = _by_blocks(early, some)
    return found


def _by_blocks(early: EarlyOfTwoKeys, late: LateOfTwoKeys) -> Ints:
    order = np.lexsort((early.first_key, early.group))
    upto = _places(early.group[order], early.first_key[order], late.group, late.first_key)
    strength = np.empty(order.size, dtype=np.int64)
    by_strength = np.lexsort((-early.rank, early.value))
    strength[by_strength] = np.arange(order.size)
    best = np.full(upto.size, NO_ROW, dtype=np.int64)
    for bit in range(int(order.size).bit_length()):
        asked = np.flatnonzero((upto >> bit) & 1)
        if not asked.size:
            continue
        block_of_early = np.arange(order.size) >> bit
        block_of_late = (upto[asked] >> bit) - 1
        group = _pairs(block_of_early, early.group[order], block_of_late, late.group[asked])
        which = overtaken(
            Early(group[0], early.second_key[order], strength[order]),
            Late(group[1], late.second_key[asked], np.full(asked.size, NO_ROW)),
        )
        there = which != NO_ROW
        best[asked[there]] = np.maximum(best[asked[there]], strength[order][which[there]])
    witness = np.where(best == NO_ROW, NO_ROW, by_strength[best])
    above = early.value[witness] > late.bound
    return np.where((witness != NO_ROW) & above, witness, NO_ROW)


def _places(group: Ints, key: Ints, of_group: Ints, below: Ints) -> Ints:
    """Return the number of sorted rows before a key of a group."""
    both = np.lexsort(
        (
            np.concatenate((np.ones(key.size), np.zeros(below.size))),
            np.concatenate((key, below)),
            np.concatenate((group, of_group)),
        )
    )
    rows_so_far = np.cumsum(both < key.size)
    counted = np.empty(both.size, dtype=np.int64)
    counted[both] = rows_so_far
    return counted[key.size :]


def _pairs(first: Ints, second: Ints, other_first: Ints, other_second: Ints) -> tuple[Ints, Ints]:
    """Number pairs so that equal ones get equal numbers."""
    both = np.stack((np.concatenate((first, other_first)), np.concatenate((second, other_second))))
    _, number = np.unique(both, axis=1, return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    return number[: first.size], number[first.size :]
