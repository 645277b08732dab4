"""The refinement of the contract by the queue with a cursor, for any number of messages.

The queue is FIFO, and returned messages go ahead of all that were never given. Only the whole
contract has that capability, so the whole contract is refined. There are no browsers, and the only
window is the closed one of a new consumer. A stored message without a holder is available; a held
one is acquired. A closing channel returns its messages one by one, because the contract stamps each
returned message. Reading, passing over, paging in and dropping the batch stutter: memory is
invisible to clients.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_queue import Channel, Consumer, CursorQueue, Message
from brokerproof.models.contract import core as contract
from brokerproof.models.contract.core import Mode, Origin, Status
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.contract.whole_state import PLAIN_QUEUE, End
from brokerproof.models.language import (
    FALSE,
    TRUE,
    Bool,
    Int,
    Map,
    forall,
    implies,
    initial,
    invariant,
    ite,
)
from brokerproof.models.language.core.terms import integer
from brokerproof.models.language.prove.refinement import (
    Assumption,
    Refinement,
    Witness,
    does,
    stutters,
)


class RememberingCursorQueue(CursorQueue):
    """The queue with the history variables of the contract."""

    queue: contract.Queue

    holder: Map[Message, Consumer]
    origin: Map[Message, Origin]
    end: Map[Message, End]
    spared: Map[Message, Bool]
    restarted: Map[Message, Bool]
    either_flag: Map[Message, Bool]
    served: Map[Consumer, Bool]
    lowered: Map[Consumer, Bool]
    unsettled: Map[Consumer, Int]
    unsettled_bytes: Map[Consumer, Int]
    in_pool: Map[Channel, Int]
    bytes_in_pool: Map[Channel, Int]
    stamp: Map[Message, Int]
    stamps: Map[contract.Queue, Int]
    subscribed_to: Map[contract.Queue, Bool]

    @initial
    def empty(self) -> None:
        """No event has happened."""
        super().empty()
        self.holder = self.holder.map(lambda _, old: old)
        self.origin.fill(Origin.PUBLISHED)
        self.end.fill(End.NONE)
        for truth in (self.spared, self.restarted, self.either_flag):
            truth.fill(False)
        for fact in (self.served, self.lowered):
            fact.fill(False)
        self.subscribed_to.fill(False)
        for number in (
            *(self.unsettled, self.unsettled_bytes, self.in_pool, self.bytes_in_pool),
            *(self.stamp, self.stamps),
        ):
            number.fill(0)

    @invariant("a-consumer-holds-what-it-was-given")
    def holder_holds(self, c: Consumer, m: Message) -> Bool:
        """The contract's holder of a message is the consumer that holds it."""
        return implies(self.holds[c, m], self.holder[m] == c)

    @invariant("what-is-stored-has-not-ended")
    def stored_has_not_ended(self, m: Message) -> Bool:
        """A message that is there has no end, and an ended message was sent."""
        return (
            implies(self.is_there(m), self.end[m] == End.NONE)
            & implies(self.end[m] != End.NONE, self.spent[m])
            & self.end[m].is_one_of(End.NONE, End.SETTLED, End.PURGED, End.FINAL)
        )

    @invariant("what-waits-came-back-if-it-was-given")
    def came_back_if_given(self, m: Message) -> Bool:
        """A returned message has come back; one that was never given has not, or before a crash."""
        return implies(self.returned[m], self.origin[m] != Origin.PUBLISHED) & implies(
            ~self.given[m], (self.origin[m] == Origin.PUBLISHED) | self.either_flag[m]
        )

    @invariant("stamps-go-up")
    def stamps_go_up(self, m: Message) -> Bool:
        """Every message that is there has a lower stamp than the next arrival."""
        return implies(self.is_there(m), self.stamp[m] < self.stamps[self.queue])

    @invariant("stamps-are-in-the-order-of-sending")
    def stamps_are_in_order(self, m: Message, n: Message) -> Bool:
        """Messages that never came back are stamped in the order of sending."""
        return implies(
            self.is_there(m)
            & self.is_there(n)
            & (self.origin[m] == Origin.PUBLISHED)
            & (self.origin[n] == Origin.PUBLISHED)
            & self.before(m, n),
            self.stamp[m] < self.stamp[n],
        )

    @invariant("what-was-returned-is-in-the-order-of-its-stamps")
    def returned_in_order(self, m: Message, n: Message) -> Bool:
        """Returned messages wait in the order of their returns."""
        return implies(self.sooner[m, n] & self.returned[m], self.stamp[m] < self.stamp[n])


