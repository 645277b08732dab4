"""Subscriptions: which consumer a name means, and how each of them left.

A client may reuse a consumer's name after a cancel, on another channel, or for another queue;
RabbitMQ only requires that it is unique on its channel at a time. Each subscription is a subscriber
with its own window and stream. The first of a name keeps it; the name of a later one gets its start
time as a suffix. Owns what control records say about subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from brokerproof.spec.histories import NEVER, Record

Key: TypeAlias = tuple[str, str]
Times: TypeAlias = list[tuple[int, int]]

NUMBERED: Final = " (subscribed at "
"""The text between a consumer's name and the start of a later subscription by that name."""


def happened_by(record: Record) -> int:
    """Return the time by which a record certainly happened; `NEVER` if it need not have."""
    return record.end if record.outcome == "ok" and record.end is not None else NEVER


@dataclass(frozen=True)
class Subscription:
    """A subscription of a consumer or a browser.

    Attributes:
        name: its unique name.
        end: by when it had certainly begun.
        cancelled: by when it had certainly been cancelled, `NEVER` if it need not have been.
        left: by when it was certainly given nothing more.
    """

    record: Record
    name: str
    end: int
    cancelled: int
    left: int

    @property
    def start(self) -> int:
        """Its earliest start."""
        return self.record.start

    @property
    def subscriber(self) -> Key:
        """Its run and its name."""
        return self.record.run, self.name

    @property
    def channel(self) -> Key:
        """The channel that it is on."""
        return self.record.run, self.record.channel or ""


