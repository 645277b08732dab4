"""The passages of messages through their queues, made of all that was recorded of each message.

Owns what the records of one message say together: which settlement belongs to which delivery, when
what was given may have come back, when a message certainly waited and until when. All of a
message's records must be in the table; those of different messages have nothing to do with each
other. Where the records leave something open, a passage says the least.

The deliveries of a message are taken in the order in which they were seen, which need not be that
in which they were made. So a passage ends at the earliest at the earliest moment of *all* the
deliveries that may have ended it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.control import Control, Named, Spans, looked_up, named
from brokerproof.pipeline.dominance import Ints, Marks
from brokerproof.pipeline.names import is_one_of, joint, marks, numbers, places_in, ranks
from brokerproof.spec.histories import NEVER

NOBODY = -1
ALWAYS_GONE = -1
"""The end of a wait that nobody can rely on: before all times."""


@dataclass(frozen=True)
class Deliveries:
    """What takers were given, all passages of a message side by side, in the order of being seen.

    `row` is where each stands in the table, `message` numbers the messages, `published` is the row
    of its publish, `first` and `last` mark the ends of a message's deliveries. `back` is when a
    delivery came back; its start is `NEVER` where it cannot have, and its end where it need not.
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


@dataclass(frozen=True)
class Gathered:
    """The records of some messages, told apart."""

    queue: Named
    taker: Named
    message: Ints
    publish: Ints
    deliveries: Deliveries
    views: Ints
    unknown: Ints
    settles_nothing: Ints
    published_again: Ints


@dataclass(frozen=True)
class Rows:
    """The columns of a history as numbers."""

    start: Ints
    end: Ints
    message: Ints
    taker: Named
    position: Ints
    place: Ints
    acknowledges: Marks
    failed: Marks
    certain: Marks


def gathered(table: pa.Table, control: Control) -> Gathered:
    """Tell the records of messages apart, and match what belongs together."""
    queue = named(table, "queue")
    name, _ = ranks(table.column("message"))
    rows = Rows(
        start=numbers(table, "start"),
        end=numbers(table, "end", NEVER),
        message=joint(queue.number, name),
        taker=named(table, "consumer"),
        position=numbers(table, "position"),
        place=numbers(table, "place"),
        acknowledges=is_one_of(table, "op", "acknowledge", "reject"),
        failed=is_one_of(table, "outcome", "failed"),
        certain=is_one_of(table, "outcome", "ok"),
    )
    publish, again = _publishes(table, rows)
    given = is_one_of(table, "op", "deliver") & ~rows.failed
    browses = is_one_of(table, "mode", "browse")
    keys = rows.message[publish]
    at, known = places_in(keys, rows.message)
    of_publish = np.where(known, publish[at] if publish.size else NOBODY, NOBODY)
    acquiring = np.flatnonzero(given & ~browses)
    order = np.lexsort(
        (
            rows.position[acquiring],
            rows.taker.number[acquiring],
            rows.end[acquiring],
            rows.message[acquiring],
        )
    )
    acquiring = acquiring[order]
    settling = np.flatnonzero(rows.acknowledges | is_one_of(table, "op", "release"))
    match = _matches(rows, acquiring, settling)
    deliveries = _deliveries(table, rows, control, queue, of_publish, acquiring, settling, match)
    return Gathered(
        queue,
        rows.taker,
        rows.message,
        publish,
        deliveries,
        views=np.flatnonzero(given & browses),
        unknown=np.flatnonzero(given & ~known),
        settles_nothing=settling[match == NOBODY],
        published_again=again,
    )


def _publishes(table: pa.Table, rows: Rows) -> tuple[Ints, Ints]:
    """Return the rows of publishes in the order of messages, one each, and the rows of others."""
    publish = np.flatnonzero(is_one_of(table, "op", "publish") & ~rows.failed)
    publish = publish[np.lexsort((rows.place[publish], rows.message[publish]))]
    message = rows.message[publish]
    again = np.append(False, message[1:] == message[:-1])[: message.size]
    return publish[~again], publish[again]


def _matches(rows: Rows, acquiring: Ints, settling: Ints) -> Ints:
    """Return for each settlement which delivery it settles, as a place among `acquiring`."""
    found = np.full(settling.size, NOBODY, dtype=np.int64)
    message = rows.message[acquiring]
    first, there = places_in_runs(message, rows.message[settling])
    # Nearly every message is given once, so nearly every settlement is matched here.
    same = there.copy()
    candidates = first[there]
    same[there] = (
        rows.taker.number[acquiring[candidates]] == rows.taker.number[settling[there]]
    ) & (rows.position[acquiring[candidates]] == rows.position[settling[there]])
    found[same] = first[same]
    left = np.flatnonzero(there & ~same)
    if left.size:
        several = np.flatnonzero(np.isin(message, rows.message[settling[left]]))
        keys = [rows.message, rows.taker.number, rows.position]
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


