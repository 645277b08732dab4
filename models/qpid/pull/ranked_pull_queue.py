"""The queue whose consumers pull, as its clients meet it: with windows, its end, and priorities.

Source: Qpid, pull consumers, Handling Consumer Priorities; the rule of a delivery is that of the
releases (`noHigherPriorityWithCredit`). Clock, windows, registration and removal are those of the
pushed queue. A get is a temporary consumer, in the lists like another one.

A consumer gives way to one of a higher priority that wants messages, has a next one, and selects
the entry. So it gives way to one that has no room for its next message, until that one says that it
wants no more, as the reference does.
"""

from __future__ import annotations

from brokerproof.models.language import (
    TRUE,
    Bool,
    Fixed,
    Int,
    action,
    elements,
    exists,
    leads_to,
    require,
)
from brokerproof.models.qpid.pointer_queue import DELIVERED_BY, IS_DELIVERED, Entry, Subscription
from brokerproof.models.qpid.pointer_queue_removal import RemovingQueue
from brokerproof.models.qpid.pull.pull_queue import BELONGS, SUBSCRIBED, Listed, PullQueue


class RankedPullQueue(PullQueue, RemovingQueue):
    """Consumers of several priorities that pull, in a queue with all that clients can ask for."""

    rank: Fixed[Subscription, Int]

    def has_work(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the entry is available to the consumer and ahead of its place."""
        return self.can_have(consumer, e) & self.comes_to(consumer, e)

    def is_outranked(self, consumer: Subscription, other: Subscription) -> Bool:
        """Whether the other one may look for messages, and has a higher priority."""
        return (self.rank[other] > self.rank[consumer]) & self.is_told(other)

    def gives_way(self, consumer: Subscription, entry: Entry) -> Bool:
        """Whether a consumer of a higher priority wants the entry and has a next one."""
        return exists(
            Subscription,
            lambda other: (
                self.is_outranked(consumer, other)
                & self.is_wanted(other, entry)
                & exists(Entry, lambda e: self.has_work(other, e))
            ),
        )

    @action
    def begin_get(self, consumer: Subscription) -> None:
        """A temporary consumer is in a list too."""
        super().begin_get(consumer)
        self._moves(consumer, Listed.NOT_INTERESTED)

    @action
    def end_get(self, consumer: Subscription) -> None:
        """A temporary consumer leaves its list."""
        super().end_get(consumer)
        self._moves(consumer, Listed.REMOVED)

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """A consumer takes its next entry unless it gives way."""
        require(~self.gives_way(consumer, entry))
        super().deliver(consumer, entry)

    @action
    def browse(self, consumer: Subscription, entry: Entry) -> None:
        """A browser gives way too."""
        require(~self.gives_way(consumer, entry))
        super().browse(consumer, entry)

    @leads_to(
        IS_DELIVERED,
        fair=("look_back", "deliver", "pass_over", "come_due", "expire", "want"),
        by=(*DELIVERED_BY, SUBSCRIBED, BELONGS),
    )
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same for a consumer while it is not outranked."""
        waits, ends = super().wanted_is_delivered(consumer, m)
        self.ranked_up_to(
            m,
            consumer,
            ~self.is_told(consumer),
            elements(Entry, self.is_overdue, within=self.has_arrived),
            want=lambda c: c == consumer,
            come_due=lambda _: TRUE,
            expire=lambda e: self.at_or_before(e, m),
        )
        return waits, ends | exists(Subscription, lambda c: self.is_outranked(consumer, c))


RankedPullQueue.equivalent_mutants = """
The contract has no lists: a consumer may be given its next entry, or find none, in any of them.
    deliver: guard 2; browse: guard 2; get: guard 1; find_nothing: guard 1; final_drain: guard 1
At rest nothing is left for a consumer that was notified in vain.
    come_to_rest: guard 2*2
A removed consumer is in no list, so nothing asks for the one before.
    unsubscribe: was_listed; close_channel: was_listed; close_idle_channel: was_listed;
    close_itself: was_listed; dismiss: was_listed; end_get: was_listed; initially: was_listed*5
The contract asks no browser to give way.
    browse: guard 1*13
A consumer that gives way to more consumers takes less, and must take only before a rest.
    shared: is_outranked*3
The contract asks nothing of a consumer that fills no window, where bytes are counted.
    shared: has_room*2
A queue that waits for a held entry does nothing meanwhile, and delivers later.
    shared: is_overdue*2
"""
