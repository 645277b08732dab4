"""Replay: a counterexample run again, on any candidate, and compared step by step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from brokerproof.checks.breaches import Unfollowable
from brokerproof.checks.counterexamples import Counterexample, answer_text
from brokerproof.checks.explanations import expected_and_seen
from brokerproof.checks.findings import Run, play
from brokerproof.checks.moves import text_of, visible
from brokerproof.checks.subjects import Subject
from brokerproof.spec.operations import Drain


class Replay(Enum):
    """What came of running a counterexample again."""

    KEPT = "kept"
    SAME = "broken again"
    OTHER = "another promise broken"
    UNFOLLOWED = "not decided"


@dataclass(frozen=True)
class Replayed:
    """The outcome, and the lines that tell it."""

    outcome: Replay
    lines: tuple[str, ...]


def replay_on(found: Counterexample, subject: Subject) -> Replayed:
    """Run a counterexample on a subject; raises `CannotStart`."""
    candidate, oracle = subject.fresh()
    try:
        run = play(candidate, oracle, [*found.moves, Drain()], stop_at=found.requirement)
    except Unfollowable as error:
        return Replayed(Replay.UNFOLLOWED, (f"not decided: {error}",))
    outcome = _outcome(found, run)
    lines = [f"{found.requirement} on {subject.address}"]
    width = max((len(text_of(move)) for move in found.moves), default=0)
    # A settlement that means nothing now makes no step, so steps are matched by their moves.
    recorded = iter(found.steps)
    for number, told in enumerate(run.steps, 1):
        now = answer_text(told.answer)
        then = next((line.answered for line in recorded if line.move == told.move), now)
        line = f"  {number:>2}  {visible(text_of(told.move)):<{width}}  {now}"
        lines.append(line if now == then else f"{line}    (in the report: {visible(then)})")
    lines += _ending(found, run, outcome)
    return Replayed(outcome, tuple(lines))


def _outcome(found: Counterexample, run: Run) -> Replay:
    if run.broken is None:
        return Replay.KEPT
    return Replay.SAME if run.broken.requirement == found.requirement else Replay.OTHER


def _ending(found: Counterexample, run: Run, outcome: Replay) -> list[str]:
    if run.broken is None:
        return [f"  kept: {found.requirement} holds on this trace"]
    expected, seen = expected_and_seen(run.broken)
    lines = [f"      expected  {visible(expected)}", f"      seen      {visible(seen)}"]
    return [*lines, f"  {outcome.value}: {run.broken.requirement}"]
