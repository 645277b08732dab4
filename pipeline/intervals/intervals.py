"""The waiting intervals of messages, from all records of each message.

Owns the combination of one message's records: which settlement belongs to which delivery, when a
delivered message may have come back, and when a message certainly waited. All records of a message
must be in the table; different messages are independent. A message with several publishes is
reported, and its intervals are useless (`ambiguous.py`). If the records leave something open, an
interval claims the least.

A message's deliveries are taken in the order in which they were seen, which need not be the order
in which they were made. So the earliest end of an interval is the earliest moment of *all*
deliveries that may have ended it. Deliveries seen at one time may have been made in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import running_least
from brokerproof.pipeline.intervals.control import Control, Named, Spans, looked_up, named
from brokerproof.pipeline.names import (
    NO_ROW,
    Ints,
    Marks,
    is_one_of,
    marks,
    message_numbers,
    numbers,
    places_in,
)
from brokerproof.spec.histories import NEVER


@dataclass(frozen=True)
class Deliveries:
    """The deliveries of all messages as columns, by message, in the order of being seen.

    `row` is the row in the table, `message` numbers the messages, `published` is the row of the
    publish. `first` and `last` mark the ends of a message's deliveries. `back` is when a delivery
    came back: its start is `NEVER` if it cannot have, its end is `NEVER` if it need not have.
    `done_by` is when it was certainly settled for good, `NEVER` if it need not have been. `unsure`
    are those with a settlement without an answer.
    """

    row: Ints
    message: Ints
    published: Ints
    first: Marks
    last: Marks
    start: Ints
    end: Ints
    back_start: Ints
    back_end: Ints
    freed: Ints
    settlements: Ints
    done_by: Ints
    unsure: Marks


@dataclass(frozen=True)
class Gathered:
    """The records of some messages, sorted by their kinds.

    `message` numbers the messages by row, `publish_of` has the publish row of each message number,
    `publish` are those rows. `published_again` is whether a message has several publishes.
    """

    queue: Named
    subscriber: Named
    message: Ints
    publish_of: Ints
    publish: Ints
    deliveries: Deliveries
    views: Ints
    unknown: Ints
    settles_nothing: Ints
    published_again: bool


@dataclass(frozen=True)
class Rows:
    """The columns of a history as numbers."""

    start: Ints
    end: Ints
    message: Ints
    subscriber: Named
    position: Ints
    acknowledges: Marks
    failed: Marks
    certain: Marks


def gathered(table: pa.Table, control: Control) -> Gathered:
    """Number the messages of records, and match settlements with deliveries."""
    queue = named(table, "queue")
    rows = Rows(
        start=numbers(table, "start"),
        end=numbers(table, "end", NEVER),
        message=message_numbers(table, queue.number),
        subscriber=named(table, "consumer"),
        position=numbers(table, "position"),
        acknowledges=is_one_of(table, "op", "acknowledge", "reject"),
        failed=is_one_of(table, "outcome", "failed"),
        certain=is_one_of(table, "outcome", "ok"),
    )
    publish_of, again = _publishes(table, rows)
    given = is_one_of(table, "op", "deliver") & ~rows.failed
    browses = _is_of_mode(table, rows.subscriber, control, "browse")
    acquiring = _by_message(rows, np.flatnonzero(given & ~browses))
    settling = np.flatnonzero(rows.acknowledges | is_one_of(table, "op", "release"))
    match = _matches(rows, acquiring, settling)
    of_publish = publish_of[rows.message]
    deliveries = _deliveries(table, rows, control, queue, of_publish, acquiring, settling, match)
    return Gathered(
        queue,
        rows.subscriber,
        rows.message,
        publish_of,
        publish_of[publish_of != NO_ROW],
        deliveries,
        views=np.flatnonzero(given & browses),
        unknown=np.flatnonzero(given & (of_publish == NO_ROW)),
        settles_nothing=settling[match == NO_ROW],
        published_again=again,
    )


def _is_of_mode(table: pa.Table, subscriber: Named, control: Control, mode: str) -> Marks:
    """Return which deliveries have a mode; the consumer's subscription takes precedence."""
    subscribed = [control.mode_of.get(key) for key in subscriber.keys]
    said = np.array([each is not None for each in subscribed], dtype=np.bool_)
    so = np.array([each == mode for each in subscribed], dtype=np.bool_)
    return np.where(said[subscriber.number], so[subscriber.number], is_one_of(table, "mode", mode))


