"""What becomes of a mutant, and who says so: the values that the attack speaks in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from brokerproof.models.language.core.systems import System
from brokerproof.models.language.core.traces import Step

Fate: TypeAlias = Literal[
    "reachable", "induction", "equivalent", "refinement", "requirement", "survivor"
]

SIZES = (2, 3)
"""How many elements of each family a refutation is searched for with."""


@dataclass(frozen=True)
class JudgedMutant:
    """A mutant's name, what became of it, by what, and the run or the step that shows it.

    `by` names the invariants, the obligations or the requirements; for a survivor, the reason why
    it is harmless, and nothing where none is known.
    """

    name: str
    fate: Fate
    by: tuple[str, ...] = ()
    witness: tuple[Step, ...] = ()


Refuter: TypeAlias = Callable[[System], tuple[str, ...]]
"""Says which obligations of a refinement fail when one of its models is replaced by another."""
