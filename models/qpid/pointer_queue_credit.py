"""The queue of pointers with credit: windows of consumers and of channels, and flushes.

Sources: Qpid, Message Delivery (Flow Control; a get is a temporary subscription; a flush ends when
the credit runs out or no message is left); QPID-1187 (a subscription waits at an entry for which it
has no room); driver protocol 1, Credit. The code is `reference/front/credit.py`.

A window counts messages and bytes. A message larger than a window of bytes fits if the window is
not used. A consumer that keeps nothing fills no window, but a window of 0 pauses it, and a message
larger than its window of bytes waits. A new consumer is paused until its client sets its window,
as the contract has it. A consumer that leaves takes what it holds out of its channel's window.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from brokerproof.models.language import (
    TRUE,
    Bool,
    Fixed,
    Int,
    Map,
    action,
    axiom,
    exists,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    least,
    require,
)
from brokerproof.models.language.core.terms import integer
from brokerproof.models.qpid.pointer_queue import (
    DELIVERED_BY,
    IS_DELIVERED,
    Entry,
    Status,
    Subscription,
)
from brokerproof.models.qpid.pointer_queue_clock import ClockedQueue
from brokerproof.models.qpid.pointer_queue_progress import Channel


class CreditQueue(ClockedQueue):
    """The queue of pointers with windows, temporary subscriptions and automatic acknowledgement."""

    size: Fixed[Entry, Int]
    is_get: Fixed[Subscription, Bool]
    settles_when_sent: Fixed[Subscription, Bool]

    limited: Map[Subscription, Bool]
    limit: Map[Subscription, Int]
    byte_limited: Map[Subscription, Bool]
    byte_limit: Map[Subscription, Int]
    unsettled: Map[Subscription, Int]
    unsettled_bytes: Map[Subscription, Int]
    pooled: Map[Channel, Bool]
    pool: Map[Channel, Int]
    byte_pooled: Map[Channel, Bool]
    byte_pool: Map[Channel, Int]
    in_pool: Map[Channel, Int]
    bytes_in_pool: Map[Channel, Int]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no window is set."""
        super().empty()
        for truth in (self.limited, self.byte_limited):
            truth.fill(False)
        for number in (self.limit, self.byte_limit, self.unsettled, self.unsettled_bytes):
            number.fill(0)
        for shared in (self.pooled, self.byte_pooled):
            shared.fill(False)
        for count in (self.pool, self.byte_pool, self.in_pool, self.bytes_in_pool):
            count.fill(0)

    @axiom("a-get-is-no-browser")
    def get_is_no_browser(self, who: Subscription) -> Bool:
        """A get takes its message."""
        return ~(self.is_get[who] & self.browser[who])

    @axiom("sizes-are-not-negative")
    def sizes_are_not_negative(self, e: Entry) -> Bool:
        """A message's size is at least 0 bytes."""
        return self.size[e] >= 0

    def keeps(self, who: Subscription) -> Bool:
        """Whether the subscription keeps what it is given, and so fills windows."""
        return ~self.browser[who] & ~self.settles_when_sent[who]

    def is_consumer(self, who: Subscription) -> Bool:
        """Whether the subscription is registered, and no get."""
        return self.active[who] & ~self.is_get[who]

    def has_room(self, who: Subscription, e: Entry) -> Bool:
        """Whether the windows of the consumer and of its channel let the entry through."""
        keeps, size, at = self.keeps(who), self.size[e], self.channel[who]

        def lets_through(limited: Bool, limit: Int, used: Int) -> Bool:
            return ~limited | ite(keeps, used < limit, limit > 0)

        def lets_bytes_through(limited: Bool, limit: Int, used: Int, used_bytes: Int) -> Bool:
            fits = ite(keeps, (used == 0) | (used_bytes + size <= limit), size <= limit)
            return ~limited | ((limit > 0) & fits)

        used, in_pool = self.unsettled[who], self.in_pool[at]
        return (
            lets_through(self.limited[who], self.limit[who], used)
            & lets_through(self.pooled[at], self.pool[at], in_pool)
            & lets_bytes_through(
                self.byte_limited[who], self.byte_limit[who], used, self.unsettled_bytes[who]
            )
            & lets_bytes_through(
                self.byte_pooled[at], self.byte_pool[at], in_pool, self.bytes_in_pool[at]
            )
        )

    def is_waiting(self, who: Subscription) -> Bool:
        """Whether the subscription could have its candidate, and has no room for it."""

        def has_no_room(e: Entry) -> Bool:
            return self.can_have(who, e) & ~self.is_over(e) & ~self.has_room(who, e)

        return exists(Entry, lambda e: self.candidate(who, e) & has_no_room(e))

    # Windows.

    @action
    def set_limits(
        self, who: Subscription, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A client replaces a consumer's window; what the consumer holds counts in it."""
        require(self.is_consumer(who) & (limit >= 0) & (byte_limit >= 0))
        self.limited[who] = limited
        self.limit[who] = limit
        self.byte_limited[who] = byte_limited
        self.byte_limit[who] = byte_limit

    @action
    def share_limits(
        self, which: Channel, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A client replaces the window that the consumers of a channel share."""
        require((limit >= 0) & (byte_limit >= 0))
        self.pooled[which] = limited
        self.pool[which] = limit
        self.byte_pooled[which] = byte_limited
        self.byte_pool[which] = byte_limit

    def _counts(
        self, who: Subscription, e: Entry, count: Callable[[Int, Int], Int], *, keeps: Bool = TRUE
    ) -> None:
        """Count an entry that the subscription keeps, in the window of a consumer's channel too."""
        at, size, shared = self.channel[who], self.size[e], keeps & self.is_consumer(who)
        used, used_bytes = self.unsettled[who], self.unsettled_bytes[who]
        in_pool, bytes_in_pool = self.in_pool[at], self.bytes_in_pool[at]
        self.unsettled[who] = ite(keeps, count(used, integer(1)), used)
        self.unsettled_bytes[who] = ite(keeps, count(used_bytes, size), used_bytes)
        self.in_pool[at] = ite(shared, count(in_pool, integer(1)), in_pool)
        self.bytes_in_pool[at] = ite(shared, count(bytes_in_pool, size), bytes_in_pool)

    def _shares(self, who: Subscription, count: Callable[[Int, Int], Int]) -> None:
        """Count all that a consumer holds in its channel's window, or no more."""
        at = self.channel[who]
        self.in_pool[at] = count(self.in_pool[at], self.unsettled[who])
        self.bytes_in_pool[at] = count(self.bytes_in_pool[at], self.unsettled_bytes[who])

    # Subscriptions.

    @action
    def subscribe(self, who: Subscription) -> None:
        """A consumer starts at the head of the list, with its window closed."""
        require(~self.is_get[who])
        super().subscribe(who)
        self._shares(who, operator.add)
        self.limited[who] = True
        self.limit[who] = 0

    @action
    def begin_get(self, who: Subscription) -> None:
        """A temporary subscription starts at the head of the list; no consumer is registered."""
        require(self.is_get[who])
        super().subscribe(who)

    @action
    def unsubscribe(self, who: Subscription) -> None:
        """A consumer leaves; the entries that it holds stay acquired, and fill no shared window."""
        require(~self.is_get[who])
        super().unsubscribe(who)
        self._shares(who, operator.sub)

    @action
    def end_get(self, who: Subscription) -> None:
        """A temporary subscription ends."""
        require(self.is_get[who])
        super().unsubscribe(who)

    def _leave(self, which: Channel) -> None:
        """Let the windows of a channel that closes go too."""
        super()._leave(which)

        def emptied(who: Subscription, used: Int) -> Int:
            return ite(self.channel[who] == which, 0, used)

        self.unsettled = self.unsettled.map(emptied)
        self.unsettled_bytes = self.unsettled_bytes.map(emptied)
        for shared in (self.pooled, self.byte_pooled):
            shared[which] = False
        for used in (self.in_pool, self.bytes_in_pool):
            used[which] = 0

    # Deliveries and returns.

    @action
    def deliver(self, who: Subscription, entry: Entry) -> None:
        """A consumer with room gets its candidate, which is settled if it keeps nothing."""
        require(~self.is_get[who])
        require(self.has_room(who, entry))
        super().deliver(who, entry)
        self._sends(who, entry)

    @action
    def get(self, who: Subscription, entry: Entry) -> None:
        """A temporary subscription gets its candidate."""
        require(self.is_get[who])
        super().get(who, entry)
        self._sends(who, entry)

    def _sends(self, who: Subscription, entry: Entry) -> None:
        keeps = self.keeps(who)
        self._counts(who, entry, operator.add, keeps=keeps)
        self.status[entry] = ite(keeps, Status.ACQUIRED, Status.DEQUEUED)
        self.holds[who, entry] = keeps

    @action
    def browse(self, who: Subscription, entry: Entry) -> None:
        """A browser whose window lets the candidate through is shown it."""
        require(self.has_room(who, entry))
        super().browse(who, entry)

    @action
    def acknowledge(self, who: Subscription, entry: Entry) -> None:
        """The entry is settled, and its room given back."""
        super().acknowledge(who, entry)
        self._counts(who, entry, operator.sub)

    @action
    def release(self, who: Subscription, entry: Entry) -> None:
        """The entry returns to its place, and its room is given back."""
        super().release(who, entry)
        self._counts(who, entry, operator.sub)

    @action
    def flush(self, who: Subscription) -> None:
        """The flush of a consumer ends: no entry is left for it, or it has no room for the next."""
        least(self.before, lambda e: self.is_ahead(who, e))
        require(self.nothing_arrives())
        require(self.is_consumer(who))
        require(self.is_at_the_tail(who) | self.is_waiting(who))

    @invariant("a-get-has-no-window")
    def get_has_no_window(self, who: Subscription) -> Bool:
        """A temporary subscription takes one message, and no client sets a window for it."""
        return implies(self.is_get[who], ~self.limited[who])

    @leads_to(
        IS_DELIVERED,
        fair=("look_back", "deliver", "pass_over", "come_due", "expire"),
        by=DELIVERED_BY,
    )
    def wanted_is_delivered(self, who: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same for a consumer that has room for each entry up to this one."""
        waits, ends = super().wanted_is_delivered(who, m)
        no_room = exists(Entry, lambda e: self.at_or_before(e, m) & ~self.has_room(who, e))
        return waits & ~self.is_get[who], ends | no_room
