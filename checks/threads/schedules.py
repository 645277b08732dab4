"""Schedules without an exhaustive search: given ones, at random, with few switches.

The file owns three ways to lead a run. `led` follows recorded choices. `at_random` draws priorities
for the threads and changes a few of them along the way: if a mistake needs d orderings, n threads
and k steps find it with a probability of at least 1 / (n * k ** (d - 1)) in each run.
`with_few_switches` tries all schedules with no switch away from a ready thread, then all with one,
and so on; nothing is reduced, so the first failure has as few switches as any.

Sources: Burckhardt, Kothari, Musuvathi, Nagarakatte, A randomized scheduler with probabilistic
guarantees of finding bugs (ASPLOS 2010); Musuvathi, Qadeer, Iterative context bounding for
systematic testing of multithreaded programs (PLDI 2007).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.interleavings import Differs, overlap
from brokerproof.checks.threads.runs import STEPS_MAX, Failed, Run
from brokerproof.checks.threads.threads import Thread, Watcher

Chooser = Callable[[list[Thread], Thread | None], Thread]
"""Chooses the next of the ready threads, given also the one that made the last step."""


@dataclass(frozen=True)
class Tried:
    """What a search over schedules has found: how many were run, and the first that failed.

    `switches` is the last number allowed; all schedules with fewer were run. `overlapping` counts
    the runs in which a thread went on after another had run in between, `meeting` those in which
    two touched a watched attribute, one to change it. `complete` says whether all schedules within
    the bounds were run.
    """

    runs: int
    steps: int
    failed: Failed | None
    complete: bool = False
    switches: int = 0
    overlapping: int = 0
    meeting: int = 0


def led(
    case: Case[Shared], choices: Sequence[int], watcher: Watcher | None = None
) -> tuple[str, ...]:
    """Run a case by recorded choices, on to its end, and return its complaints."""
    failed = run_again(case, choices, watcher)
    return () if failed is None else failed.complaints


def run_again(
    case: Case[Shared], choices: Sequence[int], watcher: Watcher | None = None
) -> Failed | None:
    """Run a case by recorded choices, on to its end; return how it failed, if it did.

    Where the choices end or do not fit, the thread that made the last step goes on while it can.
    `watcher` is called for each access.
    """
    left = iter(choices)

    def choose(ready: list[Thread], last: Thread | None) -> Thread:
        wanted = next(left, None)
        return next((each for each in ready if each.number == wanted), _goes_on(ready, last))

    with case.scheduled(watcher), Run(case) as run:
        return run.failed(_lead(run, choose))


def at_random(
    case: Case[Shared],
    *,
    seed: int,
    runs: int,
    changes: int = 2,
    wanted: Callable[[Failed], bool] = lambda _: True,
    stopped: Callable[[], object] = lambda: False,
) -> Tried:
    """Run a case so many times by priorities drawn at random.

    `changes` is how often in a run the thread of the highest priority becomes the lowest. Ends with
    the first failure that is `wanted`, or when `stopped` says so.
    """
    draw = random.Random(seed)  # noqa: S311 (no secret)
    longest, steps, overlapping, meeting = 1, 0, 0, 0
    with case.scheduled():
        for number in range(1, runs + 1):
            priorities: dict[int, float] = {}
            at = {draw.randrange(longest) for _ in range(changes)}
            choose = _by_priority(draw, priorities, at)
            with Run(case) as run:
                choices = _lead(run, choose)
                steps += len(choices)
                longest = max(longest, len(choices))
                failed = run.failed(choices)
                overlapping += overlap(choices)
                meeting += bool(case.watches) and run.meets_itself()
            failed = failed if failed is not None and wanted(failed) else None
            if failed is not None or stopped():
                return Tried(number, steps, failed, overlapping=overlapping, meeting=meeting)
    return Tried(runs, steps, None, overlapping=overlapping, meeting=meeting)


def with_few_switches(
    case: Case[Shared],
    *,
    switches_max: int,
    runs_max: int,
    wanted: Callable[[Failed], bool] = lambda _: True,
    stopped: Callable[[], object] = lambda: False,
) -> Tried:
    """Run a case by every schedule with at most so many switches away from a ready thread.

    Ends with the first failure that is `wanted`, or when `stopped` says so. Raises
    `Differs` if the same choices do not make the same run.
    """
    runs = steps = overlapping = bound = 0
    with case.scheduled():
        for bound in range(switches_max + 1):
            to_try: list[tuple[int, ...]] = [()]
            while to_try:
                if runs == runs_max or stopped():
                    return Tried(runs, steps, None, False, bound, overlapping)
                prefix = to_try.pop()
                with Run(case) as run:
                    choices, others = _branching(run, prefix, bound)
                    failed = run.failed(choices)
                runs += 1
                steps += len(choices)
                overlapping += overlap(choices)
                to_try += others
                if failed is not None and wanted(failed):
                    return Tried(runs, steps, failed, False, bound, overlapping)
    return Tried(runs, steps, None, True, bound, overlapping)


def _lead(run: Run, choose: Chooser) -> list[int]:
    """Lead a run to its end, or for `STEPS_MAX` steps; return the choices."""
    choices: list[int] = []
    last = None
    while len(choices) < STEPS_MAX and (ready := run.ready()):
        last = choose(ready, last)
        choices.append(last.number)
        run.step(last)
    return choices


def _goes_on(ready: list[Thread], last: Thread | None) -> Thread:
    return last if last is not None and last in ready else ready[0]


def _by_priority(draw: random.Random, priorities: dict[int, float], at: set[int]) -> Chooser:
    made = 0

    def choose(ready: list[Thread], last: Thread | None) -> Thread:
        nonlocal made
        for each in ready:
            priorities.setdefault(each.number, draw.random())
        if made in at and last is not None:
            # Lower than all that were lowered before.
            priorities[last.number] = -1.0 - made
        made += 1
        return max(ready, key=lambda each: priorities[each.number])

    return choose


def _branching(
    run: Run, prefix: tuple[int, ...], bound: int
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Follow a prefix and go on without a switch; return the choices, and where else to go.

    Branches off the prefix itself are not returned: shorter prefixes returned them.
    """
    others: list[tuple[int, ...]] = []
    choices: list[int] = []
    spent = 0
    last: Thread | None = None
    while len(choices) < STEPS_MAX and (ready := run.ready()):
        goes_on = last is not None and last in ready
        default = _goes_on(ready, last)
        if len(choices) < len(prefix):
            chosen = next((each for each in ready if each.number == prefix[len(choices)]), None)
            if chosen is None:
                raise Differs
        else:
            chosen = default
            if not goes_on or spent < bound:
                others += [(*choices, each.number) for each in ready if each is not default]
        if goes_on and chosen is not last:
            spent += 1
        choices.append(chosen.number)
        last = chosen
        run.step(chosen)
    return choices, others
