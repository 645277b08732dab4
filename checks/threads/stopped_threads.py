"""Whether all others come to their end when one thread stops for ever, wherever it stops.

That is what *lock-free* means for those others. Each thread is stopped before each of its accesses,
after each number of accesses that the others have made by then; the others, which run one after the
other, have to end by themselves.

Source: Herlihy, Wait-free synchronization (ACM TOPLAS 1991), section 2, for the condition; that the
way there has at most one switch to the one that stops and one away from it is our restriction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Final

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.runs import STEPS_MAX, Run
from brokerproof.checks.threads.threads import Thread

STOPS_MAX: Final = 200
"""Of one thread while the others stand still: it may ask for ever for what only they can change."""


@dataclass(frozen=True)
class Stop:
    """Where a thread stopped, and who could not end without it.

    Attributes:
        thread: its name.
        after: how many accesses it had made.
        others_after: how many the others had made when it began.
        left_waiting: the names of those that never end; none, if all do.

    """

    thread: str
    after: int
    others_after: int
    left_waiting: tuple[str, ...]


@dataclass
class Stops:
    """All stops of a case.

    Attributes:
        tried: how many there were.
        longest: the most accesses that the others together made from a stop to their end.
        blocking: those without which not all the others end.

    """

    tried: int = 0
    longest: int = 0
    blocking: list[Stop] = field(default_factory=list)


def stop_everywhere(case: Case[Shared]) -> Stops:
    """Stop each of the threads that a case begins with at each of its accesses."""
    stops = Stops()
    with case.scheduled():
        with Run(case) as run:
            many = len(run.all)
        for number in range(many):
            for others_after in count():
                if not _stop(case, number, others_after, stops):
                    break
    return stops


def _stop(case: Case[Shared], number: int, others_after: int, stops: Stops) -> bool:
    """Stop a thread that begins when the others have made so many accesses; at each of its own.

    Returns whether the others make so many.
    """
    for after in range(1, STOPS_MAX + 1):
        with Run(case) as run:
            stopped = run.all[number]
            if _run_others(run, stopped, others_after) < others_after:
                return False
            for _ in range(after):
                if not stopped.is_over and not stopped.is_blocked():
                    run.step(stopped)
            # What waits for a lock has not stopped by itself: whoever holds it was made to wait.
            if stopped.is_over or stopped.is_blocked():
                return True
            stops.longest = max(stops.longest, _run_others(run, stopped, STEPS_MAX))
            stops.tried += 1
            waiting = tuple([t.name for t in run.all if t is not stopped and not t.is_over])
            if waiting:
                stops.blocking.append(Stop(stopped.name, after, others_after, waiting))
    return True


def _run_others(run: Run, stopped: Thread, steps_max: int) -> int:
    """Let all but one make so many accesses, one after the other; return how many they made."""
    last: Thread | None = None
    for made in range(steps_max):
        ready = [each for each in run.ready() if each is not stopped]
        if not ready:
            return made
        last = last if last is not None and last in ready else ready[0]
        run.step(last)
    return steps_max
