"""The search for steps of a model that lead from one state to another.

A pattern is an action with arguments, in which `ANY` stands for every value. A literal of the guard
on one parameter (``place[m] == Q1``) narrows `ANY` before the guard is evaluated. States closer to
the goal are expanded first. The order decides only how soon a path is found: without a path, every
reachable state is visited.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import ne
from typing import Final, NamedTuple, cast

from brokerproof.models.language.core.scope import Cell
from brokerproof.models.language.core.terms import Enumeration, Symbol, Term
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
    for action, arguments in patterns:
        ranges = []
        for value, (every, literals) in zip(arguments, _narrowed(reading, action), strict=True):
            values = every if value == ANY else (value,)
            for base, wanted in literals:
                values = [each for each in values if state[base + each] == wanted]
            ranges.append(values)
        for each in itertools.product(*ranges):
            if reading.enabled(action, state, each):
                yield Taken(action, each)


@functools.cache
def _narrowed(
    reading: PlainReading, action: str
) -> tuple[tuple[Sequence[int], tuple[tuple[int, int], ...]], ...]:
    """Return for each parameter its values, and the literals of the guard: a base and a value."""
    traced = reading.system.action(action)
    guard = traced.guard
    conjuncts = guard.args if guard.op == "and" else (guard,)
    found: dict[Term | Symbol, list[tuple[int, int]]] = {}
    for term in conjuncts:
        literal = _literal(term)
        if literal is not None and literal[0].args and literal[0].args[0].op == "variable":
            value, wanted = literal
            symbol = cast("Symbol", value.payload)
            if len(value.args) == 1:
                base = reading.position(Cell(symbol, (0,)))
                found.setdefault(value.args[0], []).append((base, wanted))
    return tuple(
        (reading.scope.values(type(each)), tuple(found.get(each, ())))
        for each in traced.parameters
        if isinstance(each, Term)
    )


def _literal(term: Term) -> tuple[Term, int] | None:
    """Return a read and its required value if the term is such a condition."""
    match term.op:
        case "read":
            return term, 1
        case "not" if term.args[0].op == "read":
            return term.args[0], 0
        case "equal" if term.args[0].op == "constant" and term.args[1].op == "read":
            if isinstance(term.args[0], Enumeration):
                return term.args[1], cast("int", term.args[0].payload)
    return None


def _back(before: dict[State, tuple[State, Taken] | None], state: State) -> tuple[Taken, ...]:
    steps: list[Taken] = []
    while (reached := before[state]) is not None:
        state, taken = reached
        steps.append(taken)
    return tuple(reversed(steps))
