"""Every sequence of moves, shorter ones first: findings, certificates, and the end.

Candidates are tiny queues with gets only (`broken_candidates`). Most assertions compare with a
naive enumeration written here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from brokerproof.checks.gate.gate import Budget, Report, run_gate
from brokerproof.checks.search import root_cause, sequences
from brokerproof.checks.search.counterexamples import text_of_counterexample
from brokerproof.checks.search.findings import step
from brokerproof.checks.search.root_cause import SURE_TRIES, TRIES, TRYING_S
from brokerproof.checks.search.scopes.scope import Scope
from brokerproof.checks.search.searches import HANGS, Search
from brokerproof.checks.search.sequences import Nondeterministic, search_sequences
from brokerproof.checks.subjects import Subject
from brokerproof.checks.trace.bindings import Bindings
from brokerproof.checks.trace.moves import Move
from brokerproof.checks.verdicts import Outcome, Verdict
from brokerproof.spec.messages import Fifo
from brokerproof.spec.protocol.answers import Answer
from brokerproof.spec.protocol.operations import Drain, Get, Operation, Reset
from brokerproof.spec.requirements import catalogue
from tests.checks.broken_candidates import Box, Shrug, Stack, Thrower, fresh

ENOUGH = 20_000


@dataclass(frozen=True)
class Ending(Scope):
    """A scope in which every sequence ends: there are so many gets, and nothing comes to rest."""

    def moves(self, bindings: Bindings) -> Iterator[Move]:
        """Yield the possible moves."""
        for move in super().moves(bindings):
            is_over = isinstance(move, Get) and bool(bindings.getters)
            if not isinstance(move, Drain) and not is_over:
                yield move


TWO = Scope("two messages", (Fifo(),), messages=2, gets=("acknowledge",))
ENDS = Ending("two messages that end", (Fifo(),), messages=2, gets=("automatic",))


def searched(
    start: Callable[[], Box], scope: Scope, operations: int = ENOUGH, stop: str = ""
) -> Search:
    """Return the findings of a search of a scope by sequences."""
    found = Search(scope, "sequences")
    search_sequences(found, lambda: fresh(start), operations, lambda: stop)
    return found


def every_sequence(scope: Scope) -> list[tuple[Move, ...]]:
    """Return every sequence of moves of an honest queue, by playing each from the start."""
    found: list[tuple[Move, ...]] = []
    ahead: list[tuple[Move, ...]] = [()]
    while ahead:
        moves = ahead.pop()
        candidate, oracle = fresh(Box)
        for move in moves:
            told, breaches = step(candidate, oracle, move)
            assert told is not None
            assert breaches == []
        longer = [(*moves, move) for move in scope.moves(oracle.bindings)]
        found += longer
        ahead += longer
    return found


# Findings.


def test_a_scope_that_ends_is_searched_whole() -> None:
    found = searched(Box, ENDS)
    every = every_sequence(ENDS)
    assert found.complete
    assert found.stopped_by == ""
    assert found.broken == {}
    assert found.pairs == len(every)
    assert found.depth == max(map(len, every)) + 1
    # Each sequence is played from a reset.
    assert found.operations == sum(map(len, every))


def test_what_is_found_first_is_shortest() -> None:
    found = searched(Stack, TWO, 3_000)
    lengths = [len(run.steps) for run in found.broken["fifo-order"]]
    assert lengths == sorted(lengths)
    assert lengths[0] == 4
    assert not any(breaks(Stack, moves) for moves in shorter_than(4))


def shorter_than(length: int) -> Iterator[tuple[Move, ...]]:
    """Yield the shorter sequences of an honest queue."""
    ahead: list[tuple[Move, ...]] = [()]
    for moves in ahead:
        yield moves
        candidate, oracle = fresh(Box)
        for move in moves:
            step(candidate, oracle, move)
        if len(moves) < length - 1:
            ahead += [(*moves, move) for move in TWO.moves(oracle.bindings)]


def breaks(start: Callable[[], Box], moves: tuple[Move, ...]) -> bool:
    candidate, oracle = fresh(start)
    return any(step(candidate, oracle, move)[1] for move in moves)


def test_the_same_operations_are_counted_on_every_run() -> None:
    one, other = searched(Box, TWO, 1_000), searched(Box, TWO, 1_000)
    assert (one.operations, one.exercised, one.outcomes) == (
        other.operations,
        other.exercised,
        other.outcomes,
    )
    assert one.exercised["fifo-order"] > 0


def test_what_has_no_certain_outcome_is_not_followed_and_the_scope_is_not_called_searched() -> None:
    found = searched(Shrug, ENDS)
    assert found.unfollowed > 0
    assert not found.complete
    assert found.broken == {}


# The end of a search.


def test_a_search_ends_with_its_budget_and_says_so() -> None:
    found = searched(Box, TWO, 500)
    assert found.stopped_by == "500 operations"
    assert not found.complete
    assert 500 <= found.operations < 1_000


def test_a_search_ends_when_it_is_asked_to() -> None:
    found = searched(Box, TWO, stop="the cap")
    assert (found.stopped_by, found.depth, found.complete) == ("the cap", 0, False)


def test_a_search_ends_with_the_longest_sequence_that_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sequences, "LENGTH_MAX", 2)
    found = searched(Box, ENDS)
    assert (found.depth, found.complete, found.stopped_by) == (2, False, "")


def test_a_candidate_that_raises_is_one_finding_and_does_not_end_the_search() -> None:
    found = searched(Thrower, ENDS)
    assert set(found.broken) == {"protocol"}
    assert found.stopped_by == "" != HANGS
    assert len(found.broken["protocol"][0].steps) == 3


# Candidates that answer differently to the same.


class Moody(Box):
    """An honest queue, but in every third run, counted over all runs, its first get finds nothing.

    The count is kept outside, as a queue forgets everything when it is reset.
    """

    def __init__(self, runs: Iterator[int] | None = None) -> None:
        super().__init__()
        self.runs = itertools.count() if runs is None else runs
        self.sulks = next(self.runs) % 3 == 2

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation; each reset begins a new run."""
        if isinstance(operation, Reset):
            Moody.__init__(self, self.runs)
            return Answer()
        return super().handle(operation)

    def get(self, operation: Get) -> Answer:
        """Take the next message, or not this time."""
        if self.sulks and self.queues[operation.queue]:
            self.sulks = False
            return Answer()
        return super().get(operation)


