"""The form of views of queues with cursors: what is wrong is said, and what passes can be read."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from msgspec.structs import replace

from brokerproof.checks.inside.state_invariants import glance
from brokerproof.checks.inside.step_conformance import text_of
from brokerproof.checks.inside.views import malformed
from brokerproof.models.activemq.cursor_steps import NotSpokenOf, explained, nothing_in
from brokerproof.models.language.watch.client_step import Happening, NotAQueue
from brokerproof.models.language.watch.paths import TooFar
from brokerproof.spec.activemq.view import (
    AuditView,
    CursorLevelView,
    CursorQueueView,
    HeldView,
    MemoryView,
    ParkedView,
    PendingView,
    ReferenceView,
    StoredView,
    TakerView,
)
from brokerproof.spec.protocol.messages import Fifo, Priority
from brokerproof.spec.protocol.operations import Drain
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


def view(**fields: Any) -> CursorQueueView:
    """Return the full view with some of its fields changed."""
    return replace(full(), **fields)


def at(**fields: Any) -> CursorQueueView:
    """Return the view with something pending, its level changed."""
    return changed(pending(), **fields)


@pytest.mark.parametrize(
    ("seen", "what"),
    [
        (view(order=Priority(2)), "a queue of another order than it was declared with"),
        (view(levels=()), "a queue without any level"),
        (view(levels=[]), "an object of type list as levels"),
        (view(levels=(1,)), "an object of type int in levels"),
        (view(paged_in=None), "an object of type NoneType as paged in"),
        (view(returned=(b"a",)), "an object of type bytes in returned"),
        (view(waiting=["a"]), "an object of type list as waiting"),
        (view(late=(None,)), "an object of type NoneType in late"),
        (view(held=("a",)), "an object of type str in held"),
        (view(held=(HeldView("a", None),)), "an object of type NoneType as channel in held"),  # type: ignore[arg-type]
        (view(takers=(TakerView("c", "ch", 1),)), "an object of type int as has room in takers"),  # type: ignore[arg-type]
        (view(parked=(ParkedView("a", 1.5),)), "an object of type float as size in parked"),  # type: ignore[arg-type]
        (view(audit=AuditView("0", 1, 2)), "an object of type str as first in audit"),  # type: ignore[arg-type]
        (view(audit=AuditView(0, 0, 2)), "an audit of nothing"),
        (view(audit=AuditView(0, 2, 0)), "an audit of nothing"),
        (view(audit=None), "an object of type NoneType as audit"),
        (view(memory=(0, 0)), "an object of type tuple as memory"),
        (view(memory=MemoryView(True, 0)), "an object of type bool as used in memory"),
        (view(arrivals=None), "an object of type NoneType as arrivals"),
        (
            view(paged_in=(ReferenceView(message="a", number=1, size=1, level=None),)),  # type: ignore[arg-type]
            "an object of type NoneType as level in paged in",
        ),
        (at(level="0"), "an object of type str as level in levels"),
        (at(stored=(PendingView("a", 1, 1),)), "an object of type PendingView in stored"),
        (at(stored=(StoredView("a", 1, 1, 0),)), "an object of type int as suppressed"),  # type: ignore[arg-type]
        (at(stored=(StoredView("a", 1, 1), StoredView("a", 2, 1))), "a message that is stored"),
        (at(batch=(PendingView("a", 1, 1, None),)), "an object of type NoneType as references"),  # type: ignore[arg-type]
        (at(read="2"), "an object of type str as read"),
        (at(read=6), "a position outside of the store at level 0"),
        (at(read=-1), "a position outside of the store at level 0"),
        (at(recovered=1), "an object of type int as recovered"),
        (at(size=None), "an object of type NoneType as size"),
        (at(read=5), ""),
    ],
)
def test_what_is_wrong_with_a_view_is_said(seen: CursorQueueView, what: str) -> None:
    assert malformed(seen, Fifo()).startswith(what)
    assert bool(malformed(seen, Fifo())) is bool(what)


def test_what_the_reference_shows_is_in_form() -> None:
    for seen in (full(), pending(), with_parked()):
        assert malformed(seen, Fifo()) == ""
    assert malformed(with_levels(), Priority(3)) == ""


WRONG = (-2, -1, 0, 1, 3, 99, None, "", "a", True, 1.0, (), (1,), ("a",), AuditView(), MemoryView())
LISTS = ("stored", "batch", "on_disk")


def spoilt(seen: CursorQueueView, chosen: random.Random) -> CursorQueueView:
    """Return a view with one field of something in it made something else."""
    wrong = chosen.choice(WRONG)
    (level,) = seen.levels
    where = chosen.random()
    if where < 0.3:
        return changed(seen, **{chosen.choice(CursorLevelView.__struct_fields__): wrong})
    if where < 0.5:
        return replace(seen, **{chosen.choice(CursorQueueView.__struct_fields__[1:]): wrong})
    owner, name = chosen.choice(
        [(level, each) for each in LISTS] + [(seen, each) for each in ("paged_in", "held")]
    )
    members = [*getattr(owner, name)]
    if not members:
        return seen
    number = chosen.randrange(len(members))
    field = chosen.choice(members[number].__struct_fields__)
    members[number] = replace(members[number], **{field: wrong})
    if owner is level:
        return changed(seen, **{name: tuple(members)})
    return replace(seen, **{name: tuple(members)})


def only_persistent() -> CursorQueueView:
    """Return the view of a queue that the model speaks of."""
    operations = [*published("a", "b", "c", "d", "e"), consumes("c", 1), Drain()]
    return shown_by(carried_out(operations))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sound", [full, pending, only_persistent])
def test_whatever_passes_can_be_read(seed: int, sound: Any) -> None:
    chosen = random.Random(seed)  # noqa: S311 - no secrets
    shown: CursorQueueView = sound()
    passed = 0
    for _ in range(150):
        seen = spoilt(shown, chosen)
        if malformed(seen, Fifo()):
            continue
        passed += 1
        glance(seen, rests=True)
        assert text_of(seen)
        for before, after in ((shown, seen), (nothing_in(seen, Fifo()), seen), (seen, shown)):
            with contextlib.suppress(NotAQueue, NotSpokenOf, TooFar):
                explained(before, after, Happening(Drain()))
    assert passed > 15
