"""The explorer: every state of a model in a scope, breadth first.

Owns the search, its counts and the shortest way to a violated invariant. Refuses to know what
states mean: it moves packed words between the functions of the column reading. The levels of the
search are kept and parents are not: a counterexample is found by expanding the levels before it
once more, which costs nothing until there is one.

Invariant: the result depends on the model and the scope alone. Levels are sorted, the first
violation is that of the earliest invariant in the smallest word, and its way back takes the
smallest word and the earliest instance each time. Only the seconds differ between runs, and what an
interrupted search has found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from brokerproof.models.language.columns import ColumnReading, Words
from brokerproof.models.language.model import System
from brokerproof.models.language.scope import Scope, Value, arguments_in_words, state_in_words
from brokerproof.models.language.terms import ModelError
from brokerproof.models.language.traces import Step

CHUNK = 1 << 15
"""How many words are expanded at once: few enough for their columns to stay near the processor."""


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold, and a shortest way to a state where it does not."""

    invariant: str
    trace: tuple[Step, ...]


@dataclass(frozen=True)
class Progress:
    """How far a search has come."""

    depth: int
    states: int
    transitions: int
    seconds: float


@dataclass(frozen=True)
class Exploration:
    """What a search has found; `incomplete` says why it ended early, and is empty when it did not.

    `levels` counts the new states at each depth. `firings` counts, for each action, the transitions
    that it makes, all arguments together.
    """

    system: str
    scope: str
    states: int
    transitions: int
    levels: tuple[int, ...]
    firings: dict[str, int]
    violation: Violation | None
    incomplete: str
    seconds: float = field(compare=False)

    @property
    def depth(self) -> int:
        """The length of the longest of the shortest ways to a state."""
        return len(self.levels) - 1

    @property
    def never_taken(self) -> tuple[str, ...]:
        """The actions that were not possible in any state that was expanded."""
        return tuple(action for action, count in self.firings.items() if not count)


ProgressCallback: TypeAlias = Callable[[Progress], None]


def explore(
    system: System,
    scope: Scope,
    *,
    invariants: Iterable[str] | None = None,
    limit_states: int | None = None,
    progress: ProgressCallback | None = None,
) -> Exploration:
    """Visit the states of the scope until an invariant fails, none is left, or the limit is met.

    `invariants` are names, all where none are given. The violation found is at the least depth.
    Ctrl-C ends the search with what has been found. Raises `ModelError` where the scope does not
    fit.
    """
    names = [statement.name for statement in system.invariants]
    wanted = names if invariants is None else list(invariants)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ModelError(f"{system.name} has no invariant {unknown[0]}: it has {', '.join(names)}")
    if limit_states is not None and limit_states < 1:
        raise ModelError(f"a limit of {limit_states} states leaves nothing to explore")
    search = _Search(ColumnReading(system, scope), set(wanted), limit_states, progress)
    try:
        search.run()
    except KeyboardInterrupt:
        search.incomplete = "interrupted"
    return search.result()


