"""The refinement of the contract by the paging queue, for any number of messages.

One FIFO queue without browsers, whose only window is the closed one of a new consumer. A message in
any of the five places is available, a pending one is acquired. Moves between places, syncs and
starts stutter: clients do not see what leaves memory. A fetch is a delivery of the first message,
or the answer to a get, with the queue's own delivered flag.

The release marks all that it recovers as delivered. The contract allows that of a node that stops
at work. A message that was not synced may be lost: its publish has no answer before its confirm.
"""

from __future__ import annotations

from brokerproof.models.contract import core as contract
from brokerproof.models.contract.core import Channel, Consumer, Mode, Origin, Status
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
from brokerproof.models.rabbitmq.paging_invariants import FLAG, FOUND, USED
from brokerproof.models.rabbitmq.paging_places import Message, Place
from brokerproof.models.rabbitmq.paging_queue import OFFERED, PagingQueue


class RememberingPagingQueue(PagingQueue):
    """The paging queue with the history variables of the contract."""

    queue: contract.Queue

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
    subscribed_to: Map[contract.Queue, Bool]

    @initial
    def empty(self) -> None:
        """No event has happened."""
        super().empty()
        self.origin.fill(Origin.PUBLISHED)
        self.end.fill(End.NONE)
        for truth in (self.spared, self.restarted, self.either_flag):
            truth.fill(False)
        for fact in (self.served, self.lowered):
            fact.fill(False)
        for number in (self.unsettled, self.unsettled_bytes):
            number.fill(0)
        for pooled in (self.in_pool, self.bytes_in_pool):
            pooled.fill(0)
        self.subscribed_to.fill(False)

    @invariant("what-waits-came-back-if-it-was-fetched", by=(FLAG, FOUND, USED, OFFERED))
    def came_back_if_fetched(self, m: Message) -> Bool:
        """A message came back exactly if it was fetched, or no node knows: it was in a crash."""
        return implies(
            self.is_ready(m),
            self.either_flag[m] | ((self.origin[m] != Origin.PUBLISHED) == self.was_fetched[m]),
        ) & implies(
            self.is_in(m, Place.NOWHERE),
            (self.origin[m] == Origin.PUBLISHED) & ~self.either_flag[m],
        )

    @invariant("what-is-there-has-not-ended", by=(FOUND, USED, OFFERED))
    def there_has_not_ended(self, m: Message) -> Bool:
        """A message that is there, or has not come, has no end."""
        return implies(self.is_there(m) | self.is_in(m, Place.NOWHERE), self.end[m] == End.NONE)


def status(queue: RememberingPagingQueue, m: Message) -> Status:
    """Map a ready or offered message to available, a pending one to acquired."""
    known = ite(queue.is_in(m, Place.PENDING), Status.ACQUIRED, Status.DEQUEUED)
    absent = ite(queue.is_in(m, Place.NOWHERE), Status.ABSENT, known)
    return ite(queue.is_ready(m) | queue.offered[m], Status.AVAILABLE, absent)


def mode(queue: RememberingPagingQueue, consumer: Consumer) -> Mode:
    """Map a consumer's mode; there are no browsers."""
    return ite(queue.acknowledges[consumer], Mode.ACKNOWLEDGE, Mode.AUTOMATIC)


def delivers(queue: RememberingPagingQueue, m: Message, *_: Message | Bool) -> Witness:
    """A delivery reports the queue's own delivered flag."""
    return does("deliver", queue.subscriber, m, queue.delivered[m])


def delivers_anew(queue: RememberingPagingQueue, m: Message) -> Witness:
    """A message that passes straight through was never delivered before."""
    return does("deliver", queue.subscriber, m, FALSE)


def gets(queue: RememberingPagingQueue, m: Message, *_: Message | Bool) -> Witness:
    """The answer to a get reports the queue's own delivered flag."""
    return does("get", queue.subscriber, m, queue.delivered[m])


def pages(_queue: RememberingPagingQueue, *_: object) -> Witness:
    """A move between places, and what the disk does, is invisible to clients."""
    return stutters()


def requeues(_queue: RememberingPagingQueue, *messages: Message) -> Witness:
    """A requeue releases the message in the last argument."""
    return does("release", messages[-1])


FETCHES = ("from_q4", "from_q3", "last", "last_and_reload", "last_and_reload_all")
"""The ways to fetch, by the effect on q3."""

PAGING = (
    *("page_q1_to_q3", "page_q1_to_q2", "page_q4", "page_q3", "page_q2", "limit_ram_acks"),
    *("put_back_into_q4", "put_back_and_reload", "put_back_and_reload_all"),
)
"""The moves that clients do not see."""

DISK = (
    *("sync_store", "sync_index", "hear_written", "hear_ignored", "drain_confirmed"),
    *("restart", "restart_and_reload", "restart_and_reload_all"),
)
"""What the disk does, and the confirms: a publish counts before its confirm is sent."""

PAGING_QUEUE_REFINES_CONTRACT = Refinement(
    name="paging-queue refines whole-contract",
    concrete=PagingQueue,
    abstract=WholeContract,
    remembering=RememberingPagingQueue,
    families={contract.Entry: Message},
    abstraction={
        **PLAIN_QUEUE,
        "status": status,
        "consuming": lambda queue, consumer: queue.active[consumer],
        "mode": mode,
        "returns_to_place": lambda _queue: TRUE,
        "to_head": lambda _queue: FALSE,
        "survives": lambda queue, m: queue.persistent[m],
        **dict.fromkeys(("stamp", "stamps"), lambda _queue, _one: integer(0)),
    },
    witnesses={
        "subscribe": lambda _queue, consumer: does("consume", consumer),
        "open_window": lambda _queue, consumer: does(
            "set_credit", consumer, FALSE, integer(0), FALSE, integer(0)
        ),
        "unsubscribe": lambda _queue, consumer: does("cancel", consumer),
        "choose": lambda _queue, _consumer: stutters(),
        "arrive": lambda _queue, m: does("publish", m),
        "publish": pages,
        "publish_delivered": delivers_anew,
        "pass_through": delivers_anew,
        **{f"fetch_{way}": delivers for way in FETCHES},
        **{f"get_{way}": gets for way in FETCHES},
        "find_nothing": lambda _queue, consumer: does("get_nothing", consumer),
        "final_drain": lambda _queue, consumer: does("final_drain", consumer),
        **dict.fromkeys((*PAGING, *DISK), pages),
        "acknowledge": lambda _queue, m: does("acknowledge", m),
        **dict.fromkeys(("requeue_to_q4", "requeue_to_q3", "requeue_to_delta"), requeues),
        "close_channel": lambda _queue, which: does("close_channel", which),
        "close_channel_beside_q3": lambda _queue, which, _head: does("close_channel", which),
        "purge": lambda queue: does("purge", queue.queue),
        "come_to_rest": lambda _queue: does("quiesce"),
        "crash": lambda _queue: does("crash_at_work"),
        "lose": lambda queue, m: does("drop_in_a_crash", queue.queue, m),
    },
    assumptions={
        "come_to_rest": Assumption(
            "what a consumer has not settled is a count, so not below 0",
            lambda queue: forall(Consumer, lambda c: queue.unsettled[c] >= 0),
        )
    },
)
