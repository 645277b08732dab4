"""The waiting intervals of each message, derived record by record with plain loops.

Owns the meaning of a waiting interval as in the pipeline's docstrings, and shares no code with it:
tests compare the two. Written to be obviously right; each function reads all records again. Missing
times are `NEVER`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from brokerproof.models.contract.history import Span, WaitingInterval
from brokerproof.spec.histories import NEVER, Kind, Record

NOTHING = Span(0, 0)
ALWAYS_GONE = -1


def latest(record: Record) -> int:
    """Return by when it had certainly happened."""
    answered = record.outcome == "ok" and record.end is not None
    return record.end if answered and record.end is not None else NEVER


def seen(record: Record) -> int:
    """Return when a delivery was seen."""
    assert record.end is not None
    return record.end


@dataclass
class Facts:
    """What a history says that is about no single message."""

    records: Sequence[Record]

    def of_kind(self, kind: Kind, run: str, queue: str | None = None) -> list[Span]:
        """Return when what may have happened did so, in a queue or to the whole broker."""
        return [
            Span(each.start, latest(each))
            for each in self.records
            if (each.op, each.run) == (kind, run) and each.outcome != "failed"
            if queue is None or each.queue == queue
        ]

    def _declared(self, run: str, queue: str) -> list[Record]:
        return [
            each
            for each in self.records
            if (each.op, each.run, each.queue) == ("declare", run, queue)
            and each.outcome != "failed"
        ]

    def is_declared(self, run: str, queue: str) -> bool:
        """Whether anything is known of a queue; if not, it may be any."""
        return bool(self._declared(run, queue))

    def _is_one(self, run: str, queue: str) -> bool:
        """Whether a queue was always declared as the same."""
        kinds = {
            (each.levels, each.durable, each.returns, each.may_drop, each.unordered, each.lease)
            for each in self._declared(run, queue)
        }
        return len(kinds) < 2

    def levels(self, run: str, queue: str) -> int:
        """Return how many levels a queue has, 0 where it is first in, first out."""
        return max((each.levels or 0 for each in self._declared(run, queue)), default=0)

    def durable(self, run: str, queue: str) -> bool:
        """Whether a queue certainly survives a crash."""
        return (
            self.is_declared(run, queue)
            and self._is_one(run, queue)
            and self.may_be_durable(run, queue)
        )

    def may_be_durable(self, run: str, queue: str) -> bool:
        """Whether a queue may survive a crash."""
        declared = self._declared(run, queue)
        return not declared or any(each.durable for each in declared)

    def returns(self, run: str, queue: str) -> bool:
        """Whether what returns takes its place back."""
        declared = self._declared(run, queue)
        if self.unordered(run, queue):
            return False
        return self._is_one(run, queue) and {each.returns for each in declared} == {"original"}

    def unordered(self, run: str, queue: str) -> bool:
        """Whether a queue promises no order."""
        return any(each.unordered for each in self._declared(run, queue))

    def may_drop(self, run: str, queue: str) -> bool:
        """Whether a queue may drop messages by itself, or became another."""
        return not self._is_one(run, queue) or any(
            each.may_drop for each in self._declared(run, queue)
        )

    def selective(self, run: str, queue: str) -> bool:
        """Whether a selective consumer takes from a queue, or its order is unknown."""
        is_known = self.is_declared(run, queue) and self._is_one(run, queue)
        if self.unordered(run, queue):
            return True
        return not is_known or any(
            each.selective and each.mode != "browse" and each.outcome != "failed"
            for each in self.records
            if (each.op, each.run, each.queue) == ("consume", run, queue)
        )

    def leased_until(self, delivery: Record) -> int:
        """Return the earliest moment at which the lease of a delivery can have ended."""
        leases = [
            each.lease
            for each in self._declared(delivery.run, delivery.queue or "")
            if each.lease is not None
        ]
        until = min((delivery.start + lease for lease in leases), default=NEVER)
        renewals = [
            each
            for each in self.records
            if each.op == "extend" and each.outcome == "ok" and each.end is not None
            if (each.run, each.queue) == (delivery.run, delivery.queue)
            if (each.message, each.consumer) == (delivery.message, delivery.consumer)
            if each.position == delivery.position
        ]
        for each in sorted(renewals, key=lambda renewal: renewal.start):
            if latest(each) < until < NEVER:
                until = max(until, each.start + min(leases))
        return until

    def closing(self, delivery: Record) -> Span:
        """Return when the channel of a delivery was closed."""
        channels = {delivery.channel} | {
            each.channel
            for each in self.records
            if (each.op, each.run, each.consumer) == ("consume", delivery.run, delivery.consumer)
            and each.outcome != "failed"
        }
        closes = [
            each
            for each in self.records
            if (each.op, each.run) == ("close", delivery.run) and each.outcome != "failed"
            if each.channel in channels and latest(each) >= delivery.start
        ]
        after = [latest(each) for each in closes if latest(each) >= seen(delivery)]
        return Span(min((each.start for each in closes), default=NEVER), min(after, default=NEVER))

    def unseen_returns(self, run: str, queue: str) -> list[Span]:
        """Return when an unrecorded delivery may have returned to a queue.

        That is when a consumer's channel closed which had not left before, when a channel was lost
        on which a get may have gone without an answer, and when the broker crashed and came back.
        """
        found = []
        of_run = [each for each in self.records if each.run == run and each.outcome != "failed"]
        for close in of_run:
            if close.op != "close":
                continue
            on_it = [
                each
                for each in of_run
                if (each.op, each.channel) == ("consume", close.channel) and each.mode != "browse"
            ]
            known = bool(on_it)
            on_it = [each for each in on_it if each.mode == "acknowledge"]
            for consumer in on_it:
                cancels = [
                    latest(each)
                    for each in of_run
                    if (each.op, each.consumer) == ("cancel", consumer.consumer)
                ]
                if consumer.queue == queue and not any(end < close.start for end in cancels):
                    found.append(Span(close.start, self._over(close)))
            if not known and latest(close) == NEVER:
                found.append(Span(close.start, self._over(close)))
        for get in of_run:
            if (get.op, get.queue, get.mode) == ("get", queue, "acknowledge"):
                returns = self._ends_after(get)
                found += returns or [Span(get.start, NEVER)]
        found += [
            Span(crash.start, self._restarted(crash, run)) for crash in self.of_kind("crash", run)
        ]
        return found

    def _over(self, close: Record) -> int:
        """Return when a close was over: without an answer, after the next certain crash."""
        if latest(close) < NEVER:
            return latest(close)
        crashes = [each for each in self.of_kind("crash", close.run) if each.end < NEVER]
        later = [each for each in crashes if each.start > close.start]
        return min((self._restarted(each, close.run) for each in later), default=NEVER)

    def _restarted(self, crash: Span, run: str) -> int:
        backs = [span.end for span in self.of_kind("restart", run) if span.start >= crash.start]
        return min(backs, default=NEVER)

    def unseen_ends(self, run: str, queue: str) -> list[Span]:
        """Return when what waited in a queue may have gone to a consumer that saw it not.

        What is on its way to one that does not acknowledge is gone when its channel closes, unless
        it had left before, and when the broker crashes. It gets nothing of a queue declared anew.
        """
        of_run = [each for each in self.records if each.run == run and each.outcome != "failed"]
        found = []
        for consumer in of_run:
            if (consumer.op, consumer.queue, consumer.mode) != ("consume", queue, "automatic"):
                continue
            cancels = [
                latest(each)
                for each in of_run
                if (each.op, each.consumer) == ("cancel", consumer.consumer)
            ]
            ends = [
                each
                for each in of_run
                if each.op == "crash" or (each.op, each.channel) == ("close", consumer.channel)
                if latest(each) >= consumer.start
            ]
            came = latest(consumer)
            left = min([latest(e) for e in ends if e.start > came] + cancels, default=NEVER)
            until = min(
                (
                    each.end
                    for each in self.of_kind("delete", run, queue)
                    if each.start > latest(consumer)
                ),
                default=NEVER,
            )
            found += [
                Span(consumer.start, min(latest(each), until))
                for each in ends
                if each.start <= left
            ]
        return found

    def unanswered_gets(self, run: str, queue: str) -> list[Span]:
        """Return when each get without an answer may have taken a message that does not return."""
        found = []
        for get in self.records:
            if (get.op, get.run, get.queue) == ("get", run, queue) and get.outcome != "failed":
                ends_of_get = [int(span.end) for span in self._ends_after(get)]
                if get.mode == "automatic" or not ends_of_get:
                    end = max(get.start, min(ends_of_get, default=NEVER))
                    found.append(Span(get.start, end))
        return found

    def _ends_after(self, get: Record) -> list[Span]:
        """Return what may have ended a get that had no answer: its channel's end, or a crash."""
        return [
            Span(each.start, latest(each))
            for each in self.records
            if each.run == get.run and each.outcome != "failed" and latest(each) >= get.start
            if each.op == "crash"
            or (each.op == "close" and get.channel is not None and each.channel == get.channel)
        ]

    def first_crash_since(self, run: str, since: int) -> Span | None:
        """Return the first crash that can have been at a time or later."""
        crashes = [span for span in self.of_kind("crash", run) if span.end >= since]
        return min(crashes, key=lambda span: int(span.start), default=None)