def _publishes(table: pa.Table, rows: Rows) -> tuple[Ints, bool]:
    """Return the publish row of each message, and whether some message has several.

    A message without a publish has `NO_ROW`; so does the last entry, for rows without a message.
    """
    publish = np.flatnonzero(is_one_of(table, "op", "publish") & ~rows.failed)
    found = np.full(int(rows.message.max(initial=-1)) + 2, NO_ROW, dtype=np.int64)
    found[rows.message[publish]] = publish
    return found, bool((found[rows.message[publish]] != publish).any())


def _by_message(rows: Rows, given: Ints) -> Ints:
    """Return deliveries by message, and those of a message in the order of being seen."""
    message = rows.message[given]
    order = np.argsort(message, kind="stable")
    many = np.bincount(message, minlength=1)
    several = np.flatnonzero(many[message[order]] > 1)
    if several.size:
        some = given[order[several]]
        keys = (rows.position, rows.subscriber.number, rows.end, rows.message)
        order[several] = order[several][np.lexsort([key[some] for key in keys])]
    return given[order]


def _matches(rows: Rows, acquiring: Ints, settling: Ints) -> Ints:
    """Return for each settlement the delivery that it settles, as an index of `acquiring`."""
    found = np.full(settling.size, NO_ROW, dtype=np.int64)
    message = rows.message[acquiring]
    first_of = np.full(int(rows.message.max(initial=-1)) + 2, NO_ROW, dtype=np.int64)
    first_of[message[::-1]] = np.arange(message.size)[::-1]
    first = first_of[rows.message[settling]]
    there = first != NO_ROW
    # Nearly every message is delivered once, so nearly every settlement is matched here.
    same = there.copy()
    candidates = first[there]
    same[there] = (
        rows.subscriber.number[acquiring[candidates]] == rows.subscriber.number[settling[there]]
    ) & (rows.position[acquiring[candidates]] == rows.position[settling[there]])
    found[same] = first[same]
    left = np.flatnonzero(there & ~same)
    if left.size:
        several = np.flatnonzero(np.isin(message, rows.message[settling[left]]))
        keys = [rows.message, rows.subscriber.number, rows.position]
        of_deliveries = [key[acquiring[several]] for key in keys]
        of_settlements = [key[settling[left]] for key in keys]
        both = np.stack(
            [np.concatenate(pair) for pair in zip(of_deliveries, of_settlements, strict=True)]
        )
        _, number = np.unique(both, axis=1, return_inverse=True)
        number = number.reshape(-1)
        numbers_of, first_of = np.unique(number[: several.size], return_index=True)
        at, known = places_in(numbers_of, number[several.size :])
        found[left[known]] = several[first_of[at[known]]]
    return found


