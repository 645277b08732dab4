"""Ghost counters: what first-order logic can prove of a count, and what scopes check.

A counter is declared with the elements that it counts. Equality of the two cannot be stated for
families of any size. What is proved instead: at the start no element is counted and the counter is
0, and each action changes the counter with the set. It stays if the set stays, changes by one (or a
weight) if one element comes or goes, and becomes 0 if the set is emptied. The rest is arithmetic
over finite families, an assumption that proofs reading the counter list; `with_counts` states the
equality for a scope, so that an exploration checks it.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import cast

from brokerproof.models.language.core.rewriting import Function, substitute
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.systems import Action, Ghost, Statement, System
from brokerproof.models.language.core.terms import (
    Bool,
    Int,
    Symbol,
    Term,
    add,
    conjunction,
    constant,
    disjunction,
    equal,
    fresh,
    integer,
    ite,
    negation,
    quantify,
    read,
    subtract,
)
from brokerproof.models.language.prove.conditions import Condition, InvariantProof
from brokerproof.models.language.prove.z3_queries import after, assumed, decided, named, taken


def prove_counter(system: System, ghost: Ghost) -> InvariantProof:
    """Decide whether the counter starts at 0 and changes with the set in each action."""
    axioms = [statement.term for statement in system.axioms]
    conditions = [_condition(system, [*axioms, starts_wrongly(system, ghost)], None)]
    few = named(system, ghost)
    for action in system.actions:
        wrong = [*taken(action), moves_wrongly(ghost, action)]
        fewer = [*few, *wrong] if few else []
        conditions.append(_condition(system, [*assumed(system), *wrong], action, fewer))
    return InvariantProof(called(ghost), tuple(conditions))


def called(ghost: Ghost) -> str:
    """Return the name of the proved statement about a counter."""
    return f"{ghost.symbol}-moves"


def starts_wrongly(system: System, ghost: Ghost) -> Bool:
    """Return the formula that initially an element is counted, or the counter is not 0."""
    none = quantify("forall", (ghost.element,), negation(after(ghost.term, system.initial)))
    zero = equal(substitute(_counter(ghost), {}, dict(system.initial)), integer(0))
    return negation(_each(ghost, none & zero))


def moves_wrongly(ghost: Ghost, action: Action) -> Bool:
    """Return the formula that the action changes a value of the counter unlike the set."""
    return negation(_each(ghost, _moved(ghost, action.updates)))


def _counter(ghost: Ghost) -> Int:
    return cast("Int", read(ghost.symbol, ghost.indices))


def _each(ghost: Ghost, statement: Bool) -> Bool:
    return quantify("forall", ghost.indices, statement)


def _condition(
    system: System, formulas: list[Bool], action: Action | None, fewer: Sequence[Bool] = ()
) -> Condition:
    started = time.perf_counter()
    found = decided(system, formulas, action, fewer)
    witness = found.question.shown() if found.question else ()
    seconds = time.perf_counter() - started
    name = action.name if action else None
    return Condition(name, found.outcome, seconds, witness, found.reason)


def _moved(ghost: Ghost, updates: Mapping[Symbol, Function]) -> Bool:
    """Return the formula that for these indices, the counter changes with the set."""
    old, new = _counter(ghost), substitute(_counter(ghost), {}, dict(updates))
    one = fresh(type(ghost.element), "moved")

    def there(element: Term) -> Bool:
        return substitute(ghost.term, {ghost.element: element})

    def there_then(element: Term) -> Bool:
        return after(there(element), updates)

    def same(element: Term) -> Bool:
        return equal(there(element), there_then(element))

    weight = substitute(ghost.weight, {ghost.element: one})

    def by_one(comes: Bool, value: Int) -> Bool:
        others = equal(ghost.element, one) | same(ghost.element)
        alone = quantify("forall", (ghost.element,), others)
        return quantify("exists", (one,), comes & alone & equal(new, value))

    stays = quantify("forall", (ghost.element,), same(ghost.element)) & equal(new, old)
    emptied = quantify("forall", (ghost.element,), negation(there_then(ghost.element)))
    return disjunction(
        (
            stays,
            by_one(~there(one) & there_then(one), add(old, weight)),
            by_one(there(one) & ~there_then(one), subtract(old, weight)),
            emptied & equal(new, integer(0)),
        )
    )


def with_counts(system: System, scope: Scope) -> System:
    """Return the system with an invariant for each counter: it is the count, in this scope.

    The elements of the scope are written out, so the equality can be stated there.
    """
    counted = tuple(_counted(ghost, scope) for ghost in system.ghosts)
    return dataclasses.replace(system, invariants=(*system.invariants, *counted))


def _counted(ghost: Ghost, scope: Scope) -> Statement:
    places = [_elements(index, scope) for index in ghost.indices]
    parts = []
    for indices in itertools.product(*places):
        values = dict(zip(ghost.indices, indices, strict=True))
        total = integer(0)
        for element in _elements(ghost.element, scope):
            counts = substitute(ghost.term, {**values, ghost.element: element})
            weight = substitute(ghost.weight, {ghost.element: element})
            total = add(total, ite(counts, weight, integer(0)))
        parts.append(equal(substitute(_counter(ghost), values), total))
    return Statement(f"{ghost.symbol}-is-the-count", ghost.doc, conjunction(parts))


def _elements(variable: Term, scope: Scope) -> list[Term]:
    return [constant(type(variable), value) for value in scope.values(type(variable))]
