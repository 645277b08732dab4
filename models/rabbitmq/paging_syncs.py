"""The paging queue with its disk: syncs, confirms, crashes, and what a start finds.

Sources: later notes on RabbitMQ's queue (2.8.2), its index and its store; the ids are those of
these notes. Places and moves are those of `paging_places`.

A persistent message is given to the store and to the index on arrival; each syncs at any time. The
store later reports to the queue which contents are synced, and which need no write because they
were removed first. The queue confirms a message when it knows of both syncs, or that the store was
told to forget the content: the message was then settled or dropped.

After a crash all that is there is what delta is made of: positions and contents on disk. A message
that is not persistent is gone, and one that lacks a sync may be. A start counts all others as
delivered, as the release does, and reads the first segment. An acknowledgement is on disk when its
client is answered; the release answers none, and may bring an acknowledged message back.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.language import (
    Bool,
    Fixed,
    Map,
    SetOf,
    Value,
    action,
    axiom,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    ranked,
    require,
)
from brokerproof.models.rabbitmq.paging_invariants import (
    DELTA_BESIDE_Q3,
    EMPTY,
    FOUND,
    INDEXED,
    NOTHING_LEFT,
    STORED,
    USED,
)
from brokerproof.models.rabbitmq.paging_places import (
    FETCHES,
    IS_FETCHED,
    PagingPlaces,
    ranked_to_its_fetch,
)
from brokerproof.models.rabbitmq.paging_state import Message, Place

WAITING = "what-waits-for-a-sync-is-unconfirmed"
NEVER_BOTH = "what-is-unconfirmed-is-not-confirmed"
ASKED = "an-asked-confirm-is-not-forgotten"
WILL_BE = "what-is-unconfirmed-is-still-to-be-synced-or-told"
ON_DISK = "what-is-confirmed-and-not-settled-is-on-disk"
SURVIVES = "what-is-confirmed-and-not-settled-survives-a-crash"
KNOWN = "what-the-queue-knows-to-be-synced-is"
DOWN = "while-the-node-is-down-all-is-in-delta"


class PagingConfirms(PagingPlaces):
    """A paging queue whose messages are synced and confirmed, on a node that may be down.

    `forgotten` is history: a crash came before the confirm. `lost` is too: a crash has lost a
    message after its confirm.
    """

    asks: Fixed[Message, Bool]

    content_synced: Map[Message, Bool]
    index_synced: Map[Message, Bool]
    tells_written: Map[Message, Bool]
    tells_ignored: Map[Message, Bool]
    content_known: Map[Message, Bool]
    index_known: Map[Message, Bool]
    unconfirmed: Map[Message, Bool]
    to_confirm: Map[Message, Bool]
    confirmed: Map[Message, Bool]
    lost: Map[Message, Bool]
    forgotten: Map[Message, Bool]
    down: Value[Bool]

    @axiom("only-of-what-is-persistent-is-it-asked")
    def only_persistent(self, m: Message) -> Bool:
        """Only confirms of persistent messages are modelled; others are confirmed on arrival."""
        return implies(self.asks[m], self.persistent[m])

    @initial
    def empty(self) -> None:
        """No message has been published, and the node runs."""
        super().empty()
        for truth in (
            *(self.content_synced, self.index_synced, self.tells_written, self.tells_ignored),
            *(self.content_known, self.index_known, self.unconfirmed, self.to_confirm),
            *(self.confirmed, self.lost, self.forgotten),
        ):
            truth.fill(False)
        self.down = False

    def is_there(self, m: Message) -> Bool:
        """Whether the message is ready or pending."""
        return self.is_ready(m) | self.is_in(m, Place.PENDING)

    def is_kept(self, m: Message) -> Bool:
        """Whether a crash leaves the message: it is there, and persistent."""
        return self.is_there(m) & self.persistent[m]

    # What the moves of messages are to the disk.

    def _takes_position(self, m: Message) -> None:
        require(~self.down)
        super()._takes_position(m)
        self.unconfirmed[m] = self.asks[m]

    def _fetches(self, m: Message, keeps: Bool) -> None:
        self._tells_ignored(lambda n: (n == m) & ~keeps)
        super()._fetches(m, keeps)

    def _forgets(self, is_it: Callable[[Message], Bool]) -> None:
        self._tells_ignored(is_it)
        super()._forgets(is_it)

    def _tells_ignored(self, is_it: Callable[[Message], Bool]) -> None:
        """Let the store report contents that are removed before they are written."""
        self.tells_ignored = self.tells_ignored.map(
            lambda n, old: old | (is_it(n) & self.stored[n] & ~self.content_synced[n])
        )

    @action
    def purge(self) -> None:
        """All ready messages are dropped."""
        require(~self.down)
        super().purge()

    # Syncs, and the queue's knowledge of them.

    @action
    def sync_store(self) -> None:
        """The store syncs all written contents, and will report them."""
        require(~self.down)
        self.tells_written = self.tells_written.map(
            lambda m, old: old | (self.stored[m] & ~self.content_synced[m])
        )
        self.content_synced = self.content_synced.map(lambda m, old: old | self.stored[m])

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
        require(~self.down)
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


class PagingSyncs(PagingConfirms):
    """The same, and the node stops and starts."""

    @action
    def crash(self) -> None:
        """The node stops: the messages that are not persistent are gone, and so is all memory."""
        require(~self.down)
        self.forgotten = self.forgotten.map(
            lambda m, old: old | self.unconfirmed[m] | self.to_confirm[m]
        )
        self._forgets(lambda m: self.is_there(m) & ~self.is_kept(m))
        self.from_start = self.from_start.map(lambda _, __: exists(Message, self.is_kept))
        self.before_end = self.before_end.map(
            lambda m, _: self.used[m] & exists(Message, self.is_kept)
        )
        self.noted = self.noted.map(lambda m, old: old | self.is_kept(m))
        self.was_fetched = self.was_fetched.map(lambda m, old: old | self.is_kept(m))
        self.place = self.place.map(lambda m, old: ite(self.is_kept(m), Place.DELTA, old))
        for truth in (
            *(self.in_ram, self.delivered, self.tells_written, self.tells_ignored),
            *(self.content_known, self.index_known, self.unconfirmed, self.to_confirm),
        ):
            truth.fill(False)
        self.down = True

    @action
    def lose(self, m: Message) -> None:
        """A message whose content or position was not synced is not found."""
        require(self.down & self.is_in(m, Place.DELTA))
        require(~(self.content_synced[m] & self.index_synced[m]))
        more = exists(Message, lambda n: (n != m) & self.is_in(n, Place.DELTA))
        self.lost[m] |= self.confirmed[m]
        self._forgets(lambda n: n == m)
        self.tells_ignored.fill(False)
        self.from_start = self.from_start.map(lambda _, old: old & more)
        self.before_end = self.before_end.map(lambda _, old: old & more)

    @action
    def restart(self) -> None:
        """The node starts, and finds no message."""
        require(self.down & self.has_none(Place.DELTA))
        self._starts()

    @action
    def restart_and_reload(self, first: Message) -> None:
        """The node starts: a segment of delta is read into q3, others stay."""
        require(self.down & self.is_found_first(first) & ~self.reload_leaves_none(first))
        self._reloads(first)
        self._starts()

    @action
    def restart_and_reload_all(self, first: Message) -> None:
        """The node starts: all of delta is read into q3."""
        require(self.down & self.is_found_first(first) & self.reload_leaves_none(first))
        self._reloads_all(first)
        self._starts()

    def _starts(self) -> None:
        """What was found is on disk."""
        self.content_synced = self.content_synced.map(lambda m, old: old | self.is_ready(m))
        self.index_synced = self.index_synced.map(lambda m, old: old | self.is_ready(m))
        self.down = False

    # Invariants.

    @invariant(DOWN, by=(FOUND, USED))
    def down_is_in_delta(self, m: Message) -> Bool:
        """While the node is down, messages are on disk alone, and nothing is to be told."""
        return implies(
            self.down,
            self.is_in(m, Place.DELTA, Place.GONE, Place.NOWHERE)
            & implies(self.is_in(m, Place.DELTA), self.persistent[m])
            & ~(self.tells_written[m] | self.tells_ignored[m])
            & ~(self.content_known[m] | self.index_known[m])
            & ~(self.unconfirmed[m] | self.to_confirm[m]),
        )

    @invariant(DELTA_BESIDE_Q3, by=(FOUND, USED, DOWN, "where-q2-has-messages-so-has-delta"))
    def delta_beside_q3(self) -> Bool:
        """If delta has a message, so has q3 (A3), unless the node is down."""
        return self.down | super().delta_beside_q3()

    @invariant(EMPTY, by=(DELTA_BESIDE_Q3, FOUND, USED, DOWN))
    def empty_where_q4_and_q3_are(self) -> Bool:
        """If q4 and q3 are empty, no message is ready (A4), unless the node is down."""
        return self.down | super().empty_where_q4_and_q3_are()

    @invariant(WAITING, by=(NEVER_BOTH, DOWN, USED))
    def waiting_is_unconfirmed(self, m: Message) -> Bool:
        """Only unconfirmed messages have a noted sync, and none has both (C1)."""
        return implies(self.content_known[m] | self.index_known[m], self.unconfirmed[m]) & ~(
            self.content_known[m] & self.index_known[m]
        )

    @invariant(NEVER_BOTH, by=(WAITING, KNOWN, DOWN, USED, FOUND))
    def never_both(self, m: Message) -> Bool:
        """An unconfirmed message is neither to be confirmed nor confirmed (C2)."""
        return implies(
            self.unconfirmed[m],
            ~self.to_confirm[m] & ~self.confirmed[m] & ~self.is_in(m, Place.NOWHERE) & self.asks[m],
        )

    @invariant(ASKED, by=(NEVER_BOTH, USED, FOUND))
    def asked_is_not_forgotten(self, m: Message) -> Bool:
        """A publisher that asked was or will be sent a confirm, unless a crash intervened (C3)."""
        return implies(
            self.asks[m] & ~self.is_in(m, Place.NOWHERE),
            self.unconfirmed[m] | self.to_confirm[m] | self.confirmed[m] | self.forgotten[m],
        )

    @invariant(WILL_BE, by=(NEVER_BOTH, WAITING, KNOWN, INDEXED, STORED, FOUND))
    def will_be_confirmed(self, m: Message) -> Bool:
        """An unconfirmed message lacks a sync or its report; after both, none is left (C3)."""
        return implies(
            self.unconfirmed[m],
            self.tells_ignored[m]
            | (
                (
                    self.content_known[m]
                    | self.tells_written[m]
                    | (self.stored[m] & ~self.content_synced[m])
                )
                & (self.index_known[m] | self.is_index_news(m))
            ),
        )

    @invariant(KNOWN, by=(NEVER_BOTH, WAITING, DOWN, NOTHING_LEFT, USED, FOUND))
    def known_is_synced(self, m: Message) -> Bool:
        """Queue and store report only actual syncs, and ignored contents are gone."""
        return (
            implies(self.content_known[m] | self.tells_written[m], self.content_synced[m])
            & implies(self.index_known[m], self.index_synced[m])
            & implies(self.tells_ignored[m], ~self.is_there(m))
            & implies(self.confirmed[m], self.asks[m])
            & implies(
                self.is_in(m, Place.NOWHERE),
                ~self.content_synced[m]
                & ~self.index_synced[m]
                & ~self.to_confirm[m]
                & ~self.confirmed[m]
                & ~(self.tells_ignored[m] | self.forgotten[m]),
            )
        )

    @invariant(ON_DISK, by=(KNOWN, WAITING, NEVER_BOTH, DOWN, USED, FOUND))
    def confirmed_is_on_disk(self, m: Message) -> Bool:
        """Content and position are synced of messages that are confirmed, or that a start found."""
        found = self.forgotten[m] & ~self.down
        return implies(
            (self.to_confirm[m] | self.confirmed[m] | found) & self.is_there(m),
            self.content_synced[m] & self.index_synced[m],
        )

    @invariant(SURVIVES, by=(ON_DISK, FOUND))
    def confirmed_survives(self, m: Message) -> Bool:
        """No crash has lost a confirmed message that was still there (C4, I20)."""
        return ~self.lost[m]

    @leads_to(IS_FETCHED, fair=FETCHES, together=True, by=(EMPTY, FOUND))
    def ready_is_fetched(self, m: Message) -> tuple[Bool, Bool]:
        """A ready message is fetched or purged in the end, or the node stops."""
        ranked_to_its_fetch(self, m)
        return self.is_ready(m) & ~self.down, ~self.is_ready(m) | self.down

    @leads_to(
        "an-asked-confirm-is-told",
        fair=("sync_store", "hear_written", "hear_ignored", "sync_index", "drain_confirmed"),
        by=(WILL_BE, NEVER_BOTH, WAITING, KNOWN, DOWN, INDEXED, STORED, NOTHING_LEFT, USED, FOUND),
    )
    def asked_confirm_is_told(self, m: Message) -> tuple[Bool, Bool]:
        """An unconfirmed message is confirmed in the end, or forgotten in a crash (C3)."""
        ranked_to_its_confirm(self, m)
        return self.unconfirmed[m], self.confirmed[m] | self.forgotten[m]


def ranked_to_its_confirm(syncs: PagingSyncs, m: Message) -> None:
    """Rank what has to happen until a message is confirmed.

    Its content is synced and reported, or removed and reported; its position is synced; and the
    queue's process sends the confirm.
    """
    waits = syncs.unconfirmed[m]
    lacks_index = waits & ~syncs.index_known[m]
    lacks_content = syncs.stored[m] & ~syncs.content_synced[m]
    ranked(
        waits,
        waits & ~syncs.tells_ignored[m],
        lacks_index,
        lacks_content,
        syncs.tells_written[m],
        syncs.tells_ignored[m],
        lowered_by={
            "sync_store": lambda: lacks_content,
            "sync_index": lambda: lacks_index & syncs.is_index_news(m),
            "hear_written": lambda n: n == m,
            "hear_ignored": lambda n: n == m,
            "drain_confirmed": lambda: syncs.to_confirm[m],
        },
        pending=syncs.asks[m] & (waits | syncs.to_confirm[m]),
        words="the confirm, the report of a removal, the syncs of position and content, and the "
        "reports of these",
    )
