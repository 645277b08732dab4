"""A judgement: violations, rejected rows, and how often each requirement was exercised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from brokerproof.pipeline.intervals.control import Bins
from brokerproof.pipeline.intervals.streams import ClockStep
from brokerproof.pipeline.intervals.subscriptions import Key
from brokerproof.pipeline.intervals.traffic import COUNTS

COVERAGE: Final = pa.schema(
    [("requirement", pa.string()), ("cause", pa.string()), ("many", pa.int64())]
)
"""How many cases of a requirement a history has: all, with the cause `ASKED`, and excused ones.

The settlements are counted in the same way, under the name `SETTLEMENTS`.
"""

ASKED: Final = ""
"""The cause of a case that is counted because the requirement applies to it."""

SETTLEMENTS: Final = "settlements"


@dataclass(frozen=True)
class Coverage:
    """The cases of each requirement, and those that no rule could judge, by what excused them.

    `settlements` are all settlements, `unknown_settlements` those without an answer.
    """

    asked: dict[str, int]
    excused: dict[str, dict[str, int]]
    settlements: int = 0
    unknown_settlements: int = 0


@dataclass(frozen=True)
class Judgement:
    """The judgement of a history; `undeclared` are the queues of unknown order.

    `stalled_after` and `begins_late` are its options; witnesses are judged with the same.
    `traffic` has the counts of the busiest queues in their `bins` of time; see `traffic.COUNTS`.
    `clock_step` is where a recorder's clock went back the most, if it did.
    """

    violations: pa.Table
    aside: pa.Table
    coverage: Coverage
    queues: tuple[Key, ...] = ()
    undeclared: tuple[Key, ...] = ()
    stalled_after: int | None = None
    begins_late: bool = False
    clock_step: ClockStep | None = None
    bins: Bins = field(default_factory=Bins)
    traffic: pa.Table = field(default_factory=COUNTS.empty_table)


def added(tables: Iterable[pa.Table]) -> Coverage:
    """Return the sum of the parts' coverage, by requirement in the order of the names."""
    total: dict[str, dict[str, int]] = {}
    for table in tables:
        for row in table.to_pylist():
            of = total.setdefault(row["requirement"], {})
            of[row["cause"]] = of.get(row["cause"], 0) + row["many"]
    settled = total.pop(SETTLEMENTS, {})
    asked = {name: total[name].pop(ASKED, 0) for name in sorted(total)}
    excused = {name: dict(sorted(total[name].items())) for name in asked}
    return Coverage(
        asked,
        {name: causes for name, causes in excused.items() if causes},
        settled.pop(ASKED, 0),
        sum(settled.values()),
    )
