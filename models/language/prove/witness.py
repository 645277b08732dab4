"""Queries with a few elements: conditions in a scope, and Z3's models as states and steps.

Owns the search for a concrete state that satisfies ground formulas, and its text. Elements are
numbers here and an order is that of the numbers, so Z3 decides quickly where it may fail for
families of any size. Integers stay unbounded.

Invariant: the plain reading has confirmed each step that is shown. If it disagrees with Z3, one of
our readings is wrong, and an error of ours is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import z3

from brokerproof.models.language.core.grounding import Grounder
from brokerproof.models.language.core.model import Action, Statement, System
from brokerproof.models.language.core.rewriting import substitute
from brokerproof.models.language.core.scope import (
    INTEGER_BOUND,
    Cell,
    Scope,
    arguments_in_words,
    cells,
    parameter_name,
    state_in_words,
)
from brokerproof.models.language.core.terms import (
    Bool,
    Enumeration,
    Family,
    Int,
    Sort,
    Symbol,
    Term,
    read,
)
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.interruption import checked
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.read.z3_reading import Z3Reading

INTEGERS = range(1 - INTEGER_BOUND, INTEGER_BOUND)
"""Integers are unbounded in a proof, so a witness has all that can be written."""


class GroundReading(Z3Reading):
    """Z3's reading of ground terms, in which an element is its number."""

    def sort(self, sort: Sort) -> z3.SortRef:
        """Return Z3's sort for one of ours; that of a family is the whole numbers."""
        return super().sort(Int if issubclass(sort, Family) else sort)

    def _constant(self, term: Term) -> z3.ExprRef:
        if isinstance(term, Family):
            return z3.IntVal(cast("int", term.payload), self.context)
        return super()._constant(term)


class Question:
    """A query whether formulas about a state and an action's arguments hold in a scope."""

    def __init__(self, system: System, sizes: dict[Sort, int], action: Action | None) -> None:
        self.system = system
        self.scope = Scope(sizes, INTEGERS)
        self.action = action
        self.scope.check(system)
        self._grounder = Grounder(self.scope, unbounded=True)
        self._reading = GroundReading(system.symbols)
        self._solver = z3.Solver(ctx=self._reading.context)
        # A parameter becomes a rigid symbol without indices, so that Z3 chooses its value.
        self._parameters = {
            parameter: Symbol(f"{parameter_name(parameter)}!", (), type(parameter), rigid=True)
            for parameter in (action.parameters if action else ())
            if isinstance(parameter, Term)
        }
        self._cells = cells(self.scope, system.symbols)
        for cell in (*self._cells, *(Cell(symbol, ()) for symbol in self._parameters.values())):
            self._bound(cell)

    def asked(self, formulas: Iterable[Bool], steps: int) -> tuple[z3.CheckSatResult, str]:
        """Return Z3's answer after at most `steps` of its steps, and its reason if it has none."""
        variables: dict[Term, Term] = {p: read(s, ()) for p, s in self._parameters.items()}
        self._solver.set("rlimit", steps)
        for formula in formulas:
            ground = self._grounder.ground(substitute(formula, variables))
            self._solver.add(self._reading.formula(ground))
        return checked(self._solver, steps)

    def witness(self, statement: Statement) -> tuple[Step, ...]:
        """Return the state and the step that breaks the statement, or the initial state.

        The answer to the query must have been that there is one.
        """
        broken, steps = self.broken()
        assert statement.name in broken, "Z3 and the plain reading disagree"
        return steps

    def broken(self) -> tuple[tuple[str, ...], tuple[Step, ...]]:
        """Return the invariants that the action breaks, and the steps as in `witness`."""
        plain = PlainReading(self.system, self.scope)
        state = self.state()
        if self.action is None:
            after = plain.initial_state(state)
            steps: tuple[Step, ...] = (self.step("", (), after),)
        else:
            name, arguments = self.action.name, self.arguments()
            after = plain.step(name, state, arguments)
            possible = plain.enabled(name, state, arguments) and not plain.violated(state)
            assert possible, "Z3 and the plain reading disagree"
            steps = (self.step("", (), state), self.step(name, arguments, after))
        names = plain.violated(after)
        assert names, "Z3 and the plain reading disagree"
        return tuple(names), steps

    def shown(self) -> tuple[Step, ...]:
        """Return the state that Z3 has found and its step, or the initial state alone."""
        plain = PlainReading(self.system, self.scope)
        state = self.state()
        if self.action is None:
            return (self.step("", (), plain.initial_state(state)),)
        name, arguments = self.action.name, self.arguments()
        assert plain.enabled(name, state, arguments), "Z3 and the plain reading disagree"
        following = plain.step(name, state, arguments)
        return (self.step("", (), state), self.step(name, arguments, following))

    def state(self) -> State:
        """Return the state that Z3 has found."""
        return tuple(self._value(cell) for cell in self._cells)

    def arguments(self) -> tuple[int, ...]:
        """Return the action's arguments that Z3 has found."""
        parameters = self.action.parameters if self.action else ()
        return tuple(self._argument(parameter) for parameter in parameters)

    def step(self, name: str, arguments: tuple[int, ...], state: State) -> Step:
        """Return a step of the system for readers."""
        action = self.system.action(name) if name else None
        words = arguments_in_words(self.scope, action, arguments) if action else {}
        return Step(name, words, state_in_words(self._cells, state))

    def _bound(self, cell: Cell) -> None:
        """Limit a cell of a family's sort to the family's elements."""
        if issubclass(cell.symbol.range, Family):
            value = self._expression(cell)
            self._solver.add(value >= 0, value < len(self.scope.values(cell.symbol.range)))

    def _expression(self, cell: Cell) -> z3.ExprRef:
        return self._reading.formula(self._grounder.cell(*cell))

    def _value(self, cell: Cell) -> int:
        value = self._solver.model().eval(self._expression(cell), model_completion=True)
        sort = cell.symbol.range
        if issubclass(sort, Bool):
            return int(z3.is_true(value))
        if issubclass(sort, Enumeration):
            return sort.values.index(value.decl().name().rpartition(".")[2])
        return cast("int", value.as_long())

    def _argument(self, parameter: Term | Symbol) -> int:
        """Return an argument of the action, a set as its bit mask."""
        if isinstance(parameter, Term):
            return self._value(Cell(self._parameters[parameter], ()))
        members = enumerate(cells(self.scope, [parameter]))
        return sum(self._value(cell) << position for position, cell in members)
