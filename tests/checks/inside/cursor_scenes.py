"""Views of queues with cursors, shared by tests."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from brokerproof.reference import make
from brokerproof.spec.activemq.view import CursorQueueView
from brokerproof.spec.messages import Credit, Message, Order, Priority
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import (
    Consume,
    ConsumeMode,
    Drain,
    Get,
    Inspect,
    Operation,
    Publish,
    Release,
)
from tests.checks.inside import shown_views
from tests.checks.inside.shown_views import declared

TIGHT = "activemq-cursor?memory=2200&page=2&depth=1&word=2"
WAITS = "activemq-cursor?memory=1100&transient=memory"


def published(*names: str, persistent: bool = True, priority: int = 4) -> list[Operation]:
    """Return publishes of messages of these names to the queue."""
    return [
        Publish(queue="q", message=Message(id=name, persistent=persistent, priority=priority))
        for name in names
    ]


def consumes(
    consumer: str, window: int | None = None, mode: ConsumeMode = "acknowledge"
) -> Consume:
    """Return the subscription of a consumer or browser on a separate channel."""
    return Consume(
        channel=f"ch-{consumer}",
        queue="q",
        consumer=consumer,
        mode=mode,
        credit=Credit(window),
    )


def carried_out(
    operations: Iterable[Operation],
    address: str = TIGHT,
    order: Order | None = None,
    *,
    durable: bool = True,
) -> Candidate:
    """Return a broker with a queue, to which this was done."""
    return shown_views.carried_out(make(address), [declared(order, durable=durable), *operations])


def shown_by(broker: Candidate) -> CursorQueueView:
    """Return a broker's view of the queue."""
    view = broker.handle(Inspect(queue="q")).inspection
    assert isinstance(view, CursorQueueView)
    return view


def everything() -> list[Operation]:
    """Return operations that fill each list of a queue, as far as possible at once."""
    return [
        *published("a", "b", "c"),
        Get(channel="gets", queue="q"),
        Get(channel="gets", queue="q"),
        Get(channel="gets", queue="q"),
        *published("t", "u", persistent=False),
        *published("d", "e"),
        Release(delivery="d1"),
        consumes("look", mode="browse"),
        consumes("full", 0),
        *published("f", "g"),
        *published("v", persistent=False),
        Drain(),
    ]


def full(**changes: object) -> CursorQueueView:
    """Return the view of such a queue, changed."""
    return replace(shown_by(carried_out(everything())), **changes)


def changed(view: CursorQueueView, **changes: object) -> CursorQueueView:
    """Return a view with its one level changed."""
    (level,) = view.levels
    return replace(view, levels=(replace(level, **changes),))


def pending() -> CursorQueueView:
    """Return the view of a queue with read, unread and acquired messages."""
    operations = [
        *published("a", "b", "c", "d", "e"),
        consumes("c", 1),
        *published("x", "y", persistent=False),
        Drain(),
    ]
    return shown_by(carried_out(operations))


def with_levels() -> CursorQueueView:
    """Return the view of a queue with three levels."""
    operations = [*published("a", "b"), *published("c", priority=9)]
    return shown_by(carried_out(operations, order=Priority(3)))


def with_parked() -> CursorQueueView:
    """Return the view of a queue in memory alone, with publishes that wait."""
    return shown_by(carried_out(published("a", "b", "c"), WAITS, durable=False))
