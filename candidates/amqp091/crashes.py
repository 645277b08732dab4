"""Crashing a broker behind AMQP 0-9-1, and starting it again.

The file owns the waits of both and their limits. It does not know queues and messages. Only a
connection attempt shows whether a broker is dead or up again; the end of a command does not.

**What a crash takes.** A publish is answered by the broker's confirm, which it owes only once a
persistent message is on disk. Settlements are not confirmed: RabbitMQ writes them with its next
confirm, or when its sync timer (0.2 s) ends. So rule 10 (`ok` is final) holds only a second later,
and a crash waits for that. Measured with 3.10.8: without a wait each of twelve acknowledgements was
forgotten, after 0.3 s none. RabbitMQ also answers the declare or delete of a durable queue seconds
before it is on disk (`DECLARED_S`), and a crash waits for that too. A publish needs no wait of its
own. For versions from 4.0 on, whose queues write otherwise, `durable` is not claimed.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import amqp

from brokerproof.candidates.amqp091.connection import ANSWER_DEADLINE_S, CONNECT_DEADLINE_S
from brokerproof.candidates.crash_commands import PowerFailed
from brokerproof.candidates.unavailable import CandidateUnavailable

if TYPE_CHECKING:
    from brokerproof.candidates.amqp091.connection import Deadline
    from brokerproof.candidates.amqp091.example import Queue
    from brokerproof.candidates.amqp091.pool import Pool
    from brokerproof.candidates.crash_commands import Power

RESTART_DEADLINE_S = 120.0
STILL_THERE_S = 1.0
POLL_S = 0.1


@dataclass(frozen=True)
class Crashes:
    """The power over one broker, and the connections that a crash takes and a restart renews."""

    power: Power
    pool: Pool
    deadline: Deadline

    def crash(self) -> None:
        """Kill the broker; raises `PowerFailed` if it still takes connections."""
        self.power.crash()
        with contextlib.suppress(CandidateUnavailable):
            self._connect(STILL_THERE_S)
            raise PowerFailed(
                "the broker still takes connections when the crash command has returned; "
                "let the command return when it is dead, and let no supervisor start it again"
            )

    def come_up(self) -> None:
        """Start the broker unless it is up, and connect; raises `CandidateUnavailable`."""
        try:
            self._connect(CONNECT_DEADLINE_S)
        except CandidateUnavailable:
            self.power.restart()
            self._wait()

    def still_there(self, queues: dict[str, Queue]) -> tuple[dict[str, Queue], dict[str, str]]:
        """Return the queues that came back, and for each other one the broker's message.

        The others are unknown from then on: an operation on a missing queue would close the channel
        that it uses.
        """
        self.deadline.start(ANSWER_DEADLINE_S)
        found, gone = {}, {}
        for name, queue in queues.items():
            try:
                self.pool.control.queue_declare(queue.name, passive=True)
            except amqp.NotFound as not_found:
                gone[name] = str(not_found)
            else:
                found[name] = queue
        return found, gone

    def _wait(self) -> None:
        end = time.monotonic() + RESTART_DEADLINE_S
        while True:
            try:
                self._connect(CONNECT_DEADLINE_S)
            except CandidateUnavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(POLL_S)
            else:
                return

    def _connect(self, seconds: float) -> None:
        self.deadline.start(seconds)
        self.pool.renew()
