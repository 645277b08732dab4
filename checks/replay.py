"""Replay: a counterexample run again on any candidate, or judged again as recorded.

A run on a candidate is compared with the record step by step. Judging again needs no candidate: it
holds the recorded answers against the present oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from brokerproof.candidates.unavailable import without_password
from brokerproof.checks.conversation import CannotCopy
from brokerproof.checks.inside.state_invariants import INSIDE
from brokerproof.checks.oracle.attribution import LATE_OR_GONE
from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.oracle.explanations import expected_and_seen
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.counterexamples import (
    Certificate,
    Counterexample,
    answer_text,
    line_of,
    texts_of_moves,
)
from brokerproof.checks.search.findings import Run, goes_on, play
from brokerproof.checks.search.interleaved import lines_of
from brokerproof.checks.search.recorded import NotRecorded, follow
from brokerproof.checks.subjects import Subject
from brokerproof.checks.threads.on_threads import on_threads
from brokerproof.checks.threads.parallel import CannotBegin
from brokerproof.checks.threads.records import recorded, run_recorded
from brokerproof.checks.trace.moves import Move, visible
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import CloseChannel, Consume, Drain, Get


class Replay(Enum):
    """The outcome of a replay."""

    KEPT = "kept"
    SAME = "broken again"
    OTHER = "another requirement broken"
    UNFOLLOWED = "not decided"


@dataclass(frozen=True)
class Replayed:
    """The outcome, and the lines that describe it."""

    outcome: Replay
    lines: tuple[str, ...]


def replay_on(found: Counterexample, subject: Subject) -> Replayed:
    """Run a counterexample on a subject; raises `CannotStart`."""
    if found.interleaved is not None:
        return _replay_on_threads(found, subject)
    candidate, oracle = subject.fresh()
    try:
        run = play(candidate, oracle, [*found.moves, Drain()], stop_at=found.requirement)
        if run.broken is None:
            run = _emptied(run, candidate, oracle)
    except Unfollowable as error:
        return Replayed(Replay.UNFOLLOWED, (f"not decided: {error}",))
    outcome = _outcome(found, run)
    lines = [f"{found.requirement} on {without_password(subject.address)}", *_beside(found, run)]
    lines += _ending(found, run, outcome)
    return Replayed(outcome, tuple(lines))


def _emptied(run: Run, candidate: Candidate, oracle: Oracle) -> Run:
    """Close all channels and take all messages: a trace without its last get may have lost one.

    Returns the run as it is if all comes; raises `Unfollowable`.
    """
    bindings = oracle.bindings
    taking: list[Move] = [CloseChannel(channel=channel) for channel in bindings.channels]
    for queue in bindings.queues:
        if bindings.claims.get:
            taking += [Get(channel="last", queue=queue)] * (len(bindings.messages) + 1)
        else:
            taking.append(Consume(channel="last", queue=queue, consumer=f"last of {queue}"))
    more = play(candidate, oracle, [*taking, Drain()])
    return run if more.broken is None else Run((*run.steps, *more.steps), more.broken)


def _beside(found: Counterexample, run: Run) -> Iterator[str]:
    """Yield the steps of a run beside what was recorded, and the recorded ones that it left out."""
    moves = texts_of_moves(map(line_of, run.steps))
    recorded = [*zip(found.steps, texts_of_moves(found.steps), strict=True)]
    width = max((len(text) for text in (*moves, *(text for _, text in recorded))), default=0)
    for number, told in enumerate(run.steps, 1):
        # A settlement that has no meaning now makes no step, so steps are matched by their moves.
        same = next((at for at, (line, _) in enumerate(recorded) if line.move == told.move), None)
        for _, text in recorded[:same]:
            yield f"   -  {text:<{width}}  left out: no client holds the message now"
        now = answer_text(told.move, told.answer)
        shown = f"  {number:>2}  {moves[number - 1]:<{width}}  {now}"
        if same is None:
            yield f"{shown}    (added)"
        elif now == (then := recorded[same][0].answered):
            yield shown
        else:
            yield f"{shown}    (in the report: {visible(then)})"
        recorded = [] if same is None else recorded[same + 1 :]


def _replay_on_threads(found: Counterexample, subject: Subject) -> Replayed:
    """Let threads make the steps of a schedule again, as far as it fits."""
    head = f"{found.requirement} on {without_password(subject.address)}"
    threaded = on_threads(subject)
    if isinstance(threaded, str):
        return _undecided(head, threaded)
    try:
        now = run_recorded(threaded, found)
    except (CannotBegin, CannotCopy) as error:
        return _undecided(head, str(error))
    if now is None:
        return Replayed(
            Replay.KEPT, (head, f"  kept: no step of this schedule breaks {found.requirement}")
        )
    outcome = Replay.SAME if now.requirement == found.requirement else Replay.OTHER
    certificate = Certificate(grade="not certified", reason="it was run again")
    again = recorded(threaded, now, certificate)
    assert again.interleaved is not None, "it was recorded on threads"
    return Replayed(
        outcome,
        (
            head,
            *lines_of(again.interleaved),
            f"      expected  {visible(again.expected)}",
            f"      seen      {visible(again.seen)}",
            f"  {outcome.value}: {now.requirement}",
        ),
    )


def _outcome(found: Counterexample, run: Run) -> Replay:
    if run.broken is None:
        return Replay.KEPT
    return Replay.SAME if run.broken.requirement == found.requirement else Replay.OTHER


def _ending(found: Counterexample, run: Run, outcome: Replay) -> list[str]:
    if run.broken is None:
        return [f"  kept: no step of this trace breaks {found.requirement}"]
    expected, seen = expected_and_seen(run.broken)
    lines = [f"      expected  {visible(expected)}", f"      seen      {visible(seen)}"]
    return [*lines, f"  {outcome.value}: {run.broken.requirement}"]


def rejudge(found: Counterexample, asked: frozenset[str]) -> Replayed:
    """Judge the recorded answers by the present oracle; only requirements in `asked` count.

    A name given by a final drain check stands, since the check cannot be repeated.
    """
    head = f"{found.requirement} on {found.candidate}, as recorded"
    if found.interleaved is not None:
        return _undecided(head, "what threads did is judged by running it again, without --rejudge")
    if found.requirement in INSIDE:
        return _undecided(head, "what was seen inside of the candidate is not recorded")
    moves = texts_of_moves(found.steps)
    width = max(map(len, moves), default=0)
    lines, broken = [head], None
    try:
        for number, followed in enumerate(follow(found), start=1):
            answered = visible(followed.line.answered)
            lines.append(f"  {number:>2}  {moves[number - 1]:<{width}}  {answered}")
            ends = (b for b in followed.breaches if _ends(b, found))
            broken = next(ends, None)
            if broken is not None:
                break
    except (NotRecorded, Unfollowable) as error:
        return _undecided(head, str(error))
    if broken is None:
        lines.append(f"  kept: no step of this trace breaks {found.requirement}")
        return Replayed(Replay.KEPT, tuple(lines))
    return _rejudged(found, broken, lines, asked)


def _ends(breach: Breach, found: Counterexample) -> bool:
    return breach.requirement == found.requirement or not goes_on(breach)


def _rejudged(
    found: Counterexample, broken: Breach, lines: list[str], asked: frozenset[str]
) -> Replayed:
    requirement = broken.requirement
    expected, seen = expected_and_seen(broken)
    by_final_drain = requirement in LATE_OR_GONE and requirement in found.also
    if by_final_drain and requirement != found.requirement:
        requirement, expected, seen = found.requirement, found.expected, found.seen
    lines += [f"      expected  {visible(expected)}", f"      seen      {visible(seen)}"]
    if requirement not in asked:
        lines.append(f"  kept: {requirement} is broken, and is not in the set that is asked")
        return Replayed(Replay.KEPT, tuple(lines))
    outcome = Replay.SAME if requirement == found.requirement else Replay.OTHER
    return Replayed(outcome, (*lines, f"  {outcome.value}: {requirement}"))


def _undecided(head: str, why: str) -> Replayed:
    return Replayed(Replay.UNFOLLOWED, (head, f"  not decided: {why}"))
