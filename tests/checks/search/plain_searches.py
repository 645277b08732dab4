"""Naive searches, without a cache: each oracle is copied and used at every step.

The grades of the exhaustive stage must have the same findings; `test_searches_agree.py` compares
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

from brokerproof.checks.conversation import Copier, Misbehaviour, ask
from brokerproof.checks.oracle.breaches import Unfollowable
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.search.adaptive import APPROACH_MAX, REMEMBERED_MAX, RUN_MAX, TIMED_RUN_MAX
from brokerproof.checks.search.chains import Chains, Past, touch_of
from brokerproof.checks.search.endings import take_what_is_left
from brokerproof.checks.search.findings import Exchange, step
from brokerproof.checks.search.root_cause import Fresh
from brokerproof.checks.search.searches import Search, may_go_on
from brokerproof.checks.trace.moves import Move
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.candidate import Candidate

Steps = tuple[Exchange, ...]


@dataclass
class _State:
    """The moves tried in a contract state, their successors, and the number of approaches."""

    moves: list[Move]
    tried: dict[int, dict[Hashable, None]] = field(default_factory=dict)
    approached: Counter[int] = field(default_factory=Counter)

    def untried(self) -> int | None:
        """Return the first move that is still to be tried."""
        every = range(len(self.moves))
        left = [n for n in every if n not in self.tried and self.approached[n] < APPROACH_MAX]
        return left[0] if left else None


def _count(found: Search, oracle: Oracle) -> None:
    """Add an oracle's counts since its copy."""
    for requirement, times in oracle.exercised.items():
        found.exercised[requirement] += times
    for outcome, times in oracle.outcomes.items():
        found.outcomes[outcome] += times
    for action, times in oracle.actions.items():
        found.actions[action] += times
    if oracle.watch is not None:
        found.taken.update(oracle.watch.taken)
        found.given_up += oracle.watch.given_up


def _reason(found: Search, operations_max: int) -> str:
    ended = f"{operations_max} operations" if found.operations >= operations_max else ""
    return found.stopped_by or ended


def _moved(
    found: Search, candidate: Candidate, oracle: Oracle, number: int, steps: Steps
) -> tuple[Exchange | None, bool]:
    """Make a move; return it, and whether the run goes on beyond it."""
    move = list(found.scope.moves(oracle.bindings))[number]
    try:
        told, breaches = step(candidate, oracle, move)
    except Unfollowable:
        found.unfollowed += 1
        return None, False
    _count(found, oracle)
    if told is None:
        return None, False
    return told, not breaches or may_go_on((*steps, told), breaches, candidate, found)


def plain_product(
    found: Search, start: tuple[Candidate, Oracle], copier: Copier, operations_max: int
) -> None:
    """Search every pair of states; stops at `operations_max`."""
    level: list[tuple[Candidate, Oracle, Steps]] = [(*start, ())]
    seen: set[Hashable] = {(copier.fingerprint(start[0]), start[1].key())}
    while level:
        following: list[tuple[Candidate, Oracle, Steps]] = []
        for candidate, oracle, steps in level:
            for number, _ in enumerate(found.scope.moves(oracle.bindings)):
                their, our = copier.fork(candidate), oracle.fork()
                found.operations += 1
                told, goes_on = _moved(found, their, our, number, steps)
                if told is not None and goes_on:
                    pair = copier.fingerprint(their), our.key()
                    if pair not in seen:
                        seen.add(pair)
                        following.append((their, our, (*steps, told)))
                if found.stopped_by:
                    break
            found.stopped_by = _reason(found, operations_max)
            if found.stopped_by:
                found.pairs = len(seen)
                return
        found.pairs, found.depth = len(seen), found.depth + 1
        level = following
    found.complete = not found.unfollowed


def plain_sequences(found: Search, fresh: Fresh, operations_max: int, length_max: int) -> None:
    """Play every sequence, shorter ones first; stops at `operations_max`."""
    ends: list[tuple[Oracle, Steps]] = [(fresh()[1], ())]
    while ends and found.depth < length_max:
        following: list[tuple[Oracle, Steps]] = []
        for oracle, steps in ends:
            following += _continued(oracle, steps, found, fresh)
            found.stopped_by = _reason(found, operations_max)
            if found.stopped_by:
                return
        found.depth += 1
        found.pairs += len(following)
        ends = following
    found.complete = not found.unfollowed and not ends


def _continued(
    oracle: Oracle, steps: Steps, found: Search, fresh: Fresh
) -> Sequence[tuple[Oracle, Steps]]:
    longer: list[tuple[Oracle, Steps]] = []
    for number, _ in enumerate(found.scope.moves(oracle.bindings)):
        candidate, _ = fresh()
        our = oracle.fork()
        for earlier in steps:
            found.operations += 1
            answer = ask(candidate, earlier.operation)
            assert not isinstance(answer, Misbehaviour)
            assert answer == earlier.answer
        unfollowed = found.unfollowed
        told, goes_on = _moved(found, candidate, our, number, steps)
        found.operations += found.unfollowed == unfollowed
        if told is not None and goes_on:
            longer.append((our, (*steps, told)))
        if found.stopped_by:
            break
    return longer


