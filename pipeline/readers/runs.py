"""The gate's own runs: its counterexamples, each step a row.

Times are logical: step *n* lasts from 2n to 2n + 1, so of two steps the earlier one is over. An
event may have happened at any time before the answer that reports it, as far as its consumer knows,
since events may be withheld (driver protocol 1, rule 2). A reset begins a new run.

What the form of a history cannot express is left open. A publish that is delayed, or to a queue
sorted by a property, may have happened at any time. The window of a consumer whose credit changes
counts as none. A second settlement, which may have no effect (rule 13), is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from brokerproof.checks.search.counterexamples import (
    Counterexample,
    Line,
    UnreadableCounterexample,
)
from brokerproof.checks.search.counterexamples import read as read_counterexample
from brokerproof.checks.trace.moves import Cut, Move, Settle
from brokerproof.pipeline.readers.rejected_rows import Rejected, reject
from brokerproof.pipeline.readers.rows import Used, name_of, unfit
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.earliest import Room
from brokerproof.spec.histories import Record, Result
from brokerproof.spec.messages import Fifo, LastValue, Priority, Sorted, level_of
from brokerproof.spec.protocol.answers import Accepted, ConsumerClosed, Delivered, QueueDeleted
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Publish,
    Purge,
    Reset,
    Restart,
    SetCredit,
)


def read(path: Path) -> Iterator[Used | Rejected]:
    """Yield the content of a counterexample's steps; raises `UnreadableHistory`."""
    try:
        found = read_counterexample(path)
    except UnreadableCounterexample as error:
        raise UnreadableHistory(str(error)) from error
    for step, records in enumerate(followed(str(path), _claims(found), found.steps), 1):
        wrong = unfit(records)
        yield (
            reject("wrong value", wrong, str(path), step) if wrong else Used(step, tuple(records))
        )


def followed(name: str, claims: Capabilities, steps: tuple[Line, ...]) -> Iterator[list[Record]]:
    """Yield the records of each step; they may be invalid.

    The name of a run is `name` and the number of resets before it.
    """
    resets = [n for n, line in enumerate(steps) if isinstance(line.move, Reset)]
    parts = zip([0, *resets], [*resets, len(steps)], strict=True)
    for number, (begin, end) in enumerate(parts):
        following = _Following(name_of(f"{name} {number}"), claims, steps, begin, end)
        for step in range(begin, end):
            yield list(following.step(step))


def _claims(found: Counterexample) -> Capabilities:
    return found.claims or Capabilities()


@dataclass
class _Subscriber:
    """A consumer, a browser or a get, and the number of its deliveries."""

    name: str
    mode: str
    channel: str | None
    room: Room | None
    delivered: int = 0


