"""The promises of the whole contract, stated about what clients have seen.

An invariant with `states` is a requirement, as in the ledger of the core. Those about windows,
turns and rest are in `whole_turns`.
"""

from __future__ import annotations

from brokerproof.models.contract.core_state import Consumer, Entry, Queue
from brokerproof.models.contract.ledger.whole_links import MESSAGES, TURNS
from brokerproof.models.contract.ledger.whole_turns import WholeLedgerTurns
from brokerproof.models.language import Bool, exists, implies, invariant


class WholeLedgerOfContract(WholeLedgerTurns):
    """What the ledger of each run of the whole contract says."""

    # What may be seen at all.

    @invariant(
        "each-delivery-but-the-first-follows-a-return",
        by=MESSAGES,
        states=("nothing-twice", "settled-once"),
    )
    def follows_a_return(self, e: Entry) -> Bool:
        """A message is delivered again only after it came back."""
        return self.deliveries[e] <= self.returns[e] + 1

    @invariant("what-is-settled-is-seen-no-more", states=("settlement-survives-crash",))
    def settled_is_seen_no_more(self, e: Entry) -> Bool:
        """The reader sees no message after a consumer settled it, crash or not."""
        return implies(self.settled_at[e] > 0, self.seen_at[e] <= self.settled_at[e])

    @invariant("what-is-seen-is-of-its-queues", states=("right-queue",))
    def seen_is_of_its_queues(self, e: Entry) -> Bool:
        """The reader sees messages of the queues that it subscribed to."""
        return implies(self.seen_at[e] > 0, self.subscribed[self.reader, self.home[e]])

    @invariant("what-is-seen-is-selected", states=("selector-respected",))
    def seen_is_selected(self, e: Entry) -> Bool:
        """A reader that does not use gets sees the messages that its selector matches."""
        return implies((self.seen_at[e] > 0) & ~self.has_asked, self.wants[self.reader, e])

    @invariant("the-flag-tells-of-a-return", by=(*MESSAGES, TURNS), states=("redelivered-flag",))
    def flag_tells_of_a_return(self, e: Entry) -> Bool:
        """A seen message was marked exactly if it had come back, unless there was a crash."""
        seen = (self.seen_at[e] > 0) & self.is_undisturbed(e)
        return implies(seen, self.seen_as_redelivered[e] == self.was_back(e))

    @invariant("nothing-is-seen-before-its-time", states=("held-until-its-time",))
    def seen_in_its_time(self, e: Entry) -> Bool:
        """The broker's clock had reached the time of a message when the reader saw it."""
        return implies(self.seen_at[e] > 0, self.not_before[e] <= self.seen_clock[e])

    @invariant("nothing-is-seen-after-its-time", states=("gone-when-expired",))
    def not_seen_after_its_time(self, e: Entry) -> Bool:
        """A message had not expired by the broker's clock when the reader saw it."""
        return implies(self.seen_at[e] > 0, self.seen_clock[e] < self.expires[e])

    @invariant(
        "what-waits-at-a-purge-is-not-seen-after",
        by=(*MESSAGES, "the-ledger-follows-purges"),
        states=("purge-drops",),
    )
    def purged_is_not_seen(self, e: Entry) -> Bool:
        """A message that is seen after a purge came or came back after it, or was not due."""
        at = self.home[e]
        since = (self.purged_at[at] > 0) & (self.seen_at[e] > self.purged_at[at])
        due = self.is_in_time(e, self.purge_clock[at])
        return implies(since & due, self.waits_since[e] > self.purged_at[at])

    @invariant(
        "nothing-of-a-deleted-queue-is-seen",
        by=(*MESSAGES, "the-ledger-of-queues-is-of-the-past"),
        states=("delete-drops",),
    )
    def deleted_is_not_seen(self, e: Entry) -> Bool:
        """The reader saw the messages of a deleted queue before its deletion."""
        gone_at = self.gone_at[self.home[e]]
        return implies(gone_at > 0, self.seen_at[e] < gone_at)

    @invariant(
        "an-older-value-is-not-seen-after-a-newer",
        by=(*MESSAGES, "the-ledger-follows-newer-values"),
        states=("last-value-only",),
    )
    def older_value_is_not_seen(self, e: Entry, f: Entry) -> Bool:
        """A message that a newer arrival replaces is not seen after it."""
        newer = (self.arrived_at[f] > 0) & (self.arrived_at[f] < self.arrived_at[e])
        return implies(self.replaces[e, f] & newer, self.seen_at[f] < self.arrived_at[e])

    @invariant(
        "a-transient-message-is-not-seen-after-a-crash",
        by=(*MESSAGES, "the-ledger-follows-crashes"),
        states=("transient-is-lost",),
    )
    def transient_is_not_seen(self, e: Entry) -> Bool:
        """The reader saw a transient message of before a crash only before it."""
        before = (self.arrived_at[e] > 0) & (self.arrived_at[e] < self.crashed_at)
        return implies(before & ~self.survives[e], self.seen_at[e] < self.crashed_at)

    # Browsers.

    @invariant(
        "a-browser-sees-what-is-back", by=(*MESSAGES, TURNS), states=("browser-sees-available",)
    )
    def browser_sees_what_is_back(self, e: Entry) -> Bool:
        """A message that a browser saw after its last delivery had come back in between."""
        back = (self.given_at[e] < self.waits_since[e]) & (self.waits_since[e] < self.seen_at[e])
        return implies(self.browses() & (self.seen_at[e] > self.given_at[e]), back)

    # Consumers and queues that end.

    @invariant("nothing-comes-to-a-queue-that-is-gone", states=("refuses-what-it-must",))
    def nothing_comes_to_what_is_gone(self, e: Entry, q: Queue) -> Bool:
        """Messages and the reader came to a queue before it was deleted."""
        gone_at, here = self.gone_at[self.home[e]], self.subscribed[self.reader, q]
        return implies(gone_at > 0, self.arrived_at[e] < gone_at) & implies(
            here & (self.gone_at[q] > 0), self.came_last_at < self.gone_at[q]
        )

    @invariant("an-exclusive-consumer-has-no-company", states=("exclusive-is-alone",))
    def exclusive_has_no_company(self, c: Consumer, d: Consumer, q: Queue) -> Bool:
        """No two consumers are subscribed to one queue if one of them is exclusive."""
        both = self.consuming[c] & self.consuming[d] & (c != d)
        here = self.subscribed[c, q] & self.subscribed[d, q]
        return ~(both & here & (self.exclusive[c] | self.exclusive[d]))

    @invariant("a-consumer-ends-once-and-for-a-reason", states=("closes-only-when-asked",))
    def ends_for_a_reason(self) -> Bool:
        """The reader was there and ends by itself, or was dismissed since it was last told."""
        asked = self.closes_itself[self.reader] & (self.left_at >= self.told_at)
        return implies(self.told_at > 0, asked | (self.told_before < self.dismissed_at))

    @invariant("what-closes-itself-has-seen-all", states=("auto-close-at-the-end",))
    def closes_at_the_end(self, e: Entry) -> Bool:
        """A reader that closed by itself left nothing behind that waited for it."""
        waited = self.waits_for_the_reader(e) & (self.waits_since[e] < self.closed_at)
        passed = (self.seen_at[e] > 0) | self.is_excused_from(e, self.closed_clock)
        due = self.is_in_time(e, self.closed_clock)
        return implies(waited & due, self.browses() & passed)

    @invariant("what-has-seen-all-closes-itself", states=("auto-close-happens",))
    def closes_in_the_end(self) -> Bool:
        """Once all has ended that ends, something is left for a reader that is still there.

        A browser of a queue that is not in the order of arrival may have to be shown it again.
        """
        asked = self.there & self.closes_itself[self.reader]

        def is_done_with(e: Entry) -> Bool:
            return self.browses() & (self.seen_at[e] > 0) & self.fifo[self.home[e]]

        unseen = exists(Entry, lambda e: self.is_ready(e) & ~is_done_with(e))
        return implies(self.all_ended & asked, unseen)

    @invariant("a-dismissed-consumer-is-told", states=("deletion-is-told",))
    def dismissed_is_told(self) -> Bool:
        """Once all has ended that ends, the reader has been told of the end of its queue."""
        return ~(self.all_ended & self.is_dismissed())

    @invariant("a-queue-ends-after-its-last-consumer", states=("auto-delete-when-unused",))
    def ends_after_its_last_consumer(self, q: Queue) -> Bool:
        """A queue that ended by itself once had a consumer, had none, and was not gone yet."""
        ended_at, used_at = self.ended_at[q], self.used_at[q]
        had = (used_at > 0) & ~((used_at <= self.crashed_at) & (self.crashed_at < ended_at))
        asked = self.deletes_itself[q] & (ended_at == self.gone_at[q])
        has = self.there & self.subscribed[self.reader, q]
        return implies(ended_at > 0, asked & had & ~has)

    @invariant("a-queue-without-consumers-ends", states=("auto-delete-happens",))
    def ends_without_consumers(self, q: Queue) -> Bool:
        """Once all has ended that ends, a queue that deletes itself has a consumer."""
        had = self.deletes_itself[q] & (self.used_at[q] > self.crashed_at)
        has = exists(Consumer, lambda c: self.consuming[c] & self.subscribed[c, q])
        return implies(self.all_ended & had & (self.gone_at[q] == 0), has)

    @invariant("a-parked-publish-waits-for-room", states=("parked-publish-taken",))
    def parked_waits_for_room(self) -> Bool:
        """While a publish is parked, some message waits and has not expired, or is held."""
        takes_room = exists(
            Entry, lambda e: (self.waits(e) & (self.clock < self.expires[e])) | self.out[e]
        )
        return implies(self.parked, takes_room)
