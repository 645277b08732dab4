"""A consumer: its mode, its credit, and whether it is registered.

Owns whether it can be given a message (open, and with room) and how a message counts against its
credit. Does not know how a queue chooses messages (`subscriptions` adds that for queues with
pointers).

Source: Qpid, Message Delivery, section Subscriptions. The document has a subclass for each way of
acknowledging. They differ only in the three fields of `Mode`, so here they are a table.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.shared.atomics import AtomicReference, Lock

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from brokerproof.reference.front.credit import ChannelWindow, Served, Window
    from brokerproof.spec.messages import Message
    from brokerproof.spec.protocol.operations import ConsumeMode, GetMode, Selector


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """What a kind of subscription does with a message that it is given."""

    acquires: bool
    """Whether it acquires the entry. A browser does not, and a release never moves it back."""
    settled_when_sent: bool
    """Whether sending settles a message: if the send fails the message is lost, never sent twice.
    """
    uses_credit: bool
    """Whether deliveries fill its window; a window of 0 stops every mode."""


ACKNOWLEDGE = Mode(acquires=True, settled_when_sent=False, uses_credit=True)
"""The document's AckSubscription."""
AUTOMATIC = Mode(acquires=True, settled_when_sent=True, uses_credit=False)
"""The document's NoAckSubscription."""
BROWSE = Mode(acquires=False, settled_when_sent=False, uses_credit=False)
"""The document's BrowserSubscription."""
GET_AUTOMATIC = Mode(acquires=True, settled_when_sent=True, uses_credit=True)
"""The document's GetNoAckSubscription: its window of one message stops it after one."""

CONSUME_MODES: Mapping[ConsumeMode, Mode] = {
    "acknowledge": ACKNOWLEDGE,
    "automatic": AUTOMATIC,
    "browse": BROWSE,
}
GET_MODES: Mapping[GetMode, Mode] = {"acknowledge": ACKNOWLEDGE, "automatic": GET_AUTOMATIC}


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What a client subscribed with, or (with `consumer` None) what one `get` takes.

    `credit` is its own window. An `exclusive` consumer has its queue for itself; an `auto_close`
    one leaves when no message is left for it; one with a `selector` wants only matching messages;
    one with a higher `priority` is served first.
    """

    channel: str
    mode: Mode
    credit: Window
    consumer: str | None = None
    auto_close: bool = False
    exclusive: bool = False
    priority: int = 0
    selector: Selector | None = None


class ConsumerState(enum.Enum):
    """Whether a subscription is registered; its room belongs to its credit."""

    NEW = "new"
    """Not registered yet: other threads may meet it, and give it nothing."""
    OPEN = "open"
    CLOSED = "closed"


NEW = ConsumerState.NEW
OPEN = ConsumerState.OPEN
CLOSED = ConsumerState.CLOSED


class Held(Protocol):
    """A message that was sent to a consumer, as code outside its queue sees it."""

    @property
    def message(self) -> Message | None:
        """The message; None for a dummy entry, which is never sent."""
        ...

    @property
    def redelivered(self) -> bool:
        """Whether an earlier delivery had acquired it."""
        ...

    def holder(self) -> Consumer | None:
        """Return the consumer that holds it, or None."""
        ...

    def is_dispensed(self) -> bool:
        """Whether it has left its queue for good."""
        ...


class Consumer:
    """One consumer of one queue, or (with `consumer` None) one `get`.

    `shared` is the window of its channel, if one was set. A closed consumer never changes again.
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

    def __init__(self, queue: str, terms: Terms) -> None:
        self.consumer = terms.consumer
        self.channel = terms.channel
        self.queue = queue
        self.mode = terms.mode
        self.credit = terms.credit
        self.exclusive = terms.exclusive
        self.shared: AtomicReference[ChannelWindow | None] = AtomicReference(None)
        self.state = AtomicReference(NEW)
        self.send_lock = Lock()

    def __repr__(self) -> str:
        return f"<{self.consumer or 'get'} of {self.queue}, {self.state.value.value}>"

    def queues(self) -> tuple[str, ...]:
        """Return the names of all queues that its consumer subscribes to."""
        return (self.queue,)

    def open(self) -> bool:
        """Open a new consumer; return False if it was closed already."""
        return self.state.compare_and_set(NEW, OPEN)

    def is_open(self) -> bool:
        """Return whether it is registered and not closed."""
        return self.state.get() is OPEN

    def is_closed(self) -> bool:
        """Return whether it has left its queue."""
        return self.state.get() is CLOSED

    def is_suspended(self) -> bool:
        """Return whether it can be given nothing now: not open, or without room.

        A consumer that is not suspended may still have no room for a particular message.
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
        # The room is not missed meanwhile: only its own deliveries take it, one at a time.
        self.credit.restore(size)
        return False

    def restore_credit(self, held: Held) -> bool:
        """Give back the room of a message; return whether the queue has to deliver again.

        This also wakes the consumers that share the channel's window.
        """
        if not self.mode.uses_credit or self.is_closed():
            return False
        shared, size = self.shared.get(), _size_of(held)
        restored = self.credit.restore(size)
        if shared is not None:
            shared.restore(self._name(), size)
        return restored

    def set_limits(self, limit: int | None, byte_limit: int | None) -> bool:
        """Replace its own window; return whether the queue has to deliver again."""
        return self.credit.set_limits(limit, byte_limit)

    def share(self, window: ChannelWindow, queue: Served) -> None:
        """Join the window of its channel, with all that it holds.

        The send lock stops deliveries to it meanwhile. Settlements go through the same channel, so
        none runs at the same time.
        """
        with self.send_lock:
            fills = self.mode.uses_credit
            used, used_bytes = self.credit.usage() if fills else (0, 0)
            window.join(self._name(), queue, used, used_bytes)
            self.shared.set(window)

    def leave_channel(self) -> None:
        """Remove its deliveries from the window of its channel; called after closing."""
        shared = self.shared.get()
        if shared is not None:
            shared.leave(self._name())

    def _name(self) -> str:
        assert self.consumer is not None, "a get shares no window"
        return self.consumer

    def is_same_consumer(self, other: Consumer) -> bool:
        """Return whether both belong to one client's consumer: only those share a window."""
        return self.credit is other.credit

    def sending(self) -> Lock:
        """Return the lock that is held during each send to it."""
        return self.send_lock

    def close(self) -> None:
        """Stop deliveries; the lock lets a delivery under way finish first."""
        with self.send_lock:
            self.state.set(CLOSED)


class RankedConsumer(Consumer):
    """A consumer with a priority."""

    __slots__ = ("priority",)

    def __init__(self, queue: str, terms: Terms) -> None:
        super().__init__(queue, terms)
        self.priority = terms.priority

    def fingerprint(self) -> Hashable:
        """Return a value that is equal for consumers that behave alike."""
        credit = self.credit
        return (
            self.consumer,
            self.channel,
            self.mode,
            self.exclusive,
            self.priority,
            credit.limit,
            credit.used,
        )


def _size_of(held: Held) -> int:
    assert held.message is not None, "a dummy head takes no room"
    return held.message.size
