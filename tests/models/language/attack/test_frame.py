"""Mutants of initial states and axioms: needed ones are refuted, the others are reported."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.models.contract.core import Contract
from brokerproof.models.language import (
    Bool,
    Fixed,
    Int,
    action,
    axiom,
    forall,
    require,
)
from brokerproof.models.language.attack.frame import judged_frame, side_by_side
from brokerproof.models.language.attack.mutants import Mutant, OtherStart, mutants
from brokerproof.models.language.attack.mutation_testing import Subject, attack
from brokerproof.models.language.attack.outcomes import JudgedMutant, Refuter, lost_by
from brokerproof.models.language.core.model import Model, System, trace
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.qpid.pull.pull_queue_refines_contract import PULL_QUEUE_REFINES_CONTRACT
from tests.models.language.attack.test_mutation_testing import Lamps
from tests.models.small_models import Counters, Item


class Assuming(Counters):
    """Counters with redundant axioms, or axioms that another one implies."""

    weight: Fixed[Item, Int]

    @axiom("something-is-heavy")
    def heavy(self) -> Bool:
        """Constrain a symbol that no action and no invariant uses."""
        return forall(Item, lambda i: self.weight[i] > 1)

    @axiom("something-has-weight")
    def has_weight(self) -> Bool:
        """Say less than the other."""
        return forall(Item, lambda i: self.weight[i] > 0)


class Bounded(Counters):
    """Counters that begin in the middle, so that the axiom is needed by a step alone."""

    step: Fixed[Item, Int]

    @axiom("steps-are-one")
    def steps_are_one(self) -> Bool:
        """Nothing is counted twice."""
        return forall(Item, lambda i: self.step[i] == 1)

    @action
    def increment(self, item: Item) -> None:
        """Count by what a step is."""
        require(self.count[item] < self.limit[item])
        self.count[item] = self.count[item] + self.step[item]


def frame_outcomes(model: type[Model]) -> dict[str, JudgedMutant]:
    """Return the outcomes of the mutants of initial states and axioms."""
    system = trace(model)
    return {
        mutant.name: judged_frame(system, mutant, ())
        for mutant in mutants(system)
        if not isinstance(mutant, Mutant)
    }


def test_a_start_that_breaks_an_invariant_is_refuted_by_a_run_of_no_steps() -> None:
    found = frame_outcomes(Lamps)["initially: lit: true instead of false"]
    assert (found.outcome, found.by) == ("reachable", ("lit-is-plugged",))
    [start] = found.witness
    assert start.state["lit[lamp0]"] is True


def test_a_start_that_shows_later_is_refuted_by_the_promise_that_it_changes() -> None:
    found = frame_outcomes(Lamps)
    assert found["initially: worn: true instead of false"].by == ("worn-lamps-stay-dark",)
    assert found["initially: worn: anything"].outcome == "requirement"


def test_a_start_that_nothing_is_said_of_survives() -> None:
    assert frame_outcomes(Lamps)["initially: plugged: true instead of false"].outcome == "survivor"
    judged = {each.name: each.outcome for each in attack(Subject(trace(Lamps))).judged}
    assert judged["initially: plugged: true instead of false"] == "survivor"


def test_an_axiom_is_lost_by_a_start_or_by_a_step_or_by_nothing() -> None:
    found = frame_outcomes(Assuming)
    needed = found["axiom limits-are-positive: dropped"]
    assert (needed.outcome, needed.by, len(needed.witness)) == (
        "reachable",
        ("count-within-limit",),
        1,
    )
    assert found["axiom something-is-heavy: dropped"].outcome == "survivor"
    assert found["axiom something-has-weight: dropped"].outcome == "equivalent"
    by_a_step = frame_outcomes(Bounded)["axiom steps-are-one: dropped"]
    assert (by_a_step.outcome, by_a_step.by) == ("reachable", ("count-within-limit",))
    assert [step.action for step in by_a_step.witness] == ["", "increment"]


def test_two_systems_that_are_alike_say_the_same() -> None:
    system = trace(Lamps)
    assert side_by_side(system, system) == ()
    [other] = [
        m
        for m in mutants(system)
        if isinstance(m, OtherStart) and m.name == "initially: plugged: true instead of false"
    ]
    assert side_by_side(system, other.within(system)) == ()


def test_the_first_refinement_that_is_lost_refutes() -> None:
    def losing(*names: str) -> Refuter:
        return lambda _: names

    system = trace(Lamps)
    assert lost_by([losing(), losing("second"), losing("third")], system) == ("second",)
    assert lost_by([losing()], system) == lost_by([], system) == ()


def test_a_wrong_start_above_or_below_is_no_refinement() -> None:
    bound = bind(PULL_QUEUE_REFINES_CONTRACT)

    def begun(system: System, name: str) -> System:
        [found] = [m for m in mutants(system) if m.name == name]
        return found.within(system)

    below = begun(bound.concrete, "initially: active: true instead of false")
    assert bound.broken_by(below) == ("consuming initially", "a-subscription-is-in-a-list")
    above = begun(trace(Contract), "initially: consuming: true instead of false")
    assert bound.broken_above(above) == ("consuming initially",)
    assert bound.broken_by(bound.concrete) == bound.broken_above(trace(Contract)) == ()


@pytest.mark.thorough
def test_an_axiom_that_the_refinement_needs_is_refuted_by_it() -> None:
    bound = bind(PULL_QUEUE_REFINES_CONTRACT)
    without = dataclasses.replace(bound.concrete, axioms=())
    assert "pointer-passes-nothing-of-interest" in bound.broken_by(without)


def test_an_update_of_the_contract_that_the_refinement_needs_is_refuted_by_it() -> None:
    bound = bind(PULL_QUEUE_REFINES_CONTRACT)
    [stays] = [m for m in mutants(bound.abstract) if m.name == "publish: behind: stays as it was"]
    assert bound.broken_above(stays.within(bound.abstract)) == ("an-arrival-is-behind-no-browser",)
