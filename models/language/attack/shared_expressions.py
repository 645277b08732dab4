"""Mutants of the named expressions that steps and statements share.

A mistake in such an expression changes a step, and likewise the invariant that should refuse it.
Owns how these mutants are made, by one more run of the model's text with another method of that
name, and their outcomes, in the order of `mutation_testing`.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar, cast

import z3

from brokerproof.models.language.attack.frame import (
    broken_at_the_start,
    lost_to,
    refuted,
    side_by_side,
)
from brokerproof.models.language.attack.lost_statements import lost_in_scopes
from brokerproof.models.language.attack.mutants import OtherExpression, variants, with_numbers
from brokerproof.models.language.attack.outcomes import JudgedMutant, Refuter, lost_by
from brokerproof.models.language.attack.progress import Held, judged_in_the_end
from brokerproof.models.language.core.model import (
    Model,
    ModelError,
    System,
    Trace,
    retrace,
    run,
    tracing,
)
from brokerproof.models.language.core.rewriting import substitute
from brokerproof.models.language.core.source_check import ROLE
from brokerproof.models.language.core.systems import Action, LeadsTo, Statement
from brokerproof.models.language.core.terms import Sort, Term, equal, fresh, lift, negation
from brokerproof.models.language.prove.cache import canonical
from brokerproof.models.language.prove.z3_queries import STEPS_FIRST, asked, assumed

Part = TypeVar("Part")
Named = TypeVar("Named", Action, Statement, LeadsTo)

Texts: TypeAlias = Mapping[int, str]
"""The text of each part of the original system, by the part's identity."""


class Expression(NamedTuple):
    """A method of a model that names an expression, with a variable for each parameter."""

    signature: inspect.Signature
    parameters: dict[str, Term]
    body: Term


def other_expressions(
    model: type[Model], system: System, only: Container[str] | None = None
) -> tuple[OtherExpression, ...]:
    """Return the mutants of each expression that both a step and a statement of the system use.

    `system` is the model's, or a part of it. `only` has the names of the wanted expressions.
    """
    texts = {id(each): canonical(each) for each in (*_steps(system), *_statements(system))}
    every = (
        found
        for name, expression in _shared(model)
        if only is None or name in only
        for found in _others(model, system, texts, name, expression)
    )
    return tuple(with_numbers(every))


def _shared(model: type[Model]) -> Iterator[tuple[str, Expression]]:
    """Yield the expressions that the text of a step uses, and that of a statement."""
    expressions = dict(_expressions(model))
    uses: dict[str, list[Trace]] = {name: [] for name in expressions}

    def noted(name: str) -> Callable[..., object]:
        method = getattr(model, name)

        def note(*given: object, **named: object) -> object:
            uses[name].append(tracing())
            return method(*given, **named)

        return note

    retrace(model, {name: noted(name) for name in expressions})
    for name, expression in expressions.items():
        if len({bool(each.assigned or each.guards) for each in uses[name]}) > 1:
            yield name, expression


def _expressions(model: type[Model]) -> Iterator[tuple[str, Expression]]:
    """Yield the methods without a mark that return a term, and change and require nothing."""
    for name, method in inspect.getmembers(model, inspect.isfunction):
        is_static = not inspect.isfunction(inspect.getattr_static(model, name))
        if is_static or hasattr(method, ROLE) or name in vars(Model):
            continue
        signature, hints = inspect.signature(method), typing.get_type_hints(method)
        _, *names = signature.parameters
        of_any_number = inspect.getfullargspec(method).varargs
        sorts = [hints.get(each) for each in (*names, "return")]
        if of_any_number or not all(isinstance(s, type) and issubclass(s, Term) for s in sorts):
            continue
        variables = {each: fresh(cast("Sort", hints[each]), each) for each in names}
        with run() as traced:
            body = method(model.instance_, **variables)
        if not traced.assigned and not traced.guards and not traced.assumptions:
            yield name, Expression(signature, variables, body)


def _others(
    model: type[Model], system: System, texts: Texts, name: str, expression: Expression
) -> Iterator[OtherExpression]:
    for each in variants(expression.body, "any"):
        if each.term is expression.body:
            continue
        try:
            traced = retrace(model, {name: _method(expression._replace(body=each.term))})
        except ModelError:
            continue  # The language refuses it: a statement that says nothing, for instance.
        changed = _in_place_of(system, traced, texts)
        if changed is not None:
            apart = negation(equal(expression.body, each.term))
            change = f"shared: {name}: {each.change}"
            yield OtherExpression(change, name, each.part, apart, changed)


def _method(expression: Expression) -> Callable[..., Term]:
    """Return a method with this expression, read in the state that the text has come to."""

    def method(model: Model, *given: object, **named: object) -> Term:
        _, *values = expression.signature.bind(model, *given, **named).arguments.values()
        variables = expression.parameters.values()
        lifted = (lift(value, type(v)) for v, value in zip(variables, values, strict=True))
        now = tracing().assigned
        return substitute(expression.body, dict(zip(variables, lifted, strict=True)), now)

    return method


def _in_place_of(system: System, traced: System, texts: Texts) -> System | None:
    """Return the system with what differs in the other; None unless steps and statements do."""

    def same(original: Part, other: Part) -> Part:
        return original if texts[id(original)] == canonical(other) else other

    def matched(originals: Sequence[Named], others: Sequence[Named]) -> tuple[Named, ...]:
        named = {each.name: each for each in others}
        return tuple(same(each, named[each.name]) for each in originals)

    changed = dataclasses.replace(
        system,
        initial={s: same(f, traced.initial[s]) for s, f in system.initial.items()},
        actions=matched(system.actions, traced.actions),
        invariants=matched(system.invariants, traced.invariants),
        axioms=matched(system.axioms, traced.axioms),
        leads_to=matched(system.leads_to, traced.leads_to),
        ghosts=tuple(map(same, system.ghosts, traced.ghosts)),
    )
    differ = _differ(_steps(system), _steps(changed))
    return changed if differ and _differ(_statements(system), _statements(changed)) else None


def _steps(system: System) -> tuple[object, ...]:
    return (*system.actions, *system.initial.values())


def _statements(system: System) -> tuple[object, ...]:
    return (*system.invariants, *system.axioms, *system.leads_to, *system.ghosts)


def _differ(one: Iterable[object], other: Iterable[object]) -> bool:
    return not all(map(operator.is_, one, other))


def judged_expression(
    system: System,
    mutant: OtherExpression,
    refuters: Sequence[Refuter],
    where: tuple[Held, ...] = (),
) -> JudgedMutant:
    """Return the outcome of another expression."""
    name, changed = mutant.name, mutant.changed
    if asked(system, [*assumed(system), mutant.apart], STEPS_FIRST)[0] == z3.unsat:
        return JudgedMutant(name, "equivalent")
    if start := broken_at_the_start(changed):
        return lost_to(name, start)
    for action in changed.actions:
        if lost := lost_in_scopes(changed, action, changed.invariants):
            return refuted(name, changed, lost)
    if broken := lost_by(refuters, changed):
        return JudgedMutant(name, "refinement", broken)
    if labels := side_by_side(system, changed):
        return JudgedMutant(name, "requirement", labels)
    return judged_in_the_end(name, changed, where, {each.name for each in changed.actions})
