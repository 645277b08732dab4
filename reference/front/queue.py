"""The interface between the broker's front and a queue of any documented system.

Owns what all queues share: a name, an order, registrations, and deletion. Each system's queue
decides how messages are kept and which consumer is given which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from brokerproof.reference.front.consumers import Consumer, Held
from brokerproof.reference.front.registrations import Registrations
from brokerproof.spec.protocol.answers import QueueDeleted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from brokerproof.reference.front.consumers import Mode, Terms
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.messages import Message, Order
    from brokerproof.spec.protocol.operations import Declare

HeldT = TypeVar("HeldT", bound=Held)
ConsumerT = TypeVar("ConsumerT", bound=Consumer)


class FrontQueue(ABC, Generic[HeldT, ConsumerT]):
    """One queue; every method is the effect of one client operation on it.

    An `auto_delete` queue is deleted with its last consumer; a `durable` one outlives a crash.
    """

    __slots__ = (
        "auto_delete",
        "durable",
        "executor",
        "name",
        "order",
        "outbox",
        "registrations",
    )

    def __init__(self, name: str, order: Order, outbox: Outbox, executor: Executor) -> None:
        self.name = name
        self.order = order
        self.outbox = outbox
        self.executor = executor
        self.auto_delete = False
        self.durable = False
        self.registrations = Registrations()

    @abstractmethod
    def enqueue(self, message: Message, times: Times | None = None) -> None:
        """Add a message."""

    @abstractmethod
    def housekeep(self) -> None:
        """Do the work that is due because time has passed."""

    @abstractmethod
    def new_subscription(self, terms: Terms) -> ConsumerT:
        """Return a consumer of this queue; `subscribe` registers it."""

    @abstractmethod
    def subscribe(self, subscription: ConsumerT, others: Sequence[Self] = ()) -> bool:
        """Register a consumer, which gets the messages present; return whether it was accepted.

        `others` are further queues that it subscribes to, if the system supports that.
        """

    @abstractmethod
    def unsubscribe(self, subscription: ConsumerT) -> bool:
        """Unregister a consumer: it gets nothing more, and keeps the deliveries that it holds."""

    @abstractmethod
    def get(self, channel: str, mode: Mode) -> bool:
        """Deliver at most one message to a `get`; return whether there was one."""

    @abstractmethod
    def flush(self, subscription: ConsumerT) -> None:
        """Give one consumer all that it can be given, before anything else happens."""

    @abstractmethod
    def set_limits(
        self, subscription: ConsumerT, limit: int | None, byte_limit: int | None
    ) -> None:
        """Replace a consumer's window."""

    @abstractmethod
    def credit_restored(self) -> None:
        """Note that a consumer may have room again."""

    @abstractmethod
    def remove(self, entry: HeldT, subscription: ConsumerT) -> None:
        """Settle a delivery whose message was acknowledged or rejected."""

    @abstractmethod
    def release(self, deliveries: Iterable[tuple[HeldT, ConsumerT]]) -> None:
        """Return messages to the queue, each to its place."""

    @abstractmethod
    def purge(self) -> None:
        """Drop the available messages."""

    @abstractmethod
    def drop_everything(self) -> list[ConsumerT]:
        """Drop all messages, acquired ones too, and return the consumers that had to leave."""

    def has_parked_last(self) -> bool:
        """Return whether the last published message waits for room; here it never does."""
        return False

    def come_to_rest(self, *, drained: bool) -> None:
        """Do the work that is due at rest; nothing by default, since all work is done at once.

        After a `drained` rest no work is left.
        """

    def is_declared_as(self, operation: Declare) -> bool:
        """Return whether a declaration asks for a queue like this one."""
        options = self.auto_delete, self.durable
        return self.order == operation.order and options == (
            operation.auto_delete,
            operation.durable,
        )

    def goes(self) -> bool:
        """Return whether it is being deleted, or has been."""
        return self.registrations.going()

    def delete_if_unused(self) -> None:
        """Delete an auto-delete queue after its last consumer has left."""
        if self.auto_delete and self.registrations.shut_if_empty():
            # Remove its name first: no leaving consumer needs to find it any more.
            self.outbox.gone(self)
            self.drop_everything()
            self.outbox.tell(QueueDeleted(queue=self.name))

    def delete(self) -> list[ConsumerT] | None:
        """Delete a queue and return the consumers that left; None if a deletion has begun already.

        The caller makes sure that only one deletion runs at a time.
        """
        return self.drop_everything() if self.registrations.shut() else None


AnyQueue: TypeAlias = "FrontQueue[Any, Any]"
"""A queue of any system. A sent entry always comes back to the queue that sent it, which a type
cannot express."""
