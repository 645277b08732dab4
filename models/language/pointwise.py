"""The reading that follows a running system: possible worlds, element by element.

An observer does not know everything: an operation without an answer may have happened. So a world
keeps, for each element of one family (the focus: entries), the *set* of local states that it may
have, and everything else exactly. That is exact as long as a model keeps to one rule, which the
compilation here enforces: a formula looks at the local state of the element that an action is
about, and at each other element alone. A guard then restricts each element's set by itself, an
update maps each by itself, and nothing is lost.

What is outside the focus (counters, who subscribes) is exact within a world; where it too is
uncertain there are several worlds, and `merged` folds those that differ in one element's
possibilities only.

The family sizes are open: elements come as the observer meets them. Their rigid properties are in a
`Frame`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from brokerproof.models.language.model import Action, Guard, System
from brokerproof.models.language.python_text import PythonText
from brokerproof.models.language.rewriting import Function, rebuild
from brokerproof.models.language.terms import (
    FALSE,
    Bool,
    ModelError,
    Sort,
    Symbol,
    Term,
    fresh,
    negation,
    quantify,
    read,
)

Local: TypeAlias = tuple[int, ...]
Rest: TypeAlias = tuple[tuple[int, ...], ...]
World: TypeAlias = tuple[Rest, tuple[frozenset[Local], ...]]
Blame: TypeAlias = dict[str, tuple[int, ...]]
"""Labels of the false guards, each with the elements that make it so (none: the action's own)."""

Arguments: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """The elements met so far: how many of each family, and their rigid properties.

    A row of a map has one value an element; of a relation or an order one bit mask for each element
    of the *last* index, so that a new element appends and old rows stay.
    """

    sizes: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Compiled:
    """An action as functions of frame, rest, the local state of its own element, and arguments."""

    name: str
    focus_at: int | None
    own: tuple[tuple[str, Callable[..., bool]], ...]
    each: tuple[tuple[str, Callable[..., bool]], ...]
    situations: tuple[tuple[str, Callable[..., bool]], ...]
    rest: Callable[..., Rest] | None
    mine: Callable[..., Local] | None
    others: Callable[..., Local] | None


class Pointwise:
    """A system compiled for one focus family."""

    def __init__(self, system: System, focus: Sort) -> None:
        self.system = system
        self.focus = focus
        self.families = system.families
        self.rigid = system.rigid
        self.local = tuple(s for s in system.state if focus in s.domain)
        self.elsewhere = tuple(s for s in system.state if focus not in s.domain)
        for symbol in system.symbols:
            self._check_shape(symbol)
        self.actions = {action.name: self._compile(action) for action in system.actions}
        self.unborn: Local = tuple(self._start(symbol) for symbol in self.local)

    # Growing.

    def empty(self, constants: dict[str, int]) -> tuple[Frame, World]:
        """Return the frame without elements and the initial world; `constants` by name."""
        rows = tuple(
            (constants[symbol.name],) if not symbol.domain else () for symbol in self.rigid
        )
        rest = tuple(
            (self._start(symbol),) if not symbol.domain else () for symbol in self.elsewhere
        )
        return Frame((0,) * len(self.families), rows), (rest, ())

    def grow(self, frame: Frame, family: Sort, properties: dict[str, int]) -> Frame:
        """Return the frame with one more element of a family.

        `properties` gives, for each rigid symbol whose last index is of the family, its value or
        its bit mask over the first index. Relations whose *first* index is the family are completed
        by `relate`.
        """
        place = self.families.index(family)
        sizes = tuple(size + (i == place) for i, size in enumerate(frame.sizes))
        rows = tuple(
            (*row, properties[symbol.name]) if symbol.domain[-1:] == (family,) else row
            for symbol, row in zip(self.rigid, frame.rows, strict=True)
        )
        return Frame(sizes, rows)

    def relate(self, frame: Frame, name: str, first: int, lasts: Iterable[int]) -> Frame:
        """Return the frame in which element `first` is related to each of `lasts`."""
        place = next(i for i, symbol in enumerate(self.rigid) if symbol.name == name)
        row = list(frame.rows[place])
        for last in lasts:
            row[last] |= 1 << first
        return Frame(frame.sizes, (*frame.rows[:place], tuple(row), *frame.rows[place + 1 :]))

    def grown(self, world: World, family: Sort) -> World:
        """Return the world with one more element of a family, in its initial state."""
        rest, entries = world
        if family is self.focus:
            return rest, (*entries, frozenset((self.unborn,)))
        return (
            tuple(
                (*row, self._start(symbol)) if symbol.domain == (family,) else row
                for symbol, row in zip(self.elsewhere, rest, strict=True)
            ),
            entries,
        )

    # Stepping.

    def take(
        self,
        frame: Frame,
        world: World,
        name: str,
        arguments: Arguments,
        tolerated: frozenset[str] = frozenset(),
    ) -> tuple[list[tuple[World, frozenset[str]]], list[Blame]]:
        """Take an action in a world.

        Returns the worlds it can lead to, each with the tolerated labels that it did not keep, and
        what was to blame in each case that led nowhere.
        """
        code = self.actions[name]
        rest, entries = world
        results: list[tuple[World, frozenset[str]]] = []
        blames: list[Blame] = []
        at = None if code.focus_at is None else arguments[code.focus_at]
        cases: Iterable[Local | None] = (None,) if at is None else entries[at]
        for own in cases:
            restricted, blame = _restrict(code, frame, world, own, at, arguments)
            if blame.keys() <= tolerated:
                after = _update(code, frame, rest, restricted, own, at, arguments)
                results.append((after, frozenset(blame)))
            else:
                blames.append({k: v for k, v in blame.items() if k not in tolerated})
        return results, blames

    def exercised(
        self, frame: Frame, world: World, name: str, arguments: Arguments
    ) -> Iterable[str]:
        """Yield the labels whose situation an action meets in one possibility of a world."""
        rest, entries = world
        chosen = [next(iter(possible)) for possible in entries]
        for label, holds in self.actions[name].situations:
            if holds(frame.rows, frame.sizes, rest, chosen, *arguments):
                yield label

    # Compiling.

    def _check_shape(self, symbol: Symbol) -> None:
        arity = len(symbol.domain)
        if arity > 2 or (arity == 2 and symbol.range is not Bool):
            raise ModelError(
                f"{symbol}: only maps of one index and relations of two can be followed"
            )
        if self.focus in symbol.domain[:-1] and not symbol.rigid:
            raise ModelError(f"{symbol}: write {self.focus.__name__} as the last index")
        if arity == 2 and not symbol.rigid and self.focus not in symbol.domain:
            raise ModelError(f"{symbol}: a relation that changes must have {self.focus.__name__}")

    def _start(self, symbol: Symbol) -> int:
        """Return the initial value, 0 where the model leaves it open."""
        body = self.system.initial[symbol].body
        return int(cast("int", body.payload)) if body.op == "constant" else 0

    def _read(self, symbol: Symbol, indices: list[str]) -> str:
        if symbol.rigid:
            place = self.rigid.index(symbol)
            if len(indices) == 2:
                return f"(F[{place}][{indices[1]}] >> {indices[0]} & 1)"
            return f"F[{place}][{indices[0] if indices else 0}]"
        if symbol in self.elsewhere:
            return f"N[{self.elsewhere.index(symbol)}][{indices[0] if indices else 0}]"
        place = self.local.index(symbol)
        state = {"own": "L", "f": "M"}.get(indices[-1])
        if state is None:
            raise ModelError(
                f"{symbol} is read at {indices[-1]}: a formula may look at the element that the "
                f"action is about and at one other {self.focus.__name__}, never at two others"
            )
        return (
            f"{state}[{place}]" if len(indices) == 1 else f"({state}[{place}] >> {indices[0]} & 1)"
        )

    def _read_chosen(self, symbol: Symbol, indices: list[str]) -> str:
        if symbol in self.local:
            cell = f"E[{indices[-1]}][{self.local.index(symbol)}]"
            return cell if len(indices) == 1 else f"({cell} >> {indices[0]} & 1)"
        return self._read(symbol, indices)

    def _domain(self, sort: Sort) -> str:
        return f"range(S[{self.families.index(sort)}])"

    def _compile(self, action: Action) -> Compiled:
        parameters = action.parameters
        if any(isinstance(parameter, Symbol) for parameter in parameters):
            raise ModelError(f"{action.name}: set parameters cannot be followed")
        terms = cast("tuple[Term, ...]", parameters)
        focused = [i for i, term in enumerate(terms) if type(term) is self.focus]
        if len(focused) > 1:
            raise ModelError(f"{action.name}: it is about two of the family {self.focus.__name__}")
        focus_at = focused[0] if focused else None
        names = {
            term: "own" if i == focus_at else f"a{i}_{cast('tuple[str, int]', term.payload)[0]}"
            for i, term in enumerate(terms)
        }
        arguments = [names[term] for term in terms]
        own: list[tuple[str, Callable[..., bool]]] = []
        each: list[tuple[str, Callable[..., bool]]] = []
        one = PythonText(self._read, self._domain)
        for guard in action.guards:
            for label, variable, body in _conjuncts(guard, self.focus):
                text = one.expression(body, names if variable is None else names | {variable: "f"})
                if variable is None:
                    own.append((label, _function(["F", "S", "N", "L", *arguments], text)))
                else:
                    each.append(
                        (label, _function(["F", "S", "N", "L", "f", "M", *arguments], text))
                    )
        chosen = PythonText(self._read_chosen, self._domain)
        situations = tuple(
            (
                situation.label,
                _function(
                    ["F", "S", "N", "E", *arguments], chosen.expression(situation.term, names)
                ),
            )
            for situation in action.situations
        )
        mine, others = self._local_updates(action, names, arguments, focus_at)
        return Compiled(
            action.name,
            focus_at,
            tuple(own),
            tuple(each),
            situations,
            self._rest_update(action, names, arguments),
            mine,
            others,
        )

    def _rest_update(
        self, action: Action, names: dict[Term, str], arguments: list[str]
    ) -> Callable[..., Rest] | None:
        if not any(symbol in action.updates for symbol in self.elsewhere):
            return None
        text = PythonText(self._read, self._domain)
        rows = []
        for place, symbol in enumerate(self.elsewhere):
            function = action.updates.get(symbol)
            if function is None:
                rows.append(f"N[{place}]")
            elif not symbol.domain:
                rows.append(f"({text.number(function.body, names)},)")
            else:
                index = fresh(symbol.domain[0], "x")
                value = text.number(function.at(index), names | {index: "x"})
                rows.append(f"tuple([{value} for x in {self._domain(symbol.domain[0])}])")
        return _function(["F", "S", "N", "L", *arguments], f"({', '.join(rows)},)")

    def _local_updates(
        self, action: Action, names: dict[Term, str], arguments: list[str], focus_at: int | None
    ) -> tuple[Callable[..., Local] | None, Callable[..., Local] | None]:
        if not any(symbol in action.updates for symbol in self.local):
            return None, None
        about = None if focus_at is None else cast("Term", action.parameters[focus_at])
        mine = others = None
        if about is not None:
            cells = [self._cell(s, action.updates.get(s), about, names, "L") for s in self.local]
            mine = _function(["F", "S", "N", "L", *arguments], f"({', '.join(cells)},)")
        other = fresh(self.focus, "f")
        functions: dict[Symbol, Function] = {}
        for symbol, function in action.updates.items():
            if symbol in self.local:
                apart = _apart(function, other, about)
                if not _is_same(symbol, apart):
                    functions[symbol] = apart
        if functions:
            bound = names | {other: "f"}
            cells = [self._cell(s, functions.get(s), other, bound, "M") for s in self.local]
            others = _function(["F", "S", "N", "L", "f", "M", *arguments], f"({', '.join(cells)},)")
        return mine, others

    def _cell(
        self, symbol: Symbol, function: Function | None, at: Term, names: dict[Term, str], old: str
    ) -> str:
        place = self.local.index(symbol)
        if function is None:
            return f"{old}[{place}]"
        text = PythonText(self._read, self._domain)
        if len(symbol.domain) == 1:
            return text.number(function.at(at), names)
        index = fresh(symbol.domain[0], "x")
        value = text.expression(function.at(index, at), names | {index: "x"})
        return f"sum([1 << x for x in {self._domain(symbol.domain[0])} if {value}])"


def merged(worlds: Iterable[World]) -> frozenset[World]:
    """Fold worlds that differ in one element's possibilities into one: nothing is lost."""
    found = set(worlds)
    changed = len(found) > 1
    while changed:
        changed = False
        ordered = sorted(found, key=repr)
        for i, (rest, entries) in enumerate(ordered):
            for other_rest, other_entries in ordered[i + 1 :]:
                if rest != other_rest:
                    continue
                pairs = zip(entries, other_entries, strict=True)
                different = [k for k, (mine, yours) in enumerate(pairs) if mine != yours]
                if len(different) == 1:
                    k = different[0]
                    both = (*entries[:k], entries[k] | other_entries[k], *entries[k + 1 :])
                    found -= {(rest, entries), (other_rest, other_entries)}
                    found.add((rest, both))
                    changed = True
                    break
            if changed:
                break
    return frozenset(found)


def _restrict(
    code: Compiled,
    frame: Frame,
    world: World,
    own: Local | None,
    at: int | None,
    arguments: Arguments,
) -> tuple[list[frozenset[Local]], Blame]:
    """Return what each element may be if all guards hold, and which of them cannot."""
    rows, sizes = frame.rows, frame.sizes
    rest, entries = world
    blame: Blame = {
        label: () for label, holds in code.own if not holds(rows, sizes, rest, own, *arguments)
    }
    possible = list(entries)
    if at is not None and own is not None:
        possible[at] = frozenset((own,))
    for label, holds in code.each:
        for f, locals_ in enumerate(possible):
            kept = [m for m in locals_ if holds(rows, sizes, rest, own, f, m, *arguments)]
            if not kept:
                blame[label] = (*blame.get(label, ()), f)
            elif len(kept) < len(locals_):
                possible[f] = frozenset(kept)
    return possible, blame


def _update(
    code: Compiled,
    frame: Frame,
    rest: Rest,
    possible: list[frozenset[Local]],
    own: Local | None,
    at: int | None,
    arguments: Arguments,
) -> World:
    rows, sizes = frame.rows, frame.sizes
    after = list(possible)
    if code.others is not None:
        others = code.others
        for f, locals_ in enumerate(possible):
            if f != at:
                after[f] = frozenset(
                    [others(rows, sizes, rest, own, f, m, *arguments) for m in locals_]
                )
    if at is not None and code.mine is not None:
        after[at] = frozenset((code.mine(rows, sizes, rest, own, *arguments),))
    new_rest = rest if code.rest is None else code.rest(rows, sizes, rest, own, *arguments)
    return new_rest, tuple(after)


def _conjuncts(guard: Guard, focus: Sort) -> Iterable[tuple[str, Term | None, Bool]]:
    """Yield a guard's conjuncts, each with the focus variable that it ranges over, if it does."""
    stack = [guard.term]
    while stack:
        term = stack.pop()
        if term.op == "and":
            stack.extend(cast("tuple[Bool, ...]", term.args))
            continue
        body, universal = term, term.op == "forall"
        if term.op == "not" and term.args[0].op == "exists":
            body, universal = cast("Bool", term.args[0]), True
        if not universal:
            yield guard.label, None, term
            continue
        bound = cast("tuple[Term, ...]", body.payload)
        inner = cast("Bool", body.args[0])
        inner = negation(inner) if term.op == "not" else inner
        focused = [variable for variable in bound if type(variable) is focus]
        if not focused:
            yield guard.label, None, term
        elif len(focused) == 1:
            others = tuple(variable for variable in bound if variable is not focused[0])
            yield guard.label, focused[0], quantify("forall", others, inner)
        else:
            raise ModelError(f"{guard.label or term!r}: it relates two of {focus.__name__}")


def _apart(function: Function, other: Term, about: Term | None) -> Function:
    """Return the function of an `other` that is known to differ from what the action is about."""
    parameters = (*function.parameters[:-1], other)
    body = function.at(*parameters)
    if about is None:
        return Function(parameters, body)
    meeting = {id(other), id(about)}

    def visit(term: Term) -> Term:
        if term.op == "equal" and {id(arg) for arg in term.args} == meeting:
            return FALSE
        return rebuild(term, tuple(visit(arg) for arg in term.args))

    return Function(parameters, visit(body))


def _is_same(symbol: Symbol, function: Function) -> bool:
    return function.body is read(symbol, function.parameters)


def _function(parameters: list[str], expression: str) -> Callable[..., Any]:
    source = f"lambda {', '.join(parameters)}: {expression}"
    return cast("Callable[..., Any]", eval(source, {}))  # noqa: S307 (text printed from our own terms)
