"""The form of views of queues that page: what is wrong is said, and what passes can be read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import glance
from brokerproof.checks.inside.step_conformance import text_of
from brokerproof.checks.inside.views import malformed
from brokerproof.models.language.watch.client_step import Happening, NotAQueue
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.models.rabbitmq.paging_steps import explained, nothing_in
from brokerproof.spec.protocol.messages import Fifo, Priority
from brokerproof.spec.protocol.operations import Drain
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    DeltaView,
    HandedOutView,
    InLineView,
    PagingQueueView,
    StatusView,
    StoresView,
)
from tests.checks.inside.paging_scenes import changed, full, with_levels


def view(**fields: Any) -> PagingQueueView:
    """Return the full view with fields of the process changed."""
    return replace(full(), **fields)


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (view(order=Priority(2)), "a queue of another order than it was declared with"),
        (view(levels=()), "a queue without any level"),
        (view(levels=[]), "an object of type list as levels"),
        (view(levels=(1,)), "an object of type int in levels"),
        (view(in_line=None), "an object of type NoneType as in line"),
        (view(blocked=("c0",)), "an object of type str in blocked"),
        (view(blocked=(InLineView("c0", 1),)), "an object of type int as has room in blocked"),  # type: ignore[arg-type]
        (view(handed_out=(HandedOutView("ch", 0, "7"),)), "an object of type str as seq"),  # type: ignore[arg-type]
        (full(level="0"), "an object of type str as level"),
        (full(length=None), "an object of type NoneType as length"),
        (full(ram_count=True), "an object of type bool as ram count"),
        (full(q1=[]), "an object of type list as q1"),
        (full(q2=(DeltaView(),)), "an object of type DeltaView in q2"),
        (full(q3=(StatusView(1, b"a"),)), "an object of type bytes as message in q3"),  # type: ignore[arg-type]
        (full(delta=(0, 0, 0)), "an object of type tuple as delta"),
        (full(delta=DeltaView(0, 0.5, 1)), "an object of type float as count in delta"),  # type: ignore[arg-type]
        (full(target="any"), "an object of type str as the target"),
        (full(target=-1), "as the target"),
        (full(segment=0), "a segment or a batch of nothing"),
        (full(batch=0), "a segment or a batch of nothing"),
        (full(ram_acks=[1]), "something else than positions of what is pending"),
        (full(ram_acks=("1",)), "something else than positions of what is pending"),
        (full(pending=(StatusView(2, "a"), StatusView(1, "b"))), "pending in another order"),
        (full(pending=(StatusView(2, "a"), StatusView(2, "b"))), "pending in another order"),
        (full(q4=(StatusView(-1, "a"),)), "a negative position"),
        (full(stores=()), "an object of type tuple as what the stores have"),
        (full(stores=StoresView((("a", "1"),))), "something else than names and numbers"),  # type: ignore[arg-type]
        (full(stores=StoresView(7)), "something else than names and numbers"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_with_a_view_is_said(seen: PagingQueueView, what: str) -> None:
    assert malformed(full(), Fifo()) == ""
    assert malformed(with_levels(), Priority(3)) == ""
    assert what in malformed(seen, Fifo())


WRONG = (-2, -1, 0, 1, 3, 99, None, "", "a", True, 1.0, (), (1,), DeltaView(), StoresView())


def parts(seen: PagingQueueView) -> Iterator[tuple[str, int]]:
    """Yield the places where a message is shown."""
    (queue,) = seen.levels
    for name in ("q1", "q2", "q3", "q4", "pending", "index"):
        for at in range(len(getattr(queue, name))):
            yield name, at


def spoilt(seen: PagingQueueView, chosen: random.Random) -> PagingQueueView:
    """Return a view with one field of something in it made something else."""
    wrong = chosen.choice(WRONG)
    (queue,) = seen.levels
    if chosen.random() < 0.5:
        field = chosen.choice(BackingQueueView.__struct_fields__)
        return changed(seen, **{field: wrong})
    name, at = chosen.choice([*parts(seen)])
    members = [*getattr(queue, name)]
    members[at] = replace(members[at], **{chosen.choice(members[at].__struct_fields__): wrong})
    return changed(seen, **{name: tuple(members)})


@pytest.mark.parametrize("seed", range(4))
def test_whatever_passes_can_be_read(seed: int) -> None:
    chosen = random.Random(seed)  # noqa: S311 - no secrets
    passed = 0
    for _ in range(400):
        seen = spoilt(full(), chosen)
        if malformed(seen, Fifo()):
            continue
        passed += 1
        glance(seen, rests=True)
        assert text_of(seen)
        try:
            explained(full(), seen, Happening(Drain()))
            explained(nothing_in(seen, Fifo()), seen, Happening(Drain()))
        except (NotAQueue, TooFar):
            pass
    assert passed > 40
