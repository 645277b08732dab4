"""A queue whose whole state is one immutable tuple: the cost of a search of it is the gate's own.

Clients get messages from it and settle them, first in first out; a released message goes back to
its place. A copy copies one reference, and the state is its own fingerprint.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, Self

from brokerproof.spec.protocol.answers import OK, Answer, Delivered, refused, unsupported
from brokerproof.spec.protocol.capabilities import Capabilities, Hello
from brokerproof.spec.protocol.operations import (
    Acknowledge,
    CloseChannel,
    Declare,
    Drain,
    Get,
    Operation,
    Publish,
    Reject,
    Release,
    Reset,
    Settlement,
    name_of,
)


class Kept(NamedTuple):
    """A message: its number of arrival, its queue, its id, and whether it came back."""

    number: int
    queue: str
    message: str
    returned: bool = False


class Held(NamedTuple):
    """A message that a channel holds, by the name of its delivery."""

    delivery: str
    channel: str
    kept: Kept


class State(NamedTuple):
    """The whole state; messages in the order of their arrival."""

    queues: tuple[str, ...] = ()
    waiting: tuple[Kept, ...] = ()
    held: tuple[Held, ...] = ()
    arrivals: int = 0
    deliveries: int = 0


HELLO = Hello(
    name="light", version="1", capabilities=Capabilities(get=True, release_position="original")
)


class LightQueue:
    """The candidate: a state that is replaced."""

    __slots__ = ("state",)

    def __init__(self, state: State = State()) -> None:  # noqa: B008 (immutable)
        self.state = state

    def hello(self) -> Hello:
        """Claim gets only."""
        return HELLO

    def fork(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.state)

    def fingerprint(self) -> Hashable:
        """Return the state without the names of deliveries, and with numbers only as an order."""
        state = self.state
        held = tuple([(each.channel, each.kept) for each in state.held])
        return state.queues, state.waiting, held, state.arrivals

    def handle(self, operation: Operation) -> Answer:
        """Carry out one operation."""
        state = self.state
        match operation:
            case Drain():
                return OK
            case Get():
                return self._get(operation)
            case Acknowledge() | Reject() | Release():
                return self._settle(operation)
            case Publish(queue=queue, message=message):
                if queue not in state.queues:
                    return refused(f"no queue {queue}")
                kept = Kept(state.arrivals, queue, message.id)
                self.state = state._replace(
                    waiting=(*state.waiting, kept), arrivals=state.arrivals + 1
                )
                return OK
            case Declare(queue=queue):
                if queue not in state.queues:
                    self.state = state._replace(queues=(*state.queues, queue))
                return OK
            case CloseChannel(channel=channel):
                back = [each for each in state.held if each.channel == channel]
                self._return(back)
                return OK
            case Reset():
                self.state = State()
                return OK
            case _:
                return unsupported(name_of(operation))

    def _get(self, get: Get) -> Answer:
        state = self.state
        if get.queue not in state.queues:
            return refused(f"no queue {get.queue}")
        kept = next((each for each in state.waiting if each.queue == get.queue), None)
        if kept is None:
            return OK
        delivery = f"d{state.deliveries}"
        keeps = get.mode == "acknowledge"
        self.state = state._replace(
            waiting=tuple([each for each in state.waiting if each is not kept]),
            held=(*state.held, Held(delivery, get.channel, kept)) if keeps else state.held,
            deliveries=state.deliveries + 1,
        )
        event = Delivered(
            delivery=delivery,
            consumer=None,
            queue=kept.queue,
            message=kept.message,
            redelivered=kept.returned,
        )
        return Answer((event,))

    def _settle(self, settlement: Settlement) -> Answer:
        found = [each for each in self.state.held if each.delivery == settlement.delivery]
        if not found:
            return refused(f"no delivery {settlement.delivery}")
        if isinstance(settlement, Release):
            self._return(found)
        else:
            held = tuple([each for each in self.state.held if each is not found[0]])
            self.state = self.state._replace(held=held)
        return OK

    def _return(self, back: list[Held]) -> None:
        kept = [each.kept._replace(returned=True) for each in back]
        self.state = self.state._replace(
            waiting=tuple(sorted((*self.state.waiting, *kept))),
            held=tuple([each for each in self.state.held if each not in back]),
        )
