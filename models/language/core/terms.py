"""Terms: the interned expressions into which a model's text is traced.

Owns the sorts, the operators and the simplifications that are always valid; models, actions and
states are elsewhere. Invariant: two terms are the same object exactly if they were built alike, so
a term can be a key. Therefore `==` can build an equation, and a term used as a truth value raises:
a Python `if` or `and` over terms would silently drop a branch of the model.

A term is an instance of its own sort's class (`Bool`, `Int`, a `Family` or an `Enumeration`), so
that type checker and tracer agree.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar, cast, overload

Op: TypeAlias = Literal[
    "variable",  # payload: (name, serial number)
    "constant",  # payload: a bool, an int, or the index of a value or element
    "read",  # payload: Symbol; args: the indices
    "not",
    "and",
    "or",
    "ite",
    "equal",
    "less",
    "add",
    "subtract",
    "forall",  # payload: the bound variables; args: the body
    "exists",
]


class ModelError(Exception):
    """A model's text has no meaning; the message says where, and what to write instead."""


class Term:
    """An expression; the subclasses have the operators."""

    __slots__ = ("_free", "args", "number", "op", "payload")

    op: Op
    args: tuple[Term, ...]
    payload: object
    number: int  # The order of making, which is the same in each run; addresses are not.
    _free: frozenset[Term] | None

    def __bool__(self) -> bool:
        """Refuse: Python's `if`, `and`, `or`, `not` and `in` cannot be traced."""
        raise ModelError(
            f"a term was used as a truth value: {self!r}; "
            "write &, |, ~, implies(...) or ite(...) instead of and, or, not, if"
        )

    def __eq__(self, other: object) -> Bool:  # type: ignore[override]
        """Build the equation of two terms of one sort."""
        return equal(self, lift(other, type(self)))

    def __ne__(self, other: object) -> Bool:  # type: ignore[override]
        """Build the negated equation."""
        return ~equal(self, lift(other, type(self)))

    __hash__ = object.__hash__

    def is_one_of(self, *values: Self) -> Bool:
        """Return whether the term is one of these values."""
        return disjunction(self == value for value in values)

    def __repr__(self) -> str:
        return show(self)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("terms are interned in this process and cannot be pickled")


class Bool(Term):
    """A truth value."""

    __slots__ = ()

    def __and__(self, other: Bool | bool) -> Bool:
        return conjunction((self, lift(other, Bool)))

    __rand__ = __and__

    def __or__(self, other: Bool | bool) -> Bool:
        return disjunction((self, lift(other, Bool)))

    __ror__ = __or__

    def __invert__(self) -> Bool:
        return negation(self)


class Int(Term):
    """A whole number: unbounded in a proof, within the scope's range in a scope."""

    __slots__ = ()

    def __add__(self, other: Int | int) -> Int:
        return add(self, lift(other, Int))

    __radd__ = __add__

    def __sub__(self, other: Int | int) -> Int:
        return subtract(self, lift(other, Int))

    def __lt__(self, other: Int | int) -> Bool:
        return less(self, lift(other, Int))

    def __gt__(self, other: Int | int) -> Bool:
        return less(lift(other, Int), self)

    def __le__(self, other: Int | int) -> Bool:
        return ~(self > other)

    def __ge__(self, other: Int | int) -> Bool:
        return ~(self < other)


class Family(Term):
    """A sort of elements, to be subclassed: a scope gives their number, a proof covers any."""

    __slots__ = ()


