"""Mutants that only a liveness property refutes: a run shows each."""

from __future__ import annotations

import pytest
import z3

from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language import (
    Bool,
    Family,
    Map,
    Model,
    action,
    forall,
    implies,
    initial,
    invariant,
    leads_to,
    require,
)
from brokerproof.models.language.attack import mutation_testing as attack_module
from brokerproof.models.language.attack import progress as attack_progress
from brokerproof.models.language.attack.mutants import mutants
from brokerproof.models.language.attack.mutation_testing import Subject, attack, reasons_of
from brokerproof.models.language.attack.outcomes import JudgedMutant
from brokerproof.models.language.attack.progress import held, judged_in_the_end
from brokerproof.models.language.core.model import trace
from brokerproof.models.refinements import REFINEMENTS, attack_on


class Guest(Family):
    """A visitor."""


class Door(Model):
    """A door that opens for visitors who have rung."""

    rang: Map[Guest, Bool]
    is_in: Map[Guest, Bool]

    @initial
    def closed(self) -> None:
        """No visitor is there."""
        self.rang.fill(False)
        self.is_in.fill(False)

    @action
    def ring(self, guest: Guest) -> None:
        """A guest rings."""
        require(~self.rang[guest])
        self.rang[guest] = True

    @action
    def open(self, guest: Guest) -> None:
        """The door is opened."""
        require(self.rang[guest] & ~self.is_in[guest])
        self.is_in[guest] = True

    @invariant("each-visitor-inside-has-rung")
    def has_rung(self) -> Bool:
        """Every visitor who is in has rung."""
        return forall(Guest, lambda guest: implies(self.is_in[guest], self.rang[guest]))


class Promising(Door):
    """A door that is opened in the end."""

    @leads_to("each-visitor-that-rings-comes-in", fair=("open",))
    def comes_in(self, guest: Guest) -> tuple[Bool, Bool]:
        """A visitor who rings comes in."""
        return self.rang[guest], self.is_in[guest]


class Hoping(Door):
    """A door with a false property: no action must be a ring."""

    @leads_to("each-visitor-outside-comes-in", fair=("open",))
    def comes_in(self, guest: Guest) -> tuple[Bool, Bool]:
        """A visitor who has not rung comes in."""
        return ~self.rang[guest], self.is_in[guest]


def judged(model: type[Model]) -> dict[str, JudgedMutant]:
    """Return the outcome of each mutant."""
    return {each.name: each for each in attack(Subject(trace(model))).judged}


def test_what_only_a_promise_about_the_end_holds_is_refuted_by_a_run_of_it() -> None:
    stays = "open: is_in: stays as it was"
    assert judged(Door)[stays].outcome == "survivor"
    found = judged(Promising)[stays]
    assert (found.outcome, found.by) == ("reachable", ("each-visitor-that-rings-comes-in",))
    assert [step.action for step in found.witness] == ["", "ring", "open"]


def test_a_promise_whose_premise_never_comes_about_any_more_says_otherwise() -> None:
    stays = "ring: rang: stays as it was"
    assert judged(Door)[stays].outcome == "survivor"
    found = judged(Promising)[stays]
    assert (found.outcome, found.by) == ("requirement", ("each-visitor-that-rings-comes-in",))


def test_a_promise_that_the_text_does_not_keep_refutes_nothing() -> None:
    assert held(trace(Hoping)) == ()
    outcomes = {name: each.outcome for name, each in judged(Hoping).items()}
    assert outcomes == {name: each.outcome for name, each in judged(Door).items()}


def test_the_text_as_it_is_breaks_nothing_that_it_keeps() -> None:
    system = trace(Promising)
    where = held(system)
    assert {name for each in where for name in each.names} == {"each-visitor-that-rings-comes-in"}
    assert judged_in_the_end("none", system, where) == JudgedMutant("none", "survivor")