@dataclass
class Leavings:
    """All records of subscriptions and of their ends."""

    consumes: dict[Key, list[Record]] = field(default_factory=dict)
    cancels: dict[Key, list[Record]] = field(default_factory=dict)
    closes: dict[Key, Times] = field(default_factory=dict)
    deletions: dict[Key, Times] = field(default_factory=dict)
    crashes: dict[str, Times] = field(default_factory=dict)
    restarts: dict[str, Times] = field(default_factory=dict)
    gets: list[Record] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Leavings:
        """Return the content of some records."""
        found = cls()
        for record in records:
            found.take(record)
        return found

    def take(self, record: Record) -> None:
        """Take a record of any kind."""
        if record.outcome == "failed":
            return
        span = (record.start, happened_by(record))
        match record.op:
            case "consume":
                self.consumes.setdefault((record.run, record.consumer or ""), []).append(record)
            case "cancel":
                self.cancels.setdefault((record.run, record.consumer or ""), []).append(record)
            case "close":
                self.closes.setdefault((record.run, record.channel or ""), []).append(span)
            case "delete":
                self.deletions.setdefault((record.run, record.queue or ""), []).append(span)
            case "crash":
                self.crashes.setdefault(record.run, []).append(span)
            case "restart":
                self.restarts.setdefault(record.run, []).append(span)
            case "get":
                self.gets.append(record)
            case _:
                pass

    def subscriptions(self, *, by_deletion: bool = True) -> list[Subscription]:
        """Return all subscriptions, each under a unique name."""
        return [
            each for key in self.consumes for each in self.of_name(key, by_deletion=by_deletion)
        ]

    def of_name(self, key: Key, *, by_deletion: bool = True) -> list[Subscription]:
        """Return the subscriptions of a run and a consumer's name, by time.

        `by_deletion` is whether the deletion of its queue ends one.
        """
        records = sorted(self.consumes[key], key=_order)
        cancels = self.cancels.get(key, [])
        found = []
        for number, record in enumerate(records):
            cancelled = _cancelled(record, records, cancels)
            name = key[1] if number == 0 else f"{key[1]}{NUMBERED}{_since(records, number)})"
            ends = [end for _, end in self._ends_of(record, by_deletion=by_deletion)]
            # A channel never has two consumers of a name at a time.
            ends += [
                happened_by(later)
                for later in records[number + 1 :]
                if record.channel is not None and later.channel == record.channel
            ]
            left = min([cancelled, *ends])
            found.append(Subscription(record, name, happened_by(record), cancelled, left))
        return found

    def _ends_of(self, record: Record, *, by_deletion: bool) -> Times:
        """Return the ends of a subscription other than its cancel."""
        ends = self.closes_after(record)
        if by_deletion:
            ends += self.deletions.get((record.run, record.queue or ""), [])
        return [each for each in ends if each[0] >= record.start]

    def closes_after(self, record: Record) -> Times:
        """Return when the channel of a consumer or a get closed after it, or the broker crashed."""
        ends = []
        if record.channel is not None:
            ends += self.closes.get((record.run, record.channel), [])
        ends += self.crashes.get(record.run, [])
        return [(start, end) for start, end in ends if end >= record.start]

    def unseen(self) -> dict[Key, Times]:
        """Return, by queue, when messages may have returned after an unrecorded delivery.

        A message in transit to a consumer was delivered unseen when its channel closed or the
        broker crashed. A consumer whose cancel was answered has seen all its deliveries. A message
        taken by a get without an answer returns in the same way. The empty name stands for all
        queues of a run. A close without an answer is over when the broker has crashed after it.
        """
        found = dict[Key, Times]()
        crashes = {run: list(self._crashes_of(run)) for run in self.crashes}

        def over(run: str, close: tuple[int, int]) -> tuple[int, int]:
            start, end = close
            if end < NEVER:
                return close
            # Without an answer the crash may not have happened.
            of_run = crashes.get(run, ())
            ends = (back for crashed, by, back in of_run if crashed > start and by < NEVER)
            return start, min(ends, default=NEVER)

        known = set[Key]()
        for each in self.subscriptions():
            record = each.record
            if record.mode == "browse":
                continue
            known.add(each.channel)
            if record.mode == "acknowledge":
                found.setdefault((record.run, record.queue or ""), []).extend(
                    over(record.run, span)
                    for span in self.closes.get(each.channel, [])
                    if each.cancelled >= span[0]
                )
        for get in self.gets:
            if get.mode == "acknowledge":
                returns = self.closes_after(get) or [(get.start, NEVER)]
                found.setdefault((get.run, get.queue or ""), []).extend(returns)
        for channel, closes in self.closes.items():
            # A get on any queue may have had no answer.
            open_ = [span for span in closes if span[1] == NEVER and channel not in known]
            spans = (over(channel[0], span) for span in open_)
            found.setdefault((channel[0], ""), []).extend(spans)
        for run, times in crashes.items():
            found.setdefault((run, ""), []).extend((start, back) for start, _, back in times)
        return {key: spans for key, spans in found.items() if spans}

    def _crashes_of(self, run: str) -> Iterator[tuple[int, int, int]]:
        """Yield start and end of the crashes of a run, each with the end of its restart."""
        for start, end in self.crashes[run]:
            backs = [back for begun, back in self.restarts.get(run, []) if begun >= start]
            yield start, end, min(backs, default=NEVER)

    def gone(self) -> dict[Key, Times]:
        """Return, by queue, when messages may have left in transit to a consumer, any number.

        A message in transit to a consumer that does not acknowledge is settled. It may have been
        sent from the start of the subscription on, until the queue was deleted.
        """
        found = dict[Key, Times]()
        for each in self.subscriptions():
            record = each.record
            if record.mode == "automatic":
                ends = self.closes_after(record)
                # A crash that may have been before the subscription need not have ended it.
                came = happened_by(record)
                left = min([each.cancelled, *(end for start, end in ends if start > came)])
                queue = (record.run, record.queue or "")
                deleted = self.deletions.get(queue, [])
                until = min((end for start, end in deleted if start > came), default=NEVER)
                found.setdefault(queue, []).extend(
                    (record.start, min(end, until)) for start, end in ends if start <= left
                )
        return {key: spans for key, spans in found.items() if spans}

    def taken(self) -> dict[Key, Times]:
        """Return, by queue, when each get without an answer may have taken one message for good.

        It settles the message itself, or nothing that is recorded brings the message back.
        """
        found = dict[Key, Times]()
        for get in self.gets:
            ends = self.closes_after(get)
            if get.mode == "automatic" or not ends:
                until = min((end for _, end in ends), default=NEVER)
                spans = found.setdefault((get.run, get.queue or ""), [])
                spans.append((get.start, max(get.start, until)))
        return found


def _order(record: Record) -> tuple[int, int, str, str]:
    return record.start, happened_by(record), record.queue or "", record.channel or ""


def _since(records: Sequence[Record], number: int) -> str:
    """Return a suffix that distinguishes a subscription from others of its name."""
    start = records[number].start
    before = sum(each.start == start for each in records[:number])
    return f"{start:,}" if not before else f"{start:,}, {before + 1}"


def _cancelled(record: Record, records: Sequence[Record], cancels: Sequence[Record]) -> int:
    """Return when a subscription had certainly been cancelled; `records` are all of its name.

    Of several subscriptions, a cancel ends the last one that had begun on its channel. A cancel
    without a channel may end any, if they are on several channels.
    """
    if len(records) == 1:
        return min(map(happened_by, cancels), default=NEVER)
    on_one_channel = len({each.channel for each in records}) == 1
    times = []
    for cancel in cancels:
        on_it = [
            each
            for each in records
            if happened_by(each) <= cancel.start
            and (each.channel == cancel.channel or (on_one_channel and cancel.channel is None))
        ]
        if on_it and on_it[-1] is record:
            times.append(happened_by(cancel))
    return min(times, default=NEVER)
