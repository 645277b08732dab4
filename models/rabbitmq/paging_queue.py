"""The paging queue with its clients: consumers, gets, and the return at a channel's close.

Sources: later notes on RabbitMQ's queue process, and AMQP 0-9-1 (get, channel close). Places and
moves are those of `paging_places`; this model adds the queue process, which chooses a consumer
before it fetches. An arrival at an empty queue with a ready consumer is published as delivered; any
other is published. A closed channel requeues all its messages in one call. The queue reports rest,
or an empty get, if q4 and q3 are empty; that all places are then empty is a theorem.
"""

from __future__ import annotations

from brokerproof.models.contract.core_state import Channel, Consumer
from brokerproof.models.language import (
    FALSE,
    TRUE,
    Bool,
    Fixed,
    Map,
    Value,
    action,
    exists,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
)
from brokerproof.models.rabbitmq.paging_invariants import EMPTY, FOUND, USED
from brokerproof.models.rabbitmq.paging_places import FETCHES, IS_FETCHED, ranked_to_its_fetch
from brokerproof.models.rabbitmq.paging_state import Message, Place
from brokerproof.models.rabbitmq.paging_syncs import PagingSyncs

OFFERED = "what-is-offered-has-not-come"

__all__ = ["Channel", "Consumer", "Message", "PagingQueue"]


