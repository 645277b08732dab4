"""The durability stage: it kills a broker on the wire and checks what the broker still has.

A candidate in this process or behind a driver crashes at no cost, so the search covers its crashes
(the scopes about crashes). Here each crash costs seconds, so crashes are few, counted, and made
only where a message or queue is at risk (`crash_examples.py`). A finding is repeated before it is
reported, and shortened within a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from brokerproof.checks.conversation import CannotStart
from brokerproof.checks.crash.crash_examples import drawn_example, planned_examples, together
from brokerproof.checks.crash.crashable import Crashable
from brokerproof.checks.gate.gate_run import GateRun, Stage
from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.counterexamples import Certificate, Counterexample, counterexample_of
from brokerproof.checks.search.coverage import Examples
from brokerproof.checks.search.final_drain import named_by_final_drain
from brokerproof.checks.search.findings import Exchange, Run, goes_on, step
from brokerproof.checks.search.root_cause import fails, requirement_of, shortest_form
from brokerproof.checks.search.searches import HANGS
from brokerproof.checks.trace.moves import Move
from brokerproof.spec.protocol.candidate import Candidate

DRAWN_MAX = 6
DRAWN_SHARE = 68
"""Large examples, of two crashes each: one for each so many examples that are requested."""

TRIES = 3
"""How often a finding is repeated."""

SHORTENING_CRASHES_MAX = 30
"""Crashes for shortening one finding; at the bound the trace stays as long as it is."""

KILLED = "its process was killed, not the machine"
NO_RESET = "the broker could not be reset any more"

MovesFor: TypeAlias = Callable[[Oracle], Iterable[Move]]
"""Returns the moves of an example, which may depend on the results of earlier moves."""


@dataclass
class Durability(Examples):
    """What the stage did and found."""

    crashes: int = 0


def run_durability(run: GateRun) -> None:
    """Kill a broker that can be killed; keep the breaches that no earlier stage found."""
    crashable = run.subject.crashable
    if crashable is None or run.clock.reason():
        return
    found, before = Durability(), crashable.crashes
    try:
        new = _try_examples(run, found, crashable)
        _confirm(run, new, crashable)
    finally:
        run.report.stages.append(_stage(run, found, crashable.crashes - before - found.crashes))


def _try_examples(run: GateRun, found: Durability, crashable: Crashable) -> dict[str, Run]:
    """Play the examples; keep the new breaches unconfirmed, and return them."""
    before = crashable.crashes
    try:
        for at_stake, moves_for in _examples(run, found):
            run.progress(f"durability: {at_stake}", found.operations)
            _play(run, found, moves_for)
            if found.stopped_by:
                break
    finally:
        found.crashes = crashable.crashes - before
        run.clock.hangs += found.stopped_by == HANGS
        run.evidence.add(found)
        new = {key: seen for key, seen in found.broken.items() if key not in run.evidence.broken}
        for seen in new.values():
            run.evidence.keep(_counterexample(run, seen, "it was not tried again"))
    return new


def _examples(run: GateRun, found: Durability) -> Iterator[tuple[str, MovesFor]]:
    """Yield the examples, each with the effect that it tests.

    The small ones are played together, with two crashes in all. Each is played alone, for a short
    trace, only if that breaks something or cannot be followed.
    """
    claims = run.subject.hello.capabilities
    planned = planned_examples(claims)
    if len(planned) > 1:
        everything = together(planned)
        yield everything.at_stake, everything.played
        if not found.broken and not found.unfollowed:
            planned = ()
    at_once, found.broken, found.unfollowed = found.broken, {}, 0
    try:
        for each in planned:
            yield each.at_stake, each.played
    finally:
        found.broken = at_once | found.broken
    for number in range(min(DRAWN_MAX, -(-run.budget.examples // DRAWN_SHARE))):
        seed = run.report.seed * DRAWN_MAX + number
        yield f"drawn example {number + 1}", partial(drawn_example, claims, seed)


def _play(run: GateRun, found: Durability, moves_for: MovesFor) -> None:
    """Play an example on a broker right after a reset, and file its breaches."""
    try:
        candidate, oracle = run.subject.fresh()
    except CannotStart as error:
        found.broken.setdefault("protocol", Run((), Breach("protocol", str(error))))
        found.stopped_by = "a reset that failed"
        return
    try:
        _play_on(candidate, oracle, moves_for(oracle), found)
    except Unfollowable:
        found.unfollowed += 1
    found.count(oracle)
    found.stopped_by = found.stopped_by or run.clock.reason()


def _play_on(
    candidate: Candidate, oracle: Oracle, moves: Iterable[Move], found: Durability
) -> None:
    steps: list[Exchange] = []
    for move in moves:
        told, breaches = step(candidate, oracle, move, steps)
        if told is None:
            continue
        steps.append(told)
        found.operations += 1
        for breach in breaches:
            if goes_on(breach):
                found.broken.setdefault(breach.requirement, Run(tuple(steps), breach))
                continue
            found.stopped_by = HANGS if breach.hangs else found.stopped_by
            named = named_by_final_drain(candidate, told.answer, breach)
            found.broken.setdefault(named.requirement, Run(tuple(steps), named))
            return


def _confirm(run: GateRun, new: dict[str, Run], crashable: Crashable) -> None:
    """Repeat the findings while time is left and the broker can be reset."""
    for requirement, seen in new.items():
        if run.clock.reason() or not seen.steps:
            return
        run.progress(f"durability: shortening {requirement}", 0)
        try:
            found = _confirmed(run, crashable, seen)
        except CannotStart as error:
            run.evidence.keep(
                _counterexample(run, Run((), Breach("protocol", str(error))), NO_RESET)
            )
            return
        if run.may_be_late(seen, found.again):
            del run.evidence.broken[requirement]
        else:
            run.evidence.broken[requirement] = found


def _confirmed(run: GateRun, crashable: Crashable, seen: Run) -> Counterexample:
    """Return a finding after repeating it; one that always recurs is shortened."""
    requirement = requirement_of(seen)
    tries = [fails(seen.moves, run.subject.fresh, requirement) for _ in range(TRIES)]
    again = [each for each in tries if each is not None and requirement_of(each) == requirement]
    if len(again) < TRIES:
        reason = "the broker answers differently to the same operations"
        return _counterexample(run, seen, reason, (len(again), TRIES))

    def fresh() -> tuple[Candidate, Oracle]:
        run.progress(f"durability: shortening {requirement}", 0)
        return run.subject.fresh()

    bound = crashable.crashes + SHORTENING_CRASHES_MAX
    with crashable.at_most(SHORTENING_CRASHES_MAX):
        shortest = shortest_form(again[0], fresh)
    reason = "steps were left out one by one; crashes take too long to search all shorter traces"
    if crashable.crashes >= bound:
        reason = f"shortening ended with {SHORTENING_CRASHES_MAX} crashes"
    return _counterexample(run, shortest, reason)


def _counterexample(
    run: GateRun, seen: Run, reason: str, again: tuple[int, int] | None = None
) -> Counterexample:
    certificate = Certificate(grade="not certified", reason=reason)
    return counterexample_of(run.subject.address, seen, certificate, run.report.seed, again)


def _stage(run: GateRun, found: Durability, confirming: int) -> Stage:
    did = (
        f"{found.examples} examples, {found.operations} operations, "
        f"crashes: {found.crashes} ({KILLED}), seed {run.report.seed}"
    )
    if confirming:
        did += f", to confirm and shorten what was found: {confirming} more"
    if found.unfollowed:
        did += f", {found.unfollowed} examples not judged to their end (outcomes unobserved)"
    if found.stopped_by:
        did += f", stopped by {found.stopped_by}"
    return Stage("durability", did, not (found.stopped_by or found.unfollowed), found.operations)
