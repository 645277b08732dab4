"""The projections by the kind of view that they read, and the invariants checked on each view."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, cast

from brokerproof.models.language.core.model import Model
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue
from brokerproof.models.language.watch.path_query import PathQuery, reading_of, state_of
from brokerproof.spec.inspection import QueueView
from brokerproof.spec.invariants import ByModel, ByRequirement, invariants
from brokerproof.spec.messages import Order
from brokerproof.spec.systems import SYSTEM_OF, rules_of

MODEL_OF: Final = {
    "pointer-queue": "pointer-queue",
    "paging-queue": "paging-places",
    "cursor-queue": "cursor-page-in",
}
"""The model, by its name in the catalogue, whose steps lead from one view to the next."""


class Projection(Protocol):
    """How the views of one kind are read as states of a model."""

    MODEL: type[Model]

    def new_queue(self, view: Any, order: Order) -> Any:
        """Return the view of a new queue of `order`, with the sizes that `view` shows."""

    def queries(self, before: Any, after: Any, step: ClientStep) -> Iterator[PathQuery]:
        """Yield the path queries that together explain a step.

        Raises `NotAQueue`, and `OutsideTheModel` if the model does not cover the step.
        """

    def queries_at_rest(self, view: Any) -> Iterator[PathQuery]:
        """Yield the path queries that together show a drained queue to be at rest."""

    def states(self, view: Any, *, rests: bool) -> Iterator[PathQuery]:
        """Yield the states whose invariants are checked, each as the `before` of a path query."""


@functools.cache
def projection_of(kind: str) -> Projection:
    """Return the projection for views with a tag."""
    module = importlib.import_module(f"brokerproof.models.{SYSTEM_OF[kind]}.projection")
    return cast("Projection", module)


def judged(view: QueueView, *, rests: bool) -> Iterator[tuple[str, str]]:
    """Yield the id of each model invariant that applies to the view, with a complaint or "".

    `rests` says that the broker has drained.
    """
    found: dict[str, str] = {}
    try:
        states = [*projection_of(view.kind).states(view, rests=rests)]
    except NotAQueue:
        return  # `documented-steps` says so
    for query in states:
        reading = reading_of(query)
        state = state_of(reading, query.before)
        for statement, name in statements_of(view.kind).get(query.name, {}).items():
            if reading.exercised(statement, state):
                wrong = "" if reading.holds(statement, state) else f"{statement} is lost: {view}"
                found[name] = found.get(name) or wrong
    yield from found.items()


@functools.cache
def statements_of(kind: str) -> Mapping[str, Mapping[str, str]]:
    """Return the invariants that apply to views of a kind: by model, its statements with their ids.

    An invariant applies if `invariants.toml` binds it to a requirement and no rule of the view
    states it.
    """
    found: dict[str, dict[str, str]] = {}
    for each in invariants().values():
        if each.id not in rules_of(kind).IDS and any(
            isinstance(binding, ByRequirement) and binding.requirement == each.id
            for binding in each.held
        ):
            for binding in each.held:
                if isinstance(binding, ByModel):
                    found.setdefault(binding.model, {})[binding.statement] = each.id
    return found
