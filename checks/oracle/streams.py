"""Events whose order between consumers is unknown: every lawful interleaving.

A broker with each consumer on a connection of its own tells the events of each consumer in order,
and nothing about the order between consumers (driver protocol 1, rule 21). So events since the last
rest are kept as one stream a consumer, and judged at the next rest. The question is whether the
contract allows an order of all events and operations that keeps each stream's order and the order
of operations, and in which no event follows an operation that was requested after it was told.

The search prefers the queue's order. For consumers that acquire, a possible event never blocks
another, so the search seldom goes back. It is complete, since it can; `EFFORT_MAX` bounds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from brokerproof.checks.oracle.attribution import TOLD_TOO_LATE, least
from brokerproof.checks.oracle.contracts import CORE
from brokerproof.checks.oracle.possibilities import Cases, Failure, Rules, Step
from brokerproof.models.language.read.pointwise import Blame, Frame, TooManyCases

ENDINGS = ("consumer_closed", "queue_deleted")
"""Events that are about no message."""

TOLD_IN_ORDER = frozenset(CORE.contract.actions) | {"release_at_close", "set_credit"}
"""Operations about one message, whose history is told in order, or about no message.

Whether a new window is lower than what its consumer holds may depend on the order. Only an
invariant reads that.
"""

EFFORT_MAX = 2_000_000
"""After looking at this many local states of messages (some seconds), the run is not judged."""


@dataclass(frozen=True)
class ToldEvent:
    """An event of a consumer, told with the answer to operation `told_with`, not before `floor`."""

    consumer: int
    step: Step
    told_with: int
    floor: int = 0


Position: TypeAlias = tuple[int, tuple[int, ...], frozenset[int]]
"""The number of operations taken, of events taken in each stream, and the floating operations."""

Taken: TypeAlias = tuple[Step, Position]


@dataclass(frozen=True)
class Streams:
    """The history since the broker last rested: operations in order, events by consumer.

    An operation that may have happened is floating: from its place on, at any time, or never.
    """

    operations: tuple[Step | None, ...] = ()
    events: tuple[ToldEvent, ...] = ()
    floating: tuple[tuple[Step, int], ...] = ()
    floors: tuple[tuple[int, int], ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, in no order that is known."""
        operations = (step for step in self.operations if step is not None)
        events = (told.step for told in self.events)
        return (*operations, *events, *(step for step, _ in self.floating))

    @property
    def ends_alike(self) -> bool:
        """Whether all lawful orders end in the same case, unless there are browsers."""
        return all(step is None or step[0] in TOLD_IN_ORDER for step in self.operations)

    def with_operation(self, step: Step | None) -> Streams:
        """Return the streams after one more answered operation; None has no action of its own."""
        return replace(self, operations=(*self.operations, step))

    def with_event(self, consumer: int, step: Step) -> Streams:
        """Return the streams after one more event was told with the latest operation."""
        # Only deliveries are told by the end of their channel at the latest (rule 2).
        floor = 0 if step[0] in ENDINGS else dict(self.floors).get(consumer, 0)
        told = ToldEvent(consumer, step, len(self.operations), floor)
        return replace(self, events=(*self.events, told))

    def with_maybe(self, step: Step) -> Streams:
        """Return the streams after an operation whose outcome is unknown."""
        asked = (*self.operations, None)
        return replace(self, operations=asked, floating=(*self.floating, (step, len(asked))))

    def with_nothing_older_of(self, consumers: list[int]) -> Streams:
        """Return the streams in which these consumers' later events lie after this operation."""
        floors = dict(self.floors) | dict.fromkeys(consumers, len(self.operations))
        return replace(self, floors=tuple(sorted(floors.items())))


@dataclass(frozen=True)
class LawfulOrder:
    """A lawful order with the cases at its end, or the least blame that excludes every order."""

    cases: Cases
    order: tuple[tuple[Step, Cases], ...]
    failure: Failure | None = None
    stuck_in: Cases = frozenset()


@dataclass(frozen=True)
class _Stuck:
    """A step that was due and impossible, how far the order had come, and where it failed."""

    progress: int
    step: Step
    blame: Blame
    here: Cases


