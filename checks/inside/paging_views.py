"""The form of what `inspect` shows of a queue that pages: whether such a view can be read at all.

Owns what the types of a view do not say, and what types cannot say of objects that a candidate made
in this process, as `views` does for queues of pointers. Which values are lawful is not asked here:
a count may be wrong, or negative, and the glance at it says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, cast

import msgspec

from brokerproof.spec.protocol.messages import Order
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    DeltaView,
    HandedOutView,
    IndexEntryView,
    InLineView,
    PagingQueueView,
    StatusView,
    StoresView,
)

_FACTS: Final[Mapping[type[msgspec.Struct], Mapping[str, type]]] = {
    StatusView: {
        "seq": int,
        "message": str,
        **dict.fromkeys(("persistent", "delivered", "in_ram", "on_disk", "indexed"), bool),
    },
    IndexEntryView: {"seq": int, "message": str, "persistent": bool, "delivered": bool},
    DeltaView: {"start": int, "count": int, "end": int},
    InLineView: {"consumer": str, "has_room": bool},
    HandedOutView: {"channel": str, "level": int, "seq": int},
    BackingQueueView: dict.fromkeys(
        (
            *("level", "next_seq", "transient_threshold", "segment", "batch"),
            *("length", "ram_count", "persistent_count"),
        ),
        int,
    ),
}
"""The type of each field that is a plain value; exactly that type, so that it is nothing else."""

_PARTS: Final[Mapping[type[msgspec.Struct], Mapping[str, type[msgspec.Struct]]]] = {
    BackingQueueView: {
        **dict.fromkeys(("q1", "q2", "q3", "q4", "pending"), StatusView),
        "index": IndexEntryView,
    },
    PagingQueueView: {
        "levels": BackingQueueView,
        **dict.fromkeys(("in_line", "blocked"), InLineView),
        "handed_out": HandedOutView,
    },
}
"""What each field that is a tuple has in it."""


def fault_of_form(view: PagingQueueView, order: Order) -> str:
    """Return in a few words what is wrong with a view of a queue of `order`, or nothing.

    What follows a fault is not asked, and might fail.
    """
    if view.order != order:
        return "a queue of another order than it was declared with"
    fault = _fault_of(view)
    if fault:
        return fault
    if not view.levels:
        return "a queue without any level"
    for level in view.levels:
        fault = next(_faults_of_level(level), "")
        if fault:
            return f"{fault} at level {level.level}"
    return ""


def _fault_of(part: msgspec.Struct) -> str:
    """Return what is wrong with the types of a part's fields."""
    kind = type(part)
    for name, expected in _FACTS.get(kind, {}).items():
        if type(getattr(part, name)) is not expected:
            return f"{kind_of(getattr(part, name))} as {_words(name)}"
    for name, expected in _PARTS.get(kind, {}).items():
        members = cast("object", getattr(part, name))
        if type(members) is not tuple:
            return f"{kind_of(members)} as {_words(name)}"
        for each in members:
            if type(each) is not expected:
                return f"{kind_of(each)} in {_words(name)}"
            fault = _fault_of(each)
            if fault:
                return f"{fault} in {_words(name)}"
    return ""


def _faults_of_level(level: BackingQueueView) -> Iterator[str]:
    delta, target = cast("tuple[object, object]", (level.delta, level.target))
    if type(delta) is not DeltaView:
        yield f"{kind_of(delta)} as delta"
    elif fault := _fault_of(delta):
        yield f"{fault} in delta"
    if not (target is None or (type(target) is int and target >= 0)):
        yield f"{kind_of(target)} as the target"
    if level.segment < 1 or level.batch < 1:
        yield "a segment or a batch of nothing"
    ram_acks = cast("object", level.ram_acks)
    if type(ram_acks) is not tuple or not all(type(each) is int for each in ram_acks):
        yield "something else than positions of what is pending in memory"
    pending, index = [each.seq for each in level.pending], [each.seq for each in level.index]
    for name, seqs in (("pending", pending), ("index", index)):
        if any(first >= second for first, second in pairwise(seqs)):
            yield f"{name} in another order than that of the positions"
    ready = [each.seq for each in (*level.q1, *level.q2, *level.q3, *level.q4)]
    if any(seq < 0 for seq in (*pending, *index, *ready)):
        yield "a negative position"
    if level.stores is not None:
        yield from _faults_of_stores(level.stores)


def _faults_of_stores(stores: object) -> Iterator[str]:
    if type(stores) is not StoresView:
        yield f"{kind_of(stores)} as what the stores have"
        return
    for references in cast("tuple[object, ...]", (stores.persistent, stores.transient)):
        if type(references) is not tuple or not all(map(_is_reference, references)):
            yield "something else than names and numbers as what the stores have"


def _is_reference(pair: object) -> bool:
    return type(pair) is tuple and [*map(type, pair)] == [str, int]


def _words(name: str) -> str:
    return name.replace("_", " ")


def kind_of(value: object) -> str:
    """Return what a value is, and nothing of it: its own text may be a trap."""
    return f"an object of type {type(value).__name__}"
