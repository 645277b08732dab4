"""What a judgement says: violations, rows set aside, and how much each promise was asked of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from brokerproof.pipeline.intervals.subscriptions import Key

ASIDE: Final = pa.schema(
    [("place", pa.int64()), ("category", pa.string()), ("reason", pa.string())]
)
"""Rows of a history that could not be used."""

COVERAGE: Final = pa.schema([("requirement", pa.string()), ("asked", pa.int64())])
"""How often something was there of which a requirement could be asked."""


@dataclass(frozen=True)
class Judgement:
    """What is said of a history; `undeclared` are those queues of which no order was known.

    `stalled_after` and `begins_late` are how it was judged: what shows the same is judged so too.
    """

    violations: pa.Table
    aside: pa.Table
    coverage: dict[str, int]
    queues: tuple[Key, ...] = ()
    undeclared: tuple[Key, ...] = ()
    stalled_after: int | None = None
    begins_late: bool = False


def added(tables: Iterable[pa.Table]) -> dict[str, int]:
    """Return coverage of parts as that of the whole, by requirement in the order of the names."""
    total: dict[str, int] = {}
    for table in tables:
        for row in table.to_pylist():
            total[row["requirement"]] = total.get(row["requirement"], 0) + row["asked"]
    return dict(sorted(total.items()))