class _Search:
    def __init__(self, streams: Streams, rules: Rules, frame: Frame, orders_all: bool) -> None:
        self.streams, self.rules, self.frame = streams, rules, frame
        self.every = orders_all
        consumers = sorted({told.consumer for told in streams.events})
        self.by_consumer = [
            [told for told in streams.events if told.consumer == consumer] for consumer in consumers
        ]
        self.seen: set[tuple[Position, Cases]] = set()
        self.final: Cases = frozenset()
        self.order: tuple[tuple[Step, Cases], ...] = ()
        self.blames: list[_Stuck] = []
        self.effort = 0

    def run(self, cases: Cases) -> LawfulOrder:
        start: Position = (0, (0,) * len(self.by_consumer), frozenset())
        stack: list[tuple[Position, Cases, tuple[tuple[Step, Cases], ...]]] = [(start, cases, ())]
        while stack:
            position, here, order = stack.pop()
            if (position, here) in self.seen:
                continue
            self.seen.add((position, here))
            if self._is_end(position):
                self.final |= here
                self.order = self.order or order
                if not self.every:
                    break
            stack.extend(reversed(list(self._next(position, here, order))))
        if self.final:
            return LawfulOrder(self.final, self.order)
        ordered = sorted(self.blames, key=lambda stuck: stuck.progress)
        best = least(stuck.blame for stuck in ordered)
        if not best:
            return LawfulOrder(
                frozenset(), (), Failure(self.streams.events[-1].step, TOLD_TOO_LATE), cases
            )
        stuck = next(each for each in reversed(ordered) if each.blame == best)
        return LawfulOrder(frozenset(), (), Failure(stuck.step, best), stuck.here)

    def _is_end(self, position: Position) -> bool:
        operations, counts, _ = position
        done = all(c == len(s) for c, s in zip(counts, self.by_consumer, strict=True))
        return done and operations == len(self.streams.operations)

    def _next(
        self, position: Position, here: Cases, order: tuple[tuple[Step, Cases], ...]
    ) -> Iterator[tuple[Position, Cases, tuple[tuple[Step, Cases], ...]]]:
        for step, after, due in self._choices(position):
            if step is None:
                yield after, here, order
                continue
            self.effort += self.rules.effort(here, step)
            if self.effort > EFFORT_MAX:
                raise TooManyCases("too many orders of events and operations")
            cases, blames = self.rules.apply(self.frame, here, step)
            if cases:
                yield after, cases, (*order, (step, here))
            elif due:
                progress = position[0] + sum(position[1])
                self.blames.extend(_Stuck(progress, step, blame, here) for blame in blames)

    def _choices(self, position: Position) -> Iterator[tuple[Step | None, Position, bool]]:
        """Yield what may come next: events in queue order, the operation, then floating ones.

        Each comes with whether it is due: an event told only later is not to blame if impossible.
        """
        taken, counts, floated = position
        ready = [
            (stream, events[counts[stream]])
            for stream, events in enumerate(self.by_consumer)
            if counts[stream] < len(events) and events[counts[stream]].floor <= taken
        ]
        for stream, told in sorted(ready, key=lambda each: self._place(each[1].step)):
            further = tuple(c + (s == stream) for s, c in enumerate(counts))
            yield told.step, (taken, further, floated), told.told_with <= taken + 1
        if taken < len(self.streams.operations) and not self._owes(taken, counts):
            yield self.streams.operations[taken], (taken + 1, counts, floated), True
        for index, (step, since) in enumerate(self.streams.floating):
            if index not in floated and since <= taken:
                yield step, (taken, counts, floated | {index}), False

    def _owes(self, taken: int, counts: tuple[int, ...]) -> bool:
        """Whether an event was told before the next operation and is not placed yet."""
        return any(
            count < len(events) and events[count].told_with <= taken
            for count, events in zip(counts, self.by_consumer, strict=True)
        )

    def _place(self, step: Step) -> int:
        """Return the place of a step's message in the queue's order; endings come last."""
        if step[0] in ENDINGS:
            return sum(self.frame.sizes)
        order = next(i for i, symbol in enumerate(self.rules.contract.rigid) if symbol.is_order)
        return self.frame.rows[order][step[1][1]].bit_count()


def judged(
    streams: Streams, cases: Cases, rules: Rules, frame: Frame, *, every_order: bool
) -> LawfulOrder:
    """Look for a lawful order; with `every_order`, gather the cases of all of them.

    Without browsers and floating steps every lawful order ends in the same case, since the history
    of each message is told in order; then the first suffices. Raises `TooManyCases`.
    """
    return _Search(streams, rules, frame, every_order or bool(streams.floating)).run(cases)
