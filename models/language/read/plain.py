"""The plain reading: a model in a scope as Python functions on flat tuples of numbers.

Owns the naive reference for the fast readings. It is printed from the terms as they were traced,
with quantifiers as loops, and shares no grounding and no simplification with them. A state is a
tuple with one number for each cell, in the order of `cells`; a set parameter is a bit mask.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, cast

from brokerproof.models.language.core.model import Action, System
from brokerproof.models.language.core.overflow import out_of_range
from brokerproof.models.language.core.rewriting import Function, symbols_read
from brokerproof.models.language.core.scope import (
    Cell,
    Scope,
    cells,
    free_at_start,
    parameter_name,
    valuations,
)
from brokerproof.models.language.core.terms import (
    Int,
    Sort,
    Symbol,
    Term,
    conjuncts,
    free_variables,
    show,
    situation,
)
from brokerproof.models.language.read.python_text import PythonText

State: TypeAlias = tuple[int, ...]
Kind: TypeAlias = Literal[
    "axiom", "initial", "invariant", "situation", "guard", "guards", "instances", "step"
]


class PlainReading:
    """A system in a scope, as functions; raises `ModelError` if they do not fit."""

    def __init__(self, system: System, scope: Scope) -> None:
        scope.check(system)
        self.system = system
        self.scope = scope
        self.size = 0
        self.first: dict[Symbol, int] = {}
        """The position of the first cell of each symbol."""
        for symbol in system.symbols:
            if not symbol.is_order:
                self.first[symbol] = self.size
                self.size += scope.count(symbol)
        self._text = PythonText(self._read, lambda sort: self._range(scope.values(sort)))
        self._compiled: dict[tuple[Kind, str], Callable[..., object]] = {}

    @functools.cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of a state, `size` in number, in order."""
        return cells(self.scope, self.system.symbols)

    def enabled(self, action: str, state: State, arguments: Sequence[int]) -> bool:
        """Return whether the action's guard holds."""
        return bool(self._function("guard", action)(state, *arguments))

    def instances(
        self, action: str, state: State, among: Sequence[Sequence[int]]
    ) -> list[tuple[int, ...]]:
        """Return the arguments, each one `among` some values, with which the guard holds."""
        function = self._function("instances", action)
        return cast("list[tuple[int, ...]]", function(state, *among))

    def failing(self, action: str, state: State, arguments: Sequence[int]) -> list[str]:
        """Return the labels of the guards that do not hold, or their texts if they have none."""
        verdicts = cast("tuple[object, ...]", self._function("guards", action)(state, *arguments))
        guards = zip(self.system.action(action).guards, verdicts, strict=True)
        return [guard.label or show(guard.term) for guard, holds in guards if not holds]

    def step(self, action: str, state: State, arguments: Sequence[int]) -> State:
        """Return the state after the action, whether or not its guard holds.

        Raises `ModelError` for an integer outside of the scope.
        """
        return cast("State", self._function("step", action)(state, *arguments))

    def arguments(self, action: str) -> Iterable[tuple[int, ...]]:
        """Return all arguments that the action can be given."""
        return valuations(self.scope, self.system.action(action))

    def holds(self, invariant: str, state: State) -> bool:
        """Return whether the invariant of that name holds."""
        return bool(self._function("invariant", invariant)(state))

    def exercised(self, invariant: str, state: State) -> bool:
        """Return whether the situation of the invariant of that name occurs in a state."""
        return bool(self._function("situation", invariant)(state))

    def violated(self, state: State) -> list[str]:
        """Return the names of the invariants that do not hold."""
        return [s.name for s in self.system.invariants if not self.holds(s.name, state)]

    def initial_states(self, at_most: int | None = None) -> Iterator[State]:
        """Yield each initial state once, from the valuations that satisfy the axioms.

        If there may be more of them than `at_most`, so many are drawn, the same each time.
        """
        free = self._free()
        found = self._satisfying(free)
        if at_most is not None and math.prod(len(values) for _, values in free) > at_most:
            drawn = random.Random(0)  # noqa: S311  a choice of examples
            tries = (self._satisfying(free, drawn) for _ in range(at_most))
            found = itertools.chain.from_iterable(itertools.islice(each, 1) for each in tries)
        seen = set()
        for state in map(self.initial_state, found):
            if state not in seen:
                seen.add(state)
                yield state

    def _free(self) -> list[tuple[Symbol, list[State]]]:
        """Return the symbols with free initial values, each with all values of its cells."""
        # Symbols of one axiom come one after another: the last one fails soon if it must.
        tied = [each for axiom in self.system.axioms for each in symbols_read(axiom.term)]
        found = []
        for symbol in dict.fromkeys([*tied, *free_at_start(self.system)]):
            if symbol in self.first:
                choices = [self.scope.choices(cell) for cell in self.cells if cell.symbol is symbol]
                found.append((symbol, list(itertools.product(*choices))))
        return found

    def _satisfying(
        self, free: list[tuple[Symbol, list[State]]], drawn: random.Random | None = None
    ) -> Iterator[State]:
        """Yield the valuations of free symbols; an axiom is asked once its symbols have values."""
        place = {symbol: depth for depth, (symbol, _) in enumerate(free, 1)}
        asked: list[list[str]] = [[] for _ in range(len(free) + 1)]
        for axiom in self.system.axioms:
            asked[max((place.get(each, 0) for each in symbols_read(axiom.term)), default=0)].append(
                axiom.name
            )

        def completed(valuation: State, depth: int) -> Iterator[State]:
            if not all(self._function("axiom", name)(valuation) for name in asked[depth]):
                return
            if depth == len(free):
                yield valuation
                return
            symbol, every = free[depth]
            start = self.first[symbol]
            for values in drawn.sample(every, len(every)) if drawn else every:
                given = (*valuation[:start], *values, *valuation[start + len(values) :])
                yield from completed(given, depth + 1)

        return completed((0,) * self.size, 0)

    def initial_state(self, valuation: State) -> State:
        """Return the initial state with the rigid symbols of the given state."""
        return cast("State", self._function("initial")(valuation))

    def position(self, cell: Cell) -> int:
        """Return the position of a cell's value in a state."""
        offset = 0
        for sort, index in zip(cell.symbol.domain, cell.indices, strict=True):
            offset = offset * len(self.scope.values(sort)) + index
        return self.first[cell.symbol] + offset

    def _function(self, kind: Kind, of: str = "") -> Callable[..., object]:
        """Return a function of a state; each is compiled at its first use, since few are used."""
        if (kind, of) not in self._compiled:
            name = f"<{kind} {of} of {self.system.name} in a scope>"
            code = compile(self.source(kind, of), name, "eval")
            # This class prints the source from terms: no text from outside reaches it.
            self._compiled[kind, of] = eval(code, {"within": _within})  # noqa: S307
        return self._compiled[kind, of]

    def source(self, kind: Kind, of: str = "") -> str:
        """Return the text of a function, as of the `guard` of an action."""
        names, text = self._printed(kind, of)
        return f"lambda {', '.join(['state', *names])}: {text}"

    def _printed(self, kind: Kind, of: str) -> tuple[list[str], str]:
        """Return the parameters behind the state, and the result."""
        match kind:
            case "initial":
                return [], self._state_after(self.system.initial, {})
            case "axiom" | "invariant" | "situation":
                stated = self.system.axioms if kind == "axiom" else self.system.invariants
                (term,) = [each.term for each in stated if each.name == of]
                return [], self._text.expression(situation(term) if kind == "situation" else term)
        action = self.system.action(of)
        # Names end in an underscore here, so that they are no keywords and no bound variables.
        names = [f"{parameter_name(parameter)}_" for parameter in action.parameters]
        variables = {
            parameter: name
            for parameter, name in zip(action.parameters, names, strict=True)
            if isinstance(parameter, Term)
        }
        if kind == "step":
            return names, self._state_after(action.updates, variables)
        if kind == "instances":
            return [f"{name}among" for name in names], self._instances(action, names, variables)
        texts = [self._text.expression(guard.term, variables) for guard in action.guards]
        return names, " and ".join(texts) or "True" if kind == "guard" else _tuple(texts)

    def _instances(self, action: Action, names: list[str], variables: dict[Term, str]) -> str:
        """Return the text of a list; a condition stands where its last argument is known."""
        if not names:
            return f"[()] if {self._text.expression(action.guard)} else []"
        loops = [f" for {name} in {name}among" for name in names]
        for condition in conjuncts(action.guard):
            needed = [names.index(variables[each]) for each in free_variables(condition)]
            # A set is no variable, so a condition may need it.
            last = max(needed, default=0) if len(variables) == len(names) else -1
            loops[last] += f" if {self._text.expression(condition, variables)}"
        return f"[{_tuple(names)}{''.join(loops)}]"

    def _state_after(self, updates: dict[Symbol, Function], variables: dict[Term, str]) -> str:
        """Return the text of the tuple with the updates and the rest of the old state."""
        parts = []
        for symbol, base in self.first.items():
            end = base + self.scope.count(symbol)
            if symbol in updates:
                parts.append(self._values(symbol, updates[symbol], variables))
            else:
                parts.append(f"*state[{base}:{end}]")
        return _tuple(parts)

    def _values(self, symbol: Symbol, function: Function, variables: dict[Term, str]) -> str:
        names = [f"index{position}" for position in range(len(symbol.domain))]
        inner = variables | dict(zip(function.parameters, names, strict=True))
        value = self._text.number(function.body, inner)
        if issubclass(symbol.range, Int):
            low, high = self.scope.integers[0], self.scope.integers[-1]
            value = f"within({value}, {low}, {high}, {symbol.name!r})"
        loops = " ".join(
            f"for {name} in {self._range(self.scope.values(sort))}"
            for name, sort in zip(names, symbol.domain, strict=True)
        )
        return f"*({value} {loops})" if loops else value

    def _read(self, symbol: Symbol, indices: list[str]) -> str:
        if symbol.is_order:
            return f"({indices[0]} < {indices[1]})"
        offset = self._offset(symbol.domain, indices)
        if symbol not in self.first:
            return f"({symbol.name}_ >> ({offset}) & 1)"
        return f"state[{self.first[symbol]} + {offset}]"

    def _offset(self, domain: tuple[Sort, ...], indices: list[str]) -> str:
        if not indices:
            return "0"
        text = indices[0]
        for sort, index in zip(domain[1:], indices[1:], strict=True):
            text = f"({text}) * {len(self.scope.values(sort))} + {index}"
        return text

    @staticmethod
    def _range(values: range) -> str:
        return f"range({values.start}, {values.stop})"


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"


def _within(value: int, low: int, high: int, name: str) -> int:
    """Return the value, or raise `OutOfRange` if it is outside of the scope."""
    if not low <= value <= high:
        raise out_of_range(name, value, low, high)
    return value
