"""Scopes: the size of each family, the range of integers, and the cells of a state.

Owns the finite view that the plain and the column reading share: the values of each sort, the cells
(a symbol at given indices) in their one order, and the names of values and cells for readers. The
treatment of terms in a scope is in `grounding`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, cast

from brokerproof.models.language.core.model import Action, System
from brokerproof.models.language.core.rewriting import subterms, symbols_read
from brokerproof.models.language.core.terms import (
    Bool,
    Enumeration,
    Family,
    Int,
    ModelError,
    Sort,
    Symbol,
    Term,
)

INTEGER_BOUND = 1 << 31
"""Integers of a scope and of a model's text stay below this, so that no reading overflows."""

Value: TypeAlias = bool | int | str
"""A value for readers; an enumeration's value or an element is the string of its name."""


class Cell(NamedTuple):
    """A symbol at given indices, which has one value in each state."""

    symbol: Symbol
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Scope:
    """A size for each family, the range of the integers, and the fixed symbols and parameters.

    A rigid symbol that is not fixed is tried with all its values. A fixed one has one number for
    all indices, or a tuple with one for each of its cells. A fixed parameter of an action, such as
    `publish.entry`, has one number.

    >>> class Thing(Family): pass
    >>> Scope({Thing: 3}, range(0, 5)).values(Thing)
    range(0, 3)
    """

    sizes: Mapping[Sort, int]
    integers: range
    fixed: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `ModelError` for an invalid scope."""
        for family, size in self.sizes.items():
            if not issubclass(family, Family):
                raise ModelError(f"a scope gives sizes to families, and {family!r} is none")
            if size < 1:
                raise ModelError(
                    f"{family.__name__} has size {size}: a family has at least one element"
                )
        if self.integers.step != 1 or not self.integers:
            raise ModelError(f"the integers of a scope are range(low, high), not {self.integers}")
        if max(-self.integers[0], self.integers[-1]) >= INTEGER_BOUND:
            raise ModelError(f"the integers of a scope stay within ±{INTEGER_BOUND - 1}")
        for name in ("sizes", "fixed"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __str__(self) -> str:
        """Return the scope in one line."""
        sizes = ", ".join(f"{family.__name__} {size}" for family, size in self.sizes.items())
        sizes = sizes or "without families"
        fixed = "".join(f", {name} {value}" for name, value in self.fixed.items())
        # A model without integers gets one, which is not worth showing.
        few = len(self.integers) == 1
        integers = "" if few else f", integers {self.integers[0]} to {self.integers[-1]}"
        return f"{sizes}{integers}{fixed}"

    def values(self, sort: Sort) -> range:
        """Return the values of a sort; raises `ModelError` for a family without a size."""
        if issubclass(sort, Int):
            return self.integers
        if issubclass(sort, Enumeration):
            return range(len(sort.values))
        if issubclass(sort, Bool):
            return range(2)
        if sort not in self.sizes:
            raise ModelError(f"the scope gives no size to the family {sort.__name__}")
        return range(self.sizes[sort])

    def choices(self, cell: Cell) -> Sequence[int]:
        """Return the values that a cell can have."""
        fixed = self.fixed.get(cell.symbol.name)
        if fixed is None:
            return self.values(cell.symbol.range)
        if isinstance(fixed, int):
            return (int(fixed),)
        return (fixed[list(self.tuples(cell.symbol.domain)).index(cell.indices)],)

    def arguments(self, action: Action, parameter: Term | Symbol) -> Sequence[int]:
        """Return the values of an action's parameter; a set's is a bit mask of its cells."""
        if isinstance(parameter, Symbol):
            return range(1 << len(cells(self, [parameter])))
        fixed = self.fixed.get(f"{action.name}.{parameter_name(parameter)}")
        if fixed is None:
            return self.values(type(parameter))
        return (fixed,) if isinstance(fixed, int) else fixed

    def check(self, system: System) -> None:
        """Raise `ModelError` if the scope does not fit the system."""
        for family in families(system):
            self.values(family)
        for name, fixed in self.fixed.items():
            self._check_fixed(system, name, fixed)
        self._check_orders(system)
        for symbol in (*system.symbols, *set_parameters(system)):
            if any(issubclass(sort, Int) for sort in symbol.domain):
                raise ModelError(
                    f"{symbol} is indexed by Int, which has no end: index it by a family, "
                    "with an order where places matter"
                )

    @staticmethod
    def _check_orders(system: System) -> None:
        """Refuse orders that cannot be that of the indices: the elements must be nameless."""
        ordered: dict[Sort, Symbol] = {}
        for symbol in system.symbols:
            if symbol.is_order:
                family = symbol.domain[0]
                if not issubclass(family, Family):
                    raise ModelError(f"{symbol} orders {family.__name__}, which is not a family")
                if family in ordered:
                    raise ModelError(
                        f"{ordered[family]} and {symbol} both order {family.__name__}: write one "
                        "of them as a FixedRelation with axioms"
                    )
                ordered[family] = symbol

    def _check_fixed(self, system: System, name: str, fixed: int | tuple[int, ...]) -> None:
        rigid = {s.name: (s.range, self.count(s)) for s in system.rigid if not s.is_order}
        parameters = {
            f"{action.name}.{parameter_name(p)}": (type(p), 1)
            for action in system.actions
            for p in action.parameters
            if isinstance(p, Term)
        }
        if name not in rigid | parameters:
            names = ", ".join(parameters if "." in name else rigid)
            raise ModelError(f"{name} cannot be fixed in a scope of {system.name}: {names} can")
        sort, count = (rigid | parameters)[name]
        values = (fixed,) * count if isinstance(fixed, int) else fixed
        if len(values) != count or any(v not in self.values(sort) for v in values):
            raise ModelError(
                f"{name} has {count} cells with values {list(self.values(sort))}, "
                f"and is fixed to {fixed}"
            )

    def count(self, symbol: Symbol) -> int:
        """Return how many cells a symbol has that is no order."""
        return math.prod(len(self.values(sort)) for sort in symbol.domain)

    def tuples(self, sorts: Sequence[Sort]) -> Iterable[tuple[int, ...]]:
        """Return all tuples of values of the given sorts, the last varying first."""
        return itertools.product(*(self.values(sort) for sort in sorts))


def default_scope(system: System, size: int) -> Scope:
    """Return the scope with `size` elements in each family and the integers 0 to `size`.

    A model without integers gets one, which no term reads.
    """
    parameters = (type(p) for a in system.actions for p in a.parameters if isinstance(p, Term))
    sorts = {*(symbol.range for symbol in system.symbols), *parameters}
    return Scope(dict.fromkeys(families(system), size), range(size + 1 if Int in sorts else 1))


def families(system: System) -> tuple[Sort, ...]:
    """Return the families of symbols, parameters and quantifiers."""
    found = dict.fromkeys(system.families)
    sorts: list[Sort] = []
    for action in system.actions:
        for parameter in action.parameters:
            sorts += [type(parameter)] if isinstance(parameter, Term) else parameter.domain
    for term in terms(system):
        if term.op in ("forall", "exists"):
            sorts += map(type, cast("tuple[Term, ...]", term.payload))
    sorts += [type(parameter) for progress in system.leads_to for parameter in progress.parameters]
    found.update(dict.fromkeys(sort for sort in sorts if issubclass(sort, Family)))
    return tuple(found)


def terms(system: System) -> Iterator[Term]:
    """Yield every term of the system with its subterms, each once."""
    functions = [*system.initial.values(), *(f for a in system.actions for f in a.updates.values())]
    roots = [
        *(function.body for function in functions),
        *(guard.term for action in system.actions for guard in action.guards),
        *(statement.term for statement in (*system.invariants, *system.axioms)),
        *(term for each in system.leads_to for term in (each.premise, each.conclusion)),
        *(term for each in system.leads_to for term in each.finitely.values()),
        *(ghost.term for ghost in system.ghosts),
    ]
    seen: set[Term] = set()
    for root in roots:
        for term in subterms(root):
            if term not in seen:
                seen.add(term)
                yield term


def set_parameters(system: System) -> list[Symbol]:
    """Return the set parameters of all actions."""
    return [p for a in system.actions for p in a.parameters if isinstance(p, Symbol)]


def cells(scope: Scope, symbols: Iterable[Symbol]) -> tuple[Cell, ...]:
    """Return the cells of the symbols, in order; an order symbol has none."""
    return tuple(
        Cell(symbol, indices)
        for symbol in symbols
        if not symbol.is_order
        for indices in scope.tuples(symbol.domain)
    )


def free_at_start(system: System) -> tuple[Symbol, ...]:
    """Return the symbols whose initial values are not determined by others.

    These are the rigid ones, and the symbols that the initial functions read: a map that starts as
    its own value starts with any value.
    """
    read = {symbol for each in system.initial.values() for symbol in symbols_read(each.body)}
    return tuple(symbol for symbol in system.symbols if symbol.rigid or symbol in read)


def valuations(scope: Scope, action: Action) -> Iterable[tuple[int, ...]]:
    """Return all arguments of an action."""
    return itertools.product(*(scope.arguments(action, each) for each in action.parameters))


def value_name(sort: Sort, value: int) -> Value:
    """Return the name of a value."""
    if issubclass(sort, Bool):
        return bool(value)
    if issubclass(sort, Enumeration):
        return sort.values[value]
    if issubclass(sort, Family):
        return f"{sort.__name__.lower()}{value}"
    return value


def cell_name(cell: Cell) -> str:
    """Return the name of a cell, such as `status[entry1]`."""
    pairs = zip(cell.symbol.domain, cell.indices, strict=True)
    inner = ", ".join(str(value_name(sort, index)) for sort, index in pairs)
    return f"{cell.symbol.name}[{inner}]" if inner else cell.symbol.name


def argument_name(scope: Scope, parameter: Term | Symbol, argument: int) -> Value:
    """Return the name of an action's argument; a set is written `{entry0, entry2}`."""
    if isinstance(parameter, Term):
        return value_name(type(parameter), argument)
    members = [
        cell_name(Cell(parameter, cell.indices)).removeprefix(parameter.name)[1:-1]
        for position, cell in enumerate(cells(scope, [parameter]))
        if argument >> position & 1
    ]
    return "{" + ", ".join(members) + "}"


def arguments_in_words(scope: Scope, action: Action, arguments: Sequence[int]) -> dict[str, Value]:
    """Return the names of an action's arguments, by parameter."""
    return {
        parameter_name(parameter): argument_name(scope, parameter, argument)
        for parameter, argument in zip(action.parameters, arguments, strict=True)
    }


def parameter_name(parameter: Term | Symbol) -> str:
    """Return the name of a parameter in the model's text."""
    if isinstance(parameter, Symbol):
        return parameter.name
    name = parameter.payload
    assert isinstance(name, tuple)
    return str(name[0])


def state_in_words(all_cells: Iterable[Cell], values: Iterable[int]) -> dict[str, Value]:
    """Return the names of a state's values, by cell."""
    return {
        cell_name(cell): value_name(cell.symbol.range, value)
        for cell, value in zip(all_cells, values, strict=True)
    }
