"""The product grade of the exhaustive stage: every behaviour of a scope.

For candidates that can be copied: a breadth-first search over pairs of broker state and oracle
state. Equal pairs are merged, so the search ends although the sequences of moves do not; levels are
numbers of operations, so the first violation found is a shortest one of its scope. Nothing is
sampled: what ends early says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from brokerproof.checks.breaches import Unfollowable
from brokerproof.checks.conversation import CannotCopy, Copier
from brokerproof.checks.findings import Told, step
from brokerproof.checks.oracle import Oracle
from brokerproof.checks.searches import Search, may_go_on
from brokerproof.spec.candidate import Candidate


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


def search(
    found: Search,
    start: tuple[Candidate, Oracle],
    copier: Copier,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> None:
    """Search a scope from a candidate just reset; stops at `operations_max` or when interrupted.

    `interrupted` returns a reason to stop, or nothing.
    """
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
                return
            node.pair = None
            found.stopped_by = (
                found.stopped_by
                or interrupted()
                or (f"{operations_max} operations" if found.operations >= operations_max else "")
            )
            if found.stopped_by:
                found.pairs = len(seen)
                return
        found.pairs, found.depth = len(seen), found.depth + 1
        progress(found)
        level = following
    found.complete = not found.unfollowed


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
        found.count(our)
        if told is None:
            continue
        child = Node(node, told, node.depth + 1, (their, our))
        if not breaches or may_go_on(child.steps(), breaches, their, found):
            key = (copier.fingerprint(their), our.key())
            if key not in seen:
                seen.add(key)
                following.append(child)
        if found.stopped_by:
            return
