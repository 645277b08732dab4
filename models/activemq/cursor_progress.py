"""The passes of ActiveMQ's queue: what wakes it, and why every message is given in the end.

Sources: the analysis of ActiveMQ's queue (5.1), and the releases to 5.4.0; the ids are those of
later notes on these releases. The queue and its room are those of `cursor_room`.

The queue makes one pass at a time. If the batch is empty, a pass reads at most a page of new
entries, and stops without room or at the end of the store. It then pages the batch in and gives
messages while a consumer takes them. Duplicates do not count. A pass that has read a full page
schedules another one. Messages, settlements, arriving and leaving consumers and freed memory wake
the queue. Under a lock, consumers come and go, and the batch is dropped, only between passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from brokerproof.models.activemq.cursor_room import (
    Channel,
    Consumer,
    CursorRoom,
    Message,
)
from brokerproof.models.language import (
    TRUE,
    Bool,
    Enumeration,
    Int,
    Part,
    Value,
    action,
    axiom,
    elements,
    empty_at_zero,
    exists,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    least,
    ranked,
    require,
)
from brokerproof.models.language.core.terms import integer

__all__ = ["Channel", "Consumer", "CursorProgress", "Message", "Pass"]

IS_GIVEN = "what-is-stored-is-given-where-a-consumer-takes-it"
A_PAGE = "a-pass-reads-no-more-than-a-page"
NOTHING_LEFT = "where-the-queue-rests-nothing-waits-for-it"
READ_ON = "where-nothing-more-is-to-be-read-there-is-no-room"
IS_READ = "what-is-stored-is-given-where-there-is-room"
IS_WOKEN = "a-queue-that-is-woken-makes-a-pass"


class Pass(Enumeration):
    """What the queue does at the moment."""

    RESTS: ClassVar[Pass]
    READS: ClassVar[Pass]
    GIVES: ClassVar[Pass]


class CursorProgress(CursorRoom):
    """A queue that reads and gives in passes, and rests until it is woken."""

    page: Int

    makes: Value[Pass]
    woken: Value[Bool]
    counted: Value[Int]

    @axiom("a-pass-reads-something")
    def a_page_is_something(self) -> Bool:
        """A pass may read at least one entry."""
        return self.page >= 1

    @initial
    def empty(self) -> None:
        """No message has been sent, and the queue rests."""
        super().empty()
        self.makes = Pass.RESTS
        self.woken = False
        self.counted = 0

    # Terms of a pass.

    def rests(self) -> Bool:
        """Whether the queue is between passes."""
        return self.makes == Pass.RESTS

    def may_read_more(self) -> Bool:
        """Whether the pass has read less than a page; duplicates do not count (M-05)."""
        return self.counted < self.page

    def may_read(self) -> Bool:
        """Whether the cursor looks at the store: in a pass that has read less than a page."""
        reads = (self.makes == Pass.READS) & self.may_read_more()
        return reads & super().may_read()

    def finds_more(self) -> Bool:
        """Whether the next entry is a duplicate, or there is room for it."""
        return ~self.is_empty() & exists(
            Message, lambda m: self.is_next(m) & (self.is_duplicate(m) | self.has_room())
        )

    def has_something_to_give(self) -> Bool:
        """Whether a paged-in message has no holder, and a consumer takes messages."""
        waits = exists(Message, lambda m: self.waiting[m] | self.returned[m])
        return waits & exists(Consumer, lambda c: self.takes[c])

    # The queue's own steps.

    @action
    def begin(self) -> None:
        """A woken queue begins a pass; the pass reads if the batch is empty."""
        require(self.rests() & self.woken)
        self.woken = False
        self.counted = 0
        self.makes = Pass.READS

    @action
    def read(self, m: Message) -> None:
        """The next entry is new, and there is room: it joins the batch, and counts."""
        super().read(m)
        self.counted += 1

    @action
    def end_reading(self) -> None:
        """The reading ends: no entry, no room, or a full page, which schedules a pass (I8)."""
        require((self.makes == Pass.READS) & ~(self.may_read_more() & self.finds_more()))
        self.woken = self.woken | ~self.may_read_more()
        self.counted = 0
        self.makes = Pass.GIVES

    @action
    def page_in(self, m: Message) -> None:
        """The head of the batch is paged in."""
        require(self.makes == Pass.GIVES)
        super().page_in(m)

    @action
    def give(self, consumer: Consumer, m: Message) -> None:
        """A consumer is given the next message."""
        require(self.makes == Pass.GIVES)
        super().give(consumer, m)

    @action
    def end(self) -> None:
        """The pass ends: the batch is paged in, and no message is left that a consumer takes."""
        require((self.makes == Pass.GIVES) & ~self.has_something_to_give())
        require(forall(Message, lambda m: ~self.batch[m]))
        self.makes = Pass.RESTS

    @action
    def clear(self) -> None:
        """Memory is short between passes: the batch is dropped, and another pass is scheduled."""
        require(self.rests())
        super().clear()
        self.woken = True

    # Events that wake the queue.

    def _arrives(self, m: Message) -> None:
        super()._arrives(m)
        self.woken = True

    @action
    def unload(self, m: Message) -> None:
        """A content leaves memory."""
        super().unload(m)
        self.woken = True

    @action
    def acknowledge(self, consumer: Consumer, m: Message) -> None:
        """A consumer acknowledges a message."""
        super().acknowledge(consumer, m)
        self.woken = True

    @action
    def release(self, consumer: Consumer, m: Message) -> None:
        """A consumer returns a message."""
        super().release(consumer, m)
        self.woken = True

    @action
    def attach(self, consumer: Consumer) -> None:
        """A consumer attaches between two passes."""
        require(self.rests())
        super().attach(consumer)
        self.woken = True

    @action
    def cancel(self, consumer: Consumer) -> None:
        """A consumer takes no more, from the next pass on."""
        require(self.rests())
        super().cancel(consumer)

    @action
    def close(self, which: Channel) -> None:
        """The consumers of a channel leave between two passes, and their messages are returned."""
        require(self.rests())
        super().close(which)
        self.woken = True

    # Invariants.

    @invariant(NOTHING_LEFT)
    def nothing_is_left_where_it_rests(self, m: Message) -> Bool:
        """At rest, no message can be paged in or given until an event from outside (I8)."""
        takes = exists(Consumer, lambda c: self.takes[c])
        rests = self.rests() & ~self.woken
        return implies(rests, ~self.batch[m] & ~(takes & (self.waiting[m] | self.returned[m])))

    @invariant(READ_ON)
    def nothing_more_is_found(self, m: Message) -> Bool:
        """After the reading, if no pass is scheduled, the store ended or room did (I4, I8)."""
        has_read = (self.makes != Pass.READS) & ~self.woken & ~self.is_empty()
        return implies(has_read & self.is_next(m), ~self.is_duplicate(m) & ~self.has_room())

    @invariant(A_PAGE)
    def no_more_than_a_page(self) -> Bool:
        """A pass reads at most a page, and counts from 0."""
        reads = self.makes == Pass.READS
        return (self.counted >= 0) & (self.counted <= self.page) & (reads | (self.counted == 0))

    # Liveness.

    @leads_to(
        IS_GIVEN,
        fair=("begin", "read", "pass_over", "end_reading", "page_in", "give", "end", "unload"),
    )
    def stored_is_given(self, m: Message) -> tuple[Bool, Bool]:
        """A stored message without a holder is given in the end (I7, I8).

        The exceptions: there is no room in memory for any message, no consumer takes messages, or a
        consumer returns one, which then goes first.
        """
        self.ranked_up_to(m, unload=lambda _: self.is_stuck(m))
        given = exists(Consumer, lambda c: self.holds[c, m] & self.attached[c])
        all_pause = forall(Consumer, lambda c: ~self.takes[c])
        one_came_back = exists(Message, lambda n: self.returned[n])
        waits = self.stored[m] & ~given & (self.capacity > 0)
        is_settled = ~self.stored[m]
        return waits, given | is_settled | all_pause | one_came_back

    @leads_to(IS_READ, fair=("begin", "read", "pass_over", "end_reading", "page_in", "give", "end"))
    def stored_is_read(self, m: Message) -> tuple[Bool, Bool]:
        """While there is room, a stored message is given even if no memory is freed (I8)."""
        premise, conclusion = self.stored_is_given(m)
        self.ranked_up_to(m)
        return premise & self.has_room(), conclusion | ~self.has_room()

    def is_stuck(self, m: Message) -> Bool:
        """Whether the message is unread, and there is no room to read any."""
        return self.is_unread(m) & ~self.has_room()

    def ranked_up_to(self, m: Message, **more: Callable[[Message], Bool]) -> None:
        """Rank what the queue still has to do up to this message.

        Each pass that finds it unread reads at least one entry, and pages in all that it has read.
        Between two passes the batch loses only messages that were cached there. Without room the
        batch is paged in, and then memory loses a content.
        """

        def among_stored(members: Callable[[Message], Bool]) -> Part:
            return elements(Message, members, within=lambda n: self.stored[n])

        def up_to_it(members: Callable[[Message], Bool]) -> Part:
            return among_stored(lambda n: members(n) & self.at_or_before(n, m))

        least(self.before, lambda n: self.stored[n] & ~self.behind[n])
        least(self.before, lambda n: self.batch[n])
        least(self.before, lambda n: self.waiting[n])
        empty_at_zero(self.pending, Message, self.is_pending)
        empty_at_zero(self.in_batch, Message, self.is_in_batch)
        empty_at_zero(self.in_pages, Message, self.is_loaded)
        unread = self.is_unread(m)
        stuck = self.is_stuck(m)
        full = stuck & exists(Message, lambda n: self.loaded[n])
        reads = (self.makes == Pass.READS) & ~full
        gives = self.makes == Pass.GIVES
        has_read = reads & (self.counted > 0)
        room = self.capacity - self.in_batch - self.in_pages
        in_a_pass = ite(has_read, integer(4), ite(gives, integer(3), ite(reads, integer(1), 2)))
        to_a_gift = ite(self.rests(), integer(3), ite(reads, integer(2), 1))
        ranked(
            up_to_it(lambda n: self.stored[n] & ~self.paged[n]),
            up_to_it(lambda n: self.stored[n] & ~self.given[n]),
            up_to_it(lambda n: self.batch[n] & self.rests()),
            up_to_it(self.is_unread),
            stuck,
            among_stored(lambda n: stuck & (self.batch[n] | self.loaded[n])),
            among_stored(lambda n: stuck & self.batch[n]),
            ite(full, integer(0), ite(unread & ~stuck, in_a_pass, to_a_gift)),
            reads & (self.caches | self.all_are_paged()),
            ite(reads, self.page - self.counted, 0),
            elements(Message, lambda n: self.loaded[n] & reads, within=lambda n: self.loaded[n]),
            elements(Message, lambda n: self.paged[n] & reads, within=lambda n: self.paged[n]),
            ite(reads, room, 0),
            among_stored(lambda n: reads & ~self.behind[n] & (self.batch[n] | self.paged[n])),
            reads & ~self.finds_more(),
            lowered_by={
                "begin": lambda: ~full,
                "read": lambda _: TRUE,
                "pass_over": lambda _: ~full,
                "end_reading": lambda: ~full,
                "page_in": lambda n: self.at_or_before(n, m) | stuck,
                "give": lambda _, n: self.at_or_before(n, m),
                "end": lambda: ~full,
                **more,
            },
            words="the messages up to this one that are not given, paged in or read; then memory "
            "in use, if no room is left; then what the pass has still to read",
        )

    @leads_to(IS_WOKEN, fair=("begin", "page_in", "give", "end"))
    def woken_makes_a_pass(self) -> tuple[Bool, Bool]:
        """A woken queue begins a pass, unless returned messages keep it busy (I8).

        A pass does not end while messages are sent into it for ever.
        """
        finitely(send_cached=lambda _: TRUE)
        least(self.before, lambda n: self.batch[n])
        least(self.before, lambda n: self.waiting[n])
        gives = self.makes == Pass.GIVES
        ranked(
            gives,
            elements(Message, lambda n: gives & self.batch[n], within=lambda n: self.stored[n]),
            elements(Message, lambda n: gives & self.waiting[n], within=lambda n: self.stored[n]),
            words="the messages that the pass has still to page in, then those to give",
        )
        returned = exists(Message, lambda n: self.returned[n])
        return self.woken, (self.makes == Pass.READS) | returned


CursorProgress.equivalent_mutants = """
A cache that ends early, or does not begin again, costs only reads of the store.
    shared: all_are_paged*2
A look finds nothing if no message is pending.
    read: guard 1; pass_over: guard 1; shared: is_empty
Only the contract says which consumers take messages, and until when.
    attach: guard 1; cancel: guard 1
A message without room waits for it, and free room wakes the queue.
    send_past_cache: woken
A pass that is not needed, or goes on longer, finds nothing to do.
    begin: guard 1, woken*2; end_reading: woken; end: makes; initially: makes*3, woken*2;
    shared: finds_more
A message that arrives during a read is found before the read ends.
    end_reading: woken
A consumer that comes or goes during a pass makes it longer.
    close: guard 1
More messages are read at a time.
    read: counted; pass_over: guard 1*2
The audit knows no unread message, so a read asks it in vain.
    shared: is_duplicate
"""
