"""Mutation testing: which parts of a model could be wrong without a proof noticing.

Owns the outcome of each mutant (`mutants` makes them), not its printing. In this order, a mutant is
*equivalent*, is refuted by a broken invariant or counter (*reachable*, or by a single step
*induction*), fails a *refinement*, changes a labelled guard of the next step (*requirement*), or
breaks a leads-to property (`progress`). A weaker labelled guard breaks an invariant of the model's
ledger that states its requirement (*promise*), or nothing but its own *label*. Another guard that
allows no step that the model does not allow is *stronger*, which breaks no invariant. Any other
mutant survives: no statement covers that part. Initial values and axioms are in `frame`.

A ledger is the same model with more state, which remembers what happened. It has the model's
guards, so a mutant has the same name there.

Each query has a limit in Z3's own steps, so the outcome depends on no clock. At the limit, an
invariant counts as kept: no mutant is refuted by a timeout.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import z3

from brokerproof.models.language.attack.frame import broken_at_the_start, judged_frame, refuted
from brokerproof.models.language.attack.lost_statements import lost_by_step, lost_in_scopes
from brokerproof.models.language.attack.mutants import (
    AnyMutant,
    Mutant,
    OtherExpression,
    OtherStart,
    mutants,
)
from brokerproof.models.language.attack.outcomes import SIZES, JudgedMutant, Refuter, lost_by
from brokerproof.models.language.attack.progress import Held, held, judged_in_the_end
from brokerproof.models.language.attack.shared_expressions import judged_expression
from brokerproof.models.language.core.model import Action, Model, ModelError, System
from brokerproof.models.language.core.rewriting import symbols_read
from brokerproof.models.language.core.scope import families
from brokerproof.models.language.core.terms import Bool, disjunction
from brokerproof.models.language.prove.cache import canonical
from brokerproof.models.language.prove.commutation import renamed
from brokerproof.models.language.prove.prover import initial_state_exists, prove_invariant
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    STEPS_FIRST,
    after,
    asked,
    assumed,
    made_different,
)

__all__ = [
    "Attack",
    "JudgedMutant",
    "Subject",
    "attack",
    "explained",
    "is_equivalent",
    "promises_lost",
    "reasons_of",
    "weaker_guards",
]


Explained: TypeAlias = dict[str, dict[str, int]]
"""The number of equivalent mutants at each place, by reason."""

Spread: TypeAlias = Callable[[Callable[[int], JudgedMutant], int], Iterable[JudgedMutant]]
"""Judges the mutants of all numbers below one, here or in other processes, in their order."""


def _one_by_one(judge: Callable[[int], JudgedMutant], many: int) -> Iterable[JudgedMutant]:
    return map(judge, range(many))


@dataclass(frozen=True)
class Attack:
    """The outcomes of all mutants, and the number of equivalent ones that reasons explain."""

    system: str
    judged: tuple[JudgedMutant, ...]
    explained: Explained
    seconds: float = field(compare=False)

    def expected(self, place: str) -> int:
        """Return the number of mutants that the reasons explain at a place."""
        return sum(self.explained.get(place, {}).values())

    @property
    def different(self) -> dict[str, list[str]]:
        """The surviving mutants of each place where they are more or fewer than explained."""
        found: dict[str, list[str]] = {place: [] for place in self.explained}
        for each in self.judged:
            if each.outcome == "survivor":
                found.setdefault(each.place, []).append(each.name)
        return {at: names for at, names in found.items() if len(names) != self.expected(at)}

    @property
    def complete(self) -> bool:
        """Whether each place has exactly the surviving mutants that reasons explain."""
        return not self.different


def reasons_of(model: type[Model]) -> str:
    """Return the model's own reasons: with the statements of a subclass, fewer mutants survive."""
    return str(vars(model).get("equivalent_mutants", ""))


def explained(reasons: str) -> Explained:
    """Return how many equivalent mutants each reason explains at each place.

    A reason is a line, and the places are indented below it: `take: guard 1, place*2; end: place`.
    Raises `ModelError` for anything else.
    """
    found: Explained = {}
    for reason, below in re.findall(r"(\S.*)((?:\n(?: .*)?)*)", inspect.cleandoc(reasons)):
        for part in " ".join(below.split()).split("; "):
            action, _, places = part.partition(": ")
            for each in places.split(", "):
                if not re.fullmatch(r"[^*]+(\*[1-9]\d*)?", each):
                    raise ModelError(f"{reason} {part!r} is not like 'take: guard 1, symbol*2'")
                place, _, number = each.partition("*")
                here = found.setdefault(f"{action}: {place}", {})
                here[reason] = here.get(reason, 0) + int(number or 1)
    return found


