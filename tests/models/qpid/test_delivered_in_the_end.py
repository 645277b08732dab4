"""An available entry that a consumer wants is delivered: proved, explored, and broken in twins."""

from __future__ import annotations

import pytest

from brokerproof.models.language import (
    FALSE,
    Bool,
    action,
    finitely,
    forall,
    leads_to,
    require,
)
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.conditions import InvariantProof
from brokerproof.models.language.prove.ranking import HELPED, STEP, prove_leads_to
from brokerproof.models.qpid.pointer_queue import (
    DELIVERED_BY,
    IS_DELIVERED,
    Entry,
    PointerQueue,
    Subscription,
)
from brokerproof.models.qpid.pointer_queue_clock import TimedQueue
from brokerproof.models.qpid.pull.pull_queue import PullQueue

FAIR = ("look_back", "deliver", "pass_over")


def delivered(model: type[PointerQueue]) -> InvariantProof:
    """Return the result for the only liveness property."""
    [progress] = trace(model).leads_to
    return prove_leads_to(trace(model), progress)


@pytest.mark.each_time(1)
@pytest.mark.parametrize(("model", "conditions"), [(TimedQueue, 46), (PullQueue, 73)])
def test_what_a_consumer_wants_is_delivered(model: type[PointerQueue], conditions: int) -> None:
    proof = delivered(model)
    assert (proof.name, proof.outcome, proof.says_nothing) == (IS_DELIVERED, "proved", False)
    assert len(proof.conditions) == conditions
    assert [text.partition(" ")[0] for text in proof.assumptions][-1] == "least:"


class NeverPasses(PointerQueue):
    """A pointer need not move on from an entry that another subscription has."""

    @leads_to(IS_DELIVERED, fair=("look_back", "deliver"), by=DELIVERED_BY)
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """Without the fairness of `pass_over`."""
        stated = super().wanted_is_delivered(consumer, m)
        self.ranked_up_to(m, consumer, pass_over=lambda *_: FALSE)
        return stated


class OneAtATime(PointerQueue):
    """A queue that delivers nothing while any entry is unsettled."""

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """No subscription holds an entry."""
        require(forall(Subscription, Entry, lambda c, e: ~self.holds[c, e]))
        super().deliver(consumer, entry)


class BeginsAgain(PointerQueue):
    """A queue that stutters for ever: a pointer goes back to the head and forward again."""

    @action
    def begin_again(self, consumer: Subscription) -> None:
        """A pointer goes back to the head."""
        require(self.active[consumer] & ~self.browser[consumer])
        self.last_seen[consumer] = self.head
        self.rewound[consumer] = False


class ReturnsForEver(PointerQueue):
    """A client may take and return an entry in front for ever, and the property admits it."""

    @leads_to(IS_DELIVERED, fair=FAIR, by=DELIVERED_BY)
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """Without the limit on returns."""
        stated = super().wanted_is_delivered(consumer, m)
        finitely(release=lambda *_: FALSE)
        return stated


@pytest.mark.each_time(1)
@pytest.mark.parametrize(
    ("model", "failing"),
    [
        (NeverPasses, (HELPED, None)),
        (OneAtATime, (HELPED, None)),
        (BeginsAgain, (STEP, "begin_again")),
        (ReturnsForEver, (STEP, "release")),
    ],
)
def test_a_queue_that_does_not_deliver_is_refuted_by_its_condition_and_by_a_run(
    model: type[PointerQueue], failing: tuple[str, str | None]
) -> None:
    proof = delivered(model)
    assert [(c.of, c.action) for c in proof.conditions if c.outcome != "proved"] == [failing]
    assert proof.outcome == "refuted"
    [found] = check(trace(model), Scope({Entry: 3, Subscription: 2}, range(1)))
    assert found.asked
    assert not found.kept
