"""What the promises of the whole contract rest on: how the ledger follows the contract's state."""

from __future__ import annotations

from brokerproof.models.contract.core_state import Consumer, Entry, Mode, Queue, Status
from brokerproof.models.contract.ledger.whole import WholeLedger
from brokerproof.models.contract.whole_state import End
from brokerproof.models.language import Bool, Int, implies, invariant

PAST = "the-ledger-is-of-the-past"
CLOCK = "the-ledger-follows-the-clock"
TURNS = "the-ledger-follows-turns"
READER = "the-ledger-of-the-reader-is-of-the-past"
MESSAGES = (
    *("what-is-gone-has-ended", "a-queue-drops-only-if-told-to"),
    *("the-ledger-follows-messages", PAST),
)
"""The invariants by which a message that is given was waiting."""

ORDER = (
    *(CLOCK, "the-ledger-follows-messages", "the-ledger-follows-places"),
    *("the-ledger-follows-the-reader", TURNS, PAST),
)
"""The invariants by which the ledger has the contract's order."""

BROWSERS = ("absent-is-unknown", "shown-is-excused", "a-browser-repeats-only-what-it-may")
"""What the contract knows of the places of browsers."""


class WholeLedgerLinks(WholeLedger):
    """The invariants that relate the ledger of the whole contract to its state."""

    def is_undisturbed(self, e: Entry) -> Bool:
        """Whether the broker has not crashed since the message arrived."""
        return (self.arrived_at[e] > 0) & (self.crashed_at < self.arrived_at[e])

    def moves(self) -> Bool:
        """Whether the broker claims that a returned message goes to the tail or to the head."""
        return self.to_tail | self.to_head

    def is_past(self, moment: Int, *others: Int) -> Bool:
        """Whether moments are before now."""
        found = (moment >= 0) & (moment < self.moment)
        return found & self.is_past(*others) if others else found

    @invariant(PAST, by=(PAST,))
    def of_the_past(self, e: Entry) -> Bool:
        """All that is written of a message happened before now."""
        return (self.sightings[e] >= 0) & self.is_past(
            *(self.arrived_at[e], self.waits_since[e], self.given_at[e], self.first_back_at[e]),
            *(self.seen_at[e], self.stands_since[e], self.stood_since[e], self.settled_at[e]),
            self.outranked_at[e],
        )

    @invariant("the-ledger-of-queues-is-of-the-past", by=("the-ledger-of-queues-is-of-the-past",))
    def queues_of_the_past(self, q: Queue) -> Bool:
        """All that is written of a queue happened before now."""
        return self.is_past(
            self.purged_at[q], self.used_at[q], self.gone_at[q], self.ended_at[q], self.crashed_at
        )

    @invariant(READER)
    def reader_of_the_past(self) -> Bool:
        """All that is written of the reader happened before now."""
        return self.is_past(
            *(self.came_at, self.left_at, self.served_at, self.found_nothing_at),
            *(self.came_last_at, self.windows_set_at, self.pool_stirred_at, self.dismissed_at),
            *(self.told_at, self.told_before, self.closed_at),
        )

    @invariant(CLOCK, by=(CLOCK,))
    def follows_the_clock(self, e: Entry, q: Queue) -> Bool:
        """Each queue has the broker's clock, and what was noted of it is not ahead of it."""
        return (
            (self.clock == self.now[q])
            & (self.closed_clock <= self.clock)
            & (self.found_nothing_clock <= self.clock)
            & (self.purge_clock[q] <= self.clock)
            & (self.seen_clock[e] <= self.clock)
            & (self.arrival_clock[e] <= self.clock)
        )

    @invariant("the-ledger-follows-messages", by=MESSAGES)
    def follows_messages(self, e: Entry) -> Bool:
        """A message waits where the contract says that it is available, and is held likewise."""
        arrived, given = self.arrived_at[e] > 0, self.deliveries[e] == self.returns[e] + 1
        new = (self.deliveries[e] == 0) & (self.waits_since[e] == 0) & (self.given_at[e] == 0)
        return (
            (arrived == (self.status[e] != Status.ABSENT))
            & implies(~arrived, new & (self.returns[e] == 0) & ~self.dropped[e])
            & (self.waits(e) == (self.status[e] == Status.AVAILABLE))
            & (self.out[e] == (self.status[e] == Status.ACQUIRED))
            & ((self.deliveries[e] == self.returns[e]) | given)
            & implies(self.out[e], given & ~self.dropped[e] & (self.gone_at[self.home[e]] == 0))
            & (self.returns[e] >= 0)
        )

    @invariant("the-ledger-follows-ends", by=MESSAGES)
    def follows_ends(self, e: Entry) -> Bool:
        """A settled message was given and is not out; one that a newer value replaced ends."""
        settled = (self.end[e] == End.SETTLED) | (self.end[e] == End.FINAL)
        given = self.deliveries[e] == self.returns[e] + 1
        return (
            (settled == (self.settled_at[e] > 0))
            & implies(settled, given)
            & implies(self.superseded[e], self.out[e] | (self.status[e] == Status.DEQUEUED))
            & implies(self.end[e] == End.TAKEN_AWAY, given)
        )

    @invariant(TURNS, by=(*MESSAGES, "absent-is-unknown"))
    def follows_turns(self, e: Entry) -> Bool:
        """A message that waits began to do so after its last delivery; a held one before."""
        since, given, first = self.waits_since[e], self.given_at[e], self.first_back_at[e]
        there = self.waits(e) | self.out[e]
        return (
            implies(self.waits(e), (given < since) & (self.arrived_at[e] <= since))
            & implies(self.out[e], (since > 0) & (since < given))
            & (first <= since)
            & implies(first > 0, self.deliveries[e] > 0)
            & implies(there & self.is_undisturbed(e), (first > 0) == self.has_returned(e))
            & implies(self.is_undisturbed(e) | (self.arrived_at[e] == 0), ~self.either_flag[e])
        )

    @invariant("the-ledger-follows-queues", by=("the-ledger-of-queues-is-of-the-past",))
    def follows_queues(self, q: Queue) -> Bool:
        """A queue is gone, and was used, where the contract says so."""
        return ((self.gone_at[q] > 0) == self.gone[q]) & (
            (self.used_at[q] > self.crashed_at) == self.used[q]
        )

    @invariant("the-ledger-follows-the-reader")
    def follows_the_reader(self, e: Entry) -> Bool:
        """The reader is there where the contract says so."""
        return (
            (self.there == self.consuming[self.reader])
            & implies(self.there, (self.came_at > 0) & (self.came_last_at > 0))
            & (self.untold[self.reader] == self.is_dismissed())
            & implies(~self.has_asked, self.seen_at[e] <= self.served_at)
        )

    @invariant("the-ledger-follows-the-browser", by=(*ORDER, *BROWSERS, READER))
    def follows_the_browser(self, e: Entry) -> Bool:
        """A browser is excused from what it saw, what was away, and what was not due."""
        excused, seen = self.excused[self.reader, e], self.seen_at[e] > 0
        once = (self.sightings[e] == 1) & (self.came_at > 0) & (self.came_at < self.seen_at[e])
        return implies(
            self.browses(),
            (seen == self.shown[self.reader, e])
            & implies(seen, once)
            & implies(~seen, self.sightings[e] == 0)
            & implies(excused, self.came_at > 0)
            & implies(excused & self.waits(e), seen | self.is_excused_from(e, self.clock)),
        )

    def is_excused_from(self, e: Entry, clock: Int) -> Bool:
        """Whether a browser's place may have passed the message: it was away or not in time."""
        was_away = (self.deliveries[e] > 0) & (self.waits_since[e] > self.came_at)
        early, late = self.not_before[e] > self.arrival_clock[e], clock >= self.expires[e]
        return (self.came_at > 0) & (was_away | early | late)

    @invariant("the-ledger-follows-places")
    def follows_places(self, e: Entry, f: Entry) -> Bool:
        """Where returned messages move, the contract's stamps are in the order of the ledger."""
        both = (self.arrived_at[e] > 0) & (self.arrived_at[f] > 0)
        alike = (self.stamp[e] < self.stamp[f]) == (self.stands_since[e] < self.stands_since[f])
        return implies(
            self.moves() & both & (self.home[e] == self.home[f]),
            alike & (self.stamp[e] < self.stamps[self.home[e]]),
        )

    @invariant("the-ledger-follows-newer-values", by=(*MESSAGES, "the-ledger-follows-ends"))
    def follows_newer_values(self, e: Entry, f: Entry) -> Bool:
        """What a newer value replaces does not wait, and will not if it comes back."""
        newer = (self.arrived_at[f] > 0) & (self.arrived_at[f] < self.arrived_at[e])
        held = (self.status[f] == Status.ACQUIRED) & self.superseded[f]
        return implies(self.replaces[e, f] & newer, held | (self.status[f] == Status.DEQUEUED))

    @invariant("the-ledger-follows-purges")
    def follows_purges(self, e: Entry) -> Bool:
        """A message that waits came after the last purge, or was not due then."""
        at = self.home[e]
        due = self.is_in_time(e, self.purge_clock[at])
        after = self.waits_since[e] > self.purged_at[at]
        return implies(self.waits(e) & (self.purged_at[at] > 0), after | ~due)

    @invariant("the-ledger-follows-crashes", by=MESSAGES)
    def follows_crashes(self, e: Entry) -> Bool:
        """A transient message that waits or is held has seen no crash."""
        there = self.waits(e) | self.out[e]
        return implies(there & ~self.survives[e], self.is_undisturbed(e))

    @invariant("what-fills-no-window-holds-nothing")
    def holds_nothing(self, consumer: Consumer) -> Bool:
        """Only a consumer that acknowledges holds messages, and no window is negative."""
        idle = implies(self.mode[consumer] != Mode.ACKNOWLEDGE, self.unsettled[consumer] == 0)
        return (
            idle & (self.byte_limit[consumer] >= 0) & (self.byte_pool[self.channel[consumer]] >= 0)
        )
