"""What the broker's front asks of a queue, whichever documented system it is of.

Owns what all queues have alike: a name, an order, who may still come, and how a queue goes. Refuses
to know how messages are kept and who is given which: each system's queue says that.
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

    from brokerproof.reference.front.consumers import Mode
    from brokerproof.reference.front.credit import Window
    from brokerproof.reference.front.outbox import Executor, Outbox
    from brokerproof.reference.front.storage import Storage
    from brokerproof.reference.shared.clock import Times
    from brokerproof.spec.protocol.messages import Message, Order
    from brokerproof.spec.protocol.operations import Declare, Selector

HeldT = TypeVar("HeldT", bound=Held)
ConsumerT = TypeVar("ConsumerT", bound=Consumer)


class FrontQueue(ABC, Generic[HeldT, ConsumerT]):
    """One queue; every method is what one client operation does to it.

    One of `auto_delete` goes with its last consumer, a `durable` one outlives a crash.
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
        """Take a message in."""

    @abstractmethod
    def housekeep(self) -> None:
        """Do what is due because time has passed."""

    @abstractmethod
    def new_subscription(
        self,
        *,
        consumer: str | None,
        channel: str,
        mode: Mode,
        credit: Window,
        auto_close: bool = False,
        exclusive: bool = False,
        priority: int = 0,
        selector: Selector | None = None,
    ) -> ConsumerT:
        """Return a consumer of this queue; it is registered separately."""

    @abstractmethod
    def subscribe(self, subscription: ConsumerT, others: Sequence[Self] = ()) -> bool:
        """Register a consumer, to be given what is there; say whether it was let in.

        `others` are the queues that it subscribes to as well, where one can do that.
        """

    @abstractmethod
    def unsubscribe(self, subscription: ConsumerT) -> bool:
        """Let a consumer leave; nothing is given to it afterwards, what it holds stays its own."""

    @abstractmethod
    def get(self, channel: str, mode: Mode) -> bool:
        """Deliver at most one message to nobody's consumer; say whether there was one."""

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
        """Note that somebody may have room again."""

    @abstractmethod
    def remove(self, entry: HeldT, subscription: ConsumerT) -> None:
        """Settle a delivery whose message is done with: acknowledged, or rejected."""

    @abstractmethod
    def release(self, deliveries: Iterable[tuple[HeldT, ConsumerT]]) -> None:
        """Return messages to the queue, each to its place."""

    @abstractmethod
    def purge(self) -> None:
        """Drop what is available."""

    @abstractmethod
    def drop_everything(self) -> list[ConsumerT]:
        """Drop all, acquired messages too, and return the consumers that had to leave."""

    def has_parked_last(self) -> bool:
        """Whether the last message that was to be taken in waits for room; here it never does."""
        return False

    def come_to_rest(self, *, drained: bool) -> None:
        """Do what is due when nothing else happens; nothing, where all is done at once.

        What is `drained` has nothing left to do afterwards.
        """

    def move_to(self, storage: Storage) -> None:
        """Be, as a copy, on a copy of the disk; of no concern to a queue without one."""

    def is_declared_as(self, operation: Declare) -> bool:
        """Whether a declaration asks for a queue like this one."""
        options = self.auto_delete, self.durable
        return self.order == operation.order and options == (
            operation.auto_delete,
            operation.durable,
        )

    def goes(self) -> bool:
        """Whether it is being deleted, or has been."""
        return self.registrations.going()

    def delete_if_unused(self) -> None:
        """Delete a queue that goes with its last consumer; after one has left."""
        if self.auto_delete and self.registrations.shut_if_empty():
            # Its name first, since nobody has to find it any more in order to leave.
            self.outbox.gone(self)
            self.drop_everything()
            self.outbox.tell(QueueDeleted(queue=self.name))

    def delete(self) -> list[ConsumerT] | None:
        """Delete a queue, and return the consumers that went with it; None if it goes already.

        Only one deletion is asked for at a time.
        """
        return self.drop_everything() if self.registrations.shut() else None


AnyQueue: TypeAlias = "FrontQueue[Any, Any]"
"""A queue of any system. What was handed out always comes back to the queue that it came from,
which is what a type cannot say."""
