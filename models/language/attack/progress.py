"""The attack on promises about the end: a changed model that breaks one in a small scope.

Owns the scopes in which promises are asked, and the last word on a mutant: what does not break one
survives. A promise is held against a mutant only in a scope where the text as it is keeps it and
where its premise comes about: what is not kept without the change says nothing of the change.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from brokerproof.models.language.attack.outcomes import JudgedMutant
from brokerproof.models.language.core.model import ModelError, System
from brokerproof.models.language.core.scope import Scope, families
from brokerproof.models.language.core.terms import Family, Int
from brokerproof.models.language.explore.liveness import Kept, check

SIZES = (1, 2, 3)
"""How many elements each family has, the fewest first."""

MORE_MAX = 2
"""How many elements there are at most beyond one in each family."""

STATES_MAX = 15_000
"""How many states a scope has at most; what has more is left out."""

CHANGED_MAX = 40_000
"""How many states the scope may have with the change, which may let more happen."""


@dataclass(frozen=True)
class Held:
    """A scope, and the promises that the text as it is keeps there."""

    scope: Scope
    names: frozenset[str]


def held(system: System) -> tuple[Held, ...]:
    """Return where which promises are kept, the smallest scope first."""
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


def judged_in_the_end(name: str, changed: System, where: tuple[Held, ...]) -> JudgedMutant:
    """Return a mutant that breaks a promise in one of the scopes, with the run, or a survivor.

    The run's last steps are those that are taken again and again, where there are any. A promise
    whose premise does not come about any more says otherwise than it did, without a run. A scope is
    left out where a larger one has said the same and more.
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
    return JudgedMutant(name, "survivor")


def _asked(system: System, scope: Scope, states_max: int) -> list[tuple[Scope, Kept]]:
    """Return what becomes of the promises in a scope; nothing where it is too large to say."""
    try:
        return [(scope, each) for each in check(system, scope, states_max=states_max)]
    except ModelError:
        # Its integers have left the scope, or it has more states.
        return []


def _scopes(system: System) -> Iterator[list[Scope]]:
    """Yield scopes by their sizes, those of few integers first.

    To make them small, each nameless element is the first of its family and each weight is 1.
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
