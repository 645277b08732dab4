"""Small histories of no queue at all: spans thrown at random into a few moments, mostly wrong.

They are crowded, so they try what runs of a queue come to seldom: ties, long overlaps, streams.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

from brokerproof.spec.histories import Record
from tests.pipeline.altered import makes_sense
from tests.pipeline.plain_queues import Shape
from tests.pipeline.recorders import as_streams, recorded

Kind = Literal["acknowledge", "release"]


class Thrown:
    """One random history of a shape."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.shape = shape
        self.times = self.chance.choice((6, 10, 20))
        self.given: dict[str, int] = {}

    def span(self, least: int = 0) -> tuple[int, int]:
        """Return a random span that begins at `least` or later."""
        start = self.chance.randint(least, max(least, self.times))
        return start, start + self.chance.choice((0, 0, 1, 2, 3, self.times))

    def records(self) -> Iterator[Record]:
        """Yield the records, those of each message next to each other."""
        levels = self.chance.choice(self.shape.levels)
        durable = self.chance.random() < 0.7
        yield Record(op="declare", queue="q", start=0, end=0, levels=levels, durable=durable)
        if self.shape.windows:
            window = 1 + self.times % 3 % 2
            yield recorded("consume", 0, 0, consumer="c0", channel="ch0", window=window)
        for number in range(self.chance.randint(2, 4)):
            yield from self._message(f"m{number}")
        if self.shape.gets and self.chance.random() < 0.5:
            start, end = self.span()
            yield Record(op="empty", queue="q", consumer="g", start=start, end=end)
        if self.chance.random() < self.shape.drained:
            start, end = self.span(self.times // 2)
            yield Record(op="drained", queue="q", start=start, end=end)
        if self.shape.returns and self.chance.random() < 0.4:
            start, end = self.span()
            yield Record(op="close", channel="ch0", start=start, end=end)
        if self.shape.breaks:
            yield from self._breaks()
        if self.shape.crashes:
            yield from self._crash(*self.span())

    def _message(self, name: str) -> Iterator[Record]:
        start, end = self.span()
        unknown = self.chance.random() < self.shape.unknown
        yield recorded(
            "publish",
            start,
            None if unknown else end,
            message=name,
            priority=self.chance.randrange(3),
            persistent=self.chance.random() < 0.7,
            outcome="unknown" if unknown else "ok",
        )
        for _ in range(self.chance.choice((0, 1, 1, 1, 2 if self.shape.returns else 1))):
            start, end = self.span()
            subscriber = f"c{self.chance.randrange(3)}"
            browses = subscriber == "c2" and self.shape.browsers
            automatic = subscriber == "c1" and not browses
            position = self.given.get(subscriber, 0)
            self.given[subscriber] = position + 1
            yield recorded(
                "deliver",
                start,
                end,
                message=name,
                consumer=subscriber,
                channel="ch0" if subscriber == "c0" else "ch1",
                position=position,
                mode="browse" if browses else "automatic" if automatic else "acknowledge",
            )
            if not browses and not automatic and self.chance.random() < 0.6:
                start, settled = self.span(end)
                kinds: tuple[Kind, ...] = ("acknowledge", "release")
                yield Record(
                    op=self.chance.choice(kinds) if self.shape.returns else "acknowledge",
                    queue="q",
                    message=name,
                    consumer=subscriber,
                    position=position,
                    start=start,
                    end=settled,
                )

    def _breaks(self) -> Iterator[Record]:
        start, end = self.span()
        draw = self.chance.random()
        if draw < 0.2:
            yield Record(op="purge", queue="q", start=start, end=end)
        elif draw < 0.4:
            yield Record(op="delete", queue="q", start=start, end=end)
        elif draw < 0.7:
            yield from self._crash(start, end)

    def _crash(self, start: int, end: int) -> Iterator[Record]:
        yield Record(op="crash", start=start, end=end)
        start, end = self.span(end)
        yield Record(op="restart", start=start, end=end)


def dense_history(seed: int, shape: Shape) -> list[Record] | None:
    """Return a crowded history, None where no client can have seen it so."""
    records = as_streams(list(Thrown(seed, shape).records()))
    return records if makes_sense(records) else None
