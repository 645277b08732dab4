"""The explorer: every state of a model in a scope, breadth first.

Owns the course of a search, its counts and the shortest way to a violated invariant. States are
represented by the two searches, in NumPy and in C. A search begins in NumPy; the compiler is called
only for large ones. The search keeps levels, not parents: a counterexample is found by expanding
the earlier levels again, which costs nothing until there is one.

Invariant: the result depends on the model and the scope alone. Levels are sorted, the first
violation is that of the earliest invariant in the smallest word, and its way back takes the
smallest word and the earliest instance each time. Only times, and the extent of an interrupted
search, differ between runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from brokerproof.models.language.core.model import System
from brokerproof.models.language.core.overflow import OutOfRange
from brokerproof.models.language.core.scope import Scope, Value, arguments_in_words, state_in_words
from brokerproof.models.language.core.terms import ModelError, situation
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.explore.column_search import ColumnSearch
from brokerproof.models.language.explore.memory import bounded_memory
from brokerproof.models.language.read.columns import ColumnReading, Words
from brokerproof.models.language.read.compiled import CompiledSearch, NoCompilerError

Engine: TypeAlias = Literal["auto", "columns", "compiled"]
"""NumPy alone, C alone, or C from `COMPILE_FROM` states on if there is a compiler."""

COMPILE_FROM = 200_000
"""NumPy visits this many states in less time than a compiler takes."""

NO_DEADLOCK = "no-deadlock"
"""The name of the violation of a state without a successor, if that is checked."""


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold, and a shortest way to a state where it does not."""

    invariant: str
    trace: tuple[Step, ...]


@dataclass(frozen=True)
class Progress:
    """The progress of a search."""

    depth: int
    states: int
    transitions: int
    seconds: float


