"""The prover: what holds in every reachable state, whatever the number of elements.

Owns the questions and the order in which they are asked. Each invariant is to hold initially and to
be kept by each action that is taken where all invariants hold; families are unbounded there. What
is not proved is searched for a refutation with a few elements of each family, where Z3 decides.
Refuses to print: results are values.

Two things would make a proof worthless without a sound, so they are asked too: that axioms and
invariants are satisfied by some initial state (a contradiction proves everything), and that each
action can fire in a state that satisfies the invariants (a guard that never holds keeps every
invariant).

Limits are counted in Z3's own steps, never in seconds, and each question has a context of its own,
so that an answer does not depend on the machine or on what was asked before.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import z3

from brokerproof.models.language.model import Action, Statement, System
from brokerproof.models.language.rewriting import Function, substitute, subterms
from brokerproof.models.language.scope import families
from brokerproof.models.language.terms import (
    Bool,
    Sort,
    Symbol,
    Term,
    negation,
)
from brokerproof.models.language.traces import Step
from brokerproof.models.language.witness import Question
from brokerproof.models.language.z3_reading import Z3Reading, rigid_facts

Outcome: TypeAlias = Literal["proved", "refuted", "unknown"]
Firing: TypeAlias = Literal["fires", "never", "unknown"]

SIZE_MAX = 5
"""How many elements each family has at most where a concrete state is searched for."""

MIXED_MAX = 3
"""How many elements where the families' sizes differ, which is tried last: such scopes are many."""

STEPS_FIRST = 2_000_000
"""Z3's limit for the first try: true conditions take far less, and false ones go on for ever."""

STEPS_MAX = 100_000_000
"""Z3's limit before a condition is unknown, about a minute."""