class Enumeration(Term):
    """A sort with named values, one for each annotation of the subclass, in their order.

    >>> class Light(Enumeration):
    ...     RED: ClassVar["Light"]
    ...     GREEN: ClassVar["Light"]
    >>> Light.RED
    RED
    """

    __slots__ = ()
    values: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Make one constant for each annotated name."""
        super().__init_subclass__()
        cls.values = tuple(inspect.get_annotations(cls))
        for index, name in enumerate(cls.values):
            setattr(cls, name, _intern(cls, "constant", (), index))


Sort: TypeAlias = type[Term]
T = TypeVar("T", bound=Term)


@dataclass(frozen=True, eq=False)
class Symbol:
    """A function of a model: a map, a relation, a rigid value, an order, a set parameter."""

    name: str
    domain: tuple[Sort, ...]
    range: Sort
    rigid: bool
    is_order: bool = False

    def __repr__(self) -> str:
        return self.name


_terms: dict[tuple[object, ...], Term] = {}
_serial = itertools.count()


def _intern(sort: type[T], op: Op, args: tuple[Term, ...], payload: object = None) -> T:
    identities = tuple(map(id, args))
    payload_key: object = payload
    if isinstance(payload, tuple):
        payload_key = tuple(id(part) if isinstance(part, Term) else part for part in payload)
    key = (sort, op, payload_key, type(payload), identities)
    found = _terms.get(key)
    if found is None:
        found = object.__new__(sort)
        found.number, found.op, found.args, found.payload = len(_terms), op, args, payload
        found._free = None
        _terms[key] = found
    return cast("T", found)


TRUE = _intern(Bool, "constant", (), True)
FALSE = _intern(Bool, "constant", (), False)


def integer(value: int) -> Int:
    """Return the constant `value`."""
    return _intern(Int, "constant", (), value)


def constant(sort: type[T], value: int | bool) -> T:
    """Return the constant of `sort` with this value or index."""
    if sort is Bool:
        return cast("T", TRUE if value else FALSE)
    return _intern(sort, "constant", (), int(value))


def fresh(sort: type[T], name: str) -> T:
    """Return a variable that is different from every other."""
    return _intern(sort, "variable", (), (name, next(_serial)))


def lift(value: object, sort: type[T]) -> T:
    """Return `value` as a term of `sort`, or raise `ModelError`."""
    if isinstance(value, sort):
        return value
    if sort is Bool and isinstance(value, bool):
        return cast("T", TRUE if value else FALSE)
    if sort is Int and isinstance(value, int) and not isinstance(value, bool):
        return cast("T", integer(value))
    kind = type(value).__name__
    raise ModelError(f"expected a term of sort {sort.__name__}, got {value!r} of {kind}")


def is_constant(term: Term) -> bool:
    """Whether the term is a value."""
    return term.op == "constant"


def negation(term: Bool) -> Bool:
    """Return `not term`."""
    if term is TRUE:
        return FALSE
    if term is FALSE:
        return TRUE
    if term.op == "not":
        return cast("Bool", term.args[0])
    return _intern(Bool, "not", (term,))


def conjunction(terms: Iterable[Bool]) -> Bool:
    """Return the conjunction, flattened, each conjunct once."""
    return _lattice("and", terms, FALSE, TRUE)


def disjunction(terms: Iterable[Bool]) -> Bool:
    """Return the disjunction, flattened, each disjunct once."""
    return _lattice("or", terms, TRUE, FALSE)


def _lattice(op: Literal["and", "or"], terms: Iterable[Bool], zero: Bool, unit: Bool) -> Bool:
    parts: dict[Term, None] = {}
    for term in terms:
        for part in term.args if term.op == op else (term,):
            if part is zero or (part.op == "not" and part.args[0] in parts):
                return zero
            if _intern(Bool, "not", (part,)) in parts:
                return zero
            if part is not unit:
                parts[part] = None
    if not parts:
        return unit
    if len(parts) == 1:
        return cast("Bool", next(iter(parts)))
    return _intern(Bool, op, tuple(parts))


def implies(premise: Bool | bool, conclusion: Bool | bool) -> Bool:
    """Return `not premise or conclusion`."""
    found = negation(lift(premise, Bool)) | lift(conclusion, Bool)
    _premises.setdefault(found, lift(premise, Bool))
    return found


def conjuncts(statement: Bool) -> tuple[Bool, ...]:
    """Return the parts of a conjunction; any other statement is its only part."""
    return cast("tuple[Bool, ...]", statement.args) if statement.op == "and" else (statement,)


_premises: dict[Term, Bool] = {}
"""The premise of each implication as written; the disjunction does not keep it."""


def situation(statement: Bool) -> Bool:
    """Return where a statement says something: `exists x: P` for `forall x: P implies Q`."""
    if statement.op == "forall":
        variables = cast("tuple[Term, ...]", statement.payload)
        return quantify("exists", variables, situation(cast("Bool", statement.args[0])))
    if statement.op == "and":
        return disjunction(situation(cast("Bool", each)) for each in statement.args)
    return _premises.get(statement, TRUE)


@overload
def ite(condition: Bool | bool, then: T, otherwise: T | int | bool) -> T: ...
@overload
def ite(condition: Bool | bool, then: bool, otherwise: Bool) -> Bool: ...
@overload
def ite(condition: Bool | bool, then: int, otherwise: Int | int) -> Int: ...
def ite(condition: Bool | bool, then: Any, otherwise: Any) -> Any:
    """Return the term that is `then` where the condition holds and `otherwise` elsewhere."""
    test = lift(condition, Bool)
    if not isinstance(then, Term):
        then = _lifted_beside(then, otherwise)
    sort = type(then)
    other = lift(otherwise, sort)
    if test is TRUE or then is other:
        return then
    if test is FALSE:
        return other
    if test.op == "not":
        return ite(cast("Bool", test.args[0]), other, then)
    if sort is Bool:
        yes, no = cast("Bool", then), cast("Bool", other)
        if is_constant(yes) or is_constant(no):
            return test | no if yes is TRUE else (test & yes) | (~test & no)
    return _intern(sort, "ite", (test, then, other))


def _lifted_beside(value: object, other: object) -> Any:
    """Return a plain value as a term, of the sort of `other` if that is a term."""
    if isinstance(other, Term):
        return lift(value, type(other))
    return lift(value, Bool if isinstance(value, bool) else Int)


def equal(left: Term, right: Term) -> Bool:
    """Return the equation of two terms of one sort."""
    if type(left) is not type(right):
        raise ModelError(
            f"{left!r} is a {type(left).__name__}, {right!r} is a {type(right).__name__}: "
            "only terms of one sort can be equal"
        )
    if left is right:
        return TRUE
    if is_constant(left) and is_constant(right):
        return FALSE
    if isinstance(left, Bool) and isinstance(right, Bool):
        if is_constant(left) or is_constant(right):
            value, truth = (left, right) if is_constant(left) else (right, left)
            return truth if value is TRUE else ~truth
        if left.op == "not" and left.args[0] is right:
            return FALSE
    for choice, other in ((left, right), (right, left)):
        if choice.op == "ite" and is_constant(other):
            condition, then, otherwise = choice.args
            if is_constant(then) or is_constant(otherwise):
                return ite(cast("Bool", condition), equal(then, other), equal(otherwise, other))
    # Constants are shared by all models, so their numbers depend on what was traced before.
    first, second = sorted((left, right), key=lambda term: (not is_constant(term), term.number))
    return _intern(Bool, "equal", (first, second))


def less(left: Int, right: Int) -> Bool:
    """Return `left < right`."""
    if left is right:
        return FALSE
    if is_constant(left) and is_constant(right):
        return TRUE if cast("int", left.payload) < cast("int", right.payload) else FALSE
    return _intern(Bool, "less", (left, right))


def add(left: Int, right: Int) -> Int:
    """Return the sum."""
    if is_constant(left) and is_constant(right):
        return integer(cast("int", left.payload) + cast("int", right.payload))
    if is_constant(left):
        left, right = right, left
    if right.op == "constant" and right.payload == 0:
        return left
    return _intern(Int, "add", (left, right))


def subtract(left: Int, right: Int) -> Int:
    """Return the difference."""
    if is_constant(right):
        return add(left, integer(-cast("int", right.payload)))
    return integer(0) if left is right else _intern(Int, "subtract", (left, right))


def read(symbol: Symbol, indices: tuple[Term, ...]) -> Term:
    """Return the value of a symbol at the given indices."""
    if len(indices) != len(symbol.domain):
        raise ModelError(f"{symbol} takes {len(symbol.domain)} indices, got {len(indices)}")
    lifted = tuple(lift(index, sort) for index, sort in zip(indices, symbol.domain, strict=True))
    if symbol.is_order and lifted[0] is lifted[1]:
        return FALSE
    return _intern(symbol.range, "read", lifted, symbol)


def forall(*sorts_and_body: object) -> Bool:
    """Return "for all": `forall(Entry, lambda e: ...)`, with as many sorts as the lambda takes."""
    return _quantified("forall", sorts_and_body)


def exists(*sorts_and_body: object) -> Bool:
    """Return "there is": `exists(Entry, lambda e: ...)`, with as many sorts as the lambda takes."""
    return _quantified("exists", sorts_and_body)


def _quantified(op: Literal["forall", "exists"], sorts_and_body: tuple[object, ...]) -> Bool:
    *sorts, body = sorts_and_body
    if not sorts or not callable(body):
        raise ModelError(f"{op} takes sorts and then a function of as many variables")
    names = body.__code__.co_varnames if hasattr(body, "__code__") else ()
    variables = tuple(
        fresh(cast("Sort", sort), names[position] if position < len(names) else "x")
        for position, sort in enumerate(sorts)
    )
    function = cast("Callable[..., object]", body)
    return quantify(op, variables, lift(function(*variables), Bool))


def quantify(op: Literal["forall", "exists"], variables: tuple[Term, ...], body: Bool) -> Bool:
    """Return the quantified body; variables that do not occur are left out."""
    used = tuple(variable for variable in variables if variable in free_variables(body))
    if not used:
        return body
    return _intern(Bool, op, (body,), used)


def free_variables(term: Term) -> frozenset[Term]:
    """Return the free variables of the term."""
    if term._free is None:  # noqa: SLF001
        if term.op == "variable":
            free = frozenset((term,))
        else:
            free = frozenset().union(*(free_variables(arg) for arg in term.args))
            if term.op in ("forall", "exists"):
                free -= frozenset(cast("tuple[Term, ...]", term.payload))
        term._free = free  # noqa: SLF001
    return term._free  # noqa: SLF001


_SHOWN = {
    "and": " & ",
    "or": " | ",
    "equal": " = ",
    "less": " < ",
    "add": " + ",
    "subtract": " - ",
}


def show(term: Term) -> str:
    """Return the term as a person would write it."""
    match term.op:
        case "variable":
            return cast("tuple[str, int]", term.payload)[0]
        case "constant":
            if isinstance(term, Enumeration):
                return type(term).values[cast("int", term.payload)]
            if isinstance(term, Family):
                return f"{type(term).__name__.lower()}{term.payload}"
            return str(term.payload).lower()
        case "read":
            symbol = cast("Symbol", term.payload)
            inner = ", ".join(map(show, term.args))
            if symbol.is_order:
                return f"({show(term.args[0])} {symbol.name} {show(term.args[1])})"
            return f"{symbol.name}[{inner}]" if term.args else symbol.name
        case "forall" | "exists":
            names = ", ".join(map(show, cast("tuple[Term, ...]", term.payload)))
            return f"({term.op} {names}: {show(term.args[0])})"
        case "not":
            return f"~{show(term.args[0])}"
        case "ite":
            test, then, otherwise = map(show, term.args)
            return f"({then} if {test} else {otherwise})"
        case _:
            return f"({_SHOWN[term.op].join(map(show, term.args))})"
