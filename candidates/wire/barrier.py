"""How an adapter knows that nothing more will come: round trips, or a measured silence.

A barrier of round trips is sound where the broker writes all deliveries that it owes before the
answer to a later request. Where no such request is known, silence stands in for it. A silence that
is too short accuses a broker of losing messages, so its length is measured on this machine under
the load of this moment, with room to spare, and told in the report.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from brokerproof.candidates.unavailable import CandidateUnavailable
from brokerproof.spec.messages import Fifo, Message
from brokerproof.spec.protocol.answers import Delivered
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    Consume,
    Declare,
    Operation,
    Publish,
    Reset,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokerproof.candidates.wire.example import ChannelT, Example, HandleT
    from brokerproof.candidates.wire.profile import RoundTrips, Silence
    from brokerproof.spec.protocol.answers import Answer

WARM_UP_DELIVERIES = 100
MEASURED_DELIVERIES = 200
DELIVERY_S_MAX = 2.0
STEP_S = 0.001

PATIENCE = 20
"""So many times longer is a silence in which something is owed by what was answered so far."""

UNPAID_MAX = 20
IMPATIENCE = 2
"""After so many deliveries that never came, a silence is only so many times longer.

A broker that pays what it owes never gets there. One that does not is searched for the shortest
trace, which takes hundreds of such waits.
"""


def sweeps(barrier: RoundTrips, now: Example[ChannelT, HandleT]) -> Iterator[ChannelT]:
    """Yield the channels on which to make the barrier's request, in order."""
    busy = sorted({place.channel for place in now.consumers.values()})
    for _ in range(1 + (len(now.consumers) if barrier.chains else 0)):
        for name in busy:
            for _ in range(barrier.times):
                yield now.channels[name]


@dataclass
class Patience:
    """How long a broker is listened to: a measured silence, longer where it owes a delivery."""

    silence_s: float = 0.0
    unpaid: int = 0

    @property
    def owed_s(self) -> float:
        """How long an owed delivery may take: a busy machine can be late."""
        return self.silence_s * (PATIENCE if self.unpaid <= UNPAID_MAX else IMPATIENCE)

    def await_owed(self, now: Example[ChannelT, HandleT], hear: Callable[[float], bool]) -> None:
        """Let `hear` wait for each delivery that is owed, until one does not come in time."""
        while now.owed.consumers():
            if not hear(self.owed_s):
                self.unpaid += 1
                return


class Listener(Protocol):
    """A candidate on the wire that can wait for deliveries."""

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        ...

    def hear(self, seconds: float) -> tuple[Delivered, ...]:
        """Return what is delivered until nothing has come for some time."""
        ...


def measured(broker: Listener, silence: Silence) -> tuple[float, str]:
    """Return the length of a silence after which nothing more comes, and a line for the report.

    A delivery's time counts from the answer to its publish.

    Raises `CandidateUnavailable` when the broker does not do what the measurement needs.
    """
    broker.handle(Reset())
    slowest = 0.0
    for operation in (
        Declare(queue="q", order=Fifo()),
        Consume(channel="ch", queue="q", consumer="c"),
    ):
        _must(broker, operation)
    for number in range(WARM_UP_DELIVERIES + MEASURED_DELIVERIES):
        answer = _must(broker, Publish(queue="q", message=Message(id=f"m{number}")))
        start = time.monotonic()
        told = [event for event in answer.events if isinstance(event, Delivered)]
        while not told:
            if time.monotonic() - start > DELIVERY_S_MAX:
                raise _unfit(f"a waiting consumer got nothing within {DELIVERY_S_MAX:g} s")
            told += broker.hear(STEP_S)
        # A virtual machine is slow at first, and that says nothing of the rest.
        if number >= WARM_UP_DELIVERIES:
            slowest = max(slowest, time.monotonic() - start)
        _must(broker, Acknowledge(delivery=told[0].delivery))
    broker.handle(Reset())
    length = max(silence.floor_s, silence.factor * slowest)
    return length, (
        f"a delivery that is owed is awaited for {length * PATIENCE * 1000:.0f} ms: the slowest of "
        f"{MEASURED_DELIVERIES} took {slowest * 1000:.1f} ms"
    )


def _must(broker: Listener, operation: Operation) -> Answer:
    answer = broker.handle(operation)
    if answer.error is not None:
        raise _unfit(answer.error.message)
    return answer


def _unfit(what: str) -> CandidateUnavailable:
    return CandidateUnavailable(
        "measuring the silence", what=what, remedy="look into the broker's log, or the profile"
    )
