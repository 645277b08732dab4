"""The contract of brokers that lawfully differ from the protocol's strict reading.

Each difference is a rigid truth that a claim sets (`spec/protocol/capabilities.py`), and weakens
one guard or one effect of the whole contract. With every truth false this is the whole contract.
The oracle follows a candidate by this contract only if it claims a difference. Their sources are
in `spec/protocol/differences.toml`.

What a consumer held when it left comes back by `release_at_close`, of a cancelled consumer too.
"""

from __future__ import annotations

from brokerproof.models.contract.core_state import Channel, Consumer, Entry, Mode, Queue, Status
from brokerproof.models.contract.whole import WholeContract
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import (
    Bool,
    Fixed,
    Map,
    Relation,
    action,
    implies,
    initial,
    invariant,
    require,
)


class LawfulContract(WholeContract):
    """The behaviours of a broker that differs from the whole contract only where it may."""

    one_by_one: Bool
    snapshots: Bool
    shows_held: Bool
    purges_held: Bool
    tells_deletions: Bool
    by_persistence: Bool
    persists: Fixed[Entry, Bool]

    returning: Map[Entry, Bool]
    voided: Map[Entry, Bool]
    in_view: Relation[Consumer, Entry]
    on_its_way: Map[Entry, Bool]

    @initial
    def nothing_yet(self) -> None:
        """No message is on its way back, none was purged while held, no browser has a snapshot."""
        super().nothing_yet()
        self.returning.fill(False)
        self.voided.fill(False)
        self.in_view.fill(False)
        self.on_its_way.fill(False)

    @invariant("what-was-voided-stays-away")
    def voided_stays_away(self, e: Entry) -> Bool:
        """A message that was purged while it was held never comes back."""
        return implies(self.voided[e], self.taken(e))

    # The actions of clients.

    @action
    def publish(self, entry: Entry) -> None:
        """The broker takes a message; no snapshot has it."""
        super().publish(entry)
        self.excused = self.excused.map(
            lambda c, f, old: old | ((f == entry) & self.snapshots & self.looks(c))
        )

    @action
    def consume(self, consumer: Consumer) -> None:
        """A client subscribes; a browser may be shown what is there now, even if it is taken."""
        super().consume(consumer)
        self.in_view = self.in_view.map(
            lambda c, f, old: (
                old
                | (
                    (c == consumer)
                    & (self.mode[c] == Mode.BROWSE)
                    & self.snapshots
                    & (self.status[f] == Status.AVAILABLE)
                )
            )
        )

    @action
    def release_at_close(self, entry: Entry) -> None:
        """A message of a consumer that leaves returns; others may overtake it until the next rest.

        They may only if messages return one by one.
        """
        super().release_at_close(entry)
        self.returning[entry] = self.one_by_one & (self.status[entry] == Status.AVAILABLE)

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel closes, in one step or message by message."""
        returning = self.returning.map(
            lambda e, old: old | (self.one_by_one & self.goes_back(which, e))
        )
        super().close_channel(which)
        self.returning = returning

    @action
    def purge(self, queue: Queue) -> None:
        """A client purges a queue, of the messages that consumers hold too if that is claimed."""
        super().purge(queue)
        held = self._those_in(queue, Status.ACQUIRED)
        self.voided = self.voided.map(lambda f, old: old | (self.purges_held & held(f)))

    @action
    def forget_held(self, entry: Entry) -> None:
        """A purge takes a held message from its consumer, and with it the room in the windows."""
        require(self.voided[entry] & (self.status[entry] == Status.ACQUIRED))
        self._gives_back_credit(entry)
        self._ends(lambda f: f == entry, End.PURGED)

    # The reports of the broker.

    @action
    def deliver(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker delivers an entry; it may still have one that it settles by itself."""
        super().deliver(consumer, entry, redelivered)
        self._goes_on_its_way(consumer, entry)

    @action
    def deliver_by_rank(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The same with consumer priorities."""
        super().deliver_by_rank(consumer, entry, redelivered)
        self._goes_on_its_way(consumer, entry)

    def _goes_on_its_way(self, consumer: Consumer, entry: Entry) -> None:
        self.on_its_way[entry] = self.shows_held & (self.mode[consumer] == Mode.AUTOMATIC)

    @action
    def quiesce(self) -> None:
        """The broker reports that no further event follows until a client acts."""
        super().quiesce()
        self.returning.fill(False)
        self.on_its_way.fill(False)

    @action
    def quiesce_by_size(self) -> None:
        """The same for byte windows."""
        super().quiesce_by_size()
        self.returning.fill(False)
        self.on_its_way.fill(False)

    # What the differences weaken.

    def may_be_overtaken(self, f: Entry) -> Bool:
        """Whether the message of a consumer that left may still be on its way back."""
        return self.returning[f]

    def can_be_shown(self, consumer: Consumer, f: Entry) -> Bool:
        """Whether a browser may be shown the entry: a held one, or one of its snapshot.

        One on its way to an automatic consumer is held until the broker has settled it.
        """
        held = self.shows_held & (self.status[f] == Status.ACQUIRED)
        return (
            super().can_be_shown(consumer, f)
            | held
            | self.on_its_way[f]
            | self.in_view[consumer, f]
        )

    def is_shown_as(self, consumer: Consumer, f: Entry, redelivered: Bool) -> Bool:
        """Whether the flag is allowed; that of a message that is not available tells nothing."""
        taken = (self.shows_held | self.in_view[consumer, f]) & self.taken(f)
        return taken | super().is_shown_as(consumer, f, redelivered)

    def is_spared(self, queue: Queue, f: Entry) -> Bool:
        """Whether a purge of the queue leaves the entry with its consumer."""
        return super().is_spared(queue, f) & ~self.purges_held

    def must_be_told(self, consumer: Consumer) -> Bool:
        """Whether the broker still has to tell the consumer that its queue was deleted."""
        return super().must_be_told(consumer) & self.tells_deletions

    def precedes(self, e: Entry, f: Entry) -> Bool:
        """Whether e comes before f; persistent messages and others may have orders of their own."""
        of_one_class = ~self.by_persistence | (self.persists[e] == self.persists[f])
        return of_one_class & super().precedes(e, f)

    def _drops_what_was_superseded(self) -> None:
        super()._drops_what_was_superseded()
        self._ends(lambda f: self.voided[f] & (self.status[f] == Status.AVAILABLE), End.PURGED)


LawfulContract.equivalent_mutants = """
What a difference allows is tried on real brokers; no invariant says how much it is.
    consume: in_view*5; deliver: on_its_way; deliver_by_rank: on_its_way;
    browse: browser-sees-available; close_channel: returning; release_at_close: returning*2;
    purge: spared*3, voided*5; forget_held: guard 1; initially: in_view*2, on_its_way*2
An arrival has not returned, and comes last of its level: no entry of its level is behind it.
    publish: behind*2
An expired or settled message is never available again, so no browser is owed it.
    publish: excused
The gate asks this to know when to stop waiting; it is no step of a broker.
    rest: guard 1
"""
