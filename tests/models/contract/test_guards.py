"""Each labelled guard of the contract forbids what it always forbade.

`forbidden_steps.json` remembers runs that end before a forbidden step, and the guards to blame. A
guard that is deleted or weakened fails the test that has its action and its label as id.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from brokerproof.models.language.core.model import trace
from tests.models.contract.forbidden_steps import (
    CONTRACTS,
    Forbidden,
    after,
    blamed,
    changed,
    guard_changes,
    made,
    reading,
    remembered,
)

if TYPE_CHECKING:
    from brokerproof.models.language.attack.mutants import Mutant

GUARDS = [
    (contract, action.name, label)
    for contract, model in CONTRACTS.items()
    for action in trace(model).actions
    for label in sorted({guard.label for guard in action.guards} - {""})
]
"""Contract, action and label of each labelled guard, as the models have them now."""


def runs_of(contract: str, action: str, label: str) -> list[Forbidden]:
    """Return the remembered runs that end before a step that the guard forbids."""
    return [
        each
        for each in remembered()[contract].forbidden
        if (each.steps[-1][0], each.guard) == (action, label)
    ]


@cache
def changes(contract: str) -> dict[str, Mutant]:
    """Return the changes of labelled guards by name."""
    return {each.name: each for each in guard_changes(trace(CONTRACTS[contract]))}


@pytest.mark.parametrize(("contract", "action", "label"), GUARDS)
def test_a_guard_forbids_what_it_forbade(contract: str, action: str, label: str) -> None:
    runs = runs_of(contract, action, label)
    assert runs, "python -m tests.models.contract.forbidden_steps makes the file anew"
    read = reading(contract)
    for run in runs:
        frame = remembered()[contract].frames[run.frame]
        world = after(read, frame, run.steps[:-1])
        assert world is not None
        assert label in blamed(read, frame, world, run.steps[-1]), run


@pytest.mark.parametrize(("contract", "action", "label"), GUARDS)
def test_a_guard_that_is_dropped_or_weakened_does_not(
    contract: str, action: str, label: str
) -> None:
    shown = 0
    for run in runs_of(contract, action, label):
        frame = remembered()[contract].frames[run.frame]
        world = after(reading(contract), frame, run.steps[:-1])
        assert world is not None
        for name in run.changes:
            other = changed(reading(contract), changes(contract)[name])
            assert label not in blamed(other, frame, world, run.steps[-1]), name
            shown += name == f"{action}: {label}: dropped"
    assert shown >= 1


def test_no_remembered_guard_is_gone() -> None:
    known = {
        (contract, each.steps[-1][0], each.guard)
        for contract, memory in remembered().items()
        for each in memory.forbidden
    }
    assert known == {*GUARDS}


@pytest.mark.thorough
def test_the_file_is_as_it_is_made() -> None:
    assert remembered()["core"] == made("core")
