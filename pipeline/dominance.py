"""The kernel of the rules about several rows: which early rows are overtaken, without pairs.

For each late row, a rule needs an early row of its group with a smaller key and a greater value.
Sorted by key, the greatest value so far answers that for all: O(n log n). Of earlier keys only the
row with the greatest value of each group matters, so slices of the key's range can be judged one by
one.

A rule of three comparisons has a second key, which must be smaller too. The early rows, sorted by
their first key, are cut into blocks of each power of two. The rows before a place form one block
for each power in its binary representation, and in each block the second key decides as above:
O((n + m) log² n). Source: the range tree of Bentley (Decomposable Searching Problems, 1979).

A rule about each moment of a span lets each row wait from its key to its value, both excluded.
Waits that meet or overlap form a *stay* of the group, during which it was never empty. Stays do not
overlap, so a span lies within one if and only if it lies within the last one that begins before it.
Of the rows before a time, later times need only the stay that continues over it: its begin, and the
row with the greatest value. Joined with the rows of a later slice, it gives the summary of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brokerproof.pipeline.names import NO_ROW, Ints, Marks, dense


@dataclass(frozen=True)
class Early:
    """The rows that may be overtaken: group, key and value; the smaller `rank` wins ties.

    A rank of None stands for the order of the rows.
    """

    group: Ints
    key: Ints
    value: Ints
    rank: Ints | None = None
    second_key: Ints | None = None


@dataclass(frozen=True)
class Late:
    """The rows that may overtake an early one whose keys are below theirs and value above `bound`.

    For a rule about each moment of a span, `key` is its start and `bound` its end.
    """

    group: Ints
    key: Ints
    bound: Ints
    second_key: Ints | None = None


def overtaken(early: Early, late: Late) -> Ints:
    """Return for each late row the early row that it overtakes, or `NO_ROW`.

    Of several, it is the one of the greatest value, and of those the one of the lowest rank.
    """
    found = np.full(late.key.size, NO_ROW, dtype=np.int64)
    if early.key.size == 0 or late.key.size == 0:
        return found
    if early.second_key is not None and late.second_key is not None:
        # Most late rows overtake none by the second key alone, which is a quick test.
        by_second = overtaken(
            Early(early.group, early.second_key, early.value),
            Late(late.group, late.second_key, late.bound),
        )
        asked = np.flatnonzero(by_second != NO_ROW)
        if asked.size:
            some = Late(late.group[asked], late.key[asked], late.bound[asked])
            found[asked] = _by_blocks(early, some, early.second_key, late.second_key[asked])
        return found
    group, order, is_early = _merged(early, late)
    strength, by_strength = _strength(early)
    # A later group begins above all values that an earlier one can reach.
    floor = group * np.int64(early.key.size + 1)
    lifted = floor[order]
    lifted[is_early] += strength[order[is_early] - late.key.size] + 1
    best_so_far = np.maximum.accumulate(lifted)
    asked = order[~is_early]
    best = best_so_far[~is_early] - floor[asked] - 1
    witness = by_strength[best]
    wins = (best != NO_ROW) & (early.value[witness] > late.bound[asked])
    found[asked[wins]] = witness[wins]
    return found


def _by_blocks(early: Early, late: Late, second_key: Ints, below: Ints) -> Ints:
    """Return the same by both keys; `below` are the second keys of the late rows."""
    group, order, is_early = _merged(early, late)
    of_late, of_early = np.split(group, [late.key.size])
    rows = order[is_early] - late.key.size
    upto = np.empty(late.key.size, dtype=np.int64)
    upto[order[~is_early]] = np.cumsum(is_early)[~is_early]
    strength, by_strength = _strength(early)
    best = np.full(upto.size, NO_ROW, dtype=np.int64)
    for bit in range(int(rows.size).bit_length()):
        asked = np.flatnonzero((upto >> bit) & 1)
        if not asked.size:
            continue
        blocks = (rows.size >> bit) + 1
        which = overtaken(
            Early(
                of_early[rows] * blocks + (np.arange(rows.size) >> bit),
                second_key[rows],
                strength[rows],
            ),
            Late(
                of_late[asked] * blocks + (upto[asked] >> bit) - 1,
                below[asked],
                np.full(asked.size, NO_ROW),
            ),
        )
        there = which != NO_ROW
        reached = strength[rows[which[there]]]
        best[asked[there]] = np.maximum(best[asked[there]], reached)
    witness = by_strength[best]
    above = (best != NO_ROW) & (early.value[witness] > late.bound)
    return np.where(above, witness, NO_ROW)


def _merged(early: Early, late: Late) -> tuple[Ints, Ints, Marks]:
    """Return the groups of late and early rows, from 0, their order by key, and which are early.

    Among equal keys the late rows come first: an equal key is not below.
    """
    both = np.concatenate((late.group, early.group))
    lowest = int(both.min())
    if int(both.max()) == lowest:
        group = np.zeros(both.size, dtype=np.int64)
    else:
        _, group = dense(both - lowest)
    order = np.argsort(np.concatenate((late.key, early.key)), kind="stable")
    most = int(group.max(initial=0))
    if most > 0:
        # Groups are few, and short numbers are sorted in linear time.
        short = group.astype(np.uint16) if most < 1 << 16 else group
        order = order[np.argsort(short[order], kind="stable")]
    return group, order, order >= late.key.size


def greatest(early: Early) -> Ints:
    """Return the row of each group that represents it towards greater keys."""
    if early.key.size == 0:
        return np.empty(0, dtype=np.int64)
    _, by_strength = _strength(early)
    groups, number = dense(early.group)
    row = np.empty(groups.size, dtype=np.int64)
    # Of several rows of a group the last one, which is the greatest, stays.
    row[number[by_strength]] = by_strength
    return np.sort(row)


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


# Each moment of a span.


@dataclass(frozen=True)
class Stays:
    """The spans during which groups were never empty; `of` is the stay of each early row."""

    group: Ints
    begin: Ints
    end: Ints
    of: Ints

    def around(self, late: Late) -> Ints:
        """Return the stay of its group around each span, or `NO_ROW`."""
        return overtaken(Early(self.group, self.begin, self.end), late)


def stays_of(early: Early) -> Stays:
    """Return the stays that waits form."""
    order = np.lexsort((early.key, early.group))
    group, key = early.group[order], early.key[order]
    new_group = np.append(True, group[1:] != group[:-1])[: group.size]
    most = running_most(early.value[order], new_group)
    new = new_group.copy()
    new[1:] |= key[1:] >= most[:-1]
    of = np.empty(order.size, dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    last = np.append(new[1:], True)[: new.size]
    return Stays(group[new], key[new], most[last], of)


def overtaken_by_a_chain(early: Early, late: Late) -> tuple[Ints, Ints]:
    """Return for each late row the last row of the chain that it overtakes, and the chain's begin.

    The last row has the greatest value of those that began before the span ended, and of several
    the lowest rank. It is `NO_ROW` if no row waited at some moment of the span.
    """
    last = np.full(late.bound.size, NO_ROW, dtype=np.int64)
    since = np.full(late.bound.size, NO_ROW, dtype=np.int64)
    if early.key.size == 0 or late.bound.size == 0:
        return last, since
    stays = stays_of(early)
    within = stays.around(late)
    wrong = np.flatnonzero(within != NO_ROW)
    some = Late(late.group[wrong], late.bound[wrong], late.bound[wrong])
    last[wrong] = overtaken(early, some)
    since[wrong] = stays.begin[within[wrong]]
    return last, since


# The greatest and the least value so far.


def running_most(values: Ints, begins: Marks) -> Ints:
    """Return the greatest value since the last mark."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(values.size, dtype=np.int64)
    rank[order] = np.arange(values.size)
    lift = (np.cumsum(begins) - 1) * np.int64(values.size)
    most: Ints = values[order[np.maximum.accumulate(rank + lift) - lift]]
    return most


def running_least(values: Ints, begins: Marks) -> Ints:
    """Return the least value since the last mark."""
    return -running_most(-values, begins)


def least_from_here(values: Ints, ends: Marks) -> Ints:
    """Return the least value from each place to the next mark, both included."""
    return running_least(values[::-1], ends[::-1])[::-1]
