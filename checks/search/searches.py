"""What a search of one scope found, whatever its grade, and how a breach is filed.

Owns the record that the grades of the exhaustive stage fill and the gate reads.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from brokerproof.checks.inside.step_conformance import Watch
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.oracle.possibilities import Fate
from brokerproof.checks.search.final_drain import named_by_census
from brokerproof.checks.search.findings import Exchange, Run, goes_on
from brokerproof.checks.search.scopes.scope import Scope
from brokerproof.spec.protocol.candidate import Candidate

Grade: TypeAlias = Literal["product", "sequences", "adaptive"]

HANGS = "a candidate that hangs"
"""Why a stage ends with the first operation that does not come back: each costs its limit."""

KEPT_PER_REQUIREMENT = 40
"""How many traces of a requirement are kept: the first may be another fault's (`root_cause.py`)."""


@dataclass
class Search:
    """What a search of one scope found, and how far it got.

    `pairs` are what the grade counts: pairs of states, sequences, or pairs of state and move.
    `cuts` are the different ways in which moves were cut off by a loss of power; of some of these
    (`cuts_unjudged`) nothing can be said, since what nobody told may have happened.
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
    actions: Counter[tuple[str, Fate]] = field(default_factory=Counter)
    broken: dict[str, list[Run]] = field(default_factory=dict)
    unfollowed: int = 0
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    given_up: int = 0
    never_offered: int = 0
    cuts: int = 0
    cuts_unjudged: int = 0

    def is_to_stop(self, interrupted: Callable[[], str], operations_max: int) -> bool:
        """Whether something found, somebody, or the budget ends the search; notes what it is."""
        ended = f"{operations_max} operations" if self.operations >= operations_max else ""
        self.stopped_by = self.stopped_by or interrupted() or ended
        return bool(self.stopped_by)

    def count_look(self, watch: Watch, exercised: Iterable[str]) -> None:
        """Add what a look inside has counted."""
        counts = self.exercised
        for requirement in exercised:
            counts[requirement] += 1
        if watch.taken:
            self.taken.update(watch.taken)
        self.given_up += watch.given_up

    def file(
        self,
        steps: Sequence[Exchange],
        told: Exchange,
        breaches: Iterable[Breach],
        candidate: Candidate,
    ) -> None:
        """Keep what was broken; the candidate is used up where a census is needed."""
        for breach in breaches:
            if breach.hangs:
                self.stopped_by = HANGS
            named = breach if goes_on(breach) else named_by_census(candidate, told.answer, breach)
            traces = self.broken.setdefault(named.requirement, [])
            if len(traces) < KEPT_PER_REQUIREMENT:
                traces.append(Run(tuple(steps), named))


YOUNG_MAX = 10_000
"""So many new objects of a search may be there before what nobody refers to is looked for.

Far more than Python's 700, of which most would still be in use; few enough for the processor's
caches, in which what has gone is quickly given back.
"""

OLDER_MAX = 20
"""After so many looks at new objects, those that were seen once before are looked at too."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let Python's collector look at what the body makes, rarely, and at nothing older.

    A search makes many small objects that stay, and looking at all of them again and again takes a
    third of its time.
    """
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    if not frozen:
        gc.freeze()
    gc.set_threshold(YOUNG_MAX, OLDER_MAX, before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not frozen:
            gc.unfreeze()


def may_go_on(
    steps: Sequence[Exchange], breaches: Sequence[Breach], candidate: Candidate, found: Search
) -> bool:
    """File what the last of `steps` broke, and say whether the run can be followed beyond it."""
    found.file(steps, steps[-1], breaches, candidate)
    return all(map(goes_on, breaches)) and not found.stopped_by
