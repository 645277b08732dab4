"""The page of the scoreboard, its traces and its picture belong together; and how each is made."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from brokerproof.checks.gate.gate import Report
from brokerproof.checks.report.verdict_file import candidate_record
from brokerproof.checks.search import counterexamples
from brokerproof.checks.verdicts import Judgement, Outcome, Verdict
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.requirements import catalogue

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "docs" / "findings"
PAGE = (FINDINGS / "brokers.md").read_text(encoding="utf-8")


def loaded() -> ModuleType:
    """Return the script that writes the page."""
    path = ROOT / "benchmarks" / "brokers" / "scoreboard.py"
    spec = importlib.util.spec_from_file_location("scoreboard", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCOREBOARD = loaded()


def test_each_fault_on_the_page_has_a_trace_to_replay_and_no_trace_is_left_over() -> None:
    linked = re.findall(r"\*\*([a-z-]+)\*\* \(\w+\), \[\d+ steps\]\((traces/[^)]+\.json)\)", PAGE)
    for requirement, path in linked:
        found = counterexamples.read(FINDINGS / path)
        assert found.requirement == requirement
        assert found.candidate.startswith("private:")
        assert found.claims is not None
    there = {path.relative_to(FINDINGS).as_posix() for path in FINDINGS.glob("traces/*/*.json")}
    assert there == {path for _, path in linked}


def test_the_page_has_at_least_eight_brokers_and_each_fault_of_a_present_one_was_checked() -> None:
    sections = PAGE.split("\n## ")[1:]
    assert sum("\n`private:" in section for section in sections) >= 8
    unchecked = [each.splitlines()[0] for each in sections if "Not checked" in each]
    assert all("small sizes" in title for title in unchecked), unchecked


def test_the_picture_has_a_cell_for_each_broker_and_requirement() -> None:
    root = ET.fromstring((FINDINGS / "brokers.svg").read_text(encoding="utf-8"))  # noqa: S314
    names = {"svg": "http://www.w3.org/2000/svg"}
    titles = [each.text or "" for each in root.findall(".//svg:rect/svg:title", names)]
    columns = len(root.findall(".//svg:text[@transform]", names))
    cells = [title for title in titles if title.partition(",")[0] in catalogue()]
    assert columns == PAGE.count("\n`private:")
    assert len(cells) % columns == 0
    assert len(cells) > 20 * columns


@pytest.mark.parametrize(
    ("outcome", "claims", "state"),
    [
        (Outcome.KEPT, Capabilities(), "kept"),
        (Outcome.KEPT, Capabilities(purge_takes="everything"), "departure"),
        (Outcome.INCONCLUSIVE, Capabilities(), "undecided"),
        (Outcome.BROKEN, Capabilities(purge_takes="everything"), "fault"),
        (Outcome.NOT_CLAIMED, Capabilities(), "not claimed"),
    ],
)
def test_a_cell_says_what_the_verdict_says(
    outcome: Outcome, claims: Capabilities, state: str
) -> None:
    verdict = Verdict(catalogue()["purge-leaves-acquired"], outcome, 1)
    report = Report("private:some", "some", "1", 0)
    record = candidate_record(report, claims, (Judgement(verdict, "pass"),))
    seen = SCOREBOARD.Seen("private:some", "some", record)
    assert seen.states() == {"purge-leaves-acquired": state}
    advice = replace(record.verdicts[0], level=catalogue()["browser-once-by-priority"].level)
    if outcome is Outcome.BROKEN:
        assert SCOREBOARD._state(advice, set()) == "advice"
