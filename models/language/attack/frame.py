"""Mutation testing of a model's initial values and axioms.

Owns the outcome of these mutants, in the order of `mutation_testing`. A wrong initial value is
refuted by an invariant that is false there (a run of no steps), by the refinement, or by a labelled
guard that differs in a run that both systems take in step. A missing axiom is refuted by an
invariant that is lost without it, or by the refinement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import z3

from brokerproof.models.language.attack.lost_statements import Lost
from brokerproof.models.language.attack.mutants import OtherStart, WithoutAxiom
from brokerproof.models.language.attack.outcomes import SIZES, JudgedMutant, Refuter, lost_by
from brokerproof.models.language.attack.progress import Held, judged_in_the_end
from brokerproof.models.language.core.model import Action, ModelError, System
from brokerproof.models.language.core.scope import Scope, families
from brokerproof.models.language.core.terms import Bool, disjunction, negation
from brokerproof.models.language.explore.explorer import Violation
from brokerproof.models.language.explore.reaching import reached
from brokerproof.models.language.prove.counting import called, starts_wrongly
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    STEPS_FIRST,
    after,
    asked,
    assumed,
    made_different,
    taken,
)
from brokerproof.models.language.read.plain import PlainReading, State

STARTS_MAX = 200
"""The most initial states from which two systems run in step."""

PAIRS_MAX = 2_000
"""The most pairs of states to which two runs in step come."""


def judged_frame(
    system: System,
    mutant: OtherStart | WithoutAxiom,
    refuters: Sequence[Refuter],
    where: tuple[Held, ...] = (),
) -> JudgedMutant:
    """Return the outcome of a changed initial value or a missing axiom."""
    changed = mutant.within(system)
    lost = broken_at_the_start(changed)
    if lost:
        return lost_to(mutant.name, lost)
    if isinstance(mutant, WithoutAxiom):
        for action in changed.actions:
            if names := _broken_by(changed, action):
                return refuted(mutant.name, changed, (names, ()))
    if _is_the_same(system, mutant):
        return JudgedMutant(mutant.name, "equivalent")
    if broken := lost_by(refuters, changed):
        return JudgedMutant(mutant.name, "refinement", broken)
    if isinstance(mutant, OtherStart) and (labels := side_by_side(system, changed)):
        return JudgedMutant(mutant.name, "requirement", labels)
    return judged_in_the_end(mutant.name, changed, where)


def refuted(name: str, changed: System, lost: Lost) -> JudgedMutant:
    """Return a mutant that a run refutes or, if none is found, the step that breaks a statement."""
    found = reached(changed)
    return lost_to(name, found) if found else JudgedMutant(name, "induction", *lost)


def lost_to(name: str, violation: Violation) -> JudgedMutant:
    """Return a mutant that a run refutes."""
    return JudgedMutant(name, "reachable", (violation.invariant,), violation.trace)


def _axioms(system: System) -> list[Bool]:
    return [axiom.term for axiom in system.axioms]


def broken_at_the_start(changed: System) -> Violation | None:
    """Return a run of no steps that breaks an invariant, or a counter that starts wrongly."""
    broken = disjunction(negation(after(s.term, changed.initial)) for s in changed.invariants)
    for size in SIZES:
        question = Question(changed, dict.fromkeys(families(changed), size), None)
        if question.asked([*_axioms(changed), broken], STEPS_FIRST)[0] == z3.sat:
            names, steps = question.broken()
            return Violation(names[0], steps)
        for ghost in changed.ghosts:
            question = Question(changed, dict.fromkeys(families(changed), size), None)
            wrong = [*_axioms(changed), starts_wrongly(changed, ghost)]
            if question.asked(wrong, STEPS_FIRST)[0] == z3.sat:
                return Violation(called(ghost), question.shown())
    return None


def _broken_by(changed: System, action: Action) -> tuple[str, ...]:
    """Return the invariants that an action does not keep, in the smallest scope or beyond."""
    premises = [*assumed(changed), *taken(action)]
    broken = {s.name: negation(after(s.term, action.updates)) for s in changed.invariants}
    for size in SIZES:
        question = Question(changed, dict.fromkeys(families(changed), size), action)
        if question.asked([*premises, disjunction(broken.values())], STEPS_FIRST)[0] == z3.sat:
            return question.broken()[0]
    return tuple(
        name
        for name, formula in broken.items()
        if asked(changed, [*premises, formula], STEPS_FIRST)[0] != z3.unsat
    )


def _is_the_same(system: System, mutant: OtherStart | WithoutAxiom) -> bool:
    """Whether the mutant has the same initial states, or its axiom excludes no state alone."""
    changed = mutant.within(system)
    if isinstance(mutant, OtherStart):
        apart = made_different(mutant.symbol, system.initial, changed.initial)
    else:
        apart = negation(mutant.axiom.term)
    return bool(asked(changed, [*_axioms(changed), apart], STEPS_FIRST)[0] == z3.unsat)


def side_by_side(system: System, changed: System) -> tuple[str, ...]:
    """Return the labelled guards on which the two systems differ after the same steps.

    Both start with the same rigid symbols and take the same steps, in scopes of one element of each
    family and then of two, from `STARTS_MAX` starts, up to `PAIRS_MAX` pairs of states.
    """
    labels = {guard.label for action in system.actions for guard in action.guards if guard.label}
    for size in (1, 2) if labels else ():
        scope = Scope(dict.fromkeys(families(system), size), range(-1, size + 2))
        one, other = PlainReading(system, scope), PlainReading(changed, scope)
        for mine, theirs in _pairs(one, other):
            for action in system.actions:
                for arguments in one.arguments(action.name):
                    failing = set(one.failing(action.name, mine, arguments))
                    unlike = failing ^ set(other.failing(action.name, theirs, arguments))
                    if unlike & labels:
                        return tuple(sorted(unlike & labels))
    return ()


def _pairs(one: PlainReading, other: PlainReading) -> Iterator[tuple[State, State]]:
    """Yield pairs of different states that the same steps lead to, the nearest first."""
    ahead: list[tuple[State, State]] = []
    seen: set[tuple[State, State]] = set()

    def found(pair: tuple[State, State]) -> None:
        if pair not in seen and pair[0] != pair[1] and len(seen) < PAIRS_MAX:
            seen.add(pair)
            ahead.append(pair)

    for state in other.initial_states(STARTS_MAX):
        found((one.initial_state(state), state))
    for mine, theirs in ahead:
        yield mine, theirs
        for action in one.system.actions:
            for arguments in one.arguments(action.name):
                possible = one.enabled(action.name, mine, arguments)
                if possible and other.enabled(action.name, theirs, arguments):
                    try:
                        first = one.step(action.name, mine, arguments)
                        found((first, other.step(action.name, theirs, arguments)))
                    except ModelError:
                        continue  # An integer has left the scope.
