"""CrossHair confirms what the audit's windows keep to, and refutes it of windows with mistakes.

A mistake is some lines of `bit_array` replaced by others; the contracts are then held against that
copy, in one file with it. Each contract is refuted of at least one of them.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import NamedTuple

import pytest

from brokerproof.reference.activemq import bit_array
from tests.crosshair.test_contracts import (
    CONFIRMED,
    REFUTED,
    contracts_of,
    said_of,
    turned_round,
)

CONTRACTS = Path(__file__).with_name("audit_contracts.py")
LIMIT_S = 20
"""Seconds of the processor for one contract; the slowest takes 2."""


class Mistake(NamedTuple):
    """Lines, others in their place, and the contract that is refuted by that."""

    old: str
    new: str
    refuted: str


MISTAKES = {
    "a window that moves one word too far": Mistake(
        "word - self.size + 1)", "word - self.size + 2)", "the_window_moves_no_further_than_it_must"
    ),
    "a window that keeps what falls out of it": Mistake(
        "self._bits >>= landing.dropped * self.word_bits", "pass", "inside_the_window_it_is_a_set"
    ),
    "a probe of the window as it was": Mistake(
        "bits = self._bits >> landing.dropped * self.word_bits",
        "bits = self._bits",
        "a_probe_says_what_set_says",
    ),
    "later releases that guess as 5.1.0": Mistake(
        """return self.rules == "5.1"
        self._move(landing)""",
        """return True
        self._move(landing)""",
        "below_the_window_each_release_guesses",
    ),
    "an unset that sets": Mistake(
        "self._bits | bit if flag else self._bits & ~bit",
        "self._bits | bit",
        "inside_the_window_it_is_a_set",
    ),
    "division downwards": Mistake(
        "return number // by if number >= 0 else -(-number // by)",
        "return number // by",
        "division_is_towards_zero",
    ),
    "32 bits without a sign": Mistake(
        "return (number + 2**31) % 2**32 - 2**31",
        "return number % 2**32",
        "a_number_of_32_bits_is_kept",
    ),
}


def with_mistake(mistake: Mistake, into: Path) -> Path:
    """Write a file with the window as it would be by mistake, and the contract."""
    source = inspect.getsource(bit_array)
    assert source.count(mistake.old) == 1, "these lines are not there once"
    window = ast.parse(source.replace(mistake.old, mistake.new))
    contracts = ast.parse(CONTRACTS.read_text(encoding="utf-8"))
    others = {each.name for each in contracts_of(contracts)} - {mistake.refuted}
    for node in contracts.body:
        is_window = isinstance(node, ast.ImportFrom) and node.module in {
            "__future__",
            bit_array.__name__,
        }
        is_other = isinstance(node, ast.FunctionDef) and node.name in others
        if not is_window and not is_other:
            window.body.append(node)
    path = into / "contract_of_a_mistake.py"
    path.write_text(ast.unparse(window), encoding="utf-8")
    return path


@pytest.mark.thorough
def test_every_contract_of_the_window_is_confirmed_over_all_paths() -> None:
    said = said_of(CONTRACTS, LIMIT_S)
    assert len(said) == 6
    assert {name: what for name, what in said.items() if what != CONFIRMED} == {}


def test_every_contract_of_the_window_is_refuted_when_turned_round(tmp_path: Path) -> None:
    said = said_of(turned_round(CONTRACTS, tmp_path), LIMIT_S)
    assert {name: what for name, what in said.items() if not what.startswith(REFUTED)} == {}


@pytest.mark.each_time(3)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_window_is_refuted(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    said = said_of(with_mistake(mistake, tmp_path), LIMIT_S)
    assert said[mistake.refuted].startswith(REFUTED)


def test_every_contract_is_refuted_of_some_mistake() -> None:
    contracts = contracts_of(ast.parse(CONTRACTS.read_text(encoding="utf-8")))
    assert {mistake.refuted for mistake in MISTAKES.values()} == {each.name for each in contracts}
