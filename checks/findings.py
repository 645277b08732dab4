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
from typing import Literal

from brokerproof.checks.book import CONTRACT, Book
from brokerproof.checks.conversation import Misbehaviour, ask
from brokerproof.checks.moves import Move, operation_of
from brokerproof.checks.oracle import RULES, Breach, Oracle
from brokerproof.checks.possibilities import ordered
from brokerproof.models.contract import Consumer
from brokerproof.spec.answers import Answer, Delivered, Error
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
        instead = Answer(error=Error("internal", answer.what))
        return Told(move, operation, instead), [Breach("protocol", answer.what, hangs=answer.hangs)]
    return Told(move, operation, answer), oracle.observe(operation, answer)


def play(candidate: Candidate, oracle: Oracle, moves: Iterable[Move], *, stop_at: str = "") -> Run:
    """Play moves on a candidate that was just reset, up to the first breach that ends the run.

    One that can be followed beyond (`goes_on`) ends it only if it is of the requirement `stop_at`.
    Raises `Unfollowable`.
    """
    steps: list[Told] = []
    for move in moves:
        told, breaches = step(candidate, oracle, move)
        if told is None:
            continue
        steps.append(told)
        for breach in breaches:
            if breach.requirement == stop_at or not goes_on(breach):
                return Run(tuple(steps), named_by_census(candidate, told, breach))
    return Run(tuple(steps))


def goes_on(breach: Breach) -> bool:
    """Whether the oracle can follow the broker beyond the breach."""
    return breach.requirement in RULES.tolerated


def named_by_census(candidate: Candidate, told: Told, breach: Breach) -> Breach:
    """Return the breach under the name of the promise that it really breaks.

    Whoever asks for everything gets what is merely late. What comes only when all channels are
    closed was held by somebody who may not hold it; what does not come then either is gone. `told`
    is the step that showed the breach. The candidate is used up: its queues are emptied.
    """
    if breach.requirement not in LATE_OR_GONE or breach.moment is None:
        return breach
    book = breach.moment.book
    late = _messages(told.answer)
    if not _everything_left(candidate, book, "census", late):
        return breach
    held = set(late)
    closing = [CloseChannel(channel=channel) for channel in (*book.channels, "census")]
    if not _hear(candidate, [*closing, Drain()], held):
        return breach
    if not _everything_left(candidate, book, "last census", held):
        return breach
    for message in breach.overdue:
        if message not in late:
            named = _named(breach, message, "held" if message in held else "gone")
            if named is not None:
                return named
    return breach


def _named(breach: Breach, message: str, found: Literal["held", "gone"]) -> Breach | None:
    """Return the breach under the contract's name for a message that is held or gone, if any."""
    label = _promise_of_a_missing(breach, message)
    if label is None or (found == "held" and label != "browser-takes-nothing"):
        return None
    how = {
        "held": f"{message} came back when all channels were closed: somebody held it",
        "gone": f"{message} is gone: all channels closed, a new consumer emptied the queue",
    }[found]
    also = (breach.requirement,)
    return Breach(label, how, (message,), (message,), also, lost=True, moment=breach.moment)


def _everything_left(candidate: Candidate, book: Book, who: str, seen: set[str]) -> bool:
    """Ask for everything that is available, every way that is claimed; False where one fails."""
    if "acknowledge" in book.claims.modes:
        takers = [
            Consume(channel="census", queue=queue, consumer=f"{who} of {queue}")
            for queue in book.queues
        ]
        if not _hear(candidate, [*takers, Drain()], seen):
            return False
    if not book.claims.get:
        return True
    for queue in book.queues:
        for _ in range(CENSUS_GETS_MAX):
            found: set[str] = set()
            if not _hear(candidate, [Get(channel="census", queue=queue)], found):
                return False
            if found <= seen:
                break
            seen |= found
    return True


def _messages(answer: Answer) -> set[str]:
    return {event.message for event in answer.events if isinstance(event, Delivered)}


def _hear(candidate: Candidate, operations: Sequence[Operation], seen: set[str]) -> bool:
    """Carry out operations and note the messages that they deliver; False where one fails."""
    for operation in operations:
        answer = ask(candidate, operation)
        if isinstance(answer, Misbehaviour) or not answer.ok:
            return False
        seen |= _messages(answer)
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
