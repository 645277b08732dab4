"""When a paging queue confirms a message, and which messages survive a crash.

Sources: later notes on RabbitMQ's queue (2.8.2) and on what its message store promises; the ids are
those of these notes.

A persistent message is given to the store and to the index on arrival; each syncs at any time. The
store later reports to the queue which contents are synced, and which need no write because they
were removed first. The queue confirms a message when it knows of both syncs, or that the store was
told to forget the content: the message was then settled or dropped.

A crash may lose any unsynced data and any acknowledgement, since acknowledgements are not synced.
So an acknowledged message may come back, and a confirmed one without acknowledgement must.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Family,
    Fixed,
    Map,
    Model,
    SetOf,
    action,
    axiom,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
    step,
)

WAITING = "what-waits-for-a-sync-is-unconfirmed"
NEVER_BOTH = "what-is-unconfirmed-is-not-confirmed"
ASKED = "who-asks-is-not-forgotten"
WILL_BE = "what-is-unconfirmed-is-still-to-be-synced-or-told"
ON_DISK = "what-is-confirmed-and-not-settled-is-on-disk"
SURVIVES = "what-is-confirmed-and-not-settled-survives-a-crash"
KNOWN = "what-the-queue-knows-to-be-synced-is"


class Message(Family):
    """A message of one queue."""


class Where(Enumeration):
    """The stage of a message's life."""

    NOWHERE: ClassVar[Where]
    READY: ClassVar[Where]
    PENDING: ClassVar[Where]
    GONE: ClassVar[Where]


