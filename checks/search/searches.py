"""The findings of a search of one scope, in any grade, and how a breach is filed.

The grades of the exhaustive stage fill this record, and the gate reads it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from brokerproof.checks.inside.step_conformance import Watch
from brokerproof.checks.oracle.breaches import Breach
from brokerproof.checks.search.chains import Chains
from brokerproof.checks.search.coverage import Coverage, Reach
from brokerproof.checks.search.final_drain import named_by_final_drain
from brokerproof.checks.search.findings import Exchange, Run, goes_on
from brokerproof.checks.search.scopes.scope import Scope
from brokerproof.spec.protocol.candidate import Candidate

Grade: TypeAlias = Literal["product", "sequences", "adaptive"]

HANGS = "a candidate that hangs"
"""Why a stage ends with the first operation that hangs: each costs its time limit."""

ENDS_MAX = 3
"""A search ends when the candidate's process has ended so often: each start takes time."""

ENDS = f"a process that had to be started again {ENDS_MAX} times"

KEPT_PER_REQUIREMENT = 40
"""How many traces of a requirement are kept: the first may be another fault's (`root_cause.py`)."""


@dataclass
class Search(Coverage):
    """What a search of one scope found, and how far it got.

    `pairs` counts pairs of states, sequences, or pairs of state and move. `cuts` counts
    the different ways in which moves were cut off by a loss of power. `cuts_unjudged` counts those
    that cannot be judged, since untold events may have happened. After so many last moves as are
    `remembered`, every move was tried in each state. `moves` are those of a walk that were
    tried, and those met. No search by length ends for its number of operations before `depth_min`.
    `ended` counts how often the candidate's process ended.
    """

    scope: Scope
    grade: Grade
    pairs: int = 0
    operations: int = 0
    depth: int = 0
    complete: bool = False
    stopped_by: str = ""
    broken: dict[str, list[Run]] = field(default_factory=dict)
    unfollowed: int = 0
    never_offered: int = 0
    remembered: int = 0
    moves: tuple[int, int] = (0, 0)
    depth_min: int = 0
    cuts: int = 0
    cuts_unjudged: int = 0
    ended: int = 0
    chains: Chains = field(default_factory=Chains)

    def is_to_stop(self, interrupted: Callable[[], str], operations_max: int) -> bool:
        """Return whether a finding, interrupt or budget ends the search, and record which."""
        is_enough = self.operations >= operations_max and self.depth >= self.depth_min
        ended = f"{operations_max} operations" if is_enough else ""
        self.stopped_by = self.stopped_by or interrupted() or ended
        return bool(self.stopped_by)

    def reach(self) -> Reach:
        """Return how far the search came."""
        walks = self.grade == "adaptive"
        return Reach(
            whole=self.complete and not walks,
            depth=0 if walks else self.depth,
            transitions=self.moves[0],
            transitions_met=self.moves[1],
            chains=len(self.chains.covered),
            chains_met=len(self.chains.covered | self.chains.seen),
        )

    def count_look(self, watch: Watch, exercised: Iterable[str]) -> None:
        """Add the counts of a look inside."""
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
        """Keep the breaches; a final drain check leaves the candidate unusable."""
        for breach in breaches:
            if breach.hangs:
                self.stopped_by = HANGS
            self.ended += breach.ends
            if self.ended == ENDS_MAX:
                self.stopped_by = self.stopped_by or ENDS
            named = (
                breach if goes_on(breach) else named_by_final_drain(candidate, told.answer, breach)
            )
            traces = self.broken.setdefault(named.requirement, [])
            if len(traces) < KEPT_PER_REQUIREMENT:
                traces.append(Run(tuple(steps), named))


YOUNG_MAX = 3_000
"""The number of new objects before Python looks for unreachable ones.

It is far more than Python's default of 700: most of 700 new objects would still be in use. The
parts of a copied broker refer to each other, so only the collector frees them. It is few enough for
this memory to be in the processor's cache still when it is used again.
"""

OLDER_MAX = 20
"""After so many collections of new objects, Python also collects those that survived one."""


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let Python's garbage collector look rarely, and only at objects that the body makes.

    A search makes many small objects that stay. Collecting among all of them again and again takes
    a third of its time. Its garbage is collected at its end. What existed before stays out of the
    collector's sight for good: as soon as it were seen again, all of it would be looked through.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, OLDER_MAX, before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.collect()


def may_go_on(
    steps: Sequence[Exchange], breaches: Sequence[Breach], candidate: Candidate, found: Search
) -> bool:
    """File the breaches of the last of `steps`; return whether the run can be followed beyond."""
    found.file(steps, steps[-1], breaches, candidate)
    return all(map(goes_on, breaches)) and not found.stopped_by
