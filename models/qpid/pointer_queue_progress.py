"""The reports of the queue of pointers (rest, empty get), its levels and its clients' channels.

Sources: Qpid, Message Delivery (the runner ends if there is no next entry) and Priority Queues;
AMQP 0-9-1, channel close. A report changes no state; its guard says when it is allowed. The actions
are not in `pointer_queue`, whose state graph is measured: they would add only loops to it.

If entries are ahead of a pointer, there is a first one, so "no candidate" means "no entry".
First-order logic does not know that, so `least` says it.
"""

from __future__ import annotations

from brokerproof.models.language import (
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

    @action
    def insert(self, entry: Entry) -> None:
        """An entry arrives as the last of its level; a queue that is FIFO appends instead."""

        def is_behind(e: Entry) -> Bool:
            there = (self.status[e] != Status.ABSENT) & (self.level[e] == self.level[entry])
            return there & self.before(entry, e)

        require(~self.fifo)
        require(~exists(Entry, is_behind))
        super().insert(entry)

    def is_ahead(self, who: Subscription, e: Entry) -> Bool:
        """Whether the entry is in the list, ahead of the pointer."""
        return self.in_list(e) & self.before(self.last_seen[who], e)

    def goes_back(self, which: Channel, e: Entry) -> Bool:
        """Whether a subscription on the channel holds the entry."""
        return exists(Subscription, lambda c: self.holds[c, e] & (self.channel[c] == which))

    @action
    def come_to_rest(self) -> None:
        """The runner has ended: no subscription has a candidate."""
        least(self.before, Subscription, self.is_ahead)
        require(self.nothing_arrives())
        require(
            forall(Subscription, Entry, lambda who, e: ~(self.active[who] & self.candidate(who, e)))
        )

    @action
    def reject(self, who: Subscription, entry: Entry) -> None:
        """A rejected entry is dequeued, as an acknowledged one is."""
        self.acknowledge(who, entry)

    @action
    def settle_again(self, entry: Entry) -> None:
        """A second settlement finds no entry in the acquired state, and changes nothing."""
        require((entry != self.head) & (self.status[entry] != Status.ABSENT))

    @action
    def get(self, who: Subscription, entry: Entry) -> None:
        """A get is a subscription for one message, and its delivery is the answer."""
        super().deliver(who, entry)

    @action
    def find_nothing(self, who: Subscription) -> None:
        """The subscription of a get has no candidate, so the answer is empty."""
        least(self.before, lambda e: self.is_ahead(who, e))
        require(self.nothing_arrives())
        require(self.active[who] & ~self.browser[who])
        require(forall(Entry, lambda e: ~self.candidate(who, e)))

    @action
    def final_drain(self, who: Subscription) -> None:
        """The last subscription has been given all that there is."""
        self.find_nothing(who)

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
    def wanted_is_delivered(self, who: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same with channels, whose closing releases entries."""
        finitely(close_channel=lambda _, first: self.at_or_before(first, m))
        return super().wanted_is_delivered(who, m)

    def _leave(self, which: Channel) -> None:
        self.holds = self.holds.map(lambda c, _, old: old & (self.channel[c] != which))
        self.active = self.active.map(lambda c, old: old & (self.channel[c] != which))


ProgressingQueue.equivalent_mutants = """
A pointer may go back too far or too often: that costs steps and breaks no requirement.
    deliver: rewound*3; pass_over: guard 2; release: released; get: rewound*3;
    close_channel: guard 1, released
The pointer of a closed subscription is not read; a new one starts at the head.
    pass_over: guard 1; release: rewound, released; close_channel: rewound*2, released*2;
    look_back: rewound, released
An available entry that is not ahead of the pointer is just arriving, and is the first.
    deliver: guard 2*2; get: guard 2*2
A skipped entry is acquired: the pointer would have passed over it in a step of its own.
    deliver: guard 2; pass_over: guard 2; get: guard 2
Entries that a subscription holds from earlier do not affect its pointer.
    subscribe: guard 2
Only an invariant reads the value and then states less; the contract remembers the same.
    subscribe: overtaken; look_back: overtaken*2; browse: shown*2
No subscription exists at first, and a new one sets the value.
    initially: shown*2, rewound*2
"""
