"""The product grade of the exhaustive stage: every behaviour of a scope.

For candidates that can be copied: a breadth-first search over pairs of broker state and oracle
state. Equal pairs are merged, so the search of infinitely many sequences ends. Levels are numbers
of operations, so the first violation found is a shortest one of its scope. Nothing is sampled, and
a search that ends early says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import get_args

from brokerproof.checks.conversation import Copier
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.findings import Exchange
from brokerproof.checks.search.searches import Search, collecting_rarely, may_go_on
from brokerproof.checks.search.step_cache import SearchNode, StepCache
from brokerproof.checks.trace.moves import Cut
from brokerproof.spec.protocol.candidate import Candidate, OnDisk, Unsynced


@dataclass
class Node:
    """A pair that was reached, and its parent; the pair is dropped once it is expanded."""

    parent: Node | None
    told: Exchange | None
    depth: int
    pair: tuple[Candidate, SearchNode] | None

    def steps(self) -> tuple[Exchange, ...]:
        """Return the steps from the reset to here."""
        steps: list[Exchange] = []
        node: Node | None = self
        while node is not None:
            if node.told is not None:
                steps.append(node.told)
            node = node.parent
        return tuple(reversed(steps))


@dataclass
class _Reached:
    """The pairs that were reached, and how equal pairs are recognised."""

    found: Search
    copier: Copier
    standings: StepCache
    seen: set[Hashable] = field(default_factory=set)

    def is_new(self, candidate: Candidate, place: SearchNode) -> bool:
        """Return whether a pair is met for the first time, and remember it."""
        pair = self.copier.fingerprint(candidate), place.standing.key
        before = len(self.seen)
        self.seen.add(pair)
        return len(self.seen) > before


@collecting_rarely()
def search(
    found: Search,
    start: tuple[Candidate, Oracle],
    copier: Copier,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> None:
    """Search a scope from a candidate just reset; stops at `operations_max` or when interrupted.

    `interrupted` returns a reason to stop, or an empty text. Raises `CannotCopy`; the findings
    until then are kept.
    """
    standings = StepCache(found)
    reached = _Reached(found, copier, standings)
    candidate, place = start[0], standings.start(start[1])
    reached.is_new(candidate, place)
    level = [Node(None, None, 0, (candidate, place))]
    try:
        while level:
            following: list[Node] = []
            for node in level:
                _expand(node, reached, following)
                node.pair = None
                if found.is_to_stop(interrupted, operations_max):
                    return
            found.depth += 1
            found.pairs = len(reached.seen)
            progress(found)
            level = following
        found.complete = not found.unfollowed
    finally:
        found.pairs = len(reached.seen)
        standings.close()


def _expand(node: Node, reached: _Reached, following: list[Node]) -> None:
    """Make every move from a pair, which is used up; keep new pairs, file breaches."""
    assert node.pair is not None
    found = reached.found
    candidate, place = node.pair
    moves = place.standing.page.own
    for number in range(moves):
        # The last move needs no copy, unless it is made once more and cut off.
        is_last = number == moves - 1 and not found.scope.cuts
        their = candidate if is_last else reached.copier.fork(candidate)
        told = _make(node, number, None, their, reached, following)
        if told is not None and found.scope.cuts_off(told.move) and not found.stopped_by:
            _cut_off(node, number, told, their, reached, following)
        if found.stopped_by:
            return


def _make(
    node: Node,
    number: int,
    cut: Cut | None,
    their: Candidate,
    reached: _Reached,
    following: list[Node],
) -> Exchange | None:
    """Make a move on a copy; keep a new pair, file breaches."""
    assert node.pair is not None
    found, place = reached.found, node.pair[1]
    found.operations += 1
    try:
        told, breaches, after = reached.standings.step(their, place, number, node.steps, cut)
    except Unfollowable:
        if cut is None:
            found.unfollowed += 1
        else:
            found.cuts_unjudged += 1
        return None
    if told is None:
        return None
    goes_on = not breaches or may_go_on((*node.steps(), told), breaches, their, found)
    if goes_on and after is not None and reached.is_new(their, after):
        following.append(Node(node, told, node.depth + 1, (their, after)))
    return told


def _cut_off(
    node: Node,
    number: int,
    told: Exchange,
    done: Candidate,
    reached: _Reached,
    following: list[Node],
) -> None:
    """Make a move once more for each change that it has made to the disk, and cut it off there.

    Unsynced writes are lost, torn or kept. Two of these that leave the same state count once.
    """
    assert node.pair is not None
    candidate, found = node.pair[0], reached.found
    assert isinstance(candidate, OnDisk), "scopes with cuts are for these alone"
    assert isinstance(done, OnDisk)
    assert not isinstance(told.move, Cut)
    try:
        changes = done.changes() - candidate.changes()
    except Exception:  # noqa: BLE001 - whatever it is, cutting off once tells it as a finding
        changes = 1
    for change in range(changes):
        left: set[Hashable] = set()
        for unsynced in get_args(Unsynced):
            their = reached.copier.fork(candidate)
            cut = Cut(move=told.move, change=change, unsynced=unsynced)
            _make(node, number, cut, their, reached, following)
            left.add(reached.copier.fingerprint(their))
            if found.stopped_by:
                return
        found.cuts += len(left)
