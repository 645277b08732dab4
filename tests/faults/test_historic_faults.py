"""Every historic fault of the notes is listed, with something that is there and finds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.catalogue import faults
from tests.faults.historic.catalogue import FAMILIES, Historic, historic_faults
from tests.faults.historic.table import (
    HEADINGS,
    by_gate,
    cells_of,
    introduction,
    page_of,
    rows_on,
)
from tests.faults.threads.catalogue import thread_faults
from tests.spec.test_invariants import stale

DOCS = Path(__file__).parents[2] / "docs"


def numbered(letters: str, *numbers: int) -> list[str]:
    """Return ids that begin alike."""
    return [f"{letters}{number}" for number in numbers]


NOTED = {
    "qpid": [f"B-{number:02}" for number in range(1, 64, 2)],
    "rabbitmq": [
        *numbered("BV", 1, 3, 5, 7, 9, 11, 21),
        *numbered("BK", 2, 4, 6, 8, 9, 10),
        *numbered("BR", 3, 5, 7, 10),
        *numbered("BC", 2, 4, 6, 8),
        *numbered("BI", 1, 3, 5, 7, 9, 11, 13, 15, 17, 19),
        *numbered("BS", 2, 4, 5),
        *numbered("BM", 1, 3, 5),
        *numbered("BN", 1, 3, 5, 7, 9, 11, 13, 16),
        *numbered("BT", 1, 3, 5),
        *numbered("BQ", *range(1, 11)),
    ],
    "activemq": [
        f"M-{number:02}"
        for number in (
            *range(1, 26, 2),
            *range(31, 56, 2),
            *(61, 63, 65, 67, 69, 71),
            *(80, 82, 84),
        )
    ],
}
"""The ids of each family's part of the notes on known faults."""

EVERY = [each for family in FAMILIES for each in historic_faults(family)]
BY_GATE_NOW = {
    "qpid": ("B-39", "dequeued-counts-as-available"),
    "rabbitmq": ("BQ2", "beyond-the-highest-level"),
    "activemq": ("M-43", "the-queue-is-not-woken"),
}
"""Of each family one that is found at once, which is run again."""


def page(family: str) -> str:
    """Return the page of a family as it stands."""
    return (DOCS / "findings" / f"{family}-historic-faults.md").read_text(encoding="utf-8")


def known() -> set[str]:
    return {*faults(), *(each.id for each in thread_faults())}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_noted_fault_is_listed_and_no_other(family: str) -> None:
    assert [each.id for each in historic_faults(family)] == NOTED[family]


@pytest.mark.parametrize("historic", EVERY, ids=lambda each: each.id)
def test_what_finds_it_is_there(historic: Historic) -> None:
    assert {*historic.faults} <= known()
    assert [stale(binding) for binding in historic.held if stale(binding)] == []
    for text in (historic.what, historic.unplanted or "Planted."):
        assert text[0].isupper()
        assert text.endswith(".")


def sources() -> dict[str, set[str]]:
    """Return the planted faults that say of themselves which historic one they are."""
    found: dict[str, set[str]] = {}
    told = [(each.id, each.source) for each in faults().values()]
    told += [(each.id, each.source) for each in thread_faults()]
    for fault, source in told:
        for name in re.findall(r"\b(?:B(?:-|[A-Z])|M-)\d+\b", source):
            found.setdefault(name, set()).add(fault)
    return found


@pytest.mark.parametrize("historic", EVERY, ids=lambda each: each.id)
def test_a_planted_fault_and_the_list_name_each_other(historic: Historic) -> None:
    assert sources().get(historic.id, set()) <= {*historic.faults}


def test_a_planted_fault_is_of_no_unknown_source() -> None:
    assert sources().keys() <= {each.id for each in EVERY}


def test_a_record_says_what_finds_it_or_why_nothing_can() -> None:
    one = {"id": "B-99", "issue": "none", "system": "qpid-push", "what": "It broke."}
    with pytest.raises(ValueError, match="B-99: name what finds it, or why nothing can"):
        Historic(**one)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="B-99"):
        Historic(**one, faults=("a",), unplanted="Never.")  # type: ignore[arg-type]


# The pages.


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_has_a_row_for_everything_that_finds_a_fault(family: str) -> None:
    text = page(family)
    rows = rows_on(text)
    assert text.startswith(introduction(family))
    assert text == page_of(rows, family)
    for historic in historic_faults(family):
        found = rows.get(historic.id, [])
        assert len(found) == len(historic.faults) + len(historic.held), historic.id
        for name, row in zip(historic.faults, found, strict=False):
            assert f"`{name}`" in row[3]
            assert row[4] != "not found"
            assert float(row[6]) >= 0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_names_what_the_gate_is_held_to(family: str) -> None:
    rows = rows_on(page(family))
    for historic in historic_faults(family):
        for name, row in zip(historic.faults, rows.get(historic.id, []), strict=False):
            if name in faults():
                assert row[4] == f"`{faults()[name].requirement}`"
                assert int(row[5]) <= faults()[name].length


@pytest.mark.each_time(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_is_made_of_what_the_gate_says_seconds_aside(family: str) -> None:
    wanted, fault = BY_GATE_NOW[family]
    historic = next(each for each in historic_faults(family) if each.id == wanted)
    made = cells_of(historic)
    assert [row[:-1] for row in made] == [row[:-1] for row in rows_on(page(family))[wanted]]
    assert all(len(row) == len(HEADINGS) for row in made)
    assert by_gate(fault).steps == made[0][5]
