"""Leads-to properties by their ranks: true ones are proved, and no condition is without need."""

from __future__ import annotations

import pytest

from brokerproof.checks.commands.proof_lines import invariant_lines
from brokerproof.models.language import (
    FALSE,
    Bool,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Order,
    SetOf,
    Value,
    action,
    axiom,
    elements,
    finitely,
    forall,
    initial,
    invariant,
    leads_to,
    least,
    ranked,
    require,
)
from brokerproof.models.language.core.model import ModelError, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.conditions import InvariantProof
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.prove.ranking import (
    BEGINS,
    FINITE,
    HELPED,
    NOT_NEGATIVE,
    STEP,
    WITHIN,
    prove_leads_to,
)

SERVED = "each-guest-is-served"


class Guest(Family):
    """A guest, who has a place in the row from the beginning."""


class Row(Model):
    """Guests who stand in a row; the first of it is served."""

    before: Order[Guest]
    came: Map[Guest, Bool]
    waits: Map[Guest, Bool]

    @initial
    def empty(self) -> None:
        """No guest is there."""
        self.came.fill(False)
        self.waits.fill(False)

    @action
    def come(self, g: Guest) -> None:
        """A guest comes, once, and may push ahead of others."""
        require(~self.came[g])
        self.came[g] = True
        self.waits[g] = True

    @action
    def serve(self, g: Guest) -> None:
        """The first guest is served."""
        require(self.waits[g])
        require(forall(Guest, lambda f: ~(self.waits[f] & self.before(f, g))))
        self.waits[g] = False

    @invariant("a-waiting-guest-came")
    def came_first(self, g: Guest) -> Bool:
        """No guest waits without having come."""
        return ~self.waits[g] | self.came[g]

    def is_in_front(self, f: Guest, g: Guest) -> Bool:
        """Whether a guest waits at or before the place of another one."""
        return self.waits[f] & ((f == g) | self.before(f, g))

    @leads_to(SERVED, fair=("serve",))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """A guest who waits is served, unless others push ahead again and again."""
        self.ranked(g)
        return self.waits[g], ~self.waits[g]

    def ranked(self, g: Guest) -> None:
        """Rank the guests at or before the place."""
        least(self.before, lambda f: self.waits[f])
        finitely(come=lambda f: self.before(f, g))
        ranked(
            elements(Guest, lambda f: self.is_in_front(f, g), within=lambda f: self.came[f]),
            lowered_by={"serve": lambda _: True},
            words="the guests who wait up to this place",
        )


def served(model: type[Model]) -> InvariantProof:
    """Return the result for the model's only property."""
    [progress] = trace(model).leads_to
    return prove_leads_to(trace(model), progress)


def open_conditions(model: type[Model]) -> set[tuple[str, str | None]]:
    """Return what is not proved of the property, with its action."""
    return {(c.of, c.action) for c in served(model).conditions if c.outcome != "proved"}


def kept(model: type[Model], guests: int = 3) -> bool:
    """Return whether the explorer finds no run that breaks the property."""
    [found] = check(trace(model), Scope({Guest: guests}, range(4)))
    assert found.asked
    return found.kept


def test_a_rank_shows_a_property_for_any_number_of_elements() -> None:
    proof = prove(trace(Row))
    [progress] = proof.leads_to
    assert (progress.name, progress.outcome, progress.says_nothing) == (SERVED, "proved", False)
    assert [(c.of, c.action) for c in progress.conditions] == [
        (BEGINS, None),
        (HELPED, None),
        (STEP, "come"),
        (STEP, "serve"),
        (WITHIN, None),
        (FINITE, None),
        (FINITE, "come"),
        (FINITE, "serve"),
    ]
    assert [text.partition(":")[0] for text in progress.assumptions] == ["least"]
    assert proof.complete
    assert kept(Row)