@dataclass
class _Following:
    """The state of the steps so far that the translation of the next one needs."""

    run: str
    claims: Capabilities
    steps: tuple[Line, ...]
    begin: int
    end: int
    queues: dict[str, Declare] = field(default_factory=dict)
    subscribers: dict[str, _Subscriber] = field(default_factory=dict)
    unlimited: dict[str, tuple[str, ...]] = field(default_factory=dict)
    held: dict[str, tuple[_Subscriber, int]] = field(default_factory=dict)
    drained: int = 0
    crashes: int = 0
    closes: Counter[str] = field(default_factory=Counter)

    def step(self, number: int) -> Iterator[Record]:
        """Yield the records of a step: its operation, and then the events of its answer."""
        line = self.steps[number]
        now = 2 * (number + 1)
        error = line.answer.error
        result: Result = "ok" if error is None else "failed" if error.definite else "unknown"
        move = line.move.move if isinstance(line.move, Cut) else line.move
        yield from self._operation(move, number, now, result)
        for event in line.events:
            match event:
                case Delivered():
                    yield self._delivery(event, move, now)
                case ConsumerClosed(consumer=consumer):
                    self.unlimited.pop(consumer, None)
                    yield self._record("cancel", self.drained, now + 1, consumer=consumer)
                case QueueDeleted(queue=queue):
                    self.queues.pop(queue, None)
                    yield self._record("delete", self.drained, now + 1, queue=queue)
                case Accepted():
                    continue
        if error is not None and error.code == "crashed":
            yield self._went_down("crash", now, now + 1, "ok")

    def _went_down(self, op: str, start: int, end: int | None, outcome: Result) -> Record:
        """Note a crash, or the restart after it: all subscriptions and deliveries end."""
        self.unlimited.clear()
        self.held.clear()
        self.crashes += op == "crash"
        return self._record(op, start, end, outcome=outcome)

    def _record(self, op: str, start: int, end: int | None, **fields: object) -> Record:
        return Record(op=op, run=self.run, start=start, end=end, **fields)  # type: ignore[arg-type]

    def _operation(self, move: Move, number: int, now: int, result: Result) -> Iterator[Record]:
        end = None if result == "unknown" else now + 1
        match move:
            case Declare(queue=queue):
                if queue not in self.queues and result != "failed":
                    self.queues[queue] = move
                    yield self._declared(move, now, end, result)
            case Publish():
                yield self._published(move, number, now, result)
            case Consume():
                yield from self._consumed(move, now, end, result)
            case Cancel(consumer=consumer):
                if result != "failed":
                    self.unlimited.pop(consumer, None)
                yield self._record("cancel", now, end, consumer=consumer, outcome=result)
            case Get() if result == "ok":
                if not any(self._is_of_get(e) for e in self.steps[number].events):
                    name = f"get {number + 1}"
                    yield self._record("empty", now, end, queue=move.queue, consumer=name)
            case Settle(message=message, how=how, again=False) if message in self.held:
                yield self._settled(how, message, now, end, result)
            case CloseChannel(channel=channel):
                if result != "failed":
                    self._forget_channel(channel)
                name = self._channel(channel)
                self.closes[channel] += 1
                yield self._record("close", now, end, channel=name, outcome=result)
            case Purge(queue=queue) | Delete(queue=queue):
                op = "purge" if isinstance(move, Purge) else "delete"
                if op == "delete" and result != "failed":
                    self.queues.pop(queue, None)
                yield self._record(op, now, end, queue=queue, outcome=result)
            case Crash() | Restart():
                op = "crash" if isinstance(move, Crash) else "restart"
                yield self._went_down(op, now, end, result)
            case Drain() if result == "ok":
                self.drained = now
                for queue in sorted({q for queues in self.unlimited.values() for q in queues}):
                    yield self._record("drained", now, end, queue=queue)
            case _:
                return

    def _declared(self, move: Declare, now: int, end: int | None, result: Result) -> Record:
        order = move.order
        back = self.claims.release_position == "original"
        drops = isinstance(order, LastValue) or any(
            isinstance(each, Publish) and each.queue == move.queue and each.expires_s is not None
            for each in self._moves()
        )
        return self._record(
            "declare",
            now,
            end,
            queue=move.queue,
            durable=move.durable,
            levels=order.levels if isinstance(order, Priority) else None,
            returns="original" if back else "elsewhere",
            may_drop=drops,
            outcome=result,
        )

    def _published(self, move: Publish, number: int, now: int, result: Result) -> Record:
        declared = self.queues.get(move.queue)
        order = Fifo() if declared is None else declared.order
        end: int | None = now + 1
        if result == "ok" and self.steps[number].parked:
            end = self._accepted(move.message.id, number)
        if result == "unknown" or move.not_before_s is not None or isinstance(order, Sorted):
            end = None
        is_level = isinstance(order, Priority)
        return self._record(
            "publish",
            now,
            end,
            queue=move.queue,
            message=move.message.id,
            priority=level_of(move.message.priority, order, self.claims.priority_mapping)
            if is_level
            else move.message.priority,
            size=move.message.size,
            persistent=move.message.persistent,
            outcome="unknown" if end is None else result,
        )

    def _accepted(self, message: str, number: int) -> int | None:
        """Return the end of the step that reports a parked publish as accepted, or None."""
        for later in range(number, self.end):
            if Accepted(message=message) in self.steps[later].events:
                return 2 * (later + 1) + 1
        return None

    def _consumed(
        self, move: Consume, now: int, end: int | None, result: Result
    ) -> Iterator[Record]:
        changes = any(
            isinstance(each, SetCredit)
            and (each.consumer == move.consumer or each.channel == move.channel)
            for each in self._moves()
        )
        queues = move.queues or (move.queue,)
        window = None if changes else move.credit.messages
        if result != "failed":
            room = Room(now, window if move.mode == "acknowledge" else None)
            channel = self._channel(move.channel)
            self.subscribers[move.consumer] = _Subscriber(move.consumer, move.mode, channel, room)
            limited = changes or move.selector is not None or move.mode == "browse"
            if not limited and move.credit.messages is None and move.credit.bytes is None:
                self.unlimited[move.consumer] = queues
        for queue in queues:
            yield self._record(
                "consume",
                now,
                end,
                queue=queue,
                consumer=move.consumer,
                channel=self._channel(move.channel),
                mode=move.mode,
                window=window,
                selective=move.selector is not None,
                outcome=result,
            )

    def _settled(self, how: str, message: str, now: int, end: int | None, result: Result) -> Record:
        subscriber, position = self.held[message]
        if result != "failed":
            del self.held[message]
            if subscriber.room is not None:
                subscriber.room.settled(now)
        return self._record(
            how,
            now,
            end,
            queue=self._queue_of(message),
            message=message,
            consumer=subscriber.name,
            channel=subscriber.channel,
            position=position,
            outcome=result,
        )

    def _delivery(self, event: Delivered, move: Move, now: int) -> Record:
        if event.consumer is None:
            mode, channel = "acknowledge", None
            if isinstance(move, Get):
                mode, channel = move.mode, self._channel(move.channel)
            subscriber = _Subscriber(f"get {now // 2}", mode, channel, None)
        else:
            unknown = _Subscriber(event.consumer, "acknowledge", None, Room(0, None))
            subscriber = self.subscribers.setdefault(event.consumer, unknown)
        position = subscriber.delivered
        subscriber.delivered += 1
        if subscriber.mode == "acknowledge":
            self.held[event.message] = (subscriber, position)
        return self._record(
            "deliver",
            now if subscriber.room is None else subscriber.room.delivered(),
            now + 1,
            queue=event.queue,
            message=event.message,
            consumer=subscriber.name,
            channel=subscriber.channel,
            position=position,
            redelivered=event.redelivered,
            mode=subscriber.mode,
        )

    def _queue_of(self, message: str) -> str | None:
        for line in self.steps[self.begin : self.end]:
            for event in line.events:
                if isinstance(event, Delivered) and event.message == message:
                    return event.queue
        return None

    def _is_of_get(self, event: object) -> bool:
        return isinstance(event, Delivered) and event.consumer is None

    def _channel(self, channel: str) -> str:
        """Return a unique name of a channel: a run may reuse a channel's name."""
        again = self.closes[channel] + self.crashes
        return f"{channel} again {again}" if again else channel

    def _forget_channel(self, channel: str) -> None:
        gone = self._channel(channel)
        for name, subscriber in self.subscribers.items():
            if subscriber.channel == gone:
                self.unlimited.pop(name, None)
        self.held = {m: held for m, held in self.held.items() if held[0].channel != gone}

    def _moves(self) -> Iterator[Move]:
        return (line.move for line in self.steps[self.begin : self.end])
