"""What a recorded history must not show: rules on the times of its messages, each said once.

A recording does not say when something happened, only between which times: a publish between its
start and its end, a delivery between the earliest moment at which it can have been made and the
moment at which it was seen. What is wrong is what is wrong wherever in these spans the moments
were, so a rule compares the end of one span with the start of another and nothing else.

Each rule is one function of the `Course` of a message, or of two. It is read in two ways. With the
terms of a model, `HistoryOfContract` proves that no run of the contract shows it, for any number of
messages, wherever in the spans the steps were taken. With NumPy's numbers, or columns of them, it
says which messages of a history do.

The rules are about messages that never came back: an earlier moment at which they were given is the
only one. Source of the two about order: Bouajjani, Emmi, Enea, Hamza, On Reducing Linearizability
to State Reachability (ICALP 2015), where the wrong histories of a queue with distinct values are
those that show one of a few patterns of two or three operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from brokerproof.models.contract import Consumer, Contract, Entry, Status
from brokerproof.models.language import (
    TRUE,
    Bool,
    Family,
    Fixed,
    Int,
    Map,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)

Number: TypeAlias = Any
"""A time: a term, one of NumPy's integers, or a column of them. All have the same operators."""

Truth: TypeAlias = Any
"""Whether something is so: a term, or what NumPy makes of a comparison."""


@dataclass(frozen=True)
class Span:
    """The times between which something happened, both included."""

    start: Number
    end: Number

    def before(self, other: Span) -> Truth:
        """Whether this had certainly happened when the other began."""
        return self.end < other.start


@dataclass(frozen=True)
class Course:
    """What is known of a message: when it was published, and first given, if it was given at all.

    Where it was not, the times of `given` mean nothing.
    """

    published: Span
    given: Span
    was_given: Truth


def given_before_published(message: Course) -> Truth:
    """A message was seen before anybody can have published it."""
    return message.was_given & message.given.before(message.published)


def overtakes_an_equal(late: Course, early: Course) -> Truth:
    """Of two messages of one level, the one that was certainly published later was given first."""
    return _given_while_waiting(late, early) & early.published.before(late.published)


def overtakes_the_urgent(late: Course, early: Course) -> Truth:
    """A message was given while `early`, of a higher level, was certainly there."""
    return _given_while_waiting(late, early) & early.published.before(late.given)


def _given_while_waiting(late: Course, early: Course) -> Truth:
    return late.was_given & (~early.was_given | late.given.before(early.given))


ABOUT_ONE: dict[str, Callable[[Course], Truth]] = {"nothing-invented": given_before_published}
"""The rules about a message, by the requirement that is broken where one holds."""

ABOUT_TWO: dict[str, Callable[[Course, Course], Truth]] = {
    "fifo-order": overtakes_an_equal,
    "priority-order": overtakes_the_urgent,
}
"""The rules about two messages of one queue that never came back and that the same takers want.

The first is the later one or the less urgent one: the message whose delivery was wrong.
"""


class Run(Family):
    """The run; there is one."""