@dataclass(frozen=True)
class Condition:
    """One condition of an invariant: that `action` keeps it, or that it holds initially (None).

    `witness` shows a refutation: the state before and the step, or the initial state. `reason` says
    why nothing is known.
    """

    action: str | None
    outcome: Outcome
    seconds: float
    witness: tuple[Step, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class InvariantProof:
    """An invariant, with its conditions and what was assumed beyond the model's axioms."""

    name: str
    conditions: tuple[Condition, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Refuted where a condition is, else unknown where one is, else proved."""
        outcomes = {condition.outcome for condition in self.conditions}
        for outcome in ("refuted", "unknown"):
            if outcome in outcomes:
                return cast("Outcome", outcome)
        return "proved"

    @property
    def seconds(self) -> float:
        """How long the conditions took together."""
        return sum(condition.seconds for condition in self.conditions)


@dataclass(frozen=True)
class Satisfied:
    """Whether something is possible: with how many elements of each family, by name, or why not."""

    outcome: Firing
    sizes: dict[str, int]
    seconds: float
    reason: str = ""


@dataclass(frozen=True)
class Proof:
    """All that the prover says of a system; `firing` is by action."""

    system: str
    start: Satisfied
    invariants: tuple[InvariantProof, ...]
    firing: dict[str, Satisfied]

    @property
    def complete(self) -> bool:
        """Whether all is proved, and neither by contradiction nor for want of possible actions."""
        possible = all(s.outcome == "fires" for s in (self.start, *self.firing.values()))
        return possible and all(proof.outcome == "proved" for proof in self.invariants)


def prove(system: System, *, report: Callable[[InvariantProof], None] | None = None) -> Proof:
    """Ask everything about a system; `report` is called with each invariant as it is decided."""
    proofs = []
    for statement in system.invariants:
        proofs.append(prove_invariant(system, statement))
        if report:
            report(proofs[-1])
    return Proof(
        system=system.name,
        start=initial_state_exists(system),
        invariants=tuple(proofs),
        firing={action.name: can_fire(system, action) for action in system.actions},
    )


def prove_invariant(system: System, statement: Statement) -> InvariantProof:
    """Return whether an invariant holds initially and is kept by each action."""
    conditions = [_initiation(system, statement)]
    conditions += [_induction(system, statement, action) for action in system.actions]
    return InvariantProof(statement.name, tuple(conditions))


def can_fire(system: System, action: Action) -> Satisfied:
    """Return whether the action is possible in some state that satisfies the invariants."""
    return _satisfied(system, [*_axioms(system), *_invariants(system), action.guard], action)


def initial_state_exists(system: System) -> Satisfied:
    """Return whether some initial state satisfies the axioms and all invariants."""
    axioms = _axioms(system)
    result = _satisfied(system, axioms + [_after(i, system.initial) for i in _invariants(system)])
    if result.outcome == "never" and _satisfied(system, axioms).outcome == "never":
        return Satisfied("never", {}, result.seconds, "the axioms contradict each other")
    return result


def _axioms(system: System) -> list[Bool]:
    return [statement.term for statement in system.axioms]


def _invariants(system: System) -> list[Bool]:
    return [statement.term for statement in system.invariants]


def _after(term: Bool, updates: dict[Symbol, Function]) -> Bool:
    return substitute(term, {}, updates)


def _initiation(system: System, statement: Statement) -> Condition:
    broken = negation(_after(statement.term, system.initial))
    return _decided(system, [*_axioms(system), broken], statement, None)


def _induction(system: System, statement: Statement, action: Action) -> Condition:
    if not action.updates.keys() & _symbols(statement.term):
        return Condition(action.name, "proved", 0.0)
    premises = [*_axioms(system), *_invariants(system), action.guard]
    broken = negation(_after(statement.term, action.updates))
    return _decided(system, [*premises, broken], statement, action)


def _symbols(term: Term) -> set[Symbol]:
    return {cast("Symbol", part.payload) for part in subterms(term) if part.op == "read"}


def _decided(
    system: System, formulas: list[Bool], statement: Statement, action: Action | None
) -> Condition:
    """Return a condition that is proved where the formulas have no model.

    A short try comes first, since most conditions are true and true ones are quick; then the search
    for a refutation, which is quick where there is a small one; patience comes last.
    """
    started = time.perf_counter()
    name = action.name if action else None

    def condition(outcome: Outcome, shown: tuple[Step, ...] = (), reason: str = "") -> Condition:
        return Condition(name, outcome, time.perf_counter() - started, shown, reason)

    verdict, reason = _asked(system, formulas, STEPS_FIRST)
    if verdict == z3.unsat:
        return condition("proved")
    for sizes in _small(system):
        question = Question(system, sizes, action)
        if question.asked(formulas, STEPS_MAX)[0] == z3.sat:
            return condition("refuted", question.witness(statement))
    if verdict == z3.unknown:
        verdict, reason = _asked(system, formulas, STEPS_MAX)
    if verdict == z3.unsat:
        return condition("proved")
    small = f"no refutation with up to {SIZE_MAX} elements of each family"
    if verdict == z3.sat:
        return condition("refuted", reason=f"{small}, but one with more")
    return condition("unknown", reason=f"{small}; beyond, Z3 says: {reason}")


def _satisfied(system: System, formulas: list[Bool], action: Action | None = None) -> Satisfied:
    """Return the smallest scope in which the formulas have a model."""
    started = time.perf_counter()
    unknown = ""
    for sizes in _small(system):
        answer, reason = Question(system, sizes, action).asked(formulas, STEPS_MAX)
        if answer == z3.sat:
            names = {family.__name__: size for family, size in sizes.items()}
            return Satisfied("fires", names, time.perf_counter() - started)
        if answer == z3.unknown:
            unknown = f"with {sizes} elements, Z3 says: {reason}"
    answer, _ = _asked(system, formulas, STEPS_FIRST)
    seconds = time.perf_counter() - started
    if answer == z3.unsat:
        return Satisfied("never", {}, seconds, "impossible with any number of elements")
    if unknown:
        return Satisfied("unknown", {}, seconds, unknown)
    reason = f"impossible with up to {SIZE_MAX} elements of each family"
    return Satisfied("never", {}, seconds, reason)


def _small(system: System) -> Iterator[dict[Sort, int]]:
    """Yield sizes for the families: the same for all first, then mixed ones, the smallest first."""
    names = families(system)
    for size in range(1, SIZE_MAX + 1):
        yield dict.fromkeys(names, size)
    mixed = itertools.product(range(1, MIXED_MAX + 1), repeat=len(names))
    for sizes in sorted(mixed, key=lambda sizes: (sum(sizes), sizes)):
        if len(set(sizes)) > 1:
            yield dict(zip(names, sizes, strict=True))


def _asked(system: System, formulas: Iterable[Bool], steps: int) -> tuple[z3.CheckSatResult, str]:
    """Return Z3's answer with families of any size, and its reason if it has none."""
    reading = Z3Reading(system)
    solver = z3.Solver(ctx=reading.context)
    solver.set("rlimit", steps)
    for formula in (*rigid_facts(system), *formulas):
        solver.add(reading.formula(formula))
    answer = solver.check()
    return answer, solver.reason_unknown() if answer == z3.unknown else ""
