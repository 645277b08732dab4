"""Every historic fault of the notes is listed, with something that is there and finds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.catalogue import faults
from tests.faults.historic.catalogue import Historic, historic_faults
from tests.faults.historic.table import HEADINGS, INTRODUCTION, by_gate, cells_of, page_of, rows_on
from tests.faults.threads.catalogue import thread_faults
from tests.spec.test_invariants import stale

PAGE = Path(__file__).parents[2] / "docs" / "qpid-historic-faults.md"

NOTED = [f"B-{number:02}" for number in range(1, 64, 2)]
"""The ids of Qpid's part of the notes on known faults."""


def known() -> set[str]:
    return {*faults(), *(each.id for each in thread_faults())}


def test_every_noted_fault_is_listed_and_no_other() -> None:
    assert [each.id for each in historic_faults()] == NOTED


@pytest.mark.parametrize("historic", historic_faults(), ids=lambda each: each.id)
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
        for name in re.findall(r"B-\d\d", source):
            found.setdefault(name, set()).add(fault)
    return found


@pytest.mark.parametrize("historic", historic_faults(), ids=lambda each: each.id)
def test_a_planted_fault_and_the_list_name_each_other(historic: Historic) -> None:
    assert sources().get(historic.id, set()) <= {*historic.faults}


def test_a_record_says_what_finds_it_or_why_nothing_can() -> None:
    one = {"id": "B-99", "issue": "none", "system": "qpid-push", "what": "It broke."}
    with pytest.raises(ValueError, match="B-99: name what finds it, or why nothing can"):
        Historic(**one)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="B-99"):
        Historic(**one, faults=("a",), unplanted="Never.")  # type: ignore[arg-type]


# The page.


def test_the_page_has_a_row_for_everything_that_finds_a_fault() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = rows_on(text)
    assert text.startswith(INTRODUCTION)
    assert text == page_of(rows)
    for historic in historic_faults():
        found = rows.get(historic.id, [])
        assert len(found) == len(historic.faults) + len(historic.held), historic.id
        for name, row in zip(historic.faults, found, strict=False):
            assert f"`{name}`" in row[3]
            assert row[4] != "not found"
            assert float(row[6]) >= 0


def test_the_page_names_what_the_gate_is_held_to() -> None:
    rows = rows_on(PAGE.read_text(encoding="utf-8"))
    for historic in historic_faults():
        for name, row in zip(historic.faults, rows.get(historic.id, []), strict=False):
            if name in faults():
                assert row[4] == f"`{faults()[name].requirement}`"
                assert int(row[5]) <= faults()[name].length


def test_a_row_is_made_of_what_the_gate_says_seconds_aside() -> None:
    historic = next(each for each in historic_faults() if each.id == "B-39")
    made = cells_of(historic)
    assert [row[:-1] for row in made] == [
        row[:-1] for row in rows_on(PAGE.read_text(encoding="utf-8"))["B-39"]
    ]
    assert all(len(row) == len(HEADINGS) for row in made)
    assert by_gate("dequeued-counts-as-available").steps == made[0][5]
