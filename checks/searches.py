"""What a search of one scope found, whatever its grade, and how a breach is filed.

Owns the record that the grades of the exhaustive stage fill and the gate reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from brokerproof.checks.breaches import Breach
from brokerproof.checks.census import named_by_census
from brokerproof.checks.findings import Run, Told, goes_on
from brokerproof.checks.oracle import Oracle
from brokerproof.checks.scopes import Scope
from brokerproof.spec.candidate import Candidate

Grade: TypeAlias = Literal["product", "sequences", "adaptive"]

HANGS = "a candidate that hangs"
"""Why a stage ends with the first operation that does not come back: each costs its limit."""

KEPT_PER_REQUIREMENT = 40
"""How many traces of one requirement are kept: the first may be another fault's (`charges.py`)."""


@dataclass
class Search:
    """What a search of one scope found, and how far it got.

    `pairs` are what the grade counts: pairs of states, sequences, or pairs of state and move.
    """

    scope: Scope
    grade: Grade
    pairs: int = 0
    operations: int = 0
    depth: int = 0
    complete: bool = False
    stopped_by: str = ""
    exercised: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    broken: dict[str, list[Run]] = field(default_factory=dict)
    unfollowed: int = 0
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    given_up: int = 0
    never_offered: int = 0

    def count(self, oracle: Oracle) -> None:
        """Add what an oracle has counted since it was copied."""
        for requirement, times in oracle.exercised.items():
            self.exercised[requirement] += times
        for outcome, times in oracle.outcomes.items():
            self.outcomes[outcome] += times
        if oracle.watch is not None:
            self.taken.update(oracle.watch.taken)
            self.given_up += oracle.watch.given_up

    def file(
        self, steps: Sequence[Told], told: Told, breaches: Iterable[Breach], candidate: Candidate
    ) -> None:
        """Keep what was broken; the candidate is used up where a census is needed."""
        for breach in breaches:
            if breach.hangs:
                self.stopped_by = HANGS
            named = breach if goes_on(breach) else named_by_census(candidate, told.answer, breach)
            traces = self.broken.setdefault(named.requirement, [])
            if len(traces) < KEPT_PER_REQUIREMENT:
                traces.append(Run(tuple(steps), named))


def may_go_on(
    steps: Sequence[Told], breaches: Sequence[Breach], candidate: Candidate, found: Search
) -> bool:
    """File what the last of `steps` broke, and say whether the run can be followed beyond it."""
    found.file(steps, steps[-1], breaches, candidate)
    return all(map(goes_on, breaches)) and not found.stopped_by
