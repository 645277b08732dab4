"""The earliest moment at which the broker can have made a delivery, judged by its consumer.

A recorder sees when a delivery arrived, not when the broker made it. The broker made it after the
subscription and, if the consumer's window was full, after a settlement that freed room.
"""

from __future__ import annotations

import heapq


class Room:
    """The room in one consumer's window, followed in the order of its deliveries.

    `subscribed` is when the subscription began; `window` is how many unsettled deliveries it may
    hold (None: no limit). The record does not tell which settlement freed the room. This class
    assumes the earliest settlement begun so far, so the result is never too late.
    """

    def __init__(self, subscribed: int, window: int | None) -> None:
        self._latest = subscribed
        self._window = window
        self._delivered = 0
        self._freed: list[int] = []

    def settled(self, start: int) -> None:
        """Record that a settlement of one of the consumer's deliveries began at `start`."""
        if self._window is not None:
            heapq.heappush(self._freed, start)

    def delivered(self) -> int:
        """Record one more delivery and return the earliest moment at which it can have been made.

        The caller must have recorded all settlements that began before the delivery was seen. If
        there are too few of them, the window was exceeded, and the result is that of the delivery
        before.
        """
        self._delivered += 1
        if self._window is not None and self._delivered > self._window and self._freed:
            self._latest = max(self._latest, heapq.heappop(self._freed))
        return self._latest
