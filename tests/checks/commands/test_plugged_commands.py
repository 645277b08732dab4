"""Commands that are loaded on use: missing packages, and Ctrl-C while they load."""

from __future__ import annotations

import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.commands.plugged_commands import INSTALL, PluggedGroup
from brokerproof.checks.verdicts import ExitStatus
from brokerproof.checks.workers import interrupts

PRESSED = """
import os, signal, sys
from importlib.abc import MetaPathFinder

module, number = sys.argv[1], signal.Signals[sys.argv[2]]
del sys.argv[1:3]

class Pressing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Pressing())
from brokerproof.__main__ import main
main()
"""
"""Runs the command line, with a signal when a module is imported."""

MISSING = """
import sys
sys.modules["pyarrow"] = None
from brokerproof.__main__ import main
main()
"""
"""Runs the command line where an extra is not installed."""


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("module", "command", "name"),
    [
        ("click", "check", "SIGINT"),
        ("rich.console", "check", "SIGTERM"),
        ("brokerproof.pipeline.commands.trace", "trace", "SIGTERM"),
        ("pyarrow", "trace", "SIGINT"),
    ],
)
def test_ctrl_c_while_commands_are_loaded_is_told_in_one_line(
    module: str, command: str, name: str
) -> None:
    ended = run(PRESSED, module, name, command, "check", "nothing")
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == "interrupted before anything was run (exit status 3)\n"


@click.group(cls=PluggedGroup)
def group() -> None:
    """Stands for the command line."""


@group.command()
def pressed() -> None:
    """Be interrupted without a handler."""
    signal.raise_signal(signal.SIGINT)
    raise AssertionError


@group.command()
def undisturbed() -> None:
    """Do nothing."""


def test_ctrl_c_that_a_command_leaves_to_others_is_told_in_one_line() -> None:
    # A shell that starts the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ended = CliRunner().invoke(group, ["pressed"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ended.exit_code, ended.output) == (3, "interrupted\n")
    assert CliRunner().invoke(group, ["undisturbed"]).exit_code == 0


def test_what_is_interrupted_says_nothing_of_anything() -> None:
    assert ExitStatus(interrupts.STATUS) is ExitStatus.INCONCLUSIVE


def test_what_is_not_installed_is_said_in_one_line_with_what_to_run() -> None:
    told = run(MISSING, "--help")
    assert told.returncode == 0
    for name in ("campaign", "trace"):
        [line] = [each for each in told.stdout.splitlines() if each.startswith(f"  {name}")]
        assert line.split(maxsplit=1)[1] == f"not installed; run: {INSTALL}"
    asked = run(MISSING, "trace", "check", "night.jsonl")
    assert asked.returncode == 2
    [line] = asked.stderr.splitlines()
    assert line == f"Error: trace: pyarrow is not installed; run: {INSTALL}"


def test_what_is_installed_says_what_it_does() -> None:
    told = CliRunner().invoke(main, ["--help"]).output
    assert "not installed" not in told
    assert "Record traffic" in told
