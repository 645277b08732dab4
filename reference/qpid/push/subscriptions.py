"""A subscription: the tie between a consumer and a queue, with its place.

Owns what a consumer of a queue with pointers has besides (`consumers` has the rest): its place,
what it waits at, and which messages it wants. Refuses to know how its place is kept (that is the
pointer's) and who offers it messages (the queue's).

Source: Qpid, Message Delivery, section Subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.front.consumers import Consumer, Mode
from brokerproof.reference.qpid.push.entries import EntryState, Phase, QueueEntry
from brokerproof.reference.shared.atomics import AtomicReference
from brokerproof.reference.shared.selectors import meets

if TYPE_CHECKING:
    from brokerproof.reference.front.credit import Window
    from brokerproof.reference.qpid.push.pointers import Pointer
    from brokerproof.spec.protocol.operations import Selector


class Subscription(Consumer):
    """One consumer of one queue of pointers, or one `get`.

    `awaits` is the entry that it has no room for and waits at. What it has is in its
    `owning_state`; with a `stealable_state`, only while it is sent or settled, and in that one in
    between. One of `auto_close` leaves when nothing is left for it. With a `selector` it wants only
    what meets it.
    """

    __slots__ = (
        "auto_close",
        "awaits",
        "owning_state",
        "pointer",
        "selector",
        "stealable_state",
    )

    def __init__(
        self,
        *,
        consumer: str | None,
        channel: str,
        queue: str,
        mode: Mode,
        credit: Window,
        pointer: Pointer,
        auto_close: bool = False,
        exclusive: bool = False,
        selector: Selector | None = None,
        stealable: bool = False,
    ) -> None:
        super().__init__(
            consumer=consumer,
            channel=channel,
            queue=queue,
            mode=mode,
            credit=credit,
            exclusive=exclusive,
        )
        self.pointer = pointer
        self.auto_close = auto_close
        self.selector = selector
        self.awaits: AtomicReference[QueueEntry | None] = AtomicReference(None)
        self.owning_state = EntryState(Phase.ACQUIRED, self)
        self.stealable_state = (
            EntryState(Phase.ACQUIRED, self, stealable=True) if stealable else None
        )

    def has_interest(self, entry: QueueEntry) -> bool:
        """Whether it wants that message at all; without a selector it wants every message."""
        assert entry.message is not None, "a dummy head is never offered"
        return self.selector is None or meets(entry.message, self.selector)
