"""Bounded checking: no violation within a number of initial steps, by unrolling in Z3.

Owns the unrolling: one copy of the cells for each moment, and for each step the number of the
action's instance that is taken. Unlike in an exploration, integers are unbounded here, and so are
the values of rigid symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import z3

from brokerproof.models.language.core.grounding import Grounder, instances
from brokerproof.models.language.core.model import ModelError, System
from brokerproof.models.language.core.scope import (
    Cell,
    Scope,
    arguments_in_words,
    cells,
    state_in_words,
)
from brokerproof.models.language.core.terms import (
    Bool,
    Enumeration,
    Family,
    Int,
    Sort,
    Term,
    constant,
)
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.explore.explorer import Violation
from brokerproof.models.language.prove.interruption import checked
from brokerproof.models.language.prove.witness import INTEGERS, GroundReading
from brokerproof.models.language.prove.z3_queries import STEPS_MAX
from brokerproof.models.language.read.plain import PlainReading, State


@dataclass(frozen=True)
class Bounded:
    """The number of steps tried without a violation, and the violation that ended the search.

    `scope` has the number of elements of each family, and the integers used as arguments, if any.
    `unknown` is Z3's reason if it gave up.
    """

    scope: str
    steps: int
    violation: Violation | None = None
    unknown: str = ""


ARGUMENTS = range(3)
"""The integers used as arguments of actions: each becomes an instance of its own."""


def check_bounded(
    system: System, sizes: dict[Sort, int], steps: int, arguments: range = ARGUMENTS
) -> Bounded:
    """Search for a violation after 0, 1, ... steps, the fewest first.

    Raises `ModelError` if there is no invariant or no initial state.
    """
    if not system.invariants:
        raise ModelError(f"{system.name} has no @invariant: there is nothing to search for")
    scope = Scope(sizes, INTEGERS)
    scope.check(system)
    text = ", ".join(f"{family.__name__} {size}" for family, size in sizes.items())
    if any(isinstance(p, Int) for action in system.actions for p in action.parameters):
        text += f", integers as arguments {arguments[0]} to {arguments[-1]}"
    unrolling = _Unrolling(system, scope, arguments)
    if not unrolling.begins():
        raise ModelError(f"{system.name} has no initial state with {text}: nothing was searched")
    for moment in range(steps + 1):
        answer, reason = unrolling.violated_at(moment)
        if answer == z3.sat:
            return Bounded(text, moment, unrolling.violation(moment))
        if answer == z3.unknown:
            return Bounded(text, moment, unknown=reason)
        unrolling.step(moment)
    return Bounded(text, steps)


_BEFORE = -1
"""The moment before the first; initial functions read its values, which are free."""


class _Unrolling:
    def __init__(self, system: System, scope: Scope, arguments: range) -> None:
        self.system, self.scope = system, scope
        self.cells = cells(scope, system.symbols)
        self.instances = instances(system, Scope(scope.sizes, arguments), unbounded=True)
        self._grounder = Grounder(scope, unbounded=True)
        self._reading = GroundReading(system.symbols)
        self._context = self._reading.context
        self._solver = z3.Solver(ctx=self._context)
        self._solver.set("rlimit", STEPS_MAX)
        self._plain = PlainReading(system, scope)
        self._base = {cell: self._formula(self._grounder.cell(*cell)) for cell in self.cells}
        self._invariants = [self._formula(self._grounder.ground(s.term)) for s in system.invariants]
        self._begin()

    def _formula(self, term: Term) -> z3.ExprRef:
        return self._reading.formula(term)

    def _at(self, cell: Cell, moment: int) -> z3.ExprRef:
        when = 0 if cell.symbol.rigid else moment
        name = f"{cell.symbol.name}{list(cell.indices)}@{when}"
        return z3.Const(name, self._reading.sort(cell.symbol.range))

    def _moved(self, formula: z3.ExprRef, moment: int) -> z3.ExprRef:
        pairs = [(base, self._at(cell, moment)) for cell, base in self._base.items()]
        return z3.substitute(formula, *pairs)

    def _begin(self) -> None:
        """Let the first moment be an initial state; symbols that start with any value are free."""
        for statement in self.system.axioms:
            self._solver.add(self._moved(self._formula(self._grounder.ground(statement.term)), 0))
        for cell in self.cells:
            self._bound(cell, _BEFORE)
            self._bound(cell, 0)
            function = self.system.initial.get(cell.symbol)
            if function is not None:
                places = (
                    constant(sort, index)
                    for sort, index in zip(cell.symbol.domain, cell.indices, strict=True)
                )
                value = self._formula(self._grounder.ground(function.at(*places)))
                self._solver.add(self._at(cell, 0) == self._moved(value, _BEFORE))

    def begins(self) -> bool:
        """Whether there is an initial state."""
        answer, _ = checked(self._solver, STEPS_MAX)
        return bool(answer != z3.unsat)

    def _bound(self, cell: Cell, moment: int) -> None:
        if issubclass(cell.symbol.range, Family):
            value = self._at(cell, moment)
            self._solver.add(value >= 0, value < len(self.scope.values(cell.symbol.range)))

    def step(self, moment: int) -> None:
        """Add the step from this moment to the next."""
        taken = z3.Int(f"taken@{moment}", self._context)
        self._solver.add(taken >= 0, taken < len(self.instances))
        for number, instance in enumerate(self.instances):
            guard = self._moved(self._formula(instance.guard), moment)
            self._solver.add(z3.Implies(taken == number, guard))
        for cell, base in self._base.items():
            if cell.symbol.rigid:
                continue
            value: z3.ExprRef = base
            key = self._grounder.cell(*cell)
            for number, instance in enumerate(self.instances):
                if key in instance.changes:
                    new = self._formula(instance.changes[key])
                    value = z3.If(taken == number, new, value)
            self._solver.add(self._at(cell, moment + 1) == self._moved(value, moment))

    def violated_at(self, moment: int) -> tuple[z3.CheckSatResult, str]:
        """Return whether an invariant can fail at this moment."""
        broken = z3.Not(z3.And(*self._invariants, z3.BoolVal(True, self._context)))
        self._solver.push()
        self._solver.add(self._moved(broken, moment))
        answer, reason = checked(self._solver, STEPS_MAX)
        self._model = self._solver.model() if answer == z3.sat else None
        self._solver.pop()
        return answer, reason

    def violation(self, moment: int) -> Violation:
        """Return the run that Z3 has found, each step confirmed by the plain reading."""
        state = tuple(self._value(self._at(cell, 0), cell.symbol.range) for cell in self.cells)
        steps = [Step("", {}, state_in_words(self.cells, state))]
        for step, state_after in self._steps(state, moment):
            steps.append(step)
            state = state_after
        return Violation(self._plain.violated(state)[0], tuple(steps))

    def _steps(self, state: State, moments: int) -> Iterator[tuple[Step, State]]:
        for moment in range(moments):
            number = self._value(z3.Int(f"taken@{moment}", self._context), Int)
            action, arguments = self.instances[number].action, self.instances[number].arguments
            enabled = self._plain.enabled(action.name, state, arguments)
            assert enabled, "Z3 and the plain reading disagree"
            state = self._plain.step(action.name, state, arguments)
            words = arguments_in_words(self.scope, action, arguments)
            yield Step(action.name, words, state_in_words(self.cells, state)), state

    def _value(self, expression: z3.ExprRef, sort: Sort) -> int:
        assert self._model is not None
        value = self._model.eval(expression, model_completion=True)
        if issubclass(sort, Bool):
            return int(z3.is_true(value))
        if issubclass(sort, Enumeration):
            return sort.values.index(value.decl().name().rpartition(".")[2])
        return cast("int", value.as_long())
