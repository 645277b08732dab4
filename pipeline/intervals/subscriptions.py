"""Subscriptions: which consumer a name means, and how each of them left.

A client may reuse a consumer's name after a cancel, on another channel, or for another queue;
RabbitMQ only requires that it is unique on its channel at a time. Each subscription is a subscriber
with its own window and stream. The first of a name keeps it; the name of a later one gets its start
time as a suffix. Owns what control records say about subscriptions. A history has as many of them
as clients have connected, so each question is a search among sorted times.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Final, TypeAlias, TypeVar

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


class ByStart:
    """Spans of time, for questions about a few of many."""

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._spans = sorted(spans)
        self._starts = [start for start, _ in self._spans]
        ends = [end for _, end in self._spans]
        self._last_until = list(accumulate(ends, max))
        self._first_from = [*accumulate(reversed(ends), min, initial=NEVER)][::-1]

    def least_end(self, since: int) -> int:
        """Return the first end of those that begin at `since` or later, `NEVER` without any."""
        return self._first_from[bisect_left(self._starts, since)]

    def overlapping(self, since: int, until: int) -> Times:
        """Return those that end at `since` or later, and begin at `until` or before."""
        first = bisect_left(self._last_until, since)
        beyond = bisect_right(self._starts, until)
        return [span for span in self._spans[first:beyond] if span[1] >= since]


NO_SPANS: Final = ByStart()


@dataclass
class Leavings:
    """All records of subscriptions and of their ends; `closes` are those of channels."""

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
            found._take(record)
        return found

    def _take(self, record: Record) -> None:
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


class Subscriptions:
    """The subscriptions of a history, each under a unique name, and how messages left with them.

    `by_deletion` is whether the deletion of its queue ends a subscription.
    """

    def __init__(self, leavings: Leavings, *, by_deletion: bool = True) -> None:
        self._gets = leavings.gets
        self._open_closes = {
            channel: [span for span in closes if span[1] == NEVER]
            for channel, closes in leavings.closes.items()
        }
        self._closes = _by_start(leavings.closes)
        self._deletions = _by_start(leavings.deletions)
        self._crashes = _by_start(leavings.crashes)
        restarts = _by_start(leavings.restarts)
        self._backs = {
            run: [
                (start, end, restarts.get(run, NO_SPANS).least_end(start)) for start, end in crashes
            ]
            for run, crashes in leavings.crashes.items()
        }
        self._certain_backs = _by_start(
            {
                run: [(start, back) for start, end, back in backs if end < NEVER]
                for run, backs in self._backs.items()
            }
        )
        self.of_name = {
            key: list(self._of_name(key[1], records, leavings.cancels.get(key, []), by_deletion))
            for key, records in leavings.consumes.items()
        }

    def __iter__(self) -> Iterator[Subscription]:
        """Yield all, name by name, those of a name by time."""
        return chain.from_iterable(self.of_name.values())

    def _of_name(
        self, name: str, records: Iterable[Record], cancels: Iterable[Record], by_deletion: bool
    ) -> Iterator[Subscription]:
        records = sorted(records, key=_order)
        cancelled, replaced = _cancelled(records, cancels), _replaced(records)
        begun_at = Counter[int]()
        for number, record in enumerate(records):
            start = record.start
            begun_at[start] += 1
            again = f", {begun_at[start]}" if begun_at[start] > 1 else ""
            suffix = f"{NUMBERED}{start:,}{again})" if number else ""
            left = min(cancelled[number], replaced[number], self._first_end(record, start))
            if by_deletion:
                left = min(left, _of(self._deletions, record.queue, record).least_end(start))
            yield Subscription(record, name + suffix, happened_by(record), cancelled[number], left)

    def _first_end(self, record: Record, since: int) -> int:
        """Return the first end of a close of its channel, or of a crash, not begun before."""
        crashes = self._crashes.get(record.run, NO_SPANS)
        return min(
            _of(self._closes, record.channel, record).least_end(since), crashes.least_end(since)
        )

    def _closes_after(self, record: Record, until: int = NEVER) -> Times:
        """Return when the channel of a consumer or a get closed after it, or the broker crashed."""
        closes = _of(self._closes, record.channel, record)
        crashes = self._crashes.get(record.run, NO_SPANS)
        return [
            *closes.overlapping(record.start, until),
            *crashes.overlapping(record.start, until),
        ]

    def unseen(self) -> dict[Key, Times]:
        """Return, by queue, when messages may have returned after an unrecorded delivery.

        A message in transit to a consumer was delivered unseen when its channel closed or the
        broker crashed. A consumer whose cancel was answered has seen all its deliveries. A message
        taken by a get without an answer returns in the same way. The empty name stands for all
        queues of a run. A close without an answer is over when the broker has crashed after it.
        """
        found = dict[Key, Times]()
        until = dict[tuple[Key, str], int]()
        for each in self:
            if each.record.mode == "acknowledge":
                of = each.channel, each.record.queue or ""
                until[of] = max(each.cancelled, until.get(of, 0))
        for ((run, channel), queue), cancelled in until.items():
            closes = self._closes.get((run, channel), NO_SPANS).overlapping(0, cancelled)
            found.setdefault((run, queue), []).extend(self._over(run, span) for span in closes)
        for get in self._gets:
            if get.mode == "acknowledge":
                returns = self._closes_after(get) or [(get.start, NEVER)]
                found.setdefault((get.run, get.queue or ""), []).extend(returns)
        known = {each.channel for each in self if each.record.mode != "browse"}
        for key, open_ in self._open_closes.items():
            # A get on any queue may have had no answer.
            if key not in known:
                spans = (self._over(key[0], span) for span in open_)
                found.setdefault((key[0], ""), []).extend(spans)
        for run, backs in self._backs.items():
            found.setdefault((run, ""), []).extend((start, back) for start, _, back in backs)
        return {key: spans for key, spans in found.items() if spans}

    def _over(self, run: str, close: tuple[int, int]) -> tuple[int, int]:
        """Return a close, ended by the next certain crash if it had no answer."""
        start, end = close
        crashes = self._certain_backs.get(run, NO_SPANS)
        return start, crashes.least_end(start + 1) if end == NEVER else end

    def gone(self) -> dict[Key, Times]:
        """Return, by queue, when messages may have left in transit to a consumer, any number.

        A message in transit to a consumer that does not acknowledge is settled. It may have been
        sent from the start of the subscription on, until the queue was deleted.
        """
        found = dict[Key, Times]()
        for each in self:
            record = each.record
            if record.mode == "automatic":
                # A crash that may have been before the subscription need not have ended it.
                since = happened_by(record) + 1
                left = min(each.cancelled, self._first_end(record, since))
                until = _of(self._deletions, record.queue, record).least_end(since)
                found.setdefault((record.run, record.queue or ""), []).extend(
                    (record.start, min(end, until)) for _, end in self._closes_after(record, left)
                )
        return {key: spans for key, spans in found.items() if spans}

    def taken(self) -> dict[Key, Times]:
        """Return, by queue, when each get without an answer may have taken one message for good.

        It settles the message itself, or nothing that is recorded brings the message back.
        """
        found = dict[Key, Times]()
        for get in self._gets:
            ends = self._closes_after(get)
            if get.mode == "automatic" or not ends:
                until = min((end for _, end in ends), default=NEVER)
                spans = found.setdefault((get.run, get.queue or ""), [])
                spans.append((get.start, max(get.start, until)))
        return found


_Owner = TypeVar("_Owner", Key, str)


def _by_start(times: Mapping[_Owner, Times]) -> dict[_Owner, ByStart]:
    return {owner: ByStart(spans) for owner, spans in times.items()}


def _of(spans: Mapping[Key, ByStart], name: str | None, record: Record) -> ByStart:
    """Return the spans of a record's channel or queue; none if the record does not name it."""
    return NO_SPANS if name is None else spans.get((record.run, name), NO_SPANS)


