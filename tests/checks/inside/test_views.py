"""The form of views: errors are reported, and accepted views can be read, however wrong."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import snapshot
from brokerproof.checks.inside.step_conformance import explained, new_queue
from brokerproof.checks.inside.views import Malformed, well_formed
from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue, OutsideTheModel
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.spec.activemq.view import AuditView, HeldView, StoredView
from brokerproof.spec.messages import Fifo, Priority
from brokerproof.spec.protocol.answers import Inspection
from brokerproof.spec.protocol.operations import Drain
from brokerproof.spec.qpid.view import (
    ConsumerListsView,
    EntryView,
    PointerQueueView,
    SubscriptionView,
)
from brokerproof.spec.rabbitmq.view import InLineView, StatusView
from tests.checks.inside import cursor_scenes, paging_scenes

ENTRIES = (EntryView("m0", 0, "acquired", 0), EntryView("m1", 0, "available"))
SUBSCRIBER = SubscriptionView("c0", "ch0", browses=False, settles_when_sent=False, active=True)
VIEW = PointerQueueView(Fifo(), ENTRIES, (replace(SUBSCRIBER, last_seen=1),))
PAGING, CURSOR = paging_scenes.full(), cursor_scenes.full()


def entry(**fields: Any) -> PointerQueueView:
    """Return the view with its first entry changed."""
    return replace(VIEW, entries=(replace(ENTRIES[0], **fields), ENTRIES[1]))


def subscriber(**fields: Any) -> PointerQueueView:
    """Return the view with its subscription changed."""
    return replace(VIEW, subscriptions=(replace(SUBSCRIBER, **fields),))


def level(**fields: Any) -> Inspection:
    """Return the view of a queue with cursors, its level changed."""
    return cursor_scenes.changed(cursor_scenes.pending(), **fields)


class Name(str):
    """A text with a mind of its own."""

    __slots__ = ()


class Trap:
    """Has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("a trap")


@pytest.mark.parametrize(
    ("view", "what"),
    [
        ({"kind": "pointer-queue"}, "an object of type dict, not a view"),
        (replace(VIEW, order=Priority(2)), "a queue of another order than it was declared with"),
        (replace(VIEW, subscriptions=None), "Expected `array`, got `null` - at `$.subscriptions`"),
        (replace(VIEW, entries=(*ENTRIES, "m2")), "Expected `object`, got `str` - at `$.entries"),
        (replace(VIEW, entries=(*ENTRIES, ENTRIES[1])), "a message that is there twice"),
        (entry(level=True), "Expected `int`, got `bool` - at `$.entries[0].level`"),
        (entry(state="gone"), "Invalid enum value 'gone' - at `$.entries[0].state`"),
        (entry(holder=None), "m0 acquired and held by nobody"),
        (entry(state="available"), "m0 available and held by 0"),
        (entry(holder=1), "m0 held by subscription 1 of 1"),
        (entry(message=Name("m0")), "Encoding objects of type Name is unsupported"),
        (entry(holder=Trap()), "Encoding objects of type Trap is unsupported"),
        (subscriber(last_seen=3), "c0 at entry 3 of 2"),
        (subscriber(last_seen=-1), "c0 at entry -1 of 2"),
        (subscriber(released=0), "c0 sent back to entry 0 of 2"),
        (subscriber(consumer=None, released=3), "a get sent back to entry 3 of 2"),
        (subscriber(unwanted=(0,)), "c0 that does not want entry 0 of 2"),
        (subscriber(unwanted=(1, 1)), "c0 that does not want entry 1 of 2"),
        (subscriber(unwanted=(1, 3)), "c0 that does not want entry 3 of 2"),
        (
            replace(VIEW, lists=ConsumerListsView(interested=(0, 1))),
            "subscription 1 of 1 in the list interested",
        ),
        (replace(PAGING, levels=()), "a queue without any level"),
        (replace(PAGING, blocked=(InLineView("c0", 1),)), "`$.blocked[0].has_room`"),  # type: ignore[arg-type]
        (paging_scenes.full(target=-1), "a negative target at level 0"),
        (paging_scenes.full(segment=0), "a segment or a batch of nothing"),
        (paging_scenes.full(batch=0), "a segment or a batch of nothing"),
        (
            paging_scenes.full(pending=(StatusView(2, "a"), StatusView(2, "b"))),
            "pending in another order",
        ),
        (paging_scenes.full(q4=(StatusView(-1, "a"),)), "a negative position"),
        (replace(CURSOR, levels=()), "a queue without any level"),
        (replace(CURSOR, held=(HeldView("a", None),)), "`$.held[0].channel`"),  # type: ignore[arg-type]
        (replace(CURSOR, audit=AuditView(0, 0, 2)), "an audit of nothing"),
        (replace(CURSOR, audit=AuditView(0, 2, 0)), "an audit of nothing"),
        (level(stored=(StoredView("a", 1, 1), StoredView("a", 2, 1))), "a message that is stored"),
        (level(read=6), "a position outside of the store at level 0"),
        (level(read=-1), "a position outside of the store at level 0"),
    ],
)
def test_what_is_wrong_with_a_view_is_said(view: object, what: str) -> None:
    with pytest.raises(Malformed) as said:
        well_formed(view, Fifo())
    assert what in str(said.value)


@pytest.mark.parametrize(
    ("view", "order"),
    [
        (VIEW, Fifo()),
        (PAGING, Fifo()),
        (paging_scenes.with_levels(), Priority(3)),
        (CURSOR, Fifo()),
        (cursor_scenes.pending(), Fifo()),
        (cursor_scenes.with_parked(), Fifo()),
        (cursor_scenes.with_levels(), Priority(3)),
    ],
)
def test_what_is_in_form_is_what_was_shown(view: Inspection, order: Any) -> None:
    assert well_formed(view, order) == view


WRONG = (-2, -1, 0, 1, 3, 99, None, "", "a", True, 1.0, (), (1,), ("a",), AuditView(), "acquired")


def parts(view: msgspec.Struct) -> Iterator[msgspec.Struct]:
    """Yield a view with all structures in it that have a field."""
    if view.__struct_fields__:
        yield view
    for name in view.__struct_fields__:
        value = getattr(view, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, msgspec.Struct):
                yield from parts(each)


def with_part(view: Any, old: msgspec.Struct, new: msgspec.Struct) -> Any:
    """Return a view in which a part is another."""
    if view is old:
        return new
    if isinstance(view, tuple):
        return tuple(with_part(each, old, new) for each in view)
    if not isinstance(view, msgspec.Struct):
        return view
    return replace(
        view, **{n: with_part(getattr(view, n), old, new) for n in view.__struct_fields__}
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sound", [VIEW, PAGING, CURSOR], ids=lambda view: view.kind)
def test_whatever_passes_can_be_read(seed: int, sound: Inspection) -> None:
    chosen = random.Random(seed)  # noqa: S311 - no secrets
    passed = refused = 0
    for _ in range(200):
        part = chosen.choice([*parts(sound)])
        field = chosen.choice(part.__struct_fields__)
        spoilt = with_part(sound, part, replace(part, **{field: chosen.choice(WRONG)}))
        try:
            seen = well_formed(spoilt, Fifo())
        except Malformed:
            refused += 1
            continue
        passed += 1
        snapshot(seen, rests=True)
        assert str(seen)
        for before, after in ((sound, seen), (new_queue(seen, Fifo()), seen), (seen, sound)):
            with contextlib.suppress(NotAQueue, OutsideTheModel, TooFar):
                explained(before, after, ClientStep(Drain()))
    assert passed > 15
    assert refused > 50
