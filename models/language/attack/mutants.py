"""Mutants: a system with one guard, update, initial value or axiom dropped, weakened or changed.

Owns the set of mutants and their names; their outcome is up to `mutation_testing`. A guard is only
weakened, because a stronger one breaks no invariant; the negations above a part decide which way it
changes. Of updates and initial values any part is changed; an axiom is dropped. A condition or a
choice that stands at several places of an action's updates is changed at all of them: the text has
it once, as a name or as the state between two assignments.

Invariant: names are unique within a system, depend on the model's text alone, and begin with the
place of the change, because the reasons for equivalent mutants are kept by place.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast

from brokerproof.models.language.core.model import Action, Guard, Statement, System
from brokerproof.models.language.core.rewriting import Function, rebuild, replaced, subterms
from brokerproof.models.language.core.terms import (
    FALSE,
    TRUE,
    Bool,
    Enumeration,
    Int,
    Sort,
    Symbol,
    Term,
    add,
    conjunction,
    constant,
    disjunction,
    equal,
    integer,
    is_constant,
    less,
    negation,
    read,
    show,
)

Direction: TypeAlias = Literal["weaker", "stronger", "any"]

Updates: TypeAlias = Mapping[Symbol, Function]


class Variant(NamedTuple):
    """A term with one part changed, a description of the change, and that part as it was.

    `is_other` says that the change has no direction: another comparand, or the opposite order.
    """

    change: str
    term: Term
    part: Term
    is_other: bool = False


@dataclass(frozen=True)
class Mutant:
    """An action changed in one place; `guard` is the label of the weaker guard, if it has one."""

    name: str
    original: Action
    action: Action
    part: Term = TRUE
    guard: str = ""

    def within(self, system: System) -> System:
        """Return the system with this action instead of the original."""
        actions = tuple(self.action if a is self.original else a for a in system.actions)
        return dataclasses.replace(system, actions=actions)


@dataclass(frozen=True)
class OtherStart:
    """A symbol that starts with another value, or with any value."""

    name: str
    symbol: Symbol
    function: Function
    part: Term

    def within(self, system: System) -> System:
        """Return the system with this initial value."""
        return dataclasses.replace(system, initial=system.initial | {self.symbol: self.function})


@dataclass(frozen=True)
class WithoutAxiom:
    """An axiom that is not assumed."""

    name: str
    axiom: Statement

    @property
    def part(self) -> Term:
        """What it assumes."""
        return self.axiom.term

    def within(self, system: System) -> System:
        """Return the system without this axiom."""
        axioms = tuple(axiom for axiom in system.axioms if axiom is not self.axiom)
        return dataclasses.replace(system, axioms=axioms)


@dataclass(frozen=True)
class OtherExpression:
    """A named expression with another meaning, wherever it stands: `changed` is the whole system.

    `apart` says that the two expressions differ.
    """

    name: str
    expression: str
    part: Term
    apart: Bool
    changed: System

    def within(self, _: System) -> System:
        """Return the system with this expression."""
        return self.changed


AnyMutant: TypeAlias = Mutant | OtherStart | WithoutAxiom | OtherExpression
AMutant = TypeVar("AMutant", bound=AnyMutant)


def mutants(system: System) -> Iterator[Mutant | OtherStart | WithoutAxiom]:
    """Yield every mutant of a system, except those whose terms are unchanged.

    Those of named expressions are in `shared_expressions`.
    """
    return with_numbers(_named(system))


def with_numbers(found: Iterable[AMutant]) -> Iterator[AMutant]:
    """Yield the mutants with a number at the end of each name that occurs again."""
    taken: Counter[str] = Counter()
    for mutant in found:
        taken[mutant.name] += 1
        if taken[mutant.name] > 1:
            name = f"{mutant.name} ({taken[mutant.name]})"
            mutant = dataclasses.replace(mutant, name=name)  # noqa: PLW2901
        yield mutant


def _named(system: System) -> Iterator[Mutant | OtherStart | WithoutAxiom]:
    for action in system.actions:
        yield from _of_guards(action)
        yield from _of_updates(action)
    for symbol, function in system.initial.items():
        yield from _of_a_start(symbol, function)
    for axiom in system.axioms:
        yield WithoutAxiom(f"axiom {axiom.name}: dropped", axiom)


def _of_a_start(symbol: Symbol, function: Function) -> Iterator[OtherStart]:
    if not _is_the_old(symbol, function, function.body):
        anything = Function(function.parameters, read(symbol, function.parameters))
        yield OtherStart(f"initially: {symbol}: anything", symbol, anything, function.body)
    for each in variants(function.body, "any"):
        if each.term is not function.body:
            other = Function(function.parameters, each.term)
            yield OtherStart(f"initially: {symbol}: {each.change}", symbol, other, each.part)


def _of_guards(action: Action) -> Iterator[Mutant]:
    for place, guard in enumerate(action.guards):
        called = guard.label or f"guard {place + 1}"
        for each in (Variant("dropped", TRUE, guard.term), *variants(guard.term, "weaker")):
            guards = list(action.guards)
            guards[place] = Guard(guard.label, cast("Bool", each.term))
            changed = dataclasses.replace(action, guards=tuple(guards))
            if changed.guard is not action.guard:
                name = f"{action.name}: {called}: {each.change}"
                label = "" if each.is_other else guard.label
                yield Mutant(name, action, changed, each.part, label)


def _of_updates(action: Action) -> Iterator[Mutant]:
    updates = _in_the_same_variables(action.updates)
    several = _at_several_places(function.body for function in updates.values())
    unplaced = set(several)
    for symbol, function in updates.items():
        without = {s: f for s, f in action.updates.items() if s is not symbol}
        stays = dataclasses.replace(action, updates=without)
        name = f"{action.name}: {symbol}: stays as it was"
        yield Mutant(name, action, stays, function.body)
        alone = () if function.body in several else (function.body,)
        parts = [part for part in subterms(function.body) if part in unplaced]
        unplaced.difference_update(parts)
        for part in (*alone, *parts):
            places = updates if part in several else (symbol,)
            for each in variants(part, "any", several):
                bodies = {s: replaced(updates[s].body, {part: each.term}) for s in places}
                if changed := _with_updates(action, updates, bodies):
                    name = f"{action.name}: {symbol}: {each.change}"
                    yield Mutant(name, action, changed, each.part)


def _in_the_same_variables(updates: Updates) -> Updates:
    """Return the functions with one variable for each place and sort of a parameter."""
    common: dict[tuple[int, Sort], Term] = {}
    found = {}
    for symbol, function in updates.items():
        places = enumerate(function.parameters)
        parameters = tuple(common.setdefault((at, type(p)), p) for at, p in places)
        found[symbol] = Function(parameters, function.at(*parameters))
    return found


def _at_several_places(bodies: Iterable[Term]) -> frozenset[Term]:
    """Return the conditions and choices that stand at several places, each as it is or negated."""
    places: Counter[Term] = Counter()
    roots = tuple(bodies)
    parts = {part for body in roots for part in subterms(body) if part.op != "not"}
    for place in (*roots, *(arg for part in parts for arg in part.args)):
        places[place.args[0] if place.op == "not" else place] += 1
    kinds = ("and", "or", "ite", "forall", "exists")
    return frozenset(part for part, many in places.items() if many > 1 and part.op in kinds)


def _with_updates(action: Action, updates: Updates, bodies: Mapping[Symbol, Term]) -> Action | None:
    """Return the action with these updates; None if it does the same, or one alone stays as is."""
    other = {
        symbol: Function(updates[symbol].parameters, body)
        for symbol, body in bodies.items()
        if body is not updates[symbol].body
    }
    if not other or (len(other) == 1 and all(_is_the_old(s, f, f.body) for s, f in other.items())):
        return None
    return dataclasses.replace(action, updates=action.updates | other)


def _is_the_old(symbol: Symbol, function: Function, term: Term) -> bool:
    """Whether a term is the symbol's own old value; `==` of terms is no truth value."""
    is_it = term.op == "read" and term.payload is symbol
    return is_it and all(map(operator.is_, term.args, function.parameters))


