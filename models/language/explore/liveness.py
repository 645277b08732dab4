"""Leads-to properties, checked in small scopes by fair components.

A run breaks "premise leads to conclusion" if the conclusion never holds after the premise. Such a
run ends up in one strongly connected component of the states without the conclusion, or stays in
one state for ever. It counts only if it is weakly fair: each fair action, with each of its
arguments, is taken in the component or impossible in one of its states. The counterexample is a
lasso: a way into the component, and a cycle in it that takes each fair action, or passes a state
where it is impossible.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import networkx as nx
import numpy as np

from brokerproof.models.language.core.model import LeadsTo, System
from brokerproof.models.language.core.scope import (
    Scope,
    Value,
    arguments_in_words,
    parameter_name,
    state_in_words,
    value_name,
)
from brokerproof.models.language.core.terms import ModelError, Term, constant
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.explore.column_search import ColumnSearch
from brokerproof.models.language.read.columns import ColumnReading, Mask
from brokerproof.models.language.read.word_sets import keys

STATES_MAX = 100_000
"""The most states without another limit: transitions are checked one by one."""

Way: TypeAlias = "list[tuple[int | None, int]]"
"""States by number, each with the instance that leads to it, if any."""


@dataclass(frozen=True)
class Kept:
    """Whether a property is kept; if not, the arguments and a run that breaks it.

    `asked` says whether the premise ever holds; if not, the property is kept vacuously. After
    `trace` the steps of `loop` are repeated for ever, back to the last state of `trace`; none of
    these states has the conclusion. Without such steps, the run stops there.
    """

    name: str
    arguments: dict[str, Value]
    trace: tuple[Step, ...] = ()
    loop: tuple[Step, ...] = ()
    asked: bool = True

    @property
    def kept(self) -> bool:
        """Whether no run breaks the property."""
        return not self.trace


def check(system: System, scope: Scope, *, states_max: int | None = None) -> list[Kept]:
    """Return for each property whether it is kept; raises `ModelError` for too large a scope."""
    transitions = _Transitions(ColumnReading(system, scope), states_max or STATES_MAX)
    return [transitions.judge(progress) for progress in system.leads_to]


class _Transitions:
    """All states of a scope by number, each with the instances and states that follow."""

    def __init__(self, reading: ColumnReading, states_max: int) -> None:
        search = ColumnSearch(reading, ())
        search.start(reading.initial_words())
        while sum(search.levels) <= states_max and search.advance(states_max):
            pass
        if sum(search.levels) > states_max:
            raise ModelError(
                f"what happens in the end is checked for at most {states_max:,} states: "
                "make the scope smaller"
            )
        self.reading = reading
        self.words = np.concatenate([search.level(d) for d in range(len(search.levels))])
        self.initial = range(search.levels[0])
        self.enabled: list[Mask] = list(reading.guards(self.words))
        self.after: list[list[tuple[int, int]]] = [[] for _ in self.words]
        known = keys(self.words)
        order = np.argsort(known)
        for number, mask in enumerate(self.enabled):
            successors = keys(reading.successors(number, self.words[mask]))
            targets = order[np.searchsorted(known, successors, sorter=order)]
            for source, target in zip(np.flatnonzero(mask).tolist(), targets.tolist(), strict=True):
                self.after[source].append((number, target))

    def judge(self, progress: LeadsTo) -> Kept:
        scope = self.reading.scope
        asked = False
        for values in scope.tuples([type(p) for p in progress.parameters]):
            pairs = list(zip(progress.parameters, values, strict=True))
            variables: dict[Term, Term] = {p: constant(type(p), value) for p, value in pairs}
            premise = self.reading.holds(progress.premise, variables, self.words)
            asked = asked or bool(premise.any())
            found = self._broken(progress, variables, premise)
            if found is not None:
                arguments = {parameter_name(p): value_name(type(p), value) for p, value in pairs}
                return Kept(progress.name, arguments, *found)
        return Kept(progress.name, {}, asked=asked)

    def _broken(
        self, progress: LeadsTo, variables: Mapping[Term, Term], premise: Mask
    ) -> tuple[tuple[Step, ...], tuple[Step, ...]] | None:
        waiting = ~self.reading.holds(progress.conclusion, variables, self.words)
        starts = np.flatnonzero(waiting & premise).tolist()
        came_from = self._search(starts, waiting)
        nearness = {state: number for number, state in enumerate(came_from)}
        fair = [
            component
            for component in self._components(came_from, waiting)
            if self._is_fair(component, progress.fair)
        ]
        if not fair:
            return None
        entry, component = min(
            ((min(states, key=nearness.__getitem__), states) for states in fair),
            key=lambda pair: nearness[pair[0]],
        )
        way = _way(came_from, entry)
        everywhere = np.ones(len(self.words), dtype=np.bool_)
        before = _way(self._search(self.initial, everywhere), way[0][1])
        circle = self._circle(entry, component, progress.fair)
        return self._steps([*before, *way[1:]]), self._steps(circle)

    def _search(self, starts: Iterable[int], allowed: Mask) -> dict[int, tuple[int, int] | None]:
        """Return the reachable states, each with the instance and state before it."""
        came_from: dict[int, tuple[int, int] | None] = dict.fromkeys(starts)
        level = list(came_from)
        while level:
            new = []
            for source in level:
                for number, target in self.after[source]:
                    if allowed[target] and target not in came_from:
                        came_from[target] = (number, source)
                        new.append(target)
            level = new
        return came_from

    def _components(self, states: Iterable[int], allowed: Mask) -> Iterable[set[int]]:
        """Return the strongly connected components of these states, all within `allowed`."""
        graph = nx.DiGraph()
        for state in states:
            graph.add_node(state)
            graph.add_edges_from(
                (state, target) for _, target in self.after[state] if allowed[target]
            )
        components: Iterable[set[int]] = nx.strongly_connected_components(graph)
        return components

    def _is_fair(self, component: set[int], fair: tuple[str, ...]) -> bool:
        """Whether a run can stay in the component and be fair."""
        taken = {n for state in component for n, target in self.after[state] if target in component}
        members = sorted(component)
        return all(
            number in taken or not self.enabled[number][members].all()
            for number, instance in enumerate(self.reading.instances)
            if instance.action.name in fair
        )

    def _circle(self, entry: int, component: set[int], fair: tuple[str, ...]) -> Way:
        """Return a fair cycle from a state of the component.

        It joins shortest ways to the needs of each fair action, so it is not always the shortest.
        It is empty if the component is one state without a step to itself.
        """
        inside = np.zeros(len(self.words), dtype=np.bool_)
        inside[list(component)] = True
        wanted = [n for n, i in enumerate(self.reading.instances) if i.action.name in fair]
        circle: Way = []
        here = entry
        for number in wanted:
            passed = [entry, *(state for _, state in circle)]
            if any(n == number for n, _ in circle) or not self.enabled[number][passed].all():
                continue
            came_from = self._search([here], inside)
            for state in came_from:
                taken = [(n, t) for n, t in self.after[state] if n == number and t in component]
                if taken or not self.enabled[number][state]:
                    circle += [*_way(came_from, state)[1:], *taken[:1]]
                    here = circle[-1][1]
                    break
        return circle + self._way_back(here, entry, inside, moved=bool(circle))

    def _way_back(self, here: int, entry: int, inside: Mask, *, moved: bool) -> Way:
        """Return a shortest way to the entry, of at least one step unless the cycle has moved."""
        if here == entry and moved:
            return []
        came_from = self._search([here], inside)
        for state in came_from:
            for number, target in self.after[state]:
                if target == entry:
                    return [*_way(came_from, state)[1:], (number, entry)]
        return []

    def _steps(self, way: Way) -> tuple[Step, ...]:
        states = self.reading.unpack(self.words[[state for _, state in way]]) if way else []
        steps = []
        for (number, _), values in zip(way, states, strict=True):
            name, arguments = "", {}
            if number is not None:
                instance = self.reading.instances[number]
                name = instance.action.name
                arguments = arguments_in_words(
                    self.reading.scope, instance.action, instance.arguments
                )
            steps.append(Step(name, arguments, state_in_words(self.reading.cells, values)))
        return tuple(steps)


def _way(came_from: Mapping[int, tuple[int, int] | None], state: int) -> Way:
    """Return the states on the way to `state`, each with the instance that leads to it."""
    way: Way = []
    for _ in itertools.count():
        before = came_from[state]
        way.append((None if before is None else before[0], state))
        if before is None:
            break
        state = before[1]
    return way[::-1]
