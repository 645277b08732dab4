"""ActiveMQ's queue with its clients: credit, gets and purges.

Sources: as for `cursor_page_in`, whose places and moves these are. An attached consumer gets no
message until its window is opened; there are no other windows. A consumer that does not acknowledge
is done with a message at its delivery. A get is a consumer for one message.

A channel that closes returns its messages one by one, in the order of delivery, and then closes.
For finitely many messages this equals the single step of `cursor_page_in`. The queue reports rest,
or no message for a get, if no message waits, the batch is empty and the store is read to its end;
that no stored message is then left without a holder is a theorem about the position.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_state import Channel, Consumer, Message
from brokerproof.models.activemq.cursor_store import CursorStore
from brokerproof.models.language import Bool, Fixed, Map, action, forall, initial, require

__all__ = ["Channel", "Consumer", "CursorQueue", "Message"]


class CursorQueue(CursorStore):
    """A queue with a cursor, its consumers, its gets and their channels."""

    acknowledges: Fixed[Consumer, Bool]

    paused: Map[Consumer, Bool]

    @initial
    def empty(self) -> None:
        """No message has been sent, and no consumer is there."""
        super().empty()
        self.paused.fill(False)

    # Consumers.

    @action
    def attach(self, consumer: Consumer) -> None:
        """A consumer attaches, and waits for its window."""
        super().attach(consumer)
        self.paused[consumer] = True

    @action
    def open_window(self, consumer: Consumer) -> None:
        """A client opens a consumer's window without a limit."""
        require(self.takes[consumer])
        self.paused[consumer] = False

    @action
    def return_at_close(self, consumer: Consumer, m: Message) -> None:
        """A closing channel returns the message that was delivered first among those it holds."""
        require(self.holds[consumer, m] & self.is_first_to_go_back(self.channel[consumer], m))
        self.release(consumer, m)

    def is_first_to_go_back(self, which: Channel, m: Message) -> Bool:
        """Whether no other message of the channel was delivered before this one."""
        return forall(Message, lambda n: ~(self.goes_back(which, n) & self.sooner[n, m]))

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave; their messages have been returned."""
        require(forall(Message, lambda m: ~self.goes_back(which, m)))
        super().close(which)

    # Deliveries to consumers, with acknowledgement and without.

    def is_served(self, consumer: Consumer) -> Bool:
        """Whether the consumer takes messages and its window is open."""
        return self.takes[consumer] & ~self.paused[consumer]

    @action
    def give(self, consumer: Consumer, m: Message) -> None:
        """A consumer is given the first returned message, otherwise the first waiting one."""
        require(self.is_served(consumer) & self.acknowledges[consumer])
        super().give(consumer, m)

    @action
    def hand(self, consumer: Consumer, m: Message) -> None:
        """A consumer without acknowledgement is given the next message, which is settled."""
        require(self.is_served(consumer) & ~self.acknowledges[consumer] & self.is_first_to_give(m))
        self._hands(m)

    def _hands(self, m: Message) -> None:
        """Give a message and settle it."""
        self.out_of_turn[m] = self.overtakes(m)
        self._ends(m)
        self.given[m] = True

    # Gets.

    @action
    def get(self, consumer: Consumer, m: Message) -> None:
        """A get is answered with the next message and stays attached until its channel closes."""
        require(~self.paused[consumer] & self.acknowledges[consumer] & self.is_first_to_give(m))
        self._gives(consumer, m)
        self.attached[consumer] = True

    @action
    def get_for_good(self, consumer: Consumer, m: Message) -> None:
        """A get without acknowledgement is answered with the next message, which is settled."""
        require(~self.paused[consumer] & ~self.acknowledges[consumer] & self.is_first_to_give(m))
        self._hands(m)

    @action
    def find_nothing(self, consumer: Consumer) -> None:
        """A get finds no message."""
        del consumer
        require(self.has_nothing_to_give())

    @action
    def final_drain(self, consumer: Consumer) -> None:
        """The last consumer has been given all that there is."""
        self.find_nothing(consumer)

    # Rest.

    def has_nothing_to_give(self) -> Bool:
        """Whether no message waits in memory, and the position is at the end of the store."""
        return ~self.down & forall(
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
        """The queue rests: no message is left to give, or no consumer is served."""
        none_served = forall(Consumer, lambda c: ~self.is_served(c))
        require(self.has_nothing_to_give() | (none_served & ~self.down))

    @action
    def purge(self) -> None:
        """All messages without a holder are dropped; those that consumers hold stay."""

        def stays(m: Message) -> Bool:
            return self.stored[m] & self.is_held(m)

        require(~self.down)
        self._starts_over()
        self.removed = self.removed.map(lambda m, old: old | (self.stored[m] & ~stays(m)))
        self.sooner = self.sooner.map(lambda n, k, old: old & stays(n) & stays(k))
        self.stored = self.stored.map(lambda m, _: stays(m))
        self.batch.fill(False)
        self.waiting.fill(False)
        self.returned.fill(False)
        self.paged = self.paged.map(lambda m, old: old & self.stored[m])


CursorQueue.equivalent_mutants = """
A read may start anywhere: it leaves messages that are in memory there.
    send_past_cache: behind; send_past_nothing: guard 1, guard 2*5, behind;
    pass_over: guard 1*2; read: read_last; acknowledge: behind*2; hand: behind*2;
    get_for_good: behind*2
A message of the batch that is read again takes room twice, which `cursor-room` counts.
    read: guard 1
Only the model of passes, `cursor-progress`, requires the cursor to go on.
    pass_over: behind
A cache that ends early, or does not begin again, costs only reads of the store.
    cache_again: caches*2; restart: caches*2
A consumer that has left holds nothing, and is given nothing because it takes nothing.
    close: attached*2; crash: attached*2
The contract does not tell when a broker is down: no message reaches a consumer before the start.
    attach: guard 1; come_to_rest: guard 1
A second crash has nothing more to take, and a second start nothing more to find.
    crash: guard 1; restart: guard 1
A window that stays where it is forgets nothing; `cursor-audit` says when it slides.
    send_cached: recorded; read: recorded
A start finds an audit that knows nothing, wherever its window begins.
    crash: below*2
The window is set again when a consumer comes.
    open_window: guard 1
Only the step that closes a channel at once fixes the order of the returned messages.
    return_at_close: guard 1*2
`given` is not read of a message that has left the store.
    hand: given; get_for_good: given
The queue may come to this state later, or no message can arrive in it.
    initially: spent, attached*2, caches*2, below, down*2
"""
