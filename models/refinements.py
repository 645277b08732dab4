"""The proved refinements by the concrete model's name, and the requirements that they are about."""

from __future__ import annotations

from brokerproof.models.activemq.cursor_queue_refines_contract import CURSOR_QUEUE_REFINES_CONTRACT
from brokerproof.models.catalogue import CATALOGUE
from brokerproof.models.language.attack.mutation_testing import Subject, reasons_of
from brokerproof.models.language.attack.shared_expressions import other_expressions
from brokerproof.models.language.core.model import Model, System, trace
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.refinement import Refinement
from brokerproof.models.qpid.pointer_queue_refines_contract import POINTER_QUEUE_REFINES_CONTRACT
from brokerproof.models.qpid.pull.pull_queue_refines_contract import PULL_QUEUE_REFINES_CONTRACT
from brokerproof.models.qpid.pull.ranked_pull_queue_refines_contract import (
    RANKED_PULL_QUEUE_REFINES_CONTRACT,
)
from brokerproof.models.rabbitmq.paging_queue_refines_contract import PAGING_QUEUE_REFINES_CONTRACT
from brokerproof.spec.requirements import catalogue

REFINEMENTS: dict[str, Refinement] = {
    "cursor-page-in": CURSOR_QUEUE_REFINES_CONTRACT,
    "pointer-queue": POINTER_QUEUE_REFINES_CONTRACT,
    "paging-places": PAGING_QUEUE_REFINES_CONTRACT,
    "pull-queue": RANKED_PULL_QUEUE_REFINES_CONTRACT,
}


def attack_on(name: str) -> Subject:
    """Return what `attack` needs of a listed model.

    A model that refines another one is attacked with its history, and as the largest model that the
    refinement is about. A mutant of a model that others refine is held against each of them.
    """
    model, remembering = CATALOGUE[name].model, CATALOGUE[name].ledger
    attacked = _attacked(model)
    system, traced = trace(attacked), attacked
    above = (*REFINEMENTS.values(), PULL_QUEUE_REFINES_CONTRACT)
    refuters = [bind(each).broken_above for each in above if each.abstract is model]
    for each in REFINEMENTS.values():
        if each.concrete is attacked:
            bound = bind(each)
            system, traced = bound.concrete, each.remembering
            refuters.append(bound.broken_by)
    ledger = trace(remembering) if remembering else None
    expressions = other_expressions(traced, system)
    named = {each.expression for each in expressions}
    listed = (_attacked(each.model) for each in CATALOGUE.values() if issubclass(model, each.model))
    below = sorted({*listed} - {attacked}, key=lambda each: each.__name__)
    return Subject(
        system,
        reasons_of(attacked),
        tuple(refuters),
        ledger,
        expressions,
        other_expressions(remembering, ledger, named) if remembering and ledger else (),
        tuple(map(trace, below)),
    )


def _attacked(model: type[Model]) -> type[Model]:
    """Return the model that is attacked for a listed one: it, or the refinement's larger one."""
    larger = (each.concrete for each in REFINEMENTS.values() if issubclass(each.concrete, model))
    return next(larger, model)


def carried_by(system: System) -> dict[str, tuple[str, ...]]:
    """Return the requirements of the contract, each with the actions whose guards it labels."""
    labelled = {
        label: tuple(a.name for a in system.actions if label in {g.label for g in a.guards})
        for label in catalogue()
    }
    return {label: actions for label, actions in labelled.items() if actions}
