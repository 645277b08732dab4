"""Models from textbooks are proved and explored, and each wrong variant is refuted by both."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Model, action, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from tests.models.language.outside.models import (
    At,
    Hasty,
    Item,
    Node,
    OneTooMany,
    Participant,
    Peterson,
    Polite,
    Process,
    RingBuffer,
    RingElection,
    Selfish,
    TwoPhaseCommit,
    other,
)

MODELS = [
    pytest.param(Peterson, Selfish, Scope({}, range(5)), "one-works", id="peterson"),
    pytest.param(
        RingBuffer,
        OneTooMany,
        Scope({Item: 3}, range(-3, 5), {"capacity": 2}),
        "first-in-first-out",
        id="ring-buffer",
    ),
    pytest.param(
        TwoPhaseCommit, Hasty, Scope({Participant: 3}, range(1)), "all-end-alike", id="two-phase"
    ),
    pytest.param(RingElection, Polite, Scope({Node: 3}, range(1)), "one-leads", id="ring-election"),
]


@pytest.mark.parametrize(("right", "wrong", "scope", "broken"), MODELS)
def test_the_right_model_holds_for_any_size_and_the_wrong_one_does_not(
    right: type[Model], wrong: type[Model], scope: Scope, broken: str
) -> None:
    assert prove(trace(right)).complete
    assert "refuted" in {each.outcome for each in prove(trace(wrong)).stated}
    found = explore(trace(right), scope)
    assert found.violation is None
    assert all(found.firings.values())
    violation = explore(trace(wrong), scope, invariants=(broken,)).violation
    assert violation is not None
    assert violation.invariant == broken


class GivesItBack(Peterson):
    """A process that waits may give the turn back for ever."""

    @action
    def drop(self, p: Process) -> None:
        """The other has the turn again."""
        require(self.at[p] == At.WAITS)
        self.turn = other(p)


def test_a_process_that_asks_works_in_the_end_unless_it_gives_its_turn_back() -> None:
    system, scope = trace(Peterson), Scope({}, range(5))
    [proof] = prove(system).leads_to
    assert proof.outcome == "proved"
    assert all(each.kept for each in check(system, scope))
    [proof] = prove(trace(GivesItBack)).leads_to
    assert proof.outcome == "refuted"
    assert not any(each.kept for each in check(trace(GivesItBack), scope))