@dataclass
class Delivery:
    """A delivery that took a message, what settled it, and when the message came back from it."""

    record: Record
    settled_by: list[Record]
    start: int
    back: Span = field(default_factory=lambda: Span(NEVER, NEVER))
    leased_until: int = NEVER

    @property
    def end(self) -> int:
        """When it was seen."""
        return seen(self.record)

    @property
    def span(self) -> Span:
        """When it was made."""
        return Span(self.start, self.end)

    @property
    def keeps(self) -> bool:
        """Whether its subscriber holds the message until it is settled."""
        return self.record.mode != "automatic"

    @property
    def freed(self) -> int:
        """When it cannot be said any more that it filled its subscriber's window."""
        if not self.keeps:
            return self.end
        return min([each.start for each in self.settled_by] + [self.leased_until])


@dataclass
class Message:
    """All that was recorded of a message."""

    run: str
    queue: str
    name: str
    publish: Record | None
    deliveries: list[Delivery]
    views: list[Record]

    @property
    def published(self) -> Span:
        """When it was published."""
        assert self.publish is not None
        return Span(self.publish.start, latest(self.publish))

    def survives(self, facts: Facts) -> bool:
        """Whether a crash must leave it in its queue: not if its publish was never answered."""
        assert self.publish is not None
        answered = latest(self.publish) < NEVER
        return answered and self.publish.persistent and facts.durable(self.run, self.queue)


