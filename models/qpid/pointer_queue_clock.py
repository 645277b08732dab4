"""The queue of pointers with a clock: entries that are held back at first, and entries that expire.

Sources: Qpid, the later releases (a held entry is passed over; when its time has come it is let go,
followed by the steps of a release; the queue acquires and deletes an expired entry); driver
protocol 1, The clock. The model leaves open when an entry's time comes.

An entry that is let go may be behind pointers, as a released one. So all consumers go back to it.
Browsers do not: they need not be shown an entry that was not due when they passed.
"""

from __future__ import annotations

from brokerproof.models.language import (
    Bool,
    Map,
    action,
    finitely,
    implies,
    initial,
    invariant,
    leads_to,
    require,
)
from brokerproof.models.qpid.pointer_queue import (
    DELIVERED_BY,
    IS_DELIVERED,
    Entry,
    Status,
    Subscription,
)
from brokerproof.models.qpid.pointer_queue_selectors import SelectingQueue


class TimedQueue(SelectingQueue):
    """The queue of pointers with selectors and a clock."""

    held_back: Map[Entry, Bool]

    @initial
    def empty(self) -> None:
        """No entry has arrived."""
        super().empty()
        self.held_back.fill(False)

    def is_held_back(self, e: Entry) -> Bool:
        """Whether the entry's time has not come."""
        return self.held_back[e]

    @action
    def hold(self, entry: Entry) -> None:
        """An entry arrives that is not due: it has its place, and is not offered."""
        require(self.status[entry] == Status.ABSENT)
        self.status[entry] = Status.AVAILABLE
        self.held_back[entry] = True

    @action
    def come_due(self, entry: Entry) -> None:
        """An entry's time has come: consumers past it come back; browsers do not."""
        require(self.held_back[entry])
        self.held_back[entry] = False
        self._rewind_to(entry, browsers=False)

    @action
    def expire(self, entry: Entry) -> None:
        """An available entry expires: the queue removes it from the list."""
        require(self.status[entry] == Status.AVAILABLE)
        self.status[entry] = Status.DEQUEUED
        self.held_back[entry] = False

    @invariant("what-is-held-back-is-there")
    def held_back_is_there(self, e: Entry) -> Bool:
        """Only an available entry is held back."""
        return implies(self.held_back[e], self.status[e] == Status.AVAILABLE)

    @leads_to(IS_DELIVERED, fair=("look_back", "deliver", "pass_over"), by=DELIVERED_BY)
    def wanted_is_delivered(self, who: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same with a clock: entries come due at or before this one finitely often."""
        finitely(hold=lambda e: self.at_or_before(e, m), come_due=lambda e: self.at_or_before(e, m))
        return super().wanted_is_delivered(who, m)