def plain_walk(found: Search, fresh: Fresh, operations_max: int) -> None:
    """Walk by states alone, then by states and ever more of the last moves."""
    for remembered in range(REMEMBERED_MAX + 1):
        _walk_plainly(found, fresh, operations_max, remembered)
        if found.stopped_by:
            break
        found.remembered = remembered
    if found.complete:
        found.stopped_by = ""


@dataclass
class _Run:
    """The present run of a walk: the steps so far, and those towards an untried move."""

    candidate: Candidate
    oracle: Oracle
    steps: list[Exchange] = field(default_factory=list)
    made: list[tuple[Hashable, int]] = field(default_factory=list)
    past: Past = field(default_factory=dict)
    route: list[tuple[Hashable, int]] = field(default_factory=list)


def _walk_plainly(found: Search, fresh: Fresh, operations_max: int, remembered: int) -> None:
    """Walk to the nearest move that has not been tried in its state, again and again."""
    states: dict[Hashable, _State] = {}
    pairs = found.pairs
    run = _Run(*fresh())
    longest = TIMED_RUN_MAX if found.scope.seconds else RUN_MAX
    while not found.stopped_by:
        key = run.oracle.key(), tuple(run.made[-remembered:] if remembered else ())
        state = states.setdefault(key, _State(list(found.scope.moves(run.oracle.bindings))))
        number = _next(run, states, key, found.chains)
        if number is None and not run.steps:
            break
        if number is None or len(run.steps) >= longest:
            take_what_is_left(run.oracle.bindings, partial(_answer, run, found))
            run = _Run(*fresh())
        else:
            led = state.tried.setdefault(number, {})
            move, before, at = state.moves[number], len(run.steps), run.oracle.key()
            found.chains.add(run.past, touch_of(move, run.oracle.bindings))
            goes_on = _made(run, move, found)
            if goes_on and len(run.steps) > before:
                found.chains.add_deliveries(run.past, run.steps[-1].answer)
                run.made.append((at, number))
                led[run.oracle.key(), tuple(run.made[-remembered:] if remembered else ())] = None
            if not goes_on:
                run = _Run(*fresh())
        found.pairs = pairs + sum(len(each.tried) for each in states.values())
        found.depth = max(found.depth, len(run.steps))
        found.stopped_by = _reason(found, operations_max)
    if not remembered:
        every = [(len(each.tried), len(each.moves)) for each in states.values()]
        found.moves = sum(tried for tried, _ in every), sum(met for _, met in every)
        found.never_offered = found.moves[1] - found.moves[0]
        found.complete = not (found.stopped_by or found.unfollowed or found.never_offered)


def _made(run: _Run, move: Move, found: Search) -> bool:
    """Make a move; return whether the run goes on."""
    found.operations += 1
    our = run.oracle.fork()
    try:
        told, breaches = step(run.candidate, our, move)
    except Unfollowable:
        found.unfollowed += 1
        return False
    if told is None:
        return True
    run.steps.append(told)
    _count(found, our)
    if not may_go_on(run.steps, breaches, run.candidate, found):
        return False
    run.oracle = our
    return True


def _answer(run: _Run, found: Search, move: Move) -> Answer | None:
    return run.steps[-1].answer if _made(run, move, found) else None


def _next(run: _Run, states: dict[Hashable, _State], key: Hashable, chains: Chains) -> int | None:
    """Return the next move: untried, or adding a chain, or on the way to an untried one."""
    bindings, state = run.oracle.bindings, states[key]
    touches = [touch_of(move, bindings) for move in state.moves]
    number = chains.most_new(run.past, touches, state.tried)
    if number is not None:
        run.route = []
        return number
    if not run.route or run.route[0][0] != key:
        run.route = _towards_what_is_untried(states, key)
    if not run.route:
        return None
    (_, number), *run.route = run.route
    if run.route:
        target, its = run.route[-1]
        states[target].approached[its] += 1
    return number


def _towards_what_is_untried(
    states: dict[Hashable, _State], key: Hashable
) -> list[tuple[Hashable, int]]:
    """Return the moves to the nearest untried one, and that one; empty if there is none."""
    routes: dict[Hashable, list[tuple[Hashable, int]]] = {key: []}
    ahead = [key]
    for at in ahead:
        if at not in states:
            continue
        untried = states[at].untried()
        if untried is not None:
            return [*routes[at], (at, untried)]
        for number, led in states[at].tried.items():
            for following in led:
                if following not in routes:
                    routes[following] = [*routes[at], (at, number)]
                    ahead.append(following)
    return []
