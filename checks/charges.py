"""Charges: which of the traces that were found speaks for a fault of its own.

Breadth-first search finds a shortest trace for every guard that was ever false, and one mistake
makes several guards false that say nearly the same: a message that is stuck is late for every
consumer that waits for it, whatever the promise to each is called. Among promises of such a kind a
requirement is charged only with a trace from which no step can be left out without all of its kind
being well; a trace whose shorter form already breaks another of its kind is that one's. Promises of
different kinds never stand in for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from brokerproof.checks.attribution import KINDS
from brokerproof.checks.breaches import Unfollowable
from brokerproof.checks.findings import Run, play
from brokerproof.checks.moves import Move
from brokerproof.checks.oracle import Oracle
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.operations import Drain

Fresh = Callable[[], tuple[Candidate, Oracle]]
"""Returns a candidate just reset and an oracle for it."""

TRIES = 10
"""How often what a nondeterministic candidate broke is tried again."""

NOT_REPRODUCED = "a copy of the candidate that does not behave like the candidate"


def charged(traces: Sequence[Run], fresh: Fresh) -> tuple[Run | None, str]:
    """Return the first trace of a requirement that is its own, or what is behind them all."""
    behind = ""
    for run in traces:
        requirement = requirement_of(run)
        if run.broken is not None and run.broken.hangs:
            return run, ""
        again = fails(run.moves, fresh, requirement)
        if again is None or requirement_of(again) != requirement:
            behind = behind or NOT_REPRODUCED
            continue
        other = _breaks_another_of_its_kind(again, fresh)
        if other is None:
            return shortest_form(again, fresh), ""
        behind = other
    return None, behind


def seen_again(run: Run, fresh: Fresh) -> tuple[int, int]:
    """Return how often the same moves broke the same promise again, and of how many tries."""
    requirement = requirement_of(run)
    again = [fails(run.moves, fresh, requirement) for _ in range(TRIES)]
    times = sum(each is not None and requirement_of(each) == requirement for each in again)
    return times, TRIES


def _breaks_another_of_its_kind(run: Run, fresh: Fresh) -> str | None:
    requirement = requirement_of(run)
    kin = frozenset().union(*(kind for kind in KINDS if requirement in kind))
    for part in _parts(run.moves):
        shorter = fails(part, fresh, requirement)
        if shorter is not None and requirement_of(shorter) in kin - {requirement}:
            return requirement_of(shorter)
    return None


def _parts(moves: Sequence[Move]) -> Iterator[Sequence[Move]]:
    for left_out in range(len(moves)):
        yield [*moves[:left_out], *moves[left_out + 1 :]]


def fails(moves: Sequence[Move], fresh: Fresh, requirement: str) -> Run | None:
    """Return the run of moves and a closing drain, if it breaks that promise or ends earlier."""
    candidate, oracle = fresh()
    try:
        run = play(candidate, oracle, [*moves, Drain()], stop_at=requirement)
    except Unfollowable:
        return None
    return run if run.broken is not None else None


def shortest_form(run: Run, fresh: Fresh) -> Run:
    """Leave out steps as long as the same promise stays broken: a local minimum.

    Halves are tried before quarters and so on (delta debugging, Zeller and Hildebrandt 2002),
    single steps until none can go.
    """
    requirement = requirement_of(run)
    size = max(1, len(run.moves) // 2)
    while True:
        shorter = _without_some(run, size, requirement, fresh)
        if shorter is not None:
            run = shorter
        elif size == 1:
            return run
        size = min(size, max(1, len(run.moves) // 2)) if shorter else size // 2


def _without_some(run: Run, size: int, requirement: str, fresh: Fresh) -> Run | None:
    """Return a run without some `size` steps in a row that breaks the same promise."""
    for first in range(0, len(run.moves), size):
        part = [*run.moves[:first], *run.moves[first + size :]]
        found = fails(part, fresh, requirement)
        same = found is not None and requirement_of(found) == requirement
        if found is not None and same and len(found.steps) < len(run.steps):
            return found
    return None


def requirement_of(run: Run) -> str:
    """Return the id of the requirement that a failing run breaks."""
    return "" if run.broken is None else run.broken.requirement
