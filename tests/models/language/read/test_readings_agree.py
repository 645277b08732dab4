"""The readings of one text agree on every state and transition of small scopes.

The plain reading is the naive truth: it is printed from the terms as they were traced. The twins at
the end show that the comparison notices a single wrong operator.
"""

from __future__ import annotations

import itertools
import random
from typing import cast

import numpy as np
import pytest
import z3

from brokerproof.models.language import axiom
from brokerproof.models.language.core.model import Action, ModelError, System, trace
from brokerproof.models.language.core.rewriting import substitute
from brokerproof.models.language.core.scope import Scope, cells, valuations
from brokerproof.models.language.core.terms import (
    Bool,
    Family,
    Symbol,
    Term,
    constant,
    equal,
    read,
)
from brokerproof.models.language.prove.z3_queries import after
from brokerproof.models.language.read.column_text import SIGNS
from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.language.read.z3_reading import (
    Z3Reading,
    order_laws,
    reading_of,
    rigid_facts,
)
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription
from tests.models.language.outside.models import Node, Peterson, RingElection
from tests.models.small_models import Counters, Item, Place, Scales, Shelves, Unlimited

POINTERS = trace(PointerQueue)
COUNTERS = trace(Counters)
SHELVES = trace(Shelves)

SCOPES = [
    pytest.param(POINTERS, Scope({Entry: 3, Subscription: 1}, range(1)), id="pointers-3-1"),
    pytest.param(POINTERS, Scope({Entry: 2, Subscription: 2}, range(1)), id="pointers-2-2"),
    pytest.param(POINTERS, Scope({Entry: 1, Subscription: 1}, range(1)), id="pointers-1-1"),
    pytest.param(COUNTERS, Scope({Item: 2}, range(3)), id="counters-2"),
    pytest.param(COUNTERS, Scope({Item: 3}, range(-1, 2)), id="counters-3-negative"),
    pytest.param(
        COUNTERS, Scope({Item: 2}, range(300), {"limit": (2, 3)}), id="counters-of-many-bits"
    ),
    pytest.param(
        trace(Scales), Scope({Item: 3}, range(-2, 4), {"weight": (-1, 0, 2)}), id="scales-3"
    ),
    pytest.param(SHELVES, Scope({Item: 2, Place: 2}, range(1)), id="shelves-2-2"),
    pytest.param(SHELVES, Scope({Item: 1, Place: 3}, range(1), {"hub": 1}), id="shelves-1-3"),
    pytest.param(trace(Peterson), Scope({}, range(1)), id="a-value-without-an-index"),
    pytest.param(trace(RingElection), Scope({Node: 2}, range(1)), id="relations-of-three"),
]


def reachable(plain: PlainReading, limit: int = 400) -> list[State]:
    """Return reachable states, all of them or the first so many."""
    states = dict.fromkeys(plain.initial_states())
    queue = list(states)
    while queue and len(states) < limit:
        state = queue.pop(0)
        for action in plain.system.actions:
            for arguments in plain.arguments(action.name):
                if plain.enabled(action.name, state, arguments):
                    after = plain.step(action.name, state, arguments)
                    if after not in states:
                        states[after] = None
                        queue.append(after)
    return list(states)


def arbitrary(plain: PlainReading, count: int) -> list[State]:
    """Return states that need not be reachable, so that branches are met which no run takes."""
    chosen = random.Random(7)  # noqa: S311  the same states in each run, nothing secret
    choices = [plain.scope.choices(cell) for cell in plain.cells]
    return [tuple(chosen.choice(values) for values in choices) for _ in range(count)]


@pytest.mark.parametrize(("system", "scope"), SCOPES)
def test_so_many_initial_states_are_drawn_and_the_same_each_time(
    system: System, scope: Scope
) -> None:
    plain = PlainReading(system, scope)
    every = list(plain.initial_states())
    drawn = list(plain.initial_states(3))
    assert drawn == list(plain.initial_states(3))
    assert len(drawn) == len(set(drawn)) <= 3
    assert set(drawn) <= set(every)
    assert list(plain.initial_states(10**9)) == every


