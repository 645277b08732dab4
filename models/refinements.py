"""The proved refinements, by the concrete model's name in the catalogue."""

from __future__ import annotations

from brokerproof.models.activemq.cursor_queue_refines_contract import CURSOR_QUEUE_REFINES_CONTRACT
from brokerproof.models.language.prove.refinement import Refinement
from brokerproof.models.qpid.pointer_queue_refines_contract import POINTER_QUEUE_REFINES_CONTRACT
from brokerproof.models.qpid.pull_queue_refines_contract import PULL_QUEUE_REFINES_CONTRACT
from brokerproof.models.rabbitmq.paging_queue_refines_contract import PAGING_QUEUE_REFINES_CONTRACT

REFINEMENTS: dict[str, Refinement] = {
    "cursor-page-in": CURSOR_QUEUE_REFINES_CONTRACT,
    "pointer-queue": POINTER_QUEUE_REFINES_CONTRACT,
    "paging-places": PAGING_QUEUE_REFINES_CONTRACT,
    "pull-queue": PULL_QUEUE_REFINES_CONTRACT,
}