class _Search:
    def __init__(
        self,
        reading: ColumnReading,
        wanted: set[str],
        limit: int | None,
        progress: ProgressCallback | None,
    ) -> None:
        self.reading = reading
        self.wanted = wanted
        self.limit = limit
        self.progress = progress
        self.started = time.perf_counter()
        self.levels: list[Words] = []
        self.visited: Words = np.zeros(0, dtype=np.uint64)
        self.known = _Recent()
        self.firings = {action.name: 0 for action in reading.system.actions}
        self.violation: Violation | None = None
        self.incomplete = ""

    def run(self) -> None:
        level = self.reading.initial_words()
        while len(level):
            level = self._within_limit(level)
            self.levels.append(level)
            self.visited = _merged(self.visited, level)
            self.violation = self._first_violation(level)
            self._report()
            if self.violation or self.incomplete:
                return
            level = self._next(level)

    def result(self) -> Exploration:
        return Exploration(
            system=self.reading.system.name,
            scope=str(self.reading.scope),
            states=sum(map(len, self.levels)),
            transitions=sum(self.firings.values()),
            levels=tuple(map(len, self.levels)),
            firings=dict(self.firings),
            violation=self.violation,
            incomplete=self.incomplete,
            seconds=time.perf_counter() - self.started,
        )

    def _report(self) -> None:
        if self.progress:
            seconds = time.perf_counter() - self.started
            count = len(self.visited)
            depth = len(self.levels) - 1
            self.progress(Progress(depth, count, sum(self.firings.values()), seconds))

    def _within_limit(self, level: Words) -> Words:
        if self.limit is not None and len(self.visited) + len(level) > self.limit:
            self.incomplete = f"limit of {self.limit} states"
            return level[: self.limit - len(self.visited)]
        return level

    def _next(self, level: Words) -> Words:
        """Return the words that one transition leads to and that have not been visited."""
        found: list[Words] = []
        count = 0
        for chunk in _chunks(level):
            new = _distinct([self.known.unseen(words) for words in self._expanded(chunk)])
            found.append(_without(new, self.visited))
            count += len(found[-1])
            if self.limit is not None and count > 2 * self.limit:
                # The same word may come from several chunks; once that cannot matter, stop.
                found = [_distinct(found)]
                count = len(found[0])
                if len(self.visited) + count > self.limit:
                    break
        return _distinct(found)

    def _expanded(self, chunk: Words) -> Iterable[Words]:
        """Yield the successors of the words, instance by instance, and count them."""
        instances = self.reading.instances
        for number, mask in enumerate(self.reading.guards(chunk)):
            enabled = np.flatnonzero(mask)
            if len(enabled):
                self.firings[instances[number].action.name] += len(enabled)
                yield self.reading.successors(number, chunk[enabled])

    def _first_violation(self, level: Words) -> Violation | None:
        """Return the violation of the earliest invariant in the smallest word of the level."""
        found: dict[str, int] = {}
        for chunk in _chunks(level):
            masks = zip(self.reading.system.invariants, self.reading.invariants(chunk), strict=True)
            for statement, holds in masks:
                if statement.name in self.wanted and statement.name not in found:
                    bad = np.flatnonzero(~holds)
                    if len(bad):
                        found[statement.name] = int(chunk[bad[0]])
        for statement in self.reading.system.invariants:
            if statement.name in found:
                return Violation(statement.name, self._way_to(found[statement.name]))
        return None

    def _way_to(self, word: int) -> tuple[Step, ...]:
        """Return the steps from an initial state to a word of the last level."""
        steps: list[Step] = []
        target = np.uint64(word)
        for level in reversed(self.levels[:-1]):
            source, number = self._origin(level, target)
            instance = self.reading.instances[number]
            arguments = arguments_in_words(self.reading.scope, instance.action, instance.arguments)
            steps.append(Step(instance.action.name, arguments, self._state(target)))
            target = source
        steps.append(Step("", {}, self._state(target)))
        return tuple(reversed(steps))

    def _origin(self, level: Words, target: np.uint64) -> tuple[np.uint64, int]:
        """Return the smallest word of a level from which an instance leads to the target."""
        for chunk in _chunks(level):
            best: tuple[int, int] | None = None
            for number, mask in enumerate(self.reading.guards(chunk)):
                sources = chunk[mask]
                hits = np.flatnonzero(self.reading.successors(number, sources) == target)
                if len(hits):
                    candidate = (int(sources[hits[0]]), number)
                    best = candidate if best is None else min(best, candidate)
            if best is not None:
                return np.uint64(best[0]), best[1]
        raise AssertionError("a word of a level has no origin in the level before")

    def _state(self, word: np.uint64) -> dict[str, Value]:
        [values] = self.reading.unpack(np.array([word], dtype=np.uint64))
        return state_in_words(self.reading.cells, values)


class _Recent:
    """A table of words that came up already, one for each hash: it forgets, and never errs.

    Most successors are words that were seen a moment ago. Dropping them here spares sorting them.
    """

    BITS = 18
    FACTOR = np.uint64(0x9E3779B97F4A7C15)

    def __init__(self) -> None:
        self._table = np.zeros(1 << self.BITS, dtype=np.uint64)
        # 0 belongs into slot 0 and 1 does not, so no slot holds a word that was not put there.
        self._table[0] = 1

    def unseen(self, words: Words) -> Words:
        """Return the words that the table does not hold, and let it hold them."""
        slots = (words * self.FACTOR) >> np.uint64(64 - self.BITS)
        new = self._table[slots] != words
        words = words[new]
        self._table[slots[new]] = words
        return words


def _chunks(words: Words) -> Iterable[Words]:
    return (words[start : start + CHUNK] for start in range(0, len(words), CHUNK))


def _distinct(parts: Sequence[Words]) -> Words:
    """Return the words of all parts, sorted, each once."""
    if not parts:
        return np.zeros(0, dtype=np.uint64)
    words = np.concatenate(parts)
    words.sort()
    keep = np.ones(len(words), dtype=np.bool_)
    np.not_equal(words[1:], words[:-1], out=keep[1:])
    return words[keep]


def _without(words: Words, visited: Words) -> Words:
    """Return the words that are not among the visited ones; both are sorted."""
    places = np.searchsorted(visited, words)
    places[places == len(visited)] = 0
    unseen: Words = words[visited[places] != words]
    return unseen


def _merged(visited: Words, level: Words) -> Words:
    """Return both, sorted; they have no word in common."""
    words = np.concatenate([visited, level])
    words.sort(kind="stable")
    return words
