"""The rules on a single view of a RabbitMQ queue that no model states, each by its id.

The models contain neither the order of a list, nor counts, nor the flags in a status that describe
the disk. A rule returns None if a fault against it could not show in the view, and otherwise
whether it holds. A1 to A6 and M1 to M3 are assertions of the release; the others are stated in its
comments or follow from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeAlias

from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    IndexEntryView,
    PagingQueueView,
    StatusView,
)

Complaint: TypeAlias = str
Rule: TypeAlias = Callable[[BackingQueueView], bool | None]


def asked(situation: object, holds: Callable[[], bool]) -> bool | None:
    """Return whether a rule holds if its situation is present, otherwise None."""
    return holds() if situation else None


def ready(queue: BackingQueueView) -> list[StatusView]:
    """Return the statuses in the places from the front on; delta has none."""
    return [*queue.q4, *queue.q3, *queue.q2, *queue.q1]


def held(queue: BackingQueueView) -> list[StatusView]:
    """Return all statuses, those of pending messages last."""
    return [*ready(queue), *queue.pending]


def is_anything_ready(queue: BackingQueueView) -> bool:
    """Whether a place or a count says that a message is ready."""
    return bool(queue.length or queue.delta.count or ready(queue))


def is_delta_there(queue: BackingQueueView) -> bool:
    """Whether delta has messages or bounds."""
    return queue.delta.count != 0 or queue.delta.start < queue.delta.end


def in_delta(queue: BackingQueueView) -> list[IndexEntryView]:
    """Return the entries in delta's range that no other place has."""
    known, delta = {each.seq for each in held(queue)}, queue.delta
    return [
        each
        for each in queue.index
        if delta.start <= each.seq < delta.end and each.seq not in known
    ]


def in_order(queue: BackingQueueView) -> list[int]:
    """Return the positions of all ready messages, from the front on."""
    front = [each.seq for each in (*queue.q4, *queue.q3)]
    behind = [each.seq for each in (*queue.q2, *queue.q1)]
    return [*front, *(each.seq for each in in_delta(queue)), *behind]


