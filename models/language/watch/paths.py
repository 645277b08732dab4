"""Paths: whether some steps of a model lead from one state to another.

Owns the search between two states of a model in a scope, for whoever has watched something that
claims to follow the model and was seen before and after. The steps that may be taken are given, in
any order and as often as their guards allow; what cannot be seen of a state is left to the model.
Refuses to know where states come from.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from brokerproof.models.language.read.plain import PlainReading, State

Seen: TypeAlias = tuple[int, ...]
"""What can be seen of a state; all that are compared have the same length."""


class Taken(NamedTuple):
    """A step: an action with its arguments."""

    action: str
    arguments: tuple[int, ...]


class TooFar(Exception):
    """The search was given up: the number of states that it may look at was reached."""


def path(
    reading: PlainReading,
    start: State,
    goal: Seen,
    steps: Iterable[Taken] | Callable[[State], Iterable[Taken]],
    seen_of: Callable[[State], Seen],
    states_max: int,
    *,
    deep: bool = False,
) -> tuple[Taken, ...] | None:
    """Return steps that lead from `start` to a state that looks like `goal`; None if none do.

    Where `steps` says what may be taken in a state, it has to name all that is enabled there.

    States that look more like the goal are continued first, which only decides how soon a path is
    found: without one, every state that the steps lead to is looked at. Of those that are equally
    unlike it the one that was met first is continued; going `deep`, one of those met last. Raises
    `TooFar` when there are more than `states_max`.
    """
    permitted_in = steps if callable(steps) else _always(tuple(steps))
    order = itertools.count(0, -1 if deep else 1)
    before: dict[State, tuple[State, Taken] | None] = {start: None}
    ahead = [(_unlike(seen_of(start), goal), next(order), start)]
    while ahead:
        unlike, _, state = heapq.heappop(ahead)
        if not unlike:
            return _back(before, state)
        if len(before) > states_max:
            raise TooFar(f"more than {states_max} states")
        permitted = permitted_in(state)
        for taken in reversed([*permitted]) if deep else permitted:
            if reading.enabled(taken.action, state, taken.arguments):
                following = reading.step(taken.action, state, taken.arguments)
                if following not in before:
                    before[following] = state, taken
                    unlike = _unlike(seen_of(following), goal)
                    heapq.heappush(ahead, (unlike, next(order), following))
    return None


def path_if_any(
    reading: PlainReading,
    start: State,
    goal: Seen,
    steps: Callable[[State], Iterable[Taken]],
    seen_of: Callable[[State], Seen],
    is_ruled_out: Callable[[], bool],
    *,
    states: tuple[int, int],
) -> tuple[Taken, ...] | None:
    """Return what `path` does, going deep; where few states do not tell, ask whether it can be.

    To find that there is no path takes every state. So after the first number of `states` it is
    asked whether a path `is_ruled_out`, as by an invariant that is lost, and only then are as many
    as the second looked at. Raises `TooFar` when there are more.
    """
    few, most = states
    try:
        return path(reading, start, goal, steps, seen_of, few, deep=True)
    except TooFar:
        if is_ruled_out():
            return None
        return path(reading, start, goal, steps, seen_of, most, deep=True)


def _always(steps: tuple[Taken, ...]) -> Callable[[State], Iterable[Taken]]:
    return lambda _: steps


def _unlike(seen: Seen, goal: Seen) -> int:
    return sum(map(int.__ne__, seen, goal))


def _back(before: dict[State, tuple[State, Taken] | None], state: State) -> tuple[Taken, ...]:
    steps: list[Taken] = []
    while (reached := before[state]) is not None:
        state, taken = reached
        steps.append(taken)
    return tuple(reversed(steps))