@dataclass(frozen=True)
class Subject:
    """A model to attack, and all that may refute a mutant of it.

    `reasons` say by place why surviving mutants are equivalent. `expressions` are the mutants of
    the model's named expressions, `in_ledger` the same ones of its ledger. Mutants that a system
    `below` has too are judged there.
    """

    system: System
    reasons: str = ""
    refuters: tuple[Refuter, ...] = ()
    ledger: System | None = None
    expressions: tuple[OtherExpression, ...] = ()
    in_ledger: tuple[OtherExpression, ...] = ()
    below: tuple[System, ...] = ()

    def mutants(self) -> tuple[AnyMutant, ...]:
        """Return the mutants that are judged with this model."""
        known: Counter[tuple[str, str]] = Counter()
        for system in self.below:
            known |= Counter(map(_change_of, mutants(system)))
        own = []
        for mutant in mutants(self.system):
            change = _change_of(mutant)
            if known[change]:
                known[change] -= 1
            else:
                own.append(mutant)
        return (*own, *self.expressions)


def _change_of(mutant: AnyMutant) -> tuple[str, str]:
    """Return the mutant's name without numbers, which depend on the rest of the model, and part."""
    name = re.sub(r": guard \d+:", ": guard:", mutant.name)
    return re.sub(r" \(\d+\)$", "", name), canonical(mutant.part)


def attack(
    subject: Subject,
    report: Callable[[JudgedMutant], None] | None = None,
    spread: Spread = _one_by_one,
) -> Attack:
    """Judge every mutant of a model; raises `ModelError` if the model is not proved as it is."""
    started, expected = time.perf_counter(), explained(subject.reasons)
    system, refuters, ledger = subject.system, subject.refuters, subject.ledger
    if initial_state_exists(system).outcome == "never":
        raise ModelError(f"{system.name} has no initial state: there is nothing to attack")
    unproved = [s.name for s in system.invariants if prove_invariant(system, s).outcome != "proved"]
    if unproved:
        raise ModelError(
            f"{system.name} does not keep {', '.join(unproved)} as it is: prove it first, since a "
            "mutant cannot lose what there is not"
        )
    where = held(system)
    in_ledger = (*mutants(ledger), *subject.in_ledger) if ledger else ()
    remembered = {each.name: each for each in in_ledger}
    weaker = {n: each for n, each in remembered.items() if isinstance(each, Mutant) and each.guard}
    if ledger and (unlike := weaker_guards(system).keys() ^ weaker.keys()):
        raise ModelError(f"{ledger.name} has other guards than {system.name}: {min(unlike)}")
    changed = subject.mutants()

    def judge(number: int) -> JudgedMutant:
        mutant = changed[number]
        if isinstance(mutant, Mutant) and mutant.guard:
            found = _judged_guard(system, mutant, ledger, weaker.get(mutant.name))
        elif isinstance(mutant, Mutant):
            found = _judged(system, mutant, refuters, where)
        elif isinstance(mutant, OtherExpression):
            found = judged_expression(system, mutant, refuters, where)
        else:
            found = judged_frame(system, mutant, refuters, where)
        if found.outcome == "survivor" and ledger and mutant.name in remembered:
            found = _judged_by(ledger, remembered[mutant.name], system) or found
        if (
            found.outcome == "survivor"
            and isinstance(mutant, Mutant)
            and is_stronger(system, mutant)
        ):
            found = JudgedMutant(mutant.name, "stronger")
        if found.outcome == "survivor":
            found = dataclasses.replace(found, by=tuple(expected.get(found.place, ())))
        return found

    judged = []
    for found in spread(judge, len(changed)):
        judged.append(found)
        if report:
            report(found)
    return Attack(system.name, tuple(judged), expected, time.perf_counter() - started)


def weaker_guards(system: System) -> dict[str, Mutant]:
    """Return the mutants that drop or weaken a labelled guard, by name."""
    return {each.name: each for each in mutants(system) if isinstance(each, Mutant) and each.guard}


