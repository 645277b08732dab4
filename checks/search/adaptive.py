"""The adaptive grade of the exhaustive stage: every move in every state that the candidate reaches.

It is for candidates whose answers to the same operations differ. Their runs cannot be repeated, so
the search covers pairs of a contract state (what the oracle knows) and a move instead. The walk
goes to the nearest untried pair by steps that led that way before; if the candidate ends elsewhere,
the walk goes on from there. Moves in states that do not recur are counted apart.

A candidate may know more than the oracle: what it did wrong in one step may show in the next only.
So once every pair is tried, and budget is left, the walk begins anew and tries every move after
every last move that leads to a state, then after every last two, and so on. Model-based testing
calls the first of these 1-switch cover (Chow, Testing Software Design Modeled by Finite-State
Machines, IEEE Transactions on Software Engineering 4(3), 1978).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.search.findings import Exchange
from brokerproof.checks.search.root_cause import Fresh
from brokerproof.checks.search.searches import HANGS, Search, collecting_rarely, may_go_on
from brokerproof.checks.search.step_cache import OracleState, SearchNode, StepCache
from brokerproof.spec.protocol.candidate import Candidate

RUN_MAX = 60
"""A longer run begins anew: so long a trace is not readable."""

TIMED_RUN_MAX = 12
"""The same where seconds pass: beginning anew costs none, and what matters happens early."""

REMEMBERED_MAX = 3
"""The most last moves by which states are told apart."""

APPROACH_MAX = 100
"""After so many steps towards one pair, it is given up as never offered."""


@dataclass
class _State:
    """A contract state that was met: its moves, those tried, and where they led.

    The moves belong to the first oracle state met. Other oracle states with its key have the same
    moves, or look them up. `approached` counts the steps made elsewhere to try a move here.
    """

    standing: OracleState
    number: int
    tried: dict[int, dict[Hashable, None]] = field(default_factory=dict)
    approached: Counter[int] = field(default_factory=Counter)

    def untried(self) -> list[int]:
        """Return the numbers of the moves that are still to be tried."""
        return [
            number
            for number in range(self.standing.page.own)
            if number not in self.tried and self.approached[number] < APPROACH_MAX
        ]


@dataclass
class _Walk:
    """The present run: its candidate, the node of the search, its steps, and its last moves.

    A move is remembered with the number of the contract state in which it was made.
    """

    candidate: Candidate
    place: SearchNode
    steps: list[Exchange] = field(default_factory=list)
    last: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> Hashable:
        """The state, and the moves that led there."""
        return self.place.standing.key, self.last


@collecting_rarely()
def search_adaptively(
    found: Search,
    fresh: Fresh,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None] = lambda _: None,
) -> None:
    """Walk until no pair is left to try, then after ever more last moves, until the budget ends."""
    standings = StepCache(found)
    try:
        for remembered in range(REMEMBERED_MAX + 1):
            _walk(found, standings, fresh, operations_max, interrupted, progress, remembered)
            if found.stopped_by:
                break
            found.remembered = remembered
        if found.complete and not interrupted() and found.stopped_by != HANGS:
            # All was done that a search must; the rest of the budget went into more.
            found.stopped_by = ""
    finally:
        standings.add_up()


def _walk(
    found: Search,
    standings: StepCache,
    fresh: Fresh,
    operations_max: int,
    interrupted: Callable[[], str],
    progress: Callable[[Search], None],
    remembered: int,
) -> None:
    """Walk until every move is tried in every state, as told apart by so many last moves."""

    def begin() -> _Walk:
        candidate, oracle = fresh()
        return _Walk(candidate, standings.start(oracle))

    states: dict[Hashable, _State] = {}
    numbers: dict[Hashable, int] = {}
    longest = TIMED_RUN_MAX if found.scope.seconds else RUN_MAX
    walk = begin()
    start = walk.key
    while True:
        key = walk.key
        if key not in states:
            standing = walk.place.standing
            states[key] = _State(standing, numbers.setdefault(standing.key, len(numbers)))
        route = _route(states, key)
        if route is None and key == start and not walk.steps:
            break
        if route is None or len(walk.steps) >= longest:
            walk = begin()
            continue
        if not _make(walk, states[key], route, found, standings, remembered):
            walk = begin()
        found.depth = max(found.depth, len(walk.steps))
        if found.is_to_stop(interrupted, operations_max):
            break
        progress(found)
    if not remembered:
        found.never_offered = sum(
            state.standing.page.own - len(state.tried) for state in states.values()
        )
        found.complete = not (found.stopped_by or found.unfollowed or found.never_offered)


def _route(states: dict[Hashable, _State], key: Hashable) -> int | None:
    """Return the move towards the nearest untried pair; None if there is none."""
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
    walk: _Walk,
    state: _State,
    number: int,
    found: Search,
    standings: StepCache,
    remembered: int,
) -> bool:
    """Make a move of a state; return whether the run goes on."""
    last = (*walk.last, (state.number, number))[-remembered:] if remembered else ()
    found.pairs += number not in state.tried
    led = state.tried.setdefault(number, {})
    found.operations += 1
    if walk.place.standing.page is not state.standing.page:
        number = walk.place.standing.page.number_of(state.standing.page.moves[number][0])
    try:
        told, breaches, after = standings.step(
            walk.candidate, walk.place, number, lambda: walk.steps
        )
    except Unfollowable:
        found.unfollowed += 1
        return False
    if told is None:
        return True
    walk.steps.append(told)
    if not may_go_on(walk.steps, breaches, walk.candidate, found) or after is None:
        return False
    walk.place, walk.last = after, last
    led[walk.key] = None
    return True
