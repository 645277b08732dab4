"""A view is readable or not: what is wrong with it is said, and what passes never fails later."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.views import malformed
from brokerproof.models.language.watch.client_step import NotAQueue, happening
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.models.qpid.pointer_queue_steps import explained
from brokerproof.reference import make
from brokerproof.spec.protocol.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.operations import (
    Consume,
    Declare,
    Drain,
    Get,
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

ENTRIES = (EntryView("m0", 0, "acquired", 0), EntryView("m1", 0, "available"))
TAKER = SubscriptionView("c0", "ch0", browses=False, settles_when_sent=False, active=True)
VIEW = PointerQueueView(Fifo(), ENTRIES, (replace(TAKER, last_seen=1),))


def entry(**fields: Any) -> PointerQueueView:
    """Return the view with its first entry changed."""
    return replace(VIEW, entries=(replace(ENTRIES[0], **fields), ENTRIES[1]))


def taker(**fields: Any) -> PointerQueueView:
    """Return the view with its subscription changed."""
    return replace(VIEW, subscriptions=(replace(TAKER, **fields),))


def listed(**lists: Any) -> PointerQueueView:
    """Return the view with lists of consumers."""
    return replace(VIEW, lists=replace(ConsumerListsView(), **lists))


class Trap:
    """Has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("a trap")


@pytest.mark.parametrize(
    ("view", "what"),
    [
        ({"kind": "pointer-queue"}, "an object of type dict, not a view"),
        (replace(VIEW, order=Priority(2)), "a queue of another order than it was declared with"),
        (replace(VIEW, entries=list(ENTRIES)), "entries or subscriptions are no tuple"),
        (replace(VIEW, subscriptions=None), "entries or subscriptions are no tuple"),
        (replace(VIEW, entries=(*ENTRIES, "m2")), "an object of type str as entry 3"),
        (replace(VIEW, entries=(*ENTRIES, ENTRIES[1])), "a message that is there twice"),
        (replace(VIEW, subscriptions=(TAKER, "c1")), "an object of type str as a subscription"),
        (entry(message=0), "an object of type int as the name of a message"),
        (entry(level="0"), "an object of type str as the level of m0"),
        (entry(level=True), "an object of type bool as the level of m0"),
        (entry(state="gone"), "m0 in no state that there is"),
        (entry(holder=None), "m0 acquired and held by nobody"),
        (entry(state="available"), "m0 available and held by 0"),
        (entry(holder=1), "m0 held by subscription 1 of 1"),
        (entry(holder=-1), "m0 held by subscription -1 of 1"),
        (entry(holder=Trap()), "m0 held by subscription an object of type Trap of 1"),
        (taker(consumer=7), "a subscription whose names are no text"),
        (taker(channel=None), "a subscription whose names are no text"),
        (taker(active=1), "c0 with something else than true or false"),
        (taker(last_seen=3), "c0 at entry 3 of 2"),
        (taker(last_seen=-1), "c0 at entry -1 of 2"),
        (taker(last_seen=None), "c0 at entry nobody of 2"),
        (taker(last_seen=1.0), "c0 at entry an object of type float of 2"),
        (taker(released=0), "c0 sent back to entry 0 of 2"),
        (taker(consumer=None, released=3), "a get sent back to entry 3 of 2"),
        (replace(VIEW, lists=()), "an object of type tuple as the lists of consumers"),
        (listed(notified=[0]), "a list of consumers that is no tuple: notified"),
        (listed(interested=(0, 1)), "subscription 1 of 1 in the list interested"),
        (taker(unwanted=[1]), "c0 with an object of type list as what it does not want"),
        (taker(unwanted=(0,)), "c0 that does not want entry 0 of 2"),
        (taker(unwanted=(1, 1)), "c0 that does not want entry 1 of 2"),
        (taker(unwanted=(1, 3)), "c0 that does not want entry 3 of 2"),
    ],
)
def test_what_is_wrong_with_a_view_is_said(view: object, what: str) -> None:
    assert malformed(VIEW, Fifo()) == ""
    assert what in malformed(view, Fifo())


def operations() -> Iterator[Operation]:
    """Yield what makes a queue with something of everything in it."""
    yield Declare(queue="q0", order=Priority(3))
    for number, priority in enumerate((4, 9, 0, 4, 4)):
        yield Publish(queue="q0", message=Message(id=f"m{number}", priority=priority))
    yield Consume(channel="ch0", queue="q0", consumer="c0", credit=Credit(2))
    yield Consume(channel="ch1", queue="q0", consumer="c1", mode="browse")
    yield Get(channel="ch1", queue="q0")
    yield Release(delivery="d0")
    yield Drain()


def seen() -> Iterator[tuple[Operation, PointerQueueView]]:
    """Yield what the reference shows after each of them."""
    broker = make("qpid-push")
    for operation in operations():
        assert broker.handle(operation).ok
        view = broker.handle(Inspect(queue="q0")).inspection
        assert isinstance(view, PointerQueueView)
        yield operation, view


def test_what_the_reference_shows_is_in_form() -> None:
    assert [malformed(view, Priority(3)) for _, view in seen()] == [""] * 11


WRONG = (-2, -1, 0, 1, 3, 99, None, "", "c0", "m1", True, 1.0, "available", "acquired", ())


def spoilt(view: PointerQueueView, chosen: random.Random) -> PointerQueueView:
    """Return a view with one field of one of its parts made something else."""
    name = chosen.choice(("entries", "subscriptions"))
    parts: list[Any] = list(getattr(view, name))
    if not parts:
        return view
    at = chosen.randrange(len(parts))
    field = chosen.choice(type(parts[at]).__struct_fields__)
    parts[at] = replace(parts[at], **{field: chosen.choice(WRONG)})
    return replace(view, **{name: tuple(parts)})


@pytest.mark.parametrize("seed", range(4))
def test_a_view_in_form_can_be_read_however_wrong_it_is(seed: int) -> None:
    chosen = random.Random(seed)  # noqa: S311  the same in each run, nothing secret
    views = list(seen())
    read = refused = 0
    for _ in range(300):
        at = chosen.randrange(1, len(views))
        operation, after = views[at]
        view = spoilt(after, chosen)
        if malformed(view, Priority(3)):
            refused += 1
            continue
        read += 1
        happened = happening(operation, "m1", "q0", lambda _: 1)
        for before, behind in ((views[at - 1][1], view), (view, after)):
            try:
                explained(before, behind, happened)
            except (NotAQueue, TooFar):
                continue
    assert read > 30
    assert refused > 100
