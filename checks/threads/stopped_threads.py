"""Whether all other threads end when one thread stops for ever, wherever it stops.

That makes the others *lock-free*. Each thread is stopped before each of its accesses, after each
possible number of accesses by the others. The others, which run one after the other, must then end
by themselves.

Source: Herlihy, Wait-free synchronization (ACM TOPLAS 1991), section 2, for the condition. It is
our restriction that a run has at most one switch to the stopping thread and one away from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Final

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.runs import STEPS_MAX, Run
from brokerproof.checks.threads.threads import Thread

STOPS_MAX: Final = 200
"""The most stops of one thread: it may retry for ever a condition that only others can change."""


@dataclass(frozen=True)
class Stop:
    """Where a thread stopped, and which threads could not end without it.

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
    """Stop a thread at each of its accesses, after the others have made `others_after` accesses.

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
            # A thread that waits for a lock was not stopped here: the lock's holder was.
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
