"""The examples of the durability stage: moves before a broker is killed, and checks after.

Small examples test one effect of a crash each, so that their traces are readable. Large ones are
drawn. This file does not judge.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from msgspec import structs

from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.draws import OPTIONAL, Chooser, kinds_drawn, orders_drawn
from brokerproof.checks.search.scopes.catalogue import kinds_for
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Move, Settle
from brokerproof.spec.messages import Message, Order, Priority
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    CloseChannel,
    Consume,
    ConsumeMode,
    Crash,
    Declare,
    Delete,
    Drain,
    Publish,
    Purge,
    Restart,
)

MOVES_BEFORE = 25
"""Moves drawn before a crash. Queues must fill before there is something to lose."""

MOVES_AFTER = 10
"""Moves drawn after a restart."""

CRASHES_IN_A_DRAWN_EXAMPLE = 2

_NUMBER = 60


@dataclass(frozen=True)
class Planned:
    """A small example: the effect that it tests, and its moves."""

    at_stake: str
    moves: tuple[Move, ...]

    def played(self, _: Oracle) -> tuple[Move, ...]:
        """Return the moves; they do not depend on the broker."""
        return self.moves

    def parts(self) -> list[list[Move]]:
        """Return the moves before the first crash, and those after each restart."""
        parts: list[list[Move]] = [[]]
        for move in self.moves:
            if isinstance(move, Crash):
                parts.append([])
            elif not isinstance(move, Restart):
                parts[-1].append(move)
        return parts


def together(examples: Sequence[Planned]) -> Planned:
    """Return one example that plays all of these, each with names of its own, with few crashes.

    >>> one = Planned("one", (Drain(), Crash(), Restart(), Drain()))
    >>> len(together((one, one)).moves)
    6
    """
    apart = [
        [[_named_apart(move, number) for move in part] for part in example.parts()]
        for number, example in enumerate(examples)
    ]
    joined: list[Move] = []
    for at_once in zip_longest(*apart, fillvalue=[]):
        joined += [*(_KILLED if joined else ()), *chain.from_iterable(at_once)]
    return Planned("all small examples at once", tuple(joined))


def _named_apart(move: Move, number: int) -> Move:
    if isinstance(move, Settle):
        return structs.replace(move, message=f"{move.message}.{number}")
    names = ("queue", "channel", "consumer")
    changes: dict[str, object] = {
        name: f"{getattr(move, name)}.{number}" for name in names if getattr(move, name, None)
    }
    if isinstance(move, Publish):
        changes["message"] = structs.replace(move.message, id=f"{move.message.id}.{number}")
    return structs.replace(move, **changes)


def planned_examples(claims: Capabilities) -> tuple[Planned, ...]:
    """Return the small examples for a candidate's claims.

    >>> [each.at_stake for each in planned_examples(Capabilities(durable=True))]
    ['what was accepted', 'a queue that is not durable', 'a second crash']
    """
    examples = [
        Planned("what was accepted", (*_filled(claims), *_KILLED, *_looked())),
        Planned(
            "a queue that is not durable",
            (
                _declared(claims, durable=False),
                _declared(claims, queue="q1"),
                _published("m0"),
                _published("m1", queue="q1"),
                *_KILLED,
                _declared(claims, durable=False),
                *_looked(),
                *_looked("q1"),
            ),
        ),
        Planned(
            "a second crash",
            (
                *_filled(claims),
                *_KILLED,
                _published("m3"),
                _published("m4", persistent=False),
                *_KILLED,
                *_looked(),
            ),
        ),
    ]
    if "acknowledge" in claims.modes:
        examples += _of_settlements(claims)
    if "automatic" in claims.modes:
        examples.append(
            Planned(
                "what was taken without settling",
                (*_filled(claims), _taken("automatic"), Drain(), *_KILLED, *_looked()),
            )
        )
    return (*examples, *_of_queues(claims))


def _of_settlements(claims: Capabilities) -> list[Planned]:
    taken = (*_filled(claims), _taken(), Drain())
    return [
        Planned(
            "what was settled",
            (
                *taken,
                Settle(how="acknowledge", message="m0"),
                Settle(how="reject", message="m2"),
                _published("m3"),
                *_KILLED,
                *_looked(),
            ),
        ),
        Planned("what was held", (*taken, _published("m3"), *_KILLED, *_looked())),
        Planned(
            "what was returned",
            (*taken, CloseChannel(channel="ch0"), _published("m3"), *_KILLED, *_looked()),
        ),
    ]


def _of_queues(claims: Capabilities) -> Iterator[Planned]:
    if claims.purge:
        moves = (*_filled(claims), Purge(queue="q0"), _published("m3"), *_KILLED, *_looked())
        yield Planned("what was purged", moves)
    if claims.delete:
        again = _declared(claims)
        moves = (*_filled(claims), Delete(queue="q0"), *_KILLED, again, *_looked())
        yield Planned("what was deleted", moves)
    if "priority" in claims.orders:
        order = Priority(min(3, claims.priority_levels))
        several = tuple(
            _published(f"m{number}", priority=priority)
            for number, priority in enumerate((0, 4, 9, 4))
        )
        moves = (_declared(claims, order=order), *several, *_KILLED, *_looked())
        yield Planned("the order of priorities", moves)


_KILLED: tuple[Move, ...] = (Crash(), Restart())


def _declared(
    claims: Capabilities, queue: str = "q0", *, order: Order | None = None, durable: bool = True
) -> Declare:
    return Declare(queue=queue, order=order or orders_drawn(claims)[0], durable=durable)


def _published(
    name: str, queue: str = "q0", *, persistent: bool = True, priority: int = 4
) -> Publish:
    message = Message(id=name, priority=priority, persistent=persistent)
    return Publish(queue=queue, message=message)


def _filled(claims: Capabilities) -> tuple[Move, ...]:
    transient = _published("m1", persistent=False)
    return (_declared(claims), _published("m0"), transient, _published("m2"))


def _taken(mode: ConsumeMode = "acknowledge") -> Consume:
    return Consume(channel="ch0", queue="q0", consumer="c0", mode=mode)


def _looked(queue: str = "q0") -> tuple[Move, ...]:
    """Return the moves that empty a queue: all its messages must come in order, and no others."""
    everything = Consume(channel="after", queue=queue, consumer=f"after {queue}")
    return (everything, Drain())


def drawn_example(claims: Capabilities, seed: int, oracle: Oracle) -> Iterator[Move]:
    """Yield the moves of a large example; each may depend on the results of earlier moves."""
    draw = random.Random(seed)  # noqa: S311 - variety, no secrets
    without_crashes = structs.replace(claims, durable=False)
    kinds = kinds_drawn(draw.getrandbits(len(OPTIONAL)), without_crashes)
    chooser = Chooser(claims, kinds_for(claims), plain=False)
    orders = orders_drawn(claims)

    def some(count: int) -> Iterator[Move]:
        for _ in range(count):
            kind = kinds[draw.randrange(len(kinds))]
            yield from chooser.moves(
                kind, draw.randrange(_NUMBER), draw.randrange(_NUMBER), oracle.bindings
            )

    for number in range(2):
        order = orders[draw.randrange(len(orders))]
        # One queue in six is not durable: it shows less.
        durable = number == 0 or draw.randrange(3) > 0
        yield Declare(queue=f"q{number}", order=order, durable=durable)
    for crash in range(CRASHES_IN_A_DRAWN_EXAMPLE):
        yield from some(MOVES_AFTER if crash else MOVES_BEFORE)
        yield from _KILLED
    yield from some(MOVES_AFTER)
    yield from _emptied(oracle.bindings)


def _emptied(bindings: Bindings) -> Iterator[Move]:
    for queue in sorted(bindings.queues):
        yield from _looked(queue)
