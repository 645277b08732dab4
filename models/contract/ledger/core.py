"""The promises of the contract, stated about what clients have seen instead of guard by guard.

The contract's own state forgets most of what happened, so a weaker guard may break none of its
invariants: two showings to a browser leave the state of one. The ledger remembers. It has a clock,
says when each message arrived, was given and came back, and what one arbitrary consumer, the
*reader*, has seen of it. What is proved of the reader holds for every consumer.

An invariant with `states` is a requirement, in terms of the ledger alone. It names no guard, so it
refutes a mistake that several guards share. The other invariants support these.

Only proofs read the ledger: the oracle follows the contract without it. The ledger adds no guard,
so each run of the contract has one.
"""

from __future__ import annotations

from brokerproof.models.contract.core import Contract
from brokerproof.models.contract.core_state import Channel, Consumer, Entry, Mode, Status
from brokerproof.models.language import (
    Bool,
    Int,
    Map,
    Value,
    action,
    implies,
    initial,
    invariant,
    ite,
)


class Ledger(Contract):
    """The contract, and what its clients have seen; a moment of 0 stands for never."""

    reader: Consumer

    moment: Value[Int]
    at_rest: Value[Bool]
    drained: Value[Bool]
    there: Value[Bool]
    came_at: Value[Int]
    left_at: Value[Int]
    served_at: Value[Int]
    found_nothing_at: Value[Int]
    arrived_at: Map[Entry, Int]
    waits_since: Map[Entry, Int]
    given_at: Map[Entry, Int]
    deliveries: Map[Entry, Int]
    returns: Map[Entry, Int]
    first_back_at: Map[Entry, Int]
    seen_at: Map[Entry, Int]
    seen_as_redelivered: Map[Entry, Bool]
    sightings: Map[Entry, Int]

    @initial
    def nothing_yet(self) -> None:
        """The clock starts at 1, and the ledger is empty."""
        super().nothing_yet()
        self.moment = 1
        self.at_rest = self.drained = self.there = False
        self.came_at = self.left_at = self.served_at = self.found_nothing_at = 0
        for number in (
            self.arrived_at,
            self.waits_since,
            self.given_at,
            self.deliveries,
            self.returns,
            self.first_back_at,
            self.seen_at,
            self.sightings,
        ):
            number.fill(0)
        self.seen_as_redelivered.fill(False)

    # What the actions write.

    @action
    def publish(self, entry: Entry) -> None:
        """A message arrives."""
        super().publish(entry)
        self.arrived_at[entry] = self.moment
        self._something_happened()

    @action
    def consume(self, consumer: Consumer) -> None:
        """A consumer comes; the first time of the reader is kept."""
        super().consume(consumer)
        self.came_at = ite(
            (consumer == self.reader) & (self.came_at == 0), self.moment, self.came_at
        )
        self.there = self.there | (consumer == self.reader)
        self._something_happened()

    @action
    def cancel(self, consumer: Consumer) -> None:
        """A consumer leaves."""
        super().cancel(consumer)
        self._leaves(consumer == self.reader)

    @action
    def acknowledge(self, entry: Entry) -> None:
        """A message is settled."""
        super().acknowledge(entry)
        self._something_happened()

    @action
    def reject(self, entry: Entry) -> None:
        """A message is discarded."""
        super().reject(entry)
        self._something_happened()

    @action
    def release(self, entry: Entry) -> None:
        """A message comes back."""
        super().release(entry)
        self._something_happened()

    @action
    def close_channel(self, which: Channel) -> None:
        """The consumers of a channel leave, and their messages come back."""
        super().close_channel(which)
        self._leaves(self.channel[self.reader] == which)

    @action
    def deliver(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is given to a consumer."""
        super().deliver(consumer, entry, redelivered)
        self.served_at = ite(consumer == self.reader, self.moment, self.served_at)
        self._is_given(consumer, entry, redelivered)

    @action
    def get(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is the answer of a get."""
        super().get(consumer, entry, redelivered)
        self._is_given(consumer, entry, redelivered)

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """A get finds nothing."""
        super().get_nothing(consumer)
        self.found_nothing_at = ite(consumer == self.reader, self.moment, self.found_nothing_at)
        self._something_happened()

    @action
    def browse(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is shown to a browser."""
        super().browse(consumer, entry, redelivered)
        self.served_at = ite(consumer == self.reader, self.moment, self.served_at)
        self._is_seen(consumer, entry, redelivered)
        self._something_happened()

    @action
    def quiesce(self) -> None:
        """The broker says that it rests."""
        super().quiesce()
        self.at_rest = True

    @action
    def final_drain(self, consumer: Consumer) -> None:
        """The reader has taken all that it is given."""
        super().final_drain(consumer)
        self.drained = self.drained | (consumer == self.reader)

    def _leaves(self, is_it: Bool) -> None:
        self.left_at = ite(is_it & self.there, self.moment, self.left_at)
        self.there = self.there & ~is_it
        self._something_happened()

    def _is_given(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        self.given_at[entry] = self.moment
        self.deliveries[entry] = self.deliveries[entry] + 1
        self._is_seen(consumer, entry, redelivered)
        self._something_happened()

    def _is_seen(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        by_reader, flag = consumer == self.reader, self.seen_as_redelivered[entry]
        self.seen_at[entry] = ite(by_reader, self.moment, self.seen_at[entry])
        self.seen_as_redelivered[entry] = ite(by_reader, redelivered, flag)
        self.sightings[entry] = ite(by_reader, self.sightings[entry] + 1, self.sightings[entry])

    def _something_happened(self) -> None:
        """Write down which messages have begun to wait, and let the clock go on."""

        def comes_back(e: Entry) -> Bool:
            return (self.status[e] == Status.AVAILABLE) & (self.deliveries[e] > self.returns[e])

        def begins(e: Entry) -> Bool:
            return comes_back(e) | (self.arrived_at[e] == self.moment)

        self.first_back_at = self.first_back_at.map(
            lambda e, old: ite(comes_back(e) & (old == 0), self.moment, old)
        )
        self.waits_since = self.waits_since.map(lambda e, old: ite(begins(e), self.moment, old))
        self.returns = self.returns.map(lambda e, old: ite(comes_back(e), old + 1, old))
        self.at_rest = self.drained = False
        self.moment = self.moment + 1

    # Terms about the ledger.

    def waits(self, e: Entry) -> Bool:
        """Whether a message has arrived, and has come back from each delivery."""
        return (self.arrived_at[e] > 0) & (self.deliveries[e] == self.returns[e])

    def waits_for_the_reader(self, e: Entry) -> Bool:
        """Whether a message that the reader wants waits."""
        return self.waits(e) & self.wants[self.reader, e]

    def browses(self) -> Bool:
        """Whether the reader is a browser."""
        return self.mode[self.reader] == Mode.BROWSE

    def has_window_left(self) -> Bool:
        """Whether the reader has no window, or holds less than fits it."""
        return ~self.limited[self.reader] | (self.unsettled[self.reader] < self.limit[self.reader])

    def was_never_away(self, e: Entry) -> Bool:
        """Whether no consumer had the message while the reader looked on."""
        return (self.deliveries[e] == 0) | (self.waits_since[e] < self.came_at)

    def was_back(self, e: Entry) -> Bool:
        """Whether the message had come back from a consumer before the reader last saw it."""
        return (self.first_back_at[e] > 0) & (self.first_back_at[e] < self.seen_at[e])

    # Promises of the core and of the whole contract alike.

    @invariant("what-is-seen-was-published", states=("nothing-invented",))
    def seen_was_published(self, e: Entry) -> Bool:
        """A message that the reader saw had been published before."""
        arrived_first = (self.arrived_at[e] > 0) & (self.arrived_at[e] < self.seen_at[e])
        return implies(self.seen_at[e] > 0, arrived_first)

    @invariant("none-is-served-after-it-left", states=("only-to-subscribers",))
    def none_is_served_after_it_left(self) -> Bool:
        """A reader that is not subscribed got its last message before it left."""
        return implies(~self.there, self.served_at <= self.left_at)

    @invariant(
        "a-browser-sees-once",
        states=("browser-once", "browser-once-by-priority", "browser-never-rewound"),
    )
    def browser_sees_once(self, e: Entry) -> Bool:
        """A browser sees no message twice, whether it came back or others arrived."""
        return implies(self.browses(), self.sightings[e] <= 1)


class LedgerOfContract(Ledger):
    """What the ledger of each run says: the promises, and what they rest on."""

    @invariant(
        "each-delivery-but-the-first-follows-a-return", states=("nothing-twice", "settled-once")
    )
    def follows_a_return(self, e: Entry) -> Bool:
        """A message is delivered again only after it came back."""
        return self.deliveries[e] <= self.returns[e] + 1

    @invariant("what-is-seen-is-wanted", states=("right-queue",))
    def seen_is_wanted(self, e: Entry) -> Bool:
        """The reader sees messages of its queue alone."""
        return implies(self.seen_at[e] > 0, self.wants[self.reader, e])

    @invariant("the-flag-tells-of-a-return", states=("redelivered-flag",))
    def flag_tells_of_a_return(self, e: Entry) -> Bool:
        """A message that the reader saw was marked exactly if it had come back before."""
        return implies(self.seen_at[e] > 0, self.seen_as_redelivered[e] == self.was_back(e))

    @invariant(
        "what-was-first-in-turn-went-first",
        states=("fifo-order", "priority-order", "release-rewinds"),
    )
    def first_went_first(self, e: Entry, f: Entry) -> Bool:
        """No message waits that was ahead of one which the reader was given after it.

        A message that returned has a known place only if messages return to their places.
        """
        known = self.returns_to_place | ((self.first_back_at[f] == 0) & ~self.was_back(e))
        waited = self.waits_for_the_reader(f) & (self.waits_since[f] < self.seen_at[e])
        return ~(waited & self.before(f, e) & known & ~self.browses())

    @invariant("no-window-is-exceeded", states=("credit-not-exceeded",))
    def no_window_is_exceeded(self) -> Bool:
        """A reader with a window holds no more than fits it, and with one of 0 was never served."""
        held, limit = self.unsettled[self.reader], self.limit[self.reader]
        kept = (held <= limit) & implies(limit == 0, self.served_at == 0)
        return implies(self.limited[self.reader], kept)

    @invariant("an-empty-get-left-nothing-waiting", states=("get-finds",))
    def empty_get(self, e: Entry) -> Bool:
        """What waits for the reader came after its last empty get."""
        waits = self.waits_for_the_reader(e)
        return implies(waits, self.found_nothing_at <= self.waits_since[e])

    @invariant("rest-leaves-no-consumer-wanting", states=("quiescence", "credit-used"))
    def rest_leaves_no_consumer_wanting(self, e: Entry) -> Bool:
        """At rest nothing waits for a reader with room."""
        could_take = self.there & ~self.browses() & self.has_window_left()
        return ~(self.at_rest & could_take & self.waits_for_the_reader(e))

    @invariant("rest-has-shown-a-browser-all", states=("browser-sees-all",))
    def rest_has_shown_a_browser_all(self, e: Entry) -> Bool:
        """At rest a browser has seen what waits, unless a consumer had it in the meantime."""
        could_look = self.there & self.browses() & self.has_window_left()
        owed = self.waits_for_the_reader(e) & self.was_never_away(e)
        return implies(self.at_rest & could_look & owed, self.seen_at[e] > 0)

    @invariant(
        "a-drain-leaves-nothing",
        states=("nothing-lost", "close-releases", "browser-takes-nothing", "settled-once"),
    )
    def drain_leaves_nothing(self, e: Entry) -> Bool:
        """After a final drain each message of the reader's queue is settled or held.

        That holds whatever was done with it: browsed, settled twice, held by a closed channel.
        """
        concerned = (self.arrived_at[e] > 0) & self.wants[self.reader, e]
        return implies(self.drained & concerned, self.deliveries[e] == self.returns[e] + 1)

    @invariant("a-browser-sees-what-is-back", states=("browser-sees-available",))
    def browser_sees_what_is_back(self, e: Entry) -> Bool:
        """A message that a browser saw after its last delivery had come back in between."""
        back = (self.given_at[e] < self.waits_since[e]) & (self.waits_since[e] < self.seen_at[e])
        return implies(self.browses() & (self.seen_at[e] > self.given_at[e]), back)

    @invariant("a-browser-goes-forward", states=("browser-once", "browser-never-rewound"))
    def browser_goes_forward(self, e: Entry, f: Entry) -> Bool:
        """A browser sees no message that was there before it saw one behind it."""
        both = (self.seen_at[e] > 0) & (self.seen_at[f] > 0) & self._of_fifo_queues(e, f)
        was_there = self.before(f, e) & (self.arrived_at[f] < self.seen_at[e])
        return implies(self.browses() & both & was_there, self.seen_at[f] < self.seen_at[e])

    @invariant("a-browser-skips-nothing", states=("browser-in-order",))
    def browser_skips_nothing(self, e: Entry, f: Entry) -> Bool:
        """A message that waited ahead of one that a browser saw was seen too."""
        waited = self.waits_for_the_reader(f) & (self.waits_since[f] < self.seen_at[e])
        ahead = self.before(f, e) & self.fifo[self.home[e]] & self.was_never_away(f)
        return implies(self.browses() & waited & ahead, self.seen_at[f] > 0)

    def _of_fifo_queues(self, e: Entry, f: Entry) -> Bool:
        return self.fifo[self.home[e]] & self.fifo[self.home[f]]

    # What the promises rest on.

    @invariant("the-ledger-is-of-the-past")
    def of_the_past(self, e: Entry) -> Bool:
        """All that is written happened before now."""

        def past(moment: Int) -> Bool:
            return (moment >= 0) & (moment < self.moment)

        of_reader = (self.came_at, self.left_at, self.served_at, self.found_nothing_at)
        of_message = (
            self.arrived_at[e],
            self.waits_since[e],
            self.given_at[e],
            self.first_back_at[e],
            self.seen_at[e],
        )
        found = past(self.arrived_at[e])
        for moment in (*of_reader, *of_message):
            found = found & past(moment)
        return found & (self.sightings[e] >= 0)

    @invariant("the-ledger-follows-messages")
    def follows_messages(self, e: Entry) -> Bool:
        """A message waits where the contract says that it is available."""
        arrived, out = self.arrived_at[e] > 0, self.deliveries[e] == self.returns[e] + 1
        new = (self.deliveries[e] == 0) & (self.waits_since[e] == 0) & (self.given_at[e] == 0)
        return (
            (arrived == (self.status[e] != Status.ABSENT))
            & implies(~arrived, new & (self.returns[e] == 0))
            & (self.waits(e) == (self.status[e] == Status.AVAILABLE))
            & (out == self.taken(e))
            & (self.returns[e] >= 0)
        )

    @invariant("the-ledger-follows-turns")
    def follows_turns(self, e: Entry) -> Bool:
        """A message that waits began to do so after its last delivery; a taken one before."""
        since, given, first = self.waits_since[e], self.given_at[e], self.first_back_at[e]
        return (
            implies(self.waits(e), (given < since) & (self.arrived_at[e] <= since))
            & implies(self.taken(e), (since > 0) & (since < given))
            & ((first > 0) == self.has_returned(e))
            & (first <= since)
            & implies(first > 0, self.deliveries[e] > 0)
        )

    @invariant("the-ledger-follows-the-reader")
    def follows_the_reader(self, e: Entry) -> Bool:
        """The reader is there where the contract says so, and holds none that it cannot."""
        holds = (self.status[e] == Status.ACQUIRED) & (self.holder[e] == self.reader)
        closed = self.limited[self.reader] & (self.limit[self.reader] == 0)
        never = closed | (self.mode[self.reader] != Mode.ACKNOWLEDGE)
        return (
            (self.there == self.consuming[self.reader])
            & implies(self.there, self.came_at > 0)
            & implies(never, ~holds & (self.unsettled[self.reader] == 0))
        )

    @invariant("the-ledger-follows-the-browser")
    def follows_the_browser(self, e: Entry) -> Bool:
        """A browser is excused from what it saw, and from what was away while it was there."""
        excused, seen = self.excused[self.reader, e], self.seen_at[e] > 0
        was_away = (self.deliveries[e] > 0) & (self.taken(e) | (self.waits_since[e] > self.came_at))
        once = (self.sightings[e] == 1) & (self.came_at > 0) & (self.came_at < self.seen_at[e])
        return implies(
            self.browses(),
            (seen == self.shown[self.reader, e])
            & implies(seen, once)
            & implies(~seen, self.sightings[e] == 0)
            & implies(excused, seen | ((self.came_at > 0) & was_away))
            & implies(self.there & self.taken(e), excused),
        )

    @invariant("the-ledger-follows-the-place")
    def follows_the_place(self, e: Entry, f: Entry) -> Bool:
        """All that was there ahead of a shown message is behind the browser's place."""
        ahead = self.before(f, e) & self._of_fifo_queues(e, f) & self.wants[self.reader, f]
        was_there = (self.arrived_at[f] > 0) & (self.arrived_at[f] < self.seen_at[e])
        return implies(self.browses() & ahead & was_there, self.behind[self.reader, f])
