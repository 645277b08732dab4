"""The reports of the queue of pointers (rest, empty get), its levels and its clients' channels.

Sources: Qpid, Message Delivery (the runner ends if there is no next entry) and Priority Queues;
AMQP 0-9-1, channel close. A report changes no state; its guard says when it is allowed. The actions
are not in `pointer_queue`, whose state graph is measured: they would add only loops to it.

If entries are ahead of a pointer, there is a first one, so "no candidate" means "no entry".
First-order logic does not know that, so `least` says it.
"""

from __future__ import annotations

from brokerproof.models.language import (
    FALSE,
    Bool,
    Family,
    Fixed,
    Int,
    action,
    axiom,
    exists,
    finitely,
    forall,
    implies,
    ite,
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
from brokerproof.models.qpid.pointer_queue_selectors import SelectingQueue


class Channel(Family):
    """A client's AMQP Channel; each subscription relates one to the queue."""


class ProgressingQueue(SelectingQueue):
    """The queue of pointers with selectors, reports, gets, channels and levels."""

    fifo: Bool
    level: Fixed[Entry, Int]
    channel: Fixed[Subscription, Channel]

    @axiom("order-is-by-level")
    def order_is_by_level(self, e: Entry, f: Entry) -> Bool:
        """An entry of a higher level is before one of a lower, as in the list of lists."""
        return implies(self.level[e] > self.level[f], self.before(e, f))

    def is_last_of_its_level(self, entry: Entry) -> Bool:
        """Whether no entry of the same level stands behind the entry's place."""
        return ~exists(
            Entry,
            lambda e: (
                self.has_arrived(e) & (self.level[e] == self.level[entry]) & self.before(entry, e)
            ),
        )

    @action
    def insert(self, entry: Entry) -> None:
        """An entry arrives as the last of its level; a queue that is FIFO appends instead."""
        require(~self.fifo)
        require(self.is_last_of_its_level(entry))
        super().insert(entry)

    def is_ahead(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the entry is in the list, ahead of the pointer."""
        return self.in_list(e) & self.before(self.last_seen[consumer], e)

    def goes_back(self, which: Channel, e: Entry) -> Bool:
        """Whether a subscription on the channel holds the entry."""
        return exists(Subscription, lambda c: self.holds[c, e] & (self.channel[c] == which))

    def is_at_the_tail(self, consumer: Subscription) -> Bool:
        """Whether the subscription has no candidate, not even one to pass over."""
        return forall(Entry, lambda e: ~self.candidate(consumer, e))

    def is_waiting(self, consumer: Subscription) -> Bool:  # noqa: ARG002 (windows look at it)
        """Whether the subscription waits for room for its candidate; here there is always room."""
        return FALSE

    @action
    def come_to_rest(self) -> None:
        """The runner has ended: each subscription is at the tail, or waits for room."""
        least(self.before, Subscription, self.is_ahead)
        require(self.nothing_arrives())
        require(
            forall(
                Subscription,
                lambda consumer: implies(
                    self.active[consumer], self.is_at_the_tail(consumer) | self.is_waiting(consumer)
                ),
            )
        )

    @action
    def reject(self, consumer: Subscription, entry: Entry) -> None:
        """A rejected entry is dequeued, as an acknowledged one is."""
        self.acknowledge(consumer, entry)

    @action
    def settle_again(self, entry: Entry) -> None:
        """A second settlement finds no entry in the acquired state, and changes nothing."""
        require((entry != self.head) & (self.status[entry] != Status.ABSENT))

    @action
    def get(self, consumer: Subscription, entry: Entry) -> None:
        """A get is a subscription for one message, and its delivery is the answer."""
        super().deliver(consumer, entry)

    @action
    def find_nothing(self, consumer: Subscription) -> None:
        """The subscription of a get has no candidate, so the answer is empty."""
        least(self.before, lambda e: self.is_ahead(consumer, e))
        require(self.nothing_arrives())
        require(self.active[consumer] & ~self.browser[consumer])
        require(self.is_at_the_tail(consumer))

    @action
    def final_drain(self, consumer: Subscription) -> None:
        """The last subscription has been given all that there is."""
        self.find_nothing(consumer)

    @action
    def close_channel(self, which: Channel, first: Entry) -> None:
        """A channel's subscriptions leave and their entries are released, `first` being the first.

        The document releases them one by one. A subscription past several of them comes back to the
        first, whatever the order of the releases.
        """
        require(self.goes_back(which, first))
        require(
            forall(Entry, lambda e: implies(self.goes_back(which, e), self.at_or_before(first, e)))
        )
        self.status = self.status.map(
            lambda e, old: ite(self.goes_back(which, e), Status.AVAILABLE, old)
        )
        self._leave(which)
        self._rewind_to(first, browsers=False)

    @action
    def close_idle_channel(self, which: Channel) -> None:
        """A channel closes whose subscriptions hold no entry."""
        require(forall(Entry, lambda e: ~self.goes_back(which, e)))
        self._leave(which)

    @leads_to(IS_DELIVERED, fair=("look_back", "deliver", "pass_over"), by=DELIVERED_BY)
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same with channels, whose closing releases entries."""
        finitely(close_channel=lambda _, first: self.at_or_before(first, m))
        return super().wanted_is_delivered(consumer, m)

    def _leave(self, which: Channel) -> None:
        self.holds = self.holds.map(lambda c, _, old: old & (self.channel[c] != which))
        self.active = self.active.map(lambda c, old: old & (self.channel[c] != which))
