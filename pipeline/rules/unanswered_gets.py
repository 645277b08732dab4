"""The counting rule: a get without an answer took one message at most.

Any of several lost messages may be the one that such a get took. But k gets explain k losses at
most, and each only one that waited while the get may have been answered. So the losses of a queue
are matched with its gets, as many as possible, and the others are violations. The first losses are
explained first. Owns this choice, which needs all losses of a queue; every engine makes it last.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.intervals.subscriptions import Times
from brokerproof.pipeline.names import Marks, numbers
from brokerproof.pipeline.rules.history_rules import BEYOND_GETS


def beyond_gets(wrong: pa.Table, control: Control) -> pa.Table:
    """Return violations without the losses that gets without an answer explain."""
    rows = np.flatnonzero(pc.equal(wrong.column("rule"), BEYOND_GETS).to_numpy())
    if not rows.size:
        return wrong
    losses = wrong.take(pa.array(rows))
    queue = named(losses, "queue")
    # A message may have been taken from when it can have come until its queue was drained.
    begun, drained = numbers(losses, "early_start"), numbers(losses, "late_end")
    kept = np.ones(wrong.num_rows, dtype=np.bool_)
    for number, key in enumerate(queue.keys):
        there = np.flatnonzero(queue.number == number)
        spans = list(zip(begun[there].tolist(), drained[there].tolist(), strict=True))
        kept[rows[there]] = ~explained(spans, control.taken.get(key, []))
    return wrong.filter(pa.array(kept))


def explained(losses: Sequence[tuple[int, int]], gets: Times) -> Marks:
    """Return which losses are matched with a get each, whose span overlaps their own.

    The span that ends first is matched with the one of the other side that ends first, of those
    that it overlaps. No other choice matches more: all that it overlaps contain its end, and of
    these the one that ends first overlaps no later span that another does not overlap.

    >>> explained([(0, 9), (1, 9), (5, 9)], [(0, 3), (2, 4)]).tolist()
    [True, True, False]
    """
    sides = (losses, gets)
    matched = [np.zeros(len(side), dtype=np.bool_) for side in sides]
    # Each side by its starts, the last one first, and what has begun of it by its ends.
    starts = [sorted(((s[0], n) for n, s in enumerate(side)), reverse=True) for side in sides]
    begun: tuple[list[tuple[int, int]], ...] = ([], [])
    ends = [(span[1], side, n) for side, spans in enumerate(sides) for n, span in enumerate(spans)]
    for end, side, number in sorted(ends):
        if matched[side][number]:
            continue
        other = 1 - side
        while starts[other] and starts[other][-1][0] <= end:
            _, which = starts[other].pop()
            heapq.heappush(begun[other], (sides[other][which][1], which))
        while begun[other] and (begun[other][0][0] < end or matched[other][begun[other][0][1]]):
            heapq.heappop(begun[other])
        if begun[other]:
            _, which = heapq.heappop(begun[other])
            matched[side][number] = matched[other][which] = True
    return matched[0]
