"""The prover: invariants of every reachable state, for any number of elements.

Owns the queries and their order. Each invariant must hold initially, and each action must keep it
if all invariants hold before; families are unbounded there. If a proof fails, a refutation is
searched for with a few elements of each family, where Z3 decides. Results are values; the limits of
Z3 are in `z3_queries`.

Two checks keep proofs from being vacuous: some initial state satisfies axioms and invariants (a
contradiction proves every statement), and each action can fire in a state that satisfies the
invariants (a guard that never holds keeps every invariant).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import z3

from brokerproof.models.language.core.model import Action, Statement, System
from brokerproof.models.language.core.rewriting import symbols_read
from brokerproof.models.language.core.systems import Assumed
from brokerproof.models.language.core.terms import Bool, Symbol, negation
from brokerproof.models.language.core.traces import Step
from brokerproof.models.language.explore.reaching import reached
from brokerproof.models.language.prove.conditions import Condition, InvariantProof
from brokerproof.models.language.prove.counting import prove_counter
from brokerproof.models.language.prove.ranking import prove_leads_to
from brokerproof.models.language.prove.witness import Question
from brokerproof.models.language.prove.z3_queries import (
    SIZE_MAX,
    STEPS_FIRST,
    STEPS_MAX,
    STEPS_TRIVIAL,
    after,
    asked,
    assumed,
    decided,
    named,
    small_sizes,
    taken,
)

__all__ = [
    "Condition",
    "InvariantProof",
    "Proof",
    "Satisfied",
    "can_fire",
    "initial_state_exists",
    "prove",
    "prove_invariant",
]

Firing: TypeAlias = Literal["fires", "never", "unknown"]


@dataclass(frozen=True)
class Satisfied:
    """Whether formulas are satisfiable: the number of elements of each family, or why not."""

    outcome: Firing
    sizes: dict[str, int]
    seconds: float
    reason: str = ""


@dataclass(frozen=True)
class Proof:
    """The prover's results for a system.

    `firing` is by action, `counters` are the ghosts, `leads_to` the properties that have a rank.
    """

    system: str
    start: Satisfied
    invariants: tuple[InvariantProof, ...]
    firing: dict[str, Satisfied]
    counters: tuple[InvariantProof, ...] = ()
    leads_to: tuple[InvariantProof, ...] = ()

    @property
    def stated(self) -> tuple[InvariantProof, ...]:
        """All results about statements."""
        return (*self.invariants, *self.counters, *self.leads_to)

    @property
    def complete(self) -> bool:
        """Whether all is proved, and no contradiction, idle action or tautology is involved."""
        possible = all(s.outcome == "fires" for s in (self.start, *self.firing.values()))
        return possible and all(p.outcome == "proved" and not p.says_nothing for p in self.stated)


def prove(system: System, *, report: Callable[[InvariantProof], None] | None = None) -> Proof:
    """Prove a system; `report` is called with each statement as it is decided."""

    def reported(proof: InvariantProof) -> InvariantProof:
        if report:
            report(proof)
        return proof

    return Proof(
        system=system.name,
        invariants=tuple(reported(prove_invariant(system, each)) for each in system.invariants),
        counters=tuple(reported(prove_counter(system, ghost)) for ghost in system.ghosts),
        leads_to=tuple(
            reported(prove_leads_to(system, each)) for each in system.leads_to if each.rank
        ),
        start=initial_state_exists(system),
        firing={action.name: can_fire(system, action) for action in system.actions},
    )


def prove_invariant(system: System, statement: Statement) -> InvariantProof:
    """Return whether an invariant holds initially and is kept by each action."""
    conditions = [_initiation(system, statement)]
    conditions += [_induction(system, statement, action) for action in system.actions]
    read = symbols_read(statement.term)
    assumptions = [
        *(ghost.assumption for ghost in system.ghosts if ghost.symbol in read),
        *(a.text for a in _supposed(system, read)),
    ]
    proof = InvariantProof(statement.name, tuple(conditions), tuple(dict.fromkeys(assumptions)))
    if proof.outcome == "proved":
        alone, _ = asked(system, [*_axioms(system), negation(statement.term)], STEPS_TRIVIAL)
        return replace(proof, says_nothing=alone == z3.unsat)
    return proof


def _supposed(system: System, read: tuple[Symbol, ...]) -> Iterator[Assumed]:
    """Yield the assumptions of the actions that change one of the symbols."""
    for action in system.actions:
        if action.updates.keys() & read:
            yield from action.assumptions


def can_fire(system: System, action: Action) -> Satisfied:
    """Return whether the action is possible in some state that satisfies the invariants."""
    return _satisfied(system, [*assumed(system), action.guard], action)


def initial_state_exists(system: System) -> Satisfied:
    """Return whether some initial state satisfies the axioms and all invariants."""
    axioms = _axioms(system)
    result = _satisfied(system, axioms + [after(i.term, system.initial) for i in system.invariants])
    if result.outcome == "never" and _satisfied(system, axioms).outcome == "never":
        return Satisfied("never", {}, result.seconds, "the axioms contradict each other")
    return result


def _axioms(system: System) -> list[Bool]:
    return [statement.term for statement in system.axioms]


def _initiation(system: System, statement: Statement) -> Condition:
    broken = negation(after(statement.term, system.initial))
    return _decided(system, [*_axioms(system), broken], statement, None, ())


def _induction(system: System, statement: Statement, action: Action) -> Condition:
    if not action.updates.keys() & symbols_read(statement.term):
        return Condition(action.name, "proved", 0.0)
    premises = [*assumed(system), *taken(action)]
    broken = negation(after(statement.term, action.updates))
    few = named(system, statement)
    fewer = [*few, *taken(action), broken] if few else []
    return _decided(system, [*premises, broken], statement, action, fewer)


def _decided(
    system: System,
    formulas: list[Bool],
    statement: Statement,
    action: Action | None,
    fewer: Sequence[Bool],
) -> Condition:
    """Return a condition, proved if the formulas, or `fewer` of them, have no model."""
    started = time.perf_counter()
    found = decided(system, formulas, action, fewer)
    witness = found.question.witness(statement) if found.question else ()
    name = action.name if action else None
    run: tuple[Step, ...] = ()
    if found.outcome == "refuted" and action and (violation := reached(system, (statement.name,))):
        run = violation.trace
    seconds = time.perf_counter() - started
    return Condition(name, found.outcome, seconds, witness, found.reason, run)


def _satisfied(system: System, formulas: list[Bool], action: Action | None = None) -> Satisfied:
    """Return the smallest scope in which the formulas have a model."""
    started = time.perf_counter()
    unknown = ""
    for sizes in small_sizes(system):
        answer, reason = Question(system, sizes, action).asked(formulas, STEPS_MAX)
        if answer == z3.sat:
            names = {family.__name__: size for family, size in sizes.items()}
            return Satisfied("fires", names, time.perf_counter() - started)
        if answer == z3.unknown:
            unknown = f"with {sizes} elements, Z3 says: {reason}"
    answer, _ = asked(system, formulas, STEPS_FIRST)
    seconds = time.perf_counter() - started
    if answer == z3.unsat:
        return Satisfied("never", {}, seconds, "impossible with any number of elements")
    if unknown:
        return Satisfied("unknown", {}, seconds, unknown)
    reason = f"impossible with up to {SIZE_MAX} elements of each family"
    return Satisfied("never", {}, seconds, reason)
