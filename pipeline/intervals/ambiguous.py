"""Ambiguous messages: their records are rejected with all that is about them.

The rest is judged as if they had never existed: no violation of another message depends on a
message that is absent.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.intervals.streams import NONE_AMBIGUOUS, TWICE, Ambiguous
from brokerproof.pipeline.intervals.subscribers import UNCLEAR, told_apart
from brokerproof.pipeline.names import Ints, is_one_of, message_numbers, numbers, texts
from brokerproof.pipeline.readers.rejected_rows import ASIDE, Category

KEY = ("run", "queue", "message")
PUBLISHED_AGAIN = "its message was published more than once under this name"


def without_ambiguous(
    history: pa.Table, control: Control, ambiguous: Ambiguous = NONE_AMBIGUOUS
) -> tuple[pa.Table, pa.Table]:
    """Return a history with unambiguous messages and subscribers, and the rejected rows.

    All records of each message must be present.
    """
    apart = told_apart(history, control)
    history = apart.history
    message = message_numbers(history, named(history, "queue").number)
    size = int(message.max(initial=-1)) + 1
    published = is_one_of(history, "op", "publish") & ~is_one_of(history, "outcome", "failed")
    many = np.bincount(message[published & (message >= 0)], minlength=size)
    reasons: list[tuple[Category, str, Ints]] = [
        ("not told apart", PUBLISHED_AGAIN, np.flatnonzero(many > 1)),
        ("not told apart", UNCLEAR, np.unique(message[apart.unclear])),
        *_contradicting(history, message, ambiguous),
    ]
    is_left = np.ones(size + 1, dtype=np.bool_)
    aside = []
    for category, reason, messages in reasons:
        if messages.size:
            concerned = np.zeros(size + 1, dtype=np.bool_)
            concerned[messages] = is_left[messages]
            is_left &= ~concerned
            aside.append(rows_aside(history, np.flatnonzero(concerned[message]), category, reason))
    if not aside:
        return history, ASIDE.empty_table()
    return history.filter(pa.array(is_left[message])), pa.concat_tables(aside)


def _contradicting(
    history: pa.Table, message: Ints, ambiguous: Ambiguous
) -> list[tuple[Category, str, Ints]]:
    if not ambiguous:
        return []
    names = pa.array(sorted({name for _, _, name in ambiguous}), pa.string())
    may_be = np.asarray(pc.is_in(history.column("message"), value_set=names))
    rows = pa.array(np.flatnonzero(may_be))
    columns = [texts(history.column(name), rows).to_pylist() for name in KEY]
    reasons = [ambiguous.get(key) for key in zip(*columns, strict=True)]
    found: dict[str, list[int]] = {}
    for number, reason in zip(message[may_be].tolist(), reasons, strict=True):
        if reason is not None:
            found.setdefault(reason, []).append(number)
    return [
        (
            "not told apart" if reason == TWICE else "out of order",
            reason,
            np.unique(np.array(numbers_of, dtype=np.int64)),
        )
        for reason, numbers_of in sorted(found.items())
    ]


def rows_aside(history: pa.Table, which: Ints, category: Category, reason: str) -> pa.Table:
    """Return rows of a history as rejected rows."""
    place = numbers(history, "place")[which]
    columns = [place, np.repeat(category, which.size), np.repeat(reason, which.size)]
    return pa.table(columns, schema=ASIDE)
