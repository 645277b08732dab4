"""The queue of pointers with a clock: entries that are held back at first, and entries that expire.

Sources: Qpid, the later releases (an entry that is held is passed over; when its time has come it
is let go, and what follows is what follows a release; what has expired is acquired by the queue and
deleted); driver protocol 1, The clock. When the time of an entry comes is not told here: nothing
hangs on how long that takes.

An entry that is let go may be behind pointers, as a released one. So everybody goes back to it but
the browsers, which need not be shown what was not due when they passed.
"""

from __future__ import annotations

from brokerproof.models.language import (
    Bool,
    Map,
    action,
    forall,
    implies,
    initial,
    invariant,
    require,
)
from brokerproof.models.qpid.pointer_queue import Entry, Status
from brokerproof.models.qpid.pointer_queue_selectors import SelectingQueue


class TimedQueue(SelectingQueue):
    """The queue of pointers with selectors and a clock."""

    held_back: Map[Entry, Bool]

    @initial
    def empty(self) -> None:
        """Nothing has arrived."""
        super().empty()
        self.held_back.fill(False)

    def is_held_back(self, e: Entry) -> Bool:
        """Whether the entry's time has not come."""
        return self.held_back[e]

    @action
    def hold(self, entry: Entry) -> None:
        """An entry arrives that is not due: it has its place, and nobody is offered it."""
        require(self.status[entry] == Status.ABSENT)
        self.status[entry] = Status.AVAILABLE
        self.held_back[entry] = True

    @action
    def come_due(self, entry: Entry) -> None:
        """An entry's time has come: whoever is past it comes back; browsers do not."""
        require(self.held_back[entry])
        self.held_back[entry] = False
        self._rewind_to(entry, browsers=False)

    @action
    def expire(self, entry: Entry) -> None:
        """An entry's time is over: the queue takes it from nobody, and it leaves the list."""
        require(self.status[entry] == Status.AVAILABLE)
        self.status[entry] = Status.DEQUEUED
        self.held_back[entry] = False

    @invariant("what-is-held-back-is-there")
    def held_back_is_there(self) -> Bool:
        """Only what nobody has is held back."""
        return forall(
            Entry, lambda e: implies(self.held_back[e], self.status[e] == Status.AVAILABLE)
        )
