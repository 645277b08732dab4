"""Flow control: how much a subscription, and a whole channel, may hold unsettled.

Owns windows of messages and bytes, and what fills them. Each subscription has its own window; the
consumers of one channel may share another, as the documents say of AMQP 0-8 and 0-9. Does not know
entries and pointers: `restore` says whether it made room, and its caller wakes the deliverers.

A message larger than a whole window of bytes goes to an empty window (Qpid's manager for the
protocols before 0-10); otherwise it would never be delivered. Source: Qpid, Message Delivery,
section Flow Control; driver protocol 1, rules 3, 5 and 22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from brokerproof.reference.shared.atomics import atomic_steps
from brokerproof.spec.messages import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Hashable


def is_window(*limits: int | None) -> bool:
    """Return whether a window can have these limits."""
    return all(limit is None or 0 <= limit <= NUMBER_MAX for limit in limits)


# The documents' managers are synchronized.
@atomic_steps(
    reads=("has_credit", "is_paused", "lets_through", "usage"),
    writes=("use", "restore", "set_limits"),
)
class Window:
    """A window of messages and bytes. A limit of None is unlimited; a limit of 0 pauses."""

    __slots__ = ("byte_limit", "limit", "used", "used_bytes")

    def __init__(
        self,
        limit: int | None,
        byte_limit: int | None = None,
        *,
        used: int = 0,
        used_bytes: int = 0,
    ) -> None:
        assert used >= 0
        assert used_bytes >= 0
        self.used = used
        self.used_bytes = used_bytes
        self._replace(limit, byte_limit)

    def has_credit(self) -> bool:
        """Return whether there is room for one more message without a body."""
        return self._has_messages() and self._has_bytes(0)

    def is_paused(self) -> bool:
        """Return whether nothing may pass, not even deliveries that fill no window."""
        return self.limit == 0 or self.byte_limit == 0

    def lets_through(self, size: int) -> bool:
        """Return whether a message of `size` bytes may pass without filling the window."""
        if self.limit == 0:
            return False
        return self.byte_limit is None or 0 < self.byte_limit >= size

    def use(self, size: int) -> bool:
        """Take room for one message of `size` bytes if there is any."""
        if not (self._has_messages() and self._has_bytes(size)):
            return False
        self.used += 1
        self.used_bytes += size
        return True

    def restore(self, size: int) -> bool:
        """Give back the room of one message, exactly once for each message that took it.

        Returns whether a message may pass now that could not before. The answer belongs to the same
        step: the caller that gives back the last room is the only one to wake the deliverers. With
        a limit of bytes, any returned byte may be enough for a waiting message.
        """
        assert self.used > 0, "more room given back than was taken"
        assert self.used_bytes >= size, "more bytes given back than were taken"
        had = self.has_credit()
        self.used -= 1
        self.used_bytes -= size
        return self.has_credit() and (not had or self.byte_limit is not None)

    def set_limits(self, limit: int | None, byte_limit: int | None) -> bool:
        """Replace the window; held messages count against the new window too.

        Returns whether a message may pass now that could not before. A full window lets through
        what does not fill it, unless it is paused.
        """
        had, paused, bytes_before = self.has_credit(), self.is_paused(), self.byte_limit
        self._replace(limit, byte_limit)
        if self.has_credit() and not had:
            return True
        return not self.is_paused() and (paused or byte_limit != bytes_before)

    def usage(self) -> tuple[int, int]:
        """Return the number of held messages, and their bytes."""
        return self.used, self.used_bytes

    def _replace(self, limit: int | None, byte_limit: int | None) -> None:
        assert limit is None or limit >= 0
        assert byte_limit is None or byte_limit >= 0
        self.limit = limit
        self.byte_limit = byte_limit

    def _has_messages(self) -> bool:
        return self.limit is None or self.used < self.limit

    def _has_bytes(self, size: int) -> bool:
        if self.byte_limit is None:
            return True
        fits = self.used == 0 or self.used_bytes + size <= self.byte_limit
        return fits and self.byte_limit > 0


class Served(Protocol):
    """A queue, as flow control sees it."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def credit_restored(self) -> None:
        """Deliver messages that may have been waiting for room."""
        ...


class _Share:
    """The deliveries that one consumer of a channel holds, and their queue."""

    __slots__ = ("queue", "used", "used_bytes")

    def __init__(self, queue: Served, used: int, used_bytes: int) -> None:
        self.queue = queue
        self.used = used
        self.used_bytes = used_bytes


@atomic_steps(
    reads=("has_credit", "is_paused", "lets_through", "queues"),
    writes=("use", "take_back", "replace", "join", "forget"),
)
class ChannelWindow:
    """The one window that all consumers of a channel share; it counts each consumer's part.

    A consumer that has left no longer fills it, even with unsettled deliveries. When a message may
    pass that could not before, the queues of all sharing consumers are woken: any may have waited.
    """

    __slots__ = ("shares", "window")

    def __init__(self) -> None:
        self.window = Window(None)
        self.shares: dict[str, _Share] = {}

    def has_credit(self) -> bool:
        """Whether there may be room for one more message."""
        return self.window.has_credit()

    def is_paused(self) -> bool:
        """Return whether nothing at all may pass."""
        return self.window.is_paused()

    def lets_through(self, size: int) -> bool:
        """Return whether a message of `size` bytes may pass without filling the window."""
        return self.window.lets_through(size)

    def use(self, consumer: str, size: int) -> bool:
        """Take room for one message to `consumer`, if there is any."""
        if not self.window.use(size):
            return False
        share = self.shares[consumer]
        share.used += 1
        share.used_bytes += size
        return True

    def restore(self, consumer: str, size: int) -> None:
        """Give back the room of one message of `consumer`, unless the consumer has left."""
        if self.take_back(consumer, size):
            self._wake()

    def set_limits(self, limit: int | None, byte_limit: int | None) -> None:
        """Replace the window."""
        if self.replace(limit, byte_limit):
            self._wake()

    def leave(self, consumer: str) -> None:
        """Remove a consumer that has left; its deliveries no longer fill the window."""
        if self.forget(consumer):
            self._wake()

    def take_back(self, consumer: str, size: int) -> bool:
        """Subtract one settled message; return whether a message may pass now."""
        share = self.shares.get(consumer)
        if share is None:
            return False
        share.used -= 1
        share.used_bytes -= size
        return self.window.restore(size)

    def replace(self, limit: int | None, byte_limit: int | None) -> bool:
        """Replace the limits; return whether a message may pass now."""
        return self.window.set_limits(limit, byte_limit)

    def join(self, consumer: str, queue: Served, used: int, used_bytes: int) -> None:
        """Add a consumer with the deliveries that it holds already."""
        assert consumer not in self.shares, "a consumer shares a window once"
        self.shares[consumer] = _Share(queue, used, used_bytes)
        self.window.used += used
        self.window.used_bytes += used_bytes

    def forget(self, consumer: str) -> bool:
        """Subtract all that a consumer holds; return whether a message may pass now."""
        share = self.shares.pop(consumer, None)
        if share is None or share.used == 0:
            return False
        self.window.used -= share.used
        self.window.used_bytes -= share.used_bytes
        return self.window.has_credit()

    def queues(self) -> list[Served]:
        """Return the queues of the sharing consumers, each once, in order of joining."""
        return list({share.queue.name: share.queue for share in self.shares.values()}.values())

    def _wake(self) -> None:
        for queue in self.queues():
            queue.credit_restored()

    def fingerprint(self) -> Hashable:
        """Return the limits and the sharing consumers: what each holds is in its own window."""
        return self.window.limit, self.window.byte_limit, tuple(self.shares)
