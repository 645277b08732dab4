"""The limit of every wait for a broker.

Client libraries wait without a limit of their own, or with one for each read. So all connections of
a candidate share one `Deadline`, which every operation starts anew.
"""

from __future__ import annotations

import time

CONNECT_DEADLINE_S = 10.0
ANSWER_DEADLINE_S = 10.0


class Deadline:
    """The moment by which a broker must have answered, shared by all connections of a candidate."""

    def __init__(self) -> None:
        self._at = 0.0

    def start(self, seconds: float) -> None:
        """Set the moment to `seconds` from now."""
        self._at = time.monotonic() + seconds

    def remaining_s(self) -> float:
        """Return the time that is left; raises `TimeoutError` when none is."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left
