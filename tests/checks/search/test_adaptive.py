"""Walks for nondeterministic candidates: visited states, findings, and the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator

import pytest

from brokerproof.checks.search import adaptive
from brokerproof.checks.search.adaptive import search_adaptively
from brokerproof.checks.search.coverage import Reach
from brokerproof.checks.search.findings import step
from brokerproof.checks.search.scopes.scope import Scope
from brokerproof.checks.search.searches import Search
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import Answer, Error
from brokerproof.spec.protocol.operations import Drain, Get, Operation, Publish, Reset
from tests.checks.broken_candidates import Box, Kept, Shrug, Stack, fresh

ONE = Scope("one message", (Fifo(),), messages=1, gets=("acknowledge",))
TWO = Scope("two messages", (Fifo(),), messages=2, gets=("acknowledge",))


def walked(
    start: Callable[[], Box], scope: Scope, operations: int = 20_000, stop: str = ""
) -> Search:
    """Return the findings of a walk through a scope."""
    found = Search(scope, "adaptive")
    search_adaptively(found, lambda: fresh(start), operations, lambda: stop)
    return found


def pairs_of(scope: Scope) -> int:
    """Return how many pairs of a state and a move an honest queue comes to."""
    seen: dict[Hashable, int] = {}
    ahead: list[tuple[Operation, ...]] = [()]
    while ahead:
        operations = ahead.pop(0)
        candidate, oracle = fresh(Box)
        for operation in operations:
            assert oracle.observe(operation, candidate.handle(operation)) == []
        key = oracle.key()
        if key in seen:
            continue
        moves = list(scope.moves(oracle.bindings))
        seen[key] = len(moves)
        for move in moves:
            again, other = fresh(Box)
            for operation in operations:
                other.observe(operation, again.handle(operation))
            told, breaches = step(again, other, move)
            assert breaches == []
            ahead += [] if told is None else [(*operations, told.operation)]
    return sum(seen.values())


class Seldom(Box):
    """An honest queue that gives the newest first at certain counts over all its runs."""

    def __init__(self, gets: Iterator[int] | None = None) -> None:
        super().__init__()
        self.gets = itertools.count() if gets is None else gets

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation; the count outlives a reset."""
        if isinstance(operation, Reset):
            Seldom.__init__(self, self.gets)
            return Answer()
        return super().handle(operation)

    def next_of(self, waiting: list[Kept]) -> int:
        """Return the place of the oldest, but in every fifth get that has a choice."""
        newest = len(waiting) > 1 and next(self.gets) % 5 == 4
        return waiting.index(max(waiting) if newest else min(waiting))


class Unsure(Box):
    """An honest queue whose very first publish of all has no certain outcome."""

    def __init__(self, publishes: Iterator[int] | None = None) -> None:
        super().__init__()
        self.publishes = itertools.count() if publishes is None else publishes

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation; the count outlives a reset."""
        if isinstance(operation, Reset):
            Unsure.__init__(self, self.publishes)
            return Answer()
        answer = super().handle(operation)
        if isinstance(operation, Publish) and next(self.publishes) == 0:
            return Answer(error=Error("timeout", "perhaps"))
        return answer


# Visited states.


def test_a_walk_tries_every_move_in_every_state_of_a_steady_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adaptive, "REMEMBERED_MAX", 0)
    found = walked(Box, ONE)
    assert found.complete
    assert (found.never_offered, found.unfollowed, found.stopped_by) == (0, 0, "")
    assert found.pairs == pairs_of(ONE)
    assert found.broken == {}


def test_a_walk_is_the_same_each_time() -> None:
    one, other = walked(Box, ONE), walked(Box, ONE)
    assert (one.pairs, one.operations, one.exercised) == (
        other.pairs,
        other.operations,
        other.exercised,
    )
    assert one.operations >= one.pairs


def test_no_run_is_longer_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert walked(Box, TWO, 3_000).depth > 6
    monkeypatch.setattr(adaptive, "RUN_MAX", 6)
    found = walked(Box, TWO, 3_000)
    assert found.depth == 6


# Findings.


class Drowsy(Box):
    """Finds nothing in the get after two drains in a row."""

    drains = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation; count the drains since the last other one."""
        drained, self.drains = self.drains, 0
        if isinstance(operation, Drain):
            self.drains = drained + 1
        elif isinstance(operation, Get) and drained == 2:
            return Answer()
        return super().handle(operation)


