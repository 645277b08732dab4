"""A system compiled for the pointwise reading: each action as a few Python functions.

Owns the printing (which symbol is read where), and the check that makes the reading exact: a
formula reads the action's own element and each other one alone. A guard that breaks this rule is
*wide* and needs certain worlds. Guards and updates have two forms. In a certain world, `lawful` and
`after` each do all of it in one call. In an uncertain one, or to find reasons, they come one by
one, for one possibility of one element at a time.

The functions take F and S (the frame's rows and sizes), N (the state outside the focus), L (the
local state of the action's own element), f and M (another element and its local state), E (the
local states of all), and the action's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from brokerproof.models.language.core.model import Action, Guard, System
from brokerproof.models.language.core.rewriting import Function, rebuild
from brokerproof.models.language.core.terms import (
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
from brokerproof.models.language.read.python_text import PythonText

Local: TypeAlias = tuple[int, ...]
Rest: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Compiled:
    """An action as functions of frame, rest, the local state of its own element, and arguments."""

    name: str
    focus_at: int | None
    own: tuple[tuple[str, Callable[..., bool]], ...]
    each: tuple[tuple[str, Callable[..., bool]], ...]
    wide: tuple[tuple[str, Callable[..., bool]], ...]
    met: Callable[..., list[str]] | None
    rest: Callable[..., Rest] | None
    mine: Callable[..., Local] | None
    others: Callable[..., Local] | None
    lawful: Callable[..., bool]
    after: Callable[..., tuple[Rest, tuple[Local, ...]]]


@dataclass(frozen=True)
class _Texts:
    """The printed parts of an action, before they are functions."""

    own: list[tuple[str, str]]
    each: list[tuple[str, str]]
    wide: list[tuple[str, str]]
    rest: str | None
    mine: str | None
    others: str | None


class _RelatesTwo(ModelError):
    """A formula reads two elements besides the action's own."""


class Compiler:
    """Prints the actions of one system for one focus family."""

    def __init__(self, system: System, focus: Sort) -> None:
        self.focus = focus
        self.families = system.families
        self.rigid = system.rigid
        self.local = tuple(s for s in system.state if focus in s.domain)
        self.elsewhere = tuple(s for s in system.state if focus not in s.domain)
        for symbol in system.symbols:
            self._check_shape(symbol)

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
            raise _RelatesTwo(
                f"{symbol} is read at {indices[-1]}: an update may look at the element that the "
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

    def compile(self, action: Action) -> Compiled:
        """Return the functions of an action; raises `ModelError` if it cannot be followed."""
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
        texts = _Texts(
            *self._guards(action, names),
            self._rest_update(action, names),
            *self._local_updates(action, names, focus_at),
        )
        chosen = PythonText(self._read_chosen, self._domain)
        in_one = ["F", "S", "N", "L", *arguments]
        of_another = ["F", "S", "N", "L", "f", "M", *arguments]
        of_all = ["F", "S", "N", "E", *arguments]
        return Compiled(
            name=action.name,
            focus_at=focus_at,
            own=tuple((label, _function(in_one, text)) for label, text in texts.own),
            each=tuple((label, _function(of_another, text)) for label, text in texts.each),
            wide=tuple((label, _function(of_all, text)) for label, text in texts.wide),
            met=_met(
                [(each.label, chosen.expression(each.term, names)) for each in action.situations],
                of_all,
            ),
            rest=None if texts.rest is None else _function(in_one, texts.rest),
            mine=None if texts.mine is None else _function(in_one, texts.mine),
            others=None if texts.others is None else _function(of_another, texts.others),
            lawful=_lawful(texts, arguments),
            after=_function(["F", "S", "N", "E", "L", *arguments], _after(texts)),
        )

    def _guards(
        self, action: Action, names: dict[Term, str]
    ) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[tuple[str, str]]]:
        """Return label and text of the guards: on the own element, on each other one, and wide."""
        own: list[tuple[str, str]] = []
        each: list[tuple[str, str]] = []
        wide: list[tuple[str, str]] = []
        one = PythonText(self._read, self._domain)
        chosen = PythonText(self._read_chosen, self._domain)
        for guard in action.guards:
            try:
                conjuncts = [
                    (label, v, one.expression(body, names | ({v: "f"} if v is not None else {})))
                    for label, v, body in _conjuncts(guard, self.focus)
                ]
            except _RelatesTwo:
                wide.append((guard.label, chosen.expression(guard.term, names)))
                continue
            own += [(label, text) for label, variable, text in conjuncts if variable is None]
            each += [(label, text) for label, variable, text in conjuncts if variable is not None]
        return own, each, wide

    def _rest_update(self, action: Action, names: dict[Term, str]) -> str | None:
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
        return f"({', '.join(rows)},)"

    def _local_updates(
        self, action: Action, names: dict[Term, str], focus_at: int | None
    ) -> tuple[str | None, str | None]:
        """Return the updates of the action's own element, and of another, as texts."""
        if not any(symbol in action.updates for symbol in self.local):
            return None, None
        about = None if focus_at is None else cast("Term", action.parameters[focus_at])
        mine = others = None
        if about is not None:
            cells = [self._cell(s, action.updates.get(s), about, names, "L") for s in self.local]
            mine = f"({', '.join(cells)},)"
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
            others = f"({', '.join(cells)},)"
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


def _conjuncts(guard: Guard, focus: Sort) -> Iterable[tuple[str, Term | None, Bool]]:
    """Yield a guard's conjuncts, each with the focus variable that it ranges over, if any."""
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
            raise _RelatesTwo(f"{guard.label or term!r}: it relates two of {focus.__name__}")


def _apart(function: Function, other: Term, about: Term | None) -> Function:
    """Return the function for an `other` element that differs from the action's own."""
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


def _lawful(texts: _Texts, arguments: list[str]) -> Callable[..., bool]:
    """Return all guards as one function, for a certain world."""
    lines = [f"def lawful({', '.join(['F', 'S', 'N', 'E', 'L', *arguments])}):"]
    lines += [f"    if not {text}: return False" for _, text in texts.own]
    if texts.each:
        lines.append("    for f, M in enumerate(E):")
        lines += [f"        if not {text}: return False" for _, text in texts.each]
    lines += [f"    if not {text}: return False" for _, text in texts.wide]
    lines.append("    return True")
    names: dict[str, Any] = {}
    exec("\n".join(lines), {}, names)  # noqa: S102 (text printed from our own terms)
    return cast("Callable[..., bool]", names["lawful"])


def _met(
    situations: list[tuple[str, str]], parameters: list[str]
) -> Callable[..., list[str]] | None:
    """Return the function that lists the labels of the situations met; None without any."""
    if not situations:
        return None
    pairs = "".join(f"({label!r}, {text}), " for label, text in situations)
    return _function(parameters, f"[label for label, holds in ({pairs}) if holds]")


def _after(texts: _Texts) -> str:
    """Return all updates as one expression, for a certain world."""
    entries = "E"
    if texts.others is not None and texts.mine is not None:
        entries = f"tuple([{texts.mine} if f == own else {texts.others} for f, M in enumerate(E)])"
    elif texts.others is not None:
        entries = f"tuple([{texts.others} for f, M in enumerate(E)])"
    elif texts.mine is not None:
        entries = f"E[:own] + ({texts.mine},) + E[own + 1:]"
    return f"({texts.rest or 'N'}, {entries})"


def _function(parameters: list[str], expression: str) -> Callable[..., Any]:
    source = f"lambda {', '.join(parameters)}: {expression}"
    return cast("Callable[..., Any]", eval(source, {}))  # noqa: S307 (text printed from our own terms)
