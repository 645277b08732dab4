"""Which rows of the index's two tables are met while every change to the disk is cut off.

`python -m tests.reference.rabbitmq.disk.index_rows [OPERATIONS]` prints them with how often. The
tables are those of `reference/rabbitmq/disk/combinations.py`; they are counted as they are looked
up.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest

from brokerproof.checks.conversation import copier_of, reset
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.product import search
from brokerproof.checks.search.scopes.crash_scopes import scopes_of_crashes
from brokerproof.checks.search.searches import Search
from brokerproof.reference import make
from brokerproof.reference.rabbitmq.disk.combinations import (
    FILE_PLUS_JOURNAL,
    JOURNAL_MINUS_FILE,
    NAMES,
    A,
    Differences,
    P,
    Sums,
)
from brokerproof.spec.messages import Fifo

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = tuple[str, tuple[int, int]]

SUM, DIFFERENCE = "file, journal", "journal, file"
ROWS: Final = (
    *((SUM, row) for row in FILE_PLUS_JOURNAL),
    *((DIFFERENCE, row) for row in JOURNAL_MINUS_FILE),
)
OUT_OF_REACH: Final = {
    (DIFFERENCE, (A, P)): "only where a delivery's mark was lost, as releases before 3.11.17 did",
}
"""Rows that nothing here leads to, with the reason."""

ADDRESSES: Final = (
    "rabbitmq-paging?segment=2&batch=2&journal=4&file=200&target=1",
    "rabbitmq-paging?segment=2&batch=1&journal=0&target=0",
    "rabbitmq-paging?segment=2&batch=1&journal=1&target=0",
    "rabbitmq-paging?segment=1&batch=1&journal=2&target=0&runner=drain",
)


@contextmanager
def counted() -> Iterator[Counter[Row]]:
    """Count the rows that are looked up while the body runs."""
    counts: Counter[Row] = Counter()

    def of_sums(table: Sums, row: tuple[int, int]) -> object:
        counts[SUM, row] += 1
        return dict.__getitem__(table, row)

    def of_differences(table: Differences, row: tuple[int, int]) -> object:
        counts[DIFFERENCE, row] += 1
        return dict.__getitem__(table, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sums, "__getitem__", of_sums, raising=False)
        patch.setattr(Differences, "__getitem__", of_differences, raising=False)
        yield counts


def searched(address: str, operations: int) -> Search:
    """Search one scope with all its losses of power."""
    candidate = make(address)
    reset(candidate)
    claims, copier = candidate.hello().capabilities, copier_of(candidate)
    assert not isinstance(copier, str)
    scopes = scopes_of_crashes(claims, (Fifo(),), ("acknowledge",), on_disk=True)
    found = Search(next(scope for scope in scopes if scope.cuts), "product")
    search(found, (candidate, Oracle(claims)), copier, operations, lambda: "")
    return found


def main(operations: int) -> None:
    """Print each row with how often it was met, and at how many points the power was lost."""
    with counted() as counts:
        cuts = sum(searched(address, operations).cuts for address in ADDRESSES)
    sys.stdout.write(f"the power was lost at {cuts:,} points\n")
    for table, row in ROWS:
        first, second = (NAMES[state] for state in row)
        why = OUT_OF_REACH.get((table, row), "")
        cells = (table, first, second, f"{counts[table, row]:,}", why)
        sys.stdout.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)
