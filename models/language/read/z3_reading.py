"""The reading of terms as formulas of Z3, with families of any size.

Owns the translation only; the prover chooses the formulas. Families become uninterpreted sorts,
enumerations become Z3's, an order becomes a relation with the axioms of a strict total order.

Each query has a context of its own, and most of what it says is what its system says in every
query. `reading_of` reads that once, and Z3 copies it from context to context, which is many times
as fast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Generic, TypeVar, cast

import z3

from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.terms import (
    Bool,
    Enumeration,
    Family,
    Int,
    Sort,
    Symbol,
    Term,
    constant,
    forall,
    implies,
    read,
)

_Ours = TypeVar("_Ours")
_InZ3 = TypeVar("_InZ3", bound=z3.AstRef)


class _Table(dict[_Ours, _InZ3], Generic[_Ours, _InZ3]):
    """What a context has for ours; an entry of another one's table is copied at its first use."""

    def __init__(self, context: z3.Context) -> None:
        super().__init__()
        self._context = context
        self.other: dict[_Ours, _InZ3] = {}

    def __contains__(self, ours: object) -> bool:
        return super().__contains__(ours) or ours in self.other

    def __missing__(self, ours: _Ours) -> _InZ3:
        copied: _InZ3 = self.other[ours].translate(self._context)
        self[ours] = copied
        return copied


class Z3Reading:
    """One context of sorts, functions and constants for the terms of a system with these symbols.

    What `known` has read is copied from there.
    """

    def __init__(self, symbols: tuple[Symbol, ...], known: Z3Reading | None = None) -> None:
        self.context = new = z3.Context()
        self.symbols = symbols
        self.names: list[str] = []
        self.variables = 0
        self.sorts: _Table[Sort, z3.SortRef] = _Table(new)
        self.functions: _Table[Symbol, z3.FuncDeclRef] = _Table(new)
        self.terms: _Table[Term, z3.ExprRef] = _Table(new)
        if known:
            self.names += known.names
            self.variables = known.variables
            self.sorts.other = known.sorts
            self.functions.other = known.functions
            self.terms.other = known.terms

    def sort(self, sort: Sort) -> z3.SortRef:
        """Return Z3's sort for one of ours."""
        if sort not in self.sorts:
            if issubclass(sort, Bool):
                made = z3.BoolSort(self.context)
            elif issubclass(sort, Int):
                made = z3.IntSort(self.context)
            elif issubclass(sort, Enumeration):
                name = self._new_name(sort)
                values = [f"{name}.{value}" for value in sort.values]
                made, constants = z3.EnumSort(name, values, self.context)
                pairs = enumerate(constants)
                self.terms.update({constant(sort, number): value for number, value in pairs})
            else:
                made = z3.DeclareSort(self._new_name(sort), self.context)
            self.sorts[sort] = made
        return self.sorts[sort]

    def _new_name(self, sort: Sort) -> str:
        """Return a name that no other sort has: two models may both have a `Status`."""
        alike = self.names.count(sort.__name__)
        self.names.append(sort.__name__)
        return f"{sort.__name__}!{alike}" if alike else sort.__name__

    def function(self, symbol: Symbol) -> z3.FuncDeclRef:
        """Return Z3's function for a symbol."""
        if symbol not in self.functions:
            domain = [self.sort(s) for s in symbol.domain]
            # Z3 identifies functions of one name and type, so a set parameter gets another name.
            name = symbol.name if symbol in self.symbols else f"{symbol.name}!set"
            self.functions[symbol] = z3.Function(name, *domain, self.sort(symbol.range))
        return self.functions[symbol]

    def variable(self, term: Term) -> z3.ExprRef:
        """Return Z3's constant for a variable of ours.

        The numbers are this reading's own: Z3's search depends on names, which must not depend on
        what was traced before.
        """
        if term not in self.terms:
            name, _ = cast("tuple[str, int]", term.payload)
            self.terms[term] = z3.Const(f"{name}!{self.variables}", self.sort(type(term)))
            self.variables += 1
        return self.terms[term]

    def formula(self, term: Term) -> z3.ExprRef:
        """Return the term as a formula of Z3."""
        for part in subterms(term, beyond=self.terms):
            self.terms[part] = self._one(part, [self.terms[arg] for arg in part.args])
        return self.terms[term]

    def _one(self, term: Term, args: list[z3.ExprRef]) -> z3.ExprRef:
        match term.op:
            case "variable":
                return self.variable(term)
            case "constant":
                return self._constant(term)
            case "read":
                return self.function(cast("Symbol", term.payload))(*args)
            case "not":
                return z3.Not(args[0])
            case "and":
                return _joined(z3.Z3_mk_and, args)
            case "or":
                return _joined(z3.Z3_mk_or, args)
            case "ite":
                return z3.If(*args)
            case "equal":
                return args[0] == args[1]
            case "less":
                return args[0] < args[1]
            case "add":
                return args[0] + args[1]
            case "subtract":
                return args[0] - args[1]
            case "forall" | "exists":
                bound = [self.variable(v) for v in cast("tuple[Term, ...]", term.payload)]
                return (z3.ForAll if term.op == "forall" else z3.Exists)(bound, args[0])

    def _constant(self, term: Term) -> z3.ExprRef:
        if isinstance(term, Bool):
            return z3.BoolVal(bool(term.payload), self.context)
        value = cast("int", term.payload)
        if isinstance(term, Int):
            return z3.IntVal(value, self.context)
        self.sort(type(term))
        return self.terms[term]


def _joined(make: Callable[..., z3.Ast], args: list[z3.ExprRef]) -> z3.BoolRef:
    """Return what `z3.And` or `z3.Or` does, without a look at each part for what it may be."""
    context = args[0].ctx
    parts = (z3.Ast * len(args))(*[each.as_ast() for each in args])
    return z3.BoolRef(make(context.ref(), len(args), parts), context)


def reading_of(system: System) -> Z3Reading:
    """Return a reading for one query about a system.

    It depends on the system alone, and not on the queries before.
    """
    stated = (*rigid_facts(system), *(statement.term for statement in system.invariants))
    return Z3Reading(system.symbols, _always_said(system.symbols, stated))


@functools.lru_cache(maxsize=4)
def _always_said(symbols: tuple[Symbol, ...], formulas: tuple[Bool, ...]) -> Z3Reading:
    reading = Z3Reading(symbols)
    for formula in formulas:
        reading.formula(formula)
    return reading


def rigid_facts(system: System) -> list[Bool]:
    """Return the facts about rigid symbols: the model's axioms and the laws of its orders."""
    facts = [statement.term for statement in system.axioms]
    for symbol in system.symbols:
        if symbol.is_order:
            facts.extend(order_laws(symbol))
    return facts


@functools.cache
def order_laws(symbol: Symbol) -> list[Bool]:
    """Return the laws of a strict total order: irreflexive by construction, transitive, total."""
    family = cast("type[Family]", symbol.domain[0])

    def before(left: Term, right: Term) -> Bool:
        return cast("Bool", read(symbol, (left, right)))

    return [
        forall(family, family, lambda a, b: ~(before(a, b) & before(b, a))),
        forall(
            family,
            family,
            family,
            lambda a, b, c: implies(before(a, b) & before(b, c), before(a, c)),
        ),
        forall(family, family, lambda a, b: (a == b) | before(a, b) | before(b, a)),
    ]
