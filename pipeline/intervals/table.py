"""The table of waiting intervals: the rules compare its rows, one for each interval of a message.

Owns the content of a row, and what stays certain of it after breaks in a run: a purge, a crash, or
a queue that drops messages ends a wait. The rules are in `models/contract/history.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.dominance import least_from_here
from brokerproof.pipeline.intervals.control import Control, Spans
from brokerproof.pipeline.intervals.intervals import Gathered, is_kept
from brokerproof.pipeline.names import NO_ROW, Ints, Marks, is_one_of, joint, numbers, ranks, texts
from brokerproof.spec.histories import NEVER, Kind

ALWAYS_GONE: Final = -1
"""The end of a wait that no rule can use: before all times."""

PURGES: Final = "purges"
DELETIONS: Final = "deletions"
CRASHES: Final = "crashes"
DROPS: Final = "queues that may drop messages"
UNDRAINED: Final = "queues that were not found drained"
LEFT: Final = "automatic consumers that left"
GETS: Final = "gets without an answer"
SETTLEMENTS: Final = "settlements without an answer"
UNRECORDED: Final = "deliveries that may be unrecorded"
PUBLISHES: Final = "publishes without an answer"
BEGINNINGS: Final = "deliveries without a beginning"
FLAGS: Final = "flags that were not recorded"
"""What may excuse a case of a requirement, in the words of a report."""

FIRST: Final = 1
"""It begins with the message's publish."""
SURE: Final = 2
"""Its delivery certainly ended the wait."""
ORDERED: Final = 4
"""The rules about order apply to it."""
PLACED: Final = 8
"""Messages that return to its queue take their places back."""
GIVEN: Final = 16
"""It has a delivery."""
VIEW: Final = 32
"""The delivery is to a browser, which was shown the message."""
QUERY: Final = 64
"""It is no message but a get that found nothing."""
CAME_BACK: Final = 128
"""An earlier delivery of the message was seen."""
DRAINED: Final = 256
"""It is no message but an observation that its queue was drained."""

ARRIVED: Final = 1
"""A row's role in a slice: it arrived there, and may be overtaken by later arrivals."""
ARRIVES: Final = 2
"""It may overtake earlier arrivals."""
WAITED: Final = 4
"""It began to wait there, and may be overtaken by later deliveries."""
TAKEN: Final = 8
"""It was delivered there, and may overtake messages that waited before."""
RETURNED: Final = 16
"""It waited there after a return."""
COUNTED: Final = 32
"""It was seen there."""
FREED: Final = 64
"""Its settlement began there."""
CARRY: Final = 128
"""It carries the count of earlier slices."""
ENDED: Final = 256
"""It had certainly been delivered there, and may overtake a covering chain up to then."""
JOINED: Final = 512
"""It carries, for earlier slices, since when a message was always present, until it left."""
JOINED_URGENT: Final = 1024
"""It carries the same for messages of its level or a higher one."""
ALL_ROLES: Final = 127 + ENDED

TIMES: Final = (
    "published_start",
    "published_end",
    "begun_end",
    "left_start",
    "given_start",
    "given_end",
)
"""The times of an interval that rules compare."""

SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "queue", "message", "consumer")),
        *((name, pa.int32()) for name in ("slice", "levels", "level", "position")),
        ("flags", pa.int16()),
        ("roles", pa.int16()),
        *((name, pa.int64()) for name in (*TIMES, "freed")),
    ]
)
"""An interval for the rules about several messages; missing times are `NEVER`."""


@dataclass(frozen=True)
class Waits:
    """Waiting intervals in columns.

    `publish` and `given` are rows of the history's table; `given` is `NO_ROW` without a delivery.
    `delivery` indexes `Deliveries`. So does `returned_by`, the delivery from which the message came
    back, `NO_ROW` on its first interval.
    """

    publish: Ints
    given: Ints
    delivery: Ints
    returned_by: Ints
    queue: Ints
    is_first: Marks
    sure: Marks
    published_start: Ints
    published_end: Ints
    begun_start: Ints
    begun_end: Ints
    left_start: Ints
    given_start: Ints
    given_end: Ints


