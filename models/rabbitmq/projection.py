"""The projection of RabbitMQ: a view of a backing queue as a state of its model, and its steps.

A query concerns one backing queue, which is of one level. Messages are numbered in the order of
their positions, segments in the order of those that have a message. The queue may fetch for a
consumer, page, and keep fewer pending contents in memory at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from brokerproof.models.language.watch.client_step import ClientStep, NotAQueue
from brokerproof.models.language.watch.path_query import AS_MANY, PathQuery, Valuation, valuation
from brokerproof.models.language.watch.paths import ANY, Taken
from brokerproof.models.rabbitmq.paging_places import Message, PagingPlaces, Place, Segment
from brokerproof.models.rabbitmq.paging_reduction import PagingReduction
from brokerproof.spec.messages import Order
from brokerproof.spec.protocol import operations as op
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    IndexEntryView,
    PagingQueueView,
    StatusView,
)

SEGMENT_MAX: Final = 1 << 14
"""The number of positions in a segment of the release's index."""

PLACE: Final = {name: at for at, name in enumerate(Place.values)}
FETCHES: Final = ("fetch_from_q4", "fetch_from_q3", "fetch_last")
RELOADS: Final = ("fetch_last_and_reload", "fetch_last_and_reload_all")
PAGES: Final = (
    *(Taken(f"page_{each}", (ANY,)) for each in ("q1_to_q3", "q1_to_q2", "q4")),
    *(Taken("page_q3", (ANY, ANY)), Taken("page_q2", (ANY,)), Taken("limit_ram_acks", (ANY,))),
)

MODEL: Final = PagingPlaces


def new_queue(view: PagingQueueView, order: Order) -> PagingQueueView:
    """Return the view of a new queue of `order`, with the sizes of `view`."""
    levels = [
        BackingQueueView(
            level=each.level, target=each.target, segment=each.segment, batch=each.batch
        )
        for each in view.levels
    ]
    return PagingQueueView(order=order, levels=tuple(levels))


def queries_at_rest(_: PagingQueueView) -> Iterator[PathQuery]:
    """Yield no query: counts decide which messages stay in memory at rest."""
    yield from ()


def states(view: PagingQueueView, *, rests: bool) -> Iterator[PathQuery]:
    """Yield the state of each backing queue; at rest also that of its memory reduction."""
    for queue in view.levels:
        read = _Positions(queue)
        yield _query(read, read, ClientStep(op.Drain()), set(), None)
        is_empty = not (queue.length or queue.pending or queue.delta.count)
        if rests and queue.target is not None and not is_empty:
            yield PathQuery(
                "paging-reduction", PagingReduction, Message, 1, (), _at_rest(queue), ()
            )


def _at_rest(queue: BackingQueueView) -> Valuation:
    """Return the state of a reduction that has reported that no work is left."""
    assert queue.target is not None, "where memory is not limited nothing is reduced"
    lengths = (queue.q1, queue.q2, range(queue.delta.count), queue.q3, queue.q4)
    return valuation(
        batch=queue.batch,
        length=[len(each) for each in lengths],
        in_ram=queue.ram_count,
        ram_acks=len(queue.ram_acks),
        target=queue.target,
        permits=_permitted(queue, queue.target),
        is_done=True,
    )


def _permitted(queue: BackingQueueView, target: int) -> int:
    """Return how many positions may stay in memory (2.8.2, `permitted_beta_count`).

    It is the number without content in memory, less its square divided by itself and the target
    together, and at least a segment. Without room in memory, it is the length of q3, at most a
    segment.
    """
    segment = min(queue.segment, SEGMENT_MAX)
    if queue.length == 0:
        return 0
    if target == 0:
        return min(len(queue.q3), segment)
    on_disk = queue.length - len(queue.q1) - len(queue.q4)
    # A wrong count may be too small.
    part = on_disk * on_disk // (on_disk + target) if on_disk + target > 0 else 0
    return max(segment, on_disk - part)


def queries(
    before: PagingQueueView, after: PagingQueueView, step: ClientStep
) -> Iterator[PathQuery]:
    """Yield a query for each backing queue that changed; raises `NotAQueue`."""
    if [each.level for each in before.levels] != [each.level for each in after.levels]:
        raise NotAQueue("it has other levels than before")
    for one, other in zip(before.levels, after.levels, strict=True):
        returned = {
            each.seq
            for each in before.handed_out
            if isinstance(step.operation, op.CloseChannel)
            and (each.channel, each.level) == (step.operation.channel, one.level)
        }
        settled = None
        if step.settles:
            settled = next((each.seq for each in one.pending if each.message == step.settled), None)
        if one != other or returned or settled is not None:
            yield _query(_Positions(one), _Positions(other), step, returned, settled)


