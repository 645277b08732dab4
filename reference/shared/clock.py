"""The broker's own time, and when a message may be given: not before one time, nor from another on.

Owns the clock and the two times of a message. Refuses to know entries, and who looks at the clock:
that what has become due is let go, and what is over taken off, is the queue's.

Source: driver protocol 1, The clock; Qpid, the later releases (not-valid-before, time to live, and
the housekeeping of a virtual host, `checkMessageStatus`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from brokerproof.reference.shared.atomics import atomic_steps

if TYPE_CHECKING:
    from brokerproof.spec.protocol.operations import Publish


@atomic_steps(reads=("now",), writes=("advance",))
class Clock:
    """Seconds since the broker began; they pass when a client says so, and at no other time."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: int = 0) -> None:
        self.seconds = seconds

    def now(self) -> int:
        """Return the time."""
        return self.seconds

    def advance(self, seconds: int) -> None:
        """Let time go by."""
        assert seconds >= 0, "time does not go back"
        self.seconds += seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """From when on its broker's clock a message may be given, and from when on not any more.

    None where that is always so, or never.
    """

    due: int | None
    over: int | None

    def left(self, now: int) -> tuple[int | None, int | None]:
        """Return how many seconds it still is until then; 0 if that has been."""
        return _left(self.due, now), _left(self.over, now)


def _left(time: int | None, now: int) -> int | None:
    return None if time is None else max(0, time - now)


def times_of(publish: Publish, clock: Clock) -> Times | None:
    """Return the times of a message that is published now; None of one that may always be given.

    Such a one does not look at the clock, which would be an access more to whoever counts them.
    """
    waits, lives = publish.not_before_s or 0, publish.expires_s
    if waits == 0 and lives is None:
        return None
    now = clock.now()
    return Times(now + waits if waits else None, None if lives is None else now + lives)
