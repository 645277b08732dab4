"""Mutants of the expressions that a step and a statement share: how they are made, and judged."""

from __future__ import annotations

from brokerproof.models.language import (
    Bool,
    Family,
    Map,
    Model,
    Value,
    action,
    forall,
    implies,
    initial,
    invariant,
    require,
)
from brokerproof.models.language.attack.mutation_testing import Subject, attack
from brokerproof.models.language.attack.shared_expressions import other_expressions
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.terms import TRUE


class Valve(Family):
    """A valve."""


class Valves(Model):
    """Valves that open while a sound pump is off; guard and invariant say it with one method."""

    open_: Map[Valve, Bool]
    pumping: Value[Bool]
    leaking: Value[Bool]
    seen: Value[Bool]

    @initial
    def closed(self) -> None:
        """All valves are closed, and the pump is off."""
        self.open_.fill(False)
        self.pumping = False
        self.leaking = False
        self.seen = False

    def is_safe(self) -> Bool:
        """Whether a valve may be open."""
        return ~self.pumping & ~self.leaking

    def are_closed(self, *, but_for: Valve) -> Bool:
        """Whether each other valve is closed."""
        return forall(Valve, lambda v: (v == but_for) | ~self.open_[v])

    def has_looked(self) -> Bool:
        """Whether the pump was seen; only a step says it."""
        return self.seen & ~self.pumping

    def is_any_of(self, *valves: Valve) -> Bool:
        """Whether any valve of several is open: no method of one number of parameters."""
        return self.open_[valves[0]]

    @staticmethod
    def is_itself(v: Valve) -> Bool:
        """Whether a valve is itself: no method of the model's state."""
        return v == v  # noqa: PLR0124

    @action
    def look(self) -> None:
        """Look at the pump, once."""
        require(~self.has_looked())
        self.seen = True

    @action
    def open_it(self, v: Valve) -> None:
        """Open a valve."""
        require(self.is_safe() & self.are_closed(but_for=v) & ~self.is_any_of(v))
        self.open_[v] = True

    @action
    def close_it(self, v: Valve) -> None:
        """Close a valve."""
        require(self.open_[v])
        self.open_[v] = False

    @action
    def pump(self) -> None:
        """Start the pump while all valves are closed; it may leak then."""
        require(forall(Valve, lambda v: ~self.open_[v]))
        self.pumping = True

    @action
    def leak(self) -> None:
        """The pump begins to leak."""
        require(self.pumping)
        self.leaking = True

    @action
    def stop(self) -> None:
        """Stop the pump."""
        require(self.pumping)
        self.pumping = False

    @invariant("what-is-open-is-safe")
    def what_is_open(self, v: Valve) -> Bool:
        """A valve is open only where it is safe, and alone."""
        return implies(self.open_[v], self.is_safe() & self.are_closed(but_for=v))


class Named(Valves):
    """The same, with an invariant that does not use the expressions."""

    @invariant("one-valve-is-open-beside-a-sound-pump-that-is-off")
    def one_valve(self, v: Valve, w: Valve) -> Bool:
        """At most one valve is open, and the pump neither runs nor leaks."""
        return implies(self.open_[v], ~self.pumping & ~self.leaking) & implies(
            self.open_[v] & self.open_[w], v == w
        )


class Later(Valves):
    """The same; a step uses the expression in the state that it has come to."""

    @action
    def stop(self) -> None:
        """Stop the pump, and note whether a valve may be open now."""
        require(self.pumping)
        self.pumping = False
        self.seen = self.is_safe()


def outcomes(model: type[Model]) -> dict[str, str]:
    """Return the outcome of each mutant of a shared expression."""
    system = trace(model)
    subject = Subject(system, expressions=other_expressions(model, system))
    return {
        each.name: each.outcome
        for each in attack(subject).judged
        if each.name.startswith("shared: ")
    }


def survivors(found: dict[str, str]) -> set[str]:
    """Return the names of the mutants that nothing refutes."""
    return {name for name, outcome in found.items() if outcome == "survivor"}


MUTANTS = {
    "shared: are_closed: without (but_for = v)",
    "shared: are_closed: without ~open_[v]",
    "shared: is_safe: without ~pumping",
    "shared: is_safe: without ~leaking",
}


def test_a_mistake_that_step_and_invariant_share_is_found_by_another_statement() -> None:
    alone, named = outcomes(Valves), outcomes(Named)
    assert alone.keys() == named.keys() == MUTANTS
    stricter = {"shared: are_closed: without ~open_[v]"}  # No valve opens beside another one.
    assert survivors(alone) == {"shared: is_safe: without ~leaking"} | stricter
    assert survivors(named) == stricter


def test_the_expression_is_read_in_the_state_that_the_text_has_come_to() -> None:
    system = trace(Later)
    [leaks] = [e for e in other_expressions(Later, system) if e.name.endswith("~leaking")]
    seen = leaks.changed.symbol("seen")
    assert leaks.changed.action("stop").updates[seen].body is TRUE
    assert system.action("stop").updates[seen].body is not TRUE
