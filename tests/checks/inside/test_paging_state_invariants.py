"""Views of queues that page, by themselves: the reference's keep every rule; each can be broken."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import kinds, snapshot
from brokerproof.spec.messages import Fifo
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    DeltaView,
    InLineView,
    PagingQueueView,
    StoresView,
)
from tests.checks.inside.paging_scenes import (
    carried_out,
    changed,
    full,
    published,
    shown_by,
    with_levels,
)

EVERYTHING = kinds()["a queue that pages"]
AT_REST, IN_LINE, BY_LEVEL = "I17", "P1", "PQ1"


def broken_in(view: PagingQueueView, *, rests: bool = False) -> set[str]:
    """Return the broken invariants of a view."""
    return {name for name, _ in snapshot(view, rests=rests).broken}


def test_what_the_reference_shows_is_well() -> None:
    found = snapshot(full(), rests=True)
    assert found.broken == ()
    assert found.exercised == EVERYTHING - {"A1", "F1", BY_LEVEL}
    assert snapshot(full()).exercised == found.exercised - {AT_REST}


def test_what_is_said_of_an_empty_queue_is_little() -> None:
    assert snapshot(shown_by(carried_out([])), rests=True).exercised == frozenset()
    levels = shown_by(carried_out([])).levels
    assert snapshot(PagingQueueView(order=Fifo(), levels=levels)).broken == ()


def test_levels_are_asked_for_their_order() -> None:
    view = with_levels()
    assert snapshot(view).exercised >= {BY_LEVEL, "A4"}
    assert "I14" not in snapshot(view).exercised
    assert snapshot(view).broken == ()
    backwards = replace(view, levels=tuple(reversed(view.levels)))
    assert broken_in(backwards) == {BY_LEVEL}
    assert broken_in(replace(view, levels=(view.levels[0], *view.levels))) == {BY_LEVEL}


def queue_of(view: PagingQueueView) -> BackingQueueView:
    (queue,) = view.levels
    return queue


WELL = queue_of(full())
A, D, J = WELL.q4[0], WELL.q3[0], WELL.q2[0]
B, C = WELL.pending


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        (
            {
                "q1": (replace(J, in_ram=True),),
                "q2": (),
                "q3": (),
                "q4": (A, replace(D, in_ram=True)),
                "ram_count": 3,
            },
            {"A1", "A3"},
        ),
        ({"delta": DeltaView(4, 0, 9)}, {"I1", "I3", "R1", "F1"}),
        ({"delta": DeltaView(9, 0, 9)}, {"A2", "F1", "I1", "I9", "I13", "I14"}),
        ({"q3": (), "q4": (A, replace(D, in_ram=True)), "ram_count": 2}, {"A3"}),
        (
            {"q3": (), "q4": (), "length": 6, "ram_count": 0},
            {"A3", "A4", "I9", "I13", "I14", "I19"},
        ),
        ({"persistent_count": -1}, {"A5", "I9"}),
        ({"ram_count": 9}, {"A6", "I6"}),
        ({"delta": DeltaView(4, 6, 9)}, {"D1", "I1", "I3"}),
        ({"q3": (replace(D, indexed=False),)}, {"M1", "I13"}),
        ({"q3": (replace(D, in_ram=True, on_disk=False),)}, {"M2", "I5", "I14"}),
        ({"q4": (replace(A, in_ram=False, on_disk=False),)}, {"M3", "I4", "I14"}),
        ({"length": 9}, {"I1"}),
        ({"q2": (replace(J, seq=10), J), "next_seq": 11}, {"I1", "I2", "I14"}),
        ({"delta": DeltaView(4, 4, 9), "length": 7}, {"I3"}),
        ({"q4": (replace(A, in_ram=False),)}, {"I4"}),
        ({"q2": (replace(J, in_ram=True),)}, {"I5"}),
        ({"ram_count": 2}, {"I6"}),
        ({"ram_acks": (1,)}, {"I7"}),
        ({"pending": (replace(A, delivered=True), B, C)}, {"I7", "I8", "I14"}),
        ({"persistent_count": 2}, {"I9"}),
        ({"pending": (B, replace(C, delivered=False))}, {"I10", "I13"}),
        # A message in two places is no state of the model at all.
        ({"pending": (B, C, replace(C, seq=9, indexed=False))}, {"I8", "I14"}),
        ({"pending": (B, replace(C, seq=20)), "next_seq": 21}, {"I11", "I13"}),
        ({"next_seq": 9}, {"I12"}),
        ({"index": WELL.index[1:]}, {"I13"}),
        ({"stores": StoresView()}, {"I14"}),
        ({"delta": DeltaView(3, 5, 9)}, {"I16"}),
        ({"q4": (), "q3": (D, replace(A, in_ram=False)), "ram_count": 0}, {"I2", "I19"}),
    ],
)
def test_each_rule_can_be_broken(changes: dict[str, object], broken: set[str]) -> None:
    assert broken_in(full(**changes)) == broken


def test_every_rule_of_a_backing_queue_was_broken_above() -> None:
    cases = test_each_rule_can_be_broken.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert EVERYTHING - {AT_REST, IN_LINE, BY_LEVEL} <= {name for _, each in cases for name in each}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"target": 0}, True),
        ({"target": None}, False),
        ({"ram_acks": (1,), "target": 2}, False),
        ({"ram_acks": (1,)}, True),
        ({"segment": 1, "target": 0, "q4": (), "ram_count": 0}, True),
        ({"segment": 1, "target": 0, "q4": (), "ram_count": 0, "batch": 2}, False),
    ],
)
def test_a_rest_leaves_memory_within_its_target(changes: dict[str, object], wrong: bool) -> None:
    view = full(**changes)
    assert (AT_REST in broken_in(view, rests=True)) is wrong
    assert AT_REST not in broken_in(view)


def test_no_consumer_waits_that_could_be_given_a_ready_message() -> None:
    view = full()
    served = replace(view, in_line=(InLineView("c1", has_room=True),))
    assert broken_in(served) == {IN_LINE}
    assert broken_in(replace(view, in_line=(InLineView("c1", has_room=False),))) == set()
    forgotten = replace(view, blocked=(InLineView("c1", has_room=True),))
    assert broken_in(forgotten) == set()
    assert broken_in(forgotten, rests=True) == {IN_LINE}
    alone = shown_by(carried_out(published("a")))
    assert IN_LINE not in snapshot(alone).exercised
    nothing_ready = changed(shown_by(carried_out([])))
    assert broken_in(replace(nothing_ready, in_line=(InLineView("c1", has_room=True),))) == set()


def test_what_is_wrong_is_told_with_the_places() -> None:
    ((_, complaint),) = snapshot(full(length=9)).broken
    assert complaint == (
        "q4 [a#0], q3 [d#3], q2 [j#9], pending [b#1 c#2], delta 5 from 4 to 9; "
        "counted 9 ready, 1 in memory"
    )
