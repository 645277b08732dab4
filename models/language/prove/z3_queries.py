"""Z3 queries: first for families of any size, then with a few elements, then with a larger limit.

Owns the limits and the order of the tries. Most claims are true, and true ones are quick; a false
one has a counterexample with a few elements, where Z3 decides. A claim is a list of formulas that
must not hold together. Limits are counted in Z3's own steps, never in seconds, and each query has
its own context, so an answer does not depend on the machine or on earlier queries.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import z3

from brokerproof.models.language.core.model import Action, ModelError, System
from brokerproof.models.language.core.rewriting import Function, substitute, symbols_read
from brokerproof.models.language.core.scope import families
from brokerproof.models.language.core.systems import Ghost, LeadsTo, Statement
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
from brokerproof.models.language.read.z3_reading import reading_of, rigid_facts

Outcome: TypeAlias = Literal["proved", "refuted", "unknown"]

SIZE_MAX = 5
"""The most elements of each family in a search for a concrete state."""

MIXED_MAX = 3
"""The most elements if the families' sizes differ; these many scopes are tried last."""

STEPS_FIRST = 2_000_000
"""Z3's limit for the first try: true claims take far less, false ones go on for ever."""

STEPS_FEW = 20_000_000
"""Z3's limit for the search in a few elements for the effect of a changed action."""

STEPS_MAX = 100_000_000
"""Z3's limit before a condition is unknown, about a minute."""

WAYS: Sequence[Mapping[str, bool | int]] = (
    {"smt.pull_nested_quantifiers": True},
    *({"smt.ematching": False, "smt.random_seed": seed} for seed in range(5)),
)
"""Options for what Z3 does not find by its own: quantifiers drawn to the front, no patterns.

What one way does not find in a minute, another often finds in a tenth of a second. Patterns give an
instance for each element before or behind another, without end, if the formulas say that some
element is the first. Without them Z3 takes instances from candidate models, which depend on the
seed.
"""

SIZES_SOON = 3
"""The number of small sizes that are tried before the other ways: most wrong claims fail there."""

STEPS_TRIVIAL = 100_000
"""Z3's limit for what few formulas of the model decide, or none; at the limit it counts as open."""


@dataclass(frozen=True)
class Decision:
    """Whether formulas exclude each other; if not, `question` has the model."""

    outcome: Outcome
    question: Question | None = None
    reason: str = ""


def decided(
    system: System,
    formulas: Sequence[Bool],
    action: Action | None = None,
    fewer: Sequence[Bool] = (),
) -> Decision:
    """Return a claim as proved if the formulas have no model; the last is the claim's negation.

    `action` owns the free variables of the formulas. `fewer` of them, if given, may have no model
    already, and are tried first: too many premises can keep Z3 from a simple proof. If they are not
    given, those near the negation are tried.
    """
    some, steps = (fewer, STEPS_FIRST) if fewer else (_near(formulas, action), STEPS_TRIVIAL)
    if some and asked(system, some, steps)[0] == z3.unsat:
        return Decision("proved")
    verdict, reason = asked(system, formulas, STEPS_FIRST)
    if verdict == z3.unsat:
        return Decision("proved")
    sizes = small_sizes(system)
    soon = [Question(system, each, action) for each in itertools.islice(sizes, SIZES_SOON)]
    for question in soon:
        if question.asked(formulas, STEPS_FIRST)[0] == z3.sat:
            return Decision("refuted", question)
    if excluded_another_way(system, fewer or formulas):
        return Decision("proved")
    for question in itertools.chain(soon, (Question(system, each, action) for each in sizes)):
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


def _near(formulas: Sequence[Bool], action: Action | None) -> list[Bool]:
    """Return the formulas that read no more than the last and the action's guard do.

    None are returned if that leaves out none.
    """
    read_there = set[Symbol]().union(
        *(symbols_read(each) for each in (formulas[-1], *(taken(action) if action else ())))
    )
    near = [each for each in formulas if read_there.issuperset(symbols_read(each))]
    return near if len(near) < len(formulas) else []


def small_sizes(system: System) -> Iterator[dict[Sort, int]]:
    """Yield sizes for the families: equal ones first, then mixed ones, the smallest first."""
    names = families(system)
    for size in range(1, SIZE_MAX + 1):
        yield dict.fromkeys(names, size)
    mixed = itertools.product(range(1, MIXED_MAX + 1), repeat=len(names))
    for sizes in sorted(mixed, key=lambda sizes: (sum(sizes), sizes)):
        if len(set(sizes)) > 1:
            yield dict(zip(names, sizes, strict=True))


def asked(
    system: System,
    formulas: Iterable[Bool],
    steps: int,
    options: Mapping[str, bool | int] = MappingProxyType({}),
) -> tuple[z3.CheckSatResult, str]:
    """Return Z3's answer with families of any size, and its reason if it has none."""
    reading = reading_of(system)
    solver = z3.Solver(ctx=reading.context)
    solver.set("rlimit", steps)
    for name, value in options.items():
        solver.set(name, value)
    for formula in (*rigid_facts(system), *formulas):
        solver.add(reading.formula(formula))
    return checked(solver, steps)


def excluded_another_way(system: System, formulas: Sequence[Bool]) -> bool:
    """Whether Z3 shows with other options that the formulas exclude each other (see `WAYS`)."""
    return any(asked(system, formulas, STEPS_FIRST, way)[0] == z3.unsat for way in WAYS)


def assumed(system: System) -> list[Bool]:
    """Return the axioms and the invariants, which hold before each step."""
    return [statement.term for statement in (*system.axioms, *system.invariants)]


def named(system: System, stated: Statement | Ghost | LeadsTo) -> list[Bool]:
    """Return the premises that suffice for a statement, or none if it names none."""
    if not stated.by:
        return []
    terms = {statement.name: statement.term for statement in system.invariants}
    unknown = [name for name in stated.by if name not in terms]
    if unknown:
        raise ModelError(f"{system.name} has no invariant {unknown[0]}, by which one is proved")
    itself = [stated.term] if isinstance(stated, Statement) else []
    return [*(each.term for each in system.axioms), *itself, *(terms[name] for name in stated.by)]


def taken(action: Action) -> list[Bool]:
    """Return the action's guard and assumptions."""
    return [action.guard, *(assumption.term for assumption in action.assumptions)]


def after(term: Bool, updates: Mapping[Symbol, Function]) -> Bool:
    """Return the term for the state after the updates."""
    return substitute(term, {}, dict(updates))


def made_different(
    symbol: Symbol, one: Mapping[Symbol, Function], other: Mapping[Symbol, Function]
) -> Bool:
    """Return the formula that the two updates differ at some place of a symbol."""
    places = tuple(fresh(sort, sort.__name__[0].lower()) for sort in symbol.domain)

    def value(updates: Mapping[Symbol, Function]) -> Term:
        return updates[symbol].at(*places) if symbol in updates else read(symbol, places)

    return quantify("exists", places, negation(equal(value(one), value(other))))
