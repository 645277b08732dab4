"""The adaptive grade of the exhaustive stage: every move in every state that the candidate reaches.

It is for candidates whose answers to the same operations differ. Their runs cannot be repeated, so
the search covers pairs of a contract state (what the oracle knows) and a move instead. The walk
makes a move that is untried where it is, or else one that adds a chain (`chains.py`). Otherwise it
goes to the nearest untried pair by steps that led that way before; if the candidate ends elsewhere,
it goes on there.
Moves in states that do not recur are counted apart.

A candidate may know more than the oracle: what it did wrong in one step may show in the next only.
So once every pair is tried, and budget is left, the walk begins anew and tries every move after
every last move that leads to a state, then after every last two, and so on. Model-based testing
calls the first of these 1-switch cover (Chow, Testing Software Design Modeled by Finite-State
Machines, IEEE Transactions on Software Engineering 4(3), 1978).
"""

from __future__ import annotations

import functools
from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.search.chains import Chains, Past, Touch, touch_of
from brokerproof.checks.search.endings import take_what_is_left
from brokerproof.checks.search.findings import Exchange
from brokerproof.checks.search.root_cause import Fresh
from brokerproof.checks.search.searches import HANGS, Search, collecting_rarely, may_go_on
from brokerproof.checks.search.step_cache import OracleState, SearchNode, StepCache
from brokerproof.checks.trace.moves import Move
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate

RUN_MAX = 30
"""A run ends after so many steps. Its end shows what was lost, and a short run comes there soon."""

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
    _left: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with every move to be tried, the first one last."""
        self._left = [*reversed(range(self.standing.page.own))]

    def untried(self) -> int | None:
        """Return the first move that is still to be tried."""
        left = self._left
        while left and (left[-1] in self.tried or self.approached[left[-1]] >= APPROACH_MAX):
            left.pop()
        return left[-1] if left else None

    @functools.cached_property
    def touches(self) -> list[Touch]:
        """What each move touches."""
        page = self.standing.page
        return [touch_of(move, page.bindings) for move, _ in page.moves[: page.own]]


@dataclass
class _Walk:
    """The present run: its candidate, the node of the search, its steps, and its last moves.

    A move is remembered with the number of the contract state in which it was made. `past` is what
    the run did to each thing, and `route` the moves ahead, each with the state that it is made in.
    """

    candidate: Candidate
    place: SearchNode
    steps: list[Exchange] = field(default_factory=list)
    last: tuple[tuple[int, int], ...] = ()
    past: Past = field(default_factory=dict)
    route: deque[tuple[Hashable, int]] = field(default_factory=deque)

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
        standings.close()


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
    while True:
        key = walk.key
        if key not in states:
            standing = walk.place.standing
            states[key] = _State(standing, numbers.setdefault(standing.key, len(numbers)))
        number = _next(walk, states, found.chains)
        if number is None and not walk.steps:
            break
        if number is None or len(walk.steps) >= longest:
            _end(walk, found, standings)
            walk = begin()
        elif not _make(walk, states[key], number, found, standings, remembered):
            walk = begin()
        found.depth = max(found.depth, len(walk.steps))
        if found.is_to_stop(interrupted, operations_max):
            break
        progress(found)
    if not remembered:
        met = sum(state.standing.page.own for state in states.values())
        tried = sum(len(state.tried) for state in states.values())
        found.moves, found.never_offered = (tried, met), met - tried
        found.complete = not (found.stopped_by or found.unfollowed or found.never_offered)


def _next(walk: _Walk, states: dict[Hashable, _State], chains: Chains) -> int | None:
    """Return the next move: untried, or adding a chain, or on the way to an untried one."""
    key = walk.key
    number = chains.most_new(walk.past, states[key].touches, states[key].tried)
    if number is not None:
        walk.route.clear()
        return number
    if not walk.route or walk.route[0][0] != key:
        walk.route = _route(states, key)
    if not walk.route:
        return None
    _, number = walk.route.popleft()
    if walk.route:
        target, its = walk.route[-1]
        states[target].approached[its] += 1
    return number


def _route(states: dict[Hashable, _State], key: Hashable) -> deque[tuple[Hashable, int]]:
    """Return the moves to the nearest untried one, and that one; empty if there is none."""
    came: dict[Hashable, tuple[Hashable, int] | None] = {key: None}
    route: deque[tuple[Hashable, int]] = deque()
    ahead = deque([key])
    while ahead:
        at = ahead.popleft()
        state = states.get(at)
        if state is None:
            continue
        untried = state.untried()
        if untried is not None:
            route.append((at, untried))
            while (before := came[at]) is not None:
                route.appendleft(before)
                at = before[0]
            break
        for number, led in state.tried.items():
            for following in led:
                if following not in came:
                    came[following] = at, number
                    ahead.append(following)
    return route


def _end(walk: _Walk, found: Search, standings: StepCache) -> None:
    """Ask for everything that is left."""

    def make(move: Move) -> Answer | None:
        if _step(walk, walk.place.standing.page.number_of(move), found, standings):
            return walk.steps[-1].answer
        return None

    take_what_is_left(walk.place.standing.page.bindings, make)


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
    found.chains.add(walk.past, state.touches[number])
    found.pairs += number not in state.tried
    led = state.tried.setdefault(number, {})
    if walk.place.standing.page is not state.standing.page:
        number = walk.place.standing.page.number_of(state.standing.page.moves[number][0])
    made = len(walk.steps)
    if not _step(walk, number, found, standings):
        return False
    if len(walk.steps) > made:
        found.chains.add_deliveries(walk.past, walk.steps[-1].answer)
        walk.last = last
        led[walk.key] = None
    return True


def _step(walk: _Walk, number: int, found: Search, standings: StepCache) -> bool:
    """Make a move of the page where the walk is; return whether the run goes on."""
    found.operations += 1
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
    walk.place = after
    return True
