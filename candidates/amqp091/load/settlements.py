"""Settlements of a load, and what is known of them.

They have no answer in AMQP. Now and then a get from the same queue follows on the same channel. A
queue of RabbitMQ handles gets after what the channel sent before, so its answer, a message or none,
means that all settlements sent before took effect, at the latest when it was read. (A passive
declare would not do: a queue that has much to do answers that first.) What no such answer covers is
unknown, and has no end.

A broker that is killed may have forgotten settlements that had taken effect: it writes them later
than it carries them out (`crashes.py`). So where kills are planned, a settlement is said to
be `ok` only once the broker was seen to live `WRITTEN_S` after it took effect: another declare,
sent that much later, was answered. Otherwise it is unknown, which is true of it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from brokerproof.candidates.amqp091.load.notes import Notes, Task
from brokerproof.spec.histories import Kind, Record

WRITTEN_S = 2.0
"""So long after it took effect a settlement is on disk, in a queue that is published to as well.

While a queue of RabbitMQ 3 owes confirms of persistent messages, its timer makes it write every
0.2 s; what an idle one needs, and how it was measured, is in `claims.py`.
"""


class Settled(NamedTuple):
    """A settlement that was sent: of which delivery to whom, and when it began."""

    op: Kind
    queue: str
    message: str
    consumer: str
    position: int
    start: int


class Settlements:
    """The settlements of one channel, until it is known what has become of them."""

    def __init__(self, task: Task, channel: str, notes: Notes) -> None:
        self._channel = channel
        self._notes = notes
        self._survives_ns = int(WRITTEN_S * 1e9) if task.load.kills else 0
        self._open: deque[Settled] = deque()
        self._effective: deque[tuple[Settled, int]] = deque()

    @property
    def open(self) -> int:
        """How many are not known to have taken effect."""
        return len(self._open)

    def began(self, settled: Settled) -> None:
        """One is about to be sent."""
        self._open.append(settled)

    def took_effect(self, count: int, asked: int, end: int) -> None:
        """The first `count` open ones took effect by `end`, as an answer says, asked at `asked`.

        The broker lived when it was asked; what had taken effect long enough before is on disk.
        """
        while self._effective and self._effective[0][1] + self._survives_ns <= asked:
            self._write(*self._effective.popleft())
        for _ in range(count):
            settled = self._open.popleft()
            if self._survives_ns:
                self._effective.append((settled, end))
            else:
                self._write(settled, end)

    def close(self, *, may_be_forgotten: bool) -> None:
        """Nothing more will be learnt: write the rest."""
        while self._effective:
            settled, end = self._effective.popleft()
            self._write(settled, None if may_be_forgotten else end)
        while self._open:
            self._write(self._open.popleft(), None)

    def _write(self, settled: Settled, end: int | None) -> None:
        self._notes.write(
            Record(
                op=settled.op,
                queue=settled.queue,
                message=settled.message,
                consumer=settled.consumer,
                channel=self._channel,
                start=settled.start,
                end=end,
                position=settled.position,
                outcome="unknown" if end is None else "ok",
            )
        )
