"""The refinement of the whole contract by the queue whose consumers pull.

To the contract it is the pushed queue, whose abstraction and history it has, with the priorities of
consumers. The contract does not see the lists, so moves between them stutter. A delivery is one by
rank. The document leaves open when a consumer says that it wants messages; it is assumed that each
one with room for its next message does.
"""

from __future__ import annotations

from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.language import Bool, exists, forall, implies, invariant
from brokerproof.models.language.prove.refinement import (
    Assumption,
    Refinement,
    Witness,
    does,
)
from brokerproof.models.qpid.pointer_queue import Entry, Subscription
from brokerproof.models.qpid.pointer_queue_history import has_returned
from brokerproof.models.qpid.pointer_queue_refines_contract import (
    NO_MESSAGES_NO_BYTES,
    POINTER_QUEUE_REFINES_CONTRACT,
    RememberingRemovingQueue,
)
from brokerproof.models.qpid.pull.pull_queue import Listed
from brokerproof.models.qpid.pull.pull_queue_refines_contract import MOVES_IN_THE_LISTS
from brokerproof.models.qpid.pull.ranked_pull_queue import RankedPullQueue

PUSHED = POINTER_QUEUE_REFINES_CONTRACT


class RememberingRankedPullQueue(RankedPullQueue, RememberingRemovingQueue):
    """The queue whose consumers pull, with the history variables of the whole contract."""

    @invariant("what-was-shown-is-excused")
    def shown_is_excused(self, consumer: Subscription, e: Entry) -> Bool:
        """An entry that a browser was shown is excused."""
        return implies(
            self.is_browsing(consumer) & self.shown[consumer, e], self.excused[consumer, e]
        )


def delivers(queue: RememberingRankedPullQueue, consumer: Subscription, entry: Entry) -> Witness:
    """A delivery by rank reports whether the entry had come back."""
    return does("deliver_by_rank", consumer, entry, has_returned(queue, entry))


def wants_if_it_has_room(queue: RememberingRankedPullQueue, consumer: Subscription) -> Bool:
    """Whether a consumer that wants no messages waits for room at its next one, if it has one."""

    def is_next(e: Entry) -> Bool:
        return queue.has_work(consumer, e) & ~queue.is_over(e)

    def is_held_up(e: Entry) -> Bool:
        return exists(
            Entry, lambda f: queue.before(f, e) & is_next(f) & ~queue.has_room(consumer, f)
        )

    return implies(
        queue.is_listed(consumer, Listed.NOT_INTERESTED) & ~queue.is_get[consumer],
        forall(Entry, lambda e: implies(is_next(e) & queue.has_room(consumer, e), is_held_up(e))),
    )


ALL_WANT = "that each consumer with room for its next message wants messages"


def all_want_messages(queue: RememberingRankedPullQueue) -> Bool:
    """Whether every consumer with room for its next message wants messages."""
    return forall(Subscription, lambda consumer: wants_if_it_has_room(queue, consumer))


def delivered_in_turn(
    queue: RememberingRankedPullQueue, consumer: Subscription, entry: Entry
) -> Bool:
    """Whether all want messages, and no arrival goes past a consumer of a higher priority."""
    outranked = exists(Subscription, lambda c: queue.rank[c] > queue.rank[consumer])
    return (
        NO_MESSAGES_NO_BYTES.term(queue, consumer, entry)
        & all_want_messages(queue)
        & implies(queue.arriving[entry], ~outranked)
    )


RANKED_PULL_QUEUE_REFINES_CONTRACT = Refinement(
    name="pull-queue refines whole-contract",
    concrete=RankedPullQueue,
    abstract=WholeContract,
    remembering=RememberingRankedPullQueue,
    families=PUSHED.families,
    abstraction={**PUSHED.abstraction, "rank": lambda queue, consumer: queue.rank[consumer]},
    witnesses={
        **PUSHED.witnesses,
        "deliver": delivers,
        **MOVES_IN_THE_LISTS,
    },
    assumptions={
        **PUSHED.assumptions,
        "deliver": Assumption(
            f"{NO_MESSAGES_NO_BYTES.text}; {ALL_WANT}; that consumers of several priorities have "
            "looked back at an arrival before one takes it",
            delivered_in_turn,
        ),
        "come_to_rest": Assumption(ALL_WANT, all_want_messages),
    },
    left_out=PUSHED.left_out,
)
