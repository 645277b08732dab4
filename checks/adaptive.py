"""The adaptive grade of the exhaustive stage: every move in every state that the candidate offers.

For candidates that do not answer the same to the same: whoever cannot repeat a run cannot visit all
of them. What can be visited is every pair of a contract state (what the oracle knows) and a move.
The walk goes to the nearest pair that has not been tried, over steps that led that way before;
where the candidate goes elsewhere, the walk goes on from there. Moves in states that the candidate
does not come to again are counted apart.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from brokerproof.checks.breaches import Unfollowable
from brokerproof.checks.charges import Fresh
from brokerproof.checks.findings import Told, step
from brokerproof.checks.moves import Move
from brokerproof.checks.oracle import Oracle
from brokerproof.checks.searches import Search, may_go_on
from brokerproof.spec.candidate import Candidate

RUN_MAX = 60
"""A run that is longer begins anew: a trace that nobody can read shows nothing."""

APPROACH_MAX = 100
"""So many steps are made towards one pair before it is given up as never offered."""


@dataclass
class _State:
    """A contract state that was met: its moves, those tried, and where they led.

    `approached` counts the steps that were made elsewhere in order to try a move here.
    """

    moves: tuple[Move, ...]
    tried: dict[int, dict[Hashable, None]] = field(default_factory=dict)
    approached: Counter[int] = field(default_factory=Counter)

    def untried(self) -> list[int]:
        """Return the numbers of the moves that are still to be tried."""
        return [
            number
            for number in range(len(self.moves))
            if number not in self.tried and self.approached[number] < APPROACH_MAX
        ]


@dataclass
class _Walk:
    """Where the walk is: the candidate and the oracle of this run, and its steps."""

    candidate: Candidate
    oracle: Oracle
    steps: list[Told] = field(default_factory=list)


def search_adaptively(
    found: Search,
    fresh: Fresh,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> None:
    """Walk until no pair is left that could be tried, or the budget ends."""
    states: dict[Hashable, _State] = {}
    walk = _Walk(*fresh())
    start = walk.oracle.key()
    while True:
        key = walk.oracle.key()
        if key not in states:
            states[key] = _State(tuple(found.scope.moves(walk.oracle.book)))
        route = _route(states, key)
        if route is None and key == start and not walk.steps:
            break
        if route is None or len(walk.steps) >= RUN_MAX:
            walk = _Walk(*fresh())
            continue
        if not _make(walk, states, key, route, found):
            walk = _Walk(*fresh())
        found.pairs = sum(len(state.tried) for state in states.values())
        found.depth = max(found.depth, len(walk.steps))
        found.stopped_by = (
            found.stopped_by
            or interrupted()
            or (f"{operations_max} operations" if found.operations >= operations_max else "")
        )
        if found.stopped_by:
            break
        progress(found)
    found.never_offered = sum(len(state.moves) - len(state.tried) for state in states.values())
    found.complete = not (found.stopped_by or found.unfollowed or found.never_offered)


def _route(states: dict[Hashable, _State], key: Hashable) -> int | None:
    """Return the move that leads to the nearest pair that has not been tried; None without one."""
    first: dict[Hashable, int | None] = {key: None}
    ahead = deque([key])
    while ahead:
        at = ahead.popleft()
        untried = states[at].untried() if at in states else []
        if untried:
            begins = first[at]
            if begins is None:
                return untried[0]
            states[at].approached[untried[0]] += 1
            return begins
        for number, led in states[at].tried.items() if at in states else ():
            for following in led:
                if following not in first:
                    first[following] = number if first[at] is None else first[at]
                    ahead.append(following)
    return None


def _make(
    walk: _Walk, states: dict[Hashable, _State], key: Hashable, number: int, found: Search
) -> bool:
    """Make a move; return whether the run goes on."""
    state = states[key]
    led = state.tried.setdefault(number, {})
    oracle = walk.oracle.fork()
    found.operations += 1
    try:
        told, breaches = step(walk.candidate, oracle, state.moves[number])
    except Unfollowable:
        found.unfollowed += 1
        return False
    if told is None:
        return True
    walk.steps.append(told)
    walk.oracle = oracle
    found.count(oracle)
    if not may_go_on(walk.steps, breaches, walk.candidate, found):
        return False
    led[oracle.key()] = None
    return True