def _first_entries(queue: BackingQueueView) -> int:
    """Return how many entries of delta are in the segment that a reload reads first."""
    start, end = queue.delta.start, queue.delta.end
    boundary = min((start // queue.segment + 1) * queue.segment, end)
    return sum(each.seq < boundary for each in in_delta(queue))


def _is_between(queue: BackingQueueView) -> bool:
    """Whether q3 is before delta, and q2 behind it."""
    start, end = queue.delta.start, queue.delta.end
    before = not queue.q3 or queue.q3[-1].seq < start
    return before and (not queue.q2 or queue.q2[0].seq >= end)


def _persistent(queue: BackingQueueView) -> int:
    in_memory = sum(each.persistent for each in held(queue))
    return in_memory + sum(each.persistent for each in in_delta(queue))


def _is_indexed(queue: BackingQueueView) -> bool:
    """Whether the index has exactly the positions that statuses and delta say, with their flags."""
    expected = {each.seq: each.delivered for each in held(queue) if each.indexed}
    expected |= {each.seq: each.delivered for each in in_delta(queue)}
    return expected == {each.seq: each.delivered for each in queue.index}


def _is_stored(queue: BackingQueueView) -> bool:
    """Whether the stores refer to each message as often as statuses and delta do."""
    assert queue.stores is not None, "asked only where stores are shown"
    for persistent, shown in ((True, queue.stores.persistent), (False, queue.stores.transient)):
        names = [e.message for e in held(queue) if e.on_disk and e.persistent == persistent]
        names += [e.message for e in in_delta(queue) if e.persistent == persistent]
        if Counter(names) != dict(shown):
            return False
    return True


RULES: Final[Mapping[str, Mapping[str, Rule]]] = {
    "backing-queue": {
        "A4": lambda q: asked(
            is_anything_ready(q), lambda: (q.length == 0) == (not q.q3 and not q.q4)
        ),
        "A5": lambda q: asked(
            q.length or q.ram_count or q.persistent_count,
            lambda: min(q.length, q.ram_count, q.persistent_count) >= 0,
        ),
        "A6": lambda q: asked(q.ram_count, lambda: q.ram_count <= q.length),
        "I1": lambda q: asked(
            is_anything_ready(q), lambda: q.length == len(ready(q)) + q.delta.count
        ),
        "I2": lambda q: asked(
            len(ready(q)) + q.delta.count > 1,
            lambda: all(first < second for first, second in pairwise(in_order(q))),
        ),
        "I4": lambda q: asked(q.q1 or q.q4, lambda: all(e.in_ram for e in (*q.q1, *q.q4))),
        "I6": lambda q: asked(
            q.ram_count or q.q1 or q.q4, lambda: q.ram_count == len(q.q1) + len(q.q4)
        ),
        "I7": lambda q: asked(
            q.pending or q.ram_acks,
            lambda: {*q.ram_acks} == {each.seq for each in q.pending if each.in_ram},
        ),
        "I8": lambda q: asked(
            q.pending and is_anything_ready(q),
            lambda: not {each.seq for each in q.pending} & {*in_order(q)},
        ),
        "I9": lambda q: asked(
            q.persistent_count or q.pending or is_anything_ready(q),
            lambda: q.persistent_count == _persistent(q),
        ),
        "I10": lambda q: asked(q.pending, lambda: all(each.delivered for each in q.pending)),
        "I19": lambda q: asked(
            is_anything_ready(q),
            lambda: sorted(in_order(q))[:1] == [each.seq for each in (*q.q4, *q.q3)][:1],
        ),
    },
    "on-disk": {
        "M1": lambda q: asked(
            any(each.persistent for each in held(q)),
            lambda: all(each.indexed for each in held(q) if each.persistent),
        ),
        "M2": lambda q: asked(
            any(each.indexed for each in held(q)),
            lambda: all(each.on_disk for each in held(q) if each.indexed),
        ),
        "I13": lambda q: asked(
            q.index or any(each.indexed for each in held(q)), lambda: _is_indexed(q)
        ),
    },
    "stores": {
        "I14": lambda q: asked(
            q.stores is not None
            and (
                q.stores.persistent or q.stores.transient or any(each.on_disk for each in held(q))
            ),
            lambda: _is_stored(q),
        ),
    },
    "q3": {
        "F1": lambda q: asked(len(q.q3) == 1 and not q.delta.count, lambda: not q.q2),
        "I5": lambda q: asked(
            q.q2 or q.q3, lambda: all(not e.in_ram and e.on_disk for e in (*q.q2, *q.q3))
        ),
    },
    "delta": {
        "D1": lambda q: asked(
            is_delta_there(q), lambda: q.delta.start + q.delta.count <= q.delta.end
        ),
        "R1": lambda q: asked(is_delta_there(q), lambda: _first_entries(q) <= q.delta.count),
        "I3": lambda q: asked(is_delta_there(q), lambda: q.delta.count == len(in_delta(q))),
        "I16": lambda q: asked(is_delta_there(q) and (q.q3 or q.q2), lambda: _is_between(q)),
    },
}
"""The rules of a backing queue by the part of a view that they need."""

IN_LINE, BY_LEVEL = "P1", "PQ1"
IDS: Final = frozenset((IN_LINE, BY_LEVEL, *(name for rules in RULES.values() for name in rules)))


def judged(view: PagingQueueView, *, rests: bool) -> Iterator[tuple[str, Complaint]]:
    """Yield the id of each rule that applies to the view, with a complaint or an empty text.

    `rests` says that no work is left, as after a drain.
    """
    found: dict[str, Complaint] = {}
    for queue in view.levels:
        for rules in RULES.values():
            for name, rule in rules.items():
                holds = rule(queue)
                if holds is not None:
                    found[name] = found.get(name) or ("" if holds else str(queue))
    yield from found.items()
    served = [each.consumer for each in view.in_line if each.has_room]
    if rests:
        served += [each.consumer for each in view.blocked if each.has_room]
    if (view.in_line or view.blocked) and any(map(is_anything_ready, view.levels)):
        yield IN_LINE, f"{served[0]} has room, and something is ready" if served else ""
    levels = [each.level for each in view.levels]
    if len(levels) > 1:
        wrong = any(first <= second for first, second in pairwise(levels))
        yield BY_LEVEL, f"levels {', '.join(map(str, levels))} in this order" if wrong else ""
