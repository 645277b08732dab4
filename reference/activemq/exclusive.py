"""The exclusive consumer: the elected one of several that want a queue for themselves.

Owns that election. Browsers take no part, nor do consumers that are not exclusive. While a consumer
is elected, the queue gives new messages to no other consumer.

Source: ActiveMQ's queue, 5.1 to current; the priority that always wins comes from AMQ-3218, and is
not in earlier releases.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

ALWAYS: Final = 127
"""A newcomer with this priority, the highest one, is always elected."""


class ExclusiveElection:
    """The exclusive consumers by name, and the elected one; None if there are none."""

    __slots__ = ("_priorities", "elected")

    def __init__(self) -> None:
        self.elected: str | None = None
        # In order of arrival. While a consumer is elected the queue serves no other, so its own
        # line does not rotate.
        self._priorities: dict[str, int] = {}

    def add(self, consumer: str, priority: int = 0) -> bool:
        """Add an exclusive consumer; return whether it is elected.

        It is elected if there was none, if its priority is higher, or if its priority is 127.
        """
        assert consumer not in self._priorities, "a consumer comes once"
        self._priorities[consumer] = priority
        if self._outdoes(priority):
            self.elected = consumer
        return self.elected == consumer

    def _outdoes(self, priority: int) -> bool:
        if self.elected is None:
            return True
        return priority == ALWAYS or priority > self._priorities[self.elected]

    def remove(self, consumer: str) -> None:
        """Remove a consumer, if it took part.

        If it was elected, the next one has the highest priority, and among equals came first. A
        consumer outdone by priority 127 can therefore be elected again.
        """
        if self._priorities.pop(consumer, None) is None or self.elected != consumer:
            return
        self.elected = max(self._priorities, key=self._priorities.__getitem__, default=None)

    def admits(self, consumer: str) -> bool:
        """Return whether a consumer that is not a browser may be given a new message."""
        return self.elected is None or self.elected == consumer

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for elections that behave alike."""
        # The order of arrival matters only among equals.
        by_priority = sorted(self._priorities.items(), key=lambda each: each[1])
        return self.elected, tuple(by_priority)