class HistoryOfContract(Contract):
    """The contract with a clock, and a recording in whose spans its steps are taken.

    The theorem is `no-rule-is-broken`; the invariants before it are what it needs. Arrivals are the
    last of their level, as a queue that is first in, first out within its levels has them.
    """

    run: Run
    published_start: Fixed[Entry, Int]
    published_end: Fixed[Entry, Int]
    given_start: Fixed[Entry, Int]
    given_end: Fixed[Entry, Int]

    now: Map[Run, Int]
    given: Map[Entry, Bool]
    published_at: Map[Entry, Int]
    given_at: Map[Entry, Int]

    @initial
    def nothing_yet(self) -> None:
        """The clock begins to run."""
        super().nothing_yet()
        self.now.fill(0)
        self.given.fill(False)
        self.published_at.fill(0)
        self.given_at.fill(0)

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
        super().publish(entry)
        self.published_at[entry] = now
        self.now[self.run] = now + 1

    @action
    def deliver(self, who: Consumer, entry: Entry, redelivered: Bool) -> None:
        """A message is given; for the first time, that is within the span that was recorded."""
        now = self.now[self.run]
        self._requires_its_span(entry, now)
        super().deliver(who, entry, redelivered)
        self._is_given(entry, now)

    @action
    def get(self, who: Consumer, entry: Entry, redelivered: Bool) -> None:
        """So it is with the answer to a get."""
        now = self.now[self.run]
        self._requires_its_span(entry, now)
        super().get(who, entry, redelivered)
        self._is_given(entry, now)

    def _requires_its_span(self, entry: Entry, now: Int) -> None:
        within = (self.given_start[entry] <= now) & (now <= self.given_end[entry])
        require(self.given[entry] | within)

    def _is_given(self, entry: Entry, now: Int) -> None:
        self.given_at[entry] = ite(self.given[entry], self.given_at[entry], now)
        self.given[entry] = True
        self.now[self.run] = now + 1

    def arrived(self, e: Entry) -> Bool:
        """Whether it was published."""
        return self.status[e] != Status.ABSENT

    def of_one_queue(self, e: Entry, f: Entry) -> Bool:
        """Whether two messages of one queue are wanted by the same, and neither came back."""
        wanted_alike = forall(Consumer, lambda c: self.wants[c, e] == self.wants[c, f])
        stayed = ~self.has_returned(e) & ~self.has_returned(f)
        return (self.home[e] == self.home[f]) & wanted_alike & stayed

    def of_one_level(self, e: Entry, f: Entry) -> Bool:
        """Whether two messages of one queue are equally urgent."""
        return (self.home[e] == self.home[f]) & (self.level[e] == self.level[f])

    def course(self, e: Entry) -> Course:
        """Return what was recorded of a message."""
        return Course(
            Span(self.published_start[e], self.published_end[e]),
            Span(self.given_start[e], self.given_end[e]),
            self.given[e],
        )

    @invariant("given-is-what-is-not-new")
    def given_is_not_new(self) -> Bool:
        """Whoever has a message, or had it, was given it; what is absent nobody has had."""

        def is_with_somebody_or_came_back(e: Entry) -> Bool:
            taken = (self.status[e] == Status.ACQUIRED) | (self.status[e] == Status.DEQUEUED)
            return taken | self.has_returned(e)

        return forall(
            Entry,
            lambda e: (
                (self.given[e] == is_with_somebody_or_came_back(e))
                & (self.arrived(e) | ~self.has_returned(e))
            ),
        )

    @invariant("moments-are-within-their-spans")
    def moments_within(self) -> Bool:
        """What happened did so when it was recorded, in the past; publishing comes first."""

        def within(start: Int, at: Int, end: Int) -> Bool:
            return (start <= at) & (at <= end) & (at < self.now[self.run])

        def published(e: Entry) -> Bool:
            return within(self.published_start[e], self.published_at[e], self.published_end[e])

        def given(e: Entry) -> Bool:
            in_time = within(self.given_start[e], self.given_at[e], self.given_end[e])
            return in_time & (self.published_at[e] < self.given_at[e])

        return forall(
            Entry,
            lambda e: implies(self.arrived(e), published(e)) & implies(self.given[e], given(e)),
        )

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
        """What was there when a message behind it was given had been given before."""
        return forall(
            Entry,
            Entry,
            lambda e, f: implies(
                self.of_one_queue(e, f)
                & self.before(e, f)
                & self.arrived(e)
                & self.given[f]
                & (self.published_at[e] < self.given_at[f]),
                self.given[e] & (self.given_at[e] < self.given_at[f]),
            ),
        )

    @invariant("no-rule-is-broken")
    def no_rule_is_broken(self) -> Bool:
        """No recording of a run of the contract shows what a rule says."""

        def concerned(requirement: str, late: Entry, early: Entry) -> Bool:
            if requirement == "fifo-order":
                return self.of_one_level(late, early)
            return self.level[early] > self.level[late]

        kept = TRUE
        for rule in ABOUT_ONE.values():
            kept &= forall(
                Entry,
                lambda e, rule=rule: implies(self.arrived(e), ~rule(self.course(e))),
            )
        for requirement, of_two in ABOUT_TWO.items():
            kept &= forall(
                Entry,
                Entry,
                lambda f, e, requirement=requirement, of_two=of_two: implies(
                    self.of_one_queue(e, f)
                    & concerned(requirement, f, e)
                    & self.arrived(e)
                    & self.arrived(f),
                    ~of_two(self.course(f), self.course(e)),
                ),
            )
        return kept
