"""The paging queue among its clients: who takes, who asks, and what a closed channel gives back.

Sources: later notes on RabbitMQ's queue process, and AMQP 0-9-1 (get, channel close). Places and
moves are those of `paging_places`; here the queue process stands around them. It chooses whom to
serve before it fetches. A message that arrives is offered straight through first: where the queue
is empty and somebody can take it, it is published as delivered, else it is published. A closed
channel requeues all that it had in one call. That the queue is at rest, and that there is nothing
for a get, is said where q4 and q3 are empty: that then everything is, is a theorem of the places.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.contract.core_state import Channel, Consumer
from brokerproof.models.language import (
    FALSE,
    TRUE,
    Bool,
    Enumeration,
    Fixed,
    Map,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.rabbitmq.paging_invariants import USED
from brokerproof.models.rabbitmq.paging_places import Message, PagingPlaces, Place

OFFERED = "what-is-offered-has-not-come"

__all__ = ["Channel", "Consumer", "Message", "PagingQueue", "Turn"]


class Turn(Enumeration):
    """Whose turn it is: there is one."""

    IT: ClassVar[Turn]


class PagingQueue(PagingPlaces):
    """A paging queue with its consumers, those who get, and their channels."""

    channel: Fixed[Consumer, Channel]
    acknowledges: Fixed[Consumer, Bool]

    active: Map[Consumer, Bool]
    taker: Map[Turn, Consumer]
    holder: Map[Message, Consumer]
    offered: Map[Message, Bool]

    @initial
    def empty(self) -> None:
        """Nothing has been published, and nobody has subscribed."""
        super().empty()
        self.active.fill(False)
        self.taker = self.taker.map(lambda _, old: old)
        self.holder = self.holder.map(lambda _, old: old)
        self.offered.fill(False)

    # Clients.

    @action
    def subscribe(self, who: Consumer) -> None:
        """A client subscribes."""
        require(~self.active[who])
        self.active[who] = True

    @action
    def unsubscribe(self, who: Consumer) -> None:
        """A client cancels a consumer; what it holds stays pending."""
        require(self.active[who])
        self.active[who] = False

    @action
    def choose(self, who: Consumer) -> None:
        """The queue chooses whom to serve next: a consumer, or one who gets."""
        self.taker[Turn.IT] = who

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel's consumers leave, and all that they hold returns; nothing is in q3."""
        require(self.has_none(Place.Q3))
        self._leave(which)
        self.in_ram = self.in_ram.map(lambda m, old: old | self.returns(which, m))
        self.place = self.place.map(lambda m, old: ite(self.returns(which, m), Place.Q4, old))

    @action
    def close_channel_beside_q3(self, which: Channel, head: Message) -> None:
        """A channel's consumers leave, and all that they hold is requeued in one call.

        Each goes where it would go alone: none of them changes where q3 begins, or delta.
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
                to_q4(m),
                Place.Q4,
                ite(to_q3(m), Place.Q3, ite(to_delta(m), Place.DELTA, old)),
            )
        )

    def _leave(self, which: Channel) -> None:
        self.active = self.active.map(lambda c, old: old & (self.channel[c] != which))

    def returns(self, which: Channel, m: Message) -> Bool:
        """Whether a consumer of the channel holds the message."""
        return self.is_in(m, Place.PENDING) & (self.channel[self.holder[m]] == which)

    # Arriving.

    def nothing_is_offered(self) -> Bool:
        """Whether nothing is just arriving."""
        return forall(Message, lambda m: ~self.offered[m])

    @action
    def arrive(self, m: Message) -> None:
        """A message arrives, and is offered."""
        require(~self.used[m] & self.nothing_is_offered())
        self.offered[m] = True

    @action
    def publish(self, m: Message) -> None:
        """Others are before it, or nobody takes it: the queue keeps it."""
        require(self.offered[m])
        super().publish(m)
        self.offered[m] = False

    @action
    def publish_delivered(self, m: Message) -> None:
        """The queue is empty, and a consumer takes it that will acknowledge it."""
        require(self.offered[m] & self.serves(keeps=TRUE))
        super().publish_delivered(m)
        self.holder[m] = self.taker[Turn.IT]
        self.offered[m] = False

    @action
    def pass_through(self, m: Message) -> None:
        """The queue is empty, and a consumer takes it that acknowledges nothing.

        No position is taken for it. Positions are an order here, so one that nobody has again is
        the same.
        """
        require(self.offered[m] & self.serves(keeps=FALSE) & ~self.used[m])
        require(forall(Message, lambda n: ~self.is_ready(n)))
        self.used = self.used.map(lambda n, old: old | self.at_or_before(n, m))
        self.place[m] = Place.GONE
        self.holder[m] = self.taker[Turn.IT]
        self.offered[m] = False

    @action
    def purge(self) -> None:
        """All that is ready is dropped, when what has arrived is kept or gone."""
        require(self.nothing_is_offered())
        super().purge()

    # Fetching, for a consumer.

    def serves(self, *, keeps: Bool) -> Bool:
        """Whether a consumer has its turn, one that acknowledges as is asked for."""
        return self.active[self.taker[Turn.IT]] & self.answers(keeps)

    def answers(self, keeps: Bool) -> Bool:
        """Whether the one that has its turn acknowledges as is asked for."""
        return keeps == self.acknowledges[self.taker[Turn.IT]]

    def _fetches(self, m: Message, keeps: Bool) -> None:
        super()._fetches(m, keeps)
        self.holder[m] = self.taker[Turn.IT]

    @action
    def fetch_from_q4(self, m: Message, keeps: Bool) -> None:
        """A consumer is given the first of q4."""
        require(self.serves(keeps=keeps))
        super().fetch_from_q4(m, keeps)

    @action
    def fetch_from_q3(self, m: Message, keeps: Bool) -> None:
        """A consumer is given the first of q3, and others are left there."""
        require(self.serves(keeps=keeps))
        super().fetch_from_q3(m, keeps)

    @action
    def fetch_last(self, m: Message, keeps: Bool) -> None:
        """A consumer is given the last of q3, and q1 becomes q4."""
        require(self.serves(keeps=keeps))
        super().fetch_last(m, keeps)

    @action
    def fetch_last_and_reload(self, m: Message, first: Message, keeps: Bool) -> None:
        """A consumer is given the last of q3, and a segment of delta is read."""
        require(self.serves(keeps=keeps))
        super().fetch_last_and_reload(m, first, keeps)

    @action
    def fetch_last_and_reload_all(self, m: Message, first: Message, keeps: Bool) -> None:
        """A consumer is given the last of q3, and the rest of delta is read."""
        require(self.serves(keeps=keeps))
        super().fetch_last_and_reload_all(m, first, keeps)

    # Fetching, for a get.

    @action
    def get_from_q4(self, m: Message, keeps: Bool) -> None:
        """A get is answered with the first of q4."""
        require(self.answers(keeps))
        super().fetch_from_q4(m, keeps)

    @action
    def get_from_q3(self, m: Message, keeps: Bool) -> None:
        """A get is answered with the first of q3, and others are left there."""
        require(self.answers(keeps))
        super().fetch_from_q3(m, keeps)

    @action
    def get_last(self, m: Message, keeps: Bool) -> None:
        """A get is answered with the last of q3, and q1 becomes q4."""
        require(self.answers(keeps))
        super().fetch_last(m, keeps)

    @action
    def get_last_and_reload(self, m: Message, first: Message, keeps: Bool) -> None:
        """A get is answered with the last of q3, and a segment of delta is read."""
        require(self.answers(keeps))
        super().fetch_last_and_reload(m, first, keeps)

    @action
    def get_last_and_reload_all(self, m: Message, first: Message, keeps: Bool) -> None:
        """A get is answered with the last of q3, and the rest of delta is read."""
        require(self.answers(keeps))
        super().fetch_last_and_reload_all(m, first, keeps)

    @action
    def find_nothing(self, who: Consumer) -> None:
        """A get finds nothing in q4 and q3, whoever asks."""
        del who
        require(self.has_none(Place.Q4, Place.Q3) & self.nothing_is_offered())

    @action
    def come_to_rest(self) -> None:
        """Nothing is in q4 and q3, or nobody has subscribed: all has been given (P1)."""
        nobody = forall(Consumer, lambda c: ~self.active[c])
        require(self.has_none(Place.Q4, Place.Q3) | nobody)
        require(self.nothing_is_offered())

    @invariant(OFFERED, by=(USED,))
    def offered_has_not_come(self) -> Bool:
        """One message is offered at most, and none that is in the queue or was."""
        return forall(Message, lambda m: implies(self.offered[m], ~self.used[m])) & forall(
            Message, Message, lambda m, n: implies(self.offered[m] & self.offered[n], m == n)
        )
