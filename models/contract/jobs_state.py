"""The state of the contract for job queues: leases, limits, dead letters, groups.

Owns what `jobs.py` changes besides the state of the whole contract, and redefines the terms of its
guards. `times` counts the deliveries of an entry. A dead letter is the same entry in another queue,
its `grave`: `buried_at` is the number of its deliveries before, 0 for an entry in its own queue. No
order is asked of dead letters. An entry whose lease has ended is `lapsed` until it is delivered
again; it is `late` once a client has settled it through the delivery whose lease had ended. The
`horizon` bounds the number of deliveries too.
"""

from __future__ import annotations

from brokerproof.models.contract.core_state import Consumer, Entry, Group, Queue, Status
from brokerproof.models.contract.lawful_differences import LawfulContract
from brokerproof.models.language import (
    Bool,
    Fixed,
    FixedRelation,
    Int,
    Map,
    axiom,
    exists,
    implies,
    initial,
    ite,
)


class JobContractState(LawfulContract):
    """The state of the contract for job queues, and the meaning of the guards in it."""

    ordered: Fixed[Queue, Bool]
    lease: Fixed[Queue, Int]
    most: Fixed[Queue, Int]
    length: Fixed[Queue, Int]
    drops_head: Fixed[Queue, Bool]
    buries_exhausted: Fixed[Queue, Bool]
    buries_rejected: Fixed[Queue, Bool]
    grave: Fixed[Entry, Queue]
    visits: FixedRelation[Consumer, Entry]
    group: Fixed[Entry, Group]
    home_of: Fixed[Group, Queue]
    in_group: Fixed[Entry, Bool]
    tells_returns: Bool
    tolerance: Int

    due: Map[Entry, Int]
    first_due: Map[Entry, Int]
    times: Map[Entry, Int]
    waits_until: Map[Entry, Int]
    buried_at: Map[Entry, Int]
    lapsed: Map[Entry, Bool]
    late: Map[Entry, Bool]
    held_of: Map[Group, Int]
    owner: Map[Group, Consumer]

    @axiom("dead-letters-lie-elsewhere")
    def dead_letters_lie_elsewhere(self, e: Entry) -> Bool:
        """A queue that buries has another queue as its dead-letter queue, which buries nothing."""
        buries = self.buries_exhausted[self.home[e]] | self.buries_rejected[self.home[e]]
        grave = self.grave[e]
        return implies(
            buries,
            (grave != self.home[e]) & ~self.buries_exhausted[grave] & ~self.buries_rejected[grave],
        )

    @axiom("visitors-subscribe-to-the-grave")
    def visitors_subscribe_to_the_grave(self, c: Consumer, e: Entry) -> Bool:
        """A consumer is given a dead letter only of a queue that it subscribed to."""
        return self.visits[c, e] == self.subscribed[c, self.grave[e]]

    @axiom("a-group-is-within-a-queue")
    def a_group_is_within_a_queue(self, e: Entry) -> Bool:
        """The messages of a group are published to one queue."""
        return implies(self.in_group[e], self.home_of[self.group[e]] == self.home[e])

    @axiom("limits-are-not-negative")
    def limits_are_not_negative(self, q: Queue) -> Bool:
        """A lease, a limit of deliveries and a length are at least 0, which means none."""
        return (self.lease[q] >= 0) & (self.most[q] >= 0) & (self.length[q] >= 0)

    @initial
    def nothing_yet(self) -> None:
        """No message has been published or delivered."""
        super().nothing_yet()
        for truth in (self.lapsed, self.late):
            truth.fill(False)
        for number in (
            self.due,
            self.first_due,
            self.times,
            self.buried_at,
            self.waits_until,
            self.held_of,
        ):
            number.fill(0)
        self.owner = self.owner.map(lambda _, old: old)

    # Terms of the guards.

    def is_dead(self, f: Entry) -> Bool:
        """Whether the entry is a dead letter."""
        return self.buried_at[f] > 0

    def was_delivered_since(self, f: Entry) -> Bool:
        """Whether the dead letter was delivered as such."""
        return self.times[f] > self.buried_at[f]

    def is_in(self, queue: Queue, f: Entry) -> Bool:
        """Whether the entry belongs to the queue: its own, or its dead-letter queue."""
        at_home = ~self.is_dead(f) & super().is_in(queue, f)
        return at_home | (self.is_dead(f) & (self.grave[f] == queue))

    def concerns(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is in a queue that the consumer subscribed to."""
        at_home = ~self.is_dead(f) & super().concerns(consumer, f)
        return at_home | (self.is_dead(f) & self.visits[consumer, f])

    def is_due(self, f: Entry) -> Bool:
        """Whether the entry's time has come, after a delayed release too, and is not over."""
        return super().is_due(f) & (self.now[self.home[f]] >= self.waits_until[f])

    def is_locked(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether another consumer holds a message of the entry's group."""
        group = self.group[f]
        return self.has_group(f) & (self.held_of[group] > 0) & (self.owner[group] != consumer)

    def has_group(self, f: Entry) -> Bool:
        """Whether the entry is of a group; a dead letter is not."""
        return self.in_group[f] & ~self.is_dead(f)

    def there_for(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether the entry is available, at this time, and concerns the consumer."""
        available = (self.status[f] == Status.AVAILABLE) & self.is_due(f)
        wanted = (~self.is_dead(f) & self.wants[consumer, f]) | (
            self.is_dead(f) & self.visits[consumer, f]
        )
        return available & wanted & ~self.is_locked(consumer, f)

    def precedes(self, e: Entry, f: Entry) -> Bool:
        """Whether e comes before f; nothing does in an unordered queue, or among dead letters."""
        has_places = self.ordered[self.home[e]] & ~self.is_dead(e) & ~self.is_dead(f)
        return has_places & super().precedes(e, f)

    def is_told_as(self, f: Entry, redelivered: Bool) -> Bool:
        """Whether the flag is allowed; a broker that tells no returns may send either."""
        return ~self.tells_returns | super().is_told_as(f, redelivered)

    def queue_of(self, f: Entry) -> Queue:
        """The queue that the entry is in."""
        return ite(self.is_dead(f), self.grave[f], self.home[f])

    def is_leased(self, f: Entry) -> Bool:
        """Whether a consumer holds the entry, and for a time only."""
        return (self.status[f] == Status.ACQUIRED) & (self.lease[self.queue_of(f)] > 0)

    def is_exhausted(self, f: Entry) -> Bool:
        """Whether the entry was delivered as often as its queue allows."""
        most = self.most[self.home[f]]
        return ~self.is_dead(f) & (most > 0) & (self.times[f] >= most)

    def waits_in(self, queue: Queue, f: Entry) -> Bool:
        """Whether the entry is available in the queue, and so counts for its length."""
        return (self.status[f] == Status.AVAILABLE) & self.is_in(queue, f)

    def is_full(self, queue: Queue) -> Bool:
        """Whether as many messages wait as the queue may hold; lengths are 1 or 2."""
        one = exists(Entry, lambda f: self.waits_in(queue, f))
        return ((self.length[queue] == 1) & one) | ((self.length[queue] == 2) & self.has_two(queue))

    def is_too_long(self, queue: Queue) -> Bool:
        """Whether more messages wait than the queue may hold; lengths are 1 or 2."""
        three = exists(
            Entry,
            Entry,
            Entry,
            lambda f, g, h: (
                (f != g)
                & (g != h)
                & (f != h)
                & self.waits_in(queue, f)
                & self.waits_in(queue, g)
                & self.waits_in(queue, h)
            ),
        )
        return ((self.length[queue] == 1) & self.has_two(queue)) | (
            (self.length[queue] == 2) & three
        )

    def has_two(self, queue: Queue) -> Bool:
        """Whether at least two messages wait in the queue."""
        return exists(
            Entry,
            Entry,
            lambda f, g: (f != g) & self.waits_in(queue, f) & self.waits_in(queue, g),
        )
