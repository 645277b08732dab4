"""Small histories with covering chains of waiting messages, beside long gets and deliveries."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from brokerproof.spec.histories import Record
from tests.pipeline.recorders import as_streams, recorded


def history_of_a_chain(seed: int) -> list[Record]:
    """Return a history of one queue: some messages one after the other, and the gets meanwhile.

    Each comes about when the one before it goes, so that now and then no moment is without one.
    """
    chance = random.Random(seed)  # noqa: S311
    levels = chance.choice((None, 3))
    placed: tuple[Literal["original", "elsewhere"], ...] = ("original", "original", "elsewhere")
    returns = chance.choice(placed)
    first = Record(op="declare", queue="q", start=0, end=0, levels=levels, returns=returns)
    return as_streams([first, *_chain(chance), *_askers(chance, by_priority=levels is not None)])


def _chain(chance: random.Random) -> Iterator[Record]:
    now = 10
    for number in range(chance.randint(3, 9)):
        name = f"m{number}"
        came = now - chance.randint(0, 6)
        went = now + chance.randint(4, 14)
        priority = chance.choice((1, 1, 2))
        start = max(0, came - chance.randint(0, 5))
        yield recorded("publish", start, came, message=name, priority=priority)
        now = went
        if chance.random() < 0.1:
            continue
        subscriber = {"queue": "q", "message": name, "consumer": f"c{number}", "position": 0}
        seen = went + chance.randint(0, 5)
        yield Record(op="deliver", start=went, end=seen, **subscriber)  # type: ignore[arg-type]
        if chance.random() < 0.3:
            back = seen + chance.randint(0, 5)
            yield Record(op="release", start=back, end=back + 1, **subscriber)  # type: ignore[arg-type]
            again = {**subscriber, "consumer": f"d{number}"}
            left = back + chance.randint(1, 20)
            yield Record(op="deliver", start=left, end=left + 3, **again)  # type: ignore[arg-type]


def _askers(chance: random.Random, *, by_priority: bool) -> Iterator[Record]:
    if chance.random() < 0.3:
        start = chance.randint(8, 50)
        yield Record(op="drained", queue="q", start=start, end=start + chance.choice((0, 10, 30)))
    for number in range(chance.randint(1, 4)):
        start = chance.randint(8, 50)
        end = start + chance.choice((0, 5, 20, 40))
        yield Record(op="empty", queue="q", consumer=f"g{number}", start=start, end=end)
    for number in range(chance.randint(1, 3) if by_priority else 0):
        name = f"less{number}"
        start = chance.randint(5, 50)
        end = start + chance.choice((2, 10, 30))
        priority = chance.choice((0, 0, 1))
        yield Record(op="publish", queue="q", message=name, priority=priority, start=0, end=1)
        yield recorded("deliver", start, end, message=name, consumer=f"e{number}", position=0)
