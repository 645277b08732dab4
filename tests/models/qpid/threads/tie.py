"""Holds the accesses of running code against the steps of a model, one by one.

A tie follows a case under every interleaving. After each access it keeps the states of the model
that explain the run so far: those that the accessing thread reaches from an earlier one by a few
steps of its own, and that have the values which the cells now show. All other values of the model,
such as the places of its threads, are found by that search. If no state is left, the access is no
step of the model, and the run fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Generic

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.interleavings import Explored, explore
from brokerproof.checks.threads.schedules import with_few_switches
from brokerproof.checks.threads.threads import Thread, Threads, Watcher
from brokerproof.models.language.core.model import Model, System, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.watch.path_query import Valuation, shown
from brokerproof.models.language.watch.paths import ANY, Goal, Taken, enabled, find_path
from tests.faults.overlay import Edit, plant

NONE, ONE, AT_MOST_ONE = range(1), range(1, 2), range(2)
"""How many steps of the model one access is."""

SWITCHES, RUNS = 2, 300
"""The schedules without reduction: a model's step may read more cells than the access."""


@dataclass(frozen=True)
class Naming(Generic[Shared]):
    """One way to name what the threads share by elements of the model's families.

    Attributes:
        steps: what each thread of the case may do.
        shows: the values of the cells after an access.
        ends: further values that the model must have when all threads have ended.

    """

    steps: Mapping[str, Sequence[Taken]]
    shows: Callable[[Shared], Valuation]
    ends: Callable[[Shared], Valuation] = lambda _: ()


@dataclass(frozen=True)
class Tie(Generic[Shared]):
    """A case of running code, and the model that each of its accesses must be a step of.

    Attributes:
        case: the threads and what they share; its own judge is not asked.
        system: the model.
        namings: the ways to name them; one must explain the whole run.
        counts: how many steps of the model an access may be, by thread, cell and result.
        before: the steps that lead to the values shown at first, and `rests` what they must reach.

    """

    case: Case[Shared]
    system: System
    scope: Scope
    namings: Sequence[Naming[Shared]]
    counts: Callable[[Shared, str, object, object], range] = lambda *_: ONE
    before: Sequence[Taken] = ()
    rests: Valuation = ()


@dataclass
class Tied:
    """The classes of interleavings that were run, the first complaint, and the actions taken."""

    explored: Explored
    complaints: tuple[str, ...]
    taken: set[str]


