"""The consumers that may still join a queue: how many it has, and whether one is exclusive.

Owns the count behind three rules: an exclusive consumer joins only a queue without consumers, no
consumer joins it, and an auto-delete queue ends with its last consumer. Gets are not counted;
browsers are.

Each method is one atomic step. With a check and a separate action, two exclusive consumers could
enter at once, or one could enter a queue that is being deleted.

Source: Qpid, Message Delivery, section Removal, for the last consumer; driver protocol 1, rule 7.
"""

from __future__ import annotations

from brokerproof.reference.shared.atomics import atomic_steps


@atomic_steps(writes=("enter", "leave", "shut", "shut_if_empty"), reads=("going",))
class Registrations:
    """How many consumers a queue has; `alone` says that the only one is exclusive."""

    __slots__ = ("alone", "consumers", "is_shut")

    def __init__(self) -> None:
        self.consumers = 0
        self.alone = False
        self.is_shut = False

    def enter(self, exclusive: bool) -> bool:
        """Register a consumer unless exclusivity or a deletion forbids it; return whether it is."""
        if self.is_shut or self.alone or (exclusive and self.consumers > 0):
            return False
        self.consumers += 1
        self.alone = exclusive
        return True

    def leave(self) -> None:
        """Unregister a consumer; an exclusive one was the only one."""
        assert self.consumers > 0, "only a registered consumer leaves"
        self.consumers -= 1
        self.alone = False

    def shut(self) -> bool:
        """Close the queue for consumers; of several callers, exactly one gets True."""
        was_shut = self.is_shut
        self.is_shut = True
        return not was_shut

    def shut_if_empty(self) -> bool:
        """Close the queue for consumers if it has none; exactly one of several callers succeeds."""
        if self.is_shut or self.consumers > 0:
            return False
        self.is_shut = True
        return True

    def going(self) -> bool:
        """Return whether the queue is being deleted, or has been."""
        return self.is_shut
