"""A judgement: violations, rejected rows, and how often each requirement was exercised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from brokerproof.pipeline.intervals.subscriptions import Key

COVERAGE: Final = pa.schema([("requirement", pa.string()), ("asked", pa.int64())])
"""How often the history had a case to which a requirement applies."""


@dataclass(frozen=True)
class Judgement:
    """The judgement of a history; `undeclared` are the queues of unknown order.

    `stalled_after` and `begins_late` are its options; witnesses are judged with the same.
    """

    violations: pa.Table
    aside: pa.Table
    coverage: dict[str, int]
    queues: tuple[Key, ...] = ()
    undeclared: tuple[Key, ...] = ()
    stalled_after: int | None = None
    begins_late: bool = False


def added(tables: Iterable[pa.Table]) -> dict[str, int]:
    """Return the sum of the parts' coverage, by requirement in the order of the names."""
    total: dict[str, int] = {}
    for table in tables:
        for row in table.to_pylist():
            total[row["requirement"]] = total.get(row["requirement"], 0) + row["asked"]
    return dict(sorted(total.items()))
