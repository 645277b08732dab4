"""The whole contract, and what its clients have seen.

Adds to the ledger of the core what clients do and see with all capabilities: the broker's clock,
purges, deletions, crashes, windows that change, consumers and queues that end by themselves. It
keeps its own account of which messages wait and which are held, from the steps of clients alone.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core_state import Channel, Consumer, Entry, Mode, Queue
from brokerproof.models.contract.ledger.core import Ledger
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language import TRUE, Bool, Int, Map, Value, action, initial, ite


class WholeLedger(Ledger, WholeContract):
    """The whole contract with a ledger; a moment of 0 stands for never."""

    clock: Value[Int]
    at_rest_by_size: Value[Bool]
    flushed: Value[Bool]
    all_ended: Value[Bool]
    parked: Value[Bool]
    crashed_at: Value[Int]
    came_last_at: Value[Int]
    windows_set_at: Value[Int]
    pool_stirred_at: Value[Int]
    has_asked: Value[Bool]
    found_nothing_clock: Value[Int]
    dismissed_at: Value[Int]
    told_at: Value[Int]
    told_before: Value[Int]
    closed_at: Value[Int]
    closed_clock: Value[Int]
    out: Map[Entry, Bool]
    dropped: Map[Entry, Bool]
    arrival_clock: Map[Entry, Int]
    stands_since: Map[Entry, Int]
    stood_since: Map[Entry, Int]
    seen_clock: Map[Entry, Int]
    settled_at: Map[Entry, Int]
    outranked_at: Map[Entry, Int]
    purged_at: Map[Queue, Int]
    purge_clock: Map[Queue, Int]
    used_at: Map[Queue, Int]
    gone_at: Map[Queue, Int]
    ended_at: Map[Queue, Int]

    @initial
    def nothing_yet(self) -> None:
        """The ledger is empty."""
        super().nothing_yet()
        self.at_rest_by_size = self.flushed = self.all_ended = self.parked = False
        self.clock = self.crashed_at = self.came_last_at = self.found_nothing_clock = 0
        self.windows_set_at = self.pool_stirred_at = self.closed_at = self.closed_clock = 0
        self.dismissed_at = self.told_at = self.told_before = 0
        self.has_asked = False
        self.out.fill(False)
        self.dropped.fill(False)
        for of_message in (
            self.arrival_clock,
            self.stands_since,
            self.stood_since,
            self.seen_clock,
            self.settled_at,
            self.outranked_at,
        ):
            of_message.fill(0)
        for of_queue in (
            self.purged_at,
            self.purge_clock,
            self.used_at,
            self.gone_at,
            self.ended_at,
        ):
            of_queue.fill(0)

    # What the clients' actions write.

    @action
    def publish(self, entry: Entry) -> None:
        """A message arrives, and drops the waiting ones that it replaces."""
        moment = self.moment
        super().publish(entry)
        self._drops(lambda f: self.replaces[entry, f] & (f != entry))
        self.arrival_clock[entry] = self.clock
        self.stands_since[entry] = moment

    @action
    def consume(self, consumer: Consumer) -> None:
        """A consumer comes to its queues, with new windows."""
        moment = self.moment
        super().consume(consumer)
        self.came_last_at = ite(consumer == self.reader, moment, self.came_last_at)
        self.windows_set_at = ite(consumer == self.reader, moment, self.windows_set_at)
        self._stirs_the_pool(self.channel[consumer], moment)
        self.used_at = self.used_at.map(
            lambda q, old: ite(self.subscribed[consumer, q], moment, old)
        )

    @action
    def set_credit(
        self, consumer: Consumer, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A consumer has other windows."""
        super().set_credit(consumer, limited, limit, byte_limited, byte_limit)
        self.windows_set_at = ite(consumer == self.reader, self.moment, self.windows_set_at)
        self._something_happened()

    @action
    def set_pool(
        self, which: Channel, limited: Bool, limit: Int, byte_limited: Bool, byte_limit: Int
    ) -> None:
        """A channel has other windows."""
        super().set_pool(which, limited, limit, byte_limited, byte_limit)
        self._stirs_the_pool(which, self.moment)
        self._something_happened()

    @action
    def acknowledge(self, entry: Entry) -> None:
        """A message is settled."""
        moment = self.moment
        super().acknowledge(entry)
        self._is_settled(entry, moment)

    @action
    def reject(self, entry: Entry) -> None:
        """A message is discarded."""
        moment = self.moment
        super().reject(entry)
        self._is_settled(entry, moment)

    @action
    def release(self, entry: Entry) -> None:
        """A message comes back, to a new place unless it keeps the old one."""
        moment = self.moment
        super().release(entry)
        self._comes_to_a_place(entry, moment)

    @action
    def release_at_close(self, entry: Entry) -> None:
        """The same as its channel closes."""
        super().release_at_close(entry)
        self._comes_to_a_place(entry, self.moment)
        self._something_happened()

    @action
    def close_channel(self, which: Channel) -> None:
        """No consumer of the channel holds a message any more."""
        super().close_channel(which)
        self.out = self.out.map(lambda e, old: old & (self.channel[self.holder[e]] != which))

    @action
    def purge(self, queue: Queue) -> None:
        """The waiting messages of a queue are dropped, but for those that are not due."""
        super().purge(queue)
        self._drops(lambda f: (self.home[f] == queue) & self.is_in_time(f, self.clock))
        self.purged_at[queue] = self.moment
        self.purge_clock[queue] = self.clock
        self._something_happened()

    @action
    def drop_in_a_crash(self, queue: Queue, entry: Entry) -> None:
        """A message is dropped that may be."""
        super().drop_in_a_crash(queue, entry)
        self._drops(lambda f: f == entry)
        self._something_happened()

    @action
    def leave(self, consumer: Consumer) -> None:
        """A consumer is dismissed, since its queue goes."""
        is_it = (consumer == self.reader) & self.there
        self.dismissed_at = ite(is_it, self.moment, self.dismissed_at)
        super().leave(consumer)
        self._leaves(consumer == self.reader)

    def _goes_with_everything(self, queue: Queue) -> None:
        self.gone_at[queue] = ite(self.gone_at[queue] == 0, self.moment, self.gone_at[queue])
        self.out = self.out.map(lambda e, old: old & (self.home[e] != queue))
        super()._goes_with_everything(queue)
        self._something_happened()

    @action
    def advance(self, seconds: Int) -> None:
        """The broker's clock goes on."""
        super().advance(seconds)
        self.clock = self.clock + seconds
        self._something_happened()

    def _crashes(self, was_acquired: Callable[[Entry], Bool]) -> None:
        super()._crashes(was_acquired)
        self._drops(lambda f: ~self.survives[f])
        self.out.fill(False)
        self.crashed_at = self.moment
        self._leaves(TRUE)

    # What the broker's actions and reports write.

    @action
    def deliver_by_rank(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is given to a consumer of lower rank, on another channel than the reader's."""
        lower, moment = self.rank[consumer] < self.rank[self.reader], self.moment
        apart = self.channel[consumer] != self.channel[self.reader]
        super().deliver_by_rank(consumer, entry, redelivered)
        self.outranked_at[entry] = ite(lower & apart, moment, self.outranked_at[entry])

    @action
    def get(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is the answer of a get, which looks at no window of bytes or of a channel."""
        moment = self.moment
        super().get(consumer, entry, redelivered)
        self.has_asked = self.has_asked | (consumer == self.reader)
        self._stirs_the_pool(self.channel[consumer], moment)

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """A get finds nothing at this time."""
        super().get_nothing(consumer)
        before = self.found_nothing_clock
        self.found_nothing_clock = ite(consumer == self.reader, self.clock, before)

    @action
    def flush(self, consumer: Consumer) -> None:
        """The consumer that is flushed, perhaps the reader, has got all that it can be given."""
        super().flush(consumer)
        self.flushed = consumer == self.reader

    @action
    def consumer_closed(self, consumer: Consumer) -> None:
        """The reader is told that it has ended: it was dismissed, or closed by itself."""
        super().consumer_closed(consumer)
        is_it, closes = consumer == self.reader, ~self.is_dismissed() & (consumer == self.reader)
        self.closed_at = ite(closes, self.moment, self.closed_at)
        self.closed_clock = ite(closes, self.clock, self.closed_clock)
        self.told_before = ite(is_it, self.told_at, self.told_before)
        self.told_at = ite(is_it, self.moment, self.told_at)
        self._leaves(is_it)

    @action
    def queue_deleted(self, queue: Queue) -> None:
        """A queue ends by itself."""
        moment = self.moment
        super().queue_deleted(queue)
        self.ended_at[queue] = moment

    @action
    def quiesce_by_size(self) -> None:
        """The broker says that it rests, with consumers that wait at a message too large."""
        super().quiesce_by_size()
        self.at_rest_by_size = True

    @action
    def nothing_is_left_to_close(self) -> None:
        """The broker says that all has ended which ends by itself."""
        super().nothing_is_left_to_close()
        self.all_ended = True

    @action
    def publish_still_waits(self) -> None:
        """A publish is parked still."""
        super().publish_still_waits()
        self.parked = True

    def _drops(self, which: Callable[[Entry], Bool]) -> None:
        self.dropped = self.dropped.map(lambda e, old: old | (self.waits(e) & which(e)))

    def _leaves_its_pool(self, consumer: Consumer, there: Bool) -> None:
        self._stirs_the_pool(self.channel[consumer], self.moment)
        super()._leaves_its_pool(consumer, there)

    def _stirs_the_pool(self, which: Channel, moment: Int) -> None:
        is_its = which == self.channel[self.reader]
        self.pool_stirred_at = ite(is_its, moment, self.pool_stirred_at)

    def _is_settled(self, entry: Entry, moment: Int) -> None:
        self.out[entry] = False
        self.settled_at[entry] = moment

    def _comes_to_a_place(self, entry: Entry, moment: Int) -> None:
        self.out[entry] = False
        self.stands_since[entry] = moment

    def _is_given(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        keeps = self.mode[consumer] == Mode.ACKNOWLEDGE
        self.out[entry] = keeps
        self.settled_at[entry] = ite(keeps, self.settled_at[entry], self.moment)
        super()._is_given(consumer, entry, redelivered)

    def _is_seen(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        by_reader = consumer == self.reader
        self.seen_clock[entry] = ite(by_reader, self.clock, self.seen_clock[entry])
        stands, stood = self.stands_since[entry], self.stood_since[entry]
        self.stood_since[entry] = ite(by_reader, stands, stood)
        super()._is_seen(consumer, entry, redelivered)

    def _something_happened(self) -> None:
        self.at_rest_by_size = self.flushed = self.all_ended = self.parked = False
        super()._something_happened()

    # Terms about the ledger.

    def waits(self, e: Entry) -> Bool:
        """Whether a message has arrived, is with no consumer, and was not dropped."""
        return super().waits(e) & ~self.dropped[e] & (self.gone_at[self.home[e]] == 0)

    def is_in_time(self, e: Entry, clock: Int) -> Bool:
        """Whether a message's time has come at this time of the clock, and is not over."""
        return (self.not_before[e] <= clock) & (clock < self.expires[e])

    def is_dismissed(self) -> Bool:
        """Whether the reader was dismissed, and has not been told of it."""
        return (self.dismissed_at > self.told_at) & (self.dismissed_at > self.crashed_at)
