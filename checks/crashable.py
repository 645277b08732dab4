"""A broker behind a connection that can be killed: how often it is, and how long it may take.

A crash and the start after it cost seconds, a thousand times what other operations do. So there are
few, kept for examples in which something is at stake. What has been crashed once may be crashed
again, whole or in part: that is how a finding is confirmed and shortened. A crash beyond that is
answered `timeout`, which is true (it was not carried out in time) and ends the example unjudged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from brokerproof.checks import watchdog
from brokerproof.spec.answers import Answer, Error
from brokerproof.spec.candidate import Candidate, Closable
from brokerproof.spec.capabilities import Hello
from brokerproof.spec.operations import (
    Acknowledge,
    Crash,
    Operation,
    Reject,
    Release,
    Reset,
    Restart,
    name_of,
)

CRASHES_MAX = 20
"""Examples of the stateful stage in which the broker is killed."""

REPEATS_MAX = 60
"""Crashes for confirming and shortening what was found."""

AT_STAKE = 8
"""So many operations are made before a crash that nobody planned."""


class Crashable:
    """A candidate whose crashes are counted, and which is given its own time for them."""

    def __init__(self, behind: Candidate, crashes_max: int = CRASHES_MAX) -> None:
        self.crashes = 0
        self._behind = behind
        self._crashes_left = crashes_max
        self._repeats_left = REPEATS_MAX
        self._plans = False
        self._made: list[Operation | str] = []
        self._crashed: list[tuple[Operation | str, ...]] = []

    def hello(self) -> Hello:
        """Return what the broker says of itself."""
        return self._behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Pass an operation on, unless it is a crash too many."""
        if isinstance(operation, Reset):
            self._made.clear()
        elif isinstance(operation, Acknowledge | Release | Reject):
            self._made.append(name_of(operation))  # another run has other names for deliveries
        else:
            self._made.append(operation)
        if isinstance(operation, Crash) and not self._spends():
            return Answer(error=Error("timeout", "no more crashes: each takes seconds"))
        if isinstance(operation, Crash | Restart | Reset):
            # These have limits of their own, beyond what the watchdog allows an operation. It
            # watches one at a time: entering and leaving ends its watch of this one.
            with watchdog.asking(operation):
                pass
        return self._behind.handle(operation)

    def close(self) -> None:
        """Give back what the candidate holds."""
        if isinstance(self._behind, Closable):
            self._behind.close()

    @contextmanager
    def planned(self) -> Iterator[None]:
        """Let every crash be carried out while the body runs, which counts them itself."""
        self._plans = True
        try:
            yield
        finally:
            self._plans = False

    def _spends(self) -> bool:
        """Whether a crash may be carried out now; if so it is counted."""
        made = tuple(self._made)
        if self._plans:
            pass
        elif any(_is_part(made, known) for known in self._crashed):
            if not self._repeats_left:
                return False
            self._repeats_left -= 1
        elif len(made) >= AT_STAKE and self._crashes_left:
            self._crashes_left -= 1
        else:
            return False
        self.crashes += 1
        self._crashed.append(made)
        return True


def _is_part(some: tuple[Operation | str, ...], known: tuple[Operation | str, ...]) -> bool:
    """Whether `some` is what is left of `known` without some of its operations."""
    rest = iter(known)
    return all(operation in rest for operation in some)
