"""The theorem about the rules on histories: no recording of a run of the contract shows one.

The contract gets a clock, and rigid spans that a recorder may have written down; each step is taken
within its span. Of each message any one passage is watched and any one delivery noticed, and of the
run any one get that found nothing: what is proved of them holds of all. The invariants that are
named first are what the theorem needs: `no-rule-is-shown` and, of the rules that look at each
moment of a span, `no-moment-is-one-at-which-some-waited`.
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
    Passage,
    Span,
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
    """The run; there is one."""


class HistoryOfContract(Contract):
    """The contract with a clock and crashes, and a recording in whose spans its steps are taken.

    Arrivals are the last of their level, as a queue that is first in, first out within its levels
    has them. The passages of a message are counted from 1: passage n begins with its arrival or its
    return number n - 1, and delivery n ends the waiting of passage n. A crash that loses a message
    ends its waiting too and is counted as a delivery, though never as the one that is noticed.
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
    passages: Map[Entry, Int]
    deliveries: Map[Entry, Int]
    published_at: Map[Entry, Int]
    begun_at: Map[Entry, Int]
    left_at: Map[Entry, Int]
    given_at: Map[Entry, Int]
    left_in_a_crash: Map[Entry, Bool]

    @axiom("counting-begins-with-one")
    def counting_begins_with_one(self) -> Bool:
        """There is no passage, delivery or get of number 0."""
        return (self.the_get[self.run] >= 1) & forall(
            Entry, lambda e: (self.watched[e] >= 1) & (self.noticed[e] >= 1)
        )

    @axiom("recordings-end")
    def recordings_end(self) -> Bool:
        """What was seen was seen before the end of all times, which is called never."""
        never = self.never[self.run]
        return (self.asked_end[self.run] < never) & forall(
            Entry, lambda e: self.given_end[e] < never
        )

    @axiom("answers-are-recorded")
    def answers_are_recorded(self) -> Bool:
        """A publish whose end was recorded was answered: the broker has taken responsibility."""
        return forall(
            Entry,
            lambda e: implies(self.published_end[e] < self.never[self.run], self.answered[e]),
        )

    @initial
    def nothing_yet(self) -> None:
        """The clock begins to run."""
        super().nothing_yet()
        self.left_in_a_crash.fill(False)
        for counted in (self.now, self.empty_gets, self.asked_at):
            counted.fill(0)
        for counted_each in (self.passages, self.deliveries):
            counted_each.fill(0)
        for moment in (self.published_at, self.begun_at, self.left_at, self.given_at):
            moment.fill(0)

    @action
    def publish(self, entry: Entry) -> None:
        """A message arrives as the last of its level, within the span that was recorded."""
        now = self.now[self.run]
        require((self.published_start[entry] <= now) & (now <= self.published_end[entry]))
        require(
            forall(
                Entry,
                lambda e: implies(
                    self.of_one_level(e, entry) & self.arrived(e), self.before(e, entry)
                ),
            )
        )
        self._requires_its_span(lambda e: e == entry)
        super().publish(entry)
        self.published_at[entry] = now
        self._begin_passages()

    @action
    def release(self, entry: Entry) -> None:
        """A message returns; its next passage begins."""
        self._requires_its_span(lambda e: e == entry)
        super().release(entry)
        self._begin_passages()

    @action
    def close_channel(self, which: Channel) -> None:
        """What the channel holds returns."""

        def returns(e: Entry) -> Bool:
            held = self.status[e] == Status.ACQUIRED
            return held & (self.channel[self.holder[e]] == which)

        self._requires_its_span(returns)
        super().close_channel(which)
        self._begin_passages()

    @action
    def crash(self, lost: SetOf[Entry]) -> None:
        """The broker stops, and comes back without some of what it need not keep."""

        def waits(e: Entry) -> Bool:
            return self.status[e] == Status.AVAILABLE

        def returns(e: Entry) -> Bool:
            return (self.status[e] == Status.ACQUIRED) & ~lost[e]

        require(forall(Entry, lambda e: implies(lost[e], self.may_be_lost(e))))
        self._requires_its_span(returns)
        self._ends_waits(lambda e: waits(e) & lost[e])
        self.origin = self.origin.map(lambda e, old: ite(returns(e), Origin.CLOSED, old))
        self.status = self.status.map(
            lambda e, old: ite(lost[e], Status.DEQUEUED, ite(returns(e), Status.AVAILABLE, old))
        )
        self.consuming.fill(False)
        self.unsettled.fill(0)
        self._begin_passages()

    def may_be_lost(self, e: Entry) -> Bool:
        """Whether a crash may lose a message: it does not last, or the broker never took it."""
        return self.arrived(e) & (~self.lasts[e] | ~self.answered[e])

    def _ends_waits(self, lost: Callable[[Entry], Bool]) -> None:
        """Count what is lost while it waits as a delivery in its span, which nobody noticed."""
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
    def deliver(self, who: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is given."""
        self._requires_its_moment(entry)
        super().deliver(who, entry, redelivered)
        self._is_given(entry)

    @action
    def get(self, who: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is the answer to a get."""
        self._requires_its_moment(entry)
        super().get(who, entry, redelivered)
        self._is_given(entry)

    @action
    def get_nothing(self, who: Consumer) -> None:
        """A get finds nothing."""
        now, number = self.now[self.run], self.empty_gets[self.run] + 1
        this_one = number == self.the_get[self.run]
        within = (self.asked_start[self.run] <= now) & (now <= self.asked_end[self.run])
        require(implies(this_one, within & (who == self.asker[self.run])))
        super().get_nothing(who)
        self.empty_gets[self.run] = number
        self.asked_at[self.run] = ite(this_one, now, self.asked_at[self.run])
        self.now[self.run] = now + 1

    def _requires_its_span(self, begins: Callable[[Entry], Bool]) -> None:
        """Let the passage that is watched begin within its span."""
        now = self.now[self.run]

        def in_time(e: Entry) -> Bool:
            is_watched = self.passages[e] + 1 == self.watched[e]
            within = (self.begun_start[e] <= now) & (now <= self.begun_end[e])
            return implies(begins(e) & is_watched, within)

        require(forall(Entry, in_time))

    def _begin_passages(self) -> None:
        """Count a passage of whatever waits and did not before."""
        now = self.now[self.run]

        def begins(e: Entry) -> Bool:
            return (self.status[e] == Status.AVAILABLE) & (self.passages[e] == self.deliveries[e])

        def is_watched(e: Entry) -> Bool:
            return begins(e) & (self.passages[e] + 1 == self.watched[e])

        self.begun_at = self.begun_at.map(lambda e, old: ite(is_watched(e), now, old))
        self.passages = self.passages.map(lambda e, old: ite(begins(e), old + 1, old))
        self.now[self.run] = now + 1

    def _requires_its_moment(self, entry: Entry) -> None:
        """Let a delivery be in its span, if it is noticed, or ends the waiting that is watched."""
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

    # What can be said of a recording.

    def is_noticed(self, e: Entry, number: Int) -> Bool:
        """Whether it is the delivery of this number that is noticed."""
        return number == self.noticed[e]

    def must_be_kept(self, e: Entry) -> Bool:
        """Whether a crash certainly leaves it: it lasts, and its publish was answered."""
        return self.lasts[e] & (self.published_end[e] < self.never[self.run])

    def arrived(self, e: Entry) -> Bool:
        """Whether it was published."""
        return self.status[e] != Status.ABSENT

    def has_begun(self, e: Entry) -> Bool:
        """Whether the passage that is watched has begun."""
        return self.passages[e] >= self.watched[e]

    def has_left(self, e: Entry) -> Bool:
        """Whether the waiting that is watched has ended."""
        return self.deliveries[e] >= self.watched[e]

    def was_given(self, e: Entry) -> Bool:
        """Whether the delivery that is noticed was made."""
        return self.deliveries[e] >= self.noticed[e]

    def of_one_queue(self, e: Entry, f: Entry) -> Bool:
        """Whether two messages of one queue are wanted by the same."""
        wanted_alike = forall(Consumer, lambda c: self.wants[c, e] == self.wants[c, f])
        return (self.home[e] == self.home[f]) & wanted_alike

    def of_one_level(self, e: Entry, f: Entry) -> Bool:
        """Whether two messages of one queue are equally urgent."""
        return (self.home[e] == self.home[f]) & (self.level[e] == self.level[f])

    def places_are_known(self, late: Entry, early: Entry) -> Bool:
        """Whether neither had returned, or returning takes a message back to its place."""
        never_returned = (self.watched[early] == 1) & (self.noticed[late] == 1)
        return self.returns_to_place | never_returned

    def passage(self, e: Entry) -> Passage:
        """Return what was recorded of a message: what is watched, and the delivery noticed."""
        known = self.has_left(e) & ~(self.left_in_a_crash[e] & self.must_be_kept(e))
        left = ite(known, self.left_start[e], self.never[self.run])
        nothing = Span(0, 0)
        return Passage(
            Span(self.published_start[e], self.published_end[e]),
            Span(self.begun_start[e], self.begun_end[e]),
            Span(left, self.left_end[e]),
            Span(self.given_start[e], self.given_end[e]),
            place=nothing,
            back=nothing,
        )

    def asked(self) -> Passage:
        """Return what was recorded of the get that found nothing."""
        nothing = Span(0, 0)
        given = Span(self.asked_start[self.run], self.asked_end[self.run])
        return Passage(nothing, nothing, nothing, given, place=nothing, back=nothing)

    # What the theorem needs.

    @invariant("passages-follow-the-status")
    def passages_follow(self) -> Bool:
        """Who waits has begun one passage more than was given; who returned has begun two."""

        def counted(e: Entry) -> Bool:
            waits = self.status[e] == Status.AVAILABLE
            expected = ite(waits, self.deliveries[e] + 1, self.deliveries[e])
            return (self.passages[e] == expected) & (self.deliveries[e] >= 0)

        return forall(
            Entry,
            lambda e: (
                counted(e)
                & (self.arrived(e) == (self.passages[e] >= 1))
                & (self.has_returned(e) == (self.passages[e] >= 2))
            ),
        )

    @invariant("only-what-need-not-be-kept-is-lost")
    def only_what_need_not_be_kept_is_lost(self) -> Bool:
        """What leaves its queue in a crash is what the rules take for possibly lost."""
        return forall(Entry, lambda e: ~(self.left_in_a_crash[e] & self.must_be_kept(e)))

    @invariant("moments-are-within-their-spans")
    def moments_within(self) -> Bool:
        """What happened did so when it was recorded, in the past; publishing comes first."""

        def within(start: Int, at: Int, end: Int) -> Bool:
            return (start <= at) & (at <= end) & (at < self.now[self.run])

        def published(e: Entry) -> Bool:
            return within(self.published_start[e], self.published_at[e], self.published_end[e])

        def begun(e: Entry) -> Bool:
            later = self.published_at[e] <= self.begun_at[e]
            first = implies(self.watched[e] == 1, self.published_at[e] == self.begun_at[e])
            return within(self.begun_start[e], self.begun_at[e], self.begun_end[e]) & later & first

        def left(e: Entry) -> Bool:
            later = self.begun_at[e] < self.left_at[e]
            return within(self.left_start[e], self.left_at[e], self.left_end[e]) & later

        def given(e: Entry) -> Bool:
            later = self.published_at[e] < self.given_at[e]
            return within(self.given_start[e], self.given_at[e], self.given_end[e]) & later

        return forall(
            Entry,
            lambda e: (
                implies(self.arrived(e), published(e))
                & implies(self.has_begun(e), begun(e))
                & implies(self.has_left(e), left(e))
                & implies(self.was_given(e), given(e))
            ),
        )

    @invariant("the-get-is-within-its-span")
    def get_within(self) -> Bool:
        """The get that found nothing did so when it was recorded."""
        at = self.asked_at[self.run]
        within = (self.asked_start[self.run] <= at) & (at <= self.asked_end[self.run])
        return implies(self.has_asked(), within & (at < self.now[self.run]))

    def has_asked(self) -> Bool:
        """Whether the get that found nothing was made."""
        return self.empty_gets[self.run] >= self.the_get[self.run]

    @invariant("equals-stand-as-they-were-published")
    def equals_in_order(self) -> Bool:
        """Within a level the queue's order is that of the moments of publishing."""
        return forall(
            Entry,
            Entry,
            lambda e, f: implies(
                self.of_one_level(e, f)
                & self.arrived(e)
                & self.arrived(f)
                & (self.published_at[e] < self.published_at[f]),
                self.before(e, f),
            ),
        )

    @invariant("given-in-order")
    def given_in_order(self) -> Bool:
        """What waited ahead of a message when that was given had been given before."""
        return forall(
            Entry,
            Entry,
            lambda e, f: implies(
                self.of_one_queue(e, f)
                & self.before(e, f)
                & self.places_are_known(f, e)
                & self.has_begun(e)
                & self.was_given(f)
                & (self.begun_at[e] < self.given_at[f]),
                self.has_left(e) & (self.left_at[e] < self.given_at[f]),
            ),
        )

    @invariant("nothing-found-where-nothing-waits")
    def nothing_found(self) -> Bool:
        """What waited before a get that found nothing had been given by then."""
        return forall(
            Entry,
            lambda e: implies(
                self.wants[self.asker[self.run], e]
                & self.has_asked()
                & self.has_begun(e)
                & (self.begun_at[e] < self.asked_at[self.run]),
                self.has_left(e) & (self.left_at[e] < self.asked_at[self.run]),
            ),
        )

    @invariant("no-moment-is-one-at-which-some-waited")
    def no_moment_at_which_some_waited(self) -> Bool:
        """At its moment nothing that was given, and no get, shows the rule with any early message.

        So what shows it at each moment of a span, with one early message or another, is no
        recording of a run. Which passages are watched does not matter to the moment, so this is
        said of several passages of a message too.
        """

        def of_urgent(late: Entry, early: Entry) -> Bool:
            recorded = self.of_one_queue(late, early) & self.was_given(late) & self.has_begun(early)
            urgent = (self.level[early] > self.level[late]) & self.places_are_known(late, early)
            then = self.passage(late).at(self.given_at[late])
            shown = TAKEN_WHILE_SOME_WAITED.shown_by(then, self.passage(early))
            return implies(recorded & urgent, ~shown)

        def of_the_get(e: Entry) -> Bool:
            concerned = self.has_asked() & self.has_begun(e) & self.wants[self.asker[self.run], e]
            then = self.asked().at(self.asked_at[self.run])
            return implies(concerned, ~TAKEN_WHILE_SOME_WAITED.shown_by(then, self.passage(e)))

        return forall(Entry, of_the_get) & forall(Entry, Entry, of_urgent)

    @invariant("no-rule-is-shown")
    def no_rule_is_shown(self) -> Bool:
        """No recording of a run of the contract shows what a rule says."""

        def overtakes(late: Entry, early: Entry) -> Bool:
            both = (self.passage(late), self.passage(early))
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
            itself = (self.passage(e), self.passage(e))
            invented = self.was_given(e) & GIVEN_BEFORE_PUBLISHED.shown_by(*itself)
            waited = TAKEN_WHILE_ANOTHER_WAITED.shown_by(self.asked(), self.passage(e))
            concerned = self.has_asked() & self.has_begun(e) & self.wants[self.asker[self.run], e]
            kept: Bool = ~invented & ~(concerned & waited)
            return kept

        return forall(Entry, kept_by_one) & forall(Entry, Entry, kept_by_two)
