"""The passes of ActiveMQ's queue: when it looks, what wakes it, and that all is given in the end.

Sources: the analysis of ActiveMQ's queue (5.1), and the releases to 5.4.0; the ids are those of
later notes on these releases. The queue, and its room, are those of `cursor_room`.

One pass at a time is made. Where the batch is empty, a pass reads so many new entries at most, and
stops where there is no room or nothing is ahead; then it pages the batch in, and gives what it has
as long as somebody takes it. Duplicates do not count. A pass that has read as much as it may
schedules another. Whatever happens from outside wakes the queue: a message, a settlement, consumers
that come and go, and memory that is given back. Consumers come and go, and the batch is dropped,
only while no pass is made: a lock sees to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.activemq.cursor_room import Channel, Consumer, Cursor, CursorRoom, Message
from brokerproof.models.activemq.cursor_state import IT
from brokerproof.models.activemq.equivalent_mutants import CURSOR_PROGRESS
from brokerproof.models.language import (
    Bool,
    Enumeration,
    Int,
    Map,
    action,
    axiom,
    exists,
    forall,
    implies,
    initial,
    invariant,
    leads_to,
    require,
)
from brokerproof.models.qpid.threads.equivalent_mutants import by_name

__all__ = ["Channel", "Consumer", "Cursor", "CursorProgress", "Message", "Pass"]

IS_GIVEN = "what-is-stored-is-given-where-somebody-takes-it"
A_PAGE = "a-pass-reads-no-more-than-a-page"
NOTHING_LEFT = "where-the-queue-rests-nothing-waits-for-it"
READ_ON = "where-nothing-more-is-to-be-read-there-is-no-room"
IS_READ = "what-is-stored-is-given-where-there-is-room"
IS_WOKEN = "a-queue-that-is-woken-makes-a-pass"


class Pass(Enumeration):
    """What the queue does."""

    RESTS: ClassVar[Pass]
    READS: ClassVar[Pass]
    GIVES: ClassVar[Pass]


class CursorProgress(CursorRoom):
    """A queue that reads and gives in passes, and rests where nobody wakes it."""

    harmless: ClassVar[Mapping[str, str]] = by_name(CURSOR_PROGRESS)

    page: Int

    makes: Map[Cursor, Pass]
    woken: Map[Cursor, Bool]
    counted: Map[Cursor, Int]

    @axiom("a-pass-reads-something")
    def a_page_is_something(self) -> Bool:
        """A pass may read one entry at least."""
        return self.page >= 1

    @initial
    def empty(self) -> None:
        """Nothing has been sent, and nothing has happened."""
        super().empty()
        self.makes.fill(Pass.RESTS)
        self.woken.fill(False)
        self.counted.fill(0)

    # What a pass finds.

    def rests(self) -> Bool:
        """Whether no pass is made."""
        return self.makes[IT] == Pass.RESTS

    def may_read_more(self) -> Bool:
        """Whether the pass has not read as much as it may; duplicates do not count (M-05)."""
        return self.counted[IT] < self.page

    def may_read(self) -> Bool:
        """Whether the cursor looks at the store: in a pass that has not read enough."""
        reads = (self.makes[IT] == Pass.READS) & self.may_read_more()
        return reads & super().may_read()

    def finds_more(self) -> Bool:
        """Whether the next entry is a duplicate, or is new and there is room for it."""
        return ~self.is_empty() & exists(
            Message, lambda m: self.is_next(m) & (self.is_duplicate(m) | self.has_room())
        )

    def has_something_to_give(self) -> Bool:
        """Whether something is paged in and with nobody, and somebody takes it."""
        waits = exists(Message, lambda m: self.waiting[m] | self.returned[m])
        return waits & exists(Consumer, lambda c: self.takes[c])

    # The queue's own steps.

    @action
    def begin(self) -> None:
        """A queue that was woken makes a pass: it reads where its batch is empty."""
        require(self.rests() & self.woken[IT])
        self.woken[IT] = False
        self.counted[IT] = 0
        self.makes[IT] = Pass.READS

    @action
    def read(self, m: Message) -> None:
        """The next entry is new, and there is room: it joins the batch, and counts."""
        super().read(m)
        self.counted[IT] = self.counted[IT] + 1

    @action
    def end_reading(self) -> None:
        """Nothing more is found, or enough was read: then another pass will be made (I8)."""
        require((self.makes[IT] == Pass.READS) & ~(self.may_read_more() & self.finds_more()))
        self.woken[IT] = self.woken[IT] | ~self.may_read_more()
        self.counted[IT] = 0
        self.makes[IT] = Pass.GIVES

    @action
    def page_in(self, m: Message) -> None:
        """The head of the batch is paged in."""
        require(self.makes[IT] == Pass.GIVES)
        super().page_in(m)

    @action
    def give(self, who: Consumer, m: Message) -> None:
        """A consumer is given what is next."""
        require(self.makes[IT] == Pass.GIVES)
        super().give(who, m)

    @action
    def end(self) -> None:
        """The batch is paged in, and given as far as somebody takes it."""
        require((self.makes[IT] == Pass.GIVES) & ~self.has_something_to_give())
        require(forall(Message, lambda m: ~self.batch[m]))
        self.makes[IT] = Pass.RESTS

    @action
    def clear(self) -> None:
        """Memory is short while no pass is made: the batch is dropped, and another pass is made."""
        require(self.rests())
        super().clear()
        self.woken[IT] = True

    # What wakes the queue.

    def _arrives(self, m: Message) -> None:
        super()._arrives(m)
        self.woken[IT] = True

    @action
    def unload(self, m: Message) -> None:
        """Memory is given back."""
        super().unload(m)
        self.woken[IT] = True

    @action
    def acknowledge(self, who: Consumer, m: Message) -> None:
        """A consumer is done with a message."""
        super().acknowledge(who, m)
        self.woken[IT] = True

    @action
    def release(self, who: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        super().release(who, m)
        self.woken[IT] = True

    @action
    def attach(self, who: Consumer) -> None:
        """A consumer comes, between two passes."""
        require(self.rests())
        super().attach(who)
        self.woken[IT] = True

    @action
    def cancel(self, who: Consumer) -> None:
        """A consumer takes no more, from the next pass on."""
        require(self.rests())
        super().cancel(who)

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave between two passes, and all that they hold returns."""
        require(self.rests())
        super().close(which)
        self.woken[IT] = True

    # What holds.

    @invariant(NOTHING_LEFT)
    def nothing_is_left_where_it_rests(self) -> Bool:
        """So what comes about next comes from outside, and wakes it (I8)."""
        takes = exists(Consumer, lambda c: self.takes[c])
        rests = self.rests() & ~self.woken[IT]
        return forall(
            Message,
            lambda m: implies(
                rests, ~self.batch[m] & ~(takes & (self.waiting[m] | self.returned[m]))
            ),
        )

    @invariant(READ_ON)
    def nothing_more_is_found(self) -> Bool:
        """Where a pass has read and scheduled no other, there was no more, or no room (I4, I8)."""
        has_read = (self.makes[IT] != Pass.READS) & ~self.woken[IT] & ~self.is_empty()
        return forall(
            Message,
            lambda m: implies(has_read & self.is_next(m), ~self.is_duplicate(m) & ~self.has_room()),
        )

    @invariant(A_PAGE)
    def no_more_than_a_page(self) -> Bool:
        """A pass reads no more than it may, and counts from nothing."""
        reads = self.makes[IT] == Pass.READS
        return (
            (self.counted[IT] >= 0)
            & (self.counted[IT] <= self.page)
            & (reads | (self.counted[IT] == 0))
        )

    # What comes about.

    @leads_to(
        IS_GIVEN,
        fair=("begin", "read", "pass_over", "end_reading", "page_in", "give", "end", "unload"),
    )
    def stored_is_given(self, m: Message) -> tuple[Bool, Bool]:
        """What nobody holds is given in the end (I7, I8).

        Or nobody takes anything, or a consumer returns what it was given, which goes first then.
        """
        given = exists(Consumer, lambda c: self.holds[c, m] & self.attached[c])
        nobody = forall(Consumer, lambda c: ~self.takes[c])
        returned = exists(Message, lambda n: self.returned[n])
        return self.stored[m] & ~given, given | ~self.stored[m] | nobody | returned

    @leads_to(
        IS_READ,
        fair=("begin", "read", "pass_over", "end_reading", "page_in", "give", "end"),
    )
    def stored_is_read(self, m: Message) -> tuple[Bool, Bool]:
        """As long as there is room it is given without any help: no memory comes back (I8)."""
        premise, conclusion = self.stored_is_given(m)
        return premise & self.has_room(), conclusion | ~self.has_room()

    @leads_to(
        IS_WOKEN,
        fair=("begin", "read", "pass_over", "end_reading", "page_in", "give", "end"),
    )
    def woken_makes_a_pass(self) -> tuple[Bool, Bool]:
        """Every pass comes to its end, unless a consumer keeps it busy with one message (I8)."""
        returned = exists(Message, lambda n: self.returned[n])
        return self.woken[IT], (self.makes[IT] == Pass.READS) | returned
