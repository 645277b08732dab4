"""Mutation testing of leads-to properties: a mutant that breaks one in a small scope is refuted.

Owns the scopes for these properties. It decides last: a mutant survives that breaks none, and no
condition of a rank. A property counts only in a scope where the original model keeps it and its
premise occurs; otherwise its failure says nothing of the mutant.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from dataclasses import dataclass

from brokerproof.models.language.attack.outcomes import JudgedMutant
from brokerproof.models.language.core.model import ModelError, System
from brokerproof.models.language.core.scope import Scope, families
from brokerproof.models.language.core.terms import Family, Int
from brokerproof.models.language.explore.liveness import Kept, check
from brokerproof.models.language.prove.ranking import rank_lost

SIZES = (1, 2, 3)
"""The number of elements of each family, the fewest first."""

SIZE_OF_RANKS = 2
"""The number of elements of each family where a rank is held against the changed steps."""

MORE_MAX = 2
"""The most elements beyond one in each family."""

STATES_MAX = 15_000
"""The most states of a scope; larger ones are left out."""

CHANGED_MAX = 40_000
"""The most states of the scope for a mutant, which may have more of them."""


@dataclass(frozen=True)
class Held:
    """A scope, and the properties that the original model keeps there."""

    scope: Scope
    names: frozenset[str]


def held(system: System) -> tuple[Held, ...]:
    """Return the scopes with their kept properties, the smallest scope first."""
    found: list[Held] = []
    for scopes in _scopes(system) if system.leads_to else ():
        asked = next(filter(None, (_asked(system, scope, STATES_MAX) for scope in scopes)), [])
        names = frozenset(each.name for _, each in asked if each.kept and each.asked)
        if names:
            found.append(Held(asked[0][0], names))
    return tuple(found)


def _asks_less(one: Held, other: Held) -> bool:
    sizes = other.scope.sizes
    smaller = all(size <= sizes[family] for family, size in one.scope.sizes.items())
    return one is not other and smaller and one.names <= other.names


def judged_in_the_end(
    name: str, changed: System, where: tuple[Held, ...], actions: Container[str] = ()
) -> JudgedMutant:
    """Return the mutant as refuted by a property in one of the scopes, with the run, or surviving.

    `actions` are the changed ones: a rank that these do not lower refutes a mutant, too.

    The run ends with the steps of its loop, if it has one. A mutant under which a property's
    premise does not occur any more is refuted without a run. A scope is left out if a larger one
    has covered the same properties.
    """
    said: list[Held] = []
    for each in reversed(where):
        if any(_asks_less(each, other) for other in said):
            continue
        asked = _asked(changed, each.scope, CHANGED_MAX)
        said += [each] if asked else []
        for _, found in asked:
            if found.name in each.names and not found.kept:
                return JudgedMutant(name, "reachable", (found.name,), (*found.trace, *found.loop))
            if found.name in each.names and not found.asked:
                return JudgedMutant(name, "requirement", (found.name,))
    for progress in (each for each in changed.leads_to if each.rank):
        sizes = dict.fromkeys(families(changed), SIZE_OF_RANKS)
        if (lost := rank_lost(changed, progress, actions, sizes)) is not None:
            return JudgedMutant(name, "induction", (progress.name,), lost)
    return JudgedMutant(name, "survivor")


def _asked(system: System, scope: Scope, states_max: int) -> list[tuple[Scope, Kept]]:
    """Return the properties of a scope with their outcomes, or an empty list if it is too large."""
    try:
        return [(scope, each) for each in check(system, scope, states_max=states_max)]
    except ModelError:
        # Its integers have left the scope, or it has too many states.
        return []


def _scopes(system: System) -> Iterator[list[Scope]]:
    """Yield scopes by their sizes, those of few integers first.

    To keep them small, each rigid element is the first of its family, and each weight is 1.
    """
    names = families(system)
    fixed = {
        symbol.name: int(issubclass(symbol.range, Int))
        for symbol in system.rigid
        if issubclass(symbol.range, Int) or (issubclass(symbol.range, Family) and not symbol.domain)
    }
    combined = itertools.product(SIZES, repeat=len(names))
    few = (sizes for sizes in combined if sum(sizes) <= len(names) + MORE_MAX)
    for sizes in sorted(few, key=lambda sizes: (sum(sizes), sizes)):
        numbers = dict(zip(names, sizes, strict=True))
        yield [
            Scope(numbers, range(-most, most + 1), fixed)
            for most in range(1, max(sizes, default=1) + 1)
        ]
