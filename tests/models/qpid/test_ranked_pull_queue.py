"""The queue whose consumers pull keeps the whole contract, priorities included; twins do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from brokerproof.models.language import FALSE, TRUE, Bool
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.prove.refinement import Assumption
from brokerproof.models.qpid.pointer_queue import Entry, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel
from brokerproof.models.qpid.pointer_queue_refines_contract import NO_MESSAGES_NO_BYTES
from brokerproof.models.qpid.pull.pull_queue import Listed
from brokerproof.models.qpid.pull.ranked_pull_queue import RankedPullQueue
from brokerproof.models.qpid.pull.ranked_pull_queue_refines_contract import (
    RANKED_PULL_QUEUE_REFINES_CONTRACT as REFINES,
)
from brokerproof.models.qpid.pull.ranked_pull_queue_refines_contract import (
    RememberingRankedPullQueue as Remembering,
)
from brokerproof.models.qpid.pull.ranked_pull_queue_refines_contract import all_want_messages


class TakesInAnyTurn(RankedPullQueue):
    """Gives way to no consumer."""

    def gives_way(self, consumer: Subscription, entry: Entry) -> Bool:  # noqa: ARG002
        """Whether a consumer of a higher priority wants the entry."""
        return FALSE


class SeesTheNotifiedAlone(RankedPullQueue):
    """Overlooks a consumer of a higher priority that is not notified."""

    def is_outranked(self, consumer: Subscription, other: Subscription) -> Bool:
        """Whether the other one is notified, and has a higher priority."""
        return super().is_outranked(consumer, other) & self.is_listed(other, Listed.NOTIFIED)


def unproved(twin: type[RankedPullQueue], *actions: str, **assumed: Assumption) -> set[str]:
    """Return the names of a twin's unproved obligations, of these actions."""
    bases = (Remembering,) if twin is RankedPullQueue else (twin, Remembering)
    remembering = type("RememberingTwin", bases, {})
    assumptions = {**REFINES.assumptions, **assumed}
    bound = bind(
        dataclasses.replace(
            REFINES, concrete=twin, remembering=remembering, assumptions=assumptions
        )
    )
    answers = [each for action in actions for each in bound.answers(action)]
    assert len(answers) > 5 * len(actions)
    return {each.name for each in answers if each.outcome != "proved"}


def test_deliveries_and_rests_keep_the_whole_contract() -> None:
    assert unproved(RankedPullQueue, "deliver", "come_to_rest", "begin_get", "want") == set()


@pytest.mark.each_time(1)
@pytest.mark.parametrize("twin", [TakesInAnyTurn, SeesTheNotifiedAlone])
def test_each_rule_of_priorities_is_needed(twin: type[RankedPullQueue]) -> None:
    assert unproved(twin, "deliver") == {"consumer-priority"}


def hasty(queue: Remembering, *taken: Term) -> Bool:
    """Whether all want messages, and windows are counts."""
    return all_want_messages(queue) & NO_MESSAGES_NO_BYTES.term(queue, *taken)


def nothing(_queue: Remembering) -> Bool:
    """Assume nothing."""
    return TRUE


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("action", "less", "lost"),
    [
        ("come_to_rest", nothing, {"quiescence", "credit-used", "browser-sees-all"}),
        ("deliver", hasty, {"consumer-priority"}),
    ],
)
def test_each_assumption_is_needed(action: str, less: Callable[..., Bool], lost: set[str]) -> None:
    assert unproved(RankedPullQueue, action, **{action: Assumption("less", less)}) == lost


def test_two_consumers_of_different_priorities_keep_all_of_it() -> None:
    scope = Scope(
        {Entry: 2, Subscription: 2, Channel: 1},
        range(2),
        {
            **dict.fromkeys(("head", "level", "by_key", "fifo", "exclusive", "not_before"), 0),
            **dict.fromkeys(("wants", "size", "expires", "horizon"), 1),
            **dict.fromkeys(("settles_when_sent", "deletes_itself", "closes_itself", "is_get"), 0),
            "rank": (1, 0),
            "browser": 0,
        },
    )
    found = explore(trace(RankedPullQueue), scope, limit_states=200_000)
    assert found.violation is None
    assert found.firings["deliver"]


@pytest.mark.thorough
def test_the_pulled_queue_refines_the_whole_contract_and_delivers_in_the_end() -> None:
    proof = bind(REFINES).proof()
    assert proof.complete
    assert proof.standing("consumer-priority") == "proved"
    alone = prove(trace(RankedPullQueue))
    assert alone.complete
    assert "what-a-consumer-wants-is-delivered" in {each.name for each in alone.stated}