def waits_of(table: pa.Table, found: Gathered) -> Waits:
    """Return all waiting intervals of the published messages."""
    start, end = numbers(table, "start"), numbers(table, "end", NEVER)
    certain = is_one_of(table, "outcome", "ok")
    end = np.where(certain, end, NEVER)
    given = found.deliveries
    known = given.published != NO_ROW
    of = np.flatnonzero(known)
    first, last = given.first[of], given.last[of]
    # If a return may precede the sight of its delivery, the time in between stays open.
    begins_surely = given.back_start >= given.end
    back_end = np.where(begins_surely, given.back_end, NEVER)
    before = np.maximum(of - 1, 0)
    left = least_from_here(given.start[of], last)
    after = np.append(left[1:], NEVER)
    after[last] = NEVER
    each = Waits(
        publish=given.published[of],
        given=given.row[of],
        delivery=of,
        returned_by=np.where(first, NO_ROW, before),
        queue=found.queue.number[given.row[of]],
        is_first=first,
        sure=after > given.end[of],
        published_start=start[given.published[of]],
        published_end=end[given.published[of]],
        begun_start=np.where(first, start[given.published[of]], given.back_start[before]),
        begun_end=np.where(first, end[given.published[of]], back_end[before]),
        left_start=left,
        given_start=given.start[of],
        given_end=given.end[of],
    )
    returned = of[last & (given.back_start[of] < NEVER)]
    was_given = np.zeros(found.publish_of.size, dtype=np.bool_)
    was_given[given.message] = True
    never_given = found.publish[~was_given[found.message[found.publish]]]
    return _joined(
        each,
        _waiting(
            start,
            end,
            found,
            given.published[returned],
            returned,
            (given.back_start[returned], back_end[returned]),
        ),
        _waiting(
            start,
            end,
            found,
            never_given,
            np.full(never_given.size, NO_ROW),
            (start[never_given], end[never_given]),
        ),
    )


def _waiting(
    start: Ints,
    end: Ints,
    found: Gathered,
    publish: Ints,
    returned_by: Ints,
    begun: tuple[Ints, Ints],
) -> Waits:
    """Return waiting intervals that no delivery ended."""
    never = np.full(publish.size, NEVER, dtype=np.int64)
    return Waits(
        publish=publish,
        given=np.full(publish.size, NO_ROW, dtype=np.int64),
        delivery=np.full(publish.size, NO_ROW, dtype=np.int64),
        returned_by=returned_by,
        queue=found.queue.number[publish],
        is_first=returned_by == NO_ROW,
        sure=np.ones(publish.size, dtype=np.bool_),
        published_start=start[publish],
        published_end=end[publish],
        begun_start=begun[0],
        begun_end=begun[1],
        left_start=never,
        given_start=never,
        given_end=never,
    )


def _joined(*parts: Waits) -> Waits:
    return Waits(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in Waits.__dataclass_fields__
        }
    )


def as_seen(waits: Waits, found: Gathered, control: Control) -> Waits:
    """Return the certain parts of intervals in view of unrecorded deliveries.

    A message that waited when a consumer left may have been in transit to it and returned then. It
    certainly waits only since then, and may not be on its first interval.
    """
    returns = control.unseen_returns(found.queue.keys)
    if not returns.of.size:
        return waits
    latest = returns.latest_end(waits.queue, waits.given_end)
    open_ = latest >= waits.begun_start
    return replace(
        waits,
        is_first=waits.is_first & ~open_,
        begun_end=np.where(open_, np.maximum(waits.begun_end, latest), waits.begun_end),
    )


def interrupted(
    waits: Waits, table: pa.Table, found: Gathered, control: Control, *, by_gets: bool = True
) -> Waits:
    """Return the certain parts of intervals in view of all that may have ended them unseen.

    `by_gets` is whether a get without an answer may have.
    """
    ends = unseen_ends(waits, table, found, control)
    left = [end for cause, end in ends.items() if by_gets or cause != GETS]
    return replace(waits, left_start=np.minimum.reduce([waits.left_start, *left]))


