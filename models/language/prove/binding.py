"""Binding of a refinement: its functions are run once on terms, like the text of a model.

Owns the step from functions to terms, and the errors for functions that do not fit. `bind` returns
a value without functions (`Bound`), so all that a proof depends on has a text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import cast

from brokerproof.models.language.core.model import (
    Action,
    ModelError,
    SetOf,
    System,
    run,
    trace,
)
from brokerproof.models.language.core.rewriting import Function, symbols_read
from brokerproof.models.language.core.systems import Assumed
from brokerproof.models.language.core.terms import Bool, Sort, Symbol, Term, fresh, lift, read
from brokerproof.models.language.prove.cache import canonical
from brokerproof.models.language.prove.refinement import Argument, Refinement, Witness
from brokerproof.models.language.prove.refining import Bound


def bind(refinement: Refinement) -> Bound:
    """Return the refinement as terms; raises `ModelError` if its functions do not fit."""
    alone, raw = trace(refinement.concrete), trace(refinement.remembering)
    abstract = trace(refinement.abstract)
    binding = _Binding(refinement, raw, abstract)
    definitions = {symbol: binding.definition(symbol) for symbol in abstract.symbols}
    _check_rigid(refinement.name, definitions)
    history = _history(refinement.name, alone, raw, definitions)
    witnesses = {action.name: binding.witness(action) for action in raw.actions}
    assumed = {
        name: Assumed(each.text, binding.condition(each.term, raw.action(name).parameters))
        for name, each in refinement.assumptions.items()
    }
    left_out = {
        (name, each.label): binding.condition(each.where, witness.arguments)
        for name, witness in witnesses.items()
        for each in refinement.left_out
        if witness.action
        and each.label in {g.label for g in abstract.action(witness.action).guards}
    }
    return Bound(
        name=refinement.name,
        concrete=_alone(alone, raw),
        raw=raw,
        abstract=abstract,
        families=refinement.families,
        history=history,
        definitions=definitions,
        witnesses=witnesses,
        assumed=assumed,
        left_out=left_out,
        reasons={each.label: each.reason for each in refinement.left_out},
    )


def seen(argument: object) -> object:
    """Return a parameter in the form for a refinement's functions: a set can be indexed."""
    if isinstance(argument, Symbol):
        return SetOf(argument)
    return argument.at if isinstance(argument, Function) else argument


class _Binding:
    """A refinement's functions, run on the symbols of the concrete model with history."""

    def __init__(self, refinement: Refinement, raw: System, abstract: System) -> None:
        self._refinement = refinement
        self._raw = raw
        self._abstract = abstract
        self._model = refinement.remembering.instance_

    def definition(self, symbol: Symbol) -> Function:
        """Return an abstract symbol as a function of the concrete state."""
        places = tuple(fresh(self._sort(sort), sort.__name__[0].lower()) for sort in symbol.domain)
        define = self._refinement.abstraction.get(symbol.name)
        if define is not None:
            return Function(places, self._traced(define, places, self._sort(symbol.range)))
        try:
            return Function(places, read(self._raw.symbol(symbol.name), places))
        except KeyError:
            raise ModelError(f"{self._refinement.name}: {symbol} is not defined") from None

    def witness(self, action: Action) -> Witness:
        """Return the witness of an action, with sets as functions of the concrete state."""
        give = self._refinement.witnesses.get(action.name)
        if give is None:
            raise ModelError(f"{self._refinement.name}: {action.name} has no witness")
        with run():
            given = give(self._model, *map(seen, action.parameters))
            if not given.action:
                return given
            parameters = self._abstract.action(given.action).parameters
            if len(parameters) != len(given.arguments):
                wanted = f"{given.action} takes {len(parameters)} arguments"
                raise ModelError(f"{self._refinement.name}: {action.name}: {wanted}")
            pairs = zip(parameters, given.arguments, strict=True)
            return Witness(given.action, tuple(self._argument(*pair) for pair in pairs))

    def condition(self, function: Callable[..., Bool], arguments: tuple[object, ...]) -> Bool:
        """Return the value of a function for the state and these arguments."""
        return cast("Bool", self._traced(function, tuple(map(seen, arguments)), Bool))

    def _argument(self, parameter: Term | Symbol, given: Argument) -> Term | Function:
        if isinstance(parameter, Term):
            return lift(given, self._sort(type(parameter)))
        places = tuple(fresh(self._sort(sort), "e") for sort in parameter.domain)
        member = given.__getitem__ if isinstance(given, SetOf) else given
        if not callable(member):
            raise ModelError(f"{parameter} is a set: give a set or a function of its elements")
        return Function(places, lift(member(*places), Bool))

    def _traced(
        self, function: Callable[..., Term], arguments: tuple[object, ...], sort: Sort
    ) -> Term:
        with run():
            return lift(function(self._model, *arguments), sort)

    def _sort(self, sort: Sort) -> Sort:
        return self._refinement.families.get(sort, sort)


def _alone(alone: System, raw: System) -> System:
    """Return the concrete model alone, in the terms of the one with history."""
    names = {s.name for s in alone.symbols}
    names |= {s.name for s in (*alone.invariants, *alone.axioms)}
    return dataclasses.replace(
        raw,
        name=alone.name,
        symbols=tuple(s for s in raw.symbols if s.name in names),
        initial={s: f for s, f in raw.initial.items() if s.name in names},
        invariants=tuple(s for s in raw.invariants if s.name in names),
        axioms=tuple(s for s in raw.axioms if s.name in names),
        families=alone.families,
    )


def _history(
    name: str, alone: System, raw: System, definitions: dict[Symbol, Function]
) -> tuple[str, ...]:
    """Return the names of the history; raises `ModelError` if it changes what can happen."""
    names = {symbol.name for symbol in alone.symbols}
    history = tuple(s for s in raw.state if s.name not in names)
    followed = {each.body.payload for each in definitions.values() if each.body.op == "read"}
    for symbol in history:
        if symbol not in followed:
            raise ModelError(f"{name}: {symbol} is in neither model, so it is no history")
    if _start(alone, names) != _start(raw, names):
        raise ModelError(f"{name}: the history changes how the concrete model starts")
    if [a.name for a in alone.actions] != [a.name for a in raw.actions]:
        raise ModelError(f"{name}: the history adds or takes away actions")
    for action in alone.actions:
        if canonical(action) != canonical(raw.action(action.name)):
            raise ModelError(
                f"{name}: {action.name} is not the concrete model's: history hinders no step"
            )
    return tuple(symbol.name for symbol in history)


def _start(system: System, names: set[str]) -> str:
    """Return a text of the initial values of some symbols."""
    return canonical({s: f for s, f in system.initial.items() if s.name in names})


def _check_rigid(name: str, definitions: dict[Symbol, Function]) -> None:
    """Raise `ModelError` if a rigid abstract symbol is defined by symbols that change."""
    for symbol, definition in definitions.items():
        moving = [read_here for read_here in symbols_read(definition.body) if not read_here.rigid]
        if symbol.rigid and moving:
            raise ModelError(
                f"{name}: {symbol} never changes, and is read as {moving[0]}, which does"
            )
