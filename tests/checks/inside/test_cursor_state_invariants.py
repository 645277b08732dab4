"""Views of queues with cursors, by themselves: the reference's keep all; each id can be broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import kinds, parts, snapshot
from brokerproof.spec.activemq.view import (
    AuditView,
    CursorQueueView,
    HeldView,
    MemoryView,
    ParkedView,
    PendingView,
    ReferenceView,
    SubscriberView,
)
from brokerproof.spec.messages import Priority
from brokerproof.spec.protocol.operations import Acknowledge, Drain, Publish
from tests.checks.inside.cursor_scenes import (
    carried_out,
    changed,
    consumes,
    full,
    pending,
    published,
    shown_by,
    with_levels,
    with_parked,
)

EVERYTHING = kinds()["a queue with cursors"]


def broken_in(view: CursorQueueView, *, rests: bool = False) -> set[str]:
    """Return the broken invariants of a view."""
    return {name for name, _ in snapshot(view, rests=rests).broken}


def served() -> CursorQueueView:
    """Return the view of a queue of which a consumer that has room has been given all."""
    operations = [*published("a", "b"), consumes("c"), Acknowledge(delivery="d0"), Drain()]
    return shown_by(carried_out(operations))


def test_what_the_reference_shows_is_well() -> None:
    views = (full(), pending(), with_levels(), with_parked(), served())
    assert [snapshot(view, rests=True).broken for view in views] == [()] * len(views)
    asked = [snapshot(view, rests=True).exercised for view in views]
    assert frozenset[str]().union(*asked) == EVERYTHING - {"AMQ-I7"}
    assert snapshot(served()).exercised == asked[-1] - {"AMQ-I8"}
    alone = shown_by(carried_out([consumes("c"), Drain()]))
    assert snapshot(alone, rests=True).exercised == {"AMQ-I7", "AMQ-I8"}


def test_what_is_said_of_an_empty_queue_is_nothing() -> None:
    assert snapshot(shown_by(carried_out([])), rests=True).exercised == frozenset()


PENDING = pending()
(LEVEL,) = PENDING.levels
A, B, C, D, E = LEVEL.stored
X, Y = LEVEL.on_disk
(HELD,) = PENDING.paged_in


def at(**changes: object) -> CursorQueueView:
    """Return the view with something unread, its level changed."""
    return changed(PENDING, **changes)


def held_as(**changes: object) -> CursorQueueView:
    """Return it with changed acquired messages."""
    return replace(PENDING, paged_in=(replace(HELD, **changes),))


def test_the_view_that_is_changed_below() -> None:
    assert broken_in(PENDING, rests=True) == set()
    assert (LEVEL.read, [each.message for each in LEVEL.batch]) == (2, ["b"])
    assert (HELD.message, HELD.references, PENDING.memory.used) == ("a", 1, 2050)


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        (at(read=3), {"AMQ-I1"}),
        (at(cache_enabled=True), {"AMQ-I1"}),
        (at(read=5, starts_over=True), set()),
        (at(batch=()), {"AMQ-I1", "AMQ-I15"}),
        (at(batch=(PendingView("a", 1, 1025, 1),), read=None), {"AMQ-I1", "AMQ-I9"}),
        (replace(PENDING, held=()), {"AMQ-I2", "AMQ-I3"}),
        (replace(PENDING, waiting=("z",)), {"AMQ-I2"}),
        (replace(PENDING, held=(HeldView("a", "ch-c", "d"),)), {"AMQ-I3"}),
        (held_as(channel=None, holder=None), {"AMQ-I3"}),
        (replace(PENDING, waiting=("a",)), {"AMQ-I14"}),
        (replace(PENDING, held=(*PENDING.held, HeldView("a", "ch-d", "d"))), {"AMQ-I3", "AMQ-I14"}),
        (replace(PENDING, paged_in=(HELD, HELD)), {"AMQ-I14", "AMQ-I15"}),
        (at(size=3), {"AMQ-I6"}),
        (at(size=-1), {"AMQ-I6"}),
        (at(stored=(A, B, replace(C, suppressed=True), D, E)), {"AMQ-I9"}),
        (at(stored=(A, replace(B, suppressed=False), C, D, E)), {"AMQ-I10"}),
        (replace(PENDING, audit=AuditView(1, 2, 2)), {"AMQ-I13"}),
        (replace(PENDING, audit=AuditView(-2, 2, 2)), {"AMQ-I13"}),
        (replace(PENDING, memory=MemoryView(2049, 2200)), {"AMQ-I15"}),
        (replace(PENDING, memory=MemoryView(0, 2200)), {"AMQ-I15"}),
        (held_as(references=2), {"AMQ-I16"}),
        (held_as(references=0), {"AMQ-I15"}),
        (at(batch=(replace(LEVEL.batch[0], references=0),)), {"AMQ-I15", "AMQ-I16"}),
        (at(on_disk=(X, replace(Y, references=1))), {"AMQ-I15", "AMQ-I16"}),
        (replace(PENDING, memory=MemoryView(2050, 2049)), {"AMQ-I17"}),
        (held_as(number=4), {"AMQ-I20"}),
        (at(stored=(A, B, C, E, D)), {"AMQ-I21"}),
        (at(on_disk=(Y, X)), {"AMQ-I21"}),
        (replace(PENDING, returned=("a",), held=()), {"AMQ-I3", "AMQ-I22"}),
        (at(in_memory=(PendingView("z", 9, 0, 1),)), {"AMQ-I33"}),
        (replace(PENDING, levels=(LEVEL, LEVEL), order=Priority(2)), {"AMQ-I15", "AMQ-I24"}),
    ],
)
def test_each_rule_can_be_broken(view: CursorQueueView, broken: set[str]) -> None:
    assert broken_in(view) == broken


FULL = full()


def reference(name: str) -> ReferenceView:
    """Return the paged-in message of this name."""
    return next(each for each in FULL.paged_in if each.message == name)


def with_reference(name: str, **changes: object) -> CursorQueueView:
    """Return the full view with something that is paged in changed."""
    changed_one = replace(reference(name), **changes)
    paged = tuple(changed_one if each.message == name else each for each in FULL.paged_in)
    return replace(FULL, paged_in=paged)


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        (replace(FULL, waiting=FULL.waiting[1:]), {"AMQ-I2"}),
        (replace(FULL, waiting=(FULL.waiting[1], FULL.waiting[0], *FULL.waiting[2:])), {"AMQ-I20"}),
        (replace(FULL, returned=(), waiting=("b", *FULL.waiting)), {"AMQ-I22"}),
        (with_reference("b", redelivered=False), {"AMQ-I22"}),
        (with_reference("d", redelivered=True), {"AMQ-I22"}),
        (with_reference("e", redelivered=True), {"AMQ-I20", "AMQ-I22"}),
        (with_reference("e", redelivered=True, grouped=True), {"AMQ-I22"}),
    ],
)
def test_what_was_given_and_what_waits_are_told_apart(
    view: CursorQueueView, broken: set[str]
) -> None:
    assert broken_in(FULL) == set()
    assert broken_in(view) == broken


ROOM = (SubscriberView("c", "ch-c", has_room=True),)


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        # Two fill the memory, but the next one is there; or it is not, and there is no space.
        (replace(PENDING, subscribers=ROOM), {"AMQ-I8"}),
        (changed(replace(PENDING, subscribers=ROOM), batch=(), size=0), set()),
        (replace(PENDING, subscribers=()), set()),
        (replace(FULL, subscribers=ROOM), set()),
        (replace(FULL, subscribers=ROOM, held=()), {"AMQ-I7"}),
        (replace(with_reference("d", grouped=True), subscribers=ROOM, held=()), set()),
        (replace(served(), held=()), set()),
    ],
)
def test_nothing_is_left_at_rest(view: CursorQueueView, broken: set[str]) -> None:
    served_ids = {*parts()["served"]}
    assert broken_in(view, rests=True) & served_ids == broken
    assert not broken_in(view) & served_ids


def test_one_message_alone_may_be_larger_than_memory() -> None:
    large = [*published("a"), consumes("c"), Drain()]
    view = shown_by(carried_out(large, "activemq-cursor?memory=1000"))
    assert (view.memory.used, broken_in(view)) == (1025, set())
    assert "AMQ-I17" in snapshot(view).exercised


def test_what_waits_for_memory_does_not_fit() -> None:
    view = with_parked()
    first, second = view.parked
    assert broken_in(replace(view, parked=(second,))) == set()
    assert broken_in(replace(view, parked=(ParkedView("b", 75), second))) == {"AMQ-I18"}
    assert broken_in(replace(view, parked=(first, ParkedView("c", 75)))) == set()
    assert broken_in(replace(view, memory=MemoryView(1025, 0))) == {"AMQ-I18"}


def test_levels_are_asked_for_their_order() -> None:
    view = with_levels()
    assert broken_in(replace(view, levels=tuple(reversed(view.levels)))) == {"AMQ-I24"}
    operations = [
        *published("low", priority=1),
        consumes("look", mode="browse"),
        *published("high", priority=9),
        Drain(),
    ]
    both = shown_by(carried_out(operations, order=Priority(2)))
    assert both.waiting == ("high", "low")
    assert broken_in(both) == set()
    assert broken_in(replace(both, waiting=("low", "high"))) == {"AMQ-I24"}
    assert "AMQ-I24" not in snapshot(FULL).exercised


def test_of_levels_in_one_store_what_is_pending_has_no_level() -> None:
    together = "activemq-cursor?levels=together&memory=1100"
    operations: list[Publish] = [*published("low", priority=1), *published("high", priority=9)]  # type: ignore[list-item]
    view = shown_by(carried_out([consumes("c", 1), *operations, Drain()], together, Priority(2)))
    assert snapshot(view, rests=True).broken == ()


def test_every_id_was_broken_above() -> None:
    broken: set[str] = {"AMQ-I18"}
    tests: tuple[Callable[..., None], ...] = (
        test_each_rule_can_be_broken,
        test_what_was_given_and_what_waits_are_told_apart,
        test_nothing_is_left_at_rest,
    )
    for test in tests:
        for _, each in test.pytestmark[0].args[1]:  # type: ignore[attr-defined]
            broken |= each
    assert broken == EVERYTHING


def test_what_is_wrong_is_told_with_the_lists() -> None:
    ((_, complaint),) = snapshot(at(size=7)).broken
    assert complaint == (
        "counted 7 pending of 4; store [a#1 b#2 c#3 d#4 e#5], batch [b#2], on disk [x#6 y#7], "
        "2 passed and 7 counted as pending, held [a by c]; 2050 bytes used"
    )
