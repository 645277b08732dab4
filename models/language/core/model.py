"""The declarations of a model, and the run that traces them into terms.

A model is a class. Its annotations declare maps, relations, rigid symbols and orders; its decorated
methods are actions, invariants, axioms and the initial state. `trace` runs each method once on
symbolic parameters and returns a `System`; the Python text is not used afterwards.

Invariants kept here: guards read the state before the action, so `require` comes before the first
assignment (a guard that read a half-updated state would differ between readings); bodies of `map`,
`forall` and `exists` are traced when they are written, never later; rigid symbols are never
assigned.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import (
    ClassVar,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    cast,
)

from brokerproof.models.language.core.marks import Method, Role, action
from brokerproof.models.language.core.rewriting import Function, subterms
from brokerproof.models.language.core.source_check import check_source
from brokerproof.models.language.core.systems import (
    Action,
    Assumed,
    Ghost,
    Guard,
    LeadsTo,
    Part,
    Rank,
    Statement,
    System,
)
from brokerproof.models.language.core.terms import (
    FALSE,
    Bool,
    Family,
    Int,
    ModelError,
    Sort,
    Symbol,
    Term,
    conjunction,
    equal,
    fresh,
    integer,
    ite,
    lift,
    quantify,
    read,
)
from brokerproof.models.language.core.well_formed import check_well_formed

__all__ = [
    "Action",
    "Ghost",
    "Guard",
    "LeadsTo",
    "ModelError",
    "Statement",
    "System",
    "trace",
]

I = TypeVar("I", bound=Term)  # noqa: E741 (index)
Sorts = TypeVarTuple("Sorts")
V = TypeVar("V", bound=Term)

Steps: TypeAlias = Callable[..., Bool | bool]
"""Some steps of an action: a condition on its arguments."""


class Trace:
    """The record of one run of a method so far."""

    def __init__(self, *, leads: bool) -> None:
        self.leads = leads
        self.assigned: dict[Symbol, Function] = {}
        self._before: dict[Symbol, Function] = {}
        self.guards: list[Guard] = []
        self.situations: list[Guard] = []
        self.assumptions: list[Assumed] = []
        self.mapped: list[_Update] = []
        self.finitely: dict[str, Steps] = {}
        self.rank: _Ranked | None = None

    def now(self, symbol: Symbol) -> Function:
        """Return the function that a symbol is here."""
        if symbol in self.assigned:
            return self.assigned[symbol]
        if symbol not in self._before:
            parameters = tuple(fresh(sort, sort.__name__[0].lower()) for sort in symbol.domain)
            self._before[symbol] = Function(parameters, read(symbol, parameters))
        return self._before[symbol]


_current: list[Trace] = []


def tracing() -> Trace:
    """Return the record of the running method; raises `ModelError` outside of one."""
    if not _current:
        raise ModelError("this reads or changes a model's state outside of a model's own methods")
    return _current[-1]


class _View:
    """A symbol as the text of a model uses it."""

    def __init__(self, symbol: Symbol) -> None:
        self._symbol = symbol

    def _get(self, *indices: Term) -> Term:
        lifted = _lifted(self._symbol, indices)
        if self._symbol.rigid:
            return read(self._symbol, lifted)
        return tracing().now(self._symbol).at(*lifted)


def _lifted(symbol: Symbol, indices: tuple[Term, ...]) -> tuple[Term, ...]:
    if len(indices) != len(symbol.domain):
        raise ModelError(f"{symbol} takes {len(symbol.domain)} indices, got {len(indices)}")
    return tuple(lift(index, sort) for index, sort in zip(indices, symbol.domain, strict=True))


def _assigned(symbol: Symbol, indices: tuple[Term, ...], value: object) -> None:
    trace = tracing()
    old = trace.now(symbol)
    lifted = _lifted(symbol, indices)
    hit = conjunction(equal(p, i) for p, i in zip(old.parameters, lifted, strict=True))
    new = lift(value, symbol.range)
    trace.assigned[symbol] = Function(old.parameters, ite(hit, new, old.body))


class Fixed(_View, Generic[I, V]):
    """A rigid map: chosen once, the same in every state."""

    def __getitem__(self, index: I) -> V:
        """Return its value at `index`."""
        return cast("V", self._get(index))


class FixedRelation(_View, Generic[*Sorts]):
    """A rigid relation of two sorts or more."""

    def __getitem__(self, indices: tuple[*Sorts]) -> Bool:
        """Return whether these are related."""
        return cast("Bool", self._get(*cast("tuple[Term, ...]", indices)))


class Order(_View, Generic[I]):
    """A rigid strict total order of one family: any such order, in a proof."""

    def __call__(self, left: I, right: I) -> Bool:
        """Return whether `left` comes strictly before `right`."""
        return cast("Bool", self._get(left, right))


class SetOf(_View, Generic[I]):
    """A set parameter of an action, for changes in bulk: a model has no loops."""

    def __getitem__(self, index: I) -> Bool:
        """Return whether `index` is in the set."""
        return cast("Bool", self._get(index))


class Map(_View, Generic[I, V]):
    """A map from one sort to another, part of the state."""

    def __getitem__(self, index: I) -> V:
        """Return its value at `index`, as of the assignments made so far."""
        return cast("V", self._get(index))

    def __setitem__(self, index: I, value: V | bool | int) -> None:
        """Let it have `value` at `index` after the action."""
        _assigned(self._symbol, (index,), value)

    def map(self, body: Callable[[I, V], V | bool | int]) -> Map[I, V]:
        """Return the map with `body(index, old value)` as its value at each index."""
        return cast("Map[I, V]", _mapped(self._symbol, body))

    def fill(self, value: V | bool | int) -> None:
        """Let every index have `value` after the action."""
        parameters = tracing().now(self._symbol).parameters
        tracing().assigned[self._symbol] = Function(parameters, lift(value, self._symbol.range))


class Value(_View, Generic[V]):
    """A value of the state without an index: the text reads and assigns its name."""

    def __get__(self, model: Model | None, owner: type[Model]) -> V:
        """Return the value, as of the assignments made so far."""
        return cast("V", self if model is None else self._get())

    def __set__(self, model: Model, value: V | bool | int) -> None:
        """Let it be `value` after the action."""
        _assigned(self._symbol, (), value)


class Relation(_View, Generic[*Sorts]):
    """A relation of two sorts or more, part of the state."""

    def __getitem__(self, indices: tuple[*Sorts]) -> Bool:
        """Return whether these are related, as of the assignments made so far."""
        return cast("Bool", self._get(*cast("tuple[Term, ...]", indices)))

    def __setitem__(self, indices: tuple[*Sorts], value: Bool | bool) -> None:
        """Let these be related, or not, after the action."""
        _assigned(self._symbol, cast("tuple[Term, ...]", indices), value)

    def map(self, body: Callable[[*Sorts, Bool], Bool | bool]) -> Relation[*Sorts]:
        """Return the relation with `body(indices, old value)` for all indices."""
        return cast("Relation[*Sorts]", _mapped(self._symbol, body))

    def fill(self, value: Bool | bool) -> None:
        """Relate all after the action, or none."""
        parameters = tracing().now(self._symbol).parameters
        tracing().assigned[self._symbol] = Function(parameters, lift(value, Bool))


@dataclass(frozen=True, eq=False)
class _Update:
    symbol: Symbol
    function: Function


def _mapped(symbol: Symbol, body: Callable[..., object]) -> _Update:
    old = tracing().now(symbol)
    parameters = tuple(
        fresh(type(p), cast("tuple[str, int]", p.payload)[0]) for p in old.parameters
    )
    new = lift(body(*parameters, old.at(*parameters)), symbol.range)
    update = _Update(symbol, Function(parameters, new))
    tracing().mapped.append(update)
    return update


def require(condition: Bool | bool, label: str = "") -> None:
    """Let the action be possible only where the condition holds.

    A label is the id of a requirement: an observed event whose condition is false breaks it.
    """
    trace = tracing()
    if trace.assigned:
        raise ModelError("require comes before the first assignment: guards read the old state")
    trace.guards.append(Guard(label, lift(condition, Bool)))


def exercises(label: str, situation: Bool | bool = True) -> None:
    """State when this action would show a fault against the requirement of that name.

    It does not change the action. A reading that follows a broker counts these situations, because
    a requirement is reported as kept only if it was exercised.
    """
    trace = tracing()
    if trace.assigned:
        raise ModelError("exercises comes before the first assignment: it reads the old state")
    trace.situations.append(Guard(label, lift(situation, Bool)))


def finitely(**steps: Steps) -> None:
    """Let a leads-to property be about runs that take these steps finitely often.

    Each action is given with a condition on its arguments.
    """
    _leading_to("finitely").finitely.update(steps)


def elements(family: Sort, members: Steps, *, within: Steps | None = None) -> Part:
    """Return a part of a rank: a set, which is lower if it has lost elements and got none.

    It lies `within` a set that is finite, since it begins with one element at most and no step adds
    a second one at once. Without `within`, that is proved of the set itself.
    """
    element = fresh(family, members.__code__.co_varnames[0])
    held = lift(members(element), Bool)
    return Part(held, element, lift(within(element), Bool) if within else held)


def ranked(
    *parts: Part | Bool | Int,
    lowered_by: dict[str, Steps] | None = None,
    pending: Bool | bool = True,
    words: str = "",
) -> None:
    """State why a leads-to property holds for any number of elements, by a rank.

    The parts are compared in their order: sets (`elements`), truth values (false is lower) and
    numbers (not negative). While the conclusion does not hold, one of the steps `lowered_by` is
    possible, and stays so until the rank is lower; each of them makes it lower, and no other step
    higher, but for those that happen `finitely` often. Each of these fair actions has a condition
    on its arguments, or the members of its set parameter; if none is given, all fair steps lower
    the rank. `pending` is what stays true until then, if that is not the premise. `words` tell
    readers of a proof what gets less.
    """
    made = tuple(part if isinstance(part, Part) else Part(part) for part in parts)
    _leading_to("ranked").rank = _Ranked(made, lowered_by, pending, words)


def _leading_to(statement: str) -> Trace:
    if not tracing().leads:
        raise ModelError(f"{statement} is about a liveness property: write it below @leads_to")
    return tracing()


class _Ranked(NamedTuple):
    parts: tuple[Part, ...]
    lowered_by: dict[str, Steps] | None
    pending: Bool | bool
    words: str


def step(at: Term, then: Term | None = None) -> Callable[[Method], Method]:
    """Mark an action of a thread: its first parameter is `at` one place, and goes on to `then`.

    The place is the first map of the state from the sort of the parameter to that of `at`. Without
    `then`, the method assigns it.
    """

    def mark(method: Method) -> Method:
        @functools.wraps(method)
        def taken(self: Model, thread: Term, *others: object) -> None:
            place = _place_of(self, type(thread), type(at))
            require(place[thread] == at)
            method(self, thread, *others)
            if then is not None:
                place[thread] = then

        return cast("Method", action(taken))

    return mark


def _place_of(model: Model, thread: Sort, places: Sort) -> Map[Term, Term]:
    for name, symbol in type(model).symbols_.items():
        if symbol.domain == (thread,) and symbol.range is places and not symbol.rigid:
            return cast("Map[Term, Term]", getattr(model, name))
    raise ModelError(f"there is no map from {thread.__name__} to {places.__name__}")


class Model:
    """The base class of every model: its annotations become symbols when it is traced."""

    symbols_: ClassVar[dict[str, Symbol]]

    instance_: ClassVar[Model]
    """The instance on which the text runs, and functions about the model."""

    equivalent_mutants: ClassVar[str] = ""
    """Why the surviving mutants of this very class are equivalent: reasons, and their places."""

    def __setattr__(self, name: str, value: object) -> None:
        """Assign a value, or a whole map or relation: `self.pointer = self.pointer.map(...)`."""
        symbol = type(self).symbols_.get(name)
        if symbol is None or symbol.rigid:
            raise ModelError(f"{name} is not part of this model's state")
        if not symbol.domain:
            super().__setattr__(name, value)
            return
        if not isinstance(value, _Update) or value.symbol is not symbol:
            raise ModelError(f"assign self.{name} what self.{name}.map(...) returns")
        tracing().mapped = [u for u in tracing().mapped if u is not value]
        tracing().assigned[symbol] = value.function


_VIEWS: dict[object, tuple[type[_View], bool]] = {
    Map: (Map, False),
    Value: (Value, False),
    Relation: (Relation, False),
    Fixed: (Fixed, True),
    FixedRelation: (FixedRelation, True),
    Order: (Order, True),
    SetOf: (SetOf, True),
}


def _declared(name: str, annotation: object) -> tuple[Symbol, object]:
    """Return the symbol that an annotation declares, and its value for the model's text."""
    if isinstance(annotation, type) and issubclass(annotation, Term):
        symbol = Symbol(name, (), annotation, rigid=True)
        return symbol, read(symbol, ())
    form = typing.get_origin(annotation)
    if form not in _VIEWS:
        raise ModelError(f"{name}: {annotation!r} is not a declaration of a model")
    view, rigid = _VIEWS[form]
    sorts = cast("tuple[Sort, ...]", typing.get_args(annotation))
    match view.__name__:
        case "Map" | "Value" | "Fixed":
            domain, range_ = sorts[:-1], sorts[-1]
        case "Order":
            domain, range_ = (sorts[0], sorts[0]), Bool
        case _:
            domain, range_ = sorts, Bool
    if issubclass(view, Relation | FixedRelation) and len(domain) < 2:
        raise ModelError(f"{name}: a relation has two sorts or more; a map to Bool has one")
    symbol = Symbol(name, domain, range_, rigid=rigid, is_order=view is Order)
    return symbol, view(symbol)


