"""A consumer of a load: it takes within its window, settles each delivery, and records both.

The interval of a delivery ends when it was read from the socket. It starts at the earliest possible
moment: the consumer had subscribed, and its window had room (`spec/earliest.py`).
"""

from __future__ import annotations

import random
import time
from typing import NamedTuple

from brokerproof.candidates.amqp091.load.frames import (
    CANCELLED,
    CONSUMING,
    GOT,
    GOT_NOTHING,
    QOS_SET,
    Arrivals,
    Delivery,
    acknowledge,
    cancel,
    consume,
    get,
    qos,
    release,
)
from brokerproof.candidates.amqp091.load.link import ANSWER_S_MAX, POLL_S, Link, LinkLost, Request
from brokerproof.candidates.amqp091.load.notes import (
    DELIVERED,
    READY,
    STOP_CONSUMING,
    UNSETTLED,
    Shared,
    SubscriberNotes,
    Task,
)
from brokerproof.candidates.amqp091.load.settlements import Settled, Settlements
from brokerproof.spec.earliest import Room
from brokerproof.spec.histories import Kind, Record


class _Taken(NamedTuple):
    """A delivery that was recorded, and whether it is to be returned."""

    tag: int
    message: str
    consumer: str
    position: int
    returns: bool


class Consumer:
    """Takes from one queue over one connection after another, until it is told to stop."""

    def __init__(self, task: Task, shared: Shared, notes: SubscriberNotes) -> None:
        self._task, self._shared, self._notes = task, shared, notes
        [(self._queue, self._at_broker)] = task.queues
        self._random = random.Random(task.seed)  # noqa: S311 - load, not secrets
        self._delivered = shared.counter(task.number, DELIVERED)
        self._unsettled = shared.counter(task.number, UNSETTLED)
        self._begin(0)

    @property
    def is_done(self) -> bool:
        """Whether the consumer is to stop."""
        return bool(self._shared[STOP_CONSUMING])

    def _begin(self, life: int) -> None:
        self._name = f"{self._task.name}.{life}"
        self._channel = f"channel-{self._name}"
        self._position = 0
        self._since = self._task.clock.now()
        self._room = Room(self._since, self._task.load.window)
        self._settlements = Settlements(self._task, self._channel, self._notes.settlements)
        self._round: tuple[int, int] | None = None
        self._gets = 0
        self._begun_since = 0

    def run(self, life: int) -> None:
        """Take until told to stop; raises `LinkLost`, and is called again once the broker is back.

        At the end nothing is held, each settlement has taken effect, and the channel is closed.
        """
        self._begin(life)
        self._link = link = Link(self._task.address, self._task.clock, self._take)
        lost = True
        try:
            link.ask(qos(self._task.load.window), QOS_SET)
            self._subscribe(link)
            self._shared.counter(self._task.number, READY).value = 1
            while not self.is_done:
                if not link.pump(POLL_S):
                    self._ask_what_took_effect()
                    self._end_if_orphan()
            _, asked = link.ask(cancel(self._name), CANCELLED)
            self._note("cancel", asked)
            self._await_all()
            self._note("close", link.close_channel())
            lost = False
        finally:
            link.drop()
            if self._round is not None:
                self._found_unknown(asked=self._round[1])
            self._settlements.close(may_be_forgotten=lost)
            self._unsettled.value = 0

    def _subscribe(self, link: Link) -> None:
        start, end = self._task.clock.now(), None
        self._room = Room(start, self._task.load.window)
        try:
            _, asked = link.ask(consume(self._at_broker, self._name), CONSUMING)
            end = asked.end
        finally:
            # Deliveries may have come with an answer that the broker's end then cut off.
            self._notes.events.write(
                Record(
                    op="consume",
                    queue=self._queue,
                    consumer=self._name,
                    channel=self._channel,
                    start=start,
                    end=end,
                    window=self._task.load.window,
                    outcome="unknown" if end is None else "ok",
                )
            )

    def note_loss(self) -> None:
        """Record that the connection was lost without a kill: all held messages returned."""
        self._notes.events.write_lost(self._channel, self._since)

    def _note(self, op: Kind, asked: Request) -> None:
        of_consumer = op == "cancel"
        self._notes.events.write(
            Record(
                op=op,
                queue=self._queue if of_consumer else None,
                consumer=self._name if of_consumer else None,
                channel=self._channel,
                start=asked.start,
                end=asked.end,
            )
        )

    def _await_all(self) -> None:
        """Wait until all settlements so far have taken effect.

        The last get may bring a message; the outcome of its settlement stays unknown.
        """
        self._await_round()
        self._ask_what_took_effect()
        self._await_round()

    def _await_round(self) -> None:
        until = time.monotonic() + ANSWER_S_MAX
        while self._round is not None:
            if not self._link.pump(POLL_S) and time.monotonic() > until:
                raise LinkLost(f"settlements took no effect within {ANSWER_S_MAX:.0f} s")

    def _end_if_orphan(self) -> None:
        if self._shared.is_orphan():
            raise LinkLost("the process that could stop this consumer is gone")

    def _take(self, arrivals: Arrivals, at: int) -> None:
        asked = 0 if self._round is None else self._round[1]
        for answer in arrivals.answers:
            if answer.method in (GOT, GOT_NOTHING) and self._round is not None:
                self._settlements.took_effect(*self._round, at)
                self._round = None
                if answer.method == GOT_NOTHING:
                    self._found_nothing(asked, at)
        if arrivals.deliveries:
            self._settle([self._taken(each, asked, at) for each in arrivals.deliveries])
        self._unsettled.value = self._settlements.open

    @property
    def _get(self) -> str:
        """The name of the present get, which counts as a consumer of its own."""
        return f"{self._name}.get{self._gets}"

    def _found_nothing(self, asked: int, at: int) -> None:
        self._notes.gets.write(
            Record(
                op="empty",
                queue=self._queue,
                consumer=self._get,
                channel=self._channel,
                start=asked,
                end=at,
            )
        )

    def _found_unknown(self, asked: int) -> None:
        """Record a get whose answer will not come any more."""
        self._notes.gets.write(
            Record(
                op="get",
                queue=self._queue,
                consumer=self._get,
                channel=self._channel,
                start=asked,
                outcome="unknown",
            )
        )

    def _taken(self, came: Delivery, asked: int, at: int) -> _Taken:
        """Record one delivery."""
        consumer = self._get if came.by_get else self._name
        position = 0 if came.by_get else self._position
        message = came.identity or f"unnamed {consumer} {position}"
        notes = self._notes.gets if came.by_get else self._notes.deliveries
        notes.write(
            Record(
                op="deliver",
                queue=self._queue,
                message=message,
                consumer=consumer,
                channel=self._channel,
                start=asked if came.by_get else self._room.delivered(),
                end=at,
                position=position,
                size=came.size,
                redelivered=came.redelivered,
            )
        )
        if not came.by_get:
            self._position += 1
        self._delivered.value += 1
        share = self._task.load.release_share
        returns = bool(share) and not came.redelivered and self._random.random() < share
        return _Taken(came.tag, message, consumer, position, returns)

    def _settle(self, taken: list[_Taken]) -> None:
        start = self._task.clock.now()
        frames = []
        for each in taken:
            op: Kind = "release" if each.returns else "acknowledge"
            self._settlements.began(
                Settled(op, self._queue, each.message, each.consumer, each.position, start)
            )
            if each.consumer == self._name:
                self._room.settled(start)
            frames.append(release(each.tag) if each.returns else acknowledge(each.tag))
        self._begun_since += len(taken)
        if self._round is None and self._begun_since >= self._task.load.window:
            frames.append(self._begin_round(start))
        self._link.send(b"".join(frames))

    def _ask_what_took_effect(self) -> None:
        if self._round is None and self._settlements.open:
            self._link.send(self._begin_round(self._task.clock.now()))

    def _begin_round(self, asked: int) -> bytes:
        """Return the get whose answer covers all settlements begun so far."""
        self._round = self._settlements.open, asked
        self._begun_since = 0
        self._gets += 1
        return get(self._at_broker)
