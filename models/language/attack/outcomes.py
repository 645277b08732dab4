"""The outcomes of mutants, as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from brokerproof.models.language.core.systems import System
from brokerproof.models.language.core.traces import Step

MutantOutcome: TypeAlias = Literal[
    "reachable",
    "induction",
    "promise",
    "equivalent",
    "refinement",
    "requirement",
    "label",
    "stronger",
    "survivor",
]

SIZES = (2, 3)
"""The numbers of elements of each family that a search for a refutation tries."""


@dataclass(frozen=True)
class JudgedMutant:
    """A mutant's name, its outcome, the reasons for that, and the run or step that shows it.

    `by` names the invariants, proof obligations or requirements. For a surviving mutant it has the
    reasons why those of its place are equivalent, or is empty if none is known. A weaker guard that
    breaks nothing but its own label, which says no more than that the guard was there, is "label".
    """

    name: str
    outcome: MutantOutcome
    by: tuple[str, ...] = ()
    witness: tuple[Step, ...] = ()

    @property
    def place(self) -> str:
        """The action and its guard or symbol: the name up to its second colon."""
        return ": ".join(self.name.split(": ")[:2])


Refuter: TypeAlias = Callable[[System], tuple[str, ...]]
"""A function that returns the obligations of a refinement that fail with a replaced model."""


def lost_by(refuters: Sequence[Refuter], changed: System) -> tuple[str, ...]:
    """Return the obligations that fail in the first refinement that the replaced model breaks."""
    return next(filter(None, (refuter(changed) for refuter in refuters)), ())