class PagingQueue(PagingSyncs):
    """A paging queue with its consumers, its gets and their channels."""

    channel: Fixed[Consumer, Channel]
    acknowledges: Fixed[Consumer, Bool]

    active: Map[Consumer, Bool]
    paused: Map[Consumer, Bool]
    subscriber: Value[Consumer]
    holder: Map[Message, Consumer]
    offered: Map[Message, Bool]

    @initial
    def empty(self) -> None:
        """No message has been published, and no consumer is subscribed."""
        super().empty()
        self.active.fill(False)
        self.paused.fill(False)
        self.subscriber = self.subscriber
        self.holder = self.holder.map(lambda _, old: old)
        self.offered.fill(False)

    # Clients.

    @action
    def subscribe(self, consumer: Consumer) -> None:
        """A client subscribes to a node that runs, and waits for its window."""
        require(~self.active[consumer] & ~self.down)
        self.active[consumer] = True
        self.paused[consumer] = True

    @action
    def open_window(self, consumer: Consumer) -> None:
        """A client opens a consumer's window without a limit."""
        require(self.active[consumer])
        self.paused[consumer] = False

    @action
    def unsubscribe(self, consumer: Consumer) -> None:
        """A client cancels a consumer; the messages that it holds stay pending."""
        require(self.active[consumer])
        self.active[consumer] = False

    @action
    def choose(self, consumer: Consumer) -> None:
        """The queue chooses the consumer or get to serve next."""
        self.subscriber = consumer

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel closes while q3 is empty: its consumers leave, and their messages return."""
        require(self.has_none(Place.Q3))
        self._leave(which)
        self.in_ram = self.in_ram.map(lambda m, old: old | self.returns(which, m))
        self.place = self.place.map(lambda m, old: ite(self.returns(which, m), Place.Q4, old))

    @action
    def close_channel_beside_q3(self, which: Channel, head: Message) -> None:
        """A channel closes: its consumers leave, and their messages are requeued in one call.

        Each message goes where it would go alone: none of them moves q3's beginning or delta.
        """

        def to_delta(m: Message) -> Bool:
            return self.returns(which, m) & self.before(head, m) & self.from_start[m]

        def to_q3(m: Message) -> Bool:
            return self.returns(which, m) & self.before(head, m) & ~self.from_start[m]

        def to_q4(m: Message) -> Bool:
            return self.returns(which, m) & ~self.before(head, m)

        require(self.is_first_of(Place.Q3, head))
        self._leave(which)
        self.before_end = self.before_end.map(
            lambda n, old: old | exists(Message, lambda m: to_delta(m) & self.at_or_before(n, m))
        )
        self.noted = self.noted.map(
            lambda m, old: old | (to_delta(m) & ~self.indexed[m] & self.delivered[m])
        )
        self.indexed = self.indexed.map(lambda m, old: old | to_delta(m))
        self.delivered = self.delivered.map(lambda m, old: old & ~to_delta(m))
        self.stored = self.stored.map(lambda m, old: old | to_delta(m) | to_q3(m))
        self.in_ram = self.in_ram.map(lambda m, old: to_q4(m) | (old & ~self.returns(which, m)))
        self.place = self.place.map(
            lambda m, old: ite(
                to_q4(m), Place.Q4, ite(to_q3(m), Place.Q3, ite(to_delta(m), Place.DELTA, old))
            )
        )

    def _leave(self, which: Channel) -> None:
        self.active = self.active.map(lambda c, old: old & (self.channel[c] != which))

    def returns(self, which: Channel, m: Message) -> Bool:
        """Whether a consumer of the channel holds the message."""
        return self.is_in(m, Place.PENDING) & (self.channel[self.holder[m]] == which)

    # Arrivals.

    def nothing_is_offered(self) -> Bool:
        """Whether no message is just arriving."""
        return forall(Message, lambda m: ~self.offered[m])

    @action
    def arrive(self, m: Message) -> None:
        """A message arrives, and is offered."""
        require(~self.used[m] & self.nothing_is_offered() & ~self.down)
        self.offered[m] = True

    @action
    def publish(self, m: Message) -> None:
        """The queue keeps the offered message."""
        require(self.offered[m])
        super().publish(m)
        self.offered[m] = False

    @action
    def publish_delivered(self, m: Message) -> None:
        """The queue is empty, and a consumer that acknowledges takes the offered message."""
        require(self.offered[m] & self.serves(keeps=TRUE))
        super().publish_delivered(m)
        self.holder[m] = self.subscriber
        self.offered[m] = False

    @action
    def pass_through(self, m: Message) -> None:
        """The queue is empty, and a consumer without acknowledgements takes the message.

        The release gives it no position. Positions are an order here, so an unused one changes
        nothing.
        """
        require(self.offered[m] & self.serves(keeps=FALSE) & ~self.used[m])
        require(forall(Message, lambda n: ~self.is_ready(n)))
        self.used = self.used.map(lambda n, old: old | self.at_or_before(n, m))
        self.place[m] = Place.GONE
        self.to_confirm[m] = self.asks[m]
        self.holder[m] = self.subscriber
        self.offered[m] = False

    @action
    def purge(self) -> None:
        """All ready messages are dropped; no message is just arriving."""
        require(self.nothing_is_offered())
        super().purge()

    @action
    def crash(self) -> None:
        """The node stops; a message that is just arriving has not come."""
        require(self.nothing_is_offered())
        super().crash()
        self.active.fill(False)

    # Fetches for a consumer.

    def serves(self, *, keeps: Bool) -> Bool:
        """Whether the chosen one is a subscribed consumer with this kind of acknowledgement."""
        return self.active[self.subscriber] & self.answers(keeps)

    def answers(self, keeps: Bool) -> Bool:
        """Whether the chosen one has an open window, and this kind of acknowledgement."""
        chosen = self.subscriber
        return ~self.paused[chosen] & (keeps == self.acknowledges[chosen])

    def _fetches(self, m: Message, keeps: Bool) -> None:
        super()._fetches(m, keeps)
        self.holder[m] = self.subscriber

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """A consumer is given the first message of q4."""
        require(self.serves(keeps=keeps))
        super().fetch_from_q4(m, keeps)

    @action
    def fetch_from_q3(self, m: Message, keeps: Bool) -> None:
        """A consumer is given the first message of q3, and others stay there."""
        require(self.serves(keeps=keeps))
        super().fetch_from_q3(m, keeps)

    @action
    def fetch_last(self, m: Message, keeps: Bool) -> None:
        """A consumer is given the last message of q3, and q1 becomes q4."""
        require(self.serves(keeps=keeps))
        super().fetch_last(m, keeps)

    @action
    def fetch_last_and_reload(self, m: Message, first: Message, keeps: Bool) -> None:
        """A consumer is given the last message of q3, and a segment of delta is read."""
        require(self.serves(keeps=keeps))
        super().fetch_last_and_reload(m, first, keeps)

    @action
    def fetch_last_and_reload_all(self, m: Message, first: Message, keeps: Bool) -> None:
        """A consumer is given the last message of q3, and the rest of delta is read."""
        require(self.serves(keeps=keeps))
        super().fetch_last_and_reload_all(m, first, keeps)

    # Fetches for a get.

    @action
    def get_from_q4(self, m: Message, keeps: Bool) -> None:
        """A get is answered with the first message of q4."""
        require(self.answers(keeps))
        super().fetch_from_q4(m, keeps)

    @action
    def get_from_q3(self, m: Message, keeps: Bool) -> None:
        """A get is answered with the first message of q3, and others stay there."""
        require(self.answers(keeps))
        super().fetch_from_q3(m, keeps)

    @action
    def get_last(self, m: Message, keeps: Bool) -> None:
        """A get is answered with the last message of q3, and q1 becomes q4."""
        require(self.answers(keeps))
        super().fetch_last(m, keeps)

    @action
    def get_last_and_reload(self, m: Message, first: Message, keeps: Bool) -> None:
        """A get is answered with the last message of q3, and a segment of delta is read."""
        require(self.answers(keeps))
        super().fetch_last_and_reload(m, first, keeps)

    @action
    def get_last_and_reload_all(self, m: Message, first: Message, keeps: Bool) -> None:
        """A get is answered with the last message of q3, and the rest of delta is read."""
        require(self.answers(keeps))
        super().fetch_last_and_reload_all(m, first, keeps)

    @action
    def find_nothing(self, consumer: Consumer) -> None:
        """A get finds q4 and q3 empty."""
        del consumer
        require(self.has_none(Place.Q4, Place.Q3) & self.nothing_is_offered() & ~self.down)

    @action
    def final_drain(self, consumer: Consumer) -> None:
        """The last consumer has been given all that there is."""
        self.find_nothing(consumer)

    @action
    def come_to_rest(self) -> None:
        """The queue rests: q4 and q3 are empty, or no consumer is served (P1)."""
        none_served = forall(Consumer, lambda c: ~self.active[c] | self.paused[c])
        require(self.has_none(Place.Q4, Place.Q3) | none_served)
        require(self.nothing_is_offered() & ~self.down)

    @leads_to(IS_FETCHED, fair=FETCHES, together=True, by=(EMPTY, FOUND))
    def ready_is_fetched(self, m: Message) -> tuple[Bool, Bool]:
        """A ready message is given in the end where the queue chooses consumers with room.

        Unless it is purged, the node stops, or no such consumer is chosen any more.
        """

        def returned(which: Channel, *_: Message) -> Bool:
            return exists(Message, lambda n: self.returns(which, n) & self.at_or_before(n, m))

        ranked_to_its_fetch(self, m)
        finitely(close_channel=returned, close_channel_beside_q3=returned)
        goes_on = self.active[self.subscriber] & ~self.paused[self.subscriber] & ~self.down
        return self.is_ready(m) & goes_on, ~self.is_ready(m) | ~goes_on

    @invariant(OFFERED, by=(USED,))
    def offered_has_not_come(self) -> Bool:
        """At most one message is offered, none that is or was in the queue, to a node that runs."""
        return forall(
            Message, lambda m: implies(self.offered[m], ~self.used[m] & ~self.down)
        ) & forall(
            Message, Message, lambda m, n: implies(self.offered[m] & self.offered[n], m == n)
        )


PagingQueue.equivalent_mutants = """
No other live message is in these positions: the rest of the condition says the same.
    fetch_last_and_reload: place*2, from_start; fetch_last_and_reload_all: place;
    get_last_and_reload: place*2, from_start; get_last_and_reload_all: place;
    put_back_and_reload: place*2, from_start; put_back_and_reload_all: place;
    restart_and_reload: from_start