def _deliveries(
    table: pa.Table,
    rows: Rows,
    control: Control,
    queue: Named,
    of_publish: Ints,
    acquiring: Ints,
    settling: Ints,
    match: Ints,
) -> Deliveries:
    message = rows.message[acquiring]
    first = np.append(True, message[1:] != message[:-1])[: message.size]
    last = np.append(message[1:] != message[:-1], True)[-message.size :] if message.size else first
    settled = _Settled.of(rows, acquiring.size, settling[match != NO_ROW], match[match != NO_ROW])
    start, end = rows.start[acquiring], rows.end[acquiring]
    published = of_publish[acquiring]
    is_published = published != NO_ROW
    start = start.copy()
    start[is_published] = np.maximum(start[is_published], rows.start[published[is_published]])
    keeps = ~_is_of_mode(table, rows.subscriber, control, "automatic")[acquiring]
    leased_until = _leased_until(table, rows, control, queue, acquiring)
    closed, closed_by = _closing(table, rows, control, acquiring)
    back_start, back_end = settled.comes_back(
        keeps,
        (np.minimum(closed, leased_until), closed_by),
        _crashing(table, rows, control, queue, published, acquiring),
    )
    earliest = _no_earlier_than_a_return(first, start, end, back_start)
    together = ~first & (end == np.roll(end, 1))
    if together.any():
        earliest, back_end = _in_any_order(together, earliest, back_end)
    return Deliveries(
        acquiring,
        message,
        published,
        first,
        last,
        np.minimum(earliest, end),
        end,
        back_start,
        back_end,
        np.where(keeps, np.minimum(settled.freed, leased_until), end),
        settled.count,
        settled.done_by,
        settled.unsure,
    )


@dataclass(frozen=True)
class _Settled:
    """The settlements of each delivery; times are `NEVER` where there is none.

    `done_by` is when it was certainly settled for good, `done_from` when at the earliest;
    `released_from` and `released_by` are the same for a release; `freed` is the earliest of all.
    """

    count: Ints
    done_by: Ints
    done_from: Ints
    released_from: Ints
    released_by: Ints
    freed: Ints
    unsure: Marks

    @classmethod
    def of(cls, rows: Rows, size: int, settling: Ints, which: Ints) -> _Settled:
        happened = ~rows.failed[settling]
        settling, which = settling[happened], which[happened]
        final, certain = rows.acknowledges[settling], rows.certain[settling]

        def least(chosen: Marks, times: Ints) -> Ints:
            found = np.full(size, NEVER, dtype=np.int64)
            np.minimum.at(found, which[chosen], times[settling[chosen]])
            return found

        return cls(
            np.bincount(which, minlength=size).astype(np.int64),
            least(final & certain, rows.end),
            least(final, rows.start),
            least(~final, rows.start),
            least(~final & certain, rows.end),
            least(np.ones(settling.size, dtype=np.bool_), rows.start),
            least(~certain, rows.start) < NEVER,
        )

    def comes_back(
        self, keeps: Marks, closing: tuple[Ints, Ints], crashing: tuple[Ints, Ints]
    ) -> tuple[Ints, Ints]:
        """Return the span in which each delivery came back to its queue.

        A delivery certainly settled for good before its release, before its channel closed, or
        before a crash did not come back by that: an answered settlement is final (rule 10).
        """
        released = np.where(self.released_from <= self.done_by, self.released_from, NEVER)
        closed = np.where(self.done_by < closing[0], NEVER, closing[0])
        start = np.where(keeps, np.minimum(released, closed), NEVER)
        surely_released = (self.count == 1) | (self.released_by < self.done_from)
        by_release = np.where(surely_released, self.released_by, NEVER)
        untouched = self.count == 0
        by_itself = np.where(untouched, np.minimum(closing[1], crashing[1]), NEVER)
        end = np.where(keeps, np.minimum(by_release, by_itself), NEVER)
        crashed = np.where(self.done_by < crashing[0], NEVER, crashing[0])
        return np.minimum(start, crashed), end


def _closing(table: pa.Table, rows: Rows, control: Control, acquiring: Ints) -> tuple[Ints, Ints]:
    """Return when the channel of each delivery closed."""
    never = np.full(acquiring.size, NEVER, dtype=np.int64)
    if not control.closed:
        return never, never
    begun, seen = rows.start[acquiring], rows.end[acquiring]
    start, end = never, never
    for of in (control.channels_of(rows.subscriber), named(table, "channel")):
        spans = control.closes(of.keys)
        if spans.of.size:
            start = np.minimum(start, spans.next_start(of.number[acquiring], begun))
            end = np.minimum(end, spans.next_end(of.number[acquiring], seen))
    return start, end


