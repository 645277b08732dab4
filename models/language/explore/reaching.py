"""Whether a violation can be reached: a search from the initial states, in small scopes.

Owns the scopes that are tried and the limits of the search. A counterexample to induction starts in
a state that satisfies the invariants, which no run may reach; this quick search tells the two apart
where it can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from brokerproof.models.language.core.model import ModelError, System
from brokerproof.models.language.core.scope import Scope, families, terms
from brokerproof.models.language.core.terms import Int
from brokerproof.models.language.explore.explorer import Violation, explore

SIZES = (1, 2, 3)
"""The numbers of elements of each family, tried one after the other."""

STATES_MAX = 40_000
"""The most states visited in each scope."""


NAMED_MAX = 40
"""Integers in the text up to this size are in the scopes too: a guard may count as far."""


def reached(system: System, invariants: tuple[str, ...] | None = None) -> Violation | None:
    """Return a shortest run to a violated invariant in the smallest scope that has one.

    None means that the quick search found no run, not that there is none.
    """
    named = [value for value in _constants(system) if abs(value) <= NAMED_MAX]
    for size in SIZES:
        integers = range(min([-2, *named]), max([size, *named]) + 2)
        scope = Scope(dict.fromkeys(families(system), size), integers)
        try:
            # A scope can begin with more states than this limit, which is not worth a compiler.
            found = explore(
                system, scope, invariants=invariants, limit_states=STATES_MAX, engine="columns"
            )
        except ModelError:
            # Its integers have left the scope, or its states do not fit a word.
            continue
        if found.violation:
            return found.violation
    return None


def _constants(system: System) -> Iterator[int]:
    """Yield the integers in the model's text."""
    for term in terms(system):
        if term.op == "constant" and isinstance(term, Int):
            yield cast("int", term.payload)
