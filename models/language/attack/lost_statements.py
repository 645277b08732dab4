"""The statements of a model that a changed step does not keep.

Owns the order of the questions for one step: small scopes, the general proof, other scopes. Each
has a limit in Z3's own steps, so the answer depends on no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import z3

from brokerproof.models.language.attack.mutants import Mutant
from brokerproof.models.language.attack.outcomes import SIZES
from brokerproof.models.language.core.model import Action, System
from brokerproof.models.language.core.rewriting import symbols_read
from brokerproof.models.language.core.scope import families
from brokerproof.models.language.core.systems import Ghost, Statement
from brokerproof.models.language.core.terms import Bool, Sort, disjunction, negation
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.prove.counting import called, moves_wrongly
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    STEPS_FEW,
    STEPS_FIRST,
    after,
    asked,
    assumed,
    excluded_another_way,
    named,
    small_sizes,
    taken,
)

Lost: TypeAlias = tuple[tuple[str, ...], tuple[Step, ...]]
"""The statements that an action breaks, with a state and the step if they are known."""


def lost_by_step(system: System, action: Action, statements: Iterable[Statement]) -> Lost | None:
    """Return one of the invariants, or a counter, that the action does not keep.

    Small scopes come first, because Z3 decides there, and again in other sizes if the general proof
    fails. A statement that is neither proved nor refuted counts as kept: no mutant is refuted by a
    timeout.
    """
    changed = Mutant("", system.action(action.name), action).within(system)
    broken = _broken(system, action, statements)
    if found := _lost_in_scopes(changed, action, broken):
        return found
    unproved = {}
    for stated, formula in broken.items():
        few = named(system, stated)
        if few and asked(changed, [*few, *taken(action), formula], STEPS_FIRST)[0] == z3.unsat:
            continue
        everything = [*assumed(system), *taken(action), formula]
        verdict, _ = asked(changed, everything, STEPS_FIRST)
        if verdict == z3.sat:
            return (_named(stated),), ()
        if verdict == z3.unknown and not excluded_another_way(changed, everything):
            unproved[stated] = formula
    for sizes in small_sizes(system) if unproved else ():
        if sizes not in _alike(system) and (found := _refuted(changed, action, unproved, sizes)):
            return found
    return None


def lost_in_scopes(system: System, action: Action, statements: Iterable[Statement]) -> Lost | None:
    """Return one of the invariants, or a counter, that the action does not keep in small scopes."""
    return _lost_in_scopes(system, action, _broken(system, action, statements))


Broken: TypeAlias = Mapping[Statement | Ghost, Bool]
"""Invariants and counters, with the formula that the action breaks each."""


def _broken(system: System, action: Action, statements: Iterable[Statement]) -> Broken:
    broken: dict[Statement | Ghost, Bool] = {
        statement: negation(after(statement.term, action.updates))
        for statement in statements
        if action.updates.keys() & symbols_read(statement.term)
    }
    return broken | {ghost: moves_wrongly(ghost, action) for ghost in system.ghosts}


def _lost_in_scopes(changed: System, action: Action, broken: Broken) -> Lost | None:
    found = (_refuted(changed, action, broken, sizes) for sizes in _alike(changed))
    return next(filter(None, found), None)


def _alike(system: System) -> list[dict[Sort, int]]:
    return [dict.fromkeys(families(system), size) for size in (1, *SIZES)]


def _refuted(
    changed: System, action: Action, broken: Broken, sizes: dict[Sort, int]
) -> Lost | None:
    """Return a broken invariant, otherwise a broken counter, in a scope of these sizes."""
    premises = [*assumed(changed), *taken(action)]
    statements = [formula for stated, formula in broken.items() if isinstance(stated, Statement)]
    question = Question(changed, sizes, action)
    if question.asked([*premises, disjunction(statements)], STEPS_FEW)[0] == z3.sat:
        return question.broken()
    for stated, formula in broken.items():
        if isinstance(stated, Ghost):
            question = Question(changed, sizes, action)
            if question.asked([*premises, formula], STEPS_FEW)[0] == z3.sat:
                return (called(stated),), question.shown()
    return None


def _named(stated: Statement | Ghost) -> str:
    return stated.name if isinstance(stated, Statement) else called(stated)
