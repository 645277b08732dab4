"""Grounding: terms in a scope, without quantifiers and variables.

Owns the translation of a term for families of given sizes: quantifiers are expanded, a read at
constant indices is a cell, a read at a computed index becomes a choice, an order is that of the
indices. The result is a term of the same constructors, so it is simplified as it is built; most
guards lose most of their parts here, which makes the explorer fast.

Identifying an order with that of the indices loses no case, because elements have no names in a
model's text. Other rigid symbols are cells like any other: once an order is fixed, the elements are
no longer alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from brokerproof.models.language.core.model import Action, System
from brokerproof.models.language.core.rewriting import rebuild, replaced
from brokerproof.models.language.core.scope import INTEGER_BOUND, Cell, Scope, cells, valuations
from brokerproof.models.language.core.terms import (
    FALSE,
    TRUE,
    Bool,
    Int,
    ModelError,
    Sort,
    Symbol,
    Term,
    conjunction,
    conjuncts,
    constant,
    disjunction,
    equal,
    free_variables,
    is_constant,
    ite,
    less,
    read,
)

T = TypeVar("T", bound=Term)


@dataclass(frozen=True)
class Instance:
    """An action with arguments, grounded.

    `changes` maps each cell that may change to its new value, which may assume the guard. A cell is
    a read at constant indices.
    """

    action: Action
    arguments: tuple[int, ...]
    guard: Bool
    changes: dict[Term, Term]


class Grounder:
    """The terms of one scope; `sets` are bit masks of the set parameters that terms may read."""

    def __init__(
        self, scope: Scope, sets: Mapping[Symbol, int] | None = None, *, unbounded: bool = False
    ) -> None:
        self.scope = scope
        self.unbounded = unbounded
        self._sets = dict(sets or {})
        self._done: dict[tuple[Term, ...], Term] = {}
        self._reads: dict[tuple[Symbol, tuple[Term, ...]], Term] = {}
        self._set_positions = {
            symbol: {cell.indices: place for place, cell in enumerate(cells(scope, [symbol]))}
            for symbol in self._sets
        }

    def ground(self, term: T, variables: Mapping[Term, Term] | None = None) -> T:
        """Return the term in this scope, with constants for its free variables."""
        return cast("T", self._ground(term, dict(variables or {})))

    def cell(self, symbol: Symbol, indices: tuple[int, ...]) -> Term:
        """Return the read of a symbol at constant indices, even if its value is known."""
        pairs = zip(symbol.domain, indices, strict=True)
        return read(symbol, tuple(constant(sort, index) for sort, index in pairs))

    def _ground(self, term: Term, variables: dict[Term, Term]) -> Term:
        if term.op == "variable":
            return variables[term]
        if term.op == "constant":
            return _bounded(term)
        # A subterm without certain variables is the same under all their bindings.
        key = (term, *(variables[variable] for variable in free_variables(term)))
        if key not in self._done:
            self._done[key] = self._build(term, variables)
        return self._done[key]

    def _build(self, term: Term, variables: dict[Term, Term]) -> Term:
        match term.op:
            case "forall" | "exists":
                bodies = cast("Iterator[Bool]", self._bodies(term, variables))
                return (conjunction if term.op == "forall" else disjunction)(bodies)
            case "and" | "or":
                # Generators, so that the rest of a decided conjunction is never built.
                parts = (cast("Bool", self._ground(arg, variables)) for arg in term.args)
                return (conjunction if term.op == "and" else disjunction)(parts)
            case "ite":
                return self._ite(term, variables)
            case "read":
                args = tuple(self._ground(arg, variables) for arg in term.args)
                return self._read(cast("Symbol", term.payload), args)
            case "less":
                left, right = (self._ground(arg, variables) for arg in term.args)
                return self._less(left, right)
            case _:
                return rebuild(term, tuple(self._ground(arg, variables) for arg in term.args))

    def _ite(self, term: Term, variables: dict[Term, Term]) -> Term:
        test = cast("Bool", self._ground(term.args[0], variables))
        if is_constant(test):
            return self._ground(term.args[1 if test is TRUE else 2], variables)
        then, other = (self._ground(arg, variables) for arg in term.args[1:])
        return ite(test, then, other)

    def _bodies(self, term: Term, variables: dict[Term, Term]) -> Iterator[Term]:
        bound = cast("tuple[Term, ...]", term.payload)
        for values in itertools.product(*(self.constants(type(v)) for v in bound)):
            yield self._ground(term.args[0], variables | dict(zip(bound, values, strict=True)))

    def constants(self, sort: Sort) -> list[Term]:
        """Return the constants of a sort."""
        return [constant(sort, value) for value in self.scope.values(sort)]

    def _read(self, symbol: Symbol, indices: tuple[Term, ...]) -> Term:
        key = (symbol, indices)
        if key not in self._reads:
            self._reads[key] = self._read_anew(symbol, indices)
        return self._reads[key]

    def _less(self, left: Term, right: Term) -> Term:
        """Return the comparison of two integers or, for an order, of two elements' indices."""
        if self.unbounded and isinstance(left, Int):
            return less(left, cast("Int", right))
        values = self.scope.values(type(left))
        # A cell's value stays within the scope, so it is never below the first value or above the
        # last. That does not hold for sums.
        if right.op == "constant" and left.op == "read":
            if cast("int", right.payload) <= values[0]:
                return FALSE
            if cast("int", right.payload) > values[-1]:
                return TRUE
        if left.op == "constant" and right.op == "read":
            if cast("int", left.payload) >= values[-1]:
                return FALSE
            if cast("int", left.payload) < values[0]:
                return TRUE
        return less(cast("Int", left), cast("Int", right))

    def _read_anew(self, symbol: Symbol, indices: tuple[Term, ...]) -> Term:
        if symbol.is_order:
            return self._less(*indices)
        for position, index in enumerate(indices):
            if not is_constant(index):
                return self._choice(symbol, indices, position)
        values = tuple(cast("int", index.payload) for index in indices)
        if symbol in self._sets:
            place = self._set_positions[symbol][values]
            return TRUE if self._sets[symbol] >> place & 1 else FALSE
        choices = self.scope.choices(Cell(symbol, values))
        if len(choices) == 1:
            return constant(symbol.range, choices[0])
        return read(symbol, indices)

    def _choice(self, symbol: Symbol, indices: tuple[Term, ...], position: int) -> Term:
        """Return a read whose index at `position` is not a constant."""

        def at(index: Term) -> Term:
            return self._read(symbol, (*indices[:position], index, *indices[position + 1 :]))

        index = indices[position]
        if index.op == "ite":
            test, then, other = index.args
            return ite(cast("Bool", test), at(then), at(other))
        *others, last = self.constants(type(index))
        result = at(last)
        for value in reversed(others):
            result = ite(equal(index, value), at(value), result)
        return result


