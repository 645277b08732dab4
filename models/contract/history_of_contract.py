"""The theorem about the rules on histories: no recording of a run of the contract breaks one.

The contract gets a clock, and rigid spans for a recording; each step is taken within its span.
One arbitrary waiting interval and one arbitrary delivery of each message are watched, and one
arbitrary empty get of the run, so the proof holds for all of them. The theorem is
`no-rule-is-shown` and, for the rules on each moment of a span,
`no-moment-is-one-at-which-some-waited`; the other invariants support it.
"""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core import Channel, Consumer, Contract, Entry, Origin, Status
from brokerproof.models.contract.history import (
    GIVEN_BEFORE_PUBLISHED,
    OVERTAKES_AN_EQUAL,
    OVERTAKES_WHAT_RETURNED,
    TAKEN_WHILE_ANOTHER_WAITED,
    TAKEN_WHILE_SOME_WAITED,
    Span,
    WaitingInterval,
)
from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    Int,
    Map,
    SetOf,
    action,
    axiom,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)


class Run(Family):
    """The run; there is exactly one."""


class HistoryOfContract(Contract):
    """The contract with a clock and crashes, and a recording in whose spans its steps are taken.

    The waiting intervals of a message are counted from 1: interval n begins with the arrival or
    with return number n - 1, and delivery n ends it. A crash that loses a message ends its interval
    too and counts as a delivery, but never as the watched one.
    """

    run: Run
    never: Fixed[Run, Int]
    asker: Fixed[Run, Consumer]
    the_get: Fixed[Run, Int]
    asked_start: Fixed[Run, Int]
    asked_end: Fixed[Run, Int]
    watched: Fixed[Entry, Int]
    noticed: Fixed[Entry, Int]
    lasts: Fixed[Entry, Bool]
    answered: Fixed[Entry, Bool]
    published_start: Fixed[Entry, Int]
    published_end: Fixed[Entry, Int]
    begun_start: Fixed[Entry, Int]
    begun_end: Fixed[Entry, Int]
    left_start: Fixed[Entry, Int]
    left_end: Fixed[Entry, Int]
    given_start: Fixed[Entry, Int]
    given_end: Fixed[Entry, Int]

    now: Map[Run, Int]
    empty_gets: Map[Run, Int]
    asked_at: Map[Run, Int]
    intervals: Map[Entry, Int]
    deliveries: Map[Entry, Int]
    published_at: Map[Entry, Int]
    begun_at: Map[Entry, Int]
    left_at: Map[Entry, Int]
    given_at: Map[Entry, Int]
    left_in_a_crash: Map[Entry, Bool]

    @axiom("counting-begins-with-one")
    def counting_begins_with_one(self) -> Bool:
        """Waiting intervals, deliveries and gets are numbered from 1."""
        return (self.the_get[self.run] >= 1) & forall(
            Entry, lambda e: (self.watched[e] >= 1) & (self.noticed[e] >= 1)
        )

    @axiom("recordings-end")
    def recordings_end(self) -> Bool:
        """Every recorded delivery and get ended before `never`, the end of all times."""
        never = self.never[self.run]
        return (self.asked_end[self.run] < never) & forall(
            Entry, lambda e: self.given_end[e] < never
        )

    @axiom("answers-are-recorded")
    def answers_are_recorded(self, e: Entry) -> Bool:
        """A publish with a recorded end was answered: the broker has taken responsibility."""
        return implies(self.published_end[e] < self.never[self.run], self.answered[e])

    @initial
    def nothing_yet(self) -> None:
        """The clock starts at 0, and nothing has been counted."""
        super().nothing_yet()
        self.left_in_a_crash.fill(False)
        for counted in (self.now, self.empty_gets, self.asked_at):
            counted.fill(0)
        for counted_each in (self.intervals, self.deliveries):
            counted_each.fill(0)
        for moment in (self.published_at, self.begun_at, self.left_at, self.given_at):
            moment.fill(0)

    @action
    def publish(self, entry: Entry) -> None:
        """A message arrives within its recorded span."""
        now = self.now[self.run]
        require((self.published_start[entry] <= now) & (now <= self.published_end[entry]))
        self._requires_its_span(lambda e: e == entry)
        super().publish(entry)
        self.published_at[entry] = now
        self._begin_intervals()

    @action
    def release(self, entry: Entry) -> None:
        """A message returns; its next waiting interval begins."""
        self._requires_its_span(lambda e: e == entry)
        super().release(entry)
        self._begin_intervals()

    @action
    def close_channel(self, which: Channel) -> None:
        """A channel closes; the messages that it holds return."""
        self._requires_its_span(lambda e: self.goes_back(which, e))
        super().close_channel(which)
        self._begin_intervals()

    @action
    def crash(self, lost: SetOf[Entry]) -> None:
        """The broker stops, and restarts without some of the messages that it may lose."""

        def returns(e: Entry) -> Bool:
            return (self.status[e] == Status.ACQUIRED) & ~lost[e]

        require(forall(Entry, lambda e: implies(lost[e], self.may_be_lost(e))))
        self._requires_its_span(returns)
        self._ends_waits(lambda e: (self.status[e] == Status.AVAILABLE) & lost[e])
        self.origin = self.origin.map(lambda e, old: ite(returns(e), Origin.CLOSED, old))
        self._stops(lambda e: lost[e])
        self._begin_intervals()

    def may_be_lost(self, e: Entry) -> Bool:
        """Whether a crash may lose a message: it is not durable, or its publish has no answer."""
        return self.has_arrived(e) & (~self.lasts[e] | ~self.answered[e])

    def _ends_waits(self, lost: Callable[[Entry], Bool]) -> None:
        """Count the loss of a waiting message as an unseen delivery in its span."""
        now = self.now[self.run]

        def leaves(e: Entry) -> Bool:
            return lost(e) & (self.deliveries[e] + 1 == self.watched[e])

        def in_time(e: Entry) -> Bool:
            within = (self.left_start[e] <= now) & (now <= self.left_end[e])
            seen = lost(e) & self.is_noticed(e, self.deliveries[e] + 1)
            return implies(leaves(e), within) & ~seen

        require(forall(Entry, in_time))
        self.left_at = self.left_at.map(lambda e, old: ite(leaves(e), now, old))
        self.left_in_a_crash = self.left_in_a_crash.map(lambda e, old: old | leaves(e))
        self.deliveries = self.deliveries.map(lambda e, old: ite(lost(e), old + 1, old))

    @action
    def deliver(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker delivers a message."""
        self._requires_its_moment(entry)
        super().deliver(consumer, entry, redelivered)
        self._is_given(entry)

    @action
    def get(self, consumer: Consumer, entry: Entry, redelivered: Bool) -> None:
        """The broker answers a get with a message."""
        self._requires_its_moment(entry)
        super().get(consumer, entry, redelivered)
        self._is_given(entry)

    @action
    def get_nothing(self, consumer: Consumer) -> None:
        """The broker answers a get without a message."""
        now, number = self.now[self.run], self.empty_gets[self.run] + 1
        this_one = number == self.the_get[self.run]
        within = (self.asked_start[self.run] <= now) & (now <= self.asked_end[self.run])
        require(implies(this_one, within & (consumer == self.asker[self.run])))
        super().get_nothing(consumer)
        self.empty_gets[self.run] = number
        self.asked_at[self.run] = ite(this_one, now, self.asked_at[self.run])
        self.now[self.run] = now + 1

    def _requires_its_span(self, begins: Callable[[Entry], Bool]) -> None:
        """Require that a watched interval begins within its span."""
        now = self.now[self.run]

        def in_time(e: Entry) -> Bool:
            is_watched = self.intervals[e] + 1 == self.watched[e]
            within = (self.begun_start[e] <= now) & (now <= self.begun_end[e])
            return implies(begins(e) & is_watched, within)

        require(forall(Entry, in_time))

    def _begin_intervals(self) -> None:
        """Begin an interval for each message that waits and did not wait before."""
        now = self.now[self.run]

        def begins(e: Entry) -> Bool:
            return (self.status[e] == Status.AVAILABLE) & (self.intervals[e] == self.deliveries[e])

        def is_watched(e: Entry) -> Bool:
            return begins(e) & (self.intervals[e] + 1 == self.watched[e])

        self.begun_at = self.begun_at.map(lambda e, old: ite(is_watched(e), now, old))
        self.intervals = self.intervals.map(lambda e, old: ite(begins(e), old + 1, old))
        self.now[self.run] = now + 1

    def _requires_its_moment(self, entry: Entry) -> None:
        """Require that a watched delivery is made in its span."""
        now, number = self.now[self.run], self.deliveries[entry] + 1
        in_time = (self.left_start[entry] <= now) & (now <= self.left_end[entry])
        require(implies(number == self.watched[entry], in_time))
        in_time = (self.given_start[entry] <= now) & (now <= self.given_end[entry])
        require(implies(number == self.noticed[entry], in_time))

    def _is_given(self, entry: Entry) -> None:
        """Count a delivery."""
        now, number = self.now[self.run], self.deliveries[entry] + 1
        leaves, is_noticed = number == self.watched[entry], number == self.noticed[entry]
        self.deliveries[entry] = number
        self.left_at[entry] = ite(leaves, now, self.left_at[entry])
        self.given_at[entry] = ite(is_noticed, now, self.given_at[entry])
        self.now[self.run] = now + 1

    # Terms about a recording.

    def is_noticed(self, e: Entry, number: Int) -> Bool:
        """Whether the delivery with this number is the watched one."""
        return number == self.noticed[e]

    def must_be_kept(self, e: Entry) -> Bool:
        """Whether no crash may lose the message: it is durable, and its publish was answered."""
        return self.lasts[e] & (self.published_end[e] < self.never[self.run])

    def has_begun(self, e: Entry) -> Bool:
        """Whether the watched interval has begun."""
        return self.intervals[e] >= self.watched[e]

    def has_left(self, e: Entry) -> Bool:
        """Whether the watched interval has ended by a delivery or a loss."""
        return self.deliveries[e] >= self.watched[e]

    def was_given(self, e: Entry) -> Bool:
        """Whether the watched delivery was made."""
        return self.deliveries[e] >= self.noticed[e]

    def of_one_queue(self, e: Entry, f: Entry) -> Bool:
        """Whether two messages are in one queue and wanted by the same consumers."""
        wanted_alike = forall(Consumer, lambda c: self.wants[c, e] == self.wants[c, f])
        return (self.home[e] == self.home[f]) & wanted_alike

    def places_are_known(self, late: Entry, early: Entry) -> Bool:
        """Whether neither message had returned, or a return takes a message back to its place."""
        never_returned = (self.watched[early] == 1) & (self.noticed[late] == 1)
        return self.returns_to_place | never_returned

    def interval(self, e: Entry) -> WaitingInterval:
        """Return the record of a message: its watched interval, with its watched delivery."""
        known = self.has_left(e) & ~(self.left_in_a_crash[e] & self.must_be_kept(e))
        left = ite(known, self.left_start[e], self.never[self.run])
        nothing = Span(0, 0)
        return WaitingInterval(
            Span(self.published_start[e], self.published_end[e]),
            Span(self.begun_start[e], self.begun_end[e]),
            Span(left, self.left_end[e]),
            Span(self.given_start[e], self.given_end[e]),
            place=nothing,
            back=nothing,
        )

    def asked(self) -> WaitingInterval:
        """Return the record of the empty get."""
        nothing = Span(0, 0)
        given = Span(self.asked_start[self.run], self.asked_end[self.run])
        return WaitingInterval(nothing, nothing, nothing, given, place=nothing, back=nothing)

    # Lemmas for the theorem.

    @invariant("waiting-intervals-follow-the-status")
    def intervals_follow(self, e: Entry) -> Bool:
        """A waiting message has one interval more than deliveries; each return begins another."""
        waits = self.status[e] == Status.AVAILABLE
        expected = ite(waits, self.deliveries[e] + 1, self.deliveries[e])
        counted = (self.intervals[e] == expected) & (self.deliveries[e] >= 0)
        return (
            counted
            & (self.has_arrived(e) == (self.intervals[e] >= 1))
            & (self.has_returned(e) == (self.intervals[e] >= 2))
        )

    @invariant("only-what-need-not-be-kept-is-lost")
    def only_what_need_not_be_kept_is_lost(self, e: Entry) -> Bool:
        """Only messages that the rules treat as possibly lost are lost in a crash."""
        return ~(self.left_in_a_crash[e] & self.must_be_kept(e))

    @invariant("moments-are-within-their-spans")
    def moments_within(self, e: Entry) -> Bool:
        """Every event happened within its recorded span, in the past, and after its publish."""

        def within(start: Int, at: Int, end: Int) -> Bool:
            return (start <= at) & (at <= end) & (at < self.now[self.run])

        published = within(self.published_start[e], self.published_at[e], self.published_end[e])
        in_order = self.published_at[e] <= self.begun_at[e]
        first = implies(self.watched[e] == 1, self.published_at[e] == self.begun_at[e])
        begun = within(self.begun_start[e], self.begun_at[e], self.begun_end[e]) & in_order & first
        after_begin = self.begun_at[e] < self.left_at[e]
        left = within(self.left_start[e], self.left_at[e], self.left_end[e]) & after_begin
        after_publish = self.published_at[e] < self.given_at[e]
        given = within(self.given_start[e], self.given_at[e], self.given_end[e]) & after_publish
        return (
            implies(self.has_arrived(e), published)
            & implies(self.has_begun(e), begun)
            & implies(self.has_left(e), left)
            & implies(self.was_given(e), given)
        )

    @invariant("the-get-is-within-its-span")
    def get_within(self) -> Bool:
        """The empty get happened within its recorded span."""
        at = self.asked_at[self.run]
        within = (self.asked_start[self.run] <= at) & (at <= self.asked_end[self.run])
        return implies(self.has_asked(), within & (at < self.now[self.run]))

    def has_asked(self) -> Bool:
        """Whether the empty get was made."""
        return self.empty_gets[self.run] >= self.the_get[self.run]

    @invariant("equals-stand-as-they-were-published")
    def equals_in_order(self, e: Entry, f: Entry) -> Bool:
        """Within a level, the queue's order is the order of publishing."""
        return implies(
            self.of_one_level(e, f)
            & self.has_arrived(e)
            & self.has_arrived(f)
            & (self.published_at[e] < self.published_at[f]),
            self.before(e, f),
        )

    @invariant("given-in-order")
    def given_in_order(self, e: Entry, f: Entry) -> Bool:
        """A message that waited ahead of a delivery had left the queue before that delivery."""
        return implies(
            self.of_one_queue(e, f)
            & self.before(e, f)
            & self.places_are_known(f, e)
            & self.has_begun(e)
            & self.was_given(f)
            & (self.begun_at[e] < self.given_at[f]),
            self.has_left(e) & (self.left_at[e] < self.given_at[f]),
        )

    @invariant("nothing-found-where-nothing-waits")
    def nothing_found(self, e: Entry) -> Bool:
        """A message that waited before the empty get had left the queue by then."""
        return implies(
            self.wants[self.asker[self.run], e]
            & self.has_asked()
            & self.has_begun(e)
            & (self.begun_at[e] < self.asked_at[self.run]),
            self.has_left(e) & (self.left_at[e] < self.asked_at[self.run]),
        )

    @invariant("no-moment-is-one-at-which-some-waited")
    def no_moment_at_which_some_waited(self) -> Bool:
        """At its own moment, no delivery and no empty get breaks the rule with any early message.

        So a recording of a run cannot break the rule at each moment of a span, even with different
        early messages. The moment does not depend on which intervals are watched, so the statement
        covers several intervals of one message too.
        """

        def of_urgent(late: Entry, early: Entry) -> Bool:
            recorded = self.of_one_queue(late, early) & self.was_given(late) & self.has_begun(early)
            urgent = (self.level[early] > self.level[late]) & self.places_are_known(late, early)
            then = self.interval(late).at(self.given_at[late])
            shown = TAKEN_WHILE_SOME_WAITED.shown_by(then, self.interval(early))
            return implies(recorded & urgent, ~shown)

        def of_the_get(e: Entry) -> Bool:
            concerned = self.has_asked() & self.has_begun(e) & self.wants[self.asker[self.run], e]
            then = self.asked().at(self.asked_at[self.run])
            return implies(concerned, ~TAKEN_WHILE_SOME_WAITED.shown_by(then, self.interval(e)))

        return forall(Entry, of_the_get) & forall(Entry, Entry, of_urgent)

    @invariant("no-rule-is-shown")
    def no_rule_is_shown(self) -> Bool:
        """No recording of a run of the contract breaks a rule."""

        def overtakes(late: Entry, early: Entry) -> Bool:
            both = (self.interval(late), self.interval(early))
            first = (self.watched[early] == 1) & (self.noticed[late] == 1)
            equal = self.of_one_level(late, early)
            urgent = self.level[early] > self.level[late]
            shown: Bool = (
                (equal & first & OVERTAKES_AN_EQUAL.shown_by(*both))
                | (equal & self.returns_to_place & OVERTAKES_WHAT_RETURNED.shown_by(*both))
                | (
                    urgent
                    & self.places_are_known(late, early)
                    & TAKEN_WHILE_ANOTHER_WAITED.shown_by(*both)
                )
            )
            return shown

        def kept_by_two(late: Entry, early: Entry) -> Bool:
            recorded = self.of_one_queue(late, early) & self.was_given(late) & self.has_begun(early)
            return implies(recorded, ~overtakes(late, early))

        def kept_by_one(e: Entry) -> Bool:
            itself = (self.interval(e), self.interval(e))
            invented = self.was_given(e) & GIVEN_BEFORE_PUBLISHED.shown_by(*itself)
            waited = TAKEN_WHILE_ANOTHER_WAITED.shown_by(self.asked(), self.interval(e))
            concerned = self.has_asked() & self.has_begun(e) & self.wants[self.asker[self.run], e]
            kept: Bool = ~invented & ~(concerned & waited)
            return kept

        return forall(Entry, kept_by_one) & forall(Entry, Entry, kept_by_two)
