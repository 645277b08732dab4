"""The promises of the whole contract about windows, turns and rest.

They have terms of their own for room and for places, so that a mistake in the contract's terms
breaks them.
"""

from __future__ import annotations

from brokerproof.models.contract.core_state import Entry, Mode
from brokerproof.models.contract.ledger.whole_links import MESSAGES, ORDER, WholeLedgerLinks
from brokerproof.models.language import Bool, Int, exists, implies, invariant, ite


class WholeLedgerTurns(WholeLedgerLinks):
    """What the ledger says about room, about the order of messages, and about rest."""

    # Windows.

    @invariant("no-window-is-exceeded", states=("credit-not-exceeded",))
    def no_window_is_exceeded(self) -> Bool:
        """A reader that was served under its window holds no more messages than fit it."""
        held, limit = self.unsettled[self.reader], self.limit[self.reader]
        kept = ite(self.fills(), held <= limit, limit > 0)
        return implies(self.limited[self.reader] & self.was_served_since(self.windows_set_at), kept)

    @invariant("no-window-of-bytes-is-exceeded", states=("byte-credit-not-exceeded",))
    def no_byte_window_is_exceeded(self, e: Entry) -> Bool:
        """A reader with a window of bytes holds what fits it, or one message that is too large."""
        held, limit = self.unsettled_bytes[self.reader], self.byte_limit[self.reader]
        alone = self.when_idle & (self.unsettled[self.reader] <= 1)
        since = self.windows_set_at
        small = implies(self.seen_at[e] > since, self.when_idle | (self.size[e] <= limit))
        kept = (limit > 0) & ite(self.fills(), alone | (held <= limit), small)
        return implies(self.byte_limited[self.reader] & self.was_served_since(since), kept)

    @invariant("no-window-of-a-channel-is-exceeded", states=("channel-credit-not-exceeded",))
    def no_pool_is_exceeded(self, e: Entry) -> Bool:
        """The consumers of the reader's channel hold together what fits its windows."""
        at, since = self.channel[self.reader], self.pool_stirred_at
        messages = ite(self.fills(), self.in_pool[at] <= self.pool[at], self.pool[at] > 0)
        alone = self.when_idle & (self.in_pool[at] <= 1)
        limit, just_now = self.byte_pool[at], self.seen_at[e] + 1 == self.moment
        idle = self.when_idle & implies(just_now, self.in_pool[at] == 0)
        small = implies(self.seen_at[e] > since, idle | (self.size[e] <= limit))
        held = ite(self.fills(), alone | (self.bytes_in_pool[at] <= limit), small)
        kept = implies(self.pooled[at], messages) & implies(
            self.byte_pooled[at], (limit > 0) & held
        )
        return implies(self.was_served_since(since), kept)

    # Turns.

    @invariant(
        "what-was-first-in-turn-went-first",
        by=(*MESSAGES, *ORDER),
        states=("fifo-order", "priority-order", "release-rewinds"),
    )
    def first_went_first(self, e: Entry, f: Entry) -> Bool:
        """No message waits that was ahead of one which the reader was given after it."""
        neither = (self.first_back_at[f] == 0) & ~self.was_back(e)
        calm = self.is_undisturbed(e) & self.is_undisturbed(f)
        known = self.returns_to_place | (calm & (self.moves() | neither))
        return ~(self.was_passed_over(e, f) & known & ~self.browses())

    @invariant(
        "a-returned-message-is-where-claimed",
        by=(*MESSAGES, *ORDER),
        states=("returns-where-claimed",),
    )
    def returned_is_where_claimed(self, e: Entry, f: Entry) -> Bool:
        """The same of returned messages, where they go to the tail or to the head."""
        returned = (self.first_back_at[f] > 0) | self.was_back(e)
        calm = self.is_undisturbed(e) & self.is_undisturbed(f)
        passed_over = self.was_passed_over(e, f)
        return ~(passed_over & self.moves() & returned & calm & ~self.browses())

    @invariant("a-sorted-queue-goes-by-its-key", by=(*MESSAGES, *ORDER), states=("sorted-order",))
    def sorted_goes_by_key(self, e: Entry, f: Entry) -> Bool:
        """The same of a queue that is sorted by key, returned messages included."""
        calm = self.is_undisturbed(e) & self.is_undisturbed(f)
        by_key = self.is_sorted_by_key[self.home[f]] & (calm | ~self.moves())
        return ~(self.was_passed_over(e, f) & by_key & ~self.browses())

    @invariant(
        "a-browser-skips-nothing",
        by=(*MESSAGES, *ORDER, "the-ledger-follows-the-browser"),
        states=("browser-in-order",),
    )
    def browser_skips_nothing(self, e: Entry, f: Entry) -> Bool:
        """A message that waited ahead of one that a browser saw was seen too."""
        calm = self.is_undisturbed(e) & self.is_undisturbed(f)
        known = self.fifo[self.home[e]] & (calm | ~self.moves())
        owed = ~self.is_excused_from(f, self.seen_clock[e])
        passed_over = self.was_passed_over(e, f) & known & owed
        return implies(self.browses() & passed_over, self.seen_at[f] > 0)

    @invariant(
        "a-higher-consumer-goes-first",
        by=(*MESSAGES, *ORDER),
        states=("consumer-priority",),
    )
    def higher_goes_first(self, e: Entry) -> Bool:
        """A lower consumer gets nothing that was first in turn for the reader, with room for it."""
        just_now = self.outranked_at[e] + 1 == self.moment
        able = self.there & ~self.browses() & self.wants[self.reader, e] & self.has_room_for(e)
        first = ~exists(Entry, lambda g: self.is_ready(g) & self.could_be_ahead(g, e))
        return ~(just_now & able & first)

    # Rest.

    @invariant("an-empty-get-left-nothing-waiting", states=("get-finds",))
    def empty_get(self, e: Entry) -> Bool:
        """What waits for the reader came after its last empty get, or was not due then."""
        due = self.is_in_time(e, self.found_nothing_clock)
        waits = self.waits_for_the_reader(e) & due
        return implies(waits, self.found_nothing_at <= self.waits_since[e])

    @invariant("rest-leaves-no-consumer-wanting", by=ORDER, states=("quiescence", "credit-used"))
    def rest_leaves_no_consumer_wanting(self, e: Entry) -> Bool:
        """At rest nothing waits for a reader with room, behind none that it has no room for."""
        resting = self.at_rest | (self.at_rest_by_size & ~self.is_blocked_at(e))
        return ~(resting & self.takes_part(e) & ~self.browses())

    @invariant("rest-has-shown-a-browser-all", states=("browser-sees-all",))
    def rest_has_shown_a_browser_all(self, e: Entry) -> Bool:
        """At rest a browser has seen what waits, unless its place may have passed it before."""
        resting = self.at_rest | (self.at_rest_by_size & ~self.is_blocked_at(e))
        owed = self.takes_part(e) & ~self.is_excused_from(e, self.clock)
        return implies(resting & owed & self.browses(), self.seen_at[e] > 0)

    @invariant(
        "a-flush-leaves-nothing-to-give",
        by=ORDER,
        states=("flush-delivers",),
    )
    def flush_leaves_nothing(self, e: Entry) -> Bool:
        """After a flush nothing waits for the reader that it has room for, and could reach."""
        return ~(self.flushed & self.takes_part(e) & ~self.browses() & ~self.is_blocked_at(e))

    @invariant(
        "a-drain-leaves-nothing",
        states=(
            *("nothing-lost", "close-releases", "browser-takes-nothing", "settled-once"),
            *("survives-restart", "purge-leaves-acquired"),
        ),
    )
    def drain_leaves_nothing(self, e: Entry) -> Bool:
        """After a final drain no message of the reader's queues waits any more."""
        return ~(self.drained & self.is_ready(e))

    # Terms about the ledger.

    def fills(self) -> Bool:
        """Whether the reader's messages fill its windows until it settles them."""
        return self.mode[self.reader] == Mode.ACKNOWLEDGE

    def was_served_since(self, moment: Int) -> Bool:
        """Whether the reader got a message after this moment, and never by a get."""
        return (self.served_at > moment) & ~self.has_asked

    def is_ready(self, e: Entry) -> Bool:
        """Whether a message waits that the reader wants, in its time."""
        return self.waits_for_the_reader(e) & self.is_in_time(e, self.clock)

    def takes_part(self, e: Entry) -> Bool:
        """Whether the reader is there, with room for a message that is ready for it."""
        return self.there & self.is_ready(e) & self.has_room_for(e)

    def was_passed_over(self, e: Entry, f: Entry) -> Bool:
        """Whether f waits since before the reader saw e, was in its time then, and ahead of e."""
        waited = self.waits_for_the_reader(f) & (self.waits_since[f] < self.seen_at[e])
        back = (self.first_back_at[f] > 0, self.was_back(e))
        stood = self.stands_since[f] < self.stood_since[e]
        in_time = self.is_in_time(f, self.seen_clock[e])
        return waited & in_time & self._is_ahead(f, e, back, earlier=stood)

    def could_be_ahead(self, g: Entry, e: Entry) -> Bool:
        """Whether no claim says that e is ahead of g."""
        back = (self.first_back_at[e] > 0, self.first_back_at[g] > 0)
        stands = self.stands_since[e] < self.stands_since[g]
        calm = self.is_undisturbed(e) & self.is_undisturbed(g)
        known = calm | ~(self.moves() & self.ties[e, g])
        return (g != e) & ~(known & self._is_ahead(e, g, back, earlier=stands))

    def _is_ahead(self, one: Entry, other: Entry, back: tuple[Bool, Bool], earlier: Bool) -> Bool:
        """Whether one is ahead of the other, by claim, from which of them is back."""
        first, second = back
        by_place = (self.to_head & first & ~second) | (~(self.to_head & second & ~first) & earlier)
        return ite(self.moves() & self.ties[one, other], by_place, self.before(one, other))

    def is_blocked_at(self, e: Entry) -> Bool:
        """Whether the reader may wait for room at a message before e."""

        def may_wait_at(g: Entry) -> Bool:
            passed = self.browses() & (self.seen_at[g] > 0) & self.fifo[self.home[g]]
            return self.is_ready(g) & ~passed & ~self.has_room_for(g)

        return exists(Entry, lambda g: may_wait_at(g) & self.could_be_ahead(g, e))

    def has_room_for(self, e: Entry) -> Bool:
        """Whether the windows of the reader and of its channel let the message through.

        They do not for certain if the reader never fills a window of bytes, and large messages are
        sent into idle windows.
        """
        reader, at = self.reader, self.channel[self.reader]
        counts = (self.limited[reader], self.limit[reader], self.unsettled[reader])
        pooled = (self.pooled[at], self.pool[at], self.in_pool[at])
        in_bytes = (
            self.byte_limited[reader],
            self.byte_limit[reader],
            self.unsettled_bytes[reader],
        )
        bytes_pooled = (self.byte_pooled[at], self.byte_pool[at], self.bytes_in_pool[at])
        unclear = ~self.fills() & self.when_idle & (in_bytes[0] | bytes_pooled[0])
        return (
            self._fits(*counts, 1)
            & self._fits(*pooled, 1)
            & self._fits_in_bytes(*in_bytes, counts[2], e)
            & self._fits_in_bytes(*bytes_pooled, pooled[2], e)
            & ~unclear
        )

    def _fits(self, limited: Bool, limit: Int, held: Int, more: Int | int) -> Bool:
        filled = ite(self.fills(), held, 0)
        return ~limited | (filled + more <= limit)

    def _fits_in_bytes(self, limited: Bool, limit: Int, held: Int, many: Int, e: Entry) -> Bool:
        idle = self.when_idle & (many == 0) & (limit < self.size[e])
        return ~limited | (self._fits(limited, limit, held, self.size[e]) | idle) & (limit > 0)
