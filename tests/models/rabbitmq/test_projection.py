"""Views of the reference's paging queues move as in the model; and twins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec.structs import replace

from brokerproof.models.language.core.model import trace
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue
from brokerproof.models.rabbitmq.paging_places import PagingPlaces
from brokerproof.models.rabbitmq.projection import new_queue
from brokerproof.spec.messages import Fifo, Message, Order, Priority
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Drain,
    Publish,
    Purge,
    Release,
)
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    DeltaView,
    HandedOutView,
    IndexEntryView,
    PagingQueueView,
    StatusView,
)
from tests.models.projected import path
from tests.models.walking_client import Client, Habits
from tests.models.walking_client import Look as AnyLook

Look: TypeAlias = AnyLook[PagingQueueView]


def draws(drawn: random.Random, name: str) -> Message:
    """Return a message to be published."""
    persistent = drawn.random() < 0.4
    return Message(id=name, priority=drawn.randrange(10), persistent=persistent)


HABITS = Habits(draws, windows=(1, 2, None), purges=True, mapping="clamp")


SIZES = ("segment=2&batch=1&target=0", "segment=2&batch=2&target=2", "segment=4&batch=1&target=1")


def looks(seeds: int = 3, *orders: Order) -> Iterator[Look]:
    """Yield steps of brokers of all sizes."""
    for sizes in SIZES:
        for order in orders or (Fifo(),):
            for seed in range(seeds):
                address = f"rabbitmq-paging?{sizes}&journal=4&file=200"
                yield from Client(address, order, seed, HABITS).walk(PagingQueueView)


def test_each_step_of_the_reference_is_a_path() -> None:
    taken: Counter[str] = Counter()
    for look in looks(3, Fifo(), Priority(2)):
        steps = path(look.before, look.after, look.happened)
        assert steps is not None, look
        taken.update(steps)
    # Nothing here is dropped from the front of a queue.
    names = {action.name for action in trace(PagingPlaces).actions}
    assert taken.keys() == {name for name in names if not name.startswith("put_back")}


# Views without a path between them.

NOTHING = ClientStep(Drain())


def status(seq: int, **facts: bool) -> StatusView:
    return StatusView(seq, f"m{seq}", **facts)


def queue(**fields: Any) -> PagingQueueView:
    """Return a queue with one level."""
    level: BackingQueueView = BackingQueueView(
        level=0, **{"segment": 2, "next_seq": 4, "target": 1, **fields}
    )
    return PagingQueueView(order=Fifo(), levels=(level,))


FULL = queue(q4=(status(0, in_ram=True), status(1, in_ram=True)))
PAGED = queue(q4=(status(0, in_ram=True),), q3=(status(1, on_disk=True),))
PUBLISHES = ClientStep(Publish(queue="q", message=Message(id="m4")), arrival=("m4", 0))


@pytest.mark.parametrize(
    ("before", "after", "happened", "expected"),
    [
        (FULL, FULL, NOTHING, ()),
        (FULL, PAGED, NOTHING, ("page_q4",)),
        (
            FULL,
            queue(q4=(status(1, in_ram=True),), pending=(status(0, delivered=True, in_ram=True),)),
            NOTHING,
            ("fetch_from_q4",),
        ),
        (FULL, queue(q4=(status(1, in_ram=True),)), NOTHING, ("fetch_from_q4",)),
        (
            PAGED,
            queue(
                q4=PAGED.levels[0].q4,
                q3=PAGED.levels[0].q3,
                q1=(status(4, in_ram=True),),
                next_seq=5,
            ),
            PUBLISHES,
            ("publish",),
        ),
        (FULL, queue(), ClientStep(Purge(queue="q")), ("purge",)),
    ],
)
def test_a_path_is_told(
    before: PagingQueueView,
    after: PagingQueueView,
    happened: ClientStep,
    expected: tuple[str, ...],
) -> None:
    assert path(before, after, happened) == expected


@pytest.mark.parametrize(
    ("before", "after", "happened"),
    [
        # Paged from the wrong end, or out of turn; written and still in memory, or not written.
        (FULL, queue(q4=(status(1, in_ram=True),), q3=(status(0, on_disk=True),)), NOTHING),
        (
            FULL,
            queue(q4=(status(0, in_ram=True),), q3=(status(1, in_ram=True, on_disk=True),)),
            NOTHING,
        ),
        (FULL, queue(q4=(status(0, in_ram=True),), q3=(status(1),)), NOTHING),
        # The second was fetched first; the fetched message does not count as delivered.
        (FULL, queue(q4=(status(0, in_ram=True),)), NOTHING),
        (FULL, queue(q4=(status(1, in_ram=True),), pending=(status(0, in_ram=True),)), NOTHING),
        # A paged message came back without a fetch; paging emptied q3.
        (PAGED, FULL, NOTHING),
        (
            PAGED,
            queue(
                q4=PAGED.levels[0].q4, delta=DeltaView(1, 1, 2), index=(IndexEntryView(1, "m1"),)
            ),
            NOTHING,
        ),
        # An arrival before others, or where q3 has something.
        (
            PAGED,
            queue(
                q4=(*PAGED.levels[0].q4, status(4, in_ram=True)), q3=PAGED.levels[0].q3, next_seq=5
            ),
            PUBLISHES,
        ),
    ],
)
def test_what_the_model_does_not_do_is_no_path(
    before: PagingQueueView, after: PagingQueueView, happened: ClientStep
) -> None:
    assert path(before, after, happened) is None


RELEASES = ClientStep(Release(delivery="d"), settled="m0")
HELD = queue(pending=(status(0, delivered=True, in_ram=True), status(1, delivered=True)))


def test_a_settlement_is_the_first_action_of_its_path() -> None:
    back = queue(q4=(status(0, delivered=True, in_ram=True),), pending=HELD.levels[0].pending[1:])
    gone = queue(pending=HELD.levels[0].pending[1:])
    acknowledges = replace(RELEASES, operation=Acknowledge(delivery="d"))
    assert path(HELD, back, RELEASES) == ("requeue_to_q4",)
    assert path(HELD, back, acknowledges) is None
    assert path(HELD, gone, acknowledges) == ("acknowledge",)
    assert path(HELD, gone, NOTHING) is None
    assert path(HELD, HELD, acknowledges) is None
    assert path(HELD, HELD, RELEASES) == ("requeue_to_q4", "fetch_from_q4")


def test_a_channel_that_closes_gives_back_what_it_has() -> None:
    closing = ClientStep(CloseChannel(channel="a"))
    handed_out = tuple(HandedOutView(name, 0, seq) for seq, name in enumerate("ab"))
    before = msgspec.structs.replace(HELD, handed_out=handed_out)
    first, second = HELD.levels[0].pending
    assert path(before, queue(q4=(first,), pending=(second,)), closing) == ("requeue_to_q4",)
    given = msgspec.structs.replace(second, in_ram=True)
    assert path(before, queue(q4=(given,), pending=(first,)), closing) is None


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        (FULL, queue(next_seq=5), "its next position is 5, after 4"),
        (FULL, queue(q4=(status(2, in_ram=True),)), "m2 is there at 2 and was not published"),
        (FULL, queue(q4=(StatusView(0, "b"),)), "m0 at 0 has become b"),
        (FULL, queue(q4=(status(0, persistent=True),)), "m0 at 0 has become m0"),
        (FULL, queue(q4=(status(0),), q1=(status(0),)), "two messages are at 0"),
        (FULL, PagingQueueView(order=Fifo()), "it has other levels than before"),
    ],
)
def test_views_that_cannot_be_of_one_queue(
    before: PagingQueueView, after: PagingQueueView, complaint: str
) -> None:
    with pytest.raises(NotAQueue, match=complaint):
        path(before, after, NOTHING)


def test_what_arrives_is_what_was_published() -> None:
    known = FULL.levels[0].q4
    wrong = queue(q4=(*known, StatusView(4, "x", in_ram=True)), next_seq=5)
    with pytest.raises(NotAQueue, match="x is there at 4 and was not published"):
        path(FULL, wrong, PUBLISHES)
    new = StatusView(4, "m4", persistent=True, in_ram=True, on_disk=True, indexed=True)
    with pytest.raises(NotAQueue, match="m4 was not published as persistent"):
        path(FULL, queue(q4=(*known, new), next_seq=5), PUBLISHES)
    elsewhere = replace(PUBLISHES, arrival=("m4", 1))
    with pytest.raises(NotAQueue, match="its next position is 5"):
        path(FULL, queue(q4=(*known, status(4, in_ram=True)), next_seq=5), elsewhere)


def test_a_new_queue_has_the_sizes_that_it_shows() -> None:
    (level,) = new_queue(FULL, Fifo()).levels
    assert (level.segment, level.target, level.next_seq, level.q4) == (2, 1, 0, ())
