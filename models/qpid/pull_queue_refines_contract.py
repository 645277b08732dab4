"""The refinement of the contract by the queue whose consumers pull.

History and abstraction are those of the queue of pointers. The contract does not see the lists, so
moves between them stutter. Consumers have to want messages in the end if they have room; without
windows there is always room, so at rest it is assumed that all want them.
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
from brokerproof.models.qpid.pull_queue import Listed, PullQueue


class RememberingPullQueue(PullQueue, RememberingQueue):
    """The queue whose consumers pull, with the history variables of the contract."""

    @invariant("what-was-shown-is-excused")
    def shown_is_excused(self, who: Subscription, e: Entry) -> Bool:
        """An entry that a browser was shown is excused."""
        return implies(self.is_browsing(who) & self.shown[who, e], self.excused[who, e])


def moves_in_the_lists(_queue: RememberingPullQueue, _who: Subscription) -> Witness:
    """A move between the lists is invisible to the contract."""
    return stutters()


def all_want_messages(queue: RememberingPullQueue) -> Bool:
    """Whether every subscribed consumer is interested."""
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
            "that each consumer with room wants messages: here all have room", all_want_messages
        ),
    },
)