def test_a_candidate_that_answers_differently_to_the_same_is_found_out() -> None:
    runs = itertools.count()
    with pytest.raises(Nondeterministic, match="another answer to step"):
        searched(lambda: Moody(runs), TWO)


def judged(candidate: Box, operations: int = 6_000) -> Report:
    """Return the gate's report on a queue that it can neither copy nor reset."""
    subject = Subject("a queue", candidate.hello(), lambda: candidate, in_process=False)
    return run_gate(subject, catalogue(), Budget(operations=operations, examples=0), seed=0)


def verdict(report: Report, requirement: str) -> Verdict:
    return next(v for v in report.verdicts if v.requirement.id == requirement)


def test_the_gate_leaves_sequences_for_walks_once_it_has_found_that_out() -> None:
    report = judged(Moody())
    names = [stage.name for stage in report.stages]
    assert names[0] == "sequences"
    assert "stopped by another answer to step " in report.stages[0].did
    assert set(names[1:]) == {"adaptive"}


def test_what_a_moody_candidate_breaks_is_told_with_how_often_it_came_again() -> None:
    found = verdict(judged(Moody()), "get-finds").counterexample
    assert found is not None
    assert found.certificate.grade == "not certified"
    assert found.again is not None
    times, tries = found.again
    assert 0 < times < tries
    assert text_of_counterexample(found).endswith(f"seen again in {times} of {tries} tries")


@pytest.mark.parametrize(("limit_s", "made"), [(0.0, SURE_TRIES), (TRYING_S, TRIES)])
def test_a_candidate_that_is_slow_to_answer_is_tried_less_often(
    limit_s: float, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root_cause, "TRYING_S", limit_s)
    found = verdict(judged(Moody()), "get-finds").counterexample
    assert found is not None
    assert found.again is not None
    assert found.again[1] == made


def test_what_a_steady_candidate_breaks_is_certified_by_sequences() -> None:
    report = judged(Stack())
    # A walk follows each scope whose sequences did not end within the budget.
    assert {stage.name for stage in report.stages} == {"sequences", "adaptive"}
    found = verdict(report, "fifo-order").counterexample
    assert found is not None
    assert (found.certificate.grade, found.certificate.operations) == ("sequences", 4)
    assert found.again is None
    assert "further tries" not in text_of_counterexample(found)


# Ctrl-C.


class Impatient(Stack):
    """Gives the last first; Ctrl-C comes once, at a given operation."""

    def __init__(self, presses_at: int) -> None:
        super().__init__()
        self.presses_at = presses_at
        self.handled = 0

    def handle(self, operation: Operation) -> Answer:
        """Carry out the operation."""
        self.handled += 1
        if self.handled == self.presses_at:
            raise KeyboardInterrupt
        if isinstance(operation, Reset):
            super().__init__()
            return Answer()
        return super().handle(operation)


@pytest.mark.parametrize("presses_at", [650, 800, 1_000])
def test_what_was_found_before_an_interruption_is_told(presses_at: int) -> None:
    report = judged(Impatient(presses_at))
    assert report.interrupted
    assert verdict(report, "fifo-order").outcome is Outcome.BROKEN
    others = [v for v in report.verdicts if v.outcome is Outcome.INCONCLUSIVE]
    assert {v.reason for v in others} == {"interrupted"}
    assert not [v for v in report.verdicts if v.outcome is Outcome.KEPT]
    assert report.stages[-1].operations > 0
    assert report.stages[-1].did.endswith("stopped by interrupted")


def test_an_interruption_before_anything_was_found_finds_nothing() -> None:
    report = judged(Impatient(3))
    assert report.interrupted
    assert {v.outcome for v in report.verdicts} == {Outcome.INCONCLUSIVE, Outcome.NOT_CLAIMED}


def test_without_an_interruption_the_same_is_found_and_more_is_said() -> None:
    report = judged(Impatient(0))
    assert not report.interrupted
    assert verdict(report, "fifo-order").outcome is Outcome.BROKEN
    assert verdict(report, "nothing-invented").outcome is Outcome.KEPT