class _Positions:
    """A backing queue's messages by position; a message that only the index has is in delta."""

    def __init__(self, view: BackingQueueView) -> None:
        self.view = view
        self.entries = {each.seq: each for each in view.index}
        self.places: dict[int, str] = {}
        self.known: dict[int, StatusView | IndexEntryView] = {}
        for place in ("q1", "q2", "q3", "q4", "pending"):
            for status in getattr(view, place):
                if status.seq in self.places:
                    raise NotAQueue(f"two messages are at {status.seq}")
                self.places[status.seq], self.known[status.seq] = place.upper(), status
        for seq, entry in self.entries.items():
            if view.delta.start <= seq < view.delta.end and seq not in self.known:
                self.places[seq], self.known[seq] = "DELTA", entry

    def state(self, seqs: list[int], otherwise: str) -> Valuation:
        """Return the state of positions; one that the view does not show is at `otherwise`."""
        view, delta = self.view, self.view.delta
        places = [self.places.get(seq, otherwise) for seq in seqs]
        statuses = [
            self.known[seq] if place not in ("DELTA", otherwise) else None
            for seq, place in zip(seqs, places, strict=True)
        ]
        entries = [self.entries.get(seq) for seq in seqs]
        is_blank = delta.count == 0 and delta.start == delta.end
        delivered = [each.delivered if each else None for each in statuses]
        noted = [each.delivered if each else None for each in entries]
        # The view does not show whether the index had a message that is gone.
        unknown = [
            place == "GONE" and not each for place, each in zip(places, entries, strict=True)
        ]
        return valuation(
            place=[PLACE[place] for place in places],
            in_ram=[isinstance(each, StatusView) and each.in_ram for each in statuses],
            stored=[
                each.on_disk if isinstance(each, StatusView) else place == "DELTA"
                for each, place in zip(statuses, places, strict=True)
            ],
            delivered=delivered,
            indexed=[None if u else e is not None for u, e in zip(unknown, entries, strict=True)],
            acked=[None if u else False for u in unknown],
            noted=noted,
            used=[seq < view.next_seq for seq in seqs],
            from_start=[not is_blank and seq >= delta.start for seq in seqs],
            before_end=[not is_blank and seq < delta.end for seq in seqs],
            out_of_turn=[False for _ in seqs],
        )


def _query(
    before: _Positions, after: _Positions, step: ClientStep, returned: set[int], settled: int | None
) -> PathQuery:
    seqs = sorted({*before.known, *after.known, *_arrived(before, after, step)})
    at = {seq: number for number, seq in enumerate(seqs)}
    for seq in seqs:
        _check(before, after, seq, step)
    both = [(before.known.get(seq) or after.known.get(seq)) for seq in seqs]
    segments = sorted({seq // before.view.segment for seq in seqs})
    rigid = valuation(
        segment=[segments.index(seq // before.view.segment) for seq in seqs],
        persistent=[each is not None and each.persistent for each in both],
    )
    # The view does not show whether earlier fetches were in turn; they count as such.
    at_first = [(before.known.get(seq), before.entries.get(seq)) for seq in seqs]
    fetched = [any(each is not None and each.delivered for each in pair) for pair in at_first]
    client = [each for seq in sorted(returned & at.keys()) for each in _requeues(at[seq])]
    client += [
        Taken(publish, (at[seq],))
        for seq in seqs
        if seq not in before.known
        for publish in ("publish_delivered", "publish")
    ]
    client += [Taken("purge")] if isinstance(step.operation, op.Purge) else []
    for seq in seqs:
        ends = after.places.get(seq, "GONE")
        if ends in ("PENDING", "GONE"):
            keeps = int(ends == "PENDING")
            client += [Taken(fetch, (at[seq], keeps)) for fetch in FETCHES]
            client += [Taken(reload, (at[seq], ANY, keeps)) for reload in RELOADS]
    settles: list[Taken] = []
    if settled is not None:
        is_release = isinstance(step.operation, op.Release)
        settles = _requeues(at[settled]) if is_release else [Taken("acknowledge", (at[settled],))]
    return PathQuery(
        "paging-places",
        PagingPlaces,
        Message,
        len(seqs),
        ((Segment, AS_MANY),),
        rigid + valuation(was_fetched=fetched) + before.state(seqs, "NOWHERE"),
        rigid + after.state(seqs, "GONE"),
        (*client, *PAGES),
        tuple(settles),
    )


def _requeues(at: int) -> list[Taken]:
    return [
        Taken("requeue_to_q4", (at,)),
        *(Taken(f"requeue_to_{place}", (ANY, at)) for place in ("q3", "delta")),
    ]


def _arrived(before: _Positions, after: _Positions, step: ClientStep) -> Iterator[int]:
    """Yield the position that was given out, if any."""
    given = after.view.next_seq - before.view.next_seq
    takes = step.arrival is not None and step.arrival[1] == before.view.level
    if given not in ((0, 1) if takes else (0,)):
        raise NotAQueue(f"its next position is {after.view.next_seq}, after {before.view.next_seq}")
    if given:
        yield before.view.next_seq


def _check(before: _Positions, after: _Positions, seq: int, step: ClientStep) -> None:
    """Raise `NotAQueue` if a position has changed its message, or has an unpublished one."""
    one, other = before.known.get(seq), after.known.get(seq)
    if one and other and (one.message, one.persistent) != (other.message, other.persistent):
        raise NotAQueue(f"{one.message} at {seq} has become {other.message}")
    if other and not one:
        if seq != before.view.next_seq or other.message != (step.arrival or ("",))[0]:
            raise NotAQueue(f"{other.message} is there at {seq} and was not published")
        is_transient = step.detail("persistent") is False
        if other.persistent and is_transient:
            raise NotAQueue(f"{other.message} was not published as persistent")
