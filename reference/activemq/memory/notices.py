"""The notices of changes of memory usage, and when they are delivered.

Owns the two kinds of notice and their order. `usage` queues a notice while its tree changes,
under the lock that is here, and has the notices delivered when the change is complete.

The releases give each notice to a thread of its own, so it may come late and out of order; its
receiver only checks again. Here notices come in order and before the change returns, unless an
`Execute` is given.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias


class SpaceCallback(Protocol):
    """A callback that waits for space at a full node; compared by identity."""

    def space_available(self) -> None:
        """Called once for each registration, when the node is no longer full or has stopped."""


class UsageListener(Protocol):
    """A listener to every change of a node's percentage; compared by identity."""

    def usage_changed(self, old: int, new: int) -> None:
        """The percentage changed from `old` to `new`; it may have changed again since."""


@dataclass(slots=True, eq=False)
class SpaceNotice:
    """A pending notice for a callback."""

    callback: SpaceCallback

    def deliver(self) -> None:
        """Call the callback."""
        self.callback.space_available()


@dataclass(slots=True, eq=False)
class ChangeNotice:
    """A pending notice for a listener."""

    listener: UsageListener
    old: int
    new: int

    def deliver(self) -> None:
        """Call the listener."""
        self.listener.usage_changed(self.old, self.new)


Notice: TypeAlias = SpaceNotice | ChangeNotice
Execute: TypeAlias = Callable[[Notice], None]
"""Gets each notice, in order, and calls its `deliver` now or later."""


class Notices:
    """The pending notices of one tree, and the lock of that tree.

    `changed` is held while the tree changes and notices are queued, never during a delivery.
    """

    __slots__ = ("changed", "execute", "is_telling", "waiting")

    def __init__(self, execute: Execute | None) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.waiting: deque[Notice] = deque()
        self.is_telling = False
        self.execute = execute

    def tell(self) -> None:
        """Deliver all notices; notices queued meanwhile are delivered by the same call."""
        if not self.waiting:
            return
        with self.changed:
            if self.is_telling:
                return
            self.is_telling = True
        try:
            while (notice := self._next()) is not None:
                if self.execute is None:
                    notice.deliver()
                else:
                    self.execute(notice)
        except BaseException:
            with self.changed:
                self.is_telling = False
            raise

    def _next(self) -> Notice | None:
        with self.changed:
            if self.waiting:
                return self.waiting.popleft()
            self.is_telling = False
            return None
