"""The page on CI says what is so: its options exist, its files are read, its action runs."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.commands.configuration import Settings, read_settings
from brokerproof.checks.commands.known_failures import read_known
from brokerproof.checks.report import verdict_file
from brokerproof.checks.report.folders import VERDICT
from brokerproof.checks.report.forms import FORMS
from brokerproof.spec.requirements.frozen import published_sets

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "in-ci.md").read_text(encoding="utf-8")
ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", page)


def known_options() -> set[str]:
    """Return every option of every command, and those of the pytest plugin."""
    plugin = (ROOT / "checks" / "commands" / "pytest_plugin.py").read_text(encoding="utf-8")
    options = {f"--brokerproof-{name}" for name in re.findall(r'\("([a-z]+)", (?:int|str)', plugin)}
    options |= set(re.findall(r'"(--brokerproof[a-z-]*)"', plugin)) | {"--brokerproof-budget"}
    for command in main.commands.values():
        for each in command.params:
            if isinstance(each, click.Option):
                options.update(each.opts)
    return options


def unknown_options(text: str) -> Iterator[str]:
    """Yield what looks like an option of ours and is none."""
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text):
        if option not in known_options():
            yield option


def test_every_option_on_the_page_exists() -> None:
    assert list(unknown_options(PAGE)) == []
    assert list(unknown_options(ACTION)) == ["--quiet"]  # pip's
    assert list(unknown_options("`--colour`, and --seed")) == ["--colour"]


def test_the_settings_on_the_page_are_read(tmp_path: Path) -> None:
    text, _ = blocks(PAGE, "toml")
    (tmp_path / "brokerproof.toml").write_text(text, encoding="utf-8")
    assert read_settings(tmp_path) != Settings()


def test_the_list_of_known_failures_on_the_page_is_read(tmp_path: Path) -> None:
    _, text = blocks(PAGE, "toml")
    (tmp_path / "known.toml").write_text(text, encoding="utf-8")
    [entry] = read_known(tmp_path / "known.toml", dt.date(2027, 3, 31)).entries
    assert entry.expires == dt.date(2027, 3, 31)


def test_every_file_of_a_report_is_on_the_page() -> None:
    for name in (VERDICT, *FORMS):
        assert f"| `{name}` |" in PAGE


def test_the_sets_that_are_named_are_published() -> None:
    named = set(re.findall(r"\b20\d\d\.\d+\b", PAGE + ACTION))
    assert named
    assert named <= set(published_sets())


def test_the_published_schema_is_that_of_the_file() -> None:
    path = ROOT / "docs" / "reference" / "verdict.schema.json"
    assert path.read_bytes() == verdict_file.schema(), (
        "brokerproof schema > docs/reference/verdict.schema.json"
    )


# The action.


def test_the_action_uses_the_inputs_that_it_declares() -> None:
    declared = re.search(r"(?ms)^inputs:\n(.*?)^outputs:", ACTION)
    assert declared is not None
    names = set(re.findall(r"(?m)^  (\w+):$", declared[1]))
    assert set(re.findall(r"inputs\.(\w+)", ACTION)) == names
    scripts = re.findall(r"(?m)^      run:(.*(?:\n {8}.*)*)", ACTION)
    assert len(scripts) == 2
    assert not any("${{" in script for script in scripts)


def ran(folder: Path, **inputs: str) -> tuple[int, str, str]:
    """Run the action's check as its host would; return status, words and outputs."""
    [script] = re.findall(r"(?m)^      run: \|\n((?: {8}.*\n)+)", ACTION)
    output = folder / "output"
    empty = dict.fromkeys(("CANDIDATES", "KNOWN", "EXPECT", "OPTIONS"), "")
    environment = {
        **os.environ,
        **empty,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "REQUIREMENTS": "latest",
        "REPORT": "report",
        "GITHUB_OUTPUT": str(output),
        **inputs,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", re.sub(r"(?m)^ {8}", "", script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, output.read_text("utf-8")


BOX = "tests.checks.broken_candidates:Box"
STACK = "tests.checks.broken_candidates:Stack"
LITTLE = "--operations 100 --examples 0 --only fifo-order"


@pytest.mark.parametrize(
    ("candidates", "options", "status"),
    [(BOX, LITTLE, 0), (f"{BOX} {STACK}", LITTLE, 1), ("$(touch hit)", LITTLE, 2)],
)
def test_the_action_checks_and_ends_as_the_gate_does(
    candidates: str, options: str, status: int, tmp_path: Path
) -> None:
    found, words, outputs = ran(tmp_path, CANDIDATES=candidates, OPTIONS=options)
    assert found == status, words
    assert outputs == f"status={status}\n"
    assert (tmp_path / "report" / "junit.xml").exists() == (status != 2)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize(("expected", "status"), [("fifo-order", 0), ("fifo-odrer", 2)])
def test_the_action_hands_on_what_is_expected(expected: str, status: int, tmp_path: Path) -> None:
    found, words, _ = ran(tmp_path, CANDIDATES=BOX, OPTIONS=LITTLE, EXPECT=expected)
    assert found == status, words
