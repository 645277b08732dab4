"""Gets: requests for single messages, beside the consumers and after them.

Each get counts as a consumer of its own name, for one delivery or none. Its interval starts before
the request and ends when its answer was read. The next get from the same queue shows that its
settlement took effect.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from brokerproof.candidates.amqp091.load.frames import (
    GOT,
    GOT_NOTHING,
    QUEUE_DECLARED,
    Arrivals,
    Delivery,
    acknowledge,
    get,
    passive_declare,
    ready_messages,
)
from brokerproof.candidates.amqp091.load.link import POLL_S, Link, LinkLost, Request
from brokerproof.candidates.amqp091.load.notes import (
    CONFIRMED,
    DELIVERED,
    GETS_MADE,
    READY,
    STOP_PRODUCING,
    Shared,
    SubscriberNotes,
    Task,
)
from brokerproof.candidates.amqp091.load.settlements import Settled, Settlements
from brokerproof.spec.histories import Record


@dataclass
class _Unanswered:
    """A settlement on a queue, and when it took effect at the latest, if known."""

    queue: str
    end: int | None = None


class OneByOne:
    """A channel for gets, while the ``with`` block lasts; opening it raises `LinkLost`."""

    def __init__(self, task: Task, life: int, notes: SubscriberNotes) -> None:
        self._task, self._notes = task, notes
        self._name = f"{task.name}.{life}"
        self._channel = f"channel-{self._name}"
        self._made = 0
        self._since = task.clock.now()
        self._got: list[Delivery] = []
        self._settlements = Settlements(task, self._channel, notes.settlements)
        self._unanswered: deque[_Unanswered] = deque()
        self.link = Link(task.address, task.clock, self._take)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.link.drop()
        self._settlements.close(may_be_forgotten=kind is not None)

    def _take(self, arrivals: Arrivals, _at: int) -> None:
        self._got += arrivals.deliveries

    def get(self, queue: str, at_broker: str) -> Request | None:
        """Take a message and acknowledge it; return the get's times if the queue was empty instead.

        Raises `LinkLost` if no answer came, and records that the get may have taken a message.
        """
        consumer = f"{self._name}.{self._made}"
        self._made += 1
        start = self._task.clock.now()
        try:
            method, asked = self.link.ask(get(at_broker), GOT, GOT_NOTHING)
        except LinkLost:
            self._notes.events.write(
                Record(
                    op="get",
                    queue=queue,
                    consumer=consumer,
                    channel=self._channel,
                    start=start,
                    outcome="unknown",
                )
            )
            raise
        self._took_effect(queue, asked)
        if method == GOT_NOTHING:
            self._notes.events.write(
                Record(
                    op="empty",
                    queue=queue,
                    consumer=consumer,
                    channel=self._channel,
                    start=asked.start,
                    end=asked.end,
                )
            )
            return asked
        [delivery] = self._got
        self._got.clear()
        message = delivery.identity or f"unnamed {consumer}"
        self._notes.deliveries.write(
            Record(
                op="deliver",
                queue=queue,
                message=message,
                consumer=consumer,
                channel=self._channel,
                start=asked.start,
                end=asked.end,
                position=0,
                size=delivery.size,
                redelivered=delivery.redelivered,
            )
        )
        start = self._task.clock.now()
        self._unanswered.append(_Unanswered(queue))
        self._settlements.began(Settled("acknowledge", queue, message, consumer, 0, start))
        self.link.send(acknowledge(delivery.tag))
        return None

    def _took_effect(self, queue: str, asked: Request) -> None:
        """Note that earlier settlements on a queue took effect, and report them in start order."""
        for each in self._unanswered:
            if each.queue == queue and each.end is None:
                each.end = asked.end
        while self._unanswered and (end := self._unanswered[0].end) is not None:
            self._settlements.took_effect(1, asked.start, end)
            self._unanswered.popleft()

    def ready(self, at_broker: str) -> tuple[int, int]:
        """Return how many messages of a queue are ready, and how many consumers it has."""
        _, asked = self.link.ask(passive_declare(at_broker), QUEUE_DECLARED)
        return ready_messages(asked.arguments)

    def close(self) -> None:
        """Close the channel in order, with nothing held."""
        asked = self.link.close_channel()
        self._notes.events.write(
            Record(op="close", channel=self._channel, start=asked.start, end=asked.end)
        )

    def note_loss(self) -> None:
        """Record that the connection was lost without a kill: all held messages returned."""
        self._notes.events.write_lost(self._channel, self._since)


class Getter:
    """Makes the gets of a load, spread over the confirmed messages."""

    def __init__(self, task: Task, shared: Shared, notes: SubscriberNotes) -> None:
        self._task, self._shared, self._notes = task, shared, notes
        self._random = random.Random(task.seed)  # noqa: S311 - load, not secrets
        self._made = shared.counter(task.number, GETS_MADE)
        self._delivered = shared.counter(task.number, DELIVERED)
        self._gets: OneByOne | None = None

    def _confirmed(self) -> int:
        """Return the number of messages confirmed to the producers, which are the first workers."""
        producers = range(self._task.load.producers)
        return sum(self._shared.counter(n, CONFIRMED).value for n in producers)

    @property
    def is_done(self) -> bool:
        """Whether no more gets are to be made."""
        return self._made.value >= self._task.load.gets or bool(self._shared[STOP_PRODUCING])

    def run(self, life: int) -> None:
        """Make gets until done; raises `LinkLost`, and is called again once the broker is back."""
        load = self._task.load
        self._gets = OneByOne(self._task, life, self._notes)
        with self._gets as gets:
            self._shared.counter(self._task.number, READY).value = 1
            while not self.is_done:
                if self._confirmed() * load.gets < self._made.value * load.messages:
                    gets.link.pump(POLL_S)
                    if self._shared.is_orphan():
                        raise LinkLost("the process that could stop these gets is gone")
                    continue
                queue, at_broker = self._random.choice(self._task.queues)
                self._delivered.value += gets.get(queue, at_broker) is None
                self._made.value += 1
            gets.close()

    def note_loss(self) -> None:
        """Record that the connection was lost without a kill."""
        if self._gets is not None:
            self._gets.note_loss()
