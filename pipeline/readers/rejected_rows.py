"""Rows that cannot be used: why, and where each of them stands.

Nothing that was recorded vanishes without a word: each row that is read is checked or set aside,
and an `Account` says how many were. Refuses to know the forms of recordings; their readers say what
a row is: a line of JSON, a row of Parquet, a block of a trace.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

import msgspec

TEXT_CHARACTERS_MAX: Final = 200
"""So much of a row that was set aside is shown; the rest can be looked up at its place."""

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
    "wrong value": "has a field of a wrong type, out of its limits, or that nobody knows",
    "ends before it starts": "has its times the wrong way round",
    "refers to nothing": "is about something that the recording does not show",
    "out of order": "comes where it cannot come",
    "not told apart": "is about a message that the recording does not tell from another",
    "about something else": "is about nothing that a history holds",
}


class SetAside(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row that was not used. `line` counts the lines or rows of its file from 1."""

    category: Category
    reason: str
    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.category}: {self.reason}"


def set_aside(category: Category, reason: str, file: str, line: int, text: str = "") -> SetAside:
    """Return a row that is set aside, its reason in one line and its text if it is short."""
    shown = text if len(text) <= TEXT_CHARACTERS_MAX else ""
    return SetAside(
        category=category, reason=" ".join(reason.split()), file=file, line=line, text=shown
    )


class Unbalanced(AssertionError):
    """Rows were read that were neither checked nor set aside, or the reverse; the fault is ours."""


@dataclass
class Account:
    """How many rows there were, and what became of them.

    >>> account = Account(rows=3, checked=2)
    >>> account.by_category["missing"] += 1
    >>> print(account)
    3 rows in = 2 checked + 1 set aside (1 missing)
    """

    rows: int = 0
    checked: int = 0
    by_category: Counter[Category] = field(default_factory=Counter)

    @property
    def set_aside(self) -> int:
        """How many rows were set aside."""
        return self.by_category.total()

    @property
    def is_for_the_lesser_part(self) -> bool:
        """Whether fewer rows were checked than set aside, of those that a history could hold."""
        return self.checked < self.set_aside - self.by_category["about something else"]

    def add(self, rows: int, checked: int, set_aside: Counter[Category]) -> None:
        """Add what became of some rows more; raises `Unbalanced`."""
        if rows != checked + set_aside.total():
            raise Unbalanced(f"{rows} rows are not {checked} + {set_aside.total()}")
        self.rows += rows
        self.checked += checked
        self.by_category += set_aside

    def __str__(self) -> str:
        counts = [f"{self.by_category[each]:,} {each}" for each in CATEGORIES]
        why = ", ".join(text for text in counts if not text.startswith("0 "))
        words = f"{self.rows:,} rows in = {self.checked:,} checked + {self.set_aside:,} set aside"
        return f"{words} ({why})" if why else words
