"""The queue that consumers pull from keeps the contract, as the queue of pointers does.

It has the same history and the same abstraction: who is told of what is nothing that the contract
sees. The moves between the lists are no steps of it. That whoever has room wants messages, in the
end, is the obligation of consumers; without windows there is always room, so at rest it is assumed.
"""

from __future__ import annotations

import dataclasses

from brokerproof.models.language import Bool, forall, implies, invariant
from brokerproof.models.language.prove.refinement import Assumption, Witness, stutters
from brokerproof.models.qpid.pointer_queue import Entry, Subscription
from brokerproof.models.qpid.pointer_queue_refines_contract import (
    POINTER_QUEUE_REFINES_CONTRACT,
    RememberingQueue,
)
from brokerproof.models.qpid.pull_queue import PullQueue
from brokerproof.models.qpid.threads.consumer_lists import Listed


class RememberingPullQueue(PullQueue, RememberingQueue):
    """The queue that consumers pull from, with all that the contract remembers of it."""

    @invariant("what-was-shown-is-excused")
    def shown_is_excused(self) -> Bool:
        """What a browser was shown it need not be shown again."""
        return forall(
            Subscription,
            Entry,
            lambda who, e: implies(
                self.is_browsing(who) & self.shown[who, e], self.excused[who, e]
            ),
        )


def moves_in_the_lists(_queue: RememberingPullQueue, _who: Subscription) -> Witness:
    """The contract sees no lists."""
    return stutters()


def all_want_messages(queue: RememberingPullQueue) -> Bool:
    """Whether nobody who is subscribed is without interest."""
    return forall(
        Subscription,
        lambda who: implies(queue.active[who], ~queue.is_listed(who, Listed.NOT_INTERESTED)),
    )


PULL_QUEUE_REFINES_CONTRACT = dataclasses.replace(
    POINTER_QUEUE_REFINES_CONTRACT,
    name="pull-queue refines contract",
    concrete=PullQueue,
    remembering=RememberingPullQueue,
    witnesses={
        **POINTER_QUEUE_REFINES_CONTRACT.witnesses,
        **dict.fromkeys(("want", "want_no_more", "notify", "look"), moves_in_the_lists),
    },
    assumptions={
        **POINTER_QUEUE_REFINES_CONTRACT.assumptions,
        "come_to_rest": Assumption(
            "that whoever has room wants messages: here everybody has", all_want_messages
        ),
    },
)
