"""The shape of a round: how many messages and clients it has, and how it is made smaller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Shape:
    """The size of a round.

    `returns` is the share of deliveries that go back to the queue, half of them by a release and
    half with a channel that is closed.
    """

    messages: int = 8
    producers: int = 2
    consumers: int = 3
    levels: int | None = None
    returns: float = 0.2

    def smaller(self) -> Iterator[Shape]:
        """Yield smaller shapes, the smallest first."""
        for messages in sorted({1, 2, self.messages // 2}):
            if 0 < messages < self.messages:
                yield replace(self, messages=messages)
        if self.producers > 1:
            yield replace(self, producers=1)
        if self.returns:
            yield replace(self, returns=0.0)
        for consumers in (1, 2):
            if consumers < self.consumers:
                yield replace(self, consumers=consumers)

    def __str__(self) -> str:
        """Return the options of a command that records such rounds."""
        levels = "" if self.levels is None else f" --levels {self.levels}"
        return (
            f"--messages {self.messages} --producers {self.producers} "
            f"--consumers {self.consumers} --release-share {self.returns:g}{levels}"
        )
