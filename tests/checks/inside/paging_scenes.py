"""Views of queues that page, shared by tests."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Message, Order, Priority
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Consume,
    Drain,
    Get,
    Inspect,
    Operation,
    Publish,
    Release,
)
from brokerproof.spec.rabbitmq.view import PagingQueueView
from tests.checks.inside import shown_views
from tests.checks.inside.shown_views import declared

TIGHT = "rabbitmq-paging?segment=2&batch=1&journal=4&file=200&target=1"


def published(*names: str, persistent: Iterable[str] = (), priority: int = 4) -> list[Operation]:
    """Return publishes of messages of these names to the queue."""
    return [
        Publish(
            queue="q",
            message=Message(id=name, persistent=name in {*persistent}, priority=priority),
        )
        for name in names
    ]


def carried_out(
    operations: Iterable[Operation], address: str = TIGHT, order: Order | None = None
) -> Candidate:
    """Return a broker with a durable queue, to which this was done."""
    return shown_views.carried_out(make(address), [declared(order), *operations])


def shown_by(broker: Candidate) -> PagingQueueView:
    """Return a broker's view of the queue."""
    view = broker.handle(Inspect(queue="q")).inspection
    assert isinstance(view, PagingQueueView)
    return view


def everything() -> list[Operation]:
    """Return operations that fill each place of a queue, with a consumer without room."""
    return [
        *published("a", "b", "c", "d", "e", "f", "g", persistent="bd"),
        Get(channel="gets", queue="q"),
        Get(channel="gets", queue="q"),
        Consume(channel="ch", queue="q", consumer="c0", credit=Credit(1)),
        *published("h", "i", "j", persistent="i"),
        Release(delivery="d0"),
        Drain(),
    ]


def full(**changes: object) -> PagingQueueView:
    """Return the view of such a queue, its backing queue changed."""
    return changed(shown_by(carried_out(everything())), **changes)


def changed(view: PagingQueueView, **changes: object) -> PagingQueueView:
    """Return a view with its one backing queue changed."""
    (level,) = view.levels
    return replace(view, levels=(replace(level, **changes),))


def with_levels() -> PagingQueueView:
    """Return the view of a queue with three levels."""
    operations = [*published("a", "b"), *published("c", priority=9)]
    return shown_by(carried_out(operations, order=Priority(3)))
