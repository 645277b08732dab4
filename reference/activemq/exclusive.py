"""The exclusive consumer: of several who want a queue for themselves, the one who has it.

Owns that election. Refuses to know browsers, which it does not concern, and what consumers are
given: while somebody is elected, no other consumer is given anything new, and what that is to mean
is the queue's. Who does not ask for a queue for itself takes no part, but waits like the others.

Source: ActiveMQ's queue, 5.1 to current; the priority that always wins is that of AMQ-3218, and not
in releases before it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

ALWAYS: Final = 127
"""The priority with which a newcomer is elected whoever was before it; the highest there is."""


class ExclusiveElection:
    """Who is elected of the exclusive consumers, which are named; nobody if there are none."""

    __slots__ = ("_priorities", "elected")

    def __init__(self) -> None:
        self.elected: str | None = None
        # Those who stay are in the order in which they came: while somebody is elected, nobody
        # else is served, so the queue's own line does not turn.
        self._priorities: dict[str, int] = {}

    def add(self, consumer: str, priority: int = 0) -> bool:
        """Let an exclusive consumer come; say whether it is elected.

        It is if nobody was, or with a higher priority than who was, or with 127.
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
        """Let a consumer leave, if it took part.

        If it was elected, that is now who has the highest priority of the others, and of equals who
        came first; so an earlier one that was outdone by 127 is elected again.
        """
        if self._priorities.pop(consumer, None) is None or self.elected != consumer:
            return
        self.elected = max(self._priorities, key=self._priorities.__getitem__, default=None)

    def admits(self, consumer: str) -> bool:
        """Say whether a consumer that is not a browser may be given something new."""
        return self.elected is None or self.elected == consumer

    def fork(self) -> ExclusiveElection:
        """Return an independent copy."""
        copy = object.__new__(ExclusiveElection)
        copy.elected = self.elected
        copy._priorities = self._priorities.copy()
        return copy

    def fingerprint(self) -> Hashable:
        """Return what is equal for elections that go on alike."""
        # Who came first counts only among equals.
        by_priority = sorted(self._priorities.items(), key=lambda each: each[1])
        return self.elected, tuple(by_priority)