def _judged(
    system: System, mutant: Mutant, refuters: Sequence[Refuter], where: tuple[Held, ...]
) -> JudgedMutant:
    if found := _refuted_or_equivalent(system, mutant):
        return found
    if broken := lost_by(refuters, mutant.within(system)):
        return JudgedMutant(mutant.name, "refinement", broken)
    if label := _changed_label(system, mutant):
        return JudgedMutant(mutant.name, "requirement", (label,))
    return judged_in_the_end(mutant.name, mutant.within(system), where, {mutant.action.name})


def _judged_guard(
    system: System, mutant: Mutant, ledger: System | None, remembered: Mutant | None
) -> JudgedMutant:
    if found := _refuted_or_equivalent(system, mutant):
        return found
    if ledger and remembered and (broken := promises_lost(ledger, remembered)):
        return JudgedMutant(mutant.name, "promise", broken)
    return JudgedMutant(mutant.name, "label", (mutant.guard,))


def _judged_by(ledger: System, same: AnyMutant, system: System) -> JudgedMutant | None:
    """Return the mutant as refuted by an invariant that only the ledger has, if it is."""
    own = {each.name for each in system.invariants}
    changed = same.within(ledger)
    promises = [each for each in changed.invariants if each.name not in own]
    lost = None
    if isinstance(same, Mutant):
        lost = lost_by_step(ledger, same.action, promises)
    elif isinstance(same, OtherExpression):
        each = (lost_in_scopes(changed, action, promises) for action in changed.actions)
        lost = next(filter(None, each), None)
    elif isinstance(same, OtherStart) and (wrong := broken_at_the_start(changed)):
        lost = (wrong.invariant,), wrong.trace
    return JudgedMutant(same.name, "promise", *lost) if lost else None


def _refuted_or_equivalent(system: System, mutant: Mutant) -> JudgedMutant | None:
    # Cheapest first: for a delivery of a job queue this takes 0.3 s, the invariants take 3 s.
    if is_equivalent(system, mutant):
        return JudgedMutant(mutant.name, "equivalent")
    lost = lost_by_step(system, mutant.action, system.invariants)
    return refuted(mutant.name, mutant.within(system), lost) if lost else None


def promises_lost(ledger: System, mutant: Mutant) -> tuple[str, ...]:
    """Return the invariants that state the requirement of a guard, and that the mutant breaks."""
    promises = [each for each in ledger.invariants if mutant.guard in each.states]
    lost = [(each.name, lost_by_step(ledger, mutant.action, [each])) for each in promises]
    return tuple(name for name, found in lost if found and name in found[0])


def is_equivalent(system: System, mutant: Mutant) -> bool:
    """Whether the mutant is enabled where the original is, and does the same there."""
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


def is_stronger(system: System, mutant: Mutant) -> bool:
    """Whether the mutant has another guard, and allows no step that the model does not allow."""
    one, other = mutant.original, mutant.action
    more = [*assumed(system), other.guard & ~one.guard]
    return one.updates is other.updates and asked(system, more, STEPS_FIRST)[0] == z3.unsat


def _changed_label(system: System, mutant: Mutant) -> str | None:
    """Return the label of a guard that differs after the mutant's step, if one does."""
    one, other = mutant.original, mutant.action
    changed = {
        symbol
        for symbol in {**one.updates, **other.updates}
        if one.updates.get(symbol) is not other.updates.get(symbol)
    }
    sizes = dict.fromkeys(families(system), SIZES[0])
    premises = [*assumed(system), one.guard, other.guard]
    for following in system.actions:
        for place, guard in enumerate(following.guards):
            if not guard.label or changed.isdisjoint(symbols_read(guard.term)):
                continue
            then = renamed(following, "then")
            term = then.guards[place].term
            apart = _unlike(after(term, one.updates), after(term, other.updates))
            parameters = (*one.parameters, *then.parameters)
            question = Question(system, sizes, Action(one.name, "", parameters, (), {}))
            if question.asked([*premises, apart], STEPS_FIRST)[0] == z3.sat:
                return guard.label
    return None


def _unlike(one: Bool, other: Bool) -> Bool:
    return (one & ~other) | (other & ~one)
