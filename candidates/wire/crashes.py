"""Crashing a broker on the wire, and starting it again.

The file owns the waits of both and their limits. It does not know queues and messages. Only a
connection attempt shows whether a broker is dead or up again; the end of a command does not.

**What a crash takes.** A publish is answered by the broker's confirm, which it owes only once a
persistent message is on disk. Settlements are not confirmed. So rule 10 (`ok` is final) holds only
some time later. A profile gives that time (`OnDisk`), and a crash waits for it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from brokerproof.candidates.crash_commands import Power, PowerFailed
from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.candidates.wire.deadline import (
    ANSWER_DEADLINE_S,
    CONNECT_DEADLINE_S,
    Deadline,
)
from brokerproof.candidates.wire.errors import refused
from brokerproof.candidates.wire.example import ChannelT, Example, HandleT, Queue
from brokerproof.spec.protocol.answers import Error

RESTART_DEADLINE_S = 120.0
STILL_THERE_S = 1.0
POLL_S = 0.1


@dataclass(frozen=True)
class Crashes:
    """The power over one broker; `renew` drops all connections and opens the first one anew.

    `renew` raises `CandidateUnavailable` when there is no broker.
    """

    power: Power
    renew: Callable[[], None]
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

    def kill(self, now: Example[ChannelT, HandleT]) -> None:
        """Kill the broker once all that was answered is on disk; raises `PowerFailed`."""
        time.sleep(now.on_disk_in_s())
        now.crash()
        self.crash()

    def revive(
        self, now: Example[ChannelT, HandleT], why_gone: Callable[[Queue], str]
    ) -> Error | None:
        """Start the broker, and note which of its durable queues have not come back."""
        if not now.is_down:
            return refused("the broker is up")
        try:
            self.come_up()
        except CandidateUnavailable as unavailable:
            return refused(f"the broker did not come back: {unavailable}")
        now.is_down = False
        self.deadline.start(ANSWER_DEADLINE_S)
        now.lost = {name: why for name, queue in now.queues.items() if (why := why_gone(queue))}
        # An operation on a missing queue could close the channel that it uses.
        for name in now.lost:
            del now.queues[name]
        return None

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
        self.renew()
