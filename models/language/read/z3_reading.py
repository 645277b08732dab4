"""The reading of terms as formulas of Z3, with families of any size.

Owns the translation only; the prover chooses the formulas. Families become uninterpreted sorts,
enumerations become Z3's, an order becomes a relation with the axioms of a strict total order.
"""

from __future__ import annotations

from typing import cast

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
    forall,
    implies,
    read,
)


class Z3Reading:
    """One context of sorts, functions and constants for the terms of one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.context = z3.Context()
        self._sorts: dict[Sort, z3.SortRef] = {}
        self._values: dict[Sort, list[z3.ExprRef]] = {}
        self._functions: dict[Symbol, z3.FuncDeclRef] = {}
        self._variables: dict[Term, z3.ExprRef] = {}
        self._done: dict[Term, z3.ExprRef] = {}

    def sort(self, sort: Sort) -> z3.SortRef:
        """Return Z3's sort for one of ours."""
        if sort not in self._sorts:
            if issubclass(sort, Bool):
                made = z3.BoolSort(self.context)
            elif issubclass(sort, Int):
                made = z3.IntSort(self.context)
            elif issubclass(sort, Enumeration):
                name = self._new_name(sort)
                values = [f"{name}.{value}" for value in sort.values]
                made, self._values[sort] = z3.EnumSort(name, values, self.context)
            else:
                made = z3.DeclareSort(self._new_name(sort), self.context)
            self._sorts[sort] = made
        return self._sorts[sort]

    def _new_name(self, sort: Sort) -> str:
        """Return a name that no other sort has: two models may both have a `Status`."""
        alike = sum(other.__name__ == sort.__name__ for other in self._sorts)
        return f"{sort.__name__}!{alike}" if alike else sort.__name__

    def function(self, symbol: Symbol) -> z3.FuncDeclRef:
        """Return Z3's function for a symbol."""
        if symbol not in self._functions:
            domain = [self.sort(s) for s in symbol.domain]
            # Z3 identifies functions of one name and type, so a set parameter gets another name.
            name = symbol.name if symbol in self.system.symbols else f"{symbol.name}!set"
            self._functions[symbol] = z3.Function(name, *domain, self.sort(symbol.range))
        return self._functions[symbol]

    def variable(self, term: Term) -> z3.ExprRef:
        """Return Z3's constant for a variable of ours.

        The numbers are this reading's own: Z3's search depends on names, which must not depend on
        what was traced before.
        """
        if term not in self._variables:
            name, _ = cast("tuple[str, int]", term.payload)
            number = len(self._variables)
            self._variables[term] = z3.Const(f"{name}!{number}", self.sort(type(term)))
        return self._variables[term]

    def formula(self, term: Term) -> z3.ExprRef:
        """Return the term as a formula of Z3."""
        for part in subterms(term):
            if part not in self._done:
                self._done[part] = self._one(part, [self._done[arg] for arg in part.args])
        return self._done[term]

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
                return z3.And(*args)
            case "or":
                return z3.Or(*args)
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
        return self._values[type(term)][value]

    def bound_families(self, sizes: dict[Sort, int]) -> list[z3.ExprRef]:
        """Return formulas that limit each family to at most `sizes` elements.

        The bound makes a condition decidable for a refutation, with the same formulas as in the
        proof.
        """
        limits = []
        for family in self.system.families:
            sort = self.sort(family)
            names = [f"{family.__name__}!{i}" for i in range(sizes[family])]
            elements = [z3.Const(name, sort) for name in names]
            self._values[family] = elements
            one = z3.Const(f"any!{family.__name__}", sort)
            limits.append(z3.ForAll([one], z3.Or(*(one == e for e in elements))))
        return limits


def rigid_facts(system: System) -> list[Bool]:
    """Return the facts about rigid symbols: the model's axioms and the laws of its orders."""
    facts = [statement.term for statement in system.axioms]
    for symbol in system.symbols:
        if symbol.is_order:
            facts.extend(order_laws(symbol))
    return facts


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
