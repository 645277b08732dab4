"""The theorem about two deliveries of a message: no recording shows two consumers holding it."""

from __future__ import annotations

from collections.abc import Callable

from brokerproof.models.contract.core import Entry, Status
from brokerproof.models.contract.history import HELD_BY_TWO, Span, WaitingInterval
from brokerproof.models.contract.history_of_contract import HistoryOfContract
from brokerproof.models.language import (
    Bool,
    Fixed,
    Int,
    Map,
    axiom,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)


class HoldsOfContract(HistoryOfContract):
    """The same model with a second delivery of each message, and the times of both returns."""

    other: Fixed[Entry, Int]
    back_start: Fixed[Entry, Int]
    back_end: Fixed[Entry, Int]
    other_given_start: Fixed[Entry, Int]
    other_given_end: Fixed[Entry, Int]
    other_back_start: Fixed[Entry, Int]
    other_back_end: Fixed[Entry, Int]

    back_at: Map[Entry, Int]
    other_given_at: Map[Entry, Int]
    other_back_at: Map[Entry, Int]

    @axiom("the-other-delivery-is-a-later-one")
    def other_is_later(self, e: Entry) -> Bool:
        """The second watched delivery of a message is the later one."""
        return (self.other[e] > self.noticed[e]) & (self.other_given_end[e] < self.never[self.run])

    @initial
    def nothing_yet(self) -> None:
        """No message has been delivered or returned."""
        super().nothing_yet()
        for moment in (self.back_at, self.other_given_at, self.other_back_at):
            moment.fill(0)

    def _requires_its_span(self, begins: Callable[[Entry], Bool]) -> None:
        now = self.now[self.run]

        def in_time(e: Entry) -> Bool:
            first = (self.back_start[e] <= now) & (now <= self.back_end[e])
            second = (self.other_back_start[e] <= now) & (now <= self.other_back_end[e])
            return implies(begins(e) & (self.intervals[e] == self.noticed[e]), first) & implies(
                begins(e) & (self.intervals[e] == self.other[e]), second
            )

        super()._requires_its_span(begins)
        require(forall(Entry, in_time))

    def _begin_intervals(self) -> None:
        now = self.now[self.run]

        def ends(e: Entry, number: Int) -> Bool:
            waits = self.status[e] == Status.AVAILABLE
            return waits & (self.intervals[e] == self.deliveries[e]) & (self.intervals[e] == number)

        self.back_at = self.back_at.map(lambda e, old: ite(ends(e, self.noticed[e]), now, old))
        self.other_back_at = self.other_back_at.map(
            lambda e, old: ite(ends(e, self.other[e]), now, old)
        )
        super()._begin_intervals()

    def _requires_its_moment(self, entry: Entry) -> None:
        now = self.now[self.run]
        is_other = self.deliveries[entry] + 1 == self.other[entry]
        in_time = (self.other_given_start[entry] <= now) & (now <= self.other_given_end[entry])
        super()._requires_its_moment(entry)
        require(implies(is_other, in_time))

    def _is_given(self, entry: Entry) -> None:
        now = self.now[self.run]
        is_other = self.deliveries[entry] + 1 == self.other[entry]
        self.other_given_at[entry] = ite(is_other, now, self.other_given_at[entry])
        super()._is_given(entry)

    def is_noticed(self, e: Entry, number: Int) -> Bool:
        """Whether the delivery with this number is one of the two watched ones."""
        return super().is_noticed(e, number) | (number == self.other[e])

    def was_given_again(self, e: Entry) -> Bool:
        """Whether the later watched delivery was made."""
        return self.deliveries[e] >= self.other[e]

    def has_come_back(self, e: Entry, number: Int) -> Bool:
        """Whether the message of this delivery came back."""
        return self.intervals[e] > number

    @invariant("returns-are-between-deliveries")
    def returns_between(self, e: Entry) -> Bool:
        """A message was delivered again only after its return, each within its recorded span."""

        def within(start: Int, at: Int, end: Int) -> Bool:
            return (start <= at) & (at <= end) & (at < self.now[self.run])

        back = within(self.back_start[e], self.back_at[e], self.back_end[e])
        again = within(self.other_given_start[e], self.other_given_at[e], self.other_given_end[e])
        return implies(self.has_come_back(e, self.noticed[e]), back) & implies(
            self.was_given_again(e), again & (self.back_at[e] < self.other_given_at[e])
        )

    @invariant("no-two-hold-a-message")
    def no_two_hold(self, e: Entry) -> Bool:
        """No recording of a run of the contract shows two consumers holding a message at once."""
        nothing, never = Span(0, 0), self.never[self.run]
        back = ite(self.has_come_back(e, self.noticed[e]), self.back_start[e], never)
        other = ite(self.has_come_back(e, self.other[e]), self.other_back_start[e], never)
        first = WaitingInterval(
            nothing,
            nothing,
            nothing,
            Span(self.given_start[e], self.given_end[e]),
            place=nothing,
            back=Span(back, self.back_end[e]),
        )
        second = WaitingInterval(
            nothing,
            nothing,
            nothing,
            Span(self.other_given_start[e], self.other_given_end[e]),
            place=nothing,
            back=Span(other, self.other_back_end[e]),
        )
        return implies(self.was_given_again(e), ~HELD_BY_TWO.shown_by(second, first))
