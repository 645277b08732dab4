"""Histories written from the page alone: correct ones are not charged, and faults are found.

The simulator shares no code with the rules, and none of their assumptions. Thousands more are
judged with `make thorough`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.pipeline.planted import Begun
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.readers.conversion import convert
from brokerproof.pipeline.results import Judgement
from tests.pipeline.page_histories import FAULTS, MISSED, Broker

SEEDS_MAX = 400
"""The largest number of histories in which a planted fault is looked for."""

MANY = 200

RECORDS = 5500
"""The length of a history in which a fault is rare."""


def judged(brokers: Sequence[Broker], folder: Path) -> Judgement:
    """Write what brokers did as one history of several runs, and judge that."""
    folder.mkdir(exist_ok=True)
    path = folder / "page.jsonl"
    lines = [json.dumps(line) for broker in brokers for line in broker.play()]
    path.write_text("\n".join(['{"brokerproof_history": 1}', *lines]) + "\n", encoding="utf-8")
    read = convert([path], None, folder / "read", lambda *_: None)
    assert read.account.rejected == 0
    return judged_alone(pa.concat_tables([pq.read_table(part) for part in read.parts]))


def charged(seeds: range, folder: Path) -> list[tuple[str, str, str]]:
    """Return what correct brokers are charged with: the run, the rule and the message."""
    judgement = judged([Broker(seed) for seed in seeds], folder)
    assert judgement.aside.num_rows == 0
    rows = judgement.violations.to_pylist()
    return [(row["run"], row["rule"], row["message"]) for row in rows]


def test_a_correct_broker_is_not_charged(tmp_path: Path) -> None:
    assert charged(range(300), tmp_path) == []


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(1000, 11_000, 1000))
def test_no_correct_broker_of_ten_thousand_is_charged(first: int, tmp_path: Path) -> None:
    assert charged(range(first, first + 1000), tmp_path) == []


def test_the_histories_have_all_that_a_recording_may_leave_open(tmp_path: Path) -> None:
    coverage = judged([Broker(seed) for seed in range(MANY, 2 * MANY)], tmp_path).coverage
    causes = {cause for of_cause in coverage.excused.values() for cause in of_cause}
    assert len(causes) == 11
    assert 0 < coverage.unknown_settlements < coverage.settlements


@pytest.mark.each_time(11)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_rare_fault_in_one_hot_queue_is_found_under_its_name(fault: str, tmp_path: Path) -> None:
    """The same in a million records: `benchmarks/pipeline/planted.py`."""
    found = Begun.of(fault, 500, tmp_path).planted(fault, RECORDS, tmp_path)
    assert found.is_as_said, found
    assert 0 < found.planted < 40


def test_a_fault_that_is_not_done_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "faulty", lambda *_: False)
    found = Begun.of("loses", 500, tmp_path).planted("loses", RECORDS, tmp_path)
    assert not found.by
    assert not found.is_as_said


def test_the_page_has_every_fault_found_or_missed() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "history-rules.md").read_text(
        "utf-8"
    )
    rows = re.findall(r"^\| `([\w-]+)` \| `([\w-]+)` \| (found|missed) \|", page, re.MULTILINE)
    said = ["missed" if fault in MISSED else "found" for fault in FAULTS]
    assert rows == [(*each, word) for each, word in zip(FAULTS.items(), said, strict=True)]
    assert len(rows) >= 30


@pytest.mark.each_time(11)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_under_its_name(fault: str, tmp_path: Path) -> None:
    for first in range(0, SEEDS_MAX, MANY // 4):
        brokers = [Broker(seed, fault) for seed in range(first, first + MANY // 4)]
        rows = judged(brokers, tmp_path / str(first)).violations.to_pylist()
        planted = {broker.run for broker in brokers if broker.planted}
        assert {row["run"] for row in rows} <= planted
        if FAULTS[fault] in {row["requirement"] for row in rows}:
            assert fault not in MISSED
            return
    assert fault in MISSED, f"{fault} was not found in {SEEDS_MAX} histories"
