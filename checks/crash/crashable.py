"""A broker behind a connection that can be killed: its crashes are counted, bounded and given time.

A crash and the start after it cost seconds, a thousand times what other operations do. So no stage
makes them in passing: those of the durability stage are planned (`durability.py`), and bounded
there by `at_most`. A crash beyond the bound is answered `timeout`, which is true (it was not
carried out in time) and ends its run unjudged. Refuses to know how a broker is killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from brokerproof.checks.workers import watchdog
from brokerproof.spec.protocol.answers import Answer, Error
from brokerproof.spec.protocol.candidate import Candidate, Closable
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import Crash, Operation, Reset, Restart


class Crashable:
    """A candidate whose crashes are counted; without a bound each is carried out, as in a replay.

    `crashes` counts those that were carried out.
    """

    def __init__(self, behind: Candidate) -> None:
        self.crashes = 0
        self._behind = behind
        self._crashes_max: int | None = None

    def hello(self) -> Hello:
        """Return what the broker says of itself."""
        return self._behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Pass an operation on, unless it is a crash too many."""
        if isinstance(operation, Crash):
            if self._crashes_max is not None and self.crashes >= self._crashes_max:
                return Answer(error=Error("timeout", "no more crashes: each takes seconds"))
            self.crashes += 1
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
    def at_most(self, crashes: int) -> Iterator[None]:
        """Carry out only so many more crashes while the body runs."""
        before, self._crashes_max = self._crashes_max, self.crashes + crashes
        try:
            yield
        finally:
            self._crashes_max = before
