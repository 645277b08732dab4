"""Consumers that stay until every message of a round is settled: for brokers on the wire.

Each has a connection of its own, so the order of its deliveries is the broker's. A round of stayers
ends as soon as all is settled, and needs no silence. A message that waits while consumers with room
do nothing is a finding by itself: an arrival or a return woke none of them.
"""

from __future__ import annotations

import time
from typing import Final

from brokerproof.pipeline.rounds.clients import Answered, Fault, Subscriber
from brokerproof.spec.protocol.operations import Drain

STALLED_S: Final = 3.0
"""A message waits in vain if no client of the round has done anything for so long."""

WINDOWS: Final = (1, 2, None)
"""The windows that consumers have, where windows are claimed."""

RANKS: Final = (0, 0, 1)
"""The priorities that consumers have, where those are claimed."""


PATIENCE_S: Final = (0.0, 0.0, 0.1)
"""How long a consumer waits for more before it settles: a forgotten message shows while it does."""


class Stayer(Subscriber):
    """A client whose consumers stay, or close their channel to give messages back."""

    closes = True

    def run(self) -> None:
        """Take and settle until all is settled, or until nothing happens any more."""
        shared = self.shared
        self._begin()
        while not self.is_lost and not shared.is_done():
            if self.ask(Drain()).outcome != "ok":
                break
            came = self.take_what_came()
            shared.room[self.name] = self._window is None or len(self._held) < self._window
            if came:
                continue
            if self._held and shared.quiet_s() >= self._patience_s and not shared.forgets_one():
                self._settle_some()
            elif shared.quiet_s() > STALLED_S:
                self._note_stalled()
                break
        shared.room.pop(self.name, None)
        self.settle(all_of_them=True, returns=False)
        self.close()

    def _begin(self) -> None:
        self._patience_s = self.random.choice(PATIENCE_S)
        windows = WINDOWS if "messages" in self.shared.claims.credit else (None,)
        ranks = RANKS if self.shared.claims.consumer_priority else (0,)
        self._subscribe(self.random.choice(windows), self.random.choice(ranks))

    def _settle_some(self) -> None:
        channel = self.channel
        for begun in self.settle():
            self._room.settled(begun)
        if self.channel != channel:
            self._begin()

    def _note_stalled(self) -> None:
        shared = self.shared
        if not shared.forgets_one() or shared.kills or shared.stalls:
            return
        requirement = "quiescence" if self._window is None else "credit-used"
        what = f"{len(shared.forgotten())} of {shared.shape.messages} messages"
        self.shared.stalls.append(
            Fault(requirement, f"{what} waited {STALLED_S:.0f} s for a consumer with room")
        )

    def take_the_rest(self) -> Answered | None:
        """Take what is left, if anything is: a queue whose every message is settled is empty."""
        if self.shared.is_done() and not self.shared.kills:
            now = time.monotonic_ns()
            return Answered("ok", now, now)
        return super().take_the_rest()
