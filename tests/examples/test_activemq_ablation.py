"""The prediction for ActiveMQ 5.1: the page has what is printed, and the brokers differ."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from brokerproof.reference import make
from examples import activemq_ablation
from examples.activemq_ablation import BROKERS, HEADER, Outcome, Scenario, row

PAGE = Path(activemq_ablation.__file__).parents[1] / "docs" / "findings" / "activemq-5.1-loss.md"


PREDICTED = "predicted, ample", "predicted, scarce"


def predictions_on(text: str) -> dict[str, list[str]]:
    """Return the predicted cells for each broker, those of all tables of a page in turn."""
    found: dict[str, list[str]] = {}
    titles: list[str] = []
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if set(PREDICTED) <= set(cells):
            titles = cells
        elif len(cells) == len(titles) and cells[0] != "---":
            found.setdefault(cells[0], []).extend(cells[titles.index(each)] for each in PREDICTED)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", BROKERS)
def test_a_row_of_the_page_is_what_is_predicted(name: str) -> None:
    told = predictions_on(PAGE.read_text(encoding="utf-8"))[name]
    assert row(name, 5000) == f"| {name} | {' | '.join(told)} |"


def test_the_page_has_the_prediction_of_each_broker() -> None:
    told = predictions_on(PAGE.read_text(encoding="utf-8"))
    assert {name for name, cells in told.items() if cells != ["-"] * 4} == set(BROKERS)


def test_every_broker_of_the_table_can_be_made_and_no_two_are_the_same() -> None:
    made = {
        make(f"activemq-cursor-5.1?{rules}".rstrip("?")).hello().name for rules in BROKERS.values()
    }
    assert len(made) == len(BROKERS)


SMALL = "memory=16384&depth=0&word=1"


def test_the_fix_alone_gives_a_consumer_that_stays_all_messages() -> None:
    scenario = Scenario(f"activemq-cursor-5.1?{SMALL}&read=document", 100)
    assert scenario.stays().taken == list(range(100))


def test_without_the_fix_a_consumer_that_stays_misses_every_second_message() -> None:
    scenario = Scenario(f"activemq-cursor-5.1?{SMALL}", 100)
    assert scenario.stays().missing[:3] == [15, 17, 19]


def test_an_outcome_counts_what_is_missing_inverted_and_double() -> None:
    outcome = Outcome(5, [0, 2, 1, 2])
    assert (outcome.missing, outcome.inversions, outcome.doubles) == ([3, 4], 1, 1)
    assert str(outcome) == "3 (1; 1)"
    assert str(Outcome(2, [0, 1])) == "2"


def test_one_message_comes_to_both_consumers_of_all_brokers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["activemq_ablation.py", "--messages", "1"])
    activemq_ablation.main()
    rows = capsys.readouterr().out.removeprefix(HEADER).splitlines()[1:]
    assert rows == [f"| {name} | 1 | 1 | 1 | 1 |" for name in BROKERS]
