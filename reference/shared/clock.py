"""The broker's clock, and the two times of a message: not before, and expiry.

Owns the clock and the times. The queue decides when to read the clock, when to make a due message
available, and when to remove an expired one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from brokerproof.reference.shared.atomics import atomic_steps

if TYPE_CHECKING:
    from brokerproof.spec.protocol.operations import Publish


@atomic_steps(reads=("now",), writes=("advance",))
class Clock:
    """The seconds since the broker started. Time passes only when a client advances it."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: int = 0) -> None:
        self.seconds = seconds

    def now(self) -> int:
        """Return the time."""
        return self.seconds

    def advance(self, seconds: int) -> None:
        """Advance the time."""
        assert seconds >= 0, "time does not go back"
        self.seconds += seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """The time from which a message may be delivered, and the time from which it has expired.

    None means no such limit.
    """

    due: int | None
    over: int | None

    def left(self, now: int) -> tuple[int | None, int | None]:
        """Return the seconds left until each time; 0 if it has passed."""
        return _left(self.due, now), _left(self.over, now)


def _left(time: int | None, now: int) -> int | None:
    return None if time is None else max(0, time - now)


def times_of(publish: Publish, clock: Clock) -> Times | None:
    """Return the times of a message published now; None if it has no limit.

    Such a message does not read the clock: the schedule explorer would count one more access.
    """
    waits, lives = publish.not_before_s or 0, publish.expires_s
    if waits == 0 and lives is None:
        return None
    now = clock.now()
    return Times(now + waits if waits else None, None if lives is None else now + lives)