@dataclass
class Wait:
    """A waiting interval of a message: the wait, and the recorded delivery that ended it.

    `returned_by` is the delivery from which the message had come back, None on its first waiting
    interval; `sure` says that the delivery certainly ended the wait.
    """

    message: Message
    returned_by: Delivery | None
    begun: Span
    left: int
    given: Delivery | None
    sure: bool

    @property
    def is_first(self) -> bool:
        """Whether it begins with the publish."""
        return self.returned_by is None

    @property
    def interval(self) -> WaitingInterval:
        """Return what the rules compare."""
        given = Span(NEVER, NEVER) if self.given is None else self.given.span
        place = NEVER if self.given is None else self.given.record.position
        return WaitingInterval(
            self.message.published,
            self.begun,
            Span(self.left, NEVER),
            given,
            Span(place, place),
            NOTHING,
        )


def messages_of(records: Sequence[Record], facts: Facts) -> Iterator[Message]:
    """Yield all messages, each with its deliveries in the order in which they were seen."""
    happened = [each for each in records if each.outcome != "failed"]
    keys = {
        (each.run, each.queue, each.message)
        for each in happened
        if each.op in {"publish", "deliver"}
    }
    for run, queue, name in sorted(keys, key=str):
        assert queue is not None
        assert name is not None
        own = [e for e in happened if (e.run, e.queue, e.message) == (run, queue, name)]
        publish = next((each for each in own if each.op == "publish"), None)
        given = [each for each in own if each.op == "deliver" and each.mode != "browse"]
        given.sort(key=lambda each: (seen(each), str(each.consumer), each.position))
        views = [each for each in own if each.op == "deliver" and each.mode == "browse"]
        message = Message(run, queue, name, publish, _deliveries(given, own), views)
        _find_returns(message, facts)
        _find_starts(message)
        yield message


def _deliveries(given: Sequence[Record], own: Sequence[Record]) -> list[Delivery]:
    """Return deliveries; of two that a settlement may mean it settles the one seen first."""
    made: list[Delivery] = []
    told_apart = set[tuple[str | None, int | None]]()
    for each in given:
        key = (each.consumer, each.position)
        settled_by = [
            other
            for other in own
            if other.op in {"acknowledge", "reject", "release"}
            and (other.consumer, other.position) == key
            and key not in told_apart
        ]
        told_apart.add(key)
        made.append(Delivery(each, settled_by, each.start))
    return made


def _find_returns(message: Message, facts: Facts) -> None:
    for each in message.deliveries:
        each.leased_until = facts.leased_until(each.record)
        each.back = Span(
            min(_may_come_back(each, facts), default=NEVER),
            min(_certainly_came_back(each, message, facts), default=NEVER),
        )


