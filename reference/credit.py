"""Flow control: how many messages a subscription may hold unsettled.

Owns one window and what fills it. Refuses to know who shares it: the documents let all consumers of
one channel share a manager, and a manager does not count them.

Source: Qpid, Message Delivery, section Flow Control; driver protocol 1, rules 3 and 22.
"""

from __future__ import annotations

from brokerproof.reference.atomics import atomic_steps


# The documents' managers are synchronized.
@atomic_steps(reads=("has_credit",), writes=("use", "restore", "set_limit"))
class MessageCredit:
    """A window of messages; a `limit` of None is unlimited, of 0 a pause."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int | None, used: int = 0) -> None:
        assert limit is None or limit >= 0
        assert used >= 0
        self.limit = limit
        self.used = used

    def has_credit(self) -> bool:
        """Whether there is room for one more message."""
        return self.limit is None or self.used < self.limit

    def use(self) -> bool:
        """Take room for one message if there is any."""
        if self.limit is not None and self.used >= self.limit:
            return False
        self.used += 1
        return True

    def restore(self) -> bool:
        """Give back the room of one message, exactly once for each that took it.

        Says whether there was no room and is some now: in the same step, since whoever gives back
        the last of it has to wake those who deliver, and nobody else will.
        """
        assert self.used > 0, "more room given back than was taken"
        had = self.has_credit()
        self.used -= 1
        return self.has_credit() and not had

    def set_limit(self, limit: int | None) -> bool:
        """Replace the window; what is held stays held, and counts against the new window too.

        Says whether there was no room and is some now.
        """
        assert limit is None or limit >= 0
        had = self.has_credit()
        self.limit = limit
        return self.has_credit() and not had