@contextmanager
def run(*, leads: bool = False) -> Iterator[Trace]:
    """Run the text of a model; the value is the record of the run.

    `leads` says that the text is that of a leads-to property.
    """
    _current.append(Trace(leads=leads))
    try:
        yield _current[-1]
        for update in _current[-1].mapped:
            name = update.symbol.name
            raise ModelError(f"self.{name}.map(...) changes nothing by itself: assign it")
    finally:
        _current.pop()


_traced: dict[type[Model], System] = {}


def trace(model: type[Model]) -> System:
    """Run the text of a model once and return its system; raises `ModelError`."""
    if model not in _traced:
        _traced[model] = _trace_anew(model)
    return _traced[model]


def _trace_anew(model: type[Model]) -> System:
    check_source(model)
    hints = typing.get_type_hints(model)
    hints = {n: hint for n, hint in hints.items() if typing.get_origin(hint) is not ClassVar}
    instance: Model = object.__new__(model)
    model.instance_ = instance
    model.symbols_ = {}
    for name, annotation in hints.items():
        symbol, seen = _declared(name, annotation)
        model.symbols_[name] = symbol
        if isinstance(seen, Value):
            setattr(model, name, seen)
        else:
            object.__setattr__(instance, name, seen)
    return _run_text(model, instance, {})