def variants(term: Term, direction: Direction, beyond: Container[Term] = ()) -> Iterator[Variant]:
    """Yield the term with one part changed, each truth value in the given direction.

    Terms of `beyond` stay as they are within the term.
    """
    yield from _here(term, direction)
    if term.op in ("equal", "less", "read", "variable", "constant"):
        return
    for place, arg in enumerate(term.args):
        if term.op == "ite" and place == 0 and direction != "any":
            continue
        if arg in beyond:
            continue
        towards = _opposite(direction) if term.op == "not" else direction
        for each in variants(arg, towards, beyond):
            args = (*term.args[:place], each.term, *term.args[place + 1 :])
            yield each._replace(term=rebuild(term, args))


def _opposite(direction: Direction) -> Direction:
    return {"weaker": "stronger", "stronger": "weaker", "any": "any"}[direction]  # type: ignore[return-value]


def _here(term: Term, direction: Direction) -> Iterator[Variant]:
    """Yield the replacements for the whole term."""
    grows, shrinks = direction != "stronger", direction != "weaker"
    match term.op:
        case "and" | "or" if grows if term.op == "and" else shrinks:
            join = conjunction if term.op == "and" else disjunction
            parts = cast("tuple[Bool, ...]", term.args)
            for place, part in enumerate(parts):
                rest = join((*parts[:place], *parts[place + 1 :]))
                yield Variant(f"without {short(part)}", rest, term)
        case "less":
            left, right = cast("tuple[Int, Int]", term.args)
            if grows:
                yield Variant(f"{show(left)} <= {show(right)}", negation(less(right, left)), term)
            if shrinks:
                after = add(left, integer(1))
                yield Variant(f"{show(after)} < {show(right)}", less(after, right), term)
        case "read" if cast("Symbol", term.payload).is_order:
            if grows:
                either = disjunction((equal(*term.args), cast("Bool", term)))
                yield Variant(f"{short(term)} or equal", either, term)
            turned = read(cast("Symbol", term.payload), term.args[::-1])
            yield Variant(f"{short(turned)} instead", turned, term, is_other=True)
        case "equal":
            for other in _other_comparands(*term.args):
                yield Variant(
                    f"{short(other)} instead of {short(term)}", other, term, is_other=True
                )
        case "ite" if direction == "any":
            test, then, otherwise = term.args
            yield Variant(f"{show(then)} always, not only if {short(test)}", then, term)
            yield Variant(f"{show(otherwise)} even if {short(test)}", otherwise, term)
        case "add" | "subtract":
            yield Variant(f"{show(term)} without {show(term.args[1])}", term.args[0], term)
        case "constant" if direction == "any":
            for other in _other_values(term):
                yield Variant(f"{show(other)} instead of {show(term)}", other, term)


def _other_comparands(left: Term, right: Term) -> Iterator[Term]:
    """Yield the equation with the next value of the enumeration, or the next number."""
    if isinstance(right, Int):
        yield equal(left, add(right, integer(1)))
    elif isinstance(left, Enumeration) and is_constant(left):
        following = (cast("int", left.payload) + 1) % len(left.values)
        yield equal(constant(type(left), following), right)


def _other_values(term: Term) -> list[Term]:
    if isinstance(term, Bool):
        return [FALSE if term is TRUE else TRUE]
    if isinstance(term, Int):
        return [add(term, integer(1))]
    if isinstance(term, Enumeration):
        everything: list[Term] = [constant(type(term), i) for i in range(len(term.values))]
        return [other for other in everything if other is not term and is_constant(other)]
    return []


SHORT = 60
"""The most characters of a part in a mutant's name."""


def short(term: Term) -> str:
    """Return the term as a person would write it, cut if it is long."""
    text = show(term)
    return text if len(text) <= SHORT else f"{text[: SHORT - 4]} ..."
