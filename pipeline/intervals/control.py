"""The records about no single message: queues, channels, crashes, and drained queues.

A history has few such records, so each worker has them all. Owns their lookup by columns of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import Early, Late, overtaken
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues, QueueFacts
from brokerproof.pipeline.intervals.subscriptions import (
    Key,
    Leavings,
    Subscription,
    Subscriptions,
    Times,
    happened_by,
)
from brokerproof.pipeline.names import NO_ROW, Ints, dense, indices
from brokerproof.spec.histories import NEVER, Kind, Record


def _agreed(declared: set[QueueFacts]) -> QueueFacts:
    """Return the facts in which all declarations of a queue agree.

    A queue with differing declarations may have been deleted, or lost in a crash, and come back as
    another; next to nothing is certain then.
    """
    if len(declared) == 1:
        return next(iter(declared))
    levels = [each.levels for each in declared if each.levels is not None]
    return QueueFacts(
        max(levels, default=None),
        durable=False,
        may_be_durable=any(each.durable for each in declared),
        returns=False,
        unordered=any(each.unordered for each in declared),
        lease=min((each.lease for each in declared if each.lease is not None), default=None),
        may_drop=True,
        selective=True,
    )


@dataclass(frozen=True)
class Spans:
    """Spans of one kind, each with the number of its owner."""

    of: Ints
    start: Ints
    end: Ints

    def first_within(self, of: Ints, after: Ints, until: Ints) -> Ints:
        """Return a span of the same owner that lies between two times, or -1.

        It starts after `after` and ends before `until`; of several, the first to end is taken.
        """
        return overtaken(Early(self.of, -self.start, -self.end), Late(of, -after, -until))

    def next_start(self, of: Ints, since: Ints) -> Ints:
        """Return the first start of an owner's spans that end at `since` or later, or NEVER."""
        anything = np.full(of.size, -NEVER - 1, dtype=np.int64)
        which = overtaken(Early(self.of, -self.end, -self.start), Late(of, 1 - since, anything))
        starts = np.append(self.start, NEVER)
        return starts[which]

    def next_end(self, of: Ints, since: Ints) -> Ints:
        """Return the first end of an owner's spans that end at `since` or later, or NEVER."""
        anything = np.full(of.size, -NEVER - 1, dtype=np.int64)
        which = overtaken(Early(self.of, -self.end, -self.end), Late(of, 1 - since, anything))
        return np.append(self.end, NEVER)[which]

    def latest_end(self, of: Ints, until: Ints) -> Ints:
        """Return the latest end of an owner's spans that start at `until` or before, or -1."""
        anything = np.full(of.size, -1, dtype=np.int64)
        which = overtaken(Early(self.of, self.start, self.end), Late(of, until + 1, anything))
        return np.append(self.end, -1)[which]


NO_SPANS = Spans(*(np.empty(0, dtype=np.int64) for _ in range(3)))
"""No spans at all."""


@dataclass(frozen=True)
class Idle:
    """The idle spans of consumers that are longer than the limit; see `idle.SCHEMA`.

    `known` are the subscriptions whose idle spans can be determined.
    """

    spans: pa.Table
    known: tuple[Subscription, ...]
    bound: int


@dataclass(frozen=True)
class Bins:
    """The queues whose traffic is counted, and when the first bin of each begins; see `traffic`."""

    keys: tuple[Key, ...] = ()
    first: tuple[int, ...] = ()
    width: tuple[int, ...] = ()

    def numbers_of(self, keys: Iterable[Key]) -> Ints:
        """Return the place of each queue among those counted, `NO_ROW` for any other."""
        place = {key: number for number, key in enumerate(self.keys)}
        return np.array([place.get(key, NO_ROW) for key in keys], dtype=np.int64)


