"""Leads-to properties, checked in small scopes by fair components.

A run breaks "premise leads to conclusion" if the conclusion never holds after the premise. Such a
run ends up in one strongly connected component of the states without the conclusion, or stays in
one state for ever. It counts only if it is weakly fair: each fair action, with each of its
arguments, is taken in the component or impossible in one of its states. Actions that are fair
together are as one: one of them is taken, or there is a state in which none is possible. Steps that
happen `finitely` often are no part of a component. The counterexample is a lasso: a way into the
component, and a cycle in it that takes each fair action, or passes a state where it is impossible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

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

if TYPE_CHECKING:
    import numpy.typing as npt

STATES_MAX = 10_000_000
"""The most states without another limit. A transition takes 12 bytes, and has some for a while."""

NOT_REACHED, FIRST = -2, -1
"""Instead of the transition by which a search came to a state."""

Numbers: TypeAlias = "npt.NDArray[np.int64]"
Way: TypeAlias = "list[tuple[int | None, int]]"
"""States by number, each with the instance that leads to it, if any."""


@dataclass(frozen=True)
class Kept:
    """Whether a property is kept; if not, the arguments and a run that breaks it.

    `asked` says whether the premise ever holds without the conclusion; if not, the property says
    nothing here. After `trace` the steps of `loop` are repeated for ever, back to the last state of
    `trace`; none of these states has the conclusion. Without such steps, the run stops there.
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
    fair = frozenset(name for progress in system.leads_to for name in progress.fair)
    transitions = _Transitions(ColumnReading(system, scope), states_max or STATES_MAX, fair)
    return [transitions.judge(progress) for progress in system.leads_to]


class _Reached(NamedTuple):
    """A breadth-first search: the states as they were met, and the transition that led to each."""

    order: Numbers
    by: Numbers


