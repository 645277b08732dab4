"""What is about no single message: queues, channels, crashes, and who found a queue drained.

A history has few such records, so each worker has them all. Owns how they are looked up by columns
of names. Refuses to know messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import Early, Ints, Late, dense, overtaken
from brokerproof.pipeline.names import joint, ranks
from brokerproof.spec.histories import NEVER, Kind, Record

Key = tuple[str, str]


@dataclass(frozen=True)
class QueueFacts:
    """What is known of a queue; what was never declared is first in, first out, and not durable.

    `durable` is whether it certainly is, `may_be_durable` whether it may be.
    """

    levels: int | None = None
    durable: bool = False
    may_be_durable: bool = False
    returns: bool = True
    may_drop: bool = False
    selective: bool = False


def _happened_by(record: Record) -> int:
    """Return by when it certainly happened; `NEVER` where it need not have."""
    return record.end if record.outcome == "ok" and record.end is not None else NEVER


def _agreed(declared: set[QueueFacts]) -> QueueFacts:
    """Return what all declarations of a queue say; where they differ, next to nothing is certain.

    It may have been deleted, or lost in a crash, and come back as another.
    """
    if len(declared) == 1:
        return next(iter(declared))
    levels = [each.levels for each in declared if each.levels is not None]
    return QueueFacts(
        max(levels, default=None),
        durable=False,
        may_be_durable=any(each.durable for each in declared),
        returns=False,
        may_drop=True,
        selective=True,
    )


@dataclass(frozen=True)
class Spans:
    """Spans of one kind, each with a number that says what it belongs to."""

    of: Ints
    start: Ints
    end: Ints

    def first_within(self, of: Ints, after: Ints, until: Ints) -> Ints:
        """Return which span of the same lies between two times, or -1 where none does.

        That is one that starts after `after` and ends before `until`; of several, the first to end.
        """
        return overtaken(Early(self.of, -self.start, -self.end), Late(of, -after, -until))

    def next_start(self, of: Ints, since: Ints) -> Ints:
        """Return when the first span of the same starts that ends at `since` or later, or NEVER."""
        anything = np.full(of.size, -NEVER - 1, dtype=np.int64)
        which = overtaken(Early(self.of, -self.end, -self.start), Late(of, 1 - since, anything))
        starts = np.append(self.start, NEVER)
        return starts[which]

    def next_end(self, of: Ints, since: Ints) -> Ints:
        """Return when the first span of the same ends that ends at `since` or later, or NEVER."""
        anything = np.full(of.size, -NEVER - 1, dtype=np.int64)
        which = overtaken(Early(self.of, -self.end, -self.end), Late(of, 1 - since, anything))
        return np.append(self.end, NEVER)[which]

    def latest_end(self, of: Ints, until: Ints) -> Ints:
        """Return the latest end of the spans of the same that start at `until` or before, or -1."""
        anything = np.full(of.size, -1, dtype=np.int64)
        which = overtaken(Early(self.of, self.start, self.end), Late(of, until + 1, anything))
        return np.append(self.end, -1)[which]


NO_SPANS = Spans(*(np.empty(0, dtype=np.int64) for _ in range(3)))
"""No spans at all."""


@dataclass
class Control:
    """The records of a history that are about no single message."""

    queues: dict[Key, QueueFacts] = field(default_factory=dict)
    channel_of: dict[Key, str] = field(default_factory=dict)
    window_of: dict[Key, int] = field(default_factory=dict)
    mode_of: dict[Key, str] = field(default_factory=dict)
    closed: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)
    spans: dict[tuple[Kind, str, str], list[tuple[int, int]]] = field(default_factory=dict)
    unseen: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)
    gone: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)
    polled: set[Key] = field(default_factory=set)
    begins_late: bool = False

    @classmethod
    def of(cls, records: Iterable[Record], *, begins_late: bool = False) -> Control:
        """Return what the records say, in any order of them.

        `begins_late` is whether messages may have been published before the first record.
        """
        control = cls(begins_late=begins_late)
        selective = set[Key]()
        declared = dict[Key, set[QueueFacts]]()
        leavings = _Leavings()
        for record in records:
            control._take(record, selective, declared)
            leavings.take(record)
        control.unseen, control.gone = leavings.unseen(), leavings.gone()
        control.queues = {key: _agreed(facts) for key, facts in declared.items()}
        for key in selective:
            control.queues[key] = replace(control.queues.get(key, QueueFacts()), selective=True)
        return control

    def _take(
        self, record: Record, selective: set[Key], declared: dict[Key, set[QueueFacts]]
    ) -> None:
        if record.outcome == "failed":
            return
        end = _happened_by(record)
        queue = (record.run, record.queue or "")
        match record.op:
            case "declare":
                facts = QueueFacts(
                    record.levels,
                    record.durable,
                    record.durable,
                    record.returns == "original",
                    record.may_drop,
                )
                declared.setdefault(queue, set()).add(facts)
            case "consume":
                taker = (record.run, record.consumer or "")
                if record.channel is not None:
                    self.channel_of[taker] = record.channel
                if record.mode != "acknowledge":
                    self.mode_of[taker] = record.mode
                if record.window is not None:
                    self.window_of[taker] = record.window
                if record.selective and record.mode != "browse":
                    selective.add(queue)
            case "close":
                channel = (record.run, record.channel or "")
                self.closed.setdefault(channel, []).append((record.start, end))
            case "purge" | "delete" | "drained" | "crash" | "restart":
                if record.op == "drained" and record.outcome != "ok":
                    return
                where = "" if record.op in {"crash", "restart"} else queue[1]
                of_kind = self.spans.setdefault((record.op, record.run, where), [])
                of_kind.append((record.start, end))
            case "empty":
                self.polled.add(queue)
            case _:
                pass

    def facts(self, keys: Iterable[Key]) -> list[QueueFacts]:
        """Return what is known of each queue."""
        nothing = QueueFacts()
        return [self.queues.get(key, nothing) for key in keys]

    def spans_of(self, kind: Kind, keys: Iterable[Key]) -> Spans:
        """Return the spans of a kind; each belongs to the number of its queue among the keys."""
        everywhere = kind in {"crash", "restart"}
        return _spans(
            self.spans.get((kind, run, "" if everywhere else queue), ()) for run, queue in keys
        )

    def closes_of_takers(self, keys: Iterable[Key]) -> Spans:
        """Return when the channels of takers closed."""
        return _spans(
            self.closed.get((run, self.channel_of.get((run, name), "")), ()) for run, name in keys
        )

    def closes(self, keys: Iterable[Key]) -> Spans:
        """Return when channels closed."""
        return _spans(self.closed.get(key, ()) for key in keys)

    def unseen_ends(self, keys: Iterable[Key]) -> Spans:
        """Return when messages may have gone from queues that nobody saw given."""
        return _spans(self.gone.get(key, ()) for key in keys)

    def unseen_returns(self, keys: Iterable[Key]) -> Spans:
        """Return when messages may have returned to queues that nobody saw given."""
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


@dataclass
class _Leavings:
    """How consumers left: what was on its way to one when it went was given, and nobody saw it.

    A consumer that cancelled, and had the answer, has seen all that it was given. One whose channel
    closed before that has not, nor has any when the broker crashes.
    """

    consumers: dict[Key, list[Key]] = field(default_factory=dict)
    automatic: list[tuple[str, str, str, str, int]] = field(default_factory=list)
    cancelled: dict[Key, int] = field(default_factory=dict)
    closes: list[tuple[Key, int, int]] = field(default_factory=list)
    crashes: list[tuple[str, int, int]] = field(default_factory=list)
    restarts: list[tuple[str, int, int]] = field(default_factory=list)

    def take(self, record: Record) -> None:
        """Take a record of any kind."""
        if record.outcome == "failed":
            return
        end = _happened_by(record)
        channel = (record.run, record.channel or "")
        match record.op:
            case "consume" if record.mode != "browse":
                consumer = (record.queue or "", record.consumer or "")
                if record.mode == "acknowledge":
                    self.consumers.setdefault(channel, []).append(consumer)
                else:
                    self.automatic.append((*channel, *consumer, record.start))
            case "cancel":
                self.cancelled[record.run, record.consumer or ""] = end
            case "close":
                self.closes.append((channel, record.start, end))
            case "crash":
                self.crashes.append((record.run, record.start, end))
            case "restart":
                self.restarts.append((record.run, record.start, end))
            case _:
                pass

    def unseen(self) -> dict[Key, list[tuple[int, int]]]:
        """Return, by queue, when messages may have returned that nobody saw given.

        Those of all queues of a run are by the empty name.
        """
        found = dict[Key, list[tuple[int, int]]]()
        for (run, channel), start, end in self.closes:
            consumers = self.consumers.get((run, channel), [])
            for queue, consumer in consumers:
                if self.cancelled.get((run, consumer), NEVER) >= start:
                    found.setdefault((run, queue), []).append((start, end))
            known = consumers or any(each[:2] == (run, channel) for each in self.automatic)
            if not known and end == NEVER:  # a get may have had no answer, of any queue
                found.setdefault((run, ""), []).append((start, end))
        for run, start, _ in self.crashes:
            backs = [back for of, begun, back in self.restarts if of == run and begun >= start]
            found.setdefault((run, ""), []).append((start, min(backs, default=NEVER)))
        return found

    def gone(self) -> dict[Key, list[tuple[int, int]]]:
        """Return, by queue, when messages may have gone that nobody saw given.

        What is on its way to a consumer that does not acknowledge is settled.
        """
        found = dict[Key, list[tuple[int, int]]]()
        for run, channel, queue, consumer, since in self.automatic:
            ends = [(start, end) for of, start, end in self.closes if of == (run, channel)]
            ends += [(start, end) for of, start, end in self.crashes if of == run]
            ends = [(start, end) for start, end in ends if end >= since]
            left = min((end for _, end in ends), default=NEVER)
            left = min(left, self.cancelled.get((run, consumer), NEVER))
            found.setdefault((run, queue), []).extend(
                (start, end) for start, end in ends if start <= left
            )
        return found


@dataclass(frozen=True)
class Named:
    """Names of a table two by two, the run's and another, as numbers that index `keys`."""

    number: Ints
    keys: tuple[Key, ...]


def named(table: pa.Table, column: str) -> Named:
    """Return the pairs of run and name that the rows of a table have."""
    run, runs = ranks(table.column("run"))
    name, names = ranks(table.column(column))
    pairs, number = dense(joint(run, name))
    width = int(name.max(initial=0)) + 2
    run_names, other_names = runs.to_pylist(), [*names.to_pylist(), ""]
    keys = tuple((run_names[p // width], other_names[p % width - 1]) for p in pairs.tolist())
    return Named(number, keys)


def looked_up(of: Named, found: Iterable[int]) -> Ints:
    """Return for each row what was found for its key."""
    return np.fromiter(found, dtype=np.int64, count=len(of.keys))[of.number]
