"""ActiveMQ's queue among its clients: who may be given something, who asks, and what is purged.

Sources: as for `cursor_page_in`, whose places and moves these are. A consumer that has come is
given nothing until its window is opened; there are no other windows here. Whoever does not
acknowledge is done with a message when it is given. A get is a consumer for one message. A channel
that closes returns what it has message by message, in the order of delivery, and then closes. To
return the first and to close at once is to close at once, so of finitely many messages this is what
`cursor_page_in` has as one step. That the queue is at rest, and that there is nothing for a get, is
said where nothing waits, the batch is empty, and the store has been read to its end: that then
nothing is left in the store that nobody has is a theorem of the position.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_page_in import (
    Channel,
    Consumer,
    Cursor,
    CursorPageIn,
    Message,
)
from brokerproof.models.language import (
    Bool,
    Fixed,
    Map,
    action,
    forall,
    initial,
    require,
)

__all__ = ["Channel", "Consumer", "Cursor", "CursorQueue", "Message"]


class CursorQueue(CursorPageIn):
    """A queue with a cursor, its consumers, those who get, and their channels."""

    acknowledges: Fixed[Consumer, Bool]

    paused: Map[Consumer, Bool]

    @initial
    def empty(self) -> None:
        """Nothing has been sent, and nobody is there."""
        super().empty()
        self.paused.fill(False)

    # Consumers.

    @action
    def attach(self, who: Consumer) -> None:
        """A consumer comes, and waits for its window."""
        super().attach(who)
        self.paused[who] = True

    @action
    def open_window(self, who: Consumer) -> None:
        """A client lets a consumer be given as much as there is."""
        require(self.takes[who])
        self.paused[who] = False

    @action
    def return_at_close(self, who: Consumer, m: Message) -> None:
        """A channel is about to close: of what it has, the first that was delivered returns."""
        require(self.holds[who, m] & self.is_first_to_go_back(self.channel[who], m))
        self.release(who, m)

    def is_first_to_go_back(self, which: Channel, m: Message) -> Bool:
        """Whether nothing that the channel has was delivered before the message."""
        return forall(Message, lambda n: ~(self.goes_back(which, n) & self.sooner[n, m]))

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave; what they held has been returned."""
        require(forall(Message, lambda m: ~self.goes_back(which, m)))
        super().close(which)

    # Giving, to consumers that acknowledge and to those that do not.

    def is_served(self, who: Consumer) -> Bool:
        """Whether the consumer takes messages, and may be given one."""
        return self.takes[who] & ~self.paused[who]

    @action
    def give(self, who: Consumer, m: Message) -> None:
        """A consumer is given the first that was returned, or else the first that waits."""
        require(self.is_served(who) & self.acknowledges[who])
        super().give(who, m)

    @action
    def hand(self, who: Consumer, m: Message) -> None:
        """One that acknowledges nothing is given it, and is done with it."""
        require(self.is_served(who) & ~self.acknowledges[who] & self.is_first_to_give(m))
        self._hands(m)

    def _hands(self, m: Message) -> None:
        """Give a message, and be done with it."""
        self.out_of_turn[m] = self.overtakes(m)
        self._ends(m)
        self.given[m] = True

    # Getting.

    @action
    def get(self, who: Consumer, m: Message) -> None:
        """A get is answered with what is next; whoever gets is there until its channel closes."""
        require(~self.paused[who] & self.acknowledges[who] & self.is_first_to_give(m))
        self._gives(who, m)
        self.attached[who] = True

    @action
    def get_for_good(self, who: Consumer, m: Message) -> None:
        """One who gets and acknowledges nothing is answered with it, and is done with it."""
        require(~self.paused[who] & ~self.acknowledges[who] & self.is_first_to_give(m))
        self._hands(m)

    @action
    def find_nothing(self, who: Consumer) -> None:
        """A get finds nothing, whoever asks."""
        del who
        require(self.has_nothing_to_give())

    # At rest.

    def has_nothing_to_give(self) -> Bool:
        """Whether nothing waits in memory, and the position is at the end of the store."""
        return forall(
            Message,
            lambda m: (
                ~(
                    self.returned[m]
                    | self.waiting[m]
                    | self.batch[m]
                    | (self.stored[m] & ~self.behind[m])
                )
            ),
        )

    @action
    def come_to_rest(self) -> None:
        """All has been given, or nobody takes anything."""
        nobody = forall(Consumer, lambda c: ~self.is_served(c))
        require(self.has_nothing_to_give() | nobody)

    @action
    def purge(self) -> None:
        """All that is with nobody is dropped; what consumers hold stays."""

        def stays(m: Message) -> Bool:
            return self.stored[m] & self.is_held(m)

        self._starts_over()
        self.sooner = self.sooner.map(lambda n, k, old: old & stays(n) & stays(k))
        self.stored = self.stored.map(lambda m, _: stays(m))
        self.batch.fill(False)
        self.waiting.fill(False)
        self.returned.fill(False)
        self.paged = self.paged.map(lambda m, old: old & self.stored[m])