def retrace(model: type[Model], methods: Mapping[str, Callable[..., object]]) -> System:
    """Return a model's system with other methods of these names, on the same symbols.

    Its actions have the same parameters, too.
    """
    parameters = {action.name: action.parameters for action in trace(model).actions}
    changed = type(model.__name__, (model,), dict(methods))
    instance: Model = object.__new__(changed)
    vars(instance).update(vars(model.instance_))
    return _run_text(changed, instance, parameters)


def _run_text(
    model: type[Model], instance: Model, parameters: dict[str, tuple[Term | Symbol, ...]]
) -> System:
    roles: dict[Role, list[tuple[str, Callable[..., object]]]] = {}
    for attribute in _methods_in_order(model):
        method = getattr(model, attribute)
        role, name = getattr(method, "__model_role__", (None, ""))
        if role is not None:
            roles.setdefault(role, []).append((name, method))
    starts = roles.get("initial", [])
    if len(starts) != 1:
        raise ModelError(f"{model.__name__} needs exactly one @initial method, has {len(starts)}")
    with run() as start:
        starts[0][1](instance)
    if start.guards:
        raise ModelError(f"{model.__name__}: @initial assigns; what may be required is an @axiom")
    symbols = tuple(model.symbols_.values())
    for symbol in symbols:
        if not symbol.rigid and symbol not in start.assigned:
            raise ModelError(f"{model.__name__}: the initial state says nothing of {symbol}")
    families = {s for symbol in symbols for s in (*symbol.domain, symbol.range)}
    actions = tuple(
        _action(model, instance, *named, parameters.get(named[0]))
        for named in roles.get("action", [])
    )
    system = System(
        name=model.__name__,
        doc=inspect.getdoc(model) or "",
        symbols=symbols,
        initial={symbol: start.assigned[symbol] for symbol in symbols if not symbol.rigid},
        actions=actions,
        invariants=tuple(_stated(model, instance, *n) for n in roles.get("invariant", [])),
        axioms=tuple(_stated(model, instance, *named) for named in roles.get("axiom", [])),
        leads_to=tuple(_leading(model, instance, actions, *n) for n in roles.get("leads_to", [])),
        ghosts=tuple(_counting(model, instance, *n) for n in roles.get("counts", [])),
        families=tuple(sorted((s for s in families if issubclass(s, Family)), key=str)),
    )
    return check_well_formed(system)