def unseen_ends(
    waits: Waits, table: pa.Table, found: Gathered, control: Control
) -> dict[str, Ints]:
    """Return for each cause the earliest moment at which it may have ended a wait, or `NEVER`.

    A waiting message may be gone since a purge of its queue. Any message, waiting or held, may be
    gone since the queue's deletion, or since a crash that found it not on disk. If the moment is
    not known, no part of the wait is certain.
    """
    keys, facts = found.queue.keys, control.facts(found.queue.keys)
    never = np.full(waits.queue.size, NEVER, dtype=np.int64)
    held_since = np.append(found.deliveries.start, NEVER)[waits.returned_by]
    was_there = waits.returned_by == NO_ROW
    there_since = np.where(was_there, waits.published_start, held_since)
    durable = np.array([each.durable for each in facts], dtype=np.bool_)[waits.queue]
    survives = durable & is_kept(table)[waits.publish]
    drops = np.array([each.may_drop for each in facts], dtype=np.bool_)[waits.queue]
    never_given = waits.given == NO_ROW

    def next_of(kind: Kind, since: Ints) -> Ints:
        spans = control.spans_of(kind, keys)
        return spans.next_start(waits.queue, since) if spans.of.size else never

    def may_be_with(spans: Spans) -> Ints:
        if not spans.of.size:
            return never
        # What came after the queue was found drained cannot have taken it before.
        return np.where(never_given, spans.next_start(waits.queue, waits.begun_start), never)

    return {
        PURGES: next_of("purge", waits.begun_start),
        DELETIONS: next_of("delete", there_since),
        CRASHES: np.where(survives, NEVER, next_of("crash", there_since)),
        DROPS: np.where(drops, ALWAYS_GONE, never),
        LEFT: may_be_with(control.unseen_ends(keys)),
        GETS: may_be_with(control.unanswered_gets(keys)),
    }


def intervals_table(waits: Waits, table: pa.Table, found: Gathered, control: Control) -> pa.Table:
    """Return intervals and views of browsers, for the rules about several messages.

    Gets that found nothing are included, and the times at which queues were found drained.
    """
    facts = control.facts(found.queue.keys)
    levels = np.array([each.levels or 0 for each in facts], dtype=np.int64)
    ordered = np.array([not each.selective for each in facts], dtype=np.bool_)
    placed = np.array([each.returns for each in facts], dtype=np.bool_)
    flags = (
        np.where(waits.is_first, FIRST, 0)
        + np.where(waits.sure, SURE, 0)
        + np.where(ordered[waits.queue], ORDERED, 0)
        + np.where(placed[waits.queue], PLACED, 0)
        + np.where(waits.given != NO_ROW, GIVEN, 0)
        + np.where(waits.returned_by != NO_ROW, CAME_BACK, 0)
    )
    freed = np.append(found.deliveries.freed, NEVER)[waits.delivery]
    taken = _rows(table, waits, waits.given, levels, flags, freed)
    views = _views(table, found)
    view_flags = np.full(views.publish.size, FIRST + SURE + VIEW + GIVEN)
    is_new = _shown_first(table, found, views.given)
    view_flags += np.where(((levels == 0) & placed)[views.queue] & is_new, ORDERED, 0)
    shown = _rows(table, views, views.given, levels, view_flags, views.given_end)
    return pa.concat_tables([taken, shown, _queries(table), _drained(found, control)])


def _shown_first(table: pa.Table, found: Gathered, rows: Ints) -> Marks:
    """Return which views are the first of their message by their browser."""
    subscriber, _ = ranks(table.column("consumer"))
    both = joint(found.message[rows], subscriber[rows])
    order = np.lexsort((numbers(table, "position")[rows], both))
    new = np.append(True, both[order][1:] != both[order][:-1])[: rows.size]
    is_new = np.empty(rows.size, dtype=np.bool_)
    is_new[order] = new
    return is_new


