"""The attack: what would still be proved if a guard or an update were wrong.

Owns the judgement of each mutant (`mutants` makes them) and nothing about how it is printed. In
this order: an invariant that the mutated action does not keep any more refutes the mutant, by a run
from the beginning where a small scope has one (*reachable*), and else by a state and a step
(*induction*); a mutant that does the same in every state where the invariants hold is no mutant
(*equivalent*); one that the refinement of the model does not survive is refuted by that
(*refinement*). What is left weakens a guard that is itself a promise, or changes what a guard that
is a promise says of the next step (*requirement*): no invariant is needed for those, since the gate
holds candidates against such guards one by one, and its planted faults hold the gate. All others
are *survivors*: nothing that is stated of the model says that this part of it is right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import z3

from brokerproof.models.language.model import Action, ModelError, System
from brokerproof.models.language.mutants import Mutant, mutants
from brokerproof.models.language.questions import (
    STEPS_FIRST,
    after,
    asked,
    assumed,
    decided,
    made_different,
)
from brokerproof.models.language.reaching import reached
from brokerproof.models.language.rewriting import substitute, subterms
from brokerproof.models.language.scope import families
from brokerproof.models.language.terms import Bool, Symbol, Term, disjunction, fresh, negation
from brokerproof.models.language.traces import Step
from brokerproof.models.language.witness import Question

Fate: TypeAlias = Literal[
    "reachable", "induction", "equivalent", "refinement", "requirement", "survivor"
]

SIZES = (2, 3)
"""How many elements of each family a refutation is searched for with."""


@dataclass(frozen=True)
class Judged:
    """A mutant's name, what became of it, by what, and the run or the step that shows it.

    `by` names the invariants, the obligations or the requirements; for a survivor, the reason why
    it is harmless, and nothing where none is known.
    """

    name: str
    fate: Fate
    by: tuple[str, ...] = ()
    witness: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Attack:
    """What became of all mutants of a system; `idle` are reasons for what is no survivor."""

    system: str
    judged: tuple[Judged, ...]
    idle: tuple[str, ...]
    seconds: float = field(compare=False)

    @property
    def unexplained(self) -> tuple[Judged, ...]:
        """The survivors without a reason."""
        return tuple(each for each in self.judged if each.fate == "survivor" and not each.by)

    @property
    def complete(self) -> bool:
        """Whether each mutant is refuted or harmless for a reason that is still needed."""
        return not self.unexplained and not self.idle


Refuter: TypeAlias = Callable[[Action, Action], tuple[str, ...]]
"""Says which obligations of a refinement fail when an action is replaced by another."""


def attack(
    system: System,
    reasons: Mapping[str, str],
    refuter: Refuter | None = None,
    report: Callable[[Judged], None] | None = None,
) -> Attack:
    """Judge every mutant; `reasons` are why survivors are harmless, by name."""
    started = time.perf_counter()
    judged = []
    for mutant in mutants(system):
        judged.append(_judged(system, mutant, reasons, refuter))
        if report:
            report(judged[-1])
    survivors = {each.name for each in judged if each.fate == "survivor"}
    idle = tuple(name for name in reasons if name not in survivors)
    return Attack(system.name, tuple(judged), idle, time.perf_counter() - started)


def _judged(
    system: System, mutant: Mutant, reasons: Mapping[str, str], refuter: Refuter | None
) -> Judged:
    lost = _lost(system, mutant.action)
    if lost:
        run = reached(mutant.within(system))
        if run:
            return Judged(mutant.name, "reachable", (run.invariant,), run.trace)
        return Judged(mutant.name, "induction", *lost)
    if _is_equivalent(system, mutant):
        return Judged(mutant.name, "equivalent")
    if refuter and (broken := refuter(mutant.original, mutant.action)):
        return Judged(mutant.name, "refinement", broken)
    if mutant.guard:
        return Judged(mutant.name, "requirement", (mutant.guard,))
    if labels := tuple(sorted(_changed_labels(system, mutant))):
        return Judged(mutant.name, "requirement", labels)
    reason = reasons.get(mutant.name)
    return Judged(mutant.name, "survivor", (reason,) if reason else ())


def _lost(system: System, action: Action) -> tuple[tuple[str, ...], tuple[Step, ...]] | None:
    """Return an invariant that the action does not keep, with a state and the step."""
    concerned = [s for s in system.invariants if _symbols(s.term) & action.updates.keys()]
    broken = {s: negation(after(s.term, action.updates)) for s in concerned}
    if not broken:
        return None
    premises = [*assumed(system), action.guard]
    changed = Mutant("", system.action(action.name), action).within(system)
    for size in SIZES:
        question = Question(changed, dict.fromkeys(families(system), size), action)
        if question.asked([*premises, disjunction(broken.values())], STEPS_FIRST)[0] == z3.sat:
            names, witness = question.broken()
            return names, witness
    for statement, formula in broken.items():
        found = decided(changed, [*premises, formula], action)
        if found.outcome != "proved":
            witness = found.question.witness(statement) if found.question else ()
            return (statement.name,), witness
    return None


def _symbols(term: Term) -> set[object]:
    return {part.payload for part in subterms(term) if part.op == "read"}


def _is_equivalent(system: System, mutant: Mutant) -> bool:
    """Whether the mutant is possible where the original is and does the same there."""
    one, other = mutant.original, mutant.action
    both = one.guard & other.guard
    changed = [
        both & made_different(symbol, one.updates, other.updates)
        for symbol in {**one.updates, **other.updates}
        if one.updates.get(symbol) is not other.updates.get(symbol)
    ]
    apart = [one.guard & ~other.guard, other.guard & ~one.guard, *changed]
    different = disjunction(apart)
    sizes = dict.fromkeys(families(system), SIZES[0])
    if Question(system, sizes, one).asked([*assumed(system), different], STEPS_FIRST)[0] == z3.sat:
        return False
    return all(
        asked(system, [*assumed(system), part], STEPS_FIRST)[0] == z3.unsat for part in apart
    )


def _changed_labels(system: System, mutant: Mutant) -> Iterator[str]:
    """Yield the promises among the guards that say something else after the mutant's step."""
    one, other = mutant.original, mutant.action
    changed = {
        symbol
        for symbol in {**one.updates, **other.updates}
        if one.updates.get(symbol) is not other.updates.get(symbol)
    }
    sizes = dict.fromkeys(families(system), SIZES[0])
    premises = [*assumed(system), one.guard, other.guard]
    found: set[str] = set()
    for following in system.actions:
        for guard in following.guards:
            if not guard.label or guard.label in found or not _symbols(guard.term) & changed:
                continue
            pair = _followed_by(one, following)
            term = substitute(guard.term, pair.variables)
            apart = _unlike(after(term, one.updates), after(term, other.updates))
            question = Question(system, sizes, pair.action)
            if question.asked([*premises, apart], STEPS_FIRST)[0] == z3.sat:
                found.add(guard.label)
                yield guard.label


@dataclass(frozen=True)
class _Pair:
    action: Action
    variables: dict[Term, Term]


def _followed_by(first: Action, then: Action) -> _Pair:
    """Return an action that owns the variables of both, and the second one's new variables."""
    later: dict[Term, Term] = {}
    for parameter in then.parameters:
        if isinstance(parameter, Symbol):
            raise ModelError(f"{then.name} has a set parameter and labelled guards: not supported")
        later[parameter] = fresh(type(parameter), f"then_{parameter!r}")
    parameters = (*first.parameters, *later.values())
    return _Pair(Action(first.name, "", parameters, (), {}), later)


def _unlike(one: Bool, other: Bool) -> Bool:
    return (one & ~other) | (other & ~one)