class Impossible(Scales):
    """Scales whose axiom no weight satisfies."""

    @axiom("nothing-weighs-what-it-weighs")
    def no_weight(self, i: Item) -> Bool:
        """Contradict itself."""
        return (self.weight[i] > 0) & (self.weight[i] < 0)


@pytest.mark.parametrize("at_most", [None, 3])
def test_where_no_valuation_satisfies_the_axioms_there_is_no_initial_state(
    at_most: int | None,
) -> None:
    plain = PlainReading(trace(Impossible), Scope({Item: 3}, range(-2, 4)))
    assert list(plain.initial_states(at_most)) == []


def differences(plain: PlainReading, columns: ColumnReading, states: list[State]) -> list[str]:
    """Return where the two readings say different things of the states and of their successors."""
    words = columns.pack(states)
    found = [] if columns.unpack(words) == states else ["words lose something"]
    if set(columns.unpack(columns.initial_words())) != set(plain.initial_states()):
        found.append("initial states")
    masks = zip(plain.system.invariants, columns.invariants(words), strict=True)
    for statement, holds in masks:
        expected = [plain.holds(statement.name, state) for state in states]
        if holds.tolist() != expected:
            found.append(statement.name)
    guards = dict(enumerate(columns.guards(words)))
    numbers = {
        (instance.action.name, instance.arguments): number
        for number, instance in enumerate(columns.instances)
    }
    for action in plain.system.actions:
        for arguments in plain.arguments(action.name):
            expected = [plain.enabled(action.name, state, arguments) for state in states]
            number = numbers.get((action.name, arguments))
            if number is None:
                found += [f"{action.name} left out"] if any(expected) else []
            elif guards[number].tolist() != expected:
                found.append(f"guard of {action.name}{arguments}")
            else:
                enabled = [state for state, holds in zip(states, expected, strict=True) if holds]
                found += step_differences(plain, columns, number, enabled)
    return found


def step_differences(
    plain: PlainReading, columns: ColumnReading, number: int, enabled: list[State]
) -> list[str]:
    """Return where an instance leads the readings to different states, or to different errors."""
    instance = columns.instances[number]
    found = []
    for state in enabled:
        try:
            expected: list[State] | str = [
                plain.step(instance.action.name, state, instance.arguments)
            ]
        except ModelError as error:
            expected = str(error)
        try:
            word = columns.pack([state])
            got: list[State] | str = columns.unpack(columns.successors(number, word))
        except ModelError as error:
            got = str(error)
        if got != expected:
            found.append(f"{instance.action.name}{instance.arguments} at {state}")
    return found


@pytest.mark.parametrize(("system", "scope"), SCOPES)
def test_columns_agree_with_plain_python(system: System, scope: Scope) -> None:
    plain, columns = PlainReading(system, scope), ColumnReading(system, scope)
    states = reachable(plain)
    assert differences(plain, columns, states) == []
    assert differences(plain, columns, arbitrary(plain, 100)) == []


@pytest.mark.parametrize(("system", "scope"), SCOPES)
def test_a_guard_among_given_arguments_holds_where_it_holds_of_each(
    system: System, scope: Scope
) -> None:
    plain = PlainReading(system, scope)
    for state in arbitrary(plain, 20):
        for action in system.actions:
            every = [*plain.arguments(action.name)]
            enabled = [each for each in every if plain.enabled(action.name, state, each)]
            among = [sorted({*values}) for values in zip(*every, strict=True)]
            assert plain.instances(action.name, state, among) == enabled
            fewer = [values[::2] for values in among]
            assert plain.instances(action.name, state, fewer) == [
                each
                for each in enabled
                if all(value in values for value, values in zip(each, fewer, strict=True))
            ]


def test_successors_of_many_words_are_those_of_each() -> None:
    scope = Scope({Entry: 3, Subscription: 1}, range(1))
    columns = ColumnReading(POINTERS, scope)
    words = columns.pack(reachable(PlainReading(POINTERS, scope)))
    for number, mask in enumerate(columns.guards(words)):
        together = columns.successors(number, words[mask])
        alone = [columns.successors(number, word)[0] for word in words[mask][:, None]]
        assert together.tolist() == alone


