"""Settlements of a load, and their known outcomes.

AMQP does not answer settlements. So a get from the same queue follows on the same channel from time
to time. A queue of RabbitMQ handles gets after the channel's earlier requests, so the answer to the
get, a message or none, shows that all earlier settlements took effect by the time it was read. (A
passive declare would not do: a busy queue answers it first.) A settlement without such an answer is
unknown, and has no end.

A killed broker may have forgotten settlements that had taken effect, since it writes them later
than it carries them out (`crashes.py`). So if kills are planned, a settlement is `ok` only once the
broker was seen alive `WRITTEN_S` after it took effect: a request sent that much later was answered.
Otherwise it is recorded as unknown, which is true.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from brokerproof.candidates.amqp091.load.notes import Notes, Task
from brokerproof.spec.histories import Kind, Record

WRITTEN_S = 2.0
"""So long after it took effect a settlement is on disk, even in a queue with publishes.

While a queue of RabbitMQ 3 owes confirms of persistent messages, its timer makes it write every
0.2 s. The profile has the time for an idle queue, and how it was measured.
"""


class Settled(NamedTuple):
    """A settlement that was sent: its kind, its delivery and consumer, and when it began."""

    op: Kind
    queue: str
    message: str
    consumer: str
    position: int
    start: int


class Settlements:
    """The settlements of one channel, until their outcome is known."""

    def __init__(self, task: Task, channel: str, notes: Notes) -> None:
        self._channel = channel
        self._notes = notes
        self._survives_ns = int(WRITTEN_S * 1e9) if task.load.kills else 0
        self._open: deque[Settled] = deque()
        self._effective: deque[tuple[Settled, int]] = deque()

    @property
    def open(self) -> int:
        """The number of those not known to have taken effect."""
        return len(self._open)

    def began(self, settled: Settled) -> None:
        """Add a settlement that is about to be sent."""
        self._open.append(settled)

    def took_effect(self, count: int, asked: int, end: int) -> None:
        """Note that the first `count` open ones took effect by `end`; the request was at `asked`.

        The broker was alive at `asked`; settlements with an effect long enough before are on disk.
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
        """Write the rest: no more outcomes will become known."""
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