class PagingConfirms(Model):
    """Messages, their synced parts, and what the queue knows of the syncs."""

    persistent: Fixed[Message, Bool]
    asks: Fixed[Message, Bool]

    where: Map[Message, Where]
    written: Map[Message, Bool]
    content_synced: Map[Message, Bool]
    indexed: Map[Message, Bool]
    index_synced: Map[Message, Bool]
    acked: Map[Message, Bool]
    tells_written: Map[Message, Bool]
    tells_ignored: Map[Message, Bool]
    content_known: Map[Message, Bool]
    index_known: Map[Message, Bool]
    unconfirmed: Map[Message, Bool]
    to_confirm: Map[Message, Bool]
    confirmed: Map[Message, Bool]
    lost: Map[Message, Bool]
    forgotten: Map[Message, Bool]

    @axiom("only-of-what-is-persistent-is-it-asked")
    def only_persistent(self, m: Message) -> Bool:
        """Only confirms of persistent messages are modelled; others are confirmed on arrival."""
        return implies(self.asks[m], self.persistent[m])

    @initial
    def empty(self) -> None:
        """No message has been published."""
        self.where.fill(Where.NOWHERE)
        for truth in (
            *(self.written, self.content_synced, self.indexed, self.index_synced, self.acked),
            *(self.tells_written, self.tells_ignored, self.content_known, self.index_known),
            *(self.unconfirmed, self.to_confirm, self.confirmed, self.lost, self.forgotten),
        ):
            truth.fill(False)

    def is_there(self, m: Message) -> Bool:
        """Whether the message is ready or pending."""
        return (self.where[m] == Where.READY) | (self.where[m] == Where.PENDING)

    # Steps of messages.

    @step(Where.NOWHERE, Where.READY)
    def publish(self, m: Message) -> None:
        """A message arrives; a persistent one is written at once."""
        self.written[m] = self.persistent[m]
        self.indexed[m] = self.persistent[m]
        self.unconfirmed[m] = self.asks[m]

    @action
    def page(self, m: Message) -> None:
        """A transient message leaves memory with its position, and is written now."""
        require((self.where[m] == Where.READY) & ~self.persistent[m])
        self.written[m] = True
        self.indexed[m] = True

    @step(Where.READY, Where.PENDING)
    def fetch(self, m: Message) -> None:
        """A message is delivered to a consumer."""

    @step(Where.PENDING, Where.READY)
    def requeue(self, m: Message) -> None:
        """A message returns; its confirm is not affected."""

    @action
    def settle(self, m: Message) -> None:
        """A message is acknowledged or dropped, perhaps before the store has written it."""
        require(self.is_there(m))
        self.where[m] = Where.GONE
        self.acked[m] = self.indexed[m]
        self.tells_ignored[m] = self.written[m] & ~self.content_synced[m]
        self.written[m] = False

    # Syncs, and the queue's knowledge of them.

    @action
    def sync_store(self) -> None:
        """The store syncs all written contents, and will report them."""
        self.tells_written = self.tells_written.map(
            lambda m, old: old | (self.written[m] & ~self.content_synced[m])
        )
        self.content_synced = self.content_synced.map(lambda m, old: old | self.written[m])

    @action
    def hear_written(self, which: SetOf[Message]) -> None:
        """The store reports to the queue that some contents are on disk."""
        require(forall(Message, lambda m: implies(which[m], self.tells_written[m])))
        self.tells_written = self.tells_written.map(lambda m, old: old & ~which[m])
        self.content_known = self.content_known.map(
            lambda m, old: old | (which[m] & self.unconfirmed[m])
        )
        self._records(lambda m: which[m] & self.index_known[m])

    @action
    def hear_ignored(self, which: SetOf[Message]) -> None:
        """The store reports that some contents were removed before they were written."""
        require(forall(Message, lambda m: implies(which[m], self.tells_ignored[m])))
        self.tells_ignored = self.tells_ignored.map(lambda m, old: old & ~which[m])
        self._records(lambda m: which[m])

    @action
    def sync_index(self) -> None:
        """The index syncs all written positions, and the queue knows which are new."""
        self.index_known = self.index_known.map(
            lambda m, old: old | (self.is_index_news(m) & self.unconfirmed[m])
        )
        self._records(lambda m: self.is_index_news(m) & self.content_known[m])
        self.index_synced = self.index_synced.map(lambda m, old: old | self.indexed[m])

    def is_index_news(self, m: Message) -> Bool:
        """Whether the position was written, and not synced before."""
        return self.indexed[m] & ~self.index_synced[m]

    def _records(self, is_it: Callable[[Message], Bool]) -> None:
        """Move safe messages from the unconfirmed ones to those to be confirmed next."""
        self.to_confirm = self.to_confirm.map(lambda m, old: old | is_it(m))
        self.unconfirmed = self.unconfirmed.map(lambda m, old: old & ~is_it(m))
        # Both sets may be used by `is_it`, so neither changes before both are read.
        content_known = self.content_known.map(lambda m, old: old & ~is_it(m))
        self.index_known = self.index_known.map(lambda m, old: old & ~is_it(m))
        self.content_known = content_known

    @action
    def drain_confirmed(self) -> None:
        """The queue's process takes the confirms and sends them to the publishers that asked."""
        self.confirmed = self.confirmed.map(
            lambda m, old: old | (self.to_confirm[m] & self.asks[m])
        )
        self.to_confirm.fill(False)

    @action
    def crash(
        self, indexed: SetOf[Message], stored: SetOf[Message], settled: SetOf[Message]
    ) -> None:
        """The broker stops and recovers: any part of the unsynced data may be there.

        Positions without content are dropped, and so are messages that are not persistent.
        """

        def is_recovered(m: Message) -> Bool:
            position = self.index_synced[m] | (self.indexed[m] & indexed[m])
            kept = self.written[m] & (self.content_synced[m] | stored[m])
            content = kept | (self.acked[m] & self.content_synced[m] & stored[m])
            return position & content & self.persistent[m] & ~(self.acked[m] & settled[m])

        self.lost = self.lost.map(
            lambda m, old: old | (self.is_there(m) & self.confirmed[m] & ~is_recovered(m))
        )
        self.forgotten = self.forgotten.map(
            lambda m, old: old | self.unconfirmed[m] | self.to_confirm[m]
        )
        where = self.where.map(
            lambda m, old: ite(
                is_recovered(m), Where.READY, ite(old == Where.NOWHERE, old, Where.GONE)
            )
        )
        synced = tuple(
            each.map(lambda m, _: is_recovered(m))
            for each in (self.written, self.content_synced, self.indexed, self.index_synced)
        )
        self.where = where
        self.written, self.content_synced, self.indexed, self.index_synced = synced
        for truth in (
            *(self.acked, self.tells_written, self.tells_ignored),
            *(self.content_known, self.index_known, self.unconfirmed, self.to_confirm),
        ):
            truth.fill(False)

    # Invariants.

    @invariant(WAITING)
    def waiting_is_unconfirmed(self, m: Message) -> Bool:
        """Only unconfirmed messages have a noted sync, and none has both (C1)."""
        return implies(self.content_known[m] | self.index_known[m], self.unconfirmed[m]) & ~(
            self.content_known[m] & self.index_known[m]
        )

    @invariant(NEVER_BOTH)
    def never_both(self, m: Message) -> Bool:
        """An unconfirmed message is neither to be confirmed nor confirmed (C2)."""
        return implies(
            self.unconfirmed[m],
            ~self.to_confirm[m]
            & ~self.confirmed[m]
            & (self.where[m] != Where.NOWHERE)
            & self.asks[m],
        )

    @invariant(ASKED)
    def asked_is_not_forgotten(self, m: Message) -> Bool:
        """A publisher that asked was or will be sent a confirm, unless a crash intervened (C3)."""
        return implies(
            self.asks[m] & (self.where[m] != Where.NOWHERE),
            self.unconfirmed[m] | self.to_confirm[m] | self.confirmed[m] | self.forgotten[m],
        )

    @invariant(WILL_BE)
    def will_be_confirmed(self, m: Message) -> Bool:
        """An unconfirmed message lacks a sync or its report; after both, none is left (C3)."""
        return implies(
            self.unconfirmed[m],
            self.tells_ignored[m]
            | (
                (
                    self.content_known[m]
                    | self.tells_written[m]
                    | (self.written[m] & ~self.content_synced[m])
                )
                & (self.index_known[m] | self.is_index_news(m))
            ),
        )

    @invariant(KNOWN)
    def known_is_synced(self, m: Message) -> Bool:
        """Queue and store report only actual syncs, and ignored contents are gone."""
        return (
            implies(self.content_known[m] | self.tells_written[m], self.content_synced[m])
            & implies(self.index_known[m], self.index_synced[m])
            & implies(self.tells_ignored[m], ~self.is_there(m))
            & implies(self.written[m], self.is_there(m))
            & implies(self.is_there(m), ~self.acked[m])
            & implies(self.confirmed[m], self.asks[m])
            & implies(self.is_there(m) & self.persistent[m], self.written[m] & self.indexed[m])
            & implies(
                self.where[m] == Where.NOWHERE,
                ~self.content_synced[m]
                & ~self.index_synced[m]
                & ~self.indexed[m]
                & ~self.acked[m]
                & ~self.to_confirm[m]
                & ~self.confirmed[m]
                & ~self.tells_ignored[m],
            )
        )

    @invariant(ON_DISK)
    def confirmed_is_on_disk(self, m: Message) -> Bool:
        """Content and position of a confirmed message that is still there are synced."""
        return implies(
            (self.to_confirm[m] | self.confirmed[m]) & self.is_there(m),
            self.content_synced[m] & self.index_synced[m],
        )

    @invariant(SURVIVES)
    def confirmed_survives(self, m: Message) -> Bool:
        """No crash has lost a confirmed message that was still there (C4, I20)."""
        return ~self.lost[m]

    @leads_to(
        "who-asks-is-told",
        fair=("sync_store", "hear_written", "hear_ignored", "sync_index", "drain_confirmed"),
    )
    def who_asks_is_told(self, m: Message) -> tuple[Bool, Bool]:
        """An unconfirmed message is confirmed in the end, or forgotten in a crash (C3)."""
        return self.unconfirmed[m], self.confirmed[m] | self.forgotten[m]


PagingConfirms.equivalent_mutants = """
A ready message and a pending one need the same data on disk.
    publish: where; fetch: where*2; requeue: where*2; crash: where
Nothing is required of a message that is not persistent, and its confirm is not modelled.
    page: guard 1, written, indexed; crash: where
A settled message may come back after a crash anyway: no settlement waits for a sync.
    settle: acked
The store reports a synced or removed content once more, and the report is still true.
    settle: tells_ignored*2; sync_store: tells_written
A report or a confirm is sent once more, which breaks nothing.
    hear_written: tells_written; hear_ignored: tells_ignored; drain_confirmed: to_confirm;
    crash: to_confirm
If the content of a waiting message is known to be synced, its position is new to the index.
    sync_index: content_known*2
The disk may keep any data of a message that was not recovered: the message stays gone.
    crash: content_synced*13, indexed*11, index_synced*12
Only the requirement that a message is confirmed reads `forgotten`, and then asks less.
    initially: forgotten*2
"""
