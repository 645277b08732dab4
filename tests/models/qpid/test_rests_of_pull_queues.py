"""A pull queue that announces rest is at rest in the model; and twins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from brokerproof.models.language.watch.path_query import find_steps, quotient
from brokerproof.models.qpid.projection import queries_at_rest
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Consume,
    Declare,
    Drain,
    Inspect,
    Operation,
    Publish,
    Release,
)
from brokerproof.spec.qpid.view import (
    ConsumerListsView,
    EntryView,
    PointerQueueView,
    SubscriptionView,
)

LISTS = ConsumerListsView.__struct_fields__


def may_rest(view: PointerQueueView) -> bool:
    """Whether the model may be at rest in the state that a view shows."""
    (query,) = queries_at_rest(view)
    return find_steps(quotient(query)) == ("come_to_rest",)


def operations() -> Iterator[Operation]:
    """Yield operations that let consumers take, lose and regain room, and be passed over."""
    yield Declare(queue="q", order=Fifo())
    yield Consume(channel="a", queue="q", consumer="c0", credit=Credit(1), priority=1)
    yield Consume(channel="b", queue="q", consumer="c1", credit=Credit(1))
    yield Consume(channel="b", queue="q", consumer="c2", mode="browse")
    for number in range(3):
        yield Publish(queue="q", message=Message(id=f"m{number}"))
    yield Release(delivery="d0")
    yield Acknowledge(delivery="d2")


def test_whenever_the_reference_has_come_to_rest_the_model_may() -> None:
    broker = make("qpid-pull")
    lists: set[str] = set()
    for operation in operations():
        assert broker.handle(operation).ok, operation
        assert broker.handle(Drain()).ok
        view = broker.handle(Inspect(queue="q")).inspection
        assert isinstance(view, PointerQueueView)
        assert view.lists is not None
        assert may_rest(view), view
        lists |= {name for name in LISTS if getattr(view.lists, name)}
    assert lists == {"interested", "not_interested", "non_acquiring"}


def test_before_the_jobs_run_it_is_not_at_rest() -> None:
    broker = make("qpid-pull?runner=drain")
    for operation in (
        Declare(queue="q", order=Fifo()),
        Consume(channel="a", queue="q", consumer="c0"),
        Publish(queue="q", message=Message(id="m0")),
    ):
        broker.handle(operation)
    view = broker.handle(Inspect(queue="q")).inspection
    assert isinstance(view, PointerQueueView)
    assert view.lists == ConsumerListsView(notified=(0,))
    assert not may_rest(view)


FREE, TAKEN = EntryView("m0", 0, "available"), EntryView("m0", 0, "acquired", 0)
SUBSCRIBER = SubscriptionView("c0", "a", browses=False, settles_when_sent=False, active=True)
BROWSER = replace(SUBSCRIBER, browses=True)


@pytest.mark.parametrize(
    ("entry", "subscription", "lists", "rests"),
    [
        (FREE, SUBSCRIBER, ConsumerListsView(not_interested=(0,)), True),
        (FREE, SUBSCRIBER, ConsumerListsView(interested=(0,)), False),
        (TAKEN, SUBSCRIBER, ConsumerListsView(interested=(0,)), True),
        (TAKEN, SUBSCRIBER, ConsumerListsView(notified=(0,)), False),
        (FREE, replace(SUBSCRIBER, unwanted=(1,)), ConsumerListsView(interested=(0,)), True),
        (FREE, BROWSER, ConsumerListsView(non_acquiring=(0,)), False),
        (FREE, replace(BROWSER, last_seen=1), ConsumerListsView(non_acquiring=(0,)), True),
    ],
)
def test_at_rest_no_consumer_is_notified_or_wants_an_entry_that_it_could_have(
    entry: EntryView, subscription: SubscriptionView, lists: ConsumerListsView, rests: bool
) -> None:
    view = PointerQueueView(Fifo(), (entry,), (subscription,), lists)
    assert may_rest(view) == rests


def test_a_queue_that_pushes_is_not_asked_whether_it_rests() -> None:
    assert not [*queries_at_rest(PointerQueueView(Fifo(), (FREE,), (SUBSCRIBER,)))]
