"""What the documentation shows is what the gate prints: each counterexample is found again."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from brokerproof.checks.counterexamples import text_of_counterexample
from brokerproof.checks.gate import Budget, run_gate
from brokerproof.checks.subjects import open_subject
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.explanations import Violation, counterexample_of
from brokerproof.pipeline.sources import read
from brokerproof.pipeline.tables import batch_of
from brokerproof.spec.histories import Record
from brokerproof.spec.requirements import catalogue

ROOT = Path(__file__).parents[2]


def shown(address: str, requirement: str, operations: int) -> str:
    """Return the counterexample that the gate prints for a candidate."""
    subject = open_subject(address)
    try:
        report = run_gate(subject, catalogue(), Budget(operations, examples=0), seed=0)
    finally:
        subject.close()
    (found,) = [v.counterexample for v in report.verdicts if v.requirement.id == requirement]
    assert found is not None
    return text_of_counterexample(found)


def test_the_readme_shows_the_counterexample_as_it_prints() -> None:
    address = f"{ROOT}/examples/impatient_queue.py:make_broker"
    printed = shown(address, "release-rewinds", 3_000)
    assert printed in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_what_is_said_of_the_recording() -> None:
    judgement = judged_alone(the_recording())
    [row] = judgement.violations.to_pylist()
    printed = text_of_counterexample(counterexample_of(Violation.of(row), "overtaken.jsonl"))
    shown_there, _, certificate = printed.rpartition("\n")
    assert shown_there in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "not certified" in certificate


def the_recording() -> pa.Table:
    """Return the example of a recording, as the README has it judged."""
    path = ROOT / "examples" / "histories" / "overtaken.jsonl"
    records = [each for each in read(path) if isinstance(each, Record)]
    return pa.Table.from_batches([batch_of(records, range(2, len(records) + 2))])


@pytest.mark.parametrize(
    ("address", "requirement"),
    [
        ("reference:qpid-push?pointer=inclusive", "browser-once"),
        ("reference:qpid-push?pointer=inclusive", "browser-never-rewound"),
        ("reference:qpid-push", "browser-once-by-priority"),
    ],
)
def test_the_page_on_pointers_shows_the_steps_as_they_print(address: str, requirement: str) -> None:
    steps = [
        line
        for line in shown(address, requirement, 1_500).splitlines()
        if re.match(r"\s+(\d+  |expected|seen)", line)
    ]
    page = (ROOT / "docs" / "qpid-pointers.md").read_text(encoding="utf-8")
    assert steps
    assert "\n".join(steps) in page


def test_a_page_that_shows_something_else_is_noticed() -> None:
    printed = shown("reference:qpid-push", "browser-once-by-priority", 1_500)
    assert printed.replace("m0", "m1") not in (ROOT / "docs" / "qpid-pointers.md").read_text()