def _methods_in_order(model: type[Model]) -> list[str]:
    """Return attribute names in the order of the text, an ancestor's first."""
    names: dict[str, None] = {}
    for ancestor in reversed(model.__mro__):
        names.update(dict.fromkeys(vars(ancestor)))
    return list(names)


def _action(
    model: type[Model],
    instance: Model,
    name: str,
    method: Callable[..., object],
    known: tuple[Term | Symbol, ...] | None,
) -> Action:
    parameters = known or tuple(itertools.starmap(_parameter, _sorts(method).items()))
    arguments = [
        each if isinstance(each, Term) else _VIEWS[typing.get_origin(annotation)][0](each)
        for each, annotation in zip(parameters, _sorts(method).values(), strict=True)
    ]
    with run() as traced:
        method(instance, *arguments)
    symbols = model.symbols_.values()
    updates = {s: traced.assigned[s] for s in symbols if s in traced.assigned}
    return Action(
        name=name,
        doc=inspect.getdoc(method) or "",
        parameters=parameters,
        guards=tuple(traced.guards),
        updates=updates,
        situations=tuple(traced.situations),
        assumptions=tuple(traced.assumptions),
    )


def _parameter(name: str, annotation: object) -> Term | Symbol:
    if isinstance(annotation, type) and issubclass(annotation, Term):
        return fresh(annotation, name)
    return _declared(name, annotation)[0]


