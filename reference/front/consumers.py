"""A consumer: who may be given messages, how much of them, and whether it is still there.

Owns whether it may be given anything (open, and with room) and how a message given to it is
accounted for. Refuses to know how a queue chooses what it is given (`subscriptions` adds that for
queues with pointers; one of the others has a rank at most).

Source: Qpid, Message Delivery, section Subscriptions. The document has a subclass for each way of
acknowledging; they differ in the three answers of `Mode` and nothing else, so here they are a
table.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.shared.atomics import AtomicReference, Lock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokerproof.reference.front.credit import ChannelWindow, Served, Window
    from brokerproof.spec.protocol.messages import Message
    from brokerproof.spec.protocol.operations import ConsumeMode, GetMode


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """What a kind of subscription does with a message that it is given."""

    acquires: bool
    """Whether it takes the entry; a browser only looks, and is never moved back by a release."""
    settled_when_sent: bool
    """Whether a message is done with as it is sent: lost if that fails, never sent twice."""
    uses_credit: bool
    """Whether what it is given fills its window; a window of 0 stops every kind."""


ACKNOWLEDGE = Mode(acquires=True, settled_when_sent=False, uses_credit=True)
"""The document's AckSubscription."""
AUTOMATIC = Mode(acquires=True, settled_when_sent=True, uses_credit=False)
"""The document's NoAckSubscription."""
BROWSE = Mode(acquires=False, settled_when_sent=False, uses_credit=False)
"""The document's BrowserSubscription."""
GET_AUTOMATIC = Mode(acquires=True, settled_when_sent=True, uses_credit=True)
"""The document's GetNoAckSubscription: its window of one message is how it stops after one."""

CONSUME_MODES: Mapping[ConsumeMode, Mode] = {
    "acknowledge": ACKNOWLEDGE,
    "automatic": AUTOMATIC,
    "browse": BROWSE,
}
GET_MODES: Mapping[GetMode, Mode] = {"acknowledge": ACKNOWLEDGE, "automatic": GET_AUTOMATIC}


class ConsumerState(enum.Enum):
    """Whether a subscription is there; whether it has room is its credit's to say."""

    NEW = "new"
    """Not let in yet: others may meet it, and give it nothing."""
    OPEN = "open"
    CLOSED = "closed"


NEW = ConsumerState.NEW
OPEN = ConsumerState.OPEN
CLOSED = ConsumerState.CLOSED


class Held(Protocol):
    """A message that a consumer was sent, as far as anybody but its queue knows it."""

    @property
    def message(self) -> Message | None:
        """The message; None of what is never sent."""
        ...

    @property
    def redelivered(self) -> bool:
        """Whether an earlier delivery had acquired it."""
        ...

    def holder(self) -> Consumer | None:
        """Return who has it, if somebody has."""
        ...

    def is_dispensed(self) -> bool:
        """Whether it is out of its queue for good."""
        ...


