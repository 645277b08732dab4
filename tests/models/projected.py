"""Steps between two views of one queue, in the words of the models' tests."""

from __future__ import annotations

from brokerproof.checks.inside import step_conformance
from brokerproof.models.language.watch.client_step import ClientStep
from brokerproof.spec.protocol.answers import Inspection


def path(before: Inspection, after: Inspection, step: ClientStep) -> tuple[str, ...] | None:
    """Return the actions that lead from one view to the other; None if none do."""
    found = step_conformance.explained(before, after, step)
    return None if isinstance(found, str) else tuple([action for _, action in found])