def _stated(
    model: type[Model], instance: Model, name: str, method: Callable[..., object]
) -> Statement:
    elements = _elements(method)
    with run() as traced:
        term = quantify("forall", elements, lift(method(instance, *elements), Bool))
    _changes_nothing(model, name, traced)
    by, states = getattr(method, "__model_by__", ()), getattr(method, "__model_states__", ())
    return Statement(name, inspect.getdoc(method) or "", term, by, states)


def _elements(method: Callable[..., object]) -> tuple[Term, ...]:
    """Return a variable for each parameter of a method."""
    return tuple(fresh(cast("Sort", sort), each) for each, sort in _sorts(method).items())


def _sorts(method: Callable[..., object]) -> dict[str, object]:
    """Return the annotations of a method's parameters, without `self`."""
    hints = typing.get_type_hints(method)
    _, *parameters = inspect.signature(method).parameters
    for each in parameters:
        if each not in hints:
            raise ModelError(f"{method.__name__}: the parameter {each} has no sort")
    return {each: hints[each] for each in parameters}


def _changes_nothing(model: type[Model], name: str, traced: Trace) -> None:
    if traced.assigned or traced.guards:
        raise ModelError(
            f"{model.__name__}: {name} states something, so it must not change anything"
        )


def _leading(
    model: type[Model],
    instance: Model,
    actions: Sequence[Action],
    name: str,
    method: Callable[..., object],
) -> LeadsTo:
    parameters = _elements(method)
    with run(leads=True) as traced:
        premise, conclusion = cast("tuple[object, object]", method(instance, *parameters))
        finitely = _steps(name, actions, traced.finitely)
        rank = traced.rank
        sets: dict[Symbol, Function] = {}
        fair = cast("tuple[str, ...]", vars(method)["__model_fair__"])
        together = vars(method)["__model_together__"]
        lowering = rank and rank.lowered_by
        if together and lowering is not None:
            raise ModelError(f"{name}: of actions that are fair together each step lowers the rank")
        if lowering is None:
            lowering = dict.fromkeys(fair if rank else (), lambda *_: True)
        lowered_by = _steps(name, actions, lowering, sets)
    _changes_nothing(model, name, traced)
    before, after = lift(premise, Bool), lift(conclusion, Bool)
    pending = before if rank is None or rank.pending is True else lift(rank.pending, Bool)
    return LeadsTo(
        name=name,
        doc=inspect.getdoc(method) or "",
        parameters=parameters,
        premise=before,
        conclusion=after,
        fair=fair,
        together=together,
        finitely=finitely,
        rank=rank
        and Rank(rank.parts, lowered_by, pending, tuple(traced.assumptions), sets, rank.words),
        by=cast("tuple[str, ...]", vars(method)["__model_by__"]),
    )


