"""The refinement of the contract by the queue whose consumers pull.

One queue, FIFO or by priority, with selectors and without windows. A message that has arrived is
available, acquired or settled in both models; the dummy head is an entry without a counterpart in
the contract. The contract does not see the lists, so moves between them stutter. Consumers have to
want messages in the end if they have room; without windows there is always room, so at rest it is
assumed that all want them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from brokerproof.models.contract import core as contract
from brokerproof.models.contract.core import Contract, Mode
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
from brokerproof.models.language.prove.refinement import Assumption, Refinement, Witness, stutters
from brokerproof.models.qpid.pointer_queue import Entry, Status, Subscription
from brokerproof.models.qpid.pointer_queue_history import (
    ANOTHER_BROWSER,
    DOCUMENTED,
    SHOWN_AGAIN,
    RememberingQueue,
)
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pull.pull_queue import Listed, PullQueue


class RememberingPullQueue(PullQueue, RememberingQueue):
    """The queue whose consumers pull, with the history variables of the contract."""

    unsettled: Map[Subscription, Int]

    @initial
    def empty(self) -> None:
        """No event has happened."""
        super().empty()
        self.unsettled.fill(0)

    @invariant("what-was-shown-is-excused")
    def shown_is_excused(self, consumer: Subscription, e: Entry) -> Bool:
        """An entry that a browser was shown is excused."""
        return implies(
            self.is_browsing(consumer) & self.shown[consumer, e], self.excused[consumer, e]
        )


def moves_in_the_lists(_queue: PullQueue, _consumer: Subscription) -> Witness:
    """A move between the lists is invisible to the contract."""
    return stutters()


MOVES_IN_THE_LISTS: Final[Mapping[str, Callable[..., Witness]]] = dict.fromkeys(
    ("want", "want_no_more", "notify", "look"), moves_in_the_lists
)


def all_want_messages(queue: RememberingPullQueue) -> Bool:
    """Whether every subscribed consumer is interested."""
    return forall(
        Subscription,
        lambda consumer: implies(
            queue.active[consumer], ~queue.is_listed(consumer, Listed.NOT_INTERESTED)
        ),
    )


def status(queue: RememberingPullQueue, entry: Entry) -> contract.Status:
    """Map an entry's status; the dummy head is absent in the contract."""
    now = queue.status[entry]
    known = ite(now == Status.ACQUIRED, contract.Status.ACQUIRED, contract.Status.DEQUEUED)
    there = ite(now == Status.AVAILABLE, contract.Status.AVAILABLE, known)
    absent = (now == Status.ABSENT) | (entry == queue.head)
    return ite(absent, contract.Status.ABSENT, there)


def mode(queue: RememberingPullQueue, consumer: Subscription) -> Mode:
    """Map a subscription to a browser or a consumer that acknowledges."""
    return ite(queue.browser[consumer], Mode.BROWSE, Mode.ACKNOWLEDGE)


PULL_QUEUE_REFINES_CONTRACT = Refinement(
    name="pull-queue refines contract",
    concrete=PullQueue,
    abstract=Contract,
    remembering=RememberingPullQueue,
    families={contract.Entry: Entry, contract.Consumer: Subscription, contract.Channel: Channel},
    abstraction={
        "status": status,
        "consuming": lambda queue, consumer: queue.active[consumer],
        "shown": lambda queue, consumer, entry: queue.ever_shown[consumer, entry],
        "home": lambda queue, _entry: queue.queue,
        "fifo": lambda queue, _queue: queue.fifo,
        "mode": mode,
        "returns_to_place": lambda _queue: TRUE,
        "limited": lambda _queue, _consumer: FALSE,
        "limit": lambda _queue, _consumer: integer(0),
    },
    witnesses={
        **DOCUMENTED,
        **MOVES_IN_THE_LISTS,
    },
    assumptions={
        "subscribe": ANOTHER_BROWSER,
        "come_to_rest": Assumption(
            "that each consumer with room wants messages: here all have room", all_want_messages
        ),
    },
    left_out=(SHOWN_AGAIN,),
)
