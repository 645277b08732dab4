"""Findings: a trace on which a candidate broke a promise, and under whose name.

A breach seen by the oracle says which guard was false. Two questions are left before it is charged
to a requirement. Is a message that should have been given late, or gone? A *census* asks: all
channels close, and a new consumer without limits takes everything that is left; the contract's own
action of that name says under which promise a missing message falls. And is this its own fault, or
another one seen from further away? A trace from which a step can be left out without losing the
violation proves nothing about the step's requirement; `is_minimal` answers that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from brokerproof.checks.book import CONTRACT
from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.moves import Move, operation_of
from brokerproof.checks.oracle import RULES, Breach, Oracle
from brokerproof.checks.possibilities import ordered
from brokerproof.models.contract import Consumer
from brokerproof.spec.answers import Answer, Delivered
from brokerproof.spec.candidate import Candidate
from brokerproof.spec.operations import CloseChannel, Consume, Drain, Get, Operation

LATE_OR_GONE = frozenset(
    (
        "fifo-order",
        "priority-order",
        "release-rewinds",
        "browser-in-order",
        "browser-sees-all",
        "get-finds",
        "quiescence",
        "credit-used",
    )
)
"""Promises about an available message that was not given when it should have been."""


CENSUS_GETS_MAX = 10_000
"""A candidate that still answers a census with messages after so many gets invents them."""


@dataclass(frozen=True)
class Told:
    """One step of a run: the move, the operation that it was, and what was answered."""

    move: Move
    operation: Operation
    answer: Answer


@dataclass(frozen=True)
class Run:
    """What came of playing moves: the steps taken, and the breach that ended it, if one did."""

    steps: tuple[Told, ...]
    broken: Breach | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves that were made."""
        return tuple(told.move for told in self.steps)


def step(candidate: Candidate, oracle: Oracle, move: Move) -> tuple[Told | None, list[Breach]]:
    """Make one move and judge it; the oracle is changed.

    Returns no step where the move means nothing now (settling what nobody holds). Raises
    `Unfollowable`.
    """
    operation = operation_of(move, oracle.book)
    if operation is None:
        return None, []
    answer = ask(candidate, operation)
    if isinstance(answer, Misbehaviour):
        return Told(move, operation, Answer()), [Breach("protocol", answer.what)]
    return Told(move, operation, answer), oracle.observe(operation, answer)


def play(candidate: Candidate, oracle: Oracle, moves: Iterable[Move], *, stop_at: str = "") -> Run:
    """Play moves on a candidate that was just reset, up to the first breach that ends the run.

    One that can be followed beyond (`goes_on`) ends it only if it is of the requirement `stop_at`.
    Raises `Unfollowable`.
    """
    steps: list[Told] = []
    for move in moves:
        before = oracle.fork()
        told, breaches = step(candidate, oracle, move)
        if told is not None:
            steps.append(told)
        for breach in breaches:
            if breach.requirement == stop_at or not goes_on(breach):
                return Run(tuple(steps), named_by_census(candidate, before, breach))
    return Run(tuple(steps))


def goes_on(breach: Breach) -> bool:
    """Whether the oracle can follow the broker beyond the breach."""
    return breach.requirement in RULES.tolerated


def named_by_census(candidate: Candidate, before: Oracle, breach: Breach) -> Breach:
    """Return the breach under the name of the promise that it really breaks.

    `before` is the oracle before the step that showed the breach. The candidate is used up: its
    channels are closed and its queues emptied.
    """
    if breach.requirement not in LATE_OR_GONE:
        return breach
    seen = _census(candidate, before)
    if seen is None:
        return breach
    for message in breach.overdue:
        if message not in seen:
            label = _promise_of_a_missing(breach, message)
            if label is not None:
                gone = f"{message} is gone: all channels closed, a new consumer emptied the queue"
                also = (breach.requirement,)
                return Breach(
                    label, gone, (message,), (message,), also, lost=True, moment=breach.moment
                )
    return breach


def _census(candidate: Candidate, before: Oracle) -> frozenset[str] | None:
    """Return the messages left once all channels are closed; None where the census is refused."""
    book = before.book
    seen: set[str] = set()
    closing = [CloseChannel(channel=channel) for channel in book.channels]
    if not _hear(candidate, [*closing, Drain()], set()):
        return None
    if "acknowledge" in book.claims.modes:
        takers = [
            Consume(channel="census", queue=queue, consumer=f"census-{queue}")
            for queue in book.queues
        ]
        return frozenset(seen) if _hear(candidate, [*takers, Drain()], seen) else None
    for queue in book.queues:
        for _ in range(CENSUS_GETS_MAX):
            found = len(seen)
            if not _hear(candidate, [Get(channel="census", queue=queue)], seen):
                return None
            if len(seen) == found:
                break
    return frozenset(seen)


def _hear(candidate: Candidate, operations: Sequence[Operation], seen: set[str]) -> bool:
    """Carry out operations and note the messages that they deliver; False where one fails."""
    for operation in operations:
        answer = ask(candidate, operation)
        if isinstance(answer, Misbehaviour) or not answer.ok:
            return False
        seen.update(e.message for e in answer.events if isinstance(e, Delivered))
    return True


def _promise_of_a_missing(breach: Breach, message: str) -> str | None:
    """Return the label under which the contract's census puts a message that is gone."""
    if breach.moment is None:
        return None
    known = breach.moment.book
    entry = known.messages[message]
    book, who = known.with_getter(known.queue_of_message[message], "census", "acknowledge")
    for row in reversed(breach.moment.window.rows):
        for world, _, _ in ordered(row.cases):
            one_more = CONTRACT.grown(world, Consumer)
            _, blames = CONTRACT.take(book.frame, one_more, "census", (who,))
            for label, missing in ((k, v) for blame in blames for k, v in blame.items()):
                if entry in missing:
                    return label
    return None