def test_a_fault_that_shows_after_moves_without_effect_is_found() -> None:
    found = walked(Drowsy, ONE)
    assert set(found.broken) == {"get-finds"}
    assert found.complete
    assert found.remembered == 3


def test_a_walk_that_remembers_nothing_misses_that_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "REMEMBERED_MAX", 0)
    assert walked(Drowsy, ONE).broken == {}


def test_a_walk_that_has_tried_every_move_is_complete_whatever_follows() -> None:
    needed = walked(Box, ONE).operations
    found = walked(Box, ONE, needed - 1)
    assert (found.complete, found.stopped_by, found.remembered) == (True, "", 2)


def test_a_fault_that_comes_and_goes_is_found() -> None:
    gets = itertools.count()
    found = walked(lambda: Seldom(gets), TWO, 3_000)
    assert set(found.broken) == {"fifo-order", "release-rewinds"}
    for run in found.broken["fifo-order"]:
        assert run.broken is not None
        assert isinstance(run.steps[-1].operation, Get)
        assert len(run.steps) <= adaptive.RUN_MAX


def test_a_breach_ends_its_run_and_not_the_walk() -> None:
    found = walked(Stack, TWO)
    assert set(found.broken) == {"fifo-order", "release-rewinds"}
    assert found.stopped_by == ""
    assert found.pairs > len(found.broken["fifo-order"])
    assert found.exercised["get-finds"] > 0


# The end of a walk.


def test_moves_of_states_that_are_not_offered_again_are_counted_and_given_up() -> None:
    publishes = itertools.count()
    found = walked(lambda: Unsure(publishes), ONE)
    assert found.stopped_by == ""
    assert found.broken == {}
    assert found.never_offered > 0
    assert not found.complete
    # The states of a queue that is always sure were all visited beside those.
    assert found.pairs >= pairs_of(ONE)


def test_how_often_a_state_is_approached_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    def operations(limit: int) -> int:
        monkeypatch.setattr(adaptive, "APPROACH_MAX", limit)
        publishes = itertools.count()
        return walked(lambda: Unsure(publishes), ONE).operations

    assert operations(5) < operations(100)


def test_what_has_no_certain_outcome_is_not_followed() -> None:
    found = walked(Shrug, ONE)
    assert found.unfollowed > 0
    assert not found.complete
    assert found.broken == {}


def test_a_walk_ends_with_its_budget_and_says_so() -> None:
    found = walked(Box, TWO, 40)
    assert (found.stopped_by, found.operations, found.complete) == ("40 operations", 40, False)
    assert found.never_offered > 0


def test_a_walk_ends_when_it_is_asked_to() -> None:
    found = walked(Box, TWO, stop="the cap")
    assert (found.stopped_by, found.operations, found.complete) == ("the cap", 1, False)


def test_a_walk_that_ends_says_that_it_made_every_transition_and_one_cut_short_says_less() -> None:
    every, part = (walked(Box, TWO, operations).reach() for operations in (20_000, 60))
    assert every.transitions == every.transitions_met == pairs_of(TWO)
    assert every.chains == every.chains_met
    assert part.transitions < part.transitions_met
    assert part.chains < part.chains_met < every.chains_met


def test_of_two_searches_of_a_scope_the_further_one_counts() -> None:
    short, long = (walked(Box, TWO, operations).reach() for operations in (60, 200))
    assert short.with_(long) == long.with_(short) == long
    assert long.with_(Reach(whole=True, depth=3)).whole