class _Transitions:
    """All states of a scope by number, and the transitions between them.

    A transition has an instance of an action, a source and a target. The transitions of a source
    lie together, from `first` on, in the order of their instances.
    """

    def __init__(self, reading: ColumnReading, states_max: int, fair: frozenset[str]) -> None:
        search = ColumnSearch(reading, ())
        self.words = search.words_up_to(states_max)
        if len(self.words) > states_max:
            raise ModelError(
                f"what happens in the end is checked for at most {states_max:,} states: "
                "make the scope smaller"
            )
        self.reading = reading
        self.initial = np.arange(search.levels[0])
        self.enabled: dict[int, Mask] = {}
        known = keys(self.words)
        order = np.argsort(known)
        sources, targets, instances = [], [], []
        for number, mask in enumerate(reading.guards(self.words)):
            if reading.instances[number].action.name in fair:
                self.enabled[number] = mask
            after = keys(reading.successors(number, self.words[mask]))
            sources.append(np.flatnonzero(mask).astype(np.int32))
            targets.append(order[np.searchsorted(known, after, sorter=order)].astype(np.int32))
            instances.append(np.full(len(after), number, dtype=np.int32))
        source = np.concatenate(sources)
        together = np.argsort(source, kind="stable")
        self.source, self.target = source[together], np.concatenate(targets)[together]
        self.instance = np.concatenate(instances)[together]
        self.first = np.searchsorted(self.source, np.arange(len(self.words) + 1))

    def judge(self, progress: LeadsTo) -> Kept:
        scope = self.reading.scope
        asked = False
        for values in scope.tuples([type(p) for p in progress.parameters]):
            pairs = list(zip(progress.parameters, values, strict=True))
            variables: dict[Term, Term] = {p: constant(type(p), value) for p, value in pairs}
            premise = self.reading.holds(progress.premise, variables, self.words)
            waiting = ~self.reading.holds(progress.conclusion, variables, self.words)
            asked = asked or bool((premise & waiting).any())
            often = self._often(progress, variables)
            found = self._broken(self._due(progress), premise, waiting, often)
            if found is not None:
                arguments = {parameter_name(p): value_name(type(p), value) for p, value in pairs}
                return Kept(progress.name, arguments, *found)
        return Kept(progress.name, {}, asked=asked)

    def _due(self, progress: LeadsTo) -> list[list[int]]:
        """Return the instances that are fair; those of a list are fair together."""
        fair = [
            number
            for number in self.enabled
            if self.reading.instances[number].action.name in progress.fair
        ]
        return [fair] if progress.together else [[number] for number in fair]

    def _enabled(self, due: list[int]) -> Mask:
        """Return the states in which one of some fair instances is possible."""
        return np.asarray(np.any([self.enabled[number] for number in due], axis=0))

    def _often(self, progress: LeadsTo, variables: dict[Term, Term]) -> Mask:
        """Return the transitions that a run may take again and again."""
        often = np.ones(len(self.source), dtype=np.bool_)
        for number, instance in enumerate(self.reading.instances):
            steps = progress.finitely.get(instance.action.name)
            if steps is not None:
                parameters = cast("tuple[Term, ...]", instance.action.parameters)
                pairs = zip(parameters, instance.arguments, strict=True)
                chosen = {p: constant(type(p), value) for p, value in pairs}
                rarely = self.reading.holds(steps, {**variables, **chosen}, self.words)
                often &= ~((self.instance == number) & rarely[self.source])
        return often

    def _broken(
        self, fair: list[list[int]], premise: Mask, waiting: Mask, often: Mask
    ) -> tuple[tuple[Step, ...], tuple[Step, ...]] | None:
        reached = self._search(np.flatnonzero(waiting & premise), waiting)
        component, is_fair = self._fair_components(waiting, fair, often)
        entries = reached.order[is_fair[component[reached.order]]]
        if not len(entries):
            return None
        entry = int(entries[0])
        way = self._way(reached, entry)
        everywhere = np.ones(len(self.words), dtype=np.bool_)
        before = self._way(self._search(self.initial, everywhere), way[0][1])
        circle = self._circle(entry, component == component[entry], fair, often)
        return self._steps([*before, *way[1:]]), self._steps(circle)

    def _search(self, starts: Numbers, allowed: Mask, often: Mask | None = None) -> _Reached:
        """Search all that is allowed, breadth first, by all transitions or those in `often`."""
        by = np.full(len(self.words), NOT_REACHED)
        by[starts] = FIRST
        levels = [level := np.asarray(starts, dtype=np.int64)]
        while len(level):
            begins = self.first[level]
            counts = self.first[level + 1] - begins
            within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            taken = np.repeat(begins, counts) + within
            target = self.target[taken]
            is_new = allowed[target] & (by[target] == NOT_REACHED)
            if often is not None:
                is_new &= often[taken]
            taken, target = taken[is_new], target[is_new]
            at = np.sort(np.unique(target, return_index=True)[1])
            level = target[at].astype(np.int64)
            by[level] = taken[at]
            levels.append(level)
        return _Reached(np.concatenate(levels), by)

    def _fair_components(
        self, waiting: Mask, fair: list[list[int]], often: Mask
    ) -> tuple[Numbers, Mask]:
        """Return each state's strongly connected component, and in which a fair run can stay.

        The graph is that of the waiting states; no run stays in any other.
        """
        inside = waiting[self.source] & waiting[self.target] & often
        source, target = self.source[inside], self.target[inside]
        size = len(self.words)
        graph = csr_array((np.ones(len(source), np.bool_), (source, target)), shape=(size, size))
        count, component = connected_components(graph, directed=True, connection="strong")
        is_fair = np.zeros(count, dtype=np.bool_)
        is_fair[component[waiting]] = True
        stays = component[source] == component[target]
        taken_in, instance = component[source[stays]], self.instance[inside][stays]
        for due in fair:
            is_due = np.ones(count, dtype=np.bool_)
            is_due[taken_in[np.isin(instance, due)]] = False
            is_due[component[waiting & ~self._enabled(due)]] = False
            is_fair &= ~is_due
        return component, is_fair

    def _circle(self, entry: int, inside: Mask, fair: list[list[int]], often: Mask) -> Way:
        """Return a fair cycle from a state of the component.

        It joins shortest ways to the needs of each fair action, so it is not always the shortest.
        It is empty if the component is one state without a step to itself.
        """
        circle: Way = []
        here = entry
        for due in fair:
            enabled = self._enabled(due)
            passed = [entry, *(state for _, state in circle)]
            if any(n in due for n, _ in circle) or not enabled[passed].all():
                continue
            reached = self._search(np.array([here]), inside, often)
            for state in reached.order.tolist():
                after = self._after(state, often)
                taken = [(n, t) for n, t in after if n in due and inside[t]]
                if taken or not enabled[state]:
                    circle += [*self._way(reached, state)[1:], *taken[:1]]
                    here = circle[-1][1]
                    break
        return circle + self._way_back(here, entry, inside, often, moved=bool(circle))

    def _way_back(self, here: int, entry: int, inside: Mask, often: Mask, *, moved: bool) -> Way:
        """Return a shortest way to the entry, of at least one step unless the cycle has moved."""
        if here == entry and moved:
            return []
        reached = self._search(np.array([here]), inside, often)
        for state in reached.order.tolist():
            for number, target in self._after(state, often):
                if target == entry:
                    return [*self._way(reached, state)[1:], (number, entry)]
        return []

    def _after(self, state: int, often: Mask) -> list[tuple[int, int]]:
        """Return the transitions of a state that may be taken often: instances and targets."""
        own = self.first[state] + np.flatnonzero(often[self.first[state] : self.first[state + 1]])
        return list(zip(self.instance[own].tolist(), self.target[own].tolist(), strict=True))

    def _way(self, reached: _Reached, state: int) -> Way:
        """Return the states on the way to `state`, each with the instance that leads to it."""
        way: Way = []
        while (taken := int(reached.by[state])) != FIRST:
            way.append((int(self.instance[taken]), state))
            state = int(self.source[taken])
        return [*reversed([*way, (None, state)])]

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
