"""The table of ActiveMQ 5.1's defects: what it prints is on the pages, and what it refuses."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from brokerproof.reference import make
from brokerproof.reference.activemq.parameters import REPAIRED
from examples import activemq_ablation
from examples.activemq_ablation import AMPLE, SCARCE, Combination, Outcome, Scenario

DOCS = Path(activemq_ablation.__file__).parents[1] / "docs" / "findings"
PRINTED = Combination("repaired", "printed", ())


def outcome_of(combination: Combination, memory: int, messages: int, lag: int) -> Outcome:
    """Run the scenario on one broker."""
    return Scenario(combination.address(memory, lag), messages).run()


def run_with(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    """Run the program with these arguments."""
    monkeypatch.setattr(sys, "argv", ["activemq_ablation.py", *words])
    activemq_ablation.main()


Key = tuple[str, ...]
"""The first cells of a row: the other rules, the defects, the memory."""


def key_of(line: str) -> Key:
    """Return what a row of a table is about."""
    return tuple(line.split(" | ")[:3])


@functools.cache
def tables_on(page: str) -> tuple[Mapping[Key, str], ...]:
    """Return the tables of results on a page, each row by what it is about."""
    _, *parts = (DOCS / page).read_text(encoding="utf-8").split(activemq_ablation.HEADER)
    return tuple(
        {key_of(line): line for line in part.partition("\n\n")[0].splitlines() if line}
        for part in parts
    )


def told_of(rows: str, lag: int) -> Mapping[Key, str]:
    """Return what the page says of these rows; with a lag of 0 it has those that are others."""
    few, others, _, rules = tables_on("activemq-5.1-loss.md")
    if rows == "rules":
        return rules
    return few if lag else {**few, **others}


@pytest.mark.parametrize("memory", [AMPLE, SCARCE])
def test_the_mend_as_printed_stands_and_falls_with_the_lag(
    monkeypatch: pytest.MonkeyPatch, memory: int
) -> None:
    # A tenth of the prefetch and of what is taken, for a scenario of fewer messages.
    monkeypatch.setattr(activemq_ablation, "PREFETCH", 100)
    monkeypatch.setattr(activemq_ablation, "TAKEN", 10)
    assert outcome_of(PRINTED, memory, 300, 0).taken == list(range(300))
    behind = outcome_of(PRINTED, memory, 300, REPAIRED.lag)
    assert behind.taken == list(range(110 if memory == SCARCE else 120))
    assert behind.missing == list(range(len(behind.taken), 300))


ASKED = [
    (rows, lag, combination, memory)
    for rows, lag in (("few", REPAIRED.lag), ("few", 0), ("rules", REPAIRED.lag))
    for combination in activemq_ablation.combinations(rows)
    for memory in (AMPLE, SCARCE)
]


@pytest.mark.thorough
@pytest.mark.parametrize(("rows", "lag", "combination", "memory"), ASKED)
def test_a_row_of_the_page_is_what_is_printed(
    rows: str, lag: int, combination: Combination, memory: int
) -> None:
    found = outcome_of(combination, memory, 5000, lag)
    printed = activemq_ablation.row(combination, memory, found)
    assert told_of(rows, lag)[key_of(printed)] == printed


def keys(rows: str) -> set[Key]:
    """Return what the rows are about that are printed."""
    return {
        key_of(activemq_ablation.row(each, memory, Outcome(1)))
        for each in activemq_ablation.combinations(rows)
        for memory in (AMPLE, SCARCE)
    }


def test_the_pages_have_each_row_that_is_printed_and_no_other() -> None:
    few, others, many, rules = tables_on("activemq-5.1-loss.md")
    assert few.keys() == keys("few")
    assert rules.keys() == keys("rules")
    assert many.keys() < keys("few"), "the largest runs are some of these"
    assert all(few[key] != line for key, line in others.items())
    [everything] = tables_on("activemq-5.1-combinations.md")
    assert everything.keys() == keys("all")
    assert all(everything[key] == line for key, line in few.items())


@pytest.mark.parametrize("rows", ["all", "few", "rules"])
def test_every_broker_of_a_table_can_be_made_and_no_two_are_the_same(rows: str) -> None:
    addresses = [each.address(SCARCE) for each in activemq_ablation.combinations(rows)]
    assert len({make(each).hello().name for each in addresses}) == len(addresses)


def test_a_rule_of_a_row_takes_the_place_of_what_all_have() -> None:
    keeps = Combination("repaired", "stop", ("D1",), ("leaving=keeps",)).address(SCARCE)
    assert "leaving=keeps" in keeps
    assert "leaving=clears" not in keeps
    assert "leaving=clears" in Combination("5.1", "stop", ()).address(SCARCE)


@pytest.mark.parametrize(
    "words",
    [
        ("--messages", "0"),
        ("--messages", "-1"),
        ("--messages", "many"),
        ("--lag", "-1"),
        ("--rows", "none"),
    ],
)
def test_what_does_not_fit_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_with(monkeypatch, *words)
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"error: argument {words[0]}: " in told.err.splitlines()[-1]


def test_one_message_is_delivered_by_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_with(monkeypatch, "--messages", "1", "--lag", "0", "--rows", "few")
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == 2 * len(activemq_ablation.FEW)
    assert all("| all |" in each for each in rows)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([1, 2, 3, 7], "1 to 3, 7"),
        ([0, 2, 4, 6], "0, 2, 4 and 1 more range"),
        ([0, 2, 4, 6, 7, 9], "0, 2, 4 and 2 more ranges"),
    ],
)
def test_numbers_are_told_as_ranges(numbers: list[int], text: str) -> None:
    assert activemq_ablation.ranges(numbers) == text
