"""The projections by the kind of view that they read; a system is imported when its view is met."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any, Final, Protocol, cast

from brokerproof.models.language.core.model import Model
from brokerproof.models.language.watch.client_step import ClientStep
from brokerproof.models.language.watch.path_query import (
    PathQuery,
    lost_invariants,
    quotient,
    reading_of,
)
from brokerproof.spec.protocol.inspection import QueueView
from brokerproof.spec.protocol.messages import Order
from brokerproof.spec.protocol.operations import Drain

SYSTEM_OF: Final = {
    "pointer-queue": "qpid",
    "paging-queue": "rabbitmq",
    "cursor-queue": "activemq",
}
"""The documented system that a view is of, by the view's tag."""


MODEL_OF: Final = {
    "pointer-queue": "pointer-queue-clock",
    "paging-queue": "paging-places",
    "cursor-queue": "cursor-page-in",
}
"""The model, by its name in the catalogue, whose steps lead from one view to the next."""


class Projection(Protocol):
    """How the views of one kind are states of a model."""

    MODEL: type[Model]

    def new_queue(self, view: Any, order: Order) -> Any:
        """Return the view of a new queue of `order`, with the sizes that a view shows."""

    def queries(self, before: Any, after: Any, step: ClientStep) -> Iterator[PathQuery]:
        """Yield what has to be a path for a step to be explained.

        Raises `NotAQueue`, and `OutsideTheModel` where the model says nothing of the step.
        """

    def queries_at_rest(self, view: Any) -> Iterator[PathQuery]:
        """Yield what has to be a path for a drained queue to be at rest."""


@functools.cache
def projection_of(kind: str) -> Projection:
    """Return the projection for views with a tag."""
    module = importlib.import_module(f"brokerproof.models.{SYSTEM_OF[kind]}.projection")
    return cast("Projection", module)


def lost_in(view: QueueView) -> frozenset[str]:
    """Return the invariants of its model that a view breaks by itself; raises `NotAQueue`."""
    lost: frozenset[str] = frozenset()
    for query in projection_of(view.kind).queries(view, view, ClientStep(Drain())):
        short = quotient(query)
        lost |= frozenset(lost_invariants(reading_of(short), short.after))
    return lost