def instances(system: System, scope: Scope, *, unbounded: bool = False) -> list[Instance]:
    """Return the actions with all arguments whose guard can hold, in the order of the text.

    With `unbounded` integers, the scope's integers limit only the arguments.
    """
    return [
        instance
        for action in system.actions
        for instance in _instances_of(action, scope, unbounded=unbounded)
    ]


def _instances_of(action: Action, scope: Scope, *, unbounded: bool) -> Iterator[Instance]:
    sets = [p for p in action.parameters if isinstance(p, Symbol)]
    grounders: dict[tuple[int, ...], Grounder] = {}
    for arguments in valuations(scope, action):
        given = dict(zip(action.parameters, arguments, strict=True))
        masks = tuple(given[symbol] for symbol in sets)
        if masks not in grounders:
            grounders[masks] = Grounder(
                scope, dict(zip(sets, masks, strict=True)), unbounded=unbounded
            )
        variables: dict[Term, Term] = {
            parameter: constant(type(parameter), value)
            for parameter, value in given.items()
            if isinstance(parameter, Term)
        }
        grounder = grounders[masks]
        guard, known = _settled(grounder.ground(action.guard, variables))
        if guard is not FALSE:
            changes = _changes(grounder, action, variables, known)
            yield Instance(action, arguments, guard, changes)


def _changes(
    grounder: Grounder, action: Action, variables: dict[Term, Term], known: dict[Term, Term]
) -> dict[Term, Term]:
    changes: dict[Term, Term] = {}
    for cell in cells(grounder.scope, action.updates):
        function = action.updates[cell.symbol]
        pairs = zip(function.parameters, cell.indices, strict=True)
        at = {parameter: constant(type(parameter), index) for parameter, index in pairs}
        new = replaced(grounder.ground(function.body, variables | at), known)
        target = grounder.cell(*cell)
        old = grounder.ground(target)
        if new is not known.get(old, old):
            changes[target] = new
    return changes


def _settled(guard: Bool) -> tuple[Bool, dict[Term, Term]]:
    """Return the guard with the values of cells that it fixes put in, and those cells."""
    known: dict[Term, Term] = {}
    while True:
        parts = conjuncts(guard)
        literals = dict(filter(None, map(_literal, parts)))
        new = literals.keys() - known.keys()
        if not new:
            return guard, known
        known |= literals
        rest = [part if _literal(part) else replaced(part, known) for part in parts]
        guard = conjunction(rest)


def _literal(part: Term) -> tuple[Term, Term] | None:
    """Return the cell that a part of a guard fixes, and its value."""
    if part.op == "read":
        return part, TRUE
    if part.op == "not" and part.args[0].op == "read":
        return part.args[0], FALSE
    if part.op == "equal":
        for cell, value in (part.args, part.args[::-1]):
            if cell.op == "read" and is_constant(value):
                return cell, value
    return None


def _bounded(term: Term) -> Term:
    if isinstance(term, Int) and abs(cast("int", term.payload)) >= INTEGER_BOUND:
        raise ModelError(f"{term.payload} is too large: integers stay within ±{INTEGER_BOUND - 1}")
    return term


def cell_of(term: Term) -> Cell:
    """Return the cell of a ground read."""
    return Cell(
        cast("Symbol", term.payload), tuple(cast("int", index.payload) for index in term.args)
    )