def test_an_integer_outside_of_the_scope_is_an_error_in_both_readings() -> None:
    system, scope = trace(Unlimited), Scope({Item: 1}, range(3))
    plain, columns = PlainReading(system, scope), ColumnReading(system, scope)
    states = list(itertools.product(*(scope.choices(cell) for cell in plain.cells)))
    assert differences(plain, columns, states) == []
    [number] = [n for n, i in enumerate(columns.instances) if i.action.name == "overflow"]
    full = [s for s in states if s[-1] == 2]
    with pytest.raises(ModelError, match="count becomes 3, outside of the scope's integers 0 to 2"):
        columns.successors(number, columns.pack(full))


@pytest.mark.parametrize(("system", "scope"), [SCOPES[0], SCOPES[3], SCOPES[6]])
def test_z3_agrees_with_plain_python(system: System, scope: Scope) -> None:
    plain = PlainReading(system, scope)
    chosen = random.Random(3)  # noqa: S311  the same sample in each run, nothing secret
    for state in chosen.sample(reachable(plain), 4):
        point = Z3Point(plain, state)
        for statement in system.invariants:
            assert point.holds(statement.term) == plain.holds(statement.name, state)
        for action in system.actions:
            every = list(valuations(scope, action))
            possible = [a for a in every if plain.enabled(action.name, state, a)]
            assert_step_agrees(plain, state, action, chosen.choice(possible or every))


def assert_step_agrees(
    plain: PlainReading, state: State, action: Action, arguments: tuple[int, ...]
) -> None:
    """Ask Z3 whether the guard holds, and if so whether the new values are right."""
    point = Z3Point(plain, state)
    given = dict(zip(action.parameters, arguments, strict=True))
    point.give_sets({p: value for p, value in given.items() if isinstance(p, Symbol)})
    variables: dict[Term, Term] = {
        p: constant(type(p), value) for p, value in given.items() if isinstance(p, Term)
    }
    enabled = plain.enabled(action.name, state, arguments)
    assert point.holds(substitute(action.guard, variables)) == enabled
    after = plain.step(action.name, state, arguments) if enabled else state
    for cell, value in zip(plain.cells, after, strict=True):
        if enabled and cell.symbol in action.updates:
            new = action.updates[cell.symbol].at(*point.constants(cell.symbol, cell.indices))
            expected = constant(cell.symbol.range, value)
            assert point.holds(equal(substitute(new, variables), expected))


class _Named(Z3Reading):
    """A reading in which the elements of families have names."""

    def _constant(self, term: Term) -> z3.ExprRef:
        if isinstance(term, Family):
            name = f"{type(term).__name__}!{term.payload}"
            return z3.Const(name, self.sort(type(term)))
        return super()._constant(term)


class Z3Point:
    """One state, asserted in Z3 cell by cell; families have their elements and no others."""

    def __init__(self, plain: PlainReading, state: State) -> None:
        self._scope = plain.scope
        self._reading = _Named(plain.system.symbols)
        self._solver = z3.Solver(ctx=self._reading.context)
        for family, size in plain.scope.sizes.items():
            elements = [self._reading.formula(constant(family, i)) for i in range(size)]
            one = z3.Const("one", self._reading.sort(family))
            self._solver.add(z3.Distinct(*elements))
            self._solver.add(z3.ForAll([one], z3.Or(*(one == each for each in elements))))
        for cell, value in zip(plain.cells, state, strict=True):
            self._set(cell.symbol, cell.indices, value)
        for symbol in plain.system.symbols:
            if symbol.is_order:
                # An irreflexive comparison cannot be written as a term: it folds.
                for law in order_laws(symbol):
                    self._tell(law)
                for left, right in plain.scope.tuples(symbol.domain):
                    if left != right:
                        self._set(symbol, (left, right), left < right)

    def constants(self, symbol: Symbol, indices: tuple[int, ...]) -> tuple[Term, ...]:
        """Return the indices as terms."""
        pairs = zip(symbol.domain, indices, strict=True)
        return tuple(constant(sort, index) for sort, index in pairs)

    def give_sets(self, sets: dict[Symbol, int]) -> None:
        """Tell Z3 which members the set parameters have."""
        for symbol, mask in sets.items():
            for position, cell in enumerate(cells(self._scope, [symbol])):
                self._set(symbol, cell.indices, mask >> position & 1)

    def holds(self, term: Bool) -> bool:
        """Return whether the term is true here; it is an error if Z3 could go either way."""
        formula = self._reading.formula(term)
        yes, no = self._asked(formula), self._asked(z3.Not(formula))
        assert (yes, no) in [(z3.sat, z3.unsat), (z3.unsat, z3.sat)]
        return bool(yes == z3.sat)

    def _asked(self, formula: z3.ExprRef) -> z3.CheckSatResult:
        # Not as an assumption of `check`: those have to be literals.
        self._solver.push()
        self._solver.add(formula)
        answer = self._solver.check()
        self._solver.pop()
        return answer

    def _set(self, symbol: Symbol, indices: tuple[int, ...], value: int) -> None:
        self._tell(
            equal(read(symbol, self.constants(symbol, indices)), constant(symbol.range, value))
        )

    def _tell(self, term: Term) -> None:
        self._solver.add(self._reading.formula(cast("Bool", term)))