def status(queue: RememberingCursorQueue, m: Message) -> Status:
    """Map a message that is there to available or acquired, others to dequeued or absent."""
    ended = ite(queue.end[m] == End.NONE, Status.ABSENT, Status.DEQUEUED)
    there = ite(queue.is_held(m), Status.ACQUIRED, Status.AVAILABLE)
    return ite(queue.is_there(m), there, ended)


def mode(queue: RememberingCursorQueue, consumer: Consumer) -> Mode:
    """Map a consumer's mode; there are no browsers."""
    return ite(queue.acknowledges[consumer], Mode.ACKNOWLEDGE, Mode.AUTOMATIC)


def delivers(queue: RememberingCursorQueue, consumer: Consumer, m: Message) -> Witness:
    """A delivery reports whether the message was given before."""
    return does("deliver", consumer, m, queue.given[m])


def gets(queue: RememberingCursorQueue, consumer: Consumer, m: Message) -> Witness:
    """The answer to a get reports whether the message was given before."""
    return does("get", consumer, m, queue.given[m])


def publishes(_queue: RememberingCursorQueue, m: Message, *_: Message) -> Witness:
    """Every way of sending is a publish."""
    return does("publish", m)


def reads(_queue: RememberingCursorQueue, *_: Message) -> Witness:
    """A move in memory is invisible to clients."""
    return stutters()


MEMORY = ("cache_again", "read", "pass_over", "clear", "page_in")
"""The moves that clients do not see."""

SENDS = ("send_cached", "send_uncached", "send_past_cache", "send_past_nothing")

CURSOR_QUEUE_REFINES_CONTRACT = Refinement(
    name="cursor-queue refines whole-contract",
    concrete=CursorQueue,
    abstract=WholeContract,
    remembering=RememberingCursorQueue,
    families={contract.Entry: Message},
    abstraction={
        **PLAIN_QUEUE,
        "status": status,
        "consuming": lambda queue, consumer: queue.takes[consumer],
        "mode": mode,
        "returns_to_place": lambda _queue: FALSE,
        "to_head": lambda _queue: TRUE,
        "survives": lambda _queue, _entry: TRUE,
    },
    witnesses={
        **dict.fromkeys(SENDS, publishes),
        **dict.fromkeys(MEMORY, reads),
        **dict.fromkeys(("give", "hand"), delivers),
        **dict.fromkeys(("get", "get_for_good"), gets),
        "attach": lambda _queue, consumer: does("consume", consumer),
        "open_window": lambda _queue, consumer: does(
            "set_credit", consumer, FALSE, integer(0), FALSE, integer(0)
        ),
        "cancel": lambda _queue, consumer: does("cancel", consumer),
        "return_at_close": lambda _queue, _consumer, m: does("release_at_close", m),
        "close": lambda _queue, which: does("close_channel", which),
        "acknowledge": lambda _queue, _consumer, m: does("acknowledge", m),
        "release": lambda _queue, _consumer, m: does("release", m),
        "purge": lambda queue: does("purge", queue.queue),
        "find_nothing": lambda _queue, consumer: does("get_nothing", consumer),
        "final_drain": lambda _queue, consumer: does("final_drain", consumer),
        "come_to_rest": lambda _queue: does("quiesce"),
        "crash": lambda _queue: does("crash"),
        "restart": lambda _queue: stutters(),
    },
    assumptions={
        "come_to_rest": Assumption(
            "what a consumer has not settled is a count, so not below 0",
            lambda queue: forall(Consumer, lambda c: queue.unsettled[c] >= 0),
        )
    },
)
"""The queue that reads its store with a cursor refines the whole contract."""
