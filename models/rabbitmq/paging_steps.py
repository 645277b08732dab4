"""A queue that pages its messages, watched: each step between two views is a path of the model.

Owns the reading of a `PagingQueueView` as states of `PagingPlaces`, one for each backing queue, and
which of the model's actions an operation of a client may be. What the queue may do besides, at any
time, is what the model says: fetch for a consumer, page, keep less of what is pending in memory.
How states of the model follow each other is stated there and nowhere here; whether there is a path
is answered in `paging_questions`, in numbers that do not grow with the queue's positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brokerproof.models.language.watch.client_step import Happening, NotAQueue
from brokerproof.models.language.watch.paths import Taken
from brokerproof.models.rabbitmq.paging_questions import (
    DELTA,
    GONE,
    NOWHERE,
    PENDING,
    Q1,
    Q2,
    Q3,
    Q4,
    Facts,
    Known,
    Question,
    answer,
    shortened,
)
from brokerproof.spec.protocol.messages import Order
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Publish,
    Purge,
    Reject,
    Release,
)
from brokerproof.spec.rabbitmq.view import (
    BackingQueueView,
    IndexEntryView,
    PagingQueueView,
    StatusView,
)

UNTAKEN: Mapping[str, str] = {
    "publish": "no message was published that nobody had room for",
    "publish_delivered": "no message was published that somebody had room for at once",
    "fetch_from_q4": "nothing was fetched",
    "fetch_from_q3": "nothing was fetched of several messages in q3",
    "fetch_last": "nothing was fetched from q3 as the last beside a blank delta",
    "fetch_last_and_reload": "no reload left anything in delta",
    "fetch_last_and_reload_all": "no reload read all that was left of delta",
    "put_back_into_q4": "nothing is dropped from the front of a queue",
    "put_back_and_reload": "nothing is dropped from the front of a queue",
    "put_back_and_reload_all": "nothing is dropped from the front of a queue",
    "page_q1_to_q3": "no content of q1 left memory beside a blank delta",
    "page_q1_to_q2": "no content of q1 left memory behind a delta",
    "page_q4": "no content of q4 left memory",
    "page_q3": "no position of q3 left memory",
    "page_q2": "no position of q2 left memory",
    "limit_ram_acks": "no content of what is pending left memory",
    "acknowledge": "nothing was settled",
    "requeue_to_q4": "nothing came back before q3",
    "requeue_to_q3": "nothing came back to q3",
    "requeue_to_delta": "nothing came back to delta",
    "purge": "nothing was purged",
}
"""What has not happened where a transition of the model was never taken."""


def nothing_in(view: PagingQueueView, order: Order) -> PagingQueueView:
    """Return what a queue of `order` shows that is new, and of the sizes that a view shows."""
    return PagingQueueView(
        order=order,
        levels=tuple(
            [
                BackingQueueView(
                    level=each.level, target=each.target, segment=each.segment, batch=each.batch
                )
                for each in view.levels
            ]
        ),
    )


def explained(
    before: PagingQueueView, after: PagingQueueView, happened: Happening
) -> tuple[str, ...] | None:
    """Return the names of the actions that lead from one view to the other; None if none do.

    Raises `NotAQueue`, and `TooFar` where the search was given up.
    """
    if [each.level for each in before.levels] != [each.level for each in after.levels]:
        raise NotAQueue("it has other levels than before")
    taken: tuple[str, ...] = ()
    for one, other in zip(before.levels, after.levels, strict=True):
        returned = _returned(before, one, happened)
        if one != other or returned or _settled(happened, one):
            steps = answer(shortened(question(one, other, happened, returned)))
            if steps is None:
                return None
            taken += steps
    return taken


def _settled(happened: Happening, queue: BackingQueueView) -> list[int]:
    """Return the position of what an operation settles, if it has that in this backing queue."""
    if not isinstance(happened.operation, Acknowledge | Reject | Release):
        return []
    return [each.seq for each in queue.pending if each.message == happened.settled]


def _returned(
    view: PagingQueueView, queue: BackingQueueView, happened: Happening
) -> frozenset[int]:
    """Return the positions of what a closing channel has given back."""
    if not isinstance(happened.operation, CloseChannel):
        return frozenset()
    return frozenset(
        each.seq
        for each in view.handed_out
        if each.channel == happened.operation.channel and each.level == queue.level
    )


def question(
    before: BackingQueueView,
    after: BackingQueueView,
    happened: Happening,
    returned: frozenset[int] = frozenset(),
) -> Question:
    """Return the question whether the model explains two views; raises `NotAQueue`."""
    at_first, in_the_end = _Read(before), _Read(after)
    seqs = sorted({*at_first.known, *in_the_end.known, *_arrived(before, after, happened)})
    number = {seq: at for at, seq in enumerate(seqs)}
    new = [seq for seq in seqs if seq not in at_first.known]
    messages = []
    for seq in seqs:
        one, other = at_first.known.get(seq), in_the_end.known.get(seq)
        if one and other and (one.message, one.persistent) != (other.message, other.persistent):
            raise NotAQueue(f"{one.message} at {seq} has become {other.message}")
        if one is None and other is not None:
            _may_arrive(other, before, happened)
        messages.append(
            Known(
                at_first.facts(seq, NOWHERE),
                in_the_end.facts(seq, GONE),
                seq // before.segment,
                bool((one or other) and (one or other).persistent),  # type: ignore[union-attr]
            )
        )
    return Question(
        tuple(messages),
        tuple(_at_first(before, happened, number)),
        arrival=number[new[0]] if new else None,
        returned=tuple(sorted(number[seq] for seq in returned if seq in number)),
        purges=isinstance(happened.operation, Purge),
    )


def _at_first(
    before: BackingQueueView, happened: Happening, number: Mapping[int, int]
) -> Iterator[Taken]:
    for seq in _settled(happened, before):
        if not isinstance(happened.operation, Release):
            yield Taken("acknowledge", (number[seq],))
            continue
        yield Taken("requeue_to_q4", (number[seq],))
        if before.q3:
            head = number[min(each.seq for each in before.q3)]
            yield Taken("requeue_to_q3", (head, number[seq]))
            yield Taken("requeue_to_delta", (head, number[seq]))


def _arrived(
    before: BackingQueueView, after: BackingQueueView, happened: Happening
) -> Iterator[int]:
    """Yield the position that was given out, if one was."""
    given = after.next_seq - before.next_seq
    takes = happened.arrival is not None and happened.arrival[1] == before.level
    if given not in ((0, 1) if takes else (0,)):
        raise NotAQueue(f"its next position is {after.next_seq}, after {before.next_seq}")
    if given:
        yield before.next_seq


def _may_arrive(
    new: StatusView | IndexEntryView, before: BackingQueueView, happened: Happening
) -> None:
    """Raise `NotAQueue` where what is new is not what was published."""
    assert happened.arrival is not None or new.seq != before.next_seq
    operation = happened.operation
    if new.seq != before.next_seq or new.message != (happened.arrival or ("",))[0]:
        raise NotAQueue(f"{new.message} is there at {new.seq} and was not published")
    if new.persistent and isinstance(operation, Publish) and not operation.message.persistent:
        raise NotAQueue(f"{new.message} was not published as persistent")


_PLACES: Mapping[str, int] = {"q1": Q1, "q2": Q2, "q3": Q3, "q4": Q4, "pending": PENDING}


class _Read:
    """A view by positions."""

    def __init__(self, view: BackingQueueView) -> None:
        self.view = view
        self.entries = {each.seq: each for each in view.index}
        self.statuses: dict[int, tuple[int, StatusView]] = {}
        for name, place in _PLACES.items():
            for status in getattr(view, name):
                if status.seq in self.statuses:
                    raise NotAQueue(f"two messages are at {status.seq}")
                self.statuses[status.seq] = place, status
        self.known: dict[int, StatusView | IndexEntryView] = {
            seq: status for seq, (_, status) in self.statuses.items()
        }
        start, end = view.delta.start, view.delta.end
        for seq, entry in self.entries.items():
            if start <= seq < end and seq not in self.known:
                self.known[seq] = entry

    def facts(self, seq: int, otherwise: int) -> Facts:
        """Return what is known of a position; one that is not known is at `otherwise`."""
        view, entry = self.view, self.entries.get(seq)
        place, status = self.statuses.get(seq, (otherwise, None))
        if status is None and seq in self.known:
            place = DELTA
        is_blank = view.delta.count == 0 and view.delta.start == view.delta.end
        return Facts(
            place,
            in_ram=status is not None and status.in_ram,
            stored=place == DELTA if status is None else status.on_disk,
            delivered=status is not None and status.delivered,
            live=entry is not None,
            noted=entry is not None and entry.delivered,
            from_start=not is_blank and seq >= view.delta.start,
            before_end=not is_blank and seq < view.delta.end,
            used=seq < view.next_seq,
        )