TWINS = [
    ("and", "|", COUNTERS),
    ("or", "&", SHELVES),
    ("not", "", COUNTERS),
    ("equal", "!=", COUNTERS),
    ("less", "<=", COUNTERS),
    ("add", "-", COUNTERS),
]


@pytest.mark.parametrize(("operator", "wrong", "system"), TWINS)
def test_one_wrong_operator_is_noticed(operator: str, wrong: str, system: System) -> None:
    scope = Scope(dict.fromkeys(system.families, 2), range(3))
    plain = PlainReading(system, scope)
    twin = ColumnReading(system, scope, signs={**SIGNS, operator: wrong})
    assert differences(plain, twin, arbitrary(plain, 40))


def test_the_text_is_the_same_whatever_was_traced_before() -> None:
    class Again(Counters):
        """The same model, traced once more, with other variables."""

    scope = Scope({Item: 2}, range(3))
    plain, again = PlainReading(COUNTERS, scope), PlainReading(trace(Again), scope)
    for action in COUNTERS.actions:
        assert plain.source("guard", action.name) == again.source("guard", action.name)
        assert plain.source("step", action.name) == again.source("step", action.name)


def test_failing_guards_are_named_by_their_labels() -> None:
    plain = PlainReading(COUNTERS, Scope({Item: 2}, range(3)))
    state = next(plain.initial_states())
    assert plain.failing("begin", state, (0,)) == []
    assert plain.failing("increment", state, (1,)) == ["busy"]
    after = plain.step("begin", state, (0,))
    assert plain.failing("begin", after, (0,)) == ["only-idle-items-begin", plain_guard_text()]


def plain_guard_text() -> str:
    """Return the name of the guard without a label."""
    return repr(COUNTERS.action("begin").guards[1].term)


def test_words_are_unsigned_and_of_64_bits() -> None:
    columns = ColumnReading(COUNTERS, Scope({Item: 2}, range(3)))
    assert columns.initial_words().dtype == np.uint64


@pytest.mark.parametrize(
    "system", [POINTERS, COUNTERS, SHELVES, trace(RingElection)], ids=lambda system: system.name
)
def test_a_copied_reading_says_what_a_new_one_says(system: System) -> None:
    anew = Z3Reading(system.symbols)
    for each in (*rigid_facts(system), *(statement.term for statement in system.invariants)):
        anew.formula(each)
    claims = [
        *(action.guard for action in system.actions),
        *(~after(each.term, a.updates) for each in system.invariants for a in system.actions),
    ]
    copied = reading_of(system)
    assert [copied.formula(each).sexpr() for each in claims] == [
        anew.formula(each).sexpr() for each in claims
    ]


def test_what_one_query_reads_changes_no_other() -> None:
    one, other = (action.guard for action in POINTERS.actions[:2])
    before = reading_of(POINTERS).formula(one).sexpr()
    reading_of(POINTERS).formula(other)
    assert reading_of(POINTERS).formula(one).sexpr() == before
