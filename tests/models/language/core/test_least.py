"""`least`: true in finite orders, assumed by a step, and reported by the proof."""

from __future__ import annotations

import dataclasses

import pytest

from brokerproof.checks.commands.proof_lines import invariant_lines
from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    Map,
    Model,
    ModelError,
    Order,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    least,
    require,
)
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.systems import Statement, System
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.language.prove.shape import complaints


class Ticket(Family):
    """A ticket in a line."""


class Line(Model):
    """Tickets that are drawn and called in their order, until the counter closes."""

    before: Order[Ticket]
    drawn: Map[Ticket, Bool]
    closed: Bool
    shut: Map[Ticket, Bool]

    @initial
    def none_of_them(self) -> None:
        """Nothing is drawn, and no ticket is void."""
        self.drawn.fill(False)
        self.shut.fill(False)

    @action
    def draw(self, ticket: Ticket) -> None:
        """Take a ticket that is not void."""
        require(~self.shut[ticket])
        self.drawn[ticket] = True

    @action
    def call(self, ticket: Ticket) -> None:
        """Call the first."""
        require(self.is_next(ticket))
        self.drawn[ticket] = False

    @action
    def close(self) -> None:
        """Make all tickets void where none is next."""
        least(self.before, lambda t: self.drawn[t])
        require(forall(Ticket, lambda t: ~self.is_next(t)))
        self.shut.fill(True)

    def is_next(self, ticket: Ticket) -> Bool:
        """Whether the ticket is drawn, and none before it."""
        return self.drawn[ticket] & ~exists(
            Ticket, lambda t: self.drawn[t] & self.before(t, ticket)
        )

    @invariant("no-void-ticket-is-drawn")
    def closed_to_none(self) -> Bool:
        """No void ticket is drawn."""
        return forall(Ticket, lambda t: ~(self.drawn[t] & self.shut[t]))

    @invariant("drawn-or-not")
    def drawn_or_not(self) -> Bool:
        """Nothing that the closing changes."""
        return forall(Ticket, lambda t: implies(self.drawn[t] & self.closed, self.closed))


class WithoutLeast(Line):
    """A line that may have tickets and no first one."""

    @action
    def close(self) -> None:
        """Make all tickets void where none is next."""
        require(forall(Ticket, lambda t: ~self.is_next(t)))
        self.shut.fill(True)


class AboutTheVoid(Line):
    """A line that assumes a first void ticket, which no proof needs."""

    @action
    def close(self) -> None:
        """Make all tickets void where none is next."""
        least(self.before, lambda t: self.shut[t])
        require(forall(Ticket, lambda t: ~self.is_next(t)))
        self.shut.fill(True)


class Shop(Model):
    """Lines of their own, for the form with other sorts."""

    before: Order[Ticket]
    rival: Fixed[Ticket, Ticket]
    drawn: Map[Ticket, Bool]

    @initial
    def none_of_them(self) -> None:
        """Nothing is drawn."""
        self.drawn.fill(False)

    @action
    def turn(self, ticket: Ticket) -> None:
        """Draw or return."""
        least(self.before, Ticket, lambda t, u: self.drawn[u] & (self.rival[u] == t))
        self.drawn[ticket] = ~self.drawn[ticket]


def proof_of(model: type[Model], name: str) -> tuple[str, tuple[str, ...]]:
    """Return the outcome of an invariant and its assumptions."""
    system = trace(model)
    [statement] = [s for s in system.invariants if s.name == name]
    proof = prove_invariant(system, statement)
    return proof.outcome, proof.assumptions


ASSUMED = "least: the order before has a first e with drawn[e], if it has any"


def test_a_set_that_is_not_empty_has_a_first_element_and_the_proof_says_so() -> None:
    assert proof_of(Line, "no-void-ticket-is-drawn") == ("proved", (ASSUMED,))
    system = trace(Line)
    lines = list(invariant_lines(prove_invariant(system, system.invariants[0]), 0))
    assert f"    assuming {ASSUMED}" in lines


def test_a_proof_that_does_not_use_the_step_does_not_list_what_it_assumes() -> None:
    assert proof_of(Line, "drawn-or-not") == ("proved", ())


@pytest.mark.parametrize("model", [WithoutLeast, AboutTheVoid])
def test_without_the_right_assumption_it_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, model: type[Model]
) -> None:
    monkeypatch.setattr("brokerproof.models.language.prove.z3_queries.STEPS_FIRST", 200_000)
    monkeypatch.setattr("brokerproof.models.language.prove.z3_queries.STEPS_MAX", 200_000)
    outcome, _ = proof_of(model, "no-void-ticket-is-drawn")
    assert outcome != "proved"


def as_invariants(system: System) -> System:
    """Return the system that states the assumptions of its actions."""
    stated = tuple(
        Statement(f"{action.name} {number}", "", assumption.term)
        for action in system.actions
        for number, assumption in enumerate(action.assumptions)
    )
    assert stated
    return dataclasses.replace(system, invariants=stated)


@pytest.mark.parametrize("model", [Line, Shop])
def test_what_is_assumed_holds_in_every_state_of_a_scope(model: type[Model]) -> None:
    scope = Scope({Ticket: 3}, range(1))
    found = explore(as_invariants(trace(model)), scope)
    assert found.violation is None
    assert found.states > 8


def test_the_assumption_changes_nothing_about_the_step() -> None:
    scope = Scope({Ticket: 3}, range(1))
    one, other = explore(trace(Line), scope), explore(trace(WithoutLeast), scope)
    assert (one.states, one.transitions) == (other.states, other.transitions)


def test_the_shape_of_what_is_assumed_is_told() -> None:
    said = "the least element that turn assumes alternates, which leads from Ticket to itself"
    assert said in complaints(trace(Shop))
    assert not any("least" in each for each in complaints(trace(Line)))


def test_least_is_about_an_order_and_comes_before_the_first_assignment() -> None:
    class Unordered(Line):
        """Takes a map for an order."""

        @action
        def close(self) -> None:
            """Ask for the least of a map."""
            least(self.drawn, lambda t: self.shut[t])  # type: ignore[arg-type]

    class Late(Line):
        """States its assumption about a state that it has changed."""

        @action
        def close(self) -> None:
            """Change first."""
            self.shut.fill(True)
            least(self.before, lambda t: self.shut[t])

    with pytest.raises(ModelError, match="least takes an order of the model"):
        trace(Unordered)
    with pytest.raises(ModelError, match="least comes before the first assignment"):
        trace(Late)
