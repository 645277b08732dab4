"""Flow control: how much a subscription may hold unsettled, and what a whole channel may.

Owns windows, of messages and of bytes, and what fills them. A subscription has a window of its own;
beside it the consumers of one channel share one instance, as the documents say of AMQP 0-8 and 0-9.
Refuses to know entries and pointers: who gives room back is told whether that made room, and has to
wake those who deliver.

A message that is larger than a whole window of bytes goes to one of which nothing is used (Qpid's
manager for the protocols before 0-10), since it would never go otherwise.

Source: Qpid, Message Delivery, section Flow Control; driver protocol 1, rules 3, 5 and 22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

from brokerproof.reference.shared.atomics import atomic_steps
from brokerproof.spec.protocol.messages import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


def is_window(*limits: int | None) -> bool:
    """Whether there can be a window with these limits."""
    return all(limit is None or 0 <= limit <= NUMBER_MAX for limit in limits)


# The documents' managers are synchronized.
@atomic_steps(
    reads=("has_credit", "is_paused", "lets_through", "usage"),
    writes=("use", "restore", "set_limits"),
)
class Window:
    """A window of messages and of bytes; a limit of None is unlimited, of 0 a pause."""

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
        """Whether there may be room for one more message: for one without a body there is."""
        return self._has_messages() and self._has_bytes(0)

    def is_paused(self) -> bool:
        """Whether nothing at all may pass, not even what fills no window."""
        return self.limit == 0 or self.byte_limit == 0

    def lets_through(self, size: int) -> bool:
        """Whether a message of `size` bytes may pass that will not fill the window."""
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
        """Give back the room of one message, exactly once for each that took it.

        Says whether something may pass now that could not before: in the same step, since whoever
        gives back the last of it has to wake those who deliver, and nobody else will. Of bytes any
        more may be enough for a message that waits.
        """
        assert self.used > 0, "more room given back than was taken"
        assert self.used_bytes >= size, "more bytes given back than were taken"
        had = self.has_credit()
        self.used -= 1
        self.used_bytes -= size
        return self.has_credit() and (not had or self.byte_limit is not None)

    def set_limits(self, limit: int | None, byte_limit: int | None) -> bool:
        """Replace the window; what is held stays held, and counts against the new window too.

        Says whether something may pass now that could not before.
        """
        had, bytes_before = self.has_credit(), self.byte_limit
        self._replace(limit, byte_limit)
        return self.has_credit() and (not had or byte_limit != bytes_before)

    def usage(self) -> tuple[int, int]:
        """Return how many messages are held, and how many bytes."""
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
    """A queue, as far as flow control knows one."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def credit_restored(self) -> None:
        """Deliver what may have been waiting for room."""
        ...


class _Share:
    """What one consumer of a channel holds, and from which queue."""

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
    """The one window that all consumers of a channel share; what each of them holds is known.

    Who has left fills it no longer, whatever is still unsettled. Whenever something may pass that
    could not before, the queues of all sharers are told: any of them may have been waiting.
    """

    __slots__ = ("shares", "window")

    def __init__(self) -> None:
        self.window = Window(None)
        self.shares: dict[str, _Share] = {}

    def has_credit(self) -> bool:
        """Whether there may be room for one more message."""
        return self.window.has_credit()

    def is_paused(self) -> bool:
        """Whether nothing at all may pass."""
        return self.window.is_paused()

    def lets_through(self, size: int) -> bool:
        """Whether a message of `size` bytes may pass that will not fill the window."""
        return self.window.lets_through(size)

    def use(self, consumer: str, size: int) -> bool:
        """Take room for one message that goes to `consumer`, if there is any."""
        if not self.window.use(size):
            return False
        share = self.shares[consumer]
        share.used += 1
        share.used_bytes += size
        return True

    def restore(self, consumer: str, size: int) -> None:
        """Give back the room of one message of `consumer`, if it has not left."""
        if self.take_back(consumer, size):
            self._wake()

    def set_limits(self, limit: int | None, byte_limit: int | None) -> None:
        """Replace the window."""
        if self.replace(limit, byte_limit):
            self._wake()

    def leave(self, consumer: str) -> None:
        """Forget what a consumer holds: it has left, and that is in nobody's window any more."""
        if self.forget(consumer):
            self._wake()

    def take_back(self, consumer: str, size: int) -> bool:
        """Note that a message is no longer held; say whether something may pass now."""
        share = self.shares.get(consumer)
        if share is None:
            return False
        share.used -= 1
        share.used_bytes -= size
        return self.window.restore(size)

    def replace(self, limit: int | None, byte_limit: int | None) -> bool:
        """Replace the limits; say whether something may pass now."""
        return self.window.set_limits(limit, byte_limit)

    def join(self, consumer: str, queue: Served, used: int, used_bytes: int) -> None:
        """Let a consumer share, with what it holds already."""
        assert consumer not in self.shares, "a consumer shares a window once"
        self.shares[consumer] = _Share(queue, used, used_bytes)
        self.window.used += used
        self.window.used_bytes += used_bytes

    def forget(self, consumer: str) -> bool:
        """Take back all that a consumer holds; say whether something may pass now."""
        share = self.shares.pop(consumer, None)
        if share is None or share.used == 0:
            return False
        self.window.used -= share.used
        self.window.used_bytes -= share.used_bytes
        return self.window.has_credit()

    def queues(self) -> list[Served]:
        """Return the queues of those who share, each once, in the order in which they came."""
        return list({share.queue.name: share.queue for share in self.shares.values()}.values())

    def _wake(self) -> None:
        for queue in self.queues():
            queue.credit_restored()

    def fork(self, queues: Mapping[str, Served]) -> Self:
        """Return a copy for copies of the queues, by their names."""
        copy = object.__new__(type(self))
        window = self.window
        copy.window = Window(
            window.limit, window.byte_limit, used=window.used, used_bytes=window.used_bytes
        )
        copy.shares = {
            consumer: _Share(queues[share.queue.name], share.used, share.used_bytes)
            for consumer, share in self.shares.items()
        }
        return copy

    def fingerprint(self) -> Hashable:
        """Return the limits, and who shares them: what each holds is in its own window."""
        return self.window.limit, self.window.byte_limit, tuple(self.shares)
