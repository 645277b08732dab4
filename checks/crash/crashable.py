"""A broker on the wire that can be killed: its crashes are counted, bounded and given time.

A crash and the start after it cost seconds, a thousand times an ordinary operation. So only the
durability stage crashes such a broker (`durability.py`), within the bound of `at_most`. A crash
beyond the bound is answered `timeout` and ends its run unjudged; the answer is true, as the crash
was not carried out in time. This file does not know how a broker is killed.
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

    `crashes` counts the crashes carried out.
    """

    def __init__(self, behind: Candidate) -> None:
        self.crashes = 0
        self._behind = behind
        self._crashes_max: int | None = None

    def hello(self) -> Hello:
        """Return the broker's hello."""
        return self._behind.hello()

    def handle(self, operation: Operation) -> Answer:
        """Pass an operation on, unless it is a crash beyond the bound."""
        if isinstance(operation, Crash):
            if self._crashes_max is not None and self.crashes >= self._crashes_max:
                return Answer(error=Error("timeout", "no more crashes: each takes seconds"))
            self.crashes += 1
        if isinstance(operation, Crash | Restart | Reset):
            # These operations have longer limits than the watchdog allows. It watches one operation
            # at a time, so entering and leaving this one ends its watch.
            with watchdog.asking(operation):
                pass
        return self._behind.handle(operation)

    def close(self) -> None:
        """Close the candidate, if it can be closed."""
        if isinstance(self._behind, Closable):
            self._behind.close()

    @contextmanager
    def at_most(self, crashes: int) -> Iterator[None]:
        """Allow only so many more crashes while the body runs."""
        before, self._crashes_max = self._crashes_max, self.crashes + crashes
        try:
            yield
        finally:
            self._crashes_max = before
