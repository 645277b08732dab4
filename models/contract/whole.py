"""The whole contract: the behaviours that a conforming broker may show, with all capabilities.

Each action of `core.py` is extended here for the other capabilities of the protocol, and these
capabilities add actions of their own. Every guard of the core applies here too, with its terms
redefined. The oracle follows a candidate without further capabilities by the core alone, which is
faster; a test compares the two where both apply.

Guards that relate several entries (a consumer that waits at a message too large for it, a consumer
of higher priority) need certain worlds. They are actions of their own, used only if the candidate
claims those capabilities.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core_state import (
    Channel,
    Consumer,
    Entry,
    Mode,
    Origin,
    Queue,
    Status,
)
from brokerproof.models.contract.whole_guards import WholeContractGuards
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import (
    Bool,
    Int,
    action,
    exercises,
    exists,
    forall,
    implies,
    ite,
    require,
)


class WholeContract(WholeContractGuards):
    """The behaviours that a conforming broker may show, with all capabilities."""

    # The actions of clients.

    @action
    def publish(self, entry: Entry) -> None:
        """The broker has taken responsibility for a message, which may replace older ones."""

        def is_replaced(f: Entry) -> Bool:
            return (f != entry) & self.replaces[entry, f]

        require(~self.gone[self.home[entry]], "refuses-what-it-must")
        super().publish(entry)
        self._ends(lambda f: is_replaced(f) & (self.status[f] == Status.AVAILABLE), End.REPLACED)
        self.superseded = self.superseded.map(
            lambda f, old: old | (is_replaced(f) & (self.status[f] == Status.ACQUIRED))
        )
        # A browser's place may pass a message that is not due, as it passes an acquired one.
        self.excused = self.excused.map(
            lambda c, f, old: (
                old
                | (
                    (f == entry)
                    & ~self.is_due(f)
                    & self.consuming[c]
                    & (self.mode[c] == Mode.BROWSE)
                )
            )
        )

    @action
    def consume(self, consumer: Consumer) -> None:
        """A client subscribes; the consumer gets no message until its windows are set."""

        def stands_in_the_way(c: Consumer) -> Bool:
            together = exists(Queue, lambda q: self.subscribed[c, q] & self.subscribed[consumer, q])
            alone = self.exclusive[c] | self.exclusive[consumer]
            return self.consuming[c] & (c != consumer) & alone & together

        require(
            ~exists(Queue, lambda q: self.subscribed[consumer, q] & self.gone[q]),
            "refuses-what-it-must",
        )
        require(~exists(Consumer, stands_in_the_way), "exclusive-is-alone")
        super().consume(consumer)
        at = self.channel[consumer]
        self.in_pool[at] = self.in_pool[at] + self.unsettled[consumer]
        self.bytes_in_pool[at] = self.bytes_in_pool[at] + self.unsettled_bytes[consumer]
        self.limited[consumer] = True
        self.limit[consumer] = 0
        self.lowered[consumer] = self.unsettled[consumer] > 0
        self.used = self.used.map(lambda q, old: old | self.subscribed[consumer, q])
        self.excused = self.excused.map(
            lambda c, f, old: (
                old
                | (
                    (c == consumer)
                    & (self.mode[c] == Mode.BROWSE)
                    & (self.status[f] == Status.AVAILABLE)
                    & ~self.is_due(f)
                )
            )
        )

    @action
    def set_credit(
        self, consumer: Consumer, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A client replaces a consumer's windows; a lower window takes no message back."""
        require((limit >= 0) & (byte_limit >= 0))
        self.limited[consumer] = limited
        self.limit[consumer] = limit
        self.byte_limited[consumer] = byte_limited
        self.byte_limit[consumer] = byte_limit
        self.lowered[consumer] = limited & (limit < self.unsettled[consumer])

    @action
    def set_pool(
        self, which: Channel, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A client replaces the windows that the consumers of a channel share."""
        require((limit >= 0) & (byte_limit >= 0))
        self.pooled[which] = limited
        self.pool[which] = limit
        self.byte_pooled[which] = byte_limited
        self.byte_pool[which] = byte_limit

    @action
    def cancel(self, consumer: Consumer) -> None:
        """A client cancels a consumer; the messages that it holds no longer count in any window."""
        there = self.consuming[consumer]
        super().cancel(consumer)
        self._leaves_its_pool(consumer, there)

    @action
    def acknowledge(self, entry: Entry) -> None:
        """A client acknowledges a delivery: the message is settled for good."""
        super().acknowledge(entry)
        self.end[entry] = End.SETTLED

    @action
    def reject(self, entry: Entry) -> None:
        """A client rejects a delivery: the message is discarded for good."""
        super().reject(entry)
        self.end[entry] = End.SETTLED

    @action
    def release(self, entry: Entry) -> None:
        """A client releases a delivery: the message returns to the place that the broker claims."""
        super().release(entry)
        self._stands_last(entry)
        self._drops_what_was_superseded()

    @action
    def release_at_close(self, entry: Entry) -> None:
        """A message of a channel that is about to close returns in its turn.

        If messages return to their original places, this step is not needed.
        """
        exercises("close-releases")
        super().release(entry)
        self.origin[entry] = Origin.CLOSED
        self._stands_last(entry)
        self._drops_what_was_superseded()

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel closes: consumers leave, their messages are released, the windows go."""
        super().close_channel(which)
        self.unsettled_bytes = self.unsettled_bytes.map(
            lambda c, old: ite(self.channel[c] != which, old, 0)
        )
        for truth in (self.pooled, self.byte_pooled):
            truth[which] = False
        for number in (self.in_pool, self.bytes_in_pool):
            number[which] = 0
        self._drops_what_was_superseded()
        self.end = self.end.map(
            lambda f, old: ite(
                (old == End.TAKEN_AWAY) & (self.channel[self.holder[f]] == which), End.DELETED, old
            )
        )

    @action
    def purge(self, queue: Queue) -> None:
        """A client purges a queue of its available messages; acquired ones stay."""
        self.spared = self.spared.map(lambda f, old: old | self.is_spared(queue, f))
        self._ends(lambda f: self.is_purged(queue, f), End.PURGED)

    @action
    def drop_in_a_crash(self, queue: Queue, entry: Entry) -> None:
        """The broker stops and loses one message that it may lose.

        Either a purge was under way, which need not drop all or none, or the message's publish had
        no answer.
        """
        require(self.is_in(queue, entry) & (self.status[entry] == Status.AVAILABLE))
        self._ends(lambda f: f == entry, End.PURGED)

    @action
    def leave(self, consumer: Consumer) -> None:
        """A consumer that is still there leaves as its queue is deleted, and has to be told."""
        there = self.consuming[consumer]
        self.consuming[consumer] = False
        self.untold[consumer] = self.untold[consumer] | there
        self._leaves_its_pool(consumer, there)

    @action
    def delete(self, queue: Queue) -> None:
        """A client deletes a queue and everything in it; its consumers have left before."""
        require(~self.has_consumers(queue))
        self._goes_with_everything(queue)

    @action
    def advance(self, seconds: Int) -> None:
        """A client moves the broker's clock."""
        require(seconds >= 0)
        require(forall(Queue, lambda q: self.now[q] + seconds <= self.horizon))
        self.now = self.now.map(lambda _, old: old + seconds)

    @action
    def crash(self) -> None:
        """The broker stops, and restarts from its durable state."""
        self._crashes(lambda f: (self.status[f] == Status.ACQUIRED) | self.has_returned(f))

    @action
    def crash_at_work(self) -> None:
        """The broker stops while it may be delivering messages that no consumer was told of."""
        self._crashes(self._is_in_it)

    def _is_in_it(self, f: Entry) -> Bool:
        return (self.status[f] == Status.AVAILABLE) | (self.status[f] == Status.ACQUIRED)

    def _crashes(self, was_acquired: Callable[[Entry], Bool]) -> None:
        is_in_it = self._is_in_it

        def is_lost(f: Entry) -> Bool:
            return is_in_it(f) & ~self.survives[f]

        self.either_flag = self.either_flag.map(lambda f, old: old | was_acquired(f))
        self.restarted = self.restarted.map(lambda f, old: old | (is_in_it(f) & self.survives[f]))
        self.end = self.end.map(lambda _, old: ite(old == End.SETTLED, End.FINAL, old))
        self.end = self.end.map(lambda _, old: ite(old == End.TAKEN_AWAY, End.DELETED, old))
        self.end = self.end.map(lambda f, old: ite(is_lost(f), End.LOST, old))
        self._stops(is_lost)
        self._drops_what_was_superseded()
        for truth in (self.pooled, self.byte_pooled, self.untold, self.used):
            truth.fill(False)
        for number in (self.unsettled_bytes, self.in_pool, self.bytes_in_pool):
            number.fill(0)

    # The actions and reports of the broker.

    @action
    def deliver(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker delivers an entry to a consumer whose selector it matches."""
        self._requires_what_it_selects(consumer, entry)
        self._requires_it_to_be_there(entry)
        self._requires_its_turn(consumer, entry)
        self._exercises_a_delivery(consumer, entry)
        super().deliver(consumer, entry, redelivered)

    @action
    def deliver_by_rank(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The same with consumer priorities: no higher consumer could have taken the entry."""

        def was_to_take_it(c: Consumer) -> Bool:
            first = ~exists(Entry, lambda g: self.there_for(c, g) & self.may_precede(g, entry))
            able = self.takes(c) & self.wants[c, entry] & self.must_take(c, entry)
            return (self.rank[c] > self.rank[consumer]) & able & first

        require(~exists(Consumer, was_to_take_it), "consumer-priority")
        exercises(
            "consumer-priority",
            exists(
                Consumer,
                lambda c: (
                    (self.rank[c] < self.rank[consumer])
                    & self.takes(c)
                    & self.wants[c, entry]
                    & self.must_take(c, entry)
                ),
            ),
        )
        self.deliver(consumer, entry, redelivered)

    @action
    def get(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker answers a get with the first available entry."""
        self._requires_it_to_be_there(entry)
        self._requires_its_turn(consumer, entry)
        self._exercises_a_delivery(consumer, entry)
        super().get(consumer, entry, redelivered)

    @action
    def browse(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker shows an entry to a browser whose selector it matches."""
        self._requires_what_it_selects(consumer, entry)
        self._requires_it_to_be_there(entry)
        super().browse(consumer, entry, redelivered)

    @action
    def flush(self, consumer: Consumer) -> None:
        """The broker reports that a consumer has got all messages that it can be given."""
        require(
            forall(
                Entry,
                lambda f: (
                    ~(
                        self.takes(consumer)
                        & self.must_take(consumer, f)
                        & self.there_for(consumer, f)
                        & ~self.waits_before(consumer, f)
                    )
                ),
            ),
            "flush-delivers",
        )
        exercises(
            "flush-delivers", exists(Entry, lambda f: self.wants[consumer, f] & self.taken(f))
        )

    @action
    def consumer_closed(self, consumer: Consumer) -> None:
        """A consumer has closed by itself: its queue was deleted, or it reached the queue's end."""
        asked = self.consuming[consumer] & self.closes_itself[consumer]
        require(self.untold[consumer] | asked, "closes-only-when-asked")
        require(
            forall(Entry, lambda f: self.untold[consumer] | ~self.is_left_for(consumer, f)),
            "auto-close-at-the-end",
        )
        exercises("closes-only-when-asked")
        exercises("auto-close-at-the-end", self.served[consumer])
        exercises("deletion-is-told", self.untold[consumer])
        there = self.consuming[consumer]
        self.untold[consumer] = False
        self.consuming[consumer] = False
        self._leaves_its_pool(consumer, there)

    @action
    def queue_deleted(self, queue: Queue) -> None:
        """A queue has deleted itself because it has no consumer any more."""
        require(self.is_unused(queue), "auto-delete-when-unused")
        exercises("auto-delete-when-unused")
        self._goes_with_everything(queue)

    @action
    def quiesce(self) -> None:
        """The broker reports that no further event follows until a client acts."""
        self._exercises_the_whole_at_rest()
        super().quiesce()

    @action
    def quiesce_by_size(self) -> None:
        """The same for byte windows: a consumer waits at a message that does not fit."""
        exercises(
            "byte-credit-not-exceeded",
            exists(
                Consumer,
                Entry,
                lambda c, f: (
                    self.consuming[c]
                    & self.counts_bytes(c)
                    & self.there_for(c, f)
                    & self.has_messages_left(c)
                    & ~self.has_bytes_left(c, f)
                ),
            ),
        )
        exercises(
            "channel-credit-not-exceeded",
            exists(
                Consumer,
                Entry,
                lambda c, f: self.consuming[c] & self.there_for(c, f) & ~self.has_pool_left(c, f),
            ),
        )
        self._requires_rest(lambda c, f: self.there_for(c, f) & ~self.waits_before(c, f))

    @action
    def nothing_is_left_to_close(self) -> None:
        """Every consumer and queue that ends by itself is gone, and every end has been reported."""
        require(
            forall(
                Consumer,
                lambda c: implies(
                    self.consuming[c] & self.closes_itself[c],
                    exists(Entry, lambda f: self.may_be_left_for(c, f)),
                ),
            ),
            "auto-close-happens",
        )
        require(forall(Queue, lambda q: ~self.is_unused(q)), "auto-delete-happens")
        require(forall(Consumer, lambda c: ~self.must_be_told(c)), "deletion-is-told")
        exercises(
            "auto-close-happens",
            exists(Consumer, lambda c: self.closes_itself[c] & self.served[c] & ~self.consuming[c]),
        )
        exercises("auto-delete-happens", exists(Queue, lambda q: self.gone[q]))

    @action
    def parked_is_taken(self) -> None:
        """The broker takes a parked publish after all; the oracle knows which one."""
        exercises("parked-publish-taken")

    @action
    def publish_still_waits(self) -> None:
        """The broker rests while a publish is parked, so there must be no room for it."""

        def takes_room(f: Entry) -> Bool:
            is_over = self.now[self.home[f]] >= self.expires[f]
            is_available = (self.status[f] == Status.AVAILABLE) & ~is_over
            return is_available | (self.status[f] == Status.ACQUIRED)

        require(exists(Entry, takes_room), "parked-publish-taken")

    @action
    def rest(self) -> None:
        """The broker can do nothing more, and report nothing more, by itself."""
        require(forall(Consumer, lambda c: ~self.must_be_told(c)))
        require(forall(Consumer, lambda c: ~(self.consuming[c] & self.closes_itself[c])))
        require(forall(Queue, lambda q: ~self.is_unused(q)))
        super().rest()

    def histories(self) -> tuple[tuple[str, Callable[[Entry], Bool]], ...]:
        """Return the requirements that a lost message can break, by what had happened to it."""
        return (
            ("survives-restart", lambda f: self.restarted[f]),
            ("purge-leaves-acquired", lambda f: self.spared[f]),
            *super().histories(),
        )


WholeContract.equivalent_mutants = """
The gate takes this step itself, and only where the guard allows it: no broker is judged.
    cancel: guard 1; set_pool: guard 1*2; drop_in_a_crash: guard 1;
    delete: guard 1; advance: guard 2*2
The gate asks this to know when to stop waiting; it is no step of a broker.
    rest: guard 1, guard 2, guard 3*3, guard 4*29
The gate's facts say which arrival is the last of its level, and `test_bindings` compares them.
    publish: guard 3
An arrival has not returned, and comes last of its level: no entry of its level is behind it.
    publish: behind*4
An expired or settled message is never available again, so no browser is owed it.
    publish: excused*2; consume: excused*2
Only the rows of browsers are read in `excused`.
    publish: excused; consume: excused; deliver_by_rank: excused
Only the order of stamps is read, and only where returned messages move.
    publish: stamps; release: stamp, stamps; release_at_close: stamp, stamps*2;
    initially: stamp, stamps
Only an invariant reads whether a window was lowered, and it asks less if it was.
    consume: lowered; set_credit: lowered*3; initially: lowered
A window is read only once it is set, and setting it sets all of it.
    initially: pool
No proved algorithm has both a crash and windows of channels.
    crash: in_pool*2, bytes_in_pool*2; crash_at_work: in_pool*2, bytes_in_pool*2
A message that a second crash does not find is settled or gone, so it cannot be lost any more.
    crash: restarted; crash_at_work: restarted
It decides which requirement a lost or missed message breaks, not whether it breaks one.
    purge: spared*3
No proved algorithm shows an idle browser a message larger than its window.
    browse: byte-credit-not-exceeded
"""
