"""A producer of a load: publishes in windows, and records when each message was confirmed.

The interval of a publish starts before its batch is handed to the socket, and ends when the
broker's confirm has been read. A publish without a confirm when the connection was lost may have
happened. So may one that the broker refused with `basic.nack`, which only says that it takes no
responsibility. A message returned as unroutable is in no queue.
"""

from __future__ import annotations

import random
import time
from collections import deque
from typing import NamedTuple

from brokerproof.candidates.amqp091.load.frames import (
    CONFIRM_SELECT_FRAME,
    CONFIRM_SELECTED,
    Arrivals,
    PublishForm,
)
from brokerproof.candidates.amqp091.load.link import ANSWER_S_MAX, POLL_S, Link, LinkLost
from brokerproof.candidates.amqp091.load.notes import (
    ALLOWED,
    CONFIRMED,
    ENDED,
    READY,
    STOP_PRODUCING,
    Notes,
    Shared,
    Task,
)
from brokerproof.spec.histories import Record, Result

BATCHES_A_WINDOW = 4
UNSAID = Record(op="drained", start=0).priority
"""The priority in the record of a message that was sent without one."""


class _Sent(NamedTuple):
    queue: str
    message: str
    start: int
    priority: int


class Producer:
    """Publishes its share of the messages over one connection after another."""

    def __init__(self, task: Task, shared: Shared, notes: Notes) -> None:
        self._task, self._shared, self._notes = task, shared, notes
        load = task.load
        share, rest = divmod(load.messages, load.producers)
        self._left = share + (task.index < rest)
        self._batch = max(1, load.window // BATCHES_A_WINDOW)
        self._random = random.Random(task.seed)  # noqa: S311 - load, not secrets
        self._made = 0
        self._confirmed = shared.counter(task.number, CONFIRMED)
        self._resolved = shared.counter(task.number, ENDED)
        self._forms = self._publish_forms()
        self._unwritten: deque[_Sent] = deque()
        self._ended: dict[int, tuple[int | None, Result]] = {}
        self._returned: set[str] = set()
        self._first = 1

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to publish."""
        return not self._left or bool(self._shared[STOP_PRODUCING])

    def _publish_forms(self) -> list[list[PublishForm]]:
        """Return, for each queue and each priority, the common part of its publishes."""
        load = self._task.load
        priorities = [None] if load.levels is None else list(range(load.levels))
        return [
            [
                PublishForm(
                    at_broker,
                    len(self._name_of(0)),
                    bytes(load.body_bytes),
                    persistent=load.persistent,
                    priority=priority,
                )
                for priority in priorities
            ]
            for _, at_broker in self._task.queues
        ]

    def _name_of(self, number: int) -> str:
        return f"{self._task.name}-{number:08d}"

    def run(self, _life: int) -> None:
        """Publish until done; raises `LinkLost`, and is called again once the broker is back."""
        self._first = 1
        link = Link(self._task.address, self._task.clock, self._take)
        try:
            link.ask(CONFIRM_SELECT_FRAME, CONFIRM_SELECTED)
            self._shared.counter(self._task.number, READY).value = 1
            while not self.is_done:
                self._await_room(link, self._task.load.window - self._batch)
                if self._made < self._shared[ALLOWED]:
                    self._send(link, min(self._batch, self._left))
                elif not link.pump(POLL_S):
                    self._end_if_orphan()
            self._await_room(link, 0)
            link.close_channel()
        finally:
            link.drop()
            self._give_up_unconfirmed()

    def _await_room(self, link: Link, outstanding_max: int) -> None:
        until = time.monotonic() + ANSWER_S_MAX
        while len(self._unwritten) - len(self._ended) > outstanding_max:
            if link.pump(POLL_S):
                until = time.monotonic() + ANSWER_S_MAX
            else:
                self._end_if_orphan()
            if time.monotonic() > until:
                raise LinkLost(f"no confirm within {ANSWER_S_MAX:.0f} s")

    def _end_if_orphan(self) -> None:
        if self._shared.is_orphan():
            raise LinkLost("the process that could stop this producer is gone")

    def _send(self, link: Link, count: int) -> None:
        frames: list[bytes] = []
        queues, forms = self._task.queues, self._forms
        start = self._task.clock.now()
        for _ in range(count):
            name = self._name_of(self._made)
            # Each producer begins with another queue, and every queue gets a share of each.
            which = (self._task.index + self._made) % len(queues)
            priority = self._random.randrange(len(forms[which]))
            form = forms[which][priority]
            frames += form.before_id, name.encode(), form.after_id
            self._unwritten.append(_Sent(queues[which][0], name, start, priority))
            self._made += 1
        self._left -= count
        link.send(b"".join(frames))

    def _take(self, arrivals: Arrivals, at: int) -> None:
        self._returned.update(name for name in arrivals.returned if name is not None)
        for tag, multiple, positive in arrivals.confirms:
            end: tuple[int | None, Result] = (at, "ok") if positive else (None, "unknown")
            earliest = self._first if multiple else max(tag, self._first)
            # A confirm of a message that was never sent is ignored.
            latest = min(tag, self._first + len(self._unwritten) - 1)
            for confirmed in range(earliest, latest + 1):
                self._ended.setdefault(confirmed, end)
        while self._unwritten and self._first in self._ended:
            self._write(self._unwritten.popleft(), *self._ended.pop(self._first))
            self._first += 1

    def _give_up_unconfirmed(self) -> None:
        """Record unconfirmed publishes as unknown: no confirms come after a lost connection."""
        while self._unwritten:
            ended = self._ended.pop(self._first, (None, "unknown"))
            self._write(self._unwritten.popleft(), *ended)
            self._first += 1
        self._ended.clear()

    def _write(self, sent: _Sent, end: int | None, outcome: Result) -> None:
        load = self._task.load
        if sent.message in self._returned:
            outcome = "failed"
        self._notes.write(
            Record(
                op="publish",
                queue=sent.queue,
                message=sent.message,
                producer=self._task.name,
                start=sent.start,
                end=end,
                priority=UNSAID if load.levels is None else sent.priority,
                size=load.body_bytes,
                persistent=load.persistent,
                outcome=outcome,
            )
        )
        self._confirmed.value += outcome == "ok"
        self._resolved.value += 1
