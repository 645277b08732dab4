"""What must hold of a queue that pages at one glance, by the ids of RabbitMQ's releases.

The rules of a backing queue are those that the reference is checked by
(`reference.paging.invariants`), and what a reduction leaves in memory is stated by the model
`paging-reduction`: a view is read as what these read. Stated here is when a view says something of
a rule, so that a fault against it would show, and the two rules of what stands before the backing
queues, which nothing else states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from brokerproof.models.rabbitmq.paging_reduction_views import may_rest
from brokerproof.reference.rabbitmq.disk.records import IndexEntry
from brokerproof.reference.rabbitmq.paging.invariants import View, broken_invariants
from brokerproof.reference.rabbitmq.paging.moves import permitted_beta_count
from brokerproof.reference.rabbitmq.paging.parameters import SEGMENT_MAX, Parameters
from brokerproof.reference.rabbitmq.paging.statuses import Delta, MessageStatus
from brokerproof.spec.rabbitmq.view import BackingQueueView, PagingQueueView, StatusView

if TYPE_CHECKING:
    from brokerproof.reference.rabbitmq.paging.variable_queue import VariableQueue

Complaint: TypeAlias = str

# When a view of a backing queue says something of a rule.


def _ready(queue: BackingQueueView) -> list[StatusView]:
    return [*queue.q4, *queue.q3, *queue.q2, *queue.q1]


def _held(queue: BackingQueueView) -> list[StatusView]:
    return [*_ready(queue), *queue.pending]


def _is_anything_ready(queue: BackingQueueView) -> bool:
    return bool(queue.length or queue.delta.count or _ready(queue))


def _is_anything_there(queue: BackingQueueView) -> bool:
    return bool(queue.pending) or _is_anything_ready(queue)


def _is_anything_counted(queue: BackingQueueView) -> bool:
    return bool(queue.length or queue.ram_count or queue.persistent_count)


def _is_delta_there(queue: BackingQueueView) -> bool:
    return queue.delta.count != 0 or queue.delta.start < queue.delta.end


Says: TypeAlias = Callable[[BackingQueueView], object]

SITUATIONS: Final[Mapping[str, Mapping[str, Says]]] = {
    "backing-queue": {
        "A4": _is_anything_ready,
        "A5": _is_anything_counted,
        "A6": lambda queue: queue.ram_count,
        "M3": _held,
        "I1": _is_anything_ready,
        "I2": lambda queue: len(_ready(queue)) + queue.delta.count > 1,
        "I4": lambda queue: queue.q1 or queue.q4,
        "I6": lambda queue: queue.ram_count or queue.q1 or queue.q4,
        "I7": lambda queue: queue.pending or queue.ram_acks,
        "I8": lambda queue: queue.pending and _is_anything_ready(queue),
        "I9": lambda queue: queue.persistent_count or _is_anything_there(queue),
        "I10": lambda queue: queue.pending,
        "I12": _is_anything_there,
        "I19": _is_anything_ready,
    },
    "on-disk": {
        "M1": lambda queue: any(each.persistent for each in _held(queue)),
        "M2": lambda queue: any(each.indexed for each in _held(queue)),
        "I13": lambda queue: queue.index or any(each.indexed for each in _held(queue)),
    },
    "stores": {
        "I14": lambda queue: (
            queue.stores is not None
            and (
                queue.stores.persistent
                or queue.stores.transient
                or any(each.on_disk for each in _held(queue))
            )
        ),
    },
    "q3": {
        "F1": lambda queue: len(queue.q3) == 1 and not queue.delta.count,
        "I5": lambda queue: queue.q2 or queue.q3,
    },
    "q1": {"A1": lambda queue: queue.q1},
    "behind-pending": {"I11": lambda queue: queue.pending and (queue.q2 or queue.q1)},
    "delta": {
        "A3": lambda queue: queue.delta.count,
        "D1": _is_delta_there,
        "R1": _is_delta_there,
        "I3": _is_delta_there,
        "I16": lambda queue: _is_delta_there(queue) and (queue.q3 or queue.q2),
    },
    "q2": {"A2": lambda queue: queue.q2},
}
"""The rules of a backing queue by the part of a view that they need, each with its situation."""

AT_REST: Final = "I17"
IN_LINE, BY_LEVEL = "P1", "PQ1"
OF_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **{part: tuple(rules) for part, rules in SITUATIONS.items()},
    "target": (AT_REST,),
    "queue-process": (IN_LINE, BY_LEVEL),
}
"""All ids that are asked, by the part that they need."""

_OF_QUEUES: Final[Mapping[str, Says]] = {
    name: says for rules in SITUATIONS.values() for name, says in rules.items()
}


def asked_of(view: PagingQueueView, *, rests: bool) -> Iterator[tuple[str, Complaint]]:
    """Yield each id that says something of a view, with what is wrong, if anything is.

    `rests` says that nothing is left to be done, as after a drain.
    """
    found: dict[str, Complaint] = {}
    for queue in view.levels:
        broken = {each.id for each in broken_invariants(_rules_view(queue))}
        for name, says in _OF_QUEUES.items():
            if name in broken:
                found[name] = found.get(name) or str(queue)
            elif says(queue):
                found.setdefault(name, "")
        if rests and queue.target is not None and _held(queue):
            found[AT_REST] = found.get(AT_REST, "") or _left(queue)
    found.update(_of_process(view, rests=rests))
    yield from found.items()


def _of_process(view: PagingQueueView, *, rests: bool) -> Iterator[tuple[str, Complaint]]:
    """Nobody who could be given what is ready waits for it (P1); the highest level first (PQ1)."""
    served = [each.consumer for each in view.in_line if each.has_room]
    if rests:
        served += [each.consumer for each in view.blocked if each.has_room]
    if (view.in_line or view.blocked) and any(map(_is_anything_ready, view.levels)):
        yield IN_LINE, f"{served[0]} has room, and something is ready" if served else ""
    levels = [each.level for each in view.levels]
    if len(levels) > 1:
        wrong = any(first <= second for first, second in pairwise(levels))
        yield BY_LEVEL, f"levels {', '.join(map(str, levels))} in this order" if wrong else ""


@dataclass(frozen=True)
class _Limited:
    """What the number of positions that may stay in memory is made of."""

    length: int
    q1: tuple[StatusView, ...]
    q3: tuple[StatusView, ...]
    q4: tuple[StatusView, ...]
    target: int
    parameters: Parameters


def _left(queue: BackingQueueView) -> Complaint:
    """Return what is left to be done, if anything is (I17)."""
    assert queue.target is not None, "only where memory is limited"
    parameters = Parameters(segment=min(queue.segment, SEGMENT_MAX))
    limited = _Limited(
        queue.length, queue.q1, queue.q3, queue.q4, queue.target, parameters=parameters
    )
    permitted = permitted_beta_count(cast("VariableQueue", limited))
    few_contents, few_positions = may_rest(queue, 0 if permitted is None else permitted)
    if few_contents and few_positions:
        return ""
    return f"more is in memory than {queue.target} allows: {queue}"


# Reading a view as what the rules read.


def _status(each: StatusView) -> MessageStatus:
    body = b"" if each.in_ram else None
    status = MessageStatus(
        each.seq, each.message.encode(), body, each.persistent, None, needs_confirming=False
    )
    status.is_delivered = each.delivered
    status.msg_on_disk, status.index_on_disk = each.on_disk, each.indexed
    return status


def _place(statuses: Iterable[StatusView]) -> list[MessageStatus]:
    return [_status(each) for each in statuses]


def _rules_view(queue: BackingQueueView) -> View:
    delta, stores = queue.delta, queue.stores
    references = None
    if stores is not None:
        both = (stores.persistent, stores.transient)
        persistent, transient = ({name.encode(): n for name, n in each} for each in both)
        references = persistent, transient
    return View(
        q1=_place(queue.q1),
        q2=_place(queue.q2),
        delta=Delta(delta.start, delta.count, delta.end),
        q3=_place(queue.q3),
        q4=_place(queue.q4),
        next_seq=queue.next_seq,
        transient_threshold=queue.transient_threshold,
        length=queue.length,
        ram_count=queue.ram_count,
        persistent_count=queue.persistent_count,
        pending={each.seq: _status(each) for each in queue.pending},
        ram_acks=frozenset(queue.ram_acks),
        entries=[
            IndexEntry(each.seq, each.message.encode(), None, each.persistent, each.delivered)
            for each in queue.index
        ],
        segment=queue.segment,
        unconfirmed=frozenset(),
        msgs_on_disk=frozenset(),
        msg_indices_on_disk=frozenset(),
        confirmed=frozenset(),
        references=references,
    )