def _may_come_back(delivery: Delivery, facts: Facts) -> Iterator[int]:
    """Yield from when on each thing that may have brought a delivery back can have done so."""
    done = [each for each in delivery.settled_by if each.op != "release"]
    crash = facts.first_crash_since(delivery.record.run, delivery.record.start)
    if crash is not None and not any(latest(each) < crash.start for each in done):
        yield crash.start
    if not delivery.keeps:
        return
    closing = min(facts.closing(delivery.record).start, delivery.leased_until)
    if not any(latest(each) < closing for each in done):
        yield closing
    for each in delivery.settled_by:
        if each.op == "release" and not any(latest(other) < each.start for other in done):
            yield each.start


def _certainly_came_back(delivery: Delivery, message: Message, facts: Facts) -> Iterator[int]:
    """Yield by when each thing that brought a delivery back had certainly done so."""
    if not delivery.keeps:
        return
    done = [each for each in delivery.settled_by if each.op != "release"]
    for each in delivery.settled_by:
        if each.op == "release" and all(latest(each) < other.start for other in done):
            yield latest(each)
    if delivery.settled_by:
        return
    yield facts.closing(delivery.record).end
    run = message.run
    crash = facts.first_crash_since(run, delivery.record.start)
    held_then = crash is not None and crash.start > delivery.end
    if crash is not None and held_then and message.publish and message.survives(facts):
        for restart in facts.of_kind("restart", run):
            if restart.start > crash.start:
                yield restart.end


def _find_starts(message: Message) -> None:
    """Let no delivery begin before the publish, nor, if it is a later one, before a return."""
    for number, each in enumerate(message.deliveries):
        if message.publish is not None:
            each.start = max(each.start, message.publish.start)
        before = message.deliveries[:number]
        if before and each.start > before[0].end:
            returned = min(other.back.start for other in before)
            if returned < NEVER:
                each.start = max(each.start, returned)
    for each in message.deliveries:
        together = [other.start for other in message.deliveries if other.end == each.end]
        each.start = min(*together, each.end)
        if len(together) > 1:
            # Which was made last is not known, so none has certainly come back.
            each.back = Span(each.back.start, NEVER)


def waits_of(message: Message) -> Iterator[Wait]:
    """Yield the waiting intervals of a message, whatever may have ended them unseen."""
    if message.publish is None:
        return
    before: Delivery | None = None
    begun = message.published
    for number, each in enumerate(message.deliveries):
        later = message.deliveries[number + 1 :]
        left = min(other.start for other in [each, *later])
        sure = all(other.start > each.end for other in later)
        yield Wait(message, before, begun, left, each, sure)
        # A return that may lie before the delivery was seen leaves open what was before it.
        by = each.back.end if each.back.start >= each.end else NEVER
        before, begun = each, Span(each.back.start, by)
    if begun.start < NEVER:
        yield Wait(message, before, begun, NEVER, None, sure=True)


def unseen_until(wait: Wait, facts: Facts) -> int:
    """Return until when an unrecorded delivery may have held the message, or -1."""
    until = NEVER if wait.given is None else wait.given.end
    spans = facts.unseen_returns(wait.message.run, wait.message.queue)
    latest_end = max((int(span.end) for span in spans if span.start <= until), default=-1)
    return latest_end if latest_end >= wait.begun.start else -1


def certain_end(wait: Wait, facts: Facts, *, by_gets: bool = True) -> int:
    """Return until when a wait certainly lasted, after all that may have ended it unseen.

    `by_gets` says whether that may be a get without an answer. A purge drops what waits. A
    deletion, and a crash of what is not on disk, drop it wherever it is, so what was held at that
    time has not returned after it.
    """
    run, queue = wait.message.run, wait.message.queue
    if facts.may_drop(run, queue):
        return ALWAYS_GONE
    ends_unseen = facts.unseen_ends(run, queue)
    if by_gets:
        ends_unseen += facts.unanswered_gets(run, queue)
    if wait.given is not None:
        ends_unseen = []
    there_since = wait.message.published if wait.returned_by is None else wait.returned_by.span
    ends = [
        span.start for span in facts.of_kind("purge", run, queue) if span.end >= wait.begun.start
    ]
    drops = facts.of_kind("delete", run, queue)
    if not wait.message.survives(facts):
        drops += facts.of_kind("crash", run)
    ends += [span.start for span in drops if span.end >= there_since.start]
    ends += [span.start for span in ends_unseen if span.end >= wait.begun.start]
    return int(min([wait.left, *ends]))


def subscribers_in_order(waits: Iterable[Wait]) -> dict[tuple[str, str], list[Wait]]:
    """Return what each subscriber was given."""
    found: dict[tuple[str, str], list[Wait]] = {}
    for wait in waits:
        if wait.given is not None:
            subscriber = (wait.message.run, str(wait.given.record.consumer))
            found.setdefault(subscriber, []).append(wait)
    return found
