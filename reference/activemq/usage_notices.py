"""Who is told when the use of memory changes, and when.

Owns the two sorts of notice and the order in which they are handed out. Refuses to know what is
measured: the tree of accounts (`memory_usage`) puts a notice here while it changes, under the lock
that is here as well, and lets them be handed out when the change is complete.

The releases hand each notice to a thread of its own, so it comes late and perhaps out of order;
whoever is told only looks again. Here it comes in order, and before the change returns to whoever
made it, unless somebody else is named who hands them out.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias


class SpaceCallback(Protocol):
    """Somebody who waits for a node that is full; told apart by identity."""

    def space_available(self) -> None:
        """The node is not full any more, or has stopped; called once for each registration."""


class UsageListener(Protocol):
    """Somebody who is told of every change of a node's percentage; told apart by identity."""

    def usage_changed(self, old: int, new: int) -> None:
        """The percentage was `old` and became `new`; it may have changed again since."""


class SpaceNotice(NamedTuple):
    """What a callback is still to be told."""

    callback: SpaceCallback

    def deliver(self) -> None:
        """Tell it."""
        self.callback.space_available()


class ChangeNotice(NamedTuple):
    """What a listener is still to be told."""

    listener: UsageListener
    old: int
    new: int

    def deliver(self) -> None:
        """Tell it."""
        self.listener.usage_changed(self.old, self.new)


Notice: TypeAlias = SpaceNotice | ChangeNotice
Execute: TypeAlias = Callable[[Notice], None]
"""Who is handed each notice, in order, and calls its `deliver` now or later."""


class Notices:
    """The notices of one tree that are not handed out yet, and the lock of that tree.

    `changed` is held while the tree changes and notices are put `waiting`, never while one is
    handed out.
    """

    __slots__ = ("changed", "execute", "is_telling", "waiting")

    def __init__(self, execute: Execute | None) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.waiting: deque[Notice] = deque()
        self.is_telling = False
        self.execute = execute

    def tell(self) -> None:
        """Hand out all notices; those that come up meanwhile are handed out by whoever began."""
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