class _Follower(Generic[Shared]):
    """Follows one run after the other; equal questions share one answer."""

    def __init__(self, tie: Tie[Shared]) -> None:
        self._tie, self._reading = tie, PlainReading(tie.system, tie.scope)
        self._answers: dict[object, Mapping[State, frozenset[str]]] = {}
        self._explained: list[Mapping[State, frozenset[str]]] = []
        self._lost = ""
        self.taken: set[str] = set()

    def make(self, threads: Threads) -> Shared:
        """Begin a run, with one set of states for each naming."""
        self._shared = self._tie.case.make(threads)
        self._lost = ""
        self._explained = [self._first(n.shows(self._shared)) for n in self._tie.namings]
        if not any(self._explained):
            self._lost = f"no steps of {self._tie.system.name} lead to the case"
        return self._shared

    def watch(
        self, thread: Thread, name: str, cell: object, _: tuple[object, ...], result: object
    ) -> None:
        """Explain an access."""
        if self._lost:
            return
        counts = self._tie.counts(self._shared, thread.name, cell, result)
        self._explained = [
            self._after(frozenset(states.items()), naming, thread.name, counts)
            for states, naming in zip(self._explained, self._tie.namings, strict=True)
        ]
        if not any(self._explained):
            what = f"{type(cell).__name__}.{name} of {thread.name}"
            self._lost = f"no step of {self._tie.system.name} is {what}"

    def judge(self, shared: Shared) -> Iterator[str]:
        """Yield why the run is no run of the model."""
        if self._lost:
            yield self._lost
            return
        ended = [
            [taken for state, taken in states.items() if not goal.distance(state)]
            for states, naming in zip(self._explained, self._tie.namings, strict=True)
            for goal in [self._goal(naming.ends(shared))]
        ]
        if not any(ended):
            yield f"no run of {self._tie.system.name} ends so"
        self.taken.update(*(taken for each in ended for taken in each))

    def _first(self, values: Valuation) -> Mapping[State, frozenset[str]]:
        """Return the state in which the model shows the same as the code at first, or nothing."""
        key = ("first", values)
        if key not in self._answers:
            [initial] = self._reading.initial_states()
            goal = self._goal((*values, *self._tie.rests))
            path = find_path(self._reading, initial, goal, self._tie.before, 10_000)
            for each in path or ():
                initial = self._reading.step(each.action, initial, each.arguments)
            self._answers[key] = {} if path is None else {initial: frozenset()}
        return self._answers[key]

    def _after(
        self,
        states: frozenset[tuple[State, frozenset[str]]],
        naming: Naming[Shared],
        thread: str,
        counts: range,
    ) -> Mapping[State, frozenset[str]]:
        """Return the states that explain the run after one more access, with what was taken."""
        values, steps = naming.shows(self._shared), naming.steps[thread]
        key = states, tuple(steps), values, counts
        if key not in self._answers:
            goal = self._goal(values)
            level, reached = dict(states), dict[State, frozenset[str]]()
            for count in range(counts.stop):
                if count in counts:
                    for state, taken in level.items():
                        if not goal.distance(state):
                            reached[state] = taken | reached.get(state, frozenset())
                level = self._following(level, steps)
            self._answers[key] = reached
        return self._answers[key]

    def _following(
        self, states: Mapping[State, frozenset[str]], steps: Iterable[Taken]
    ) -> dict[State, frozenset[str]]:
        """Return the states one step on, each with what was taken on some way to it."""
        found: dict[State, frozenset[str]] = {}
        for state, taken in states.items():
            for each in enabled(self._reading, state, steps):
                following = self._reading.step(each.action, state, each.arguments)
                found[following] = taken | {each.action} | found.get(following, frozenset())
        return found

    def _goal(self, values: Valuation) -> Goal:
        return Goal(dict(shown(self._reading, values)))


@dataclass(frozen=True)
class _Watched(Case[Shared]):
    """A case whose accesses a follower explains."""

    follower: Watcher | None = None

    @contextmanager
    def scheduled(self, watcher: Watcher | None = None) -> Iterator[None]:
        """Put cells under the scheduler, with the follower as their watcher."""
        with super().scheduled(watcher or self.follower):
            yield


def tied(tie: Tie[Shared], runs_max: int = 1_000_000) -> Tied:
    """Hold a case against its model, under every interleaving and some without reduction."""
    follower = _Follower(tie)
    case = _Watched(
        tie.case.name, follower.make, tie.case.bodies, follower.judge, follower=follower.watch
    )
    found = explore(case, runs_max=runs_max)
    few = with_few_switches(case, switches_max=SWITCHES, runs_max=RUNS)
    failed = [*found.failed, *([few.failed] if few.failed else [])]
    return Tied(found, failed[0].complaints if failed else (), follower.taken)


def names_of(model: type[Model]) -> set[str]:
    """Return the names of a model's actions."""
    return {each.name for each in trace(model).actions}


def steps_by(model: type[Model], names: Iterable[str], *actor: int) -> list[Taken]:
    """Return the actions with these names that the model has, with the first arguments given."""
    return [
        Taken(each.name, (*actor, *[ANY] * (len(each.parameters) - len(actor))))
        for each in trace(model).actions
        if each.name in names
    ]


def planted(file: str, edits: Sequence[Edit]) -> ModuleType:
    """Return a file of the reference as a module, with mistakes planted."""
    package = type(plant(edits)()).__module__.partition(".")[0]
    return sys.modules[f"{package}.{file.removesuffix('.py').replace('/', '.')}"]