def _leased_until(
    table: pa.Table, rows: Rows, control: Control, queue: Named, acquiring: Ints
) -> Ints:
    """Return the earliest moment at which the lease of each delivery can have ended.

    A renewal counts if it certainly came before that: one that came later had no effect, whatever
    was answered.
    """
    leases = np.array(
        [NEVER if each.lease is None else each.lease for each in control.facts(queue.keys)],
        dtype=np.int64,
    )
    lease = leases[queue.number[acquiring]]
    # Neither the sum nor one more lease is beyond 64 bits.
    until: Ints = np.minimum(rows.start[acquiring] + lease, NEVER)
    renewing = np.flatnonzero(is_one_of(table, "op", "extend") & rows.certain)
    if not renewing.size or (lease == NEVER).all():
        return until
    renewing = renewing[np.argsort(rows.start[renewing], kind="stable")]
    renewed = _matches(rows, acquiring, renewing)
    for row, which in zip(renewing[renewed != NO_ROW], renewed[renewed != NO_ROW], strict=True):
        if rows.end[row] < until[which]:
            until[which] = max(until[which], min(rows.start[row] + lease[which], NEVER))
    return until


def _crashing(
    table: pa.Table,
    rows: Rows,
    control: Control,
    queue: Named,
    published: Ints,
    acquiring: Ints,
) -> tuple[Ints, Ints]:
    """Return when a crash may have returned each delivery, and by when it certainly had.

    A delivery made before a crash may have been seen after it.
    """
    never = np.full(acquiring.size, NEVER, dtype=np.int64)
    crashes = control.spans_of("crash", queue.keys)
    if crashes.of.size == 0 or acquiring.size == 0:
        return never, never
    where = queue.number[acquiring]
    start = crashes.next_start(where, rows.start[acquiring])
    restarts = control.spans_of("restart", queue.keys)
    back = _first_end_after(restarts, where, start)
    durable = looked_up(queue, (facts.durable for facts in control.facts(queue.keys)))[acquiring]
    kept = is_kept(table)[published] & (published != NO_ROW)
    surely = (durable != 0) & kept & (start > rows.end[acquiring]) & (start < NEVER)
    return start, np.where(surely, back, NEVER)


def is_kept(table: pa.Table) -> Marks:
    """Return the publishes whose message a durable queue must keep in a crash.

    A broker that did not answer a publish is not responsible: the message may be kept or lost.
    """
    answered = is_one_of(table, "outcome", "ok") & (numbers(table, "end", NEVER) < NEVER)
    return marks(table, "persistent") & answered


def _first_end_after(spans: Spans, of: Ints, after: Ints) -> Ints:
    """Return the end of the first span that begins after a time, or NEVER."""
    until = np.full(of.size, NEVER, dtype=np.int64)
    which = spans.first_within(of, after, until)
    return np.append(spans.end, NEVER)[which]


def _in_any_order(together: Marks, start: Ints, back_end: Ints) -> tuple[Ints, Ints]:
    """Return starts and ends of returns, without the order of deliveries seen at one time.

    `together` are those seen at the time of the one before. Each may have been the first of them,
    and none certainly came back after the others.
    """
    group = np.cumsum(~together) - 1
    earliest = np.minimum.reduceat(start, np.flatnonzero(~together))
    alone = np.bincount(group)[group] == 1
    return earliest[group], np.where(alone, back_end, NEVER)


def _no_earlier_than_a_return(first: Marks, start: Ints, end: Ints, back_start: Ints) -> Ints:
    """Return the earliest moments of deliveries.

    A delivery that was certainly not the first of its message was made after an earlier seen one
    can have come back.
    """
    group = np.cumsum(first) - 1
    seen_first = end[first][group] if first.size else end
    if first.all():
        return start
    returned = running_least(np.where(first, NEVER, np.roll(back_start, 1)), first)
    again = ~first & (start > seen_first) & (returned < NEVER)
    return np.where(again, np.maximum(start, returned), start)