def _steps(
    name: str,
    actions: Sequence[Action],
    steps: dict[str, Steps],
    sets: dict[Symbol, Function] | None = None,
) -> dict[str, Bool]:
    """Return the conditions on the parameters of the actions.

    If the only parameter is a set, the text gives its members instead; they are added to `sets`.
    """
    parameters = {action.name: action.parameters for action in actions}
    chosen: dict[str, Bool] = {}
    for each, some in steps.items():
        if each not in parameters:
            known = ", ".join(sorted(parameters))
            raise ModelError(f"{name} speaks of {each}, which is no action: there are {known}")
        match parameters[each]:
            case [Symbol() as group] if sets is not None:
                places = tuple(fresh(sort, "n") for sort in group.domain)
                members = lift(some(*places), Bool)
                reads = [part.payload for part in subterms(members) if part.op == "read"]
                if not all(cast("Symbol", symbol).rigid for symbol in reads):
                    raise ModelError(
                        f"{name}: the members of {group} may not change, since fairness is about "
                        "a step with the same arguments"
                    )
                sets[group] = Function(places, members)
                is_it = equal(read(group, places), members)
                chosen[each] = quantify("forall", places, is_it)
            case terms if not any(isinstance(term, Symbol) for term in terms):
                chosen[each] = lift(some(*terms), Bool)
            case _:
                raise ModelError(f"{name} speaks of {each}, which has a set as parameter")
    return {each: some for each, some in chosen.items() if some is not FALSE}


def _counting(
    model: type[Model], instance: Model, name: str, method: Callable[..., object]
) -> Ghost:
    *indices, element = _elements(method)
    symbol = model.symbols_.get(name)
    if symbol is None or symbol.rigid or symbol.domain != tuple(map(type, indices)):
        raise ModelError(f"{model.__name__}: {name} is no counter of the state with these indices")
    with run():
        term = lift(method(instance, *indices, element), Bool)
    marks = vars(method)
    weight = _weight(model, marks["__model_weighing__"], element)
    doc, by = inspect.getdoc(method) or "", marks["__model_by__"]
    return Ghost(symbol, doc, tuple(indices), element, term, weight, by)


def _weight(model: type[Model], name: str, element: Term) -> Int:
    if not name:
        return integer(1)
    symbol = model.symbols_.get(name)
    if (
        symbol is None
        or not symbol.rigid
        or symbol.domain != (type(element),)
        or symbol.range is not Int
    ):
        raise ModelError(
            f"{model.__name__}: {name} is no rigid map from {type(element).__name__} to integers"
        )
    return cast("Int", read(symbol, (element,)))
