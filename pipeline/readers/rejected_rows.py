"""Rejected rows: why a row cannot be used, and its place.

No recorded row vanishes silently: each row is checked or rejected, and an `Account` counts both.
The readers of the forms say what a row is: a line of JSON, a row of Parquet, a block of a trace.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

import msgspec
import pyarrow as pa

TEXT_CHARACTERS_MAX: Final = 200
"""The part of a rejected row that is shown, in characters; its place leads to the rest."""

Category: TypeAlias = Literal[
    "unreadable",
    "missing",
    "wrong value",
    "ends before it starts",
    "refers to nothing",
    "out of order",
    "not told apart",
    "about something else",
]

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

MEANINGS: Final[dict[Category, str]] = {
    "unreadable": "is not in the form of its file at all",
    "missing": "lacks a field that its kind must have",
    "wrong value": "has a field of a wrong type, out of its limits, or an unknown field",
    "ends before it starts": "has its times the wrong way round",
    "refers to nothing": "is about something that the recording does not show",
    "out of order": "comes where it cannot come",
    "not told apart": "is about a message that the recording does not tell from another",
    "about something else": "is about nothing that a history holds",
}


class Rejected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row that was not used. `line` counts the lines or rows of its file from 1."""

    category: Category
    reason: str
    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.category}: {self.reason}"


@dataclass(frozen=True)
class Chunk:
    """Some rows of a recording: their number, their records, and the rejected ones.

    A row of a recording can make several records or none, so `batch` may be longer or shorter.
    """

    rows: int
    batch: pa.RecordBatch
    rejected: list[Rejected]


ASIDE: Final = pa.schema(
    [("place", pa.int64()), ("category", pa.string()), ("reason", pa.string())]
)
"""The rejected rows of a history."""


def reject(category: Category, reason: str, file: str, line: int, text: str = "") -> Rejected:
    """Return a rejected row, its reason in one line and its text if it is short."""
    shown = text if len(text) <= TEXT_CHARACTERS_MAX else ""
    return Rejected(
        category=category, reason=" ".join(reason.split()), file=file, line=line, text=shown
    )


class Unbalanced(AssertionError):
    """A row was neither checked nor rejected, or both; the fault is ours."""


@dataclass
class Account:
    """The number of rows, and how many of them were checked and rejected.

    >>> account = Account(rows=3, checked=2)
    >>> account.by_category["missing"] += 1
    >>> print(account)
    3 rows in = 2 checked + 1 rejected (1 missing)
    """

    rows: int = 0
    checked: int = 0
    by_category: Counter[Category] = field(default_factory=Counter)

    @property
    def rejected(self) -> int:
        """The number of rejected rows."""
        return self.by_category.total()

    @property
    def is_for_the_lesser_part(self) -> bool:
        """Whether fewer rows were checked than rejected, of those that a history could hold."""
        return self.checked < self.rejected - self.by_category["about something else"]

    @property
    def complaint(self) -> str:
        """The words for an account that is for the lesser part."""
        return (
            f"more rows were rejected than the {self.checked:,} that were checked, so requirements "
            "are kept by the lesser part only"
        )

    def add(self, rows: int, checked: int, rejected: Counter[Category]) -> None:
        """Add the counts of further rows; raises `Unbalanced`."""
        if rows != checked + rejected.total():
            raise Unbalanced(f"{rows} rows are not {checked} + {rejected.total()}")
        self.rows += rows
        self.checked += checked
        self.by_category += rejected

    def __str__(self) -> str:
        counts = [f"{self.by_category[each]:,} {each}" for each in CATEGORIES]
        why = ", ".join(text for text in counts if not text.startswith("0 "))
        words = f"{self.rows:,} rows in = {self.checked:,} checked + {self.rejected:,} rejected"
        return f"{words} ({why})" if why else words
