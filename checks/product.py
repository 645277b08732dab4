"""The product grade of the exhaustive stage: every behaviour of a scope.

For candidates that can be copied: a breadth-first search over pairs of broker state and oracle
state. Equal pairs are merged, so the search ends although the sequences of moves do not; levels are
numbers of operations, so the first violation found is a shortest one of its scope. Nothing is
sampled: what ends early says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from brokerproof.checks.census import named_by_census
from brokerproof.checks.conversation import CannotCopy, Copier
from brokerproof.checks.findings import Run, Told, goes_on, step
from brokerproof.checks.oracle import Breach, Oracle, Unfollowable
from brokerproof.checks.scopes import Scope
from brokerproof.spec.candidate import Candidate

HANGS = "a candidate that hangs"
"""Why a stage ends with the first operation that does not come back: each costs its limit."""

KEPT_PER_REQUIREMENT = 40
"""How many traces of one requirement are kept: the first may be another fault's (`charges.py`)."""


@dataclass
class Node:
    """A pair reached: how, and from where; the pair itself is dropped once it is expanded."""

    parent: Node | None
    told: Told | None
    depth: int
    pair: tuple[Candidate, Oracle] | None

    def steps(self) -> tuple[Told, ...]:
        """Return the steps from the reset to here."""
        steps: list[Told] = []
        node: Node | None = self
        while node is not None:
            if node.told is not None:
                steps.append(node.told)
            node = node.parent
        return tuple(reversed(steps))


@dataclass
class Search:
    """What a search of one scope found, and how far it got."""

    scope: Scope
    pairs: int = 0
    operations: int = 0
    depth: int = 0
    complete: bool = False
    stopped_by: str = ""
    exercised: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, bool]] = field(default_factory=Counter)
    broken: dict[str, list[Run]] = field(default_factory=dict)
    unfollowed: int = 0


def search(
    scope: Scope,
    start: tuple[Candidate, Oracle],
    copier: Copier,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> Search:
    """Search a scope from a candidate just reset; stops at `operations_max` or when interrupted.

    `interrupted` returns a reason to stop, or nothing.
    """
    found = Search(scope)
    level = [Node(None, None, 0, start)]
    seen: set[Hashable] = {(copier.fingerprint(start[0]), start[1].key())}
    while level:
        following: list[Node] = []
        for node in level:
            try:
                _expand(node, found, copier, seen, following)
            except CannotCopy as error:
                found.stopped_by = str(error)
                found.pairs = len(seen)
                return found
            node.pair = None
            found.stopped_by = (
                found.stopped_by
                or interrupted()
                or (f"{operations_max} operations" if found.operations >= operations_max else "")
            )
            if found.stopped_by:
                found.pairs = len(seen)
                return found
        found.pairs, found.depth = len(seen), found.depth + 1
        progress(found)
        level = following
    found.complete = not found.unfollowed
    return found


def _expand(
    node: Node, found: Search, copier: Copier, seen: set[Hashable], following: list[Node]
) -> None:
    """Make every move from a pair; keep what is new, file what is broken."""
    assert node.pair is not None
    candidate, oracle = node.pair
    for move in found.scope.moves(oracle.book):
        their, our = copier.fork(candidate), oracle.fork()
        found.operations += 1
        try:
            told, breaches = step(their, our, move)
        except Unfollowable:
            found.unfollowed += 1
            continue
        found.exercised.update(our.exercised)
        found.outcomes.update(our.outcomes)
        if told is None:
            continue
        child = Node(node, told, node.depth + 1, (their, our))
        if any(breach.hangs for breach in breaches):
            found.stopped_by = HANGS
        for breach in breaches:
            _file(child, told, breach, their, found)
        if found.stopped_by:
            return
        if all(map(goes_on, breaches)):
            key = (copier.fingerprint(their), our.key())
            if key not in seen:
                seen.add(key)
                following.append(child)


def _file(node: Node, told: Told, breach: Breach, candidate: Candidate, found: Search) -> None:
    named = breach if goes_on(breach) else named_by_census(candidate, told.answer, breach)
    traces = found.broken.setdefault(named.requirement, [])
    if len(traces) < KEPT_PER_REQUIREMENT:
        traces.append(Run(node.steps(), named))
