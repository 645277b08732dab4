"""Violations as a table: the requirement, the message, and the strongest witness.

There is one violation for each requirement, run, queue and later message, whichever rules find it,
and however often. Owns the choice among several findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.names import Ints, Marks, texts
from brokerproof.pipeline.rules.history_rules import RULES

SCHEMA: Final = pa.schema(
    [
        ("requirement", pa.string()),
        ("run", pa.string()),
        ("queue", pa.string()),
        ("message", pa.string()),
        ("rule", pa.string()),
        ("strength", pa.int64()),
        ("witness", pa.string()),
        ("late_start", pa.int64()),
        ("late_end", pa.int64()),
        ("early_start", pa.int64()),
        ("early_end", pa.int64()),
    ]
)
"""A violation. `late_*` is the span of the wrong event, `early_*` that of the event it is compared
with; `witness` names the message or the subscriber of the latter, if that has its own name.
"""

KEY: Final = ("requirement", "run", "queue", "message")


def violations(
    rule: str,
    source: pa.Table,
    rows: Ints,
    *,
    strength: Ints,
    witness: pa.Array | pa.ChunkedArray | None = None,
    late: tuple[Ints, Ints],
    early: tuple[Ints, Ints],
    named: Sequence[Marks] = (),
) -> pa.Table:
    """Return a violation for each of these rows of a table with run, queue and message.

    `named` says for each further case of the rule where it applies.
    """
    taken = pa.array(rows)
    size = len(rows)
    usual, *others = RULES[rule].cases
    requirement = np.full(size, usual.requirement, dtype=object)
    for case, applies in zip(others, named, strict=True):
        requirement[applies] = case.requirement
    columns = {
        "requirement": pa.array(requirement, pa.string()),
        "run": texts(source.column("run"), taken),
        "queue": texts(source.column("queue"), taken),
        "message": source.column("message").take(taken),
        "rule": pa.repeat(rule, size),
        "strength": strength,
        "witness": pa.nulls(size, pa.string()) if witness is None else witness,
        "late_start": late[0],
        "late_end": late[1],
        "early_start": early[0],
        "early_end": early[1],
    }
    return pa.table(columns, schema=SCHEMA)


def none() -> pa.Table:
    """Return no violations."""
    return SCHEMA.empty_table()


def strongest(tables: Sequence[pa.Table]) -> pa.Table:
    """Return each violation once, with its strongest witness, in the order of their keys.

    It belongs to the rule listed first, has the greatest strength, and then the witness with the
    first name; the times settle the rest.
    """
    table = pa.concat_tables(tables) if tables else none()
    if table.num_rows < 2:
        return table
    table = _without_superseded(table)
    rank = pc.index_in(table.column("rule"), pa.array(list(RULES)))
    weakness = pa.array(-table.column("strength").to_numpy())
    table = table.append_column("rank", rank).append_column("weakness", weakness)
    order = [(name, "ascending") for name in KEY]
    order += [(name, "ascending") for name in ("rank", "weakness", "witness")]
    order += [
        (name, "ascending") for name in ("late_start", "late_end", "early_start", "early_end")
    ]
    table = table.sort_by(order)
    return _first_of_each(table, KEY).select(SCHEMA.names)


def _without_superseded(table: pa.Table) -> pa.Table:
    """Remove findings that a stronger earlier witness puts under another requirement."""
    names = [each.name for each in RULES.values() if each.named_by_witness]
    named_so = pc.is_in(table.column("rule"), pa.array(names))
    if not pc.any(named_so).as_py():
        return table
    some = table.filter(named_so)
    late = ["run", "queue", "message", "rule", "late_start", "late_end"]
    order = [(name, "ascending") for name in late]
    order += [("strength", "descending"), ("witness", "ascending")]
    kept = _first_of_each(some.sort_by(order), late)
    return pa.concat_tables([table.filter(pc.invert(named_so)), kept])


def _first_of_each(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the first of adjacent rows that are equal in these columns."""
    new = np.ones(table.num_rows, dtype=np.bool_)
    same = np.ones(max(table.num_rows - 1, 0), dtype=np.bool_)
    for name in names:
        column = table.column(name).combine_chunks()
        if pa.types.is_string(column.type):
            column = pc.fill_null(column, "")
        same &= pc.equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    new[1:] = ~same
    return table.filter(pa.array(new))
