"""The earliest moment at which a delivery can have been made, as far as its consumer knows.

A recorder sees when a delivery came and not when the broker made it. It was made after the consumer
had subscribed and, where the consumer's window was full, after something that it held was settled.
"""

from __future__ import annotations

import heapq


class Room:
    """What one consumer's window had room for, followed in the order of its deliveries.

    `subscribed` is when its subscription began, `window` how many unsettled deliveries it may hold,
    None without a limit. Which settlement freed the room is not known: of those begun so far the
    earliest ones did, which makes the moment no later than it was.
    """

    def __init__(self, subscribed: int, window: int | None) -> None:
        self._latest = subscribed
        self._window = window
        self._delivered = 0
        self._freed: list[int] = []

    def settled(self, start: int) -> None:
        """A settlement of one of its deliveries began at `start`."""
        if self._window is not None:
            heapq.heappush(self._freed, start)

    def delivered(self) -> int:
        """One more delivery came; return the earliest moment at which it can have been made.

        All settlements that began before it was seen must have been told. Where there were too few,
        the window was exceeded, and the moment is that of the delivery before.
        """
        self._delivered += 1
        if self._window is not None and self._delivered > self._window and self._freed:
            self._latest = max(self._latest, heapq.heappop(self._freed))
        return self._latest