@dataclass
class Control:
    """The control records of a history: those about no single message.

    Subscribers have the names that `subscriptions.py` gives them; `reused` are the consumers' names
    with several subscriptions. `idle` has the long idle spans of consumers, None if unchecked.
    `bins` are those in which traffic is counted.
    """

    queues: dict[Key, QueueFacts] = field(default_factory=dict)
    channel_of: dict[Key, str] = field(default_factory=dict)
    window_of: dict[Key, int] = field(default_factory=dict)
    mode_of: dict[Key, str] = field(default_factory=dict)
    closed: dict[Key, Times] = field(default_factory=dict)
    spans: dict[tuple[Kind, str, str], Times] = field(default_factory=dict)
    unseen: dict[Key, Times] = field(default_factory=dict)
    gone: dict[Key, Times] = field(default_factory=dict)
    taken: dict[Key, Times] = field(default_factory=dict)
    reused: dict[Key, list[Subscription]] = field(default_factory=dict)
    polled: set[Key] = field(default_factory=set)
    leavings: Leavings = field(default_factory=Leavings)
    subscriptions: tuple[Subscription, ...] = ()
    idle: Idle | None = None
    bins: Bins = field(default_factory=Bins)
    known: KnownQueues = NOTHING_SAID
    begins_late: bool = False

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        *,
        begins_late: bool = False,
        known: KnownQueues = NOTHING_SAID,
    ) -> Control:
        """Return the content of the records, which may be in any order.

        `begins_late` is whether messages may have been published before the first record. `known`
        has facts about queues that no record declares.
        """
        control = cls(begins_late=begins_late, known=known)
        declared = dict[Key, set[QueueFacts]]()
        records = list(records)
        for record in records:
            control._take(record, declared)
        control.queues = {key: _agreed(facts) for key, facts in declared.items()}
        control._subscribe(Leavings.of(records))
        return control

    def _take(self, record: Record, declared: dict[Key, set[QueueFacts]]) -> None:
        if record.outcome == "failed":
            return
        queue = (record.run, record.queue or "")
        match record.op:
            case "declare":
                declared.setdefault(queue, set()).add(QueueFacts.of(record))
            case "purge" | "delete" | "drained" | "crash" | "restart":
                if record.op == "drained" and record.outcome != "ok":
                    return
                where = "" if record.op in {"crash", "restart"} else queue[1]
                of_kind = self.spans.setdefault((record.op, record.run, where), [])
                of_kind.append((record.start, happened_by(record)))
            case "empty":
                self.polled.add(queue)
            case _:
                pass

    def _subscribe(self, leavings: Leavings) -> None:
        """Take the facts about subscribers."""
        self.leavings, self.closed = leavings, leavings.closes
        found = Subscriptions(leavings)
        self.unseen, self.gone, self.taken = found.unseen(), found.gone(), found.taken()
        self.reused = {key: of_name for key, of_name in found.of_name.items() if len(of_name) > 1}
        self.subscriptions = (*found,)
        for each in self.subscriptions:
            self._subscribed(each)

    def _subscribed(self, each: Subscription) -> None:
        record = each.record
        if record.channel is not None:
            self.channel_of[each.subscriber] = record.channel
        if record.mode != "acknowledge":
            self.mode_of[each.subscriber] = record.mode
        if record.window:
            self.window_of[each.subscriber] = record.window
        if record.selective and record.mode != "browse":
            queue = (record.run, record.queue or "")
            [facts] = self.facts([queue])
            self.queues[queue] = replace(facts, selective=True)

    def facts(self, keys: Iterable[Key]) -> list[QueueFacts]:
        """Return the facts about each queue."""
        return [self.queues.get(key) or self.known.facts(key[1]) for key in keys]

    def undeclared(self, keys: Iterable[Key]) -> list[Key]:
        """Return the queues of unknown order."""
        return [key for key in keys if key[1] and not self.facts([key])[0].declared]

    def spans_of(self, kind: Kind, keys: Iterable[Key]) -> Spans:
        """Return the spans of a kind; each belongs to the index of its queue in `keys`."""
        everywhere = kind in {"crash", "restart"}
        return _spans(
            self.spans.get((kind, run, "" if everywhere else queue), ()) for run, queue in keys
        )

    def channels_of(self, subscribers: Named) -> Named:
        """Return the channels of subscribers; several may have used a channel's name."""
        numbers = dict[Key, int]()
        of_each = [
            numbers.setdefault((run, self.channel_of.get((run, name), "")), len(numbers))
            for run, name in subscribers.keys
        ]
        return Named(np.array(of_each, dtype=np.int64)[subscribers.number], tuple(numbers))

    def closes(self, keys: Iterable[Key]) -> Spans:
        """Return when channels closed."""
        return _spans(self.closed.get(key, ()) for key in keys)

    def unseen_ends(self, keys: Iterable[Key]) -> Spans:
        """Return when messages may have left queues in transit to a consumer."""
        return _spans(self.gone.get(key, ()) for key in keys)

    def unanswered_gets(self, keys: Iterable[Key]) -> Spans:
        """Return when each get without an answer may have taken one message from queues."""
        return _spans(self.taken.get(key, ()) for key in keys)

    def unseen_returns(self, keys: Iterable[Key]) -> Spans:
        """Return when messages may have returned to queues after an unrecorded delivery."""
        return _spans(
            [*self.unseen.get((run, queue), ()), *self.unseen.get((run, ""), ())]
            for run, queue in keys
        )


def _spans(by_queue: Iterable[Iterable[tuple[int, int]]]) -> Spans:
    rows = [
        (number, start, end)
        for number, spans in enumerate(by_queue)
        for start, end in sorted(spans)
    ]
    if not rows:
        return NO_SPANS
    of, start, end = np.array(rows, dtype=np.int64).T
    return Spans(of.copy(), start.copy(), end.copy())


@dataclass(frozen=True)
class Named:
    """Pairs of run and name in a table, as numbers that index `keys`."""

    number: Ints
    keys: tuple[Key, ...]


def named(table: pa.Table, column: str) -> Named:
    """Return the pairs of run and name in the rows of a table, in their order.

    A row without a name has an empty one; it comes first of its run.
    """
    (run, runs), (name, names) = indices(table.column("run")), indices(table.column(column))
    pairs, place = dense(run * len(names) + name)
    both = [divmod(pair, len(names)) for pair in pairs.tolist()]
    found = [(runs[r] or "", names[n] is not None, names[n] or "") for r, n in both]
    order = sorted(range(len(found)), key=found.__getitem__)
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found))
    return Named(rank[place], tuple((found[n][0], found[n][2]) for n in order))


def looked_up(of: Named, found: Iterable[int]) -> Ints:
    """Return for each row the value of its key."""
    return np.fromiter(found, dtype=np.int64, count=len(of.keys))[of.number]
