"""CrossHair confirms every contract over all paths, and none of them is idle.

`crosshair check` ends with status 0 even if it confirms nothing, and it confirms a contract that no
argument meets. So its output is read contract by contract, and each contract must be refuted once
its last assertion is turned round.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CONTRACTS = FOLDER / "contracts.py"
WRONG = FOLDER / "wrong_contracts.py"
CONTRACT_S_MAX = 20
"""Seconds of the processor for one contract; the slowest takes 2."""
WRONG_S_MAX = 2

CONFIRMED = "info: Confirmed over all paths."
NOT_CONFIRMED = "info: Not confirmed."
REFUTED = "error: "


def contracts_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """Return the contracts of a file; what helps them begins with an underscore."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if not node.name.startswith("_")]


def said_of(path: Path, limit_s: int) -> dict[str, str]:
    """Return what CrossHair says of each contract of a file; nothing where it says nothing."""
    command = [sys.executable, "-m", "crosshair", "check", "--report_all"]
    options = [f"--per_condition_timeout={limit_s}", "--analysis_kind=asserts", str(path)]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert run.returncode in {0, 1}, run.stderr
    places = contracts_of(ast.parse(path.read_text(encoding="utf-8")))
    said = {each.name: "" for each in places}
    for line in run.stdout.splitlines():
        found = re.fullmatch(rf"{re.escape(str(path))}:(\d+): (.*)", line)
        assert found, line
        at = int(found[1])
        [name] = [each.name for each in places if each.lineno <= at <= (each.end_lineno or 0)]
        said[name] += found[2]
    return said


def turned_round(path: Path, into: Path) -> Path:
    """Write a copy of a file in which the last assertion of each contract is negated."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for contract in contracts_of(tree):
        asserted = [each for each in ast.walk(contract) if isinstance(each, ast.Assert)]
        last = max(asserted, key=lambda each: each.lineno)
        last.test = ast.UnaryOp(ast.Not(), last.test)
    copy = into / path.name
    copy.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    return copy


@functools.cache
def said_of_the_wrong_ones() -> dict[str, str]:
    """Return what CrossHair says of the contracts that must not pass."""
    return said_of(WRONG, WRONG_S_MAX)


def test_every_contract_is_confirmed_over_all_paths() -> None:
    said = said_of(CONTRACTS, CONTRACT_S_MAX)
    assert len(said) >= 8
    assert {name: what for name, what in said.items() if what != CONFIRMED} == {}


def test_every_contract_is_refuted_when_turned_round(tmp_path: Path) -> None:
    said = said_of(turned_round(CONTRACTS, tmp_path), CONTRACT_S_MAX)
    assert {name: what for name, what in said.items() if not what.startswith(REFUTED)} == {}


@pytest.mark.parametrize(
    "name",
    [
        "the_highest_level_is_never_used",
        "clamped_and_centred_levels_are_the_same",
        "numbers_are_equal_to_what_follows",
        "a_window_is_always_open",
    ],
)
def test_a_contract_that_is_false_is_refuted(name: str) -> None:
    assert said_of_the_wrong_ones()[name].startswith(REFUTED)


def test_a_contract_without_end_is_not_confirmed() -> None:
    assert said_of_the_wrong_ones()["counting_ends_where_it_should"] == NOT_CONFIRMED


def test_a_vacuous_contract_is_found_out_by_turning_it_round(tmp_path: Path) -> None:
    name = "nothing_is_said_of_anybody"
    assert said_of_the_wrong_ones()[name] == CONFIRMED
    assert said_of(turned_round(WRONG, tmp_path), WRONG_S_MAX)[name] == CONFIRMED
