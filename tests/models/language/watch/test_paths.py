"""Paths between two states of a model: found where there is one, and only there."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Family, Int, Map, Model, action, initial, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.paths import ANY, Goal, Taken, TooFar, enabled, find_path


class Jar(Family):
    """A jar of marbles."""


class Marbles(Model):
    """Marbles are put into jars, and moved on only from a jar that has two."""

    holds: Map[Jar, Int]

    @initial
    def empty(self) -> None:
        """No jar holds any."""
        self.holds.fill(0)

    @action
    def put(self, into: Jar) -> None:
        """One more."""
        require(self.holds[into] < 3)
        self.holds[into] = self.holds[into] + 1

    @action
    def move(self, out_of: Jar, into: Jar) -> None:
        """Two make one elsewhere."""
        require(self.holds[out_of] == 2)
        require(self.holds[into] < 3)
        require(~(out_of == into))
        self.holds[out_of] = 0
        self.holds[into] = self.holds[into] + 1


READING = PlainReading(trace(Marbles), Scope({Jar: 2}, range(5)))
PUT = (Taken("put", (0,)), Taken("put", (1,)))
MOVE = (Taken("move", (0, 1)), Taken("move", (1, 0)))


def goal(*values: int) -> Goal:
    """Return the goal of a whole state."""
    return Goal(dict(enumerate(values)))


def test_a_path_leads_where_it_says() -> None:
    found = find_path(READING, (0, 0), goal(0, 2), (*PUT, *MOVE), 100)
    assert found is not None
    state: State = (0, 0)
    for taken in found:
        assert READING.enabled(taken.action, state, taken.arguments)
        state = READING.step(taken.action, state, taken.arguments)
    assert state == (0, 2)


def test_no_step_is_needed_where_nothing_has_happened() -> None:
    assert find_path(READING, (1, 1), goal(1, 1), PUT, 100) == ()


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        ((4, 0), (*PUT, *MOVE)),  # a guard forbids it
        ((0, 1), PUT[:1]),  # the step that would do it may not be taken
        ((0, 1), MOVE),  # its guard never holds
    ],
)
def test_where_no_steps_lead_there_is_no_path(end: State, steps: tuple[Taken, ...]) -> None:
    assert find_path(READING, (0, 0), goal(*end), steps, 100) is None
    assert find_path(READING, (0, 0), goal(0, 1), (*PUT, *MOVE), 100) is not None


def test_what_cannot_be_seen_does_not_matter() -> None:
    found = find_path(READING, (0, 0), Goal({1: 1}), (*PUT, *MOVE), 100)
    assert found == (Taken("put", (1,)),)


def test_a_search_that_grows_too_large_is_given_up() -> None:
    with pytest.raises(TooFar):
        find_path(READING, (0, 0), goal(4, 4), (*PUT, *MOVE), 3)


def test_a_pattern_stands_for_every_step_whose_guard_holds() -> None:
    patterns = (Taken("put", (ANY,)), Taken("move", (ANY, 1)))
    for state in ((0, 0), (2, 3), (2, 1), (3, 2)):
        enabled_ones = [
            each for each in (*PUT, MOVE[0]) if READING.enabled(each.action, state, each.arguments)
        ]
        assert [*enabled(READING, state, patterns)] == enabled_ones