All of delta is in one segment, so any position there finds it.
    fetch_last_and_reload_all: guard 3*7; get_last_and_reload_all: guard 3*7;
    put_back_and_reload_all: guard 2*7; restart_and_reload_all: guard 1*4
A segment without messages of delta is read: it adds nothing, and q3 is not empty.
    put_back_and_reload: guard 2*5
Content or delta is read sooner than needed, behind the messages of q4 and q3.
    put_back_into_q4: guard 1*2, guard 2; put_back_and_reload: guard 1*4;
    put_back_and_reload_all: guard 1*4
A message behind one of q3, or in a later segment, is so relative to q3's first too.
    page_q3: guard 1*2; requeue_to_q3: guard 2*3
No message is in a later segment than itself, in q4 behind q3, or in q2 before delta.
    page_q3: guard 1*2; page_q2: guard 1
The message is there already, with its content on disk, so nothing changes.
    page_q1_to_q2: guard 1; page_q2: guard 1
Delta starts behind all of q3 and before all of q2, and beside delta q3 is not empty.
    page_q2: from_start*3; requeue_to_delta: guard 2*7;
    close_channel_beside_q3: place, noted, before_end
Pending messages may be between delta's bounds: a reload leaves them out.
    close_channel_beside_q3: before_end
Contents of pending messages leave in any order, and a second time changes nothing.
    limit_ram_acks: guard 1, guard 2*3
The queue may serve any consumer, so it may always serve the same one.
    choose: subscriber
A report or a confirm is sent once more, which breaks nothing.
    drain_confirmed: to_confirm; fetch_from_q4: tells_ignored;
    fetch_last_and_reload: tells_ignored; get_from_q4: tells_ignored;
    get_last_and_reload: tells_ignored; acknowledge: tells_ignored; purge: tells_ignored;
    shared: is_index_news
A node that finds nothing and does not come up does nothing wrong.
    restart: down*2
No message is ready where a start finds none.
    restart: content_synced, index_synced
A node that is down has nothing to lose.
    crash: guard 2
Of a message that is gone no index entry, flag or sync is read any more.
    crash: noted, was_fetched; restart_and_reload: content_synced, index_synced;
    restart_and_reload_all: delivered, content_synced, index_synced
A message of delta stays there in a crash, and may be told as new or as given before.
    crash: place*2
Of a node that is down, delta starts before all positions or has no message.
    lose: from_start
Positions that are synced while the node is down are lost less often.
    sync_index: guard 1
A message that waits for its confirm is in the index, and its sync is noted at once.
    sync_index: content_known*2
A consumer that comes while the node is down is served after the start.
    subscribe: guard 1
A node that is down at first starts before anything happens.
    initially: down*2
The window is set again when a consumer comes.
    open_window: guard 1
The value is set before it is read.
    initially: delivered*2
Only four messages show it: a reload that finds pending ones is a twin, and refuted.
    shared: is_found*2
"""
