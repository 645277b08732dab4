"""Of the models of RabbitMQ's queue: each statement is broken by the very twin that it is bound to.

Where a model's own tests have no such twin it is here.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokerproof.models.language import FALSE, Bool
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.rabbitmq.paging_invariants import FLAG, USED
from brokerproof.models.rabbitmq.paging_places import Message, PagingPlaces, Segment
from brokerproof.spec.invariants import ByModel, invariants_of

SCOPE = Scope({Message: 2, Segment: 1}, range(1), {"persistent": (1, 0)})
"""Two messages, of which the first is persistent."""


class GivesPositionsAgain(PagingPlaces):
    """Takes a position and leaves it free."""

    def _takes_position(self, m: Message) -> None:
        super()._takes_position(m)
        self.used[m] = FALSE


class HandsOutUndelivered(PagingPlaces):
    """Does not note in memory that what it hands out is delivered."""

    def _fetches(self, m: Message, keeps: Bool) -> None:
        super()._fetches(m, keeps)
        self.delivered[m] = FALSE


def pairs() -> Iterator[tuple[str, str]]:
    """Yield each statement of a model, with the twin that it is bound to."""
    for each in invariants_of("rabbitmq").values():
        for binding in each.held:
            if isinstance(binding, ByModel):
                yield binding.statement, binding.broken_by


def twin(name: str) -> tuple[type[Model], Scope]:
    """Return a twin, and the scope in which the tests beside it look at such."""
    path, _, kind = name.partition(":")
    module = importlib.import_module(".".join(Path(path).with_suffix("").parts))
    found, scope = getattr(module, kind), getattr(module, "SCOPE", None) or module.FOUR
    assert issubclass(found, Model)
    assert isinstance(scope, Scope)
    return found, scope


@pytest.mark.each_time(24)
@pytest.mark.parametrize(("statement", "name"), sorted(set(pairs())))
def test_the_twin_breaks_the_statement(statement: str, name: str) -> None:
    found, scope = twin(name)
    system = trace(found)
    if statement in {each.name for each in system.leads_to}:
        assert not all(each.kept for each in check(system, scope))
        return
    violation = explore(system, scope, invariants=[statement], limit_states=1_000_000).violation
    assert violation is not None
    assert violation.invariant == statement


@pytest.mark.parametrize(
    ("model", "broken", "steps"), [(GivesPositionsAgain, USED, 1), (HandsOutUndelivered, FLAG, 2)]
)
def test_each_step_is_needed(model: type[Model], broken: str, steps: int) -> None:
    assert explore(trace(PagingPlaces), SCOPE, invariants=[broken]).violation is None
    found = explore(trace(model), SCOPE, invariants=[broken]).violation
    assert found is not None
    assert len(found.trace) - 1 == steps
