"""Facts about finite families that first-order logic does not know.

`least`: a set in an order has a first element. `not_negative`: a count is not below 0.
`empty_at_zero`: a count is 0 only if nothing is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from brokerproof.models.language.core.model import Map, Order, tracing
from brokerproof.models.language.core.systems import Assumed
from brokerproof.models.language.core.terms import (
    Bool,
    Int,
    ModelError,
    Sort,
    Symbol,
    Term,
    exists,
    forall,
    fresh,
    implies,
    quantify,
    read,
)

I = TypeVar("I", bound=Term)  # noqa: E741 (index)
E = TypeVar("E", bound=Term)


def least(order: Order[I], *sorts_and_members: object) -> None:
    """Let proofs of this action assume that a set which is not empty has a first element.

    `least(self.before, lambda e: ...)` is about one set, `least(self.before, Sort, lambda x, e:
    ...)` about one for each x. The fact holds in every finite family and does not change the
    action. First-order logic does not know it, so the proof lists it as an assumption.
    """
    trace = tracing()
    if trace.assigned:
        raise ModelError("least comes before the first assignment: it reads the old state")
    *sorts, function = sorts_and_members
    symbol = getattr(order, "_symbol", None)
    if not isinstance(symbol, Symbol) or not symbol.is_order or not callable(function):
        raise ModelError("least takes an order of the model, sorts, and a function of elements")
    members, family = cast("Callable[..., Bool]", function), symbol.domain[0]

    def has_a_first(*chosen: Term) -> Bool:
        def is_first(e: Term) -> Bool:
            return members(*chosen, e) & forall(
                family, lambda f: implies(members(*chosen, f), ~cast("Bool", read(symbol, (f, e))))
            )

        anything = exists(family, lambda e: members(*chosen, e))
        return implies(anything, exists(family, is_first))

    term = forall(*sorts, has_a_first) if sorts else has_a_first()
    places = [fresh(cast("Sort", sort), cast("Sort", sort).__name__.lower()) for sort in sorts]
    shown = members(*places, fresh(family, "e"))
    each = "".join(f"for each {place}, " for place in places)
    text = f"least: {each}the order {symbol} has a first e with {shown}, if it has any"
    first = None
    if not sorts:
        e = fresh(family, "e")
        behind = forall(
            family,
            lambda f: implies(members(f), members(e) & ~cast("Bool", read(symbol, (f, e)))),
        )
        first = (e, behind)
    trace.assumptions.append(Assumed(text, term, first))


def not_negative(counter: Map[I, Int] | Int) -> None:
    """Let proofs of this action assume that a counter is nowhere below 0, because it is a count.

    The fact holds if `@counts` says what is counted, and no weight is below 0. The proof lists it
    as an assumption; `with_counts` has an exploration check it.
    """
    symbol, places = _counter(counter, "not_negative")
    term = quantify("forall", places, cast("Int", read(symbol, places)) >= 0)
    text = f"not_negative: {symbol} is a count, so not below 0"
    tracing().assumptions.append(Assumed(text, term))


def empty_at_zero(
    counter: Map[I, Int] | Int, family: type[E], members: Callable[..., Bool]
) -> None:
    """Let proofs of this action assume that a counter is 0 exactly where nothing is counted.

    The fact holds if `@counts` says that `members`, of each index and element, are counted, each as
    1. The proof lists it as an assumption; `with_counts` has an exploration check it.
    """
    symbol, places = _counter(counter, "empty_at_zero")
    none = forall(family, lambda element: ~members(*places, element))
    term = quantify("forall", places, (cast("Int", read(symbol, places)) <= 0) == none)
    text = f"empty_at_zero: {symbol} is a count, so it is 0 exactly where nothing is counted"
    tracing().assumptions.append(Assumed(text, term))


def _counter(counter: object, fact: str) -> tuple[Symbol, tuple[Term, ...]]:
    """Return the symbol of a counter, and a variable for each of its indices."""
    if tracing().assigned:
        raise ModelError(f"{fact} comes before the first assignment: it reads the old state")
    symbol = counter.payload if isinstance(counter, Int) else getattr(counter, "_symbol", None)
    if not isinstance(symbol, Symbol) or symbol.range is not Int:
        raise ModelError(f"{fact} takes a counter of the model")
    return symbol, tuple(fresh(sort, "i") for sort in symbol.domain)
