"""The proved refinements by the concrete model's name, and the requirements that they are about."""

from __future__ import annotations

from brokerproof.models.activemq.cursor_queue_refines_contract import CURSOR_QUEUE_REFINES_CONTRACT
from brokerproof.models.language.attack.mutation_testing import reasons_of
from brokerproof.models.language.attack.outcomes import Refuter
from brokerproof.models.language.core.model import Model, System, trace
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.refinement import Refinement
from brokerproof.models.qpid.pointer_queue_refines_contract import POINTER_QUEUE_REFINES_CONTRACT
from brokerproof.models.qpid.pull_queue_refines_contract import PULL_QUEUE_REFINES_CONTRACT
from brokerproof.models.rabbitmq.paging_queue_refines_contract import PAGING_QUEUE_REFINES_CONTRACT
from brokerproof.spec.requirements import catalogue

REFINEMENTS: dict[str, Refinement] = {
    "cursor-page-in": CURSOR_QUEUE_REFINES_CONTRACT,
    "pointer-queue": POINTER_QUEUE_REFINES_CONTRACT,
    "paging-places": PAGING_QUEUE_REFINES_CONTRACT,
    "pull-queue": PULL_QUEUE_REFINES_CONTRACT,
}


def attack_on(
    model: type[Model], remembering: type[Model] | None
) -> tuple[System, str, tuple[Refuter, ...], System | None]:
    """Return what `attack` needs of a model: system, reasons, refinements and ledger.

    A model that refines another one is attacked with its history. A mutant of a model that others
    refine is held against each of them.
    """
    ledger = trace(remembering) if remembering else None
    for each in REFINEMENTS.values():
        if issubclass(each.concrete, model):
            bound = bind(each)
            return bound.concrete, reasons_of(each.concrete), (bound.broken_by,), ledger
    above = [each for each in REFINEMENTS.values() if each.abstract is model]
    refuters = tuple(bind(each).broken_above for each in above)
    return trace(model), reasons_of(model), refuters, ledger


def carried_by(system: System) -> dict[str, tuple[str, ...]]:
    """Return the requirements of the contract, each with the actions whose guards it labels."""
    labelled = {
        label: tuple(a.name for a in system.actions if label in {g.label for g in a.guards})
        for label in catalogue()
    }
    return {label: actions for label, actions in labelled.items() if actions}
