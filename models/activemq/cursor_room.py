"""ActiveMQ's queue with a limited room in memory, and a count of pending messages.

Sources and ids are those of `cursor_page_in`. This model decides what that one leaves open: memory
has room for a fixed number of messages of one size. The batch takes room, and so do paged-in
messages, unless their content was unloaded: it can be read again by its id. The cursor counts
stored messages that are not paged in, and does not look at the store if the count is 0. Different
sizes and shared limits are in `cursor_memory`.
"""

from __future__ import annotations

from brokerproof.models.activemq.cursor_page_in import Channel, Consumer, CursorPageIn, Message
from brokerproof.models.language import (
    Bool,
    Int,
    Map,
    Value,
    action,
    axiom,
    counts,
    implies,
    initial,
    invariant,
    ite,
    not_negative,
    require,
)

__all__ = ["Channel", "Consumer", "CursorRoom", "Message", "window"]

WITHIN = "no-more-is-in-memory-than-there-is-room-for"
LOADED = "what-has-its-content-in-memory-is-paged-in"


def window(messages: int, *, words: int, bits: int) -> tuple[int, ...]:
    """Return `slides` for a scope: ids from 1 on, and an audit of `words` words of `bits` bits.

    >>> window(4, words=2, bits=2)[12:]
    (1, 0, 0, 0)
    """
    ids = range(1, messages + 1)
    return tuple(int(n // bits < m // bits - words + 1) for m in ids for n in ids)


class CursorRoom(CursorPageIn):
    """A queue whose cursor has room for `capacity` messages, and counts the pending ones."""

    capacity: Int

    loaded: Map[Message, Bool]
    in_batch: Value[Int]
    in_pages: Value[Int]
    pending: Value[Int]

    @axiom("there-may-be-no-room-but-not-less")
    def capacity_is_not_negative(self) -> Bool:
        """The capacity is at least 0; a queue without room reads nothing."""
        return self.capacity >= 0

    @initial
    def empty(self) -> None:
        """No message has been sent."""
        super().empty()
        self.loaded.fill(False)
        self.in_batch = self.in_pages = self.pending = 0

    @counts("in_batch")
    def is_in_batch(self, m: Message) -> Bool:
        """The batch takes as much room as it has messages."""
        return self.batch[m]

    @counts("in_pages")
    def is_loaded(self, m: Message) -> Bool:
        """Paged-in messages take as much room as they have contents in memory."""
        return self.loaded[m]

    @counts("pending")
    def is_pending(self, m: Message) -> Bool:
        """The cursor's size is the number of stored messages that are not paged in (I6)."""
        return self.stored[m] & ~self.paged[m]

    def has_room(self) -> Bool:
        """Whether there is room for one more message, before it is added (I17)."""
        return self.in_batch + self.in_pages < self.capacity

    def is_empty(self) -> Bool:
        """Whether the cursor takes itself for empty; it never counts below 0."""
        return self.pending <= 0

    def may_read(self) -> Bool:
        """Whether the cursor looks at the store: whenever its count is above 0."""
        return ~self.is_empty()

    # Arrivals and reads.

    @action
    def send_cached(self, m: Message) -> None:
        """A message arrives and joins the batch: the cache is on and there is room."""
        require(self.has_room())
        super().send_cached(m)

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room: the cache ends, and its last entry is the position."""
        require(~self.has_room())
        super().send_past_cache(m, cached)

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room, and the message cached last is gone: there is no position."""
        require(~self.has_room())
        super().send_past_nothing(m)

    def _arrives(self, m: Message) -> None:
        super()._arrives(m)
        self.pending += 1

    def _joins_batch(self, m: Message) -> None:
        super()._joins_batch(m)
        self.in_batch += 1

    @action
    def read(self, m: Message) -> None:
        """The next entry is new, and there is room: it joins the batch."""
        require(self.has_room() & self.may_read())
        super().read(m)

    @action
    def pass_over(self, m: Message) -> None:
        """The next entry is a duplicate, and stays where it is."""
        require(self.may_read())
        super().pass_over(m)

    @action
    def clear(self) -> None:
        """Memory is short: the batch is dropped, and the next read starts over."""
        not_negative(self.in_batch)
        super().clear()

    def _clears(self) -> None:
        super()._clears()
        self.in_batch = 0

    # Memory of paged-in messages.

    @action
    def page_in(self, m: Message) -> None:
        """The head of the batch is paged in, with its content."""
        super().page_in(m)
        self.loaded[m] = True
        self.in_batch -= 1
        self.in_pages += 1
        self.pending -= 1

    @action
    def unload(self, m: Message) -> None:
        """The content of a paged-in message leaves memory: it can be read again by its id."""
        require(self.loaded[m])
        self._unloads(m)

    def _unloads(self, m: Message) -> None:
        self.in_pages = ite(self.loaded[m], self.in_pages - 1, self.in_pages)
        self.loaded[m] = False

    def _ends(self, m: Message) -> None:
        super()._ends(m)
        self._unloads(m)

    # Invariants.

    @invariant(LOADED)
    def loaded_is_paged(self, m: Message) -> Bool:
        """Only paged-in messages have a content in memory: settled ones take no room (I15)."""
        return implies(self.loaded[m], self.paged[m])

    @invariant(WITHIN)
    def memory_is_within(self) -> Bool:
        """The messages in memory fit its capacity: room is checked before each addition (I17)."""
        return self.in_batch + self.in_pages <= self.capacity


CursorRoom.equivalent_mutants = """
A cache that ends early, or does not begin again, costs only reads of the store.
    send_past_cache: guard 1*2; send_past_nothing: guard 1*2
A look finds nothing if no message is pending.
    read: guard 1*2; pass_over: guard 1*2
An unloaded content takes no room, so it gives none back.
    unload: guard 1
"""
