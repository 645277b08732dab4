"""The state of the whole contract: what the protocol allows beyond the core.

Owns what `whole.py` changes besides the core's state: windows that change, of messages and of
bytes, of consumers and of channels; queues that are deleted; a clock; crashes; places after a
return. It redefines the terms of the core's guards (`has_room`, `precedes`, `there_for` and others)
for the whole. It has no action and no requirement.

Time is one number for each queue, all equal, and ends at `horizon`, because a scope is finite.
`stamp` says when an entry came to its place, if returned messages do not go back to their places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from brokerproof.models.contract.core import Contract
from brokerproof.models.contract.core_state import (
    Channel,
    Consumer,
    Entry,
    Mode,
    Queue,
    Status,
)
from brokerproof.models.language import (
    FALSE,
    TRUE,
    Bool,
    Enumeration,
    Fixed,
    FixedRelation,
    Int,
    Map,
    axiom,
    counts,
    exists,
    implies,
    initial,
    invariant,
    ite,
)
from brokerproof.models.language.core.terms import Term, integer


class End(Enumeration):
    """How an entry left its queue for good.

    A message that was held when its queue was deleted is `TAKEN_AWAY`; a message that was settled
    before a crash is `FINAL`. `DROPPED` and `EXHAUSTED` occur in job queues only (`jobs.py`): the
    queue was too long, or the message was delivered as often as allowed.
    """

    NONE: ClassVar[End]
    SETTLED: ClassVar[End]
    PURGED: ClassVar[End]
    DELETED: ClassVar[End]
    TAKEN_AWAY: ClassVar[End]
    REPLACED: ClassVar[End]
    LOST: ClassVar[End]
    FINAL: ClassVar[End]
    DROPPED: ClassVar[End]
    EXHAUSTED: ClassVar[End]


class WholeContractState(Contract):
    """The state of the whole contract, and the meaning of the core's guards in it."""

    concerned: FixedRelation[Consumer, Entry]
    size: Fixed[Entry, Int]
    not_before: Fixed[Entry, Int]
    expires: Fixed[Entry, Int]
    replaces: FixedRelation[Entry, Entry]
    ties: FixedRelation[Entry, Entry]
    survives: Fixed[Entry, Bool]
    rank: Fixed[Consumer, Int]
    closes_itself: Fixed[Consumer, Bool]
    exclusive: Fixed[Consumer, Bool]
    subscribed: FixedRelation[Consumer, Queue]
    deletes_itself: Fixed[Queue, Bool]
    is_sorted_by_key: Fixed[Queue, Bool]
    when_idle: Bool
    to_tail: Bool
    to_head: Bool
    horizon: Int

    limited: Map[Consumer, Bool]  # type: ignore[assignment]  # here a window can be replaced
    limit: Map[Consumer, Int]  # type: ignore[assignment]
    byte_limited: Map[Consumer, Bool]
    byte_limit: Map[Consumer, Int]
    unsettled_bytes: Map[Consumer, Int]
    pooled: Map[Channel, Bool]
    pool: Map[Channel, Int]
    in_pool: Map[Channel, Int]
    byte_pooled: Map[Channel, Bool]
    byte_pool: Map[Channel, Int]
    bytes_in_pool: Map[Channel, Int]
    lowered: Map[Consumer, Bool]
    end: Map[Entry, End]
    spared: Map[Entry, Bool]
    superseded: Map[Entry, Bool]
    restarted: Map[Entry, Bool]
    either_flag: Map[Entry, Bool]
    stamp: Map[Entry, Int]
    stamps: Map[Queue, Int]
    now: Map[Queue, Int]
    used: Map[Queue, Bool]
    gone: Map[Queue, Bool]
    untold: Map[Consumer, Bool]

    @axiom("sizes-are-not-negative")
    def sizes_are_not_negative(self, e: Entry) -> Bool:
        """A message's size is at least 0 bytes."""
        return self.size[e] >= 0

    @invariant("windows-are-not-negative")
    def windows_are_not_negative(self, c: Consumer) -> Bool:
        """A window is at least 0; a window of 0 is a pause."""
        return self.limit[c] >= 0

    @axiom("wanted-is-concerned")
    def wanted_is_concerned(self, c: Consumer, e: Entry) -> Bool:
        """A selector chooses among the messages of the queues subscribed to."""
        return implies(self.wants[c, e], self.concerned[c, e]) & (
            self.concerned[c, e] == self.subscribed[c, self.home[e]]
        )

    @axiom("ties-are-of-one-level")
    def ties_are_of_one_level(self, e: Entry, f: Entry) -> Bool:
        """Arrival alone orders two entries of a level, except in a queue that is sorted by key."""
        of_one_level = super().of_one_level
        tied, by_key = self.ties[e, f], self.is_sorted_by_key[self.home[e]]
        needed = of_one_level(e, f) & ~by_key
        is_right = implies(tied, of_one_level(e, f) & self.ties[f, e]) & implies(needed, tied)
        return (e == f) | is_right

    @axiom("replacing-is-mutual")
    def replacing_is_mutual(self, e: Entry, f: Entry) -> Bool:
        """Of two entries of one key in a queue, the later arrival replaces the earlier one."""
        return implies(self.replaces[e, f], self.replaces[f, e] & (self.home[e] == self.home[f]))

    @axiom("one-way-to-return")
    def one_way_to_return(self) -> Bool:
        """A broker claims at most one position for returned messages."""
        return (
            ~(self.returns_to_place & self.to_tail)
            & ~(self.returns_to_place & self.to_head)
            & ~(self.to_tail & self.to_head)
        )

    @initial
    def nothing_yet(self) -> None:
        """No message has been published, no consumer is subscribed, no window is set."""
        super().nothing_yet()
        for truth in (
            self.limited,
            self.byte_limited,
            self.pooled,
            self.byte_pooled,
            self.lowered,
            self.spared,
            self.superseded,
            self.restarted,
            self.either_flag,
            self.used,
            self.gone,
            self.untold,
        ):
            truth.fill(False)
        for number in (
            self.limit,
            self.byte_limit,
            self.unsettled_bytes,
            self.pool,
            self.in_pool,
            self.byte_pool,
            self.bytes_in_pool,
            self.stamp,
            self.stamps,
            self.now,
        ):
            number.fill(0)
        self.end.fill(End.NONE)

    @counts("unsettled", by=("what-is-gone-has-ended", "a-queue-drops-only-if-told-to"))
    def what_it_holds(self, consumer: Consumer, e: Entry) -> Bool:
        """A consumer's unsettled count is its entries held, or taken away with their queue."""
        held = (self.status[e] == Status.ACQUIRED) | (self.end[e] == End.TAKEN_AWAY)
        return held & (self.holder[e] == consumer)

    # Terms of the core's guards.

    def concerns(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is in a queue that the consumer subscribed to."""
        return self.concerned[consumer, f]

    def of_one_level(self, e: Entry, f: Entry) -> Bool:
        """Whether only their arrival orders two entries: by key, not every pair of a level."""
        return self.ties[e, f]

    def is_due(self, f: Entry) -> Bool:
        """Whether the entry's time has come and is not over."""
        now = self.now[self.home[f]]
        return (now >= self.not_before[f]) & (now < self.expires[f])

    def is_purged(self, queue: Queue, f: Entry) -> Bool:
        """Whether a purge of the queue drops the entry: it is available there, at this time."""
        return self.is_in(queue, f) & (self.status[f] == Status.AVAILABLE) & self.is_due(f)

    def is_spared(self, queue: Queue, f: Entry) -> Bool:
        """Whether a purge of the queue leaves the entry with its consumer."""
        return self.is_in(queue, f) & (self.status[f] == Status.ACQUIRED)

    def must_be_told(self, consumer: Consumer) -> Bool:
        """Whether the broker still has to tell the consumer that its queue was deleted."""
        return self.untold[consumer]

    def there_for(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is available, at this time, and concerns the consumer."""
        return super().there_for(consumer, f) & self.is_due(f)

    def knows_places(self) -> Bool:
        """Whether a requirement says where a returned message goes."""
        return self.returns_to_place | self.to_tail | self.to_head

    def precedes(self, e: Entry, f: Entry) -> Bool:
        """Whether e comes before f, wherever returned messages go."""
        moves = self.to_tail | self.to_head
        ahead = self.to_head & self.has_returned(e) & ~self.has_returned(f)
        behind = self.to_head & self.has_returned(f) & ~self.has_returned(e)
        # After a restart an entry that had been acquired may be at either place.
        known = ~self.either_flag[e] & ~self.either_flag[f]
        came_first = known & (ahead | (~behind & (self.stamp[e] < self.stamp[f])))
        return ite(moves & self.ties[e, f], came_first, self.before(e, f))

    def may_precede(self, e: Entry, f: Entry) -> Bool:
        """Whether e may come before f, since no requirement places it behind."""
        return (e != f) & ~self.precedes(f, e)

    def is_told_as(self, f: Entry, redelivered: Bool) -> Bool:
        """Whether the flag is allowed; an entry acquired before a crash may carry either."""
        return self.either_flag[f] | (redelivered == self.has_returned(f))

    def can_be_cancelled(self, consumer: Consumer) -> Bool:
        """Whether the client may believe the consumer is there; it may have closed by itself."""
        return self.consuming[consumer] | self.closes_itself[consumer] | self.untold[consumer]

    def is_not_selected(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is available in the consumer's queue and its selector leaves it out."""
        there = self.status[f] == Status.AVAILABLE
        return there & self.concerned[consumer, f] & ~self.wants[consumer, f]

    def is_held_or_settled(self, f: Entry) -> Bool:
        """Whether a consumer holds the entry or has settled it."""
        return (self.status[f] == Status.ACQUIRED) | (self.end[f] == End.SETTLED)

    def fits_message(self, limited: Bool, limit: Int, held: Int, consumer: Consumer) -> Bool:
        """Whether a window lets one more message through."""
        fills = self.mode[consumer] == Mode.ACKNOWLEDGE
        return ~limited | ite(fills, held < limit, limit > 0)

    def fits_bytes(
        self, limited: Bool, limit: Int, held: Int, consumer: Consumer, f: Entry
    ) -> Bool:
        """Whether a window of bytes lets the entry through."""
        fills = self.mode[consumer] == Mode.ACKNOWLEDGE
        return ~limited | (
            (limit > 0) & ite(fills, held + self.size[f] <= limit, self.size[f] <= limit)
        )

    def is_idle_for(self, held: Int, limit: Int, f: Entry) -> Bool:
        """Whether the entry is larger than an unused window and may be sent all the same."""
        return self.when_idle & (held == 0) & (limit > 0) & (self.size[f] > limit)

    def has_messages_left(self, consumer: Consumer) -> Bool:
        """Whether the consumer's own window lets one more message through."""
        return self.fits_message(
            self.limited[consumer], self.limit[consumer], self.unsettled[consumer], consumer
        )

    def has_bytes_left(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the consumer's own window of bytes lets the entry through, or may do so."""
        held, limit = self.unsettled_bytes[consumer], self.byte_limit[consumer]
        return self.fits_bytes(
            self.byte_limited[consumer], limit, held, consumer, f
        ) | self.is_idle_for(self.unsettled[consumer], limit, f)

    def has_pool_left(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the windows of the consumer's channel let the entry through, or may do so."""
        at = self.channel[consumer]
        messages = self.fits_message(self.pooled[at], self.pool[at], self.in_pool[at], consumer)
        limit = self.byte_pool[at]
        in_bytes = self.fits_bytes(self.byte_pooled[at], limit, self.bytes_in_pool[at], consumer, f)
        return messages & (in_bytes | self.is_idle_for(self.in_pool[at], limit, f))

    def has_room(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether every window of the consumer lets the entry through, or may do so."""
        return (
            self.has_messages_left(consumer)
            & self.has_bytes_left(consumer, f)
            & self.has_pool_left(consumer, f)
        )

    def counts_bytes(self, consumer: Consumer) -> Bool:
        """Whether some window of the consumer counts bytes."""
        return self.byte_limited[consumer] | self.byte_pooled[self.channel[consumer]]

    def must_take(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the consumer's windows certainly let the entry through under every rule.

        Two rules disagree about a message larger than the window of a consumer that never fills it.
        """
        open_ = (
            (self.mode[consumer] != Mode.ACKNOWLEDGE) & self.when_idle & self.counts_bytes(consumer)
        )
        return self.has_room(consumer, f) & ~open_

    def waits_before(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the consumer may be waiting at an earlier entry for which it has no room.

        A browser may wait at any entry that its place has not certainly passed.
        """
        return exists(
            Entry,
            lambda g: (
                self.there_for(consumer, g)
                & self.may_precede(g, f)
                & ~((self.mode[consumer] == Mode.BROWSE) & self.behind[consumer, g])
                & ~self.must_take(consumer, g)
            ),
        )

    def has_consumers(self, queue: Queue) -> Bool:
        """Whether a consumer is subscribed to the queue."""
        return exists(Consumer, lambda c: self.consuming[c] & self.subscribed[c, queue])

    def is_unused(self, queue: Queue) -> Bool:
        """Whether the queue is auto-delete, had consumers, and has none."""
        return (
            self.deletes_itself[queue]
            & self.used[queue]
            & ~self.gone[queue]
            & ~self.has_consumers(queue)
        )

    def is_left_for(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is certainly ahead of the consumer's place, and is wanted there."""
        may_be_behind = (self.mode[consumer] == Mode.BROWSE) & self.excused[consumer, f]
        return self.there_for(consumer, f) & ~may_be_behind

    def may_be_left_for(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry may be ahead of the consumer's place, and the consumer wants it.

        A browser need not have passed an entry that it is excused from, and may wait at it.
        """
        is_behind = (self.mode[consumer] == Mode.BROWSE) & self.behind[consumer, f]
        return self.there_for(consumer, f) & ~is_behind


PLAIN_QUEUE: Final[Mapping[str, Callable[..., Term]]] = {
    "home": lambda queue, _entry: queue.queue,
    "used": lambda queue, home: queue.subscribed_to[home],
    "limited": lambda queue, consumer: queue.paused[consumer],
    **dict.fromkeys(("to_tail", "when_idle"), lambda _queue: FALSE),
    "horizon": lambda _queue: integer(0),
    "fifo": lambda _queue, _home: TRUE,
    **dict.fromkeys(("wants", "concerned", "subscribed", "ties"), lambda *_: TRUE),
    **dict.fromkeys(
        ("level", "size", "not_before", "limit", "byte_limit", "pool", "byte_pool", "now", "rank"),
        lambda _queue, _one: integer(0),
    ),
    "expires": lambda _queue, _entry: integer(1),
    **dict.fromkeys(
        (
            *("meddled", "superseded", "closes_itself", "exclusive", "deletes_itself"),
            *("is_sorted_by_key", "byte_limited", "pooled", "byte_pooled", "gone", "untold"),
        ),
        lambda _queue, _one: FALSE,
    ),
    **dict.fromkeys(
        ("excused", "behind", "may_repeat", "shown", "came_back", "replaces"),
        lambda _queue, _one, _other: FALSE,
    ),
}
"""The contract's symbols for one queue that has no levels, sizes, clock, windows or browsers.

A refinement adds what its algorithm has. The queue is never deleted, and all consumers want all
messages. Functions take the algorithm's state and the symbol's places.
"""
