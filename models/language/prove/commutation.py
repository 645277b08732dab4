"""Commutation: whether two steps of different parties can be taken in either order, to one end.

Owns the lemma for a search over allowed orders. Take two actions that are both possible in a state
where the invariants hold, under a side condition on their arguments. The first does not disable the
second, and if both orders are possible, they end in one state. So an order with the first action
later can be changed, swap by swap, into one with it now. Families are unbounded; a counterexample
is a small state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from brokerproof.models.language.core.model import Action, SetOf, System
from brokerproof.models.language.core.rewriting import Function, substitute
from brokerproof.models.language.core.terms import (
    Bool,
    Symbol,
    Term,
    conjunction,
    disjunction,
    fresh,
    negation,
    read,
)
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    Outcome,
    after,
    assumed,
    decided,
    made_different,
)
from brokerproof.models.language.read.plain import PlainReading


@dataclass(frozen=True)
class Commutation:
    """Whether `first` leaves `second` possible, and whether both orders end in one state.

    The witness of a refutation is a state and the first step; `labels` are the guards of the second
    action that do not hold after it.
    """

    first: str
    second: str
    leaves_possible: Outcome
    ends_alike: Outcome
    witness: tuple[Step, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether both claims are proved."""
        return self.leaves_possible == self.ends_alike == "proved"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two steps in one state, and the assumption on their arguments."""

    system: System
    one: Action
    other: Action
    side: Bool

    def commute(self) -> Commutation:
        """Decide the lemma."""
        system, one, other = self.system, self.one, self.other
        both = Action(one.name, "", (*one.parameters, *other.parameters), (), {})
        premises = [*assumed(system), self.side, one.guard, other.guard]
        hindered = decided(system, [*premises, negation(after(other.guard, one.updates))], both)
        possible = [after(other.guard, one.updates), after(one.guard, other.updates)]
        one_first = _composed(one.updates, other.updates)
        other_first = _composed(other.updates, one.updates)
        different = disjunction(
            made_different(symbol, one_first, other_first)
            for symbol in {**one_first, **other_first}
        )
        unlike = decided(system, [*premises, conjunction(possible), different], both)
        question = hindered.question or unlike.question
        witness, labels = _shown(system, one, other, question) if question else ((), ())
        return Commutation(one.name, other.name, hindered.outcome, unlike.outcome, witness, labels)


def pair(system: System, first: str, second: str, side: Callable[..., Bool]) -> Pair:
    """Return two actions in one state; `side` takes the arguments of both as terms."""
    one, other = system.action(first), renamed(system.action(second), "other")
    return Pair(system, one, other, side(*map(_seen, (*one.parameters, *other.parameters))))


def _seen(parameter: Term | Symbol) -> object:
    return parameter if isinstance(parameter, Term) else SetOf(parameter)


def renamed(action: Action, prefix: str) -> Action:
    """Return the action with other parameters, so that it can be paired with itself."""
    variables: dict[Term, Term] = {}
    sets: dict[Symbol, Function] = {}
    parameters: list[Term | Symbol] = []
    for parameter in action.parameters:
        if isinstance(parameter, Term):
            variables[parameter] = fresh(type(parameter), f"{prefix}_{parameter!r}")
            parameters.append(variables[parameter])
        else:
            renamed = dataclasses.replace(parameter, name=f"{prefix}_{parameter}")
            places = tuple(fresh(sort, "e") for sort in parameter.domain)
            sets[parameter] = Function(places, read(renamed, places))
            parameters.append(renamed)
    guards = tuple(type(g)(g.label, substitute(g.term, variables, sets)) for g in action.guards)
    updates = {
        s: Function(f.parameters, substitute(f.body, variables, sets))
        for s, f in action.updates.items()
    }
    return Action(action.name, action.doc, tuple(parameters), guards, updates)


def _composed(one: dict[Symbol, Function], other: dict[Symbol, Function]) -> dict[Symbol, Function]:
    """Return the combined updates, `one` first."""
    both = dict(one)
    for symbol, function in other.items():
        both[symbol] = Function(function.parameters, substitute(function.body, {}, one))
    return both


def _shown(
    system: System, one: Action, other: Action, question: Question
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    plain = PlainReading(system, question.scope)
    state, arguments = question.state(), question.arguments()
    mine, theirs = arguments[: len(one.parameters)], arguments[len(one.parameters) :]
    possible = plain.enabled(one.name, state, mine) and plain.enabled(other.name, state, theirs)
    assert possible, "Z3 and the plain reading disagree"
    following = plain.step(one.name, state, mine)
    steps = (question.step("", (), state), question.step(one.name, mine, following))
    return steps, tuple(plain.failing(other.name, following, theirs))
