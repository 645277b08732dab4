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
    if trace.touched:
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
    text = f"least: {each}if there is an e such that {shown}, one is first in {symbol}"
    trace.assumptions.append(Assumed(text, term))


def not_negative(counter: Map[I, Int]) -> None:
    """Let proofs of this action assume that a counter is nowhere below 0, because it is a count.

    The fact holds if `@counts` says what is counted, and no weight is below 0. The proof lists it
    as an assumption; `with_counts` has an exploration check it.
    """
    trace = tracing()
    if trace.touched:
        raise ModelError("not_negative comes before the first assignment: it reads the old state")
    symbol = getattr(counter, "_symbol", None)
    if not isinstance(symbol, Symbol) or symbol.range is not Int or len(symbol.domain) != 1:
        raise ModelError("not_negative takes a counter of the model, with one index")
    term = forall(symbol.domain[0], lambda index: counter[cast("I", index)] >= 0)
    trace.assumptions.append(Assumed(f"not_negative: {symbol} is a count, so not below 0", term))


def empty_at_zero(counter: Map[I, Int], family: type[E], members: Callable[[I, E], Bool]) -> None:
    """Let proofs of this action assume that a counter is 0 exactly where nothing is counted.

    The fact holds if `@counts` says that `members` are counted, each as 1. The proof lists it as an
    assumption; `with_counts` has an exploration check it.
    """
    trace = tracing()
    if trace.touched:
        raise ModelError("empty_at_zero comes before the first assignment: it reads the old state")
    symbol = getattr(counter, "_symbol", None)
    if not isinstance(symbol, Symbol) or symbol.range is not Int or len(symbol.domain) != 1:
        raise ModelError("empty_at_zero takes a counter of the model, with one index")

    def is_empty(index: I) -> Bool:
        none = forall(family, lambda element: ~members(index, element))
        return (counter[index] <= 0) == none

    term = forall(symbol.domain[0], is_empty)
    text = f"empty_at_zero: {symbol} is a count, so it is 0 exactly where nothing is counted"
    trace.assumptions.append(Assumed(text, term))
