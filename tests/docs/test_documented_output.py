"""What the documentation shows is what the gate prints: each counterexample is found again."""

from __future__ import annotations

import functools
import re
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.subjects import open_subject
from brokerproof.spec.requirements import catalogue

ROOT = Path(__file__).parents[2]


EXAMPLE = "impatient_queue.py:make_broker"


@functools.cache
def judged(address: str, operations: int) -> Report:
    """Return what the gate says of a candidate."""
    with closing(open_subject(address)) as subject:
        return run_gate(subject, catalogue(), Budget(operations, examples=0), seed=0)


def shown(address: str, requirement: str, operations: int) -> str:
    """Return the counterexample that the gate prints for a candidate."""
    report = judged(address, operations)
    (found,) = [v.counterexample for v in report.verdicts if v.requirement.id == requirement]
    assert found is not None
    return text_of_counterexample(found)


def test_the_readme_shows_the_example_and_its_counterexample_as_they_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = CliRunner().invoke(main, ["init", "--example"])
    result = CliRunner().invoke(main, ["check", EXAMPLE, "--no-progress"])
    assert result.exit_code == 1
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"$ brokerproof init --example\n{written.output}" in readme
    assert result.output[result.output.index("release-rewinds (MUST)") :] in readme


def test_the_readme_shows_what_is_said_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = ["trace", "check", "examples/histories/overtaken.jsonl", "--engine", "alone"]
    result = CliRunner().invoke(main, [*words, "--report", str(tmp_path)])
    assert result.exit_code == 1
    begin = result.output.index("fifo-order (MUST)")
    end = result.output.index("\n", result.output.index("Not certified"))
    assert result.output[begin:end] in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.each_time(1)
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
        for line in shown(address, requirement, 500).splitlines()
        if re.match(r"\s+(\d+  |expected|seen)", line)
    ]
    page = (ROOT / "docs" / "explanation" / "qpid-pointers.md").read_text(encoding="utf-8")
    assert steps
    assert "\n".join(steps) in page


def test_a_page_that_shows_something_else_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(main, ["init", "--example"])
    printed = shown(EXAMPLE, "release-rewinds", 3_000)
    assert printed in (ROOT / "README.md").read_text(encoding="utf-8")
    assert printed.replace("m0", "m1") not in (ROOT / "README.md").read_text(encoding="utf-8")
