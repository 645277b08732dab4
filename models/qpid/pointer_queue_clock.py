"""The queue of pointers with a clock: entries that are held back at first, and entries that expire.

Sources: Qpid, the later releases (a held entry is passed over; when its time has come it is let go,
followed by the steps of a release; the queue acquires and deletes an expired entry); driver
protocol 1, The clock. `TimedQueue` leaves open when an entry's time comes, as its views do.
`ClockedQueue` has the times, in a queue with channels and reports. Its housekeeping follows each
move of the clock at once, as in the reference: until it has let go of all that is due, the queue
does nothing else.

An entry that is let go may be behind pointers, as a released one. So all consumers go back to it.
Browsers do not: they need not be shown an entry that was not due when they passed.
"""

from __future__ import annotations

from brokerproof.models.language import (
    TRUE,
    Bool,
    Fixed,
    Int,
    Map,
    Value,
    action,
    axiom,
    elements,
    exists,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    leads_to,
    least,
    require,
)
from brokerproof.models.qpid.pointer_queue import (
    DELIVERED_BY,
    IS_DELIVERED,
    Entry,
    Status,
    Subscription,
)
from brokerproof.models.qpid.pointer_queue_progress import ProgressingQueue
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
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same with a clock: entries come due at or before this one finitely often."""
        finitely(hold=lambda e: self.at_or_before(e, m), come_due=lambda e: self.at_or_before(e, m))
        return super().wanted_is_delivered(consumer, m)


class ClockedQueue(TimedQueue, ProgressingQueue):
    """The queue of pointers with selectors, reports, gets, channels and the times of entries.

    Its order is that of arrival, of levels, or of keys (`by_key`): entries with smaller keys are
    those of a higher level, and equal keys keep the order of arrival.
    """

    by_key: Bool
    horizon: Int
    not_before: Fixed[Entry, Int]
    expires: Fixed[Entry, Int]

    now: Value[Int]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no time has passed."""
        super().empty()
        self.now = 0

    @axiom("arrival-is-no-key")
    def arrival_is_no_key(self) -> Bool:
        """A queue in the order of arrival is not sorted by a key."""
        return ~(self.fifo & self.by_key)

    def is_early(self, e: Entry) -> Bool:
        """Whether the entry's time is still to come."""
        return self.now < self.not_before[e]

    def is_over(self, e: Entry) -> Bool:
        """Whether the entry has expired."""
        return self.now >= self.expires[e]

    def is_overdue(self, e: Entry) -> Bool:
        """Whether housekeeping has still to let go of the entry."""
        return self.held_back[e] & ~self.is_early(e)

    def only_arrival(self, entry: Entry) -> Bool:
        """Whether no other entry is just arriving, and none is overdue."""
        return super().only_arrival(entry) & ~exists(Entry, self.is_overdue)

    def nothing_arrives(self) -> Bool:
        """Whether no entry is just arriving, and none is overdue."""
        return super().nothing_arrives() & ~exists(Entry, self.is_overdue)

    @action
    def advance(self, seconds: Int) -> None:
        """A client moves the clock."""
        require(seconds >= 0)
        require(self.now + seconds <= self.horizon)
        self.now = self.now + seconds

    @action
    def append(self, entry: Entry) -> None:
        """An entry that is due arrives behind all others."""
        require(~self.is_early(entry))
        super().append(entry)

    @action
    def insert(self, entry: Entry) -> None:
        """An entry that is due arrives as the last of its level."""
        require(~self.is_early(entry))
        super().insert(entry)

    @action
    def hold(self, entry: Entry) -> None:
        """An entry that is not due arrives as the last of its level, or behind all others."""
        require(self.is_early(entry))
        require(self.is_last_of_its_level(entry))
        require(
            ~self.fifo
            | forall(Entry, lambda e: implies(self.has_arrived(e), self.before(e, entry)))
        )
        super().hold(entry)

    @action
    def come_due(self, entry: Entry) -> None:
        """Housekeeping lets go of an entry whose time has come."""
        require(~self.is_early(entry))
        super().come_due(entry)

    @action
    def expire(self, entry: Entry) -> None:
        """Housekeeping, or the search for a next entry, removes one that has expired."""
        require(self.is_over(entry))
        super().expire(entry)

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate is delivered unless it has expired."""
        require(~self.is_over(entry))
        super().deliver(consumer, entry)

    @action
    def get(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate answers a get unless it has expired."""
        require(~self.is_over(entry))
        super().get(consumer, entry)

    @action
    def browse(self, consumer: Subscription, entry: Entry) -> None:
        """The candidate is shown unless it has expired."""
        require(~self.is_over(entry))
        super().browse(consumer, entry)

    @invariant("what-was-let-go-is-due")
    def let_go_is_due(self, e: Entry) -> Bool:
        """An entry in the list that is not held back is due."""
        return implies(self.in_list(e) & ~self.held_back[e], ~self.is_early(e))

    @leads_to(
        IS_DELIVERED,
        fair=("look_back", "deliver", "pass_over", "come_due", "expire"),
        by=DELIVERED_BY,
    )
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same where an entry may expire and time passes finitely often."""
        waits, ends = super().wanted_is_delivered(consumer, m)
        finitely(advance=lambda _: TRUE)
        least(self.before, self.is_overdue)
        self.ranked_up_to(
            m,
            consumer,
            elements(Entry, self.is_overdue, within=self.has_arrived),
            come_due=lambda _: TRUE,
            expire=lambda e: self.at_or_before(e, m),
        )
        return waits, ends | self.is_over(m)