@dataclass(frozen=True)
class Exploration:
    """The result of a search; `incomplete` says why it ended early, or is empty.

    `levels` counts the new states at each depth. `firings` counts the transitions of each action,
    over all arguments. `note` says in one line why no compiler was used although one was wanted.
    `seconds` include those of the compiler.

    If `symmetric` names a family, all counts are of states up to the names of its elements, and
    `stands_for` is the number of states that they represent; otherwise it equals `states`.
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
    compile_seconds: float = field(default=0.0, compare=False)
    engine: str = field(default="columns", compare=False)
    note: str = field(default="", compare=False)
    symmetric: str | None = None
    stands_for: int = 0

    @property
    def depth(self) -> int:
        """The length of the longest of the shortest ways to a state."""
        return len(self.levels) - 1

    @property
    def never_taken(self) -> tuple[str, ...]:
        """The actions that were not possible in any expanded state."""
        return tuple(action for action, count in self.firings.items() if not count)


ProgressCallback: TypeAlias = Callable[[Progress], None]


def explore(
    system: System,
    scope: Scope,
    *,
    invariants: Iterable[str] | None = None,
    limit_states: int | None = None,
    progress: ProgressCallback | None = None,
    engine: Engine = "auto",
    deadlock: bool = False,
    symmetric: str | None = None,
) -> Exploration:
    """Visit the states of the scope until an invariant fails, none is left, or the limit is met.

    `invariants` are names; None means all. The violation found is at the least depth. With
    `deadlock`, a state without a successor violates `NO_DEADLOCK`. With `symmetric`, states that
    differ only in the names of that family's elements are one. Ctrl-C ends the search with its
    result so far. Raises `ModelError` if the scope does not fit, or the family's elements are not
    alike; `OutOfRange`, with the way to it, if an integer leaves the scope.
    """
    names = [statement.name for statement in system.invariants]
    wanted = names if invariants is None else list(invariants)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ModelError(f"{system.name} has no invariant {unknown[0]}: it has {', '.join(names)}")
    if limit_states is not None and limit_states < 1:
        raise ModelError(f"a limit of {limit_states} states leaves nothing to explore")
    reading = ColumnReading(system, scope, symmetric=symmetric)
    search = _Course(reading, set(wanted), limit_states, progress, engine)
    search.deadlock = deadlock
    try:
        with bounded_memory():
            search.run()
            return search.result()
    finally:
        search.search.close()


class _Course:
    """The course of one search."""

    def __init__(
        self,
        reading: ColumnReading,
        wanted: set[str],
        limit: int | None,
        progress: ProgressCallback | None,
        engine: Engine,
    ) -> None:
        self.reading = reading
        self.wanted = wanted
        self.limit = limit
        self.progress = progress
        self.started = time.perf_counter()
        self.search: ColumnSearch | CompiledSearch = ColumnSearch(reading, wanted)
        self.compile_from = {"auto": COMPILE_FROM, "columns": None, "compiled": 0}[engine]
        self.violation: Violation | None = None
        self.incomplete = ""
        self.note = ""
        self.compile_seconds = 0.0
        self.deadlock = False

    def run(self) -> None:
        try:
            self._run()
        except KeyboardInterrupt:
            self.incomplete = "interrupted"
        except MemoryError as error:
            self.incomplete = str(error) or "no memory for more states"

    def _run(self) -> None:
        self.search.start(self.reading.initial_words())
        while True:
            self._compile_if_large()
            self._hold_limit()
            self._find_violation()
            self._report()
            if self.violation or self.incomplete or not self._advance():
                return

    def _advance(self) -> int:
        """Find the next level; an error for an integer outside the scope gets the way to it."""
        depth = len(self.search.levels)
        try:
            return self.search.advance(self.limit)
        except OutOfRange as error:
            word, number = self._first_outside(self.search.level(depth - 1))
            instance = self.reading.instances[number]
            arguments = arguments_in_words(self.reading.scope, instance.action, instance.arguments)
            step = f"{instance.action.name}({', '.join(f'{n}={v}' for n, v in arguments.items())})"
            raise OutOfRange(str(error), self._way_to(word, depth), step) from None

    def _first_outside(self, level: Words) -> tuple[Words, int]:
        """Return a word of the level, and the instance that takes it out of the scope."""
        for number, mask in enumerate(self.reading.guards(level)):
            possible = level[mask]
            if not len(possible) or not self._leaves(number, possible):
                continue
            while len(possible) > 1:
                half = possible[: len(possible) // 2]
                possible = half if self._leaves(number, half) else possible[len(half) :]
            return possible, number
        raise AssertionError("a level is expanded without an integer that leaves the scope")

    def _leaves(self, number: int, words: Words) -> bool:
        try:
            self.reading.successors(number, words)
        except OutOfRange:
            return True
        return False

    def result(self) -> Exploration:
        return Exploration(
            system=self.reading.system.name,
            scope=str(self.reading.scope),
            states=sum(self.search.levels),
            transitions=sum(self.search.firings.values()),
            levels=self.search.levels,
            firings=dict(self.search.firings),
            violation=self.violation,
            incomplete=self.incomplete,
            seconds=time.perf_counter() - self.started,
            compile_seconds=self.compile_seconds,
            engine="columns" if isinstance(self.search, ColumnSearch) else "compiled",
            note=self.note,
            symmetric=self.reading.symmetric,
            stands_for=self.search.stands_for(),
        )

    def _compile_if_large(self) -> None:
        """Continue in C with the levels found so far, once the search is large."""
        if self.compile_from is None or sum(self.search.levels) < self.compile_from:
            return
        self.compile_from = None
        started = time.perf_counter()
        try:
            compiled = CompiledSearch(self.reading, self.wanted)
        except NoCompilerError as error:
            self.note = str(error)
            return
        finally:
            self.compile_seconds = time.perf_counter() - started
        levels = [self.search.level(depth) for depth in range(len(self.search.levels))]
        compiled.take_over(levels, self.search.firings)
        self.search = compiled

    def _report(self) -> None:
        if self.progress:
            seconds = time.perf_counter() - self.started
            levels, firings = self.search.levels, self.search.firings
            depth = len(levels) - 1
            self.progress(Progress(depth, sum(levels), sum(firings.values()), seconds))

    def _hold_limit(self) -> None:
        before = sum(self.search.levels[:-1])
        if self.limit is not None and before + self.search.levels[-1] > self.limit:
            self.incomplete = f"limit of {self.limit} states"
            self.search.truncate(self.limit - before)

    def _find_violation(self) -> None:
        """Find the violation of the earliest invariant in the smallest word of the last level."""
        found = self.search.first_broken()
        if found is not None:
            number, word = found
            way = self._way_to(word)
            self.violation = Violation(self.reading.system.invariants[number].name, way)
        elif self.deadlock:
            stuck = self.search.stuck()
            if stuck is not None:
                self.violation = Violation(NO_DEADLOCK, self._way_to(stuck))

    def _way_to(self, target: Words, levels: int | None = None) -> tuple[Step, ...]:
        """Return the steps from an initial state to a word of the last of `levels` levels.

        With symmetry, the words of the levels need not follow each other, and the target may have
        other names. So the steps are taken again from the first word, each to a state whose form is
        the next word.
        """
        forms = [target]
        for depth in reversed(range((levels or len(self.search.levels)) - 1)):
            forms.append(self.search.origin(depth, forms[-1]))
        word = forms.pop()
        steps = [Step("", {}, self._state(word))]
        for form in reversed(forms):
            number, word = self._step_to(word, form)
            instance = self.reading.instances[number]
            arguments = arguments_in_words(self.reading.scope, instance.action, instance.arguments)
            steps.append(Step(instance.action.name, arguments, self._state(word)))
        return tuple(steps)

    def _step_to(self, source: Words, form: Words) -> tuple[int, Words]:
        """Return the earliest instance that leads to a state of that form, and the state."""
        for number, mask in enumerate(self.reading.guards(source)):
            if mask[0]:
                after = self.reading.successors(number, source)
                if (self.reading.form(after) == form).all():
                    return number, after
        raise AssertionError("no instance leads from a state to its successor")

    def _state(self, word: Words) -> dict[str, Value]:
        [values] = self.reading.unpack(word)
        return state_in_words(self.reading.cells, values)


def vacuous(system: System, scope: Scope) -> tuple[list[str], int]:
    """Return the invariants that say nothing in the first levels, and how many states these have.

    `forall x: P implies Q` says something where some x has P. A scope without such a state gives no
    reason to believe Q. Raises `ModelError` for integers outside of the scope.
    """
    reading = ColumnReading(system, scope)
    words = ColumnSearch(reading, ()).words_up_to(COMPILE_FROM)
    silent = [
        statement.name
        for statement in system.invariants
        if not reading.holds(situation(statement.term), {}, words).any()
    ]
    return silent, len(words)
