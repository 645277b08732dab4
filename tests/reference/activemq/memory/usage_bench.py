"""Shared by the tests of memory usage: callbacks and listeners that log their notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from brokerproof.reference.activemq.memory.notices import SpaceCallback, UsageListener
    from brokerproof.reference.activemq.memory.usage import MemoryUsage


class Waiter:
    """Writes its name into the common log when it is called; then runs its action."""

    __slots__ = ("log", "name", "then")

    def __init__(self, name: str, log: list[str], then: Callable[[], object] | None = None) -> None:
        self.name = name
        self.log = log
        self.then = then

    def space_available(self) -> None:
        """There is space."""
        self.log.append(self.name)
        if self.then is not None:
            self.then()


class Listener:
    """Writes each change into the common log, with its node's usage."""

    __slots__ = ("log", "name", "usage")

    def __init__(self, name: str, log: list[str], usage: MemoryUsage) -> None:
        self.name = name
        self.log = log
        self.usage = usage

    def usage_changed(self, old: int, new: int) -> None:
        """The percentage has changed."""
        self.log.append(f"{self.name} {old}-{new} of {self.usage.used}")


def name_of(waiter: SpaceCallback | UsageListener) -> Hashable:
    """Set the name of the callback or listener."""
    assert isinstance(waiter, Waiter | Listener)
    return waiter.name
