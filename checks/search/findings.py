"""Findings: plays moves on a candidate and judges each, up to the breach that ends the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.inside.state_invariants import INSIDE, expected_of, snapshot
from brokerproof.checks.inside.step_conformance import REQUIREMENT, Departure, Watch
from brokerproof.checks.oracle.breaches import Breach, Unfollowable
from brokerproof.checks.oracle.contracts import TOLERATED
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.final_drain import named_by_final_drain
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Cut, Move, Settle, operation_of
from brokerproof.checks.workers import watchdog
from brokerproof.spec.protocol.answers import Answer, Error
from brokerproof.spec.protocol.candidate import Candidate, OnDisk
from brokerproof.spec.protocol.operations import Drain, Operation, name_of


class Exchange(msgspec.Struct, frozen=True):
    """One step of a run: the move, its operation, and the answer."""

    move: Move
    operation: Operation
    answer: Answer


@dataclass(frozen=True)
class Run:
    """The result of playing moves: the steps, and the breach that ended the run, if any."""

    steps: tuple[Exchange, ...]
    broken: Breach | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves that were made."""
        return tuple(told.move for told in self.steps)


def step(
    candidate: Candidate, oracle: Oracle, move: Move, before: Sequence[Exchange] = ()
) -> tuple[Exchange | None, list[Breach]]:
    """Make one move and judge it; the oracle is changed. `before` are the steps until now.

    Returns no step if the move has no meaning now (it settles a message that no client holds).
    Raises `Unfollowable`.
    """
    operation = operation_of(move, oracle.bindings)
    if operation is None:
        return None, []
    watchdog.note_trace(lambda: before, move)
    answer = ask_with_power(candidate, move, operation)
    told, breaches = judged(oracle, move, operation, answer)
    if isinstance(answer, Misbehaviour):
        return told, breaches
    if oracle.watch is not None and all(map(goes_on, breaches)):
        seen, exercised = looked_inside(candidate, oracle.watch, told, oracle.bindings)
        oracle.exercised.update(exercised)
        breaches += seen
    return told, breaches


def judged(
    oracle: Oracle, move: Move, operation: Operation, answer: Answer | Misbehaviour
) -> tuple[Exchange, list[Breach]]:
    """Return the step for an answer, and its breaches; raises `Unfollowable`."""
    if isinstance(answer, Misbehaviour):
        told, breach = instead_of(answer, move, operation)
        return told, [breach]
    return Exchange(move, operation, answer), oracle.observe(operation, answer)


def ask_with_power(candidate: Candidate, move: Move, operation: Operation) -> Answer | Misbehaviour:
    """Hand over the operation of a move; during a `Cut` the power goes meanwhile.

    A candidate that goes on after the power has gone misbehaves: its crashes could not be judged.
    """
    if not isinstance(move, Cut):
        return ask(candidate, operation)
    if not isinstance(candidate, OnDisk):
        raise Unfollowable("it has no disk whose power could go")
    # A candidate's own methods may raise anything: all of it is a finding.
    try:
        before = candidate.changes()
        candidate.power_lasts(move.change, move.unsynced)
        answer = ask(candidate, operation)
        candidate.power_lasts(None)
        made = candidate.changes() - before
    except Exception as raised:  # noqa: BLE001
        text = f"{type(raised).__name__}: {str(raised)[:200]}"
        return Misbehaviour(f"changes or power_lasts raised {text}")
    if isinstance(answer, Misbehaviour) or made <= move.change or _has_crashed(answer):
        return answer
    return Misbehaviour(
        f"{name_of(operation)} was not answered `crashed`, and the disk was asked for {made} "
        f"changes though the power had gone at change {move.change}"
    )


def _has_crashed(answer: Answer) -> bool:
    return answer.error is not None and answer.error.code == "crashed"


def instead_of(answer: Misbehaviour, move: Move, operation: Operation) -> tuple[Exchange, Breach]:
    """Return the step and the breach for a misbehaviour in place of an answer."""
    instead = Answer(error=Error("internal", answer.what))
    breach = Breach("protocol", answer.what, hangs=answer.hangs, ends=answer.ends)
    return Exchange(move, operation, instead), breach


def looked_inside(
    candidate: Candidate, watch: Watch, told: Exchange, bindings: Bindings
) -> tuple[list[Breach], list[str]]:
    """Inspect the candidate's queues; return the breaches, and the exercised requirements."""
    move = told.move.move if isinstance(told.move, Cut) else told.move
    settled = move.message if isinstance(move, Settle) and not move.again else ""
    try:
        moved = watch.look(candidate, told.operation, told.answer, settled, bindings)
    except Departure as departure:
        seen, hangs = str(departure), departure.hangs
        own = [Breach(REQUIREMENT, seen, expected=departure.expected, hangs=hangs)]
        return own + ([] if hangs else _in_snapshots(watch, told, [])), []
    exercised = [REQUIREMENT] if moved else []
    return _in_snapshots(watch, told, exercised), exercised


def _in_snapshots(watch: Watch, told: Exchange, exercised: list[str]) -> list[Breach]:
    """Return the breaches of each view of the last look by itself; adds to `exercised`."""
    breaches = []
    rests = isinstance(told.operation, Drain) and told.answer.ok
    for queue, view in watch.shown.items():
        found = snapshot(view, rests=rests)
        exercised += found.exercised
        for requirement, complaint in found.broken:
            seen = f"{queue} after {name_of(told.operation)}: {complaint}"
            breaches.append(Breach(requirement, seen, expected=expected_of(requirement)))
    return breaches


def play(candidate: Candidate, oracle: Oracle, moves: Iterable[Move], *, stop_at: str = "") -> Run:
    """Play moves on a candidate right after a reset, up to the first breach that ends the run.

    A breach that the oracle can follow beyond (`goes_on`) ends the run only if its requirement is
    `stop_at`. Raises `Unfollowable`.
    """
    steps: list[Exchange] = []
    for move in moves:
        told, breaches = step(candidate, oracle, move, steps)
        if told is None:
            continue
        steps.append(told)
        for breach in breaches:
            if breach.requirement == stop_at or not goes_on(breach):
                return Run(tuple(steps), named_by_final_drain(candidate, told.answer, breach))
    return Run(tuple(steps))


def goes_on(breach: Breach) -> bool:
    """Whether the oracle can follow the broker beyond the breach."""
    tolerated = breach.requirement in TOLERATED or breach.requirement in INSIDE
    return tolerated and not breach.hangs
