"""Checks of a traced system for mistakes that would otherwise be silent.

An axiom about the state is assumed of every state and proves false statements. Two statements of
one name hide each other. Fairness of an action that does not exist has no effect. Each is an error
of the model's text, in every reading.
"""

from __future__ import annotations

from collections import Counter
from typing import cast

from brokerproof.models.language.core.rewriting import subterms
from brokerproof.models.language.core.systems import System
from brokerproof.models.language.core.terms import TRUE, Int, ModelError, Symbol, Term


def check_well_formed(system: System) -> System:
    """Return the system, or raise `ModelError` for its first mistake."""
    for statement in system.axioms:
        for part in subterms(statement.term):
            if isinstance(part.payload, Symbol) and part.op == "read" and not part.payload.rigid:
                raise ModelError(
                    f"the axiom {statement.name} reads {part.payload.name}, which changes: axioms "
                    "are about rigid things, and what is always so of the state is an @invariant"
                )
    _check_quantifiers(system)
    stated = [statement.name for statement in system.invariants + system.axioms]
    names = Counter([*stated, *(progress.name for progress in system.leads_to)])
    for name, times in names.items():
        if times > 1:
            raise ModelError(f"{system.name}: {times} statements are called {name}")
    for statement in system.invariants:
        if statement.term is TRUE:
            raise ModelError(
                f"{system.name}: {statement.name} is true of every state, so it says nothing"
            )
    if not system.actions:
        raise ModelError(f"{system.name} has no @action: nothing can ever happen in it")
    known = {action.name for action in system.actions}
    for progress in system.leads_to:
        for name in progress.fair:
            if name not in known:
                raise ModelError(
                    f"{progress.name} wants {name} to be fair, which is no action: "
                    f"there are {', '.join(sorted(known))}"
                )
        unfair = set(progress.rank.lowered_by if progress.rank else ()) - set(progress.fair)
        if unfair:
            raise ModelError(
                f"{progress.name} is to be ranked by {min(unfair)}, which is not fair: it may "
                "never be taken"
            )
    return system


def _check_quantifiers(system: System) -> None:
    """Raise `ModelError` for a quantifier over the integers, which no scope has all of."""
    said = [
        *((each.name, each.term) for each in (*system.axioms, *system.invariants)),
        *((each.name, each.guard) for each in system.actions),
        *((a.name, function.body) for a in system.actions for function in a.updates.values()),
        *(
            (each.name, part)
            for each in system.leads_to
            for part in (each.premise, each.conclusion)
        ),
    ]
    for name, term in said:
        for part in subterms(term):
            if part.op in ("forall", "exists") and any(
                isinstance(variable, Int) for variable in cast("tuple[Term, ...]", part.payload)
            ):
                raise ModelError(f"{name}: {part!r} is about all integers, which have no end")