def test_a_proof_of_liveness_is_told_in_words() -> None:
    [progress] = trace(Row).leads_to
    verdict, *argument = invariant_lines(served(Row), 0, progress)
    assert verdict.startswith(f"  {SERVED}  proved for any size")
    because = "    because they lower a rank, and no other step raises it until then: "
    assert argument == [
        "    that is: A guest who waits is served, unless others push ahead again and again.",
        "    if none of these steps stays possible for ever and is never taken: serve",
        "    if come where g before this g happens finitely often",
        f"{because}the guests who wait up to this place",
        f"    assuming {served(Row).assumptions[0]}",
    ]


class PushedAside(Row):
    """Others may push ahead again and again, and the property does not exclude it."""

    @action
    def come(self, g: Guest) -> None:
        """A guest comes as often as they like."""
        require(~self.waits[g])
        self.came[g] = True
        self.waits[g] = True

    @leads_to(SERVED, fair=("serve",))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """Wrong: another guest may come back for ever."""
        self.ranked(g)
        finitely(come=lambda _: False)
        return self.waits[g], ~self.waits[g]


class NeverServed(Row):
    """A guard that no guest can meet while another one waits."""

    @action
    def serve(self, g: Guest) -> None:
        """A guest is served who is alone."""
        require(forall(Guest, lambda f: ~self.waits[f] | (f == g)))
        super().serve(g)


class Stutters(Row):
    """A fair step that need not serve a guest."""

    served: Map[Guest, Bool]

    @initial
    def empty(self) -> None:
        """No guest is there."""
        super().empty()
        self.served.fill(False)

    @action
    def serve(self, g: Guest) -> None:
        """The first guest is looked at and is still there."""
        require(self.waits[g])
        require(forall(Guest, lambda f: ~(self.waits[f] & self.before(f, g))))
        self.served[g] = True


class ComesAndGoes(Row):
    """A step that lowers the rank can be made impossible, again and again."""

    closed: Map[Guest, Bool]

    @initial
    def empty(self) -> None:
        """The counter is open."""
        super().empty()
        self.closed.fill(False)

    @action
    def close(self, g: Guest) -> None:
        """The counter closes for a guest, or opens again."""
        self.closed[g] = ~self.closed[g]

    @action
    def serve(self, g: Guest) -> None:
        """The counter is open."""
        require(~self.closed[g])
        super().serve(g)


class ByTwo(Row):
    """One of two serves, and they change places as often as they like."""

    is_other: Value[Bool]

    @initial
    def empty(self) -> None:
        """The first of them serves."""
        super().empty()
        self.is_other = FALSE

    @action
    def change(self) -> None:
        """They change places."""
        self.is_other = ~self.is_other

    @action
    def serve(self, g: Guest) -> None:
        """The first of them serves."""
        require(~self.is_other)
        super().serve(g)

    @action
    def serve_as_other(self, g: Guest) -> None:
        """The other one serves."""
        require(self.is_other)
        super().serve(g)

    @leads_to(SERVED, fair=("serve", "serve_as_other"), together=True)
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """A guest is served by one of them."""
        least(self.before, lambda f: self.waits[f])
        finitely(come=lambda f: self.before(f, g))
        ranked(elements(Guest, lambda f: self.is_in_front(f, g), within=lambda f: self.came[f]))
        return self.waits[g], ~self.waits[g]


class EachByItself(ByTwo):
    """Neither of them has to serve, since both are absent again and again."""

    @leads_to(SERVED, fair=("serve", "serve_as_other"))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """Wrong: they change places for ever."""
        return super().is_served(g)


class WithoutTheOther(ByTwo):
    """The other one serves only guests who are alone."""

    @action
    def serve_as_other(self, g: Guest) -> None:
        """The guest is alone."""
        require(forall(Guest, lambda f: ~self.waits[f] | (f == g)))
        super().serve_as_other(g)


def test_of_steps_that_are_fair_together_one_or_another_stays_possible() -> None:
    assert served(ByTwo).outcome == "proved"
    assert kept(ByTwo)
    assert "    if one of these steps is taken wherever one or another stays possible: serve, " in (
        "\n".join(invariant_lines(served(ByTwo), 0, trace(ByTwo).leads_to[0]))
    )


