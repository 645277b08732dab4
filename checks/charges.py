"""Charges: which of the traces that were found speaks for a fault of its own.

Breadth-first search finds a shortest trace for every guard that was ever false, and one mistake
makes many guards false: where messages are lost, everything that waits for them is late as well. A
requirement is charged only with a trace from which no step can be left out without everything being
well again; a trace whose shorter form already breaks another promise is that promise's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from brokerproof.checks.findings import Run, play
from brokerproof.checks.moves import Move
from brokerproof.checks.oracle import Oracle, Unfollowable
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.operations import Drain

Fresh = Callable[[], tuple[Candidate, Oracle]]
"""Returns a candidate just reset and an oracle for it."""


def charged(traces: Sequence[Run], fresh: Fresh) -> tuple[Run | None, str]:
    """Return the first trace of a requirement that is its own, or whose the traces are."""
    masked_by = ""
    for run in traces:
        shorter = first_failing_part(run.moves, fresh)
        if shorter is None or _requirement(shorter) == _requirement(run):
            return (run if shorter is None else shortest_form(shorter, fresh)), ""
        masked_by = _requirement(shorter)
    return None, masked_by


def first_failing_part(moves: Sequence[Move], fresh: Fresh) -> Run | None:
    """Return a failing run of the moves with one left out, if there is one."""
    for left_out in range(len(moves)):
        part = [*moves[:left_out], *moves[left_out + 1 :]]
        run = fails(part, fresh)
        if run is not None:
            return run
    return None


def fails(moves: Sequence[Move], fresh: Fresh) -> Run | None:
    """Return the run of some moves and a closing drain, if it breaks a promise."""
    candidate, oracle = fresh()
    try:
        run = play(candidate, oracle, [*moves, Drain()])
    except Unfollowable:
        return None
    return run if run.broken is not None else None


def shortest_form(run: Run, fresh: Fresh) -> Run:
    """Leave out steps as long as some promise stays broken: a local minimum."""
    while True:
        shorter = first_failing_part(run.moves, fresh)
        if shorter is None:
            return run
        run = shorter


def _requirement(run: Run) -> str:
    return "" if run.broken is None else run.broken.requirement
