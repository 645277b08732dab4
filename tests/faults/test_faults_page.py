"""The page of planted faults has every fault, under the name that the gate is held to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.faults.catalogue import Fault, faults
from tests.faults.kill_table import (
    HEADINGS,
    INTRODUCTION,
    Row,
    page_of,
    row_of,
    summary_of,
    times_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "findings" / "planted-faults.md"


def rows_on_the_page() -> dict[str, list[str]]:
    """Return the cells of each row of the page by the fault's id."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): row for row in rows}


def test_every_fault_is_on_the_page_and_no_other() -> None:
    assert list(rows_on_the_page()) == list(faults())


@pytest.mark.parametrize("fault", faults().values(), ids=lambda fault: fault.id)
def test_the_page_names_what_the_fault_breaks(fault: Fault) -> None:
    _, sentence, named, also, steps, certified = rows_on_the_page()[fault.id]
    assert sentence.startswith(fault.sentence)
    assert named == f"`{fault.requirement}`"
    assert {*re.findall(r"`(.+?)`", also)} <= {*fault.also}
    assert int(steps) <= fault.length
    assert certified == ("no" if fault.outside else "yes")


def test_the_page_says_how_many_were_found() -> None:
    page = PAGE.read_text(encoding="utf-8")
    number = len(faults())
    assert page.startswith(INTRODUCTION)
    assert f"\n{number} faults, {number} found, {number} under the right name and no other" in page


@pytest.mark.thorough
def test_the_page_is_made_of_what_the_gate_says() -> None:
    fault = faults()["publish-into-nowhere"]
    row = row_of(fault)
    assert row.cells() == rows_on_the_page()[fault.id]
    assert summary_of([row]).startswith("1 faults, 1 found, 1 under the right name and no other, 1")
    assert times_of([row]).startswith("1 certified within 30 s")
    made = page_of([row])
    assert len(made.splitlines()[-1].split(" | ")) == len(HEADINGS)


def test_a_fault_that_is_not_found_is_shown_as_such() -> None:
    fault = faults()["publish-into-nowhere"]
    sound = Row(fault, {}, 0.0)
    assert sound.cells()[2] == "not found"
    assert not sound.is_named
    assert summary_of([sound]).startswith("1 faults, 0 found, 0 under")
