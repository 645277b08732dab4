"""Views of the reference's queues move as in the model of the documents; and twins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.watch import path_query
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue, client_step
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.models.qpid.pointer_queue_clock import TimedQueue
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority, level_of
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Advance,
    Cancel,
    CloseChannel,
    Consume,
    ConsumeMode,
    Declare,
    Drain,
    Get,
    GetMode,
    Inspect,
    Operation,
    Publish,
    Release,
    Selector,
)
from brokerproof.spec.qpid.view import EntryView, PointerQueueView, SubscriptionView
from tests.models.projected import path

MODES: tuple[ConsumeMode, ...] = ("acknowledge", "automatic", "browse")
KINDS = (
    *("publish", "publish", "publish", "consume", "get", "settle", "settle", "end", "drain"),
    "advance",
)
SELECTORS: tuple[Selector | None, ...] = (None, None, {"colour": "red"})
GETS: tuple[GetMode, ...] = ("acknowledge", "automatic")


@dataclass(frozen=True)
class Look:
    """Two views of the reference's queue and the client's operation between them."""

    before: PointerQueueView
    after: PointerQueueView
    happened: ClientStep


def looks(seed: int, order: Order, operations: int, address: str = "qpid-push") -> Iterator[Look]:
    """Drive the reference at random and yield every look."""
    drawn = random.Random(seed)  # noqa: S311 (a seed is the point)
    broker = make(address)
    broker.handle(Declare(queue="q", order=order))
    view = PointerQueueView(order)
    consumers: list[str] = []
    for number in range(operations):
        operation: Operation
        settled = ""
        match drawn.choice(KINDS):
            case "publish":
                message = Message(
                    id=f"m{number}",
                    priority=drawn.randrange(10),
                    properties={"colour": drawn.choice(("red", "blue"))},
                )
                operation = Publish(
                    queue="q",
                    message=message,
                    not_before_s=drawn.choice((None, None, None, 0, 1)),
                    expires_s=drawn.choice((None, None, None, 1, 2)),
                )
            case "advance":
                operation = Advance(seconds=1)
            case "consume" if len(consumers) < 4:
                consumers.append(f"c{number}")
                operation = Consume(
                    channel=drawn.choice("ab"),
                    queue="q",
                    consumer=consumers[-1],
                    mode=drawn.choice(MODES),
                    credit=Credit(drawn.choice((1, 2, None))),
                    selector=drawn.choice(SELECTORS),
                )
            case "get":
                operation = Get(channel="a", queue="q", mode=drawn.choice(GETS))
            case "settle" if broker.outbox.unsettled:
                delivery = drawn.choice(list(broker.outbox.unsettled))
                message_held = broker.outbox.unsettled[delivery].message
                assert message_held is not None
                settled = message_held.id
                operation = drawn.choice((Acknowledge, Release))(delivery=delivery)
            case "end" if consumers and drawn.random() < 0.5:
                operation = Cancel(consumer=consumers.pop())
            case "end" if drawn.random() < 0.3:
                operation = CloseChannel(channel=drawn.choice("ab"))
            case _:
                operation = Drain()
        answer = broker.handle(operation)
        assert answer.ok or isinstance(operation, Cancel), answer
        seen = broker.handle(Inspect(queue="q")).inspection
        assert isinstance(seen, PointerQueueView)
        done = operation if answer.ok else Drain()
        yield Look(
            view, seen, client_step(done, settled, "q", lambda m: level_of(m.priority, order))
        )
        view = seen


@pytest.mark.each_time(2)
@pytest.mark.parametrize("address", ["qpid-push", "qpid-push?runner=drain"])
@pytest.mark.parametrize("order", [Fifo(), Priority(3), Priority(10)], ids=str)
def test_each_step_of_the_reference_is_a_path_of_the_model(order: Order, address: str) -> None:
    taken: Counter[str] = Counter()
    given_up = 0
    for seed in range(14):
        for look in looks(seed, order, 32, address):
            try:
                found = path(look.before, look.after, look.happened)
            except TooFar:
                given_up += 1
                continue
            assert found is not None, look
            taken.update(found)
    assert given_up <= 2
    untaken = {action.name for action in trace(TimedQueue).actions} - taken.keys()
    assert untaken == ({"insert", "look_back"} if order == Fifo() else {"append"})


def consumer(name: str, last_seen: int, released: int | None = None) -> SubscriptionView:
    """Return a consumer that takes."""
    return SubscriptionView(name, "ch", False, False, True, last_seen, released)


def held(message: str, by: int = 0) -> EntryView:
    """Return an acquired entry."""
    return EntryView(message, 0, "acquired", by)


def free(message: str, level: int = 0) -> EntryView:
    """Return an entry that is available."""
    return EntryView(message, level, "available")


def view(entries: list[EntryView], *subscriptions: SubscriptionView) -> PointerQueueView:
    """Return a view of a queue that is first in first out."""
    return PointerQueueView(Fifo(), tuple(entries), tuple(subscriptions))


NOTHING = ClientStep(Drain())
RELEASE = ClientStep(Release(delivery="d"), settled="a")

TWO = view([held("a"), free("b")], consumer("c", 1))
RELEASED = view([free("a"), held("b")], consumer("c", 2))


@pytest.mark.parametrize(
    ("before", "after", "happened", "expected"),
    [
        # The released entry is where the pointer goes back to.
        (TWO, view([free("a"), free("b")], consumer("c", 1, 1)), RELEASE, ("release",)),
        # It may go straight back to the same consumer.
        (TWO, view([held("a"), free("b")], consumer("c", 1)), RELEASE, ("release", "deliver")),
        # An entry behind the place is delivered without a release.
        (TWO, view([held("a"), held("b")], consumer("c", 2)), NOTHING, ("deliver",)),
    ],
)
def test_what_the_documents_do_is_explained(
    before: PointerQueueView,
    after: PointerQueueView,
    happened: ClientStep,
    expected: tuple[str, ...],
) -> None:
    assert path(before, after, happened) == expected


@pytest.mark.parametrize(
    ("before", "after", "happened"),
    [
        # The pointer itself is moved back: the next entry is the same, the step is not.
        (TWO, view([free("a"), free("b")], consumer("c", 0)), RELEASE),
        # The pointer does not go back at all.
        (TWO, view([free("a"), free("b")], consumer("c", 1)), RELEASE),
        # A later entry overtakes the released one.
        (TWO, RELEASED, RELEASE),
        # A pointer moves without an operation.
        (TWO, view([free("a"), free("b")], consumer("c", 1)), NOTHING),
        (TWO, view([held("a")], consumer("c", 1)), NOTHING),
        # A pointer passes an entry that it could have delivered.
        (TWO, view([held("a"), free("b")], consumer("c", 2)), NOTHING),
        # Another entry than the settled one goes back.
        (
            view([held("a"), held("b")], consumer("c", 2)),
            view([held("a"), free("b")], consumer("c", 2, 2)),
            RELEASE,
        ),
    ],
)
def test_what_the_documents_do_not_do_is_not_explained(
    before: PointerQueueView, after: PointerQueueView, happened: ClientStep
) -> None:
    assert path(before, after, happened) is None


@pytest.mark.parametrize(
    ("after", "complaint"),
    [
        (view([held("a"), free("b"), free("x")], consumer("c", 1)), "x is there"),
        (view([free("b"), held("a")], consumer("c", 2)), "not in their order"),
    ],
)
def test_views_that_are_not_of_one_queue_are_refused(
    after: PointerQueueView, complaint: str
) -> None:
    with pytest.raises(NotAQueue, match=complaint):
        path(TWO, after, NOTHING)


@pytest.mark.parametrize(("looks_back", "expected"), [(1, ("insert", "look_back")), (None, None)])
def test_an_arrival_ahead_of_a_pointer_is_looked_back_at(
    looks_back: int | None, expected: tuple[str, ...] | None
) -> None:
    before = PointerQueueView(Priority(2), (held("b"),), (consumer("c", 1),))
    entries = (free("a", 1), held("b"))
    after = PointerQueueView(Priority(2), entries, (consumer("c", 2, looks_back),))
    arrives = ClientStep(Publish(queue="q", message=Message(id="a")), arrival=("a", 1))
    assert path(before, after, arrives) == expected


@pytest.mark.parametrize("goes_back_to", [1, None])
def test_a_channel_that_closes_with_much_in_its_hands_is_followed(goes_back_to: int | None) -> None:
    names = [f"m{number}" for number in range(12)]
    stays = msgspec.structs.replace(consumer("d", 12, goes_back_to), channel="other")
    before = view(
        [held(name) for name in names],
        consumer("c", 12),
        msgspec.structs.replace(stays, released=None),
    )
    after = view([free(name) for name in names], stays)
    closing = ClientStep(CloseChannel(channel="ch"))
    assert (path(before, after, closing) is not None) == (goes_back_to == 1)


def test_a_step_with_too_many_paths_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("STATES_FEW", "STATES_MAX"):
        monkeypatch.setattr(path_query, limit, 1)
    path_query.find_steps.cache_clear()
    far = view([held("a"), held("b"), held("c")], consumer("c", 1))
    with pytest.raises(TooFar):
        path(view([held("a"), free("b"), free("c")], consumer("c", 1)), far, NOTHING)
