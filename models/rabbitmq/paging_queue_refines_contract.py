"""The refinement of the contract by the paging queue, for any number of messages.

One FIFO queue, without windows and browsers. A message in any of the five places is available, a
pending one is acquired. Moves between places stutter: clients do not see what leaves memory. A
fetch is a delivery of the first message, or the answer to a get, with the queue's own delivered
flag.
"""

from __future__ import annotations

from brokerproof.models.contract import core as contract
from brokerproof.models.contract.core import Consumer, Mode, Origin, PurgeableContract, Status
from brokerproof.models.language import (
    FALSE,
    TRUE,
    Bool,
    Int,
    Map,
    implies,
    initial,
    invariant,
    ite,
)
from brokerproof.models.language.core.terms import integer
from brokerproof.models.language.prove.refinement import Refinement, Witness, does, stutters
from brokerproof.models.rabbitmq.paging_invariants import FLAG, FOUND, USED
from brokerproof.models.rabbitmq.paging_places import Message, Place
from brokerproof.models.rabbitmq.paging_queue import OFFERED, PagingQueue, Turn


class RememberingPagingQueue(PagingQueue):
    """The paging queue with the history variables of the contract."""

    queue: contract.Queue

    origin: Map[Message, Origin]
    served: Map[Consumer, Bool]
    unsettled: Map[Consumer, Int]

    @initial
    def empty(self) -> None:
        """No event has happened."""
        super().empty()
        self.origin.fill(Origin.PUBLISHED)
        self.served.fill(False)
        self.unsettled.fill(0)

    @invariant("what-waits-came-back-if-it-was-fetched", by=(FLAG, FOUND, USED, OFFERED))
    def came_back_if_fetched(self, m: Message) -> Bool:
        """A message that is ready came back exactly if it was fetched before."""
        return implies(
            self.is_ready(m), (self.origin[m] != Origin.PUBLISHED) == self.was_fetched[m]
        ) & implies(self.is_in(m, Place.NOWHERE), self.origin[m] == Origin.PUBLISHED)


def status(queue: RememberingPagingQueue, m: Message) -> Status:
    """Map a ready or offered message to available, a pending one to acquired."""
    known = ite(queue.is_in(m, Place.PENDING), Status.ACQUIRED, Status.DEQUEUED)
    absent = ite(queue.is_in(m, Place.NOWHERE), Status.ABSENT, known)
    return ite(queue.is_ready(m) | queue.offered[m], Status.AVAILABLE, absent)


def mode(queue: RememberingPagingQueue, who: Consumer) -> Mode:
    """Map a consumer's mode; there are no browsers."""
    return ite(queue.acknowledges[who], Mode.ACKNOWLEDGE, Mode.AUTOMATIC)


def delivers(queue: RememberingPagingQueue, m: Message, *_: Message | Bool) -> Witness:
    """A delivery reports the queue's own delivered flag."""
    return does("deliver", queue.subscriber[Turn.IT], m, queue.delivered[m])


def delivers_anew(queue: RememberingPagingQueue, m: Message) -> Witness:
    """A message that passes straight through was never delivered before."""
    return does("deliver", queue.subscriber[Turn.IT], m, FALSE)


def gets(queue: RememberingPagingQueue, m: Message, *_: Message | Bool) -> Witness:
    """The answer to a get reports the queue's own delivered flag."""
    return does("get", queue.subscriber[Turn.IT], m, queue.delivered[m])


def pages(_queue: RememberingPagingQueue, *_: Message) -> Witness:
    """A move between places is invisible to clients."""
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

PAGING_QUEUE_REFINES_CONTRACT = Refinement(
    name="paging-queue refines contract",
    concrete=PagingQueue,
    abstract=PurgeableContract,
    remembering=RememberingPagingQueue,
    families={contract.Entry: Message},
    history=("origin", "served", "unsettled"),
    abstraction={
        "status": status,
        "consuming": lambda queue, who: queue.active[who],
        "mode": mode,
        "home": lambda queue, _entry: queue.queue,
        "level": lambda _queue, _entry: integer(0),
        "fifo": lambda _queue, _home: TRUE,
        "returns_to_place": lambda _queue: TRUE,
        "wants": lambda _queue, _who, _entry: TRUE,
        "limited": lambda _queue, _who: FALSE,
        "limit": lambda _queue, _who: integer(0),
        "meddled": lambda _queue, _entry: FALSE,
        **dict.fromkeys(
            ("excused", "behind", "may_repeat", "shown", "came_back"),
            lambda _queue, _who, _entry: FALSE,
        ),
    },
    witnesses={
        "subscribe": lambda _queue, who: does("consume", who),
        "unsubscribe": lambda _queue, who: does("cancel", who),
        "choose": lambda _queue, _who: stutters(),
        "arrive": lambda _queue, m: does("publish", m),
        "publish": pages,
        "publish_delivered": delivers_anew,
        "pass_through": delivers_anew,
        **{f"fetch_{way}": delivers for way in FETCHES},
        **{f"get_{way}": gets for way in FETCHES},
        "find_nothing": lambda _queue, who: does("get_nothing", who),
        "final_drain": lambda _queue, who: does("final_drain", who),
        **dict.fromkeys(PAGING, pages),
        "acknowledge": lambda _queue, m: does("acknowledge", m),
        **dict.fromkeys(("requeue_to_q4", "requeue_to_q3", "requeue_to_delta"), requeues),
        "close_channel": lambda _queue, which: does("close_channel", which),
        "close_channel_beside_q3": lambda _queue, which, _head: does("close_channel", which),
        "purge": lambda queue: does("purge", queue.queue),
        "come_to_rest": lambda _queue: does("quiesce"),
    },
)
