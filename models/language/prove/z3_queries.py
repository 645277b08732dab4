"""How Z3 is asked: first for families of any size, then with a few elements, then with patience.

Owns the limits and the order of the tries. Most claims are true and true ones are quick; a false
one has a counterexample with a few elements, where Z3 decides. Refuses to know what is asked: a
claim here is a list of formulas that must not hold together.

Limits are counted in Z3's own steps, never in seconds, and each question has a context of its own,
so that an answer does not depend on the machine or on what was asked before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import z3

from brokerproof.models.language.core.model import Action, ModelError, System
from brokerproof.models.language.core.rewriting import Function, substitute
from brokerproof.models.language.core.scope import families
from brokerproof.models.language.core.systems import Ghost, Statement
from brokerproof.models.language.core.terms import (
    Bool,
    Sort,
    Symbol,
    Term,
    equal,
    fresh,
    negation,
    quantify,
    read,
)
from brokerproof.models.language.prove.interruption import checked
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.read.z3_reading import Z3Reading, rigid_facts

Outcome: TypeAlias = Literal["proved", "refuted", "unknown"]

SIZE_MAX = 5
"""How many elements each family has at most where a concrete state is searched for."""

MIXED_MAX = 3
"""How many elements where the families' sizes differ, which is tried last: such scopes are many."""

STEPS_FIRST = 2_000_000
"""Z3's limit for the first try: true conditions take far less, and false ones go on for ever."""

STEPS_FEW = 20_000_000
"""Z3's limit where a few elements are to show what a changed action breaks: there, it decides."""

STEPS_MAX = 100_000_000
"""Z3's limit before a condition is unknown, about a minute."""


STEPS_TRIVIAL = 100_000
"""Z3's limit for whether something is true without the model's text; in doubt, it is not."""


@dataclass(frozen=True)
class Decision:
    """Whether formulas exclude each other; `question` has the model where they do not."""

    outcome: Outcome
    question: Question | None = None
    reason: str = ""


def decided(
    system: System,
    formulas: Sequence[Bool],
    action: Action | None = None,
    fewer: Sequence[Bool] = (),
) -> Decision:
    """Return a claim as proved where the formulas have no model.

    `action` owns the variables that are free in the formulas. `fewer` of them, if given, may have
    none already, and are tried first: too many premises can keep Z3 from seeing what is simple.
    """
    if fewer and asked(system, fewer, STEPS_FIRST)[0] == z3.unsat:
        return Decision("proved")
    verdict, reason = asked(system, formulas, STEPS_FIRST)
    if verdict == z3.unsat:
        return Decision("proved")
    for sizes in small_sizes(system):
        question = Question(system, sizes, action)
        if question.asked(formulas, STEPS_MAX)[0] == z3.sat:
            return Decision("refuted", question)
    if verdict == z3.unknown:
        verdict, reason = asked(system, formulas, STEPS_MAX)
    if verdict == z3.unsat:
        return Decision("proved")
    small = f"no refutation with up to {SIZE_MAX} elements of each family"
    if verdict == z3.sat:
        return Decision("refuted", reason=f"{small}, but one with more")
    return Decision("unknown", reason=f"{small}; beyond, Z3 says: {reason}")


def small_sizes(system: System) -> Iterator[dict[Sort, int]]:
    """Yield sizes for the families: the same for all first, then mixed ones, the smallest first."""
    names = families(system)
    for size in range(1, SIZE_MAX + 1):
        yield dict.fromkeys(names, size)
    mixed = itertools.product(range(1, MIXED_MAX + 1), repeat=len(names))
    for sizes in sorted(mixed, key=lambda sizes: (sum(sizes), sizes)):
        if len(set(sizes)) > 1:
            yield dict(zip(names, sizes, strict=True))


def asked(system: System, formulas: Iterable[Bool], steps: int) -> tuple[z3.CheckSatResult, str]:
    """Return Z3's answer with families of any size, and its reason if it has none."""
    reading = Z3Reading(system)
    solver = z3.Solver(ctx=reading.context)
    solver.set("rlimit", steps)
    for formula in (*rigid_facts(system), *formulas):
        solver.add(reading.formula(formula))
    return checked(solver, steps)


def assumed(system: System) -> list[Bool]:
    """Return the axioms and the invariants: what holds before each step."""
    return [statement.term for statement in (*system.axioms, *system.invariants)]


def named(system: System, stated: Statement | Ghost) -> list[Bool]:
    """Return what is to be enough for a statement; nothing where it does not say."""
    if not stated.by:
        return []
    terms = {statement.name: statement.term for statement in system.invariants}
    unknown = [name for name in stated.by if name not in terms]
    if unknown:
        raise ModelError(f"{system.name} has no invariant {unknown[0]}, by which one is proved")
    itself = [stated.term] if isinstance(stated, Statement) else []
    return [*(each.term for each in system.axioms), *itself, *(terms[name] for name in stated.by)]


def taken(action: Action) -> list[Bool]:
    """Return what holds where the action is taken, and what is assumed there."""
    return [action.guard, *(assumption.term for assumption in action.assumptions)]


def after(term: Bool, updates: Mapping[Symbol, Function]) -> Bool:
    """Return what the term says of the state after the updates."""
    return substitute(term, {}, dict(updates))


def made_different(
    symbol: Symbol, one: Mapping[Symbol, Function], other: Mapping[Symbol, Function]
) -> Bool:
    """Return that at some place the two updates make different things of a symbol."""
    places = tuple(fresh(sort, sort.__name__[0].lower()) for sort in symbol.domain)

    def value(updates: Mapping[Symbol, Function]) -> Term:
        return updates[symbol].at(*places) if symbol in updates else read(symbol, places)

    return quantify("exists", places, negation(equal(value(one), value(other))))
