"""Schedules chosen otherwise than by search of all: given ones, at random, with few switches.

Owns three ways to lead a run. `led` follows choices that were kept. `at_random` draws priorities
for the threads and changes a few of them along the way: where a mistake needs d orderings, n
threads and k steps find it with a probability of at least 1 / (n * k ** (d - 1)) in each run.
`with_few_switches` tries all schedules with no switch away from a thread that could go on, then all
with one, and so on; nothing is reduced, so the first failure has as few switches as any.

Sources: Burckhardt, Kothari, Musuvathi, Nagarakatte, A randomized scheduler with probabilistic
guarantees of finding bugs (ASPLOS 2010); Musuvathi, Qadeer, Iterative context bounding for
systematic testing of multithreaded programs (PLDI 2007).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brokerproof.checks.concurrent.cases import Case, Shared
from brokerproof.checks.concurrent.runs import STEPS_MAX, Failed, Run
from brokerproof.checks.concurrent.threads import Thread, Watcher

Chooser = Callable[[list[Thread], Thread | None], Thread]
"""Chooses the next of the threads that are ready; gets also the one that made the last step."""


@dataclass(frozen=True)
class Tried:
    """What a search over schedules has found: how many were run, and the first that failed.

    `complete` is whether there are no others within what was asked for.
    """

    runs: int
    steps: int
    failed: Failed | None
    complete: bool = False


def led(
    case: Case[Shared], choices: Sequence[int], watcher: Watcher | None = None
) -> tuple[str, ...]:
    """Run a case by choices that were kept, on to its end, and return what is wrong.

    Where the choices end or do not fit, the thread that made the last step goes on while it can.
    `watcher` is told of each access.
    """
    left = iter(choices)

    def choose(ready: list[Thread], last: Thread | None) -> Thread:
        wanted = next(left, None)
        return next((each for each in ready if each.number == wanted), _goes_on(ready, last))

    with case.scheduled(watcher), Run(case) as run:
        _lead(run, choose)
        return run.complaints()


def at_random(case: Case[Shared], *, seed: int, runs: int, changes: int = 2) -> Tried:
    """Run a case so many times by priorities drawn at random; end with the first failure.

    `changes` is how often in a run the thread of the highest priority becomes the lowest.
    """
    draw = random.Random(seed)  # noqa: S311 (no secret)
    longest, steps = 1, 0
    with case.scheduled():
        for number in range(1, runs + 1):
            priorities: dict[int, float] = {}
            at = {draw.randrange(longest) for _ in range(changes)}
            choose = _by_priority(draw, priorities, at)
            with Run(case) as run:
                choices = _lead(run, choose)
                steps += len(choices)
                longest = max(longest, len(choices))
                complaints = run.complaints()
            if complaints:
                return Tried(number, steps, Failed(tuple(choices), complaints))
    return Tried(runs, steps, None)


def with_few_switches(case: Case[Shared], *, switches_max: int, runs_max: int) -> Tried:
    """Run a case by every schedule with at most so many switches away from a ready thread."""
    runs = steps = 0
    with case.scheduled():
        for bound in range(switches_max + 1):
            to_try: list[tuple[int, ...]] = [()]
            while to_try:
                if runs == runs_max:
                    return Tried(runs, steps, None)
                prefix = to_try.pop()
                with Run(case) as run:
                    choices, others = _branching(run, prefix, bound)
                    complaints = run.complaints()
                runs += 1
                steps += len(choices)
                to_try += others
                if complaints:
                    return Tried(runs, steps, Failed(tuple(choices), complaints))
    return Tried(runs, steps, None, complete=True)


def _lead(run: Run, choose: Chooser) -> list[int]:
    """Lead a run to its end, or so far; return the choices."""
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

    What branches off the prefix itself is not returned: it was when shorter ones were followed.
    """
    others: list[tuple[int, ...]] = []
    choices: list[int] = []
    spent = 0
    last: Thread | None = None
    while len(choices) < STEPS_MAX and (ready := run.ready()):
        goes_on = last is not None and last in ready
        default = _goes_on(ready, last)
        if len(choices) < len(prefix):
            chosen = run.all[prefix[len(choices)]]
            assert chosen in ready, "the same choices make the same run"
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
