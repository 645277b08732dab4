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
    def get_is_no_browser(self, consumer: Subscription) -> Bool:
        """A get takes its message."""
        return ~(self.is_get[consumer] & self.browser[consumer])

    @axiom("sizes-are-not-negative")
    def sizes_are_not_negative(self, e: Entry) -> Bool:
        """A message's size is at least 0 bytes."""
        return self.size[e] >= 0

    def keeps(self, consumer: Subscription) -> Bool:
        """Whether the subscription keeps what it is given, and so fills windows."""
        return ~self.browser[consumer] & ~self.settles_when_sent[consumer]

    def is_consumer(self, consumer: Subscription) -> Bool:
        """Whether the subscription is registered, and no get."""
        return self.active[consumer] & ~self.is_get[consumer]

    def has_room(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the windows of the consumer and of its channel let the entry through."""
        keeps, size, at = self.keeps(consumer), self.size[e], self.channel[consumer]

        def lets_through(limited: Bool, limit: Int, used: Int) -> Bool:
            return ~limited | ite(keeps, used < limit, limit > 0)

        def lets_bytes_through(limited: Bool, limit: Int, used: Int, used_bytes: Int) -> Bool:
            fits = ite(keeps, (used == 0) | (used_bytes + size <= limit), size <= limit)
            return ~limited | ((limit > 0) & fits)

        used, in_pool = self.unsettled[consumer], self.in_pool[at]
        return (
            lets_through(self.limited[consumer], self.limit[consumer], used)
            & lets_through(self.pooled[at], self.pool[at], in_pool)
            & lets_bytes_through(
                self.byte_limited[consumer],
                self.byte_limit[consumer],
                used,
                self.unsettled_bytes[consumer],
            )
            & lets_bytes_through(
                self.byte_pooled[at], self.byte_pool[at], in_pool, self.bytes_in_pool[at]
            )
        )

    def is_waiting(self, consumer: Subscription) -> Bool:
        """Whether the subscription could have its candidate, and has no room for it."""

        def has_no_room(e: Entry) -> Bool:
            return self.can_have(consumer, e) & ~self.is_over(e) & ~self.has_room(consumer, e)

        return exists(Entry, lambda e: self.candidate(consumer, e) & has_no_room(e))

    # Windows.

    @action
    def set_limits(
        self, consumer: Subscription, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A client replaces a consumer's window; what the consumer holds counts in it."""
        require(self.is_consumer(consumer) & (limit >= 0) & (byte_limit >= 0))
        self.limited[consumer] = limited
        self.limit[consumer] = limit
        self.byte_limited[consumer] = byte_limited
        self.byte_limit[consumer] = byte_limit

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
        self,
        consumer: Subscription,
        e: Entry,
        count: Callable[[Int, Int], Int],
        *,
        keeps: Bool = TRUE,
    ) -> None:
        """Count an entry that the subscription keeps, in the window of a consumer's channel too."""
        at, size, shared = self.channel[consumer], self.size[e], keeps & self.is_consumer(consumer)
        used, used_bytes = self.unsettled[consumer], self.unsettled_bytes[consumer]
        in_pool, bytes_in_pool = self.in_pool[at], self.bytes_in_pool[at]
        self.unsettled[consumer] = ite(keeps, count(used, integer(1)), used)
        self.unsettled_bytes[consumer] = ite(keeps, count(used_bytes, size), used_bytes)
        self.in_pool[at] = ite(shared, count(in_pool, integer(1)), in_pool)
        self.bytes_in_pool[at] = ite(shared, count(bytes_in_pool, size), bytes_in_pool)

    def _shares(self, consumer: Subscription, count: Callable[[Int, Int], Int]) -> None:
        """Count all that a consumer holds in its channel's window, or no more."""
        at = self.channel[consumer]
        self.in_pool[at] = count(self.in_pool[at], self.unsettled[consumer])
        self.bytes_in_pool[at] = count(self.bytes_in_pool[at], self.unsettled_bytes[consumer])

    # Subscriptions.

    @action
    def subscribe(self, consumer: Subscription) -> None:
        """A consumer starts at the head of the list, with its window closed."""
        require(~self.is_get[consumer])
        super().subscribe(consumer)
        self._shares(consumer, operator.add)
        self.limited[consumer] = True
        self.limit[consumer] = 0

    @action
    def begin_get(self, consumer: Subscription) -> None:
        """A temporary subscription starts at the head of the list; no consumer is registered."""
        require(self.is_get[consumer])
        super().subscribe(consumer)

    @action
    def unsubscribe(self, consumer: Subscription) -> None:
        """A consumer leaves; the entries that it holds stay acquired, and fill no shared window."""
        require(~self.is_get[consumer])
        super().unsubscribe(consumer)
        self._shares(consumer, operator.sub)

    @action
    def end_get(self, consumer: Subscription) -> None:
        """A temporary subscription ends."""
        require(self.is_get[consumer])
        super().unsubscribe(consumer)

    def _leave(self, which: Channel) -> None:
        """Let the windows of a channel that closes go too."""
        super()._leave(which)

        def emptied(consumer: Subscription, used: Int) -> Int:
            return ite(self.channel[consumer] == which, 0, used)

        self.unsettled = self.unsettled.map(emptied)
        self.unsettled_bytes = self.unsettled_bytes.map(emptied)
        for shared in (self.pooled, self.byte_pooled):
            shared[which] = False
        for used in (self.in_pool, self.bytes_in_pool):
            used[which] = 0

    # Deliveries and returns.

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """A consumer with room gets its candidate, which is settled if it keeps nothing."""
        require(~self.is_get[consumer])
        require(self.has_room(consumer, entry))
        super().deliver(consumer, entry)
        self._sends(consumer, entry)

    @action
    def get(self, consumer: Subscription, entry: Entry) -> None:
        """A temporary subscription gets its candidate."""
        require(self.is_get[consumer])
        super().get(consumer, entry)
        self._sends(consumer, entry)

    def _sends(self, consumer: Subscription, entry: Entry) -> None:
        keeps = self.keeps(consumer)
        self._counts(consumer, entry, operator.add, keeps=keeps)
        self.status[entry] = ite(keeps, Status.ACQUIRED, Status.DEQUEUED)
        self.holds[consumer, entry] = keeps

    @action
    def browse(self, consumer: Subscription, entry: Entry) -> None:
        """A browser whose window lets the candidate through is shown it."""
        require(self.has_room(consumer, entry))
        super().browse(consumer, entry)

    @action
    def acknowledge(self, consumer: Subscription, entry: Entry) -> None:
        """The entry is settled, and its room given back."""
        super().acknowledge(consumer, entry)
        self._counts(consumer, entry, operator.sub)

    @action
    def release(self, consumer: Subscription, entry: Entry) -> None:
        """The entry returns to its place, and its room is given back."""
        super().release(consumer, entry)
        self._counts(consumer, entry, operator.sub)

    @action
    def flush(self, consumer: Subscription) -> None:
        """The flush of a consumer ends: no entry is left for it, or it has no room for the next."""
        least(self.before, lambda e: self.is_ahead(consumer, e))
        require(self.nothing_arrives())
        require(self.is_consumer(consumer))
        require(self.is_at_the_tail(consumer) | self.is_waiting(consumer))

    @invariant("a-get-has-no-window")
    def get_has_no_window(self, consumer: Subscription) -> Bool:
        """A temporary subscription takes one message, and no client sets a window for it."""
        return implies(self.is_get[consumer], ~self.limited[consumer])

    @leads_to(
        IS_DELIVERED,
        fair=("look_back", "deliver", "pass_over", "come_due", "expire"),
        by=DELIVERED_BY,
    )
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """The same for a consumer that has room for each entry up to this one."""
        waits, ends = super().wanted_is_delivered(consumer, m)
        no_room = exists(Entry, lambda e: self.at_or_before(e, m) & ~self.has_room(consumer, e))
        return waits & ~self.is_get[consumer], ends | no_room