def test_of_steps_that_are_fair_together_each_lowers_the_rank() -> None:
    class Chosen(ByTwo):
        """Only one of them is to lower it."""

        @leads_to(SERVED, fair=("serve", "serve_as_other"), together=True)
        def is_served(self, g: Guest) -> tuple[Bool, Bool]:
            """The rank is that of the row."""
            self.ranked(g)
            return self.waits[g], ~self.waits[g]

    with pytest.raises(ModelError, match="of actions that are fair together each step lowers"):
        trace(Chosen)


@pytest.mark.parametrize(
    ("model", "failing"),
    [
        (EachByItself, {(STEP, "change")}),
        (WithoutTheOther, {(HELPED, None)}),
        (PushedAside, {(STEP, "come")}),
        (NeverServed, {(HELPED, None), (STEP, "come")}),
        (Stutters, {(STEP, "serve")}),
        (ComesAndGoes, {(HELPED, None), (STEP, "close")}),
    ],
)
def test_a_broken_twin_is_refuted_by_its_condition_and_by_a_run(
    model: type[Model], failing: set[tuple[str, str | None]]
) -> None:
    assert open_conditions(model) == failing
    assert served(model).outcome == "refuted"
    assert not kept(model)


def test_a_state_without_a_possible_step_is_shown() -> None:
    [condition] = [c for c in served(NeverServed).conditions if c.of == HELPED]
    [step] = condition.witness
    assert (step.action, step.arguments) == ("", {})
    waiting = [cell for cell, value in step.state.items() if cell.startswith("waits") and value]
    assert len(waiting) == 2
    assert f"waits[{step.state['its g']}]" in waiting


class Crowds(Row):
    """Guests who come all at once: their number may be infinite."""

    @action
    def come(self, g: Guest) -> None:
        """Every guest comes who is not before this one."""
        self.came = self.came.map(lambda f, old: old | ~self.before(f, g))
        self.waits = self.waits.map(lambda f, old: old | ~self.before(f, g))


def test_a_set_that_may_become_infinite_at_once_is_no_rank() -> None:
    assert open_conditions(Crowds) >= {(FINITE, "come")}


class TooSmall(Row):
    """The finite set does not contain the set of the rank."""

    @leads_to(SERVED, fair=("serve",))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """The finite set is empty."""
        least(self.before, lambda f: self.waits[f])
        finitely(come=lambda f: self.before(f, g))
        members = elements(Guest, lambda f: self.is_in_front(f, g), within=lambda _: False)
        ranked(members, lowered_by={"serve": lambda _: True})
        return self.waits[g], ~self.waits[g]


def test_a_set_of_the_rank_lies_in_its_finite_set() -> None:
    assert open_conditions(TooSmall) == {(WITHIN, None)}


class Unstated(Row):
    """What is pending does not begin with the premise."""

    @leads_to(SERVED, fair=("serve",))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """Pending is no state at all, so that every other condition is empty."""
        ranked(lowered_by={"serve": lambda _: True}, pending=False)
        return self.waits[g], ~self.waits[g]


def test_what_is_pending_begins_with_the_premise() -> None:
    assert open_conditions(Unstated) == {(BEGINS, None)}


class Silent(Row):
    """A premise that no state has without the conclusion."""

    @leads_to(SERVED, fair=("serve",))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """Nothing follows from nothing."""
        ranked(lowered_by={"serve": lambda _: True})
        return self.waits[g] & ~self.came[g], ~self.waits[g]


def test_a_property_whose_premise_never_holds_says_nothing() -> None:
    proof = prove(trace(Silent))
    assert [(each.outcome, each.says_nothing) for each in proof.leads_to] == [("proved", True)]
    assert not proof.complete