def _queries(table: pa.Table) -> pa.Table:
    """Return the gets that found nothing, named by subscriber and time."""
    certain = is_one_of(table, "op", "empty") & is_one_of(table, "outcome", "ok")
    rows = pa.array(np.flatnonzero(certain))
    start = table.column("start").take(rows)
    consumer = texts(table.column("consumer"), rows)
    size = len(rows)
    name = pc.binary_join_element_wise(consumer, pc.cast(start, pa.string()), " at ")
    columns = {
        "run": texts(table.column("run"), rows),
        "queue": texts(table.column("queue"), rows),
        "message": name,
        "consumer": consumer,
        "flags": np.full(size, QUERY, dtype=np.int16),
        "roles": np.full(size, ALL_ROLES, dtype=np.int16),
        "given_start": start,
        "given_end": table.column("end").take(rows),
    }
    for each in SCHEMA:
        if each.name not in columns:
            columns[each.name] = pa.array(np.zeros(size, dtype=np.int64)).cast(each.type)
    return pa.table(columns, schema=SCHEMA)


def _drained(found: Gathered, control: Control) -> pa.Table:
    """Return when the queues of a part were found drained; each part of a queue repeats it."""
    spans = control.spans_of("drained", found.queue.keys)
    keys = [found.queue.keys[number] for number in spans.of.tolist()]
    times = zip(keys, spans.start.tolist(), spans.end.tolist(), strict=True)
    rows = [
        {
            **{each.name: None if each.type == pa.string() else 0 for each in SCHEMA},
            "run": run,
            "queue": queue,
            "message": f"drained at {start}",
            "flags": QUERY + DRAINED,
            "roles": ALL_ROLES,
            "given_start": start,
            "given_end": end,
        }
        for (run, queue), start, end in times
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _views(table: pa.Table, found: Gathered) -> Waits:
    """Return the views of published messages by browsers, as intervals without an end."""
    rows = found.views[found.publish_of[found.message[found.views]] != NO_ROW]
    publish = found.publish_of[found.message[rows]]
    start, end = numbers(table, "start"), numbers(table, "end", NEVER)
    published_end = np.where(is_one_of(table, "outcome", "ok"), end, NEVER)
    no_row = np.full(rows.size, NO_ROW, dtype=np.int64)
    begun = start[publish], published_end[publish]
    waiting = _waiting(start, published_end, found, publish, no_row, begun)
    given = np.minimum(np.maximum(start[rows], start[publish]), end[rows])
    return replace(waiting, given=rows, given_start=given, given_end=end[rows])


def _rows(
    table: pa.Table, waits: Waits, given: Ints, levels: Ints, flags: Ints, freed: Ints
) -> pa.Table:
    publish = pa.array(waits.publish)
    subscriber = pa.array(np.where(given == NO_ROW, 0, given), mask=given == NO_ROW)
    priority = numbers(table, "priority")[waits.publish]
    of_queue = levels[waits.queue]
    level = np.where(of_queue > 0, np.minimum(priority, of_queue - 1), 0)
    position = np.append(numbers(table, "position"), NO_ROW)[given]
    columns = {
        "run": texts(table.column("run"), publish),
        "queue": texts(table.column("queue"), publish),
        "message": table.column("message").take(publish),
        "consumer": texts(table.column("consumer"), subscriber),
        "slice": np.zeros(flags.size, dtype=np.int32),
        "levels": of_queue.astype(np.int32),
        "level": level.astype(np.int32),
        "position": position.astype(np.int32),
        "flags": flags.astype(np.int16),
        "roles": np.full(flags.size, ALL_ROLES, dtype=np.int16),
        "published_start": waits.published_start,
        "published_end": waits.published_end,
        "begun_end": waits.begun_end,
        "left_start": waits.left_start,
        "given_start": waits.given_start,
        "given_end": waits.given_end,
        "freed": freed,
    }
    return pa.table(columns, schema=SCHEMA)


def with_columns(table: pa.Table, **columns: Ints) -> pa.Table:
    """Return a table of waiting intervals with some columns replaced."""
    for name, values in columns.items():
        number = SCHEMA.get_field_index(name)
        kind = SCHEMA.field(number)
        table = table.set_column(number, kind, pa.array(values).cast(kind.type))
    return table
