"""Consumers that stay until every message of a round is settled: for brokers on the wire.

Each has a connection of its own, so the order of its deliveries is the broker's. A round of stayers
ends as soon as all is settled, and needs no silence. A message that waits while consumers with room
do nothing is a finding by itself: an arrival or a return woke none of them.
"""

from __future__ import annotations

import random
import time
from typing import Final

from brokerproof.pipeline.rounds.clients import Answered, Fault, Shared, Subscriber
from brokerproof.spec.protocol.candidate import Candidate
from brokerproof.spec.protocol.operations import Drain, SetCredit

STALLED_S: Final = 3.0
"""A message waits in vain if no client of the round has done anything for so long."""

WINDOWS: Final = (1, 2, None)
"""The windows that consumers have, where windows are claimed."""

RANKS: Final = (0, 0, 1)
"""The priorities that consumers have, where those are claimed."""


PAUSES: Final = (0.0, 1.0)
"""The shares of settlements before which consumers pause: one for all in a round.

With 1 no two consumers ever want the same message, so what waits then is no matter of their race.
"""

MEETING_S: Final = 0.1
"""How long a paused consumer waits for another's settlement, to go on at the same moment."""

PATIENCE_S: Final = (*[0.0] * 9, 0.1)
"""How long a consumer waits for more before it settles: a forgotten message shows while it does."""


class Stayer(Subscriber):
    """A client whose consumers stay, or close their channel to give messages back."""

    closes = True

    def __init__(self, name: str, candidate: Candidate, shared: Shared, seed: str) -> None:
        super().__init__(name, candidate, shared, seed)
        draw = random.Random(f"{seed} pauses")  # noqa: S311 - load, not secrets
        self._pauses = draw.choice(PAUSES) if "change" in shared.claims.credit else 0.0

    def run(self) -> None:
        """Take and settle until all is settled, or until nothing happens any more."""
        shared = self.shared
        self._begin()
        while not self.is_lost and not shared.is_done():
            if self.ask(Drain()).outcome != "ok":
                break
            came = self.take_what_came()
            shared.room[self.name] = self._has_room()
            if came:
                continue
            may_go_on = shared.quiet_s() >= self._patience_s and not shared.forgets_one()
            if self._held and may_go_on:
                self._settle_some()
            elif self._paused and may_go_on:
                self._go_on()
            elif shared.quiet_s() > STALLED_S:
                self._note_stalled()
                break
        shared.room.pop(self.name, None)
        self.settle(all_of_them=True, returns=False)
        self.close()

    def _has_room(self) -> bool:
        return not self._paused and (self._window is None or len(self._held) < self._window)

    def _begin(self) -> None:
        self._patience_s = 0.0
        self._paused, self.closes = False, True
        windows = WINDOWS if "messages" in self.shared.claims.credit else (None,)
        ranks = RANKS if self.shared.claims.consumer_priority else (0,)
        self._subscribe(self.random.choice(windows), self.random.choice(ranks))

    def _settle_some(self) -> None:
        if not self._paused and self.random.random() < self._pauses:
            self._pause()
        channel = self.channel
        for begun in self.settle():
            self._room.settled(begun)
        self._patience_s = self.random.choice(PATIENCE_S)
        if self.channel != channel:
            self._begin()

    def _pause(self) -> None:
        """Take no more messages; a new channel would have room, so none is opened meanwhile."""
        if self.ask(SetCredit(consumer=self._consumer, messages=0)).outcome == "ok":
            self._paused, self.closes = True, False
            self.shared.room[self.name] = False

    def _go_on(self) -> None:
        """Take messages again, if possible at the moment at which another client settles one."""
        if any([*self.shared.held.values()]):
            self.shared.meeting.wait(MEETING_S)
        self._paused, self.closes = False, True
        # Before the answer: the others must leave what waits now to this consumer.
        self.shared.room[self.name] = self._has_room()
        self.ask(SetCredit(consumer=self._consumer, messages=self._window))

    def _note_stalled(self) -> None:
        shared = self.shared
        if not shared.forgets_one() or shared.kills or shared.stalls:
            return
        requirement = "quiescence" if self._window is None else "credit-used"
        pauses = ", where each pauses before it settles" if self._pauses == 1 else ""
        what = f"{len(shared.forgotten())} of {shared.shape.messages} messages"
        self.shared.stalls.append(
            Fault(requirement, f"{what} waited {STALLED_S:.0f} s for a consumer with room{pauses}")
        )

    def take_the_rest(self) -> Answered | None:
        """Take what is left, if anything is: a queue whose every message is settled is empty."""
        if self.shared.is_done() and not self.shared.kills:
            now = time.monotonic_ns()
            return Answered("ok", now, now)
        return super().take_the_rest()
