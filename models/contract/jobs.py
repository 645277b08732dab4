"""The contract of job queues: leases, limits, dead letters, delays, groups, unordered queues.

Each action of the whole contract is extended here, and these capabilities add actions of their own.
The oracle follows a candidate by this contract only if it claims one of them.

The sources of each requirement are in `spec/requirements/jobs.toml`.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core_state import (
    Channel,
    Consumer,
    Entry,
    Queue,
    Status,
)
from brokerproof.models.contract.jobs_guards import JobContractGuards
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import (
    Bool,
    Int,
    action,
    empty_at_zero,
    exercises,
    exists,
    ite,
    require,
)


class JobContract(JobContractGuards):
    """The behaviours that a conforming broker may show, with the capabilities of job queues."""

    # The actions of clients.

    @action
    def publish(self, entry: Entry) -> None:
        """The broker has taken responsibility for a message, and its queue had room for it."""
        home = self.home[entry]
        exercises("length-limit-kept", self.length[home] > 0)
        require(self.drops_head[home] | ~self.is_full(home), "length-limit-kept")
        super().publish(entry)

    @action
    def refuse_publish(self, queue: Queue) -> None:
        """The broker refuses a message since its queue is full."""
        require(self.is_full(queue) & ~self.drops_head[queue], "refused-only-when-full")
        exercises("refused-only-when-full")

    @action
    def drop_head(self, queue: Queue, entry: Entry) -> None:
        """A queue that is too long drops its first message."""

        def is_earlier(f: Entry) -> Bool:
            return self.waits_in(queue, f) & self.precedes(f, entry)

        require(self.drops_head[queue] & self.is_too_long(queue) & self.waits_in(queue, entry))
        require(~exists(Entry, is_earlier))
        exercises("head-is-dropped")
        self._ends(lambda f: f == entry, End.DROPPED)

    @action
    def keep_all(self, queue: Queue) -> None:
        """A queue that is not too long keeps all its messages."""
        require(~(self.drops_head[queue] & self.is_too_long(queue)))

    @action
    def reject(self, entry: Entry) -> None:
        """A client rejects a delivery: the message is discarded, or becomes a dead letter."""
        buried = self.buries_rejected[self.home[entry]] & ~self.is_dead(entry)
        super().reject(entry)
        self._leaves_its_group(entry)
        self.status[entry] = ite(buried, Status.AVAILABLE, Status.DEQUEUED)
        self.end[entry] = ite(buried, End.NONE, End.SETTLED)
        self._becomes_a_dead_letter(lambda f: (f == entry) & buried)

    @action
    def acknowledge(self, entry: Entry) -> None:
        """A client acknowledges a delivery: the message is settled for good."""
        super().acknowledge(entry)
        self._leaves_its_group(entry)

    @action
    def release(self, entry: Entry) -> None:
        """A client releases a delivery: the message returns, or was delivered often enough."""
        super().release(entry)
        self._leaves_its_group(entry)
        self._buries_what_is_exhausted()

    @action
    def release_later(self, entry: Entry, seconds: Int) -> None:
        """A client releases a delivery, and the message is available after a time."""
        now = self.now[self.home[entry]]
        require((seconds >= 0) & (now + seconds <= self.horizon))
        self.release(entry)
        self.waits_until[entry] = now + seconds

    @action
    def release_at_close(self, entry: Entry) -> None:
        """A message of a channel that is about to close returns in its turn."""
        super().release_at_close(entry)
        self._leaves_its_group(entry)
        self._buries_what_is_exhausted()

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel closes; messages of a group have returned one by one before."""
        require(~exists(Entry, lambda f: self.goes_back(which, f) & self.has_group(f)))
        super().close_channel(which)
        self._buries_what_is_exhausted()

    @action
    def forget_held(self, entry: Entry) -> None:
        """A purge takes a held message from its consumer and its group."""
        super().forget_held(entry)
        self._leaves_its_group(entry)

    @action
    def settle_by_name(self, entry: Entry) -> None:
        """A client settles a message by an old delivery, where a delivery names the message."""
        require(self._is_in_it(entry))
        held = self.status[entry] == Status.ACQUIRED
        consumer, at = self.holder[entry], self.channel[self.holder[entry]]
        counts = held & self.consuming[consumer]
        self.unsettled[consumer] = ite(held, self.unsettled[consumer] - 1, self.unsettled[consumer])
        self.unsettled_bytes[consumer] = ite(
            held, self.unsettled_bytes[consumer] - self.size[entry], self.unsettled_bytes[consumer]
        )
        self.in_pool[at] = ite(counts, self.in_pool[at] - 1, self.in_pool[at])
        self.bytes_in_pool[at] = ite(
            counts, self.bytes_in_pool[at] - self.size[entry], self.bytes_in_pool[at]
        )
        self._leaves_its_group(entry, held)
        self._ends(lambda f: f == entry, End.SETTLED)

    @action
    def settle_late(self, entry: Entry) -> None:
        """A client settles a delivery whose lease has ended: nothing changes."""
        require(self.status[entry] != Status.ABSENT)
        exercises("lease-is-over")
        self.late[entry] = True

    @action
    def extend(self, entry: Entry) -> None:
        """A client renews the lease of a message that it holds."""
        require(self.is_leased(entry))
        self.due[entry] = self.now[self.home[entry]] + self.lease[self.queue_of(entry)]

    @action
    def crash(self) -> None:
        """The broker stops, and restarts from its durable state."""
        super().crash()
        self._restarts()

    @action
    def crash_at_work(self) -> None:
        """The broker stops while it may be delivering messages that no consumer was told of."""
        super().crash_at_work()
        self._restarts()

    def _restarts(self) -> None:
        self.held_of.fill(0)
        self._buries_what_is_exhausted()

    # The actions and reports of the broker.

    @action
    def lease_ends(self, entry: Entry) -> None:
        """The lease of a held message ends: the message returns to its queue.

        A broker in real time may be ahead of the clock by the tolerance.
        """
        latest = self.now[self.home[entry]] + self.tolerance
        require(self.is_leased(entry) & (latest >= self.due[entry]))
        self.release(entry)
        self.lapsed[entry] = ~self.is_dead(entry) & (self.status[entry] == Status.AVAILABLE)

    @action
    def lease_expired(self, entry: Entry) -> None:
        """The broker reports that the lease of a message has ended."""
        self._requires_no_lease(entry)

    @action
    def deliver(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker delivers an entry to a consumer, and its lease begins."""
        empty_at_zero(self.held_of, Entry, self.what_is_held_of_a_group)
        self._requires_it_to_be_free(consumer, entry)
        super().deliver(consumer, entry, redelivered)

    @action
    def get(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker answers a get with the first available entry, and its lease begins."""
        empty_at_zero(self.held_of, Entry, self.what_is_held_of_a_group)
        self._requires_it_to_be_free(consumer, entry)
        super().get(consumer, entry, redelivered)

    @action
    def tell_count(self, entry: Entry, count: Int) -> None:
        """The broker tells how often the message was delivered before."""
        before = self.times[entry] - self.buried_at[entry] - 1
        require(count == before, "delivery-count")
        exercises("delivery-count", before > 0)

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """The broker answers a get without a message."""
        for label, has_happened in self._ways_to_wait():
            self._requires_none(label, lambda f: self.there_for(consumer, f), has_happened)
        exercises(
            "group-one-consumer",
            exists(
                Entry, lambda f: self._would_be_there(consumer, f) & self.is_locked(consumer, f)
            ),
        )
        super().get_nothing(consumer)

    @action
    def quiesce(self) -> None:
        """The broker reports that no further event follows until a client acts."""
        self._requires_what_waited()
        super().quiesce()

    @action
    def quiesce_by_size(self) -> None:
        """The same for byte windows: a consumer waits at a message that does not fit."""
        self._requires_what_waited()
        super().quiesce_by_size()

    def _requires_what_waited(self) -> None:
        def owed(has_happened: Callable[[Entry], Bool]) -> Bool:
            return exists(
                Consumer,
                Entry,
                lambda c, f: (
                    self.takes(c) & self.must_take(c, f) & self.there_for(c, f) & has_happened(f)
                ),
            )

        for label, has_happened in self._ways_to_wait():
            require(~owed(has_happened), label)
        exercises("lease-holds", exists(Entry, self.is_leased))
        exercises(
            "lease-renewed",
            exists(Entry, lambda f: self.is_leased(f) & self._is_beyond_its_first_lease(f)),
        )
        exercises("delivery-limit-kept", exists(Entry, self.is_dead))
        exercises("delivery-limit-kept", exists(Entry, lambda f: self.end[f] == End.EXHAUSTED))
        exercises(
            "group-one-consumer",
            exists(
                Consumer,
                Entry,
                lambda c, f: self.takes(c) & self._would_be_there(c, f) & self.is_locked(c, f),
            ),
        )

    def _ways_to_wait(self) -> tuple[tuple[str, Callable[[Entry], Bool]], ...]:
        """Return the requirements of messages that became available without a client."""
        return (
            ("lease-is-over", lambda f: self.late[f]),
            ("lease-ends", lambda f: self.lapsed[f]),
            ("dead-letter-arrives", lambda f: self.is_dead(f) & ~self.was_delivered_since(f)),
            ("delayed-release-returns", lambda f: self.waits_until[f] > 0),
        )

    def histories(self) -> tuple[tuple[str, Callable[[Entry], Bool]], ...]:
        """Return the requirements that a lost message can break, by what had happened to it."""
        return (*self._ways_to_wait(), *super().histories())


JobContract.equivalent_mutants = """
The gate asks this to know when to stop waiting; it is no step of a broker.
    rest: guard 4*12
The gate takes this step itself, and only where the guard allows it: no broker is judged.
    drop_in_a_crash: guard 1*7; release_later: guard 1*5; settle_late: guard 1*2;
    extend: guard 1*5
A scope counts deliveries up to its horizon; a broker has no such bound.
    deliver: guard 10*2; get: guard 10*2; deliver_by_rank: guard 11*2
No statement says again when a queue is full or too long; planted faults of the job queue do.
    publish: length-limit-kept*5; refuse_publish: refused-only-when-full*4;
    drop_head: guard 1*55, guard 2*19; keep_all: guard 1*30
A ledger or an algorithm refutes this in the whole contract; job queues have neither.
    publish: excused*7, behind*2; consume: excused*9;
    release_later: came_back, stamp*6, stamps*6; lease_ends: came_back, stamp*6, stamps*6
No statement says when a lease ends: planted faults end it early, late or never.
    lease_ends: guard 1*5; extend: due; shared: is_leased*3
If no message has a group, the planted fault `groups-are-ignored` is not found.
    shared: has_group
A delivery sets the value before it is read.
    initially: due*2, first_due*2
It decides which requirement a lost message breaks, not whether it breaks one.
    lease_ends: lapsed*6
What a difference allows is tried on real brokers; no invariant says how much it is.
    purge: spared*3, voided*4
No ledger of job queues says when a message is owed; each of these guards has a planted fault.
    get_nothing: lease-is-over, lease-ends, dead-letter-arrives, delayed-release-returns;
    final_drain: lease-is-over, lease-ends, dead-letter-arrives, delayed-release-returns;
    quiesce_by_size: lease-is-over*5, lease-ends*5, dead-letter-arrives*5,
    delayed-release-returns*5; lease_expired: lease-holds, lease-renewed;
    tell_count: delivery-count
"""
