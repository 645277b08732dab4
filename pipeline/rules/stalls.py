"""The rule about messages that wait longer than a limit while a consumer is idle.

The contract has no time: it says which messages must not remain at rest, not by when. The limit is
the user's, and without one nothing is checked. It suits histories whose times are those of a clock.

A message is stalled while it certainly waits in its queue and a consumer of the queue certainly is
subscribed, has room, and is given nothing. Messages ahead of it do not matter: they wait for the
same idle consumer. If the message is that consumer's next delivery, it is stalled until that is
seen: until then it waited or was in transit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import Early, Late, overtaken
from brokerproof.pipeline.intervals.control import Control, Idle
from brokerproof.pipeline.intervals.idle import NO_DELIVERY
from brokerproof.pipeline.intervals.intervals import Gathered
from brokerproof.pipeline.intervals.table import Waits
from brokerproof.pipeline.names import NO_ROW, Ints, joint, numbers, ranks
from brokerproof.pipeline.rules.violations import none, violations


def stalled(
    table: pa.Table, found: Gathered, waits: Waits, certain: Waits, control: Control
) -> list[pa.Table]:
    """Return the stalled messages; `certain` are the certain parts of `waits`."""
    if control.idle is None:
        return []
    spans = _Spans.of(control.idle, found)
    return [
        _while_it_waited(table, certain, spans, control.idle.bound),
        _until_it_was_seen(table, found, waits, certain, spans, control.idle.bound),
    ]


class _Spans:
    """The idle spans of consumers, by queue numbers."""

    def __init__(self, idle: Idle, queue: Ints) -> None:
        there = queue != NO_ROW
        self.table = idle.spans.filter(pa.array(there))
        self.queue = queue[there]
        self.since, self.until, self.seen, self.position = (
            numbers(self.table, name) for name in ("since", "until", "seen", "position")
        )

    @classmethod
    def of(cls, idle: Idle, found: Gathered) -> _Spans:
        """Return the spans of the queues in a table."""
        queue_of = {
            each.subscriber: (each.record.run, each.record.queue or "") for each in idle.known
        }
        number = {key: each for each, key in enumerate(found.queue.keys)}
        subscribers = idle.spans.select(["run", "consumer"]).to_pylist()
        queues = [number.get(queue_of[row["run"], row["consumer"]], NO_ROW) for row in subscribers]
        return cls(idle, np.array(queues, dtype=np.int64))


def _while_it_waited(table: pa.Table, certain: Waits, spans: _Spans, bound: int) -> pa.Table:
    """Find messages that waited during an idle span; of several spans the longest counts."""
    waited = np.flatnonzero(certain.left_start > certain.begun_end + bound)
    # Shorter ones are listed for the delivery that ended them.
    long = np.flatnonzero(spans.until - spans.since > bound)
    begun, left = certain.begun_end[waited], certain.left_start[waited]
    name, _ = ranks(spans.table.column("consumer"))
    which = overtaken(
        Early(spans.queue[long], spans.since[long], spans.until[long], name[long]),
        Late(certain.queue[waited], left - bound, begun + bound),
    )
    wrong = np.flatnonzero(which != NO_ROW)
    rows, which = waited[wrong], long[which[wrong]]
    start = np.maximum(spans.since[which], begun[wrong])
    end = np.minimum(spans.until[which], left[wrong])
    return _told(table, certain, rows, spans, which, start, end)


def _until_it_was_seen(
    table: pa.Table, found: Gathered, waits: Waits, certain: Waits, spans: _Spans, bound: int
) -> pa.Table:
    """Find messages that were the next delivery of an idle consumer."""
    some = np.flatnonzero(spans.position != NO_DELIVERY)
    given = np.flatnonzero(
        (waits.given != NO_ROW) & waits.sure & (certain.left_start >= waits.left_start)
    )
    if not some.size or not given.size:
        return none()
    number = {key: each for each, key in enumerate(found.subscriber.keys)}
    rows = spans.table.take(pa.array(some)).select(["run", "consumer"]).to_pylist()
    subscriber = np.array([number.get((row["run"], row["consumer"]), NO_ROW) for row in rows])
    both = joint(
        np.concatenate((subscriber, found.subscriber.number[waits.given[given]])),
        np.concatenate((spans.position[some], numbers(table, "position")[waits.given[given]])),
    )
    of_spans, of_given = both[: some.size], both[some.size :]
    order = np.argsort(of_spans, kind="stable")
    at = order[np.minimum(np.searchsorted(of_spans, of_given, sorter=order), some.size - 1)]
    which = some[at]
    start = np.maximum(spans.since[which], certain.begun_end[given])
    end = spans.seen[which]
    long = np.flatnonzero((of_spans[at] == of_given) & (end - start > bound))
    return _told(table, certain, given[long], spans, which[long], start[long], end[long])


def _told(
    table: pa.Table,
    certain: Waits,
    rows: Ints,
    spans: _Spans,
    which: Ints,
    start: Ints,
    end: Ints,
) -> pa.Table:
    return violations(
        "stalled",
        table,
        certain.publish[rows],
        strength=end - start,
        witness=spans.table.column("consumer").take(pa.array(which)),
        late=(start, end),
        early=(certain.begun_start[rows], certain.begun_end[rows]),
    )
