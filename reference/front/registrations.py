"""Who may still come to a queue: how many consumers it has, and whether one wants to be alone.

Owns the counting that three rules need: an exclusive consumer comes to no others and no others come
to it, and a queue that deletes itself goes with its last consumer. Gets are not counted; browsers
are. Refuses to know the consumers themselves.

Each of its methods is one step, since to look and then to act would let two in at once, or one into
a queue that is just going.

Source: Qpid, Message Delivery, section Removal, for the last consumer; driver protocol 1, rule 7.
"""

from __future__ import annotations

from typing import Self

from brokerproof.reference.shared.atomics import atomic_steps


@atomic_steps(writes=("enter", "leave", "shut", "shut_if_empty"), reads=("going",))
class Registrations:
    """How many consumers a queue has; `alone` says that the one there is exclusive."""

    __slots__ = ("alone", "consumers", "is_shut")

    def __init__(self) -> None:
        self.consumers = 0
        self.alone = False
        self.is_shut = False

    def enter(self, exclusive: bool) -> bool:
        """Let a consumer in unless it or another one wants to be alone; say whether it is in."""
        if self.is_shut or self.alone or (exclusive and self.consumers > 0):
            return False
        self.consumers += 1
        self.alone = exclusive
        return True

    def leave(self) -> None:
        """Note that a consumer has left; if there was one that was alone, it was this one."""
        assert self.consumers > 0, "nobody leaves who has not come"
        self.consumers -= 1
        self.alone = False

    def shut(self) -> bool:
        """Let nobody in any more: the queue goes; one of several who try is told that it did."""
        was_shut = self.is_shut
        self.is_shut = True
        return not was_shut

    def shut_if_empty(self) -> bool:
        """Let nobody in any more if nobody is there; one of several who try is told that it did."""
        if self.is_shut or self.consumers > 0:
            return False
        self.is_shut = True
        return True

    def going(self) -> bool:
        """Whether the queue goes, or has gone."""
        return self.is_shut

    def fork(self) -> Self:
        """Return an independent copy."""
        copy = object.__new__(type(self))
        copy.consumers = self.consumers
        copy.alone = self.alone
        copy.is_shut = self.is_shut
        return copy