class Countdown(Model):
    """Guests who count down."""

    least_number: Fixed[Guest, Int]
    number: Map[Guest, Int]

    @axiom("it-is-not-below-zero")
    def not_below_zero(self, g: Guest) -> Bool:
        """The last number is 0 or more."""
        return self.least_number[g] >= 0

    @initial
    def begin(self) -> None:
        """Each guest begins with the last number."""
        self.number = self.number.map(lambda g, _: self.least_number[g])

    @action
    def raise_it(self, g: Guest) -> None:
        """A number becomes one more."""
        self.number[g] = self.number[g] + 1

    @action
    def count(self, g: Guest) -> None:
        """A number becomes one less."""
        require(self.number[g] > self.least_number[g])
        self.number[g] = self.number[g] - 1

    @invariant("not-below-the-last")
    def above(self, g: Guest) -> Bool:
        """No number is below the last one."""
        return self.number[g] >= self.least_number[g]

    @leads_to("each-count-ends", fair=("count",))
    def ends(self, g: Guest) -> tuple[Bool, Bool]:
        """A number that is raised finitely often comes to the last one."""
        finitely(raise_it=lambda f: f == g)
        ranked(self.number[g], lowered_by={"count": lambda f: f == g})
        return self.number[g] > self.least_number[g], self.number[g] == self.least_number[g]


class BelowZero(Countdown):
    """A rank that begins below 0 and falls without end."""

    @leads_to("each-count-ends", fair=("count",))
    def ends(self, g: Guest) -> tuple[Bool, Bool]:
        """The number is too low by one."""
        super().ends(g)
        ranked(self.number[g] - self.least_number[g] - 2, lowered_by={"count": lambda f: f == g})
        return self.number[g] > self.least_number[g], self.number[g] == self.least_number[g]


def test_a_number_is_a_rank_if_it_is_never_below_zero() -> None:
    assert served(Countdown).outcome == "proved"
    assert open_conditions(BelowZero) == {(NOT_NEGATIVE, None)}


def test_a_rank_speaks_of_actions_that_there_are() -> None:
    class Misspelt(Row):
        """Names a step that does not exist."""

        @leads_to(SERVED, fair=("serve",))
        def is_served(self, g: Guest) -> tuple[Bool, Bool]:
            """Wrong."""
            finitely(comes=lambda _: True)
            return self.waits[g], ~self.waits[g]

    with pytest.raises(ModelError, match=r"speaks of comes, which is no action: .* come, serve"):
        trace(Misspelt)


def test_a_step_that_lowers_the_rank_is_fair() -> None:
    class Unfair(Row):
        """Relies on a step that may never be taken."""

        @leads_to(SERVED)
        def is_served(self, g: Guest) -> tuple[Bool, Bool]:
            """Wrong."""
            self.ranked(g)
            return self.waits[g], ~self.waits[g]

    with pytest.raises(ModelError, match="to be ranked by serve, which is not fair"):
        trace(Unfair)


def test_a_rank_belongs_to_a_liveness_property() -> None:
    class Misplaced(Row):
        """States in an action what only a property can."""

        @action
        def serve(self, g: Guest) -> None:
            """Wrong."""
            finitely(come=lambda _: True)
            super().serve(g)

    with pytest.raises(ModelError, match="finitely is about a liveness property"):
        trace(Misplaced)


class Told(Row):
    """Guests who are served in groups."""

    @action
    def serve_all(self, group: SetOf[Guest]) -> None:
        """Some who wait are served."""
        require(forall(Guest, lambda f: ~group[f] | self.waits[f]))
        self.waits = self.waits.map(lambda f, old: old & ~group[f])

    @leads_to(SERVED, fair=("serve_all",))
    def is_served(self, g: Guest) -> tuple[Bool, Bool]:
        """The group of this guest alone stays possible."""
        ranked(self.waits[g], lowered_by={"serve_all": lambda f: f == g})
        return self.waits[g], ~self.waits[g]


def test_a_set_that_lowers_the_rank_is_given_by_its_members() -> None:
    assert served(Told).outcome == "proved"


def test_a_set_that_changes_is_no_step_that_stays_possible() -> None:
    class ToldOthers(Told):
        """Another group from state to state, so that no group need stay possible."""

        @leads_to(SERVED, fair=("serve_all",))
        def is_served(self, g: Guest) -> tuple[Bool, Bool]:
            """Wrong."""
            ranked(self.waits[g], lowered_by={"serve_all": lambda f: self.waits[f]})
            return self.waits[g], ~self.waits[g]

    with pytest.raises(ModelError, match="the members of group may not change"):
        trace(ToldOthers)
