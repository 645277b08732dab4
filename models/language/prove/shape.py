"""The shape of a system's formulas: a warning before Z3 is asked something it may not decide.

Owns the graph of sorts: an arrow from one family to another if elements of the first lead to
elements of the second, by a function or by "for all there is". Without a cycle, finitely many
elements matter and Z3 always answers; with one it may say "unknown", though it often does not. The
sentences are a warning, never a verdict.

A formula counts as it is and negated, because an invariant is assumed before a step and denied
after it. A closed part of a formula counts by itself: it could be written outside of every
quantifier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.terms import Family, Sort, Term, free_variables


class Arrow(NamedTuple):
    """Elements of one family lead to elements of another, with the cause."""

    source: Sort
    target: Sort
    because: str


def complaints(system: System) -> list[str]:
    """Return one sentence for each arrow that is part of a cycle, without repetitions."""
    arrows = list(dict.fromkeys([*_of_functions(system), *_of_formulas(system)]))
    return [
        f"{arrow.because}, which leads from {arrow.source.__name__} to {arrow.target.__name__}, "
        f"and from there back to {arrow.source.__name__}"
        if arrow.source is not arrow.target
        else f"{arrow.because}, which leads from {arrow.source.__name__} to itself"
        for arrow in arrows
        if arrow.source in _reached(arrow.target, arrows)
    ]


def _reached(start: Sort, arrows: list[Arrow]) -> set[Sort]:
    found = {start}
    while True:
        further = {arrow.target for arrow in arrows if arrow.source in found} - found
        if not further:
            return found
        found |= further


def _of_functions(system: System) -> Iterator[Arrow]:
    for symbol in system.symbols:
        for sort in symbol.domain:
            if issubclass(symbol.range, Family) and issubclass(sort, Family):
                yield Arrow(sort, symbol.range, f"{symbol.name} is a function")


def _of_formulas(system: System) -> Iterator[Arrow]:
    for statement in (*system.axioms, *system.invariants):
        what = f"{statement.name} alternates"
        yield from _alternations(statement.term, what, positive=True, above=())
        if statement in system.invariants:
            yield from _alternations(statement.term, what, positive=False, above=())
    for action in system.actions:
        for guard in action.guards:
            what = f"{guard.label or 'the guard'} of {action.name} alternates"
            yield from _alternations(guard.term, what, positive=True, above=())
        for assumption in action.assumptions:
            what = f"the least element that {action.name} assumes alternates"
            yield from _alternations(assumption.term, what, positive=True, above=())


def _alternations(
    term: Term, what: str, *, positive: bool, above: tuple[Term, ...]
) -> Iterator[Arrow]:
    """Yield an arrow from each "for all" above to each "there is" that depends on it."""
    if term.op not in ("forall", "exists", "not", "and", "or", "ite", "equal"):
        return
    if term.op in ("forall", "exists"):
        bound = cast("tuple[Term, ...]", term.payload)
        if (term.op == "forall") == positive:
            above = (*(v for v in above if v in free_variables(term)), *bound)
        else:
            for outer in above:
                if outer in free_variables(term):
                    for inner in bound:
                        if isinstance(outer, Family) and isinstance(inner, Family):
                            yield Arrow(type(outer), type(inner), what)
    for place, arg in enumerate(term.args):
        # The test of a choice and the sides of an equation count with both signs.
        both = term.op == "equal" or (term.op == "ite" and place == 0)
        inner_sign = positive if term.op != "not" else not positive
        yield from _alternations(arg, what, positive=inner_sign, above=above)
        if both:
            yield from _alternations(arg, what, positive=not positive, above=above)