class Consumer:
    """One consumer of one queue, or (with `consumer` None) one `get`.

    `credit` is its own window, `shared` that of its channel, where one was set. An `exclusive` one
    has its queue for itself.

    Once closed it never changes again, which copies of a broker rely on: they share the closed
    ones.
    """

    __slots__ = (
        "channel",
        "consumer",
        "credit",
        "exclusive",
        "mode",
        "queue",
        "send_lock",
        "shared",
        "state",
    )

    def __init__(
        self,
        *,
        consumer: str | None,
        channel: str,
        queue: str,
        mode: Mode,
        credit: Window,
        exclusive: bool = False,
    ) -> None:
        self.consumer = consumer
        self.channel = channel
        self.queue = queue
        self.mode = mode
        self.credit = credit
        self.exclusive = exclusive
        self.shared: AtomicReference[ChannelWindow | None] = AtomicReference(None)
        self.state = AtomicReference(NEW)
        self.send_lock = Lock()

    def __repr__(self) -> str:
        return f"<{self.consumer or 'get'} of {self.queue}, {self.state.value.value}>"

    def queues(self) -> tuple[str, ...]:
        """Return the names of all queues that its consumer subscribes to."""
        return (self.queue,)

    def open(self) -> bool:
        """Be given messages from now on, unless it was closed already; say so."""
        return self.state.compare_and_set(NEW, OPEN)

    def is_open(self) -> bool:
        """Whether it is there, let in and not closed."""
        return self.state.get() is OPEN

    def is_closed(self) -> bool:
        """Whether it has left its queue."""
        return self.state.get() is CLOSED

    def is_suspended(self) -> bool:
        """Whether it can be given nothing for now: not open, or without room.

        One that is not may still have no room for a particular message.
        """
        if self.state.get() is not OPEN or not self.credit.has_credit():
            return True
        shared = self.shared.get()
        if shared is None:
            return False
        return not shared.has_credit() if self.mode.uses_credit else shared.is_paused()

    def allocate_credit(self, held: Held) -> bool:
        """Take room for a message if there is any (the document's `wouldSuspend`, negated)."""
        shared, size = self.shared.get(), _size_of(held)
        if not self.mode.uses_credit:
            return self.credit.lets_through(size) and (shared is None or shared.lets_through(size))
        if not self.credit.use(size):
            return False
        if shared is None or shared.use(self._name(), size):
            return True
        # Nobody can have missed this room: only its own deliveries take of it, one at a time.
        self.credit.restore(size)
        return False

    def restore_credit(self, held: Held) -> bool:
        """Give back the room of a message, and say whether its queue has to deliver again.

        Those who share the channel's window with it are told by that.
        """
        if not self.mode.uses_credit or self.is_closed():
            return False
        shared, size = self.shared.get(), _size_of(held)
        restored = self.credit.restore(size)
        if shared is not None:
            shared.restore(self._name(), size)
        return restored

    def set_limits(self, limit: int | None, byte_limit: int | None) -> bool:
        """Replace its own window, and say whether its queue has to deliver again."""
        return self.credit.set_limits(limit, byte_limit)

    def share(self, window: ChannelWindow, queue: Served) -> None:
        """Count for a window of its channel from now on, with all that it holds.

        Nothing is given to it meanwhile, and what it has is settled through the channel, of which
        this is an operation too.
        """
        with self.send_lock:
            fills = self.mode.uses_credit
            used, used_bytes = self.credit.usage() if fills else (0, 0)
            window.join(self._name(), queue, used, used_bytes)
            self.shared.set(window)

    def leave_channel(self) -> None:
        """Let what it holds count for its channel no more; after it was closed."""
        shared = self.shared.get()
        if shared is not None:
            shared.leave(self._name())

    def _name(self) -> str:
        assert self.consumer is not None, "a get shares no window"
        return self.consumer

    def is_same_consumer(self, other: Consumer) -> bool:
        """Whether both are of one client's consumer: those of one share a window, no others do."""
        return self.credit is other.credit

    def sending(self) -> Lock:
        """Return the lock under which it is sent everything."""
        return self.send_lock

    def close(self) -> None:
        """Be given nothing from now on; the lock lets a delivery that is under way end first."""
        with self.send_lock:
            self.state.set(CLOSED)


class RankedConsumer(Consumer):
    """A consumer of a priority of its own: a higher `priority` is served first."""

    __slots__ = ("priority",)

    def __init__(
        self,
        *,
        consumer: str | None,
        channel: str,
        queue: str,
        mode: Mode,
        credit: Window,
        exclusive: bool = False,
        priority: int = 0,
    ) -> None:
        super().__init__(
            consumer=consumer,
            channel=channel,
            queue=queue,
            mode=mode,
            credit=credit,
            exclusive=exclusive,
        )
        self.priority = priority


def _size_of(held: Held) -> int:
    assert held.message is not None, "a dummy head takes no room"
    return held.message.size