def _order(record: Record) -> tuple[int, int, str, str]:
    return record.start, happened_by(record), record.queue or "", record.channel or ""


def _replaced(records: Sequence[Record]) -> list[int]:
    """Return by when another subscription of a name had certainly taken its place on its channel.

    A channel never has two consumers of a name at a time.
    """
    found, least = [NEVER] * len(records), dict[str, int]()
    for number in reversed(range(len(records))):
        record = records[number]
        if record.channel is not None:
            found[number] = least.get(record.channel, NEVER)
            least[record.channel] = min(found[number], happened_by(record))
    return found


def _cancelled(records: Sequence[Record], cancels: Iterable[Record]) -> list[int]:
    """Return when each subscription of a name had certainly been cancelled.

    Of several subscriptions, a cancel ends the last one that had begun on its channel. A cancel
    without a channel may end any, if they are on several channels.
    """
    if len(records) == 1:
        return [min(map(happened_by, cancels), default=NEVER)]
    found = [NEVER] * len(records)
    of_channel = dict[str | None, list[int]]()
    for number, record in enumerate(records):
        of_channel.setdefault(record.channel, []).append(number)
    for cancel in cancels:
        is_the_only = cancel.channel is None and len(of_channel) == 1
        on_it = range(len(records)) if is_the_only else of_channel.get(cancel.channel, [])
        before = bisect_right(on_it, cancel.start, key=lambda number: records[number].start)
        for number in reversed(on_it[:before]):
            if happened_by(records[number]) <= cancel.start:
                found[number] = min(found[number], happened_by(cancel))
                break
    return found
