"""A subscription: the tie between a consumer and a queue, with its place and its credit.

Owns whether it may be given anything (open, and with room) and how a message given to it is
accounted for. Refuses to know how its place is kept (that is the pointer's) and who offers it
messages (the queue's).

Source: Qpid, Message Delivery, section Subscriptions. The document has a subclass for each way of
acknowledging; they differ in the three answers of `Mode` and nothing else, so here they are a
table.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING

from brokerproof.reference.atomics import AtomicReference, Lock
from brokerproof.reference.entries import EntryState, Phase, QueueEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokerproof.reference.credit import MessageCredit
    from brokerproof.reference.pointers import Pointer
    from brokerproof.spec.operations import ConsumeMode, GetMode


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


class SubscriptionState(enum.Enum):
    """Whether a subscription is there; whether it has room is its credit's to say."""

    OPEN = "open"
    CLOSED = "closed"


OPEN = SubscriptionState.OPEN
CLOSED = SubscriptionState.CLOSED


class Subscription:
    """One consumer of one queue, or (with `consumer` None) one `get`.

    Once closed it never changes again, which copies of a broker rely on: they share the closed
    ones.
    """

    __slots__ = (
        "channel",
        "consumer",
        "credit",
        "mode",
        "owning_state",
        "pointer",
        "queue",
        "send_lock",
        "state",
    )

    def __init__(
        self,
        *,
        consumer: str | None,
        channel: str,
        queue: str,
        mode: Mode,
        credit: MessageCredit,
        pointer: Pointer,
    ) -> None:
        self.consumer = consumer
        self.channel = channel
        self.queue = queue
        self.mode = mode
        self.credit = credit
        self.pointer = pointer
        self.state = AtomicReference(OPEN)
        self.send_lock = Lock()
        self.owning_state = EntryState(Phase.ACQUIRED, self)

    def __repr__(self) -> str:
        return f"<{self.consumer or 'get'} of {self.queue}, {self.state.value.value}>"

    def is_closed(self) -> bool:
        """Whether it has left its queue."""
        return self.state.get() is CLOSED

    def is_suspended(self) -> bool:
        """Whether it can be given nothing for now: closed, or without room."""
        return self.state.get() is CLOSED or not self.credit.has_credit()

    def has_interest(self, entry: QueueEntry) -> bool:
        """Whether it wants that message at all; without selectors it wants every message."""
        assert entry.message is not None, "a dummy head is never offered"
        return True

    def allocate_credit(self) -> bool:
        """Take room for one message if there is any (the document's `wouldSuspend`, negated)."""
        return not self.mode.uses_credit or self.credit.use()

    def restore_credit(self) -> bool:
        """Give back the room of one message, and say whether that ended a suspension."""
        if not self.mode.uses_credit or self.is_closed():
            return False
        return self.credit.restore()

    def set_limit(self, limit: int | None) -> bool:
        """Replace the window, and say whether that ended a suspension."""
        return self.credit.set_limit(limit)

    def close(self) -> None:
        """Be given nothing from now on; the lock lets a delivery that is under way end first."""
        with self.send_lock:
            self.state.set(CLOSED)