def places_in_runs(sorted_keys: Ints, keys: Ints) -> tuple[Ints, Marks]:
    """Return where the run of each key begins among sorted ones, and whether there is one."""
    at = np.searchsorted(sorted_keys, keys, side="left")
    within = np.minimum(at, max(sorted_keys.size - 1, 0))
    there = (
        (at < sorted_keys.size) & (sorted_keys[within] == keys)
        if sorted_keys.size
        else np.zeros(keys.size, dtype=np.bool_)
    )
    return within, there


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
    settled = _Settled.of(rows, acquiring.size, settling[match != NOBODY], match[match != NOBODY])
    start, end = rows.start[acquiring], rows.end[acquiring]
    published = of_publish[acquiring]
    is_published = published != NOBODY
    start = start.copy()
    start[is_published] = np.maximum(start[is_published], rows.start[published[is_published]])
    keeps = ~is_one_of(table, "mode", "automatic")[acquiring]
    back_start, back_end = settled.comes_back(
        keeps,
        _closing(table, rows, control, acquiring),
        _crashing(table, rows, control, queue, published, acquiring),
    )
    earliest = _no_earlier_than_a_return(first, start, end, back_start)
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
        np.where(keeps, settled.freed, end),
        settled.count,
    )


@dataclass(frozen=True)
class _Settled:
    """What the settlements of each delivery say; times are `NEVER` where there is none.

    `done_by` is when it was certainly settled for good, `done_from` the earliest that it can have
    been, `released_from` and `released_by` the same of a release, `freed` the earliest of all.
    """

    count: Ints
    done_by: Ints
    done_from: Ints
    released_from: Ints
    released_by: Ints
    freed: Ints

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
        )

    def comes_back(
        self, keeps: Marks, closing: tuple[Ints, Ints], crashing: tuple[Ints, Ints]
    ) -> tuple[Ints, Ints]:
        """Return the span in which each delivery came back to its queue.

        What was certainly settled for good before its release, or before its channel closed, did
        not come back by it. A crash may forget settlements.
        """
        released = np.where(self.released_from <= self.done_by, self.released_from, NEVER)
        closed = np.where(self.done_by < closing[0], NEVER, closing[0])
        start = np.where(keeps, np.minimum(released, closed), NEVER)
        surely_released = (self.count == 1) | (self.released_by < self.done_from)
        by_release = np.where(surely_released, self.released_by, NEVER)
        untouched = self.count == 0
        by_itself = np.where(untouched, np.minimum(closing[1], crashing[1]), NEVER)
        end = np.where(keeps, np.minimum(by_release, by_itself), NEVER)
        return np.minimum(start, crashing[0]), end


def _closing(table: pa.Table, rows: Rows, control: Control, acquiring: Ints) -> tuple[Ints, Ints]:
    """Return when the channel of each delivery closed."""
    if not control.closed:
        never = np.full(acquiring.size, NEVER, dtype=np.int64)
        return never, never
    never_closed = (NEVER, NEVER)
    by_taker = [
        control.closed.get((key[0], control.channel_of.get(key, "")), never_closed)
        for key in rows.taker.keys
    ]
    channel = named(table, "channel")
    by_channel = [control.closed.get(key, never_closed) for key in channel.keys]
    start = np.minimum(
        looked_up(rows.taker, (span[0] for span in by_taker)),
        looked_up(channel, (span[0] for span in by_channel)),
    )
    end = np.minimum(
        looked_up(rows.taker, (span[1] for span in by_taker)),
        looked_up(channel, (span[1] for span in by_channel)),
    )
    return start[acquiring], end[acquiring]


def _crashing(
    table: pa.Table,
    rows: Rows,
    control: Control,
    queue: Named,
    published: Ints,
    acquiring: Ints,
) -> tuple[Ints, Ints]:
    """Return when a crash may have brought each delivery back, and by when it certainly had.

    What was given before a crash may have been seen after it.
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
    persistent = marks(table, "persistent")[published] & (published != NOBODY)
    surely = (durable != 0) & persistent & (start > rows.end[acquiring]) & (start < NEVER)
    return start, np.where(surely, back, NEVER)


def _first_end_after(spans: Spans, of: Ints, after: Ints) -> Ints:
    """Return the end of the first of the spans that begin after a time, or NEVER."""
    until = np.full(of.size, NEVER, dtype=np.int64)
    which = spans.first_within(of, after, until)
    return np.append(spans.end, NEVER)[which]


def _no_earlier_than_a_return(first: Marks, start: Ints, end: Ints, back_start: Ints) -> Ints:
    """Return the earliest moments of deliveries.

    One that was certainly not the first of its message was made after one that was seen before it
    can have come back.
    """
    group = np.cumsum(first) - 1
    seen_first = end[first][group] if first.size else end
    if first.all():
        return start
    returned = running_least(np.where(first, NEVER, np.roll(back_start, 1)), first)
    again = ~first & (start > seen_first) & (returned < NEVER)
    return np.where(again, np.maximum(start, returned), start)


def running_least(values: Ints, begins: Marks) -> Ints:
    """Return the least value so far since the last mark."""
    return -_running_most(-values, begins)


def least_from_here(values: Ints, ends: Marks) -> Ints:
    """Return the least value from each place to the next mark, both included."""
    return running_least(values[::-1], ends[::-1])[::-1]


def _running_most(values: Ints, begins: Marks) -> Ints:
    order = np.argsort(values, kind="stable")
    rank = np.empty(values.size, dtype=np.int64)
    rank[order] = np.arange(values.size)
    lift = (np.cumsum(begins) - 1) * np.int64(values.size)
    best = np.maximum.accumulate(rank + lift) - lift
    most: Ints = values[order[best]]
    return most
