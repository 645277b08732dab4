"""ActiveMQ's queue with its room counted: so many messages in memory, and so many still to come.

Sources and ids are those of `cursor_page_in`, whose queue this is, with what is left open there
decided: there is room for so many messages, all of one size. The batch takes room, and so does what
is paged in, unless its content was given up: it can be read again by its id. The cursor counts what
is stored and not paged in, and where that is nothing it does not look.

Sizes that differ, and limits that others share, are `cursor_memory`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.activemq.cursor_page_in import (
    Channel,
    Consumer,
    Cursor,
    CursorPageIn,
    Message,
)
from brokerproof.models.activemq.cursor_state import IT
from brokerproof.models.activemq.equivalent_mutants import CURSOR_ROOM
from brokerproof.models.language import (
    Bool,
    Int,
    Map,
    action,
    axiom,
    counts,
    forall,
    implies,
    initial,
    invariant,
    ite,
    not_negative,
    require,
)
from brokerproof.models.qpid.threads.equivalent_mutants import by_name

__all__ = ["Channel", "Consumer", "Cursor", "CursorRoom", "Message", "window"]

WITHIN = "no-more-is-in-memory-than-there-is-room-for"
LOADED = "what-has-its-content-in-memory-is-paged-in"


def window(messages: int, *, words: int, bits: int) -> tuple[int, ...]:
    """Return `slides` for a scope: ids from 1 on, and an audit of so many words of so many bits.

    >>> window(4, words=2, bits=2)[12:]
    (1, 0, 0, 0)
    """
    ids = range(1, messages + 1)
    return tuple(int(n // bits < m // bits - words + 1) for m in ids for n in ids)


class CursorRoom(CursorPageIn):
    """A queue whose cursor has room for so many messages, and counts what is still to come."""

    harmless: ClassVar[Mapping[str, str]] = by_name(CURSOR_ROOM)

    capacity: Int

    loaded: Map[Message, Bool]
    in_batch: Map[Cursor, Int]
    in_pages: Map[Cursor, Int]
    pending: Map[Cursor, Int]

    @axiom("there-may-be-no-room-but-not-less")
    def capacity_is_not_negative(self) -> Bool:
        """A queue without any room reads nothing."""
        return self.capacity >= 0

    @initial
    def empty(self) -> None:
        """Nothing has been sent."""
        super().empty()
        self.loaded.fill(False)
        for number in (self.in_batch, self.in_pages, self.pending):
            number.fill(0)

    @counts("in_batch")
    def is_in_batch(self, it: Cursor, m: Message) -> Bool:
        """The batch takes as much room as it has messages."""
        return (it == IT) & self.batch[m]

    @counts("in_pages")
    def is_loaded(self, it: Cursor, m: Message) -> Bool:
        """What is paged in takes as much as it has contents in memory."""
        return (it == IT) & self.loaded[m]

    @counts("pending")
    def is_pending(self, it: Cursor, m: Message) -> Bool:
        """The cursor's size is what is stored and not paged in (I6)."""
        return (it == IT) & self.stored[m] & ~self.paged[m]

    def has_room(self) -> Bool:
        """Whether there is room for a message more, before it is added (I17)."""
        return self.in_batch[IT] + self.in_pages[IT] < self.capacity

    def is_empty(self) -> Bool:
        """Whether the cursor takes itself for empty: it never counts less than nothing."""
        return self.pending[IT] <= 0

    def may_read(self) -> Bool:
        """Whether the cursor looks at the store: whenever there may be something."""
        return ~self.is_empty()

    # Arriving and reading.

    @action
    def send_cached(self, m: Message) -> None:
        """A message arrives; the cache is on and there is room: it joins the batch."""
        require(self.has_room())
        super().send_cached(m)

    @action
    def send_past_cache(self, m: Message, cached: Message) -> None:
        """A message finds no room: the cache ends, and its last entry is the position."""
        require(~self.has_room())
        super().send_past_cache(m, cached)

    @action
    def send_past_nothing(self, m: Message) -> None:
        """A message finds no room, and the last that was cached is gone: there is no position."""
        require(~self.has_room())
        super().send_past_nothing(m)

    def _arrives(self, m: Message) -> None:
        super()._arrives(m)
        self.pending[IT] = self.pending[IT] + 1

    def _joins_batch(self, m: Message) -> None:
        super()._joins_batch(m)
        self.in_batch[IT] = self.in_batch[IT] + 1

    @action
    def read(self, m: Message) -> None:
        """The next entry is new, and there is room: it joins the batch."""
        require(self.has_room() & self.may_read())
        super().read(m)

    @action
    def pass_over(self, m: Message) -> None:
        """The next entry is a duplicate, and left where it is."""
        require(self.may_read())
        super().pass_over(m)

    @action
    def clear(self) -> None:
        """Memory is short: the batch is dropped, and the next read starts over."""
        not_negative(self.in_batch)
        super().clear()

    def _clears(self) -> None:
        super()._clears()
        self.in_batch[IT] = 0

    # Memory of what is paged in.

    @action
    def page_in(self, m: Message) -> None:
        """The head of the batch is paged in, with its content."""
        super().page_in(m)
        self.loaded[m] = True
        self.in_batch[IT] = self.in_batch[IT] - 1
        self.in_pages[IT] = self.in_pages[IT] + 1
        self.pending[IT] = self.pending[IT] - 1

    @action
    def unload(self, m: Message) -> None:
        """The content of what is paged in leaves memory: it can be read again by its id."""
        require(self.loaded[m])
        self._unloads(m)

    def _unloads(self, m: Message) -> None:
        self.in_pages[IT] = ite(self.loaded[m], self.in_pages[IT] - 1, self.in_pages[IT])
        self.loaded[m] = False

    def _ends(self, m: Message) -> None:
        super()._ends(m)
        self._unloads(m)

    # What holds.

    @invariant(LOADED)
    def loaded_is_paged(self) -> Bool:
        """What consumers are done with takes no room (I15)."""
        return forall(Message, lambda m: implies(self.loaded[m], self.paged[m]))

    @invariant(WITHIN)
    def memory_is_within(self) -> Bool:
        """Room is asked for before a message is added, and not after (I17)."""
        return self.in_batch[IT] + self.in_pages[IT] <= self.capacity