def test_a_scope_that_is_too_large_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    system = trace(Promising)
    where = held(system)
    [stays] = [m for m in mutants(system) if m.name == "open: is_in: stays as it was"]
    assert judged_in_the_end("", stays.within(system), where).outcome == "reachable"
    monkeypatch.setattr(attack_progress, "CHANGED_MAX", 1)
    assert judged_in_the_end("", stays.within(system), where).outcome == "survivor"
    monkeypatch.setattr(attack_progress, "STATES_MAX", 1)
    assert held(system) == ()


def test_where_a_large_scope_becomes_too_large_a_smaller_one_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = trace(Promising)
    where = held(system)
    assert [dict(each.scope.sizes) for each in where] == [{Guest: 1}, {Guest: 2}, {Guest: 3}]
    [stays] = [m for m in mutants(system) if m.name == "open: is_in: stays as it was"]
    guests = [len(judged_in_the_end("", stays.within(system), where).witness[0].state)]
    monkeypatch.setattr(attack_progress, "CHANGED_MAX", 2)
    guests.append(len(judged_in_the_end("", stays.within(system), where).witness[0].state))
    assert guests == [6, 2]


def test_a_mutant_is_never_refuted_by_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Z3 proves nothing and no scope refutes, an invariant counts as kept."""
    dropped, unneeded = "open: guard 1: dropped", "ring: guard 1: dropped"
    before = judged(Door)
    monkeypatch.setattr(attack_module, "asked", lambda *_: (z3.unknown, "tired"))
    after = judged(Door)
    assert (before[dropped].outcome, after[dropped].outcome) == ("reachable", "reachable")
    assert (before[unneeded].outcome, after[unneeded].outcome) == ("survivor", "survivor")


NEVER_FITS = "shared: fits: without (forall m: ~loaded[m])"


def test_a_rank_that_is_not_lowered_any_more_refutes_a_mutant() -> None:
    """No scope of the attack has a message larger than memory, which then never fits."""
    subject = attack_on("cursor-memory")
    [too_large] = [each for each in subject.mutants() if each.name == NEVER_FITS]
    where, changed = held(subject.system), too_large.within(subject.system)
    assert judged_in_the_end("", changed, where, ()).outcome == "survivor"
    found = judged_in_the_end("", changed, where, {each.name for each in changed.actions})
    assert (found.outcome, found.by) == ("induction", ("what-is-parked-is-taken-or-given-up",))
    assert found.witness


LONG = {
    *("contract", "whole-contract", "lawful-contract", "paging-index", "paging-places"),
    *("pointer-queue", "pull-queue"),
}
"""Models whose attacks take longer than a test may; for two, `prove NAME --attack` takes hours."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in CATALOGUE
        if (name in REFINEMENTS or reasons_of(CATALOGUE[name].model)) and name not in LONG
    ],
)
def test_each_survivor_has_a_reason_and_each_reason_a_survivor(name: str) -> None:
    assert attack(attack_on(name)).different == {}


REASONS = """
It is only a door.
    ring: guard 1; open: guard 1, is_in; initially: rang*2
"""


def test_a_mutant_that_newly_survives_at_a_known_place_is_told() -> None:
    assert attack(Subject(trace(Promising), REASONS)).complete
    found = attack(Subject(trace(Door), REASONS))
    assert found.different == {
        "open: is_in": ["open: is_in: stays as it was", "open: is_in: without is_in[g]"],
        "ring: rang": ["ring: rang: stays as it was"],
    }
    assert not found.complete


def test_a_reason_is_stale_once_a_property_refutes_its_mutant() -> None:
    more = REASONS + "It has no bell.\n    ring: rang; open: is_in"
    assert attack(Subject(trace(Door), more)).complete
    found = attack(Subject(trace(Promising), more))
    assert found.different == {"open: is_in": ["open: is_in: without is_in[g]"], "ring: rang": []}
    assert not found.complete
