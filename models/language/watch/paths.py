"""The search for steps of a model that lead from one state to another.

A pattern is an action with arguments, in which `ANY` stands for every value. States closer to the
goal are expanded first. The order decides only how soon a path is found: without a path, every
reachable state is visited.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import ne
from typing import Final, NamedTuple

from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.read.plain import PlainReading, State

ANY: Final = -1


class Taken(NamedTuple):
    """An action with its arguments, or a pattern of such steps."""

    action: str
    arguments: tuple[int, ...] = ()


class TooFar(Exception):
    """The search reached its limit of states."""


class Goal:
    """The values that some cells must have in the end, by position in a state."""

    def __init__(self, values: Mapping[int, int]) -> None:
        self._matters = [at in values for at in range(max(values, default=-1) + 1)]
        self._wanted = [values[at] for at in sorted(values)]

    def distance(self, state: State) -> int:
        """Return how many of the cells have another value."""
        return sum(map(ne, itertools.compress(state, self._matters), self._wanted))


def find_path(
    reading: PlainReading,
    start: State,
    goal: Goal,
    steps: Sequence[Taken],
    states_max: int,
) -> tuple[Taken, ...] | None:
    """Return steps that lead from `start` to the goal; None if none do.

    Raises `TooFar` at more than `states_max` states.
    """
    order = itertools.count(0, -1)
    before: dict[State, tuple[State, Taken] | None] = {start: None}
    ahead = [(goal.distance(start), next(order), start)]
    while ahead:
        distance, _, state = heapq.heappop(ahead)
        if not distance:
            return _back(before, state)
        if len(before) > states_max:
            raise TooFar(f"more than {states_max} states")
        for taken in reversed([*enabled(reading, state, steps)]):
            following = reading.step(taken.action, state, taken.arguments)
            if following not in before:
                before[following] = state, taken
                heapq.heappush(ahead, (goal.distance(following), next(order), following))
    return None


def enabled(reading: PlainReading, state: State, patterns: Iterable[Taken]) -> Iterator[Taken]:
    """Yield each step of the patterns whose guard holds in a state."""
    for pattern in patterns:
        for each in reading.instances(pattern.action, state, _among(reading, pattern)):
            yield Taken(pattern.action, each)


@functools.cache
def _among(reading: PlainReading, pattern: Taken) -> tuple[Sequence[int], ...]:
    """Return the values of each argument that a pattern allows."""
    parameters = reading.system.action(pattern.action).parameters
    return tuple(
        reading.scope.values(type(parameter)) if value == ANY else (value,)
        for parameter, value in zip(parameters, pattern.arguments, strict=True)
        if isinstance(parameter, Term)
    )


def _back(before: dict[State, tuple[State, Taken] | None], state: State) -> tuple[Taken, ...]:
    steps: list[Taken] = []
    while (reached := before[state]) is not None:
        state, taken = reached
        steps.append(taken)
    return tuple(reversed(steps))
