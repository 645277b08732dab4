"""The lists of consumers that a queue keeps, and the moves between them.

Source: Qpid, pull consumers, QueueConsumerManager internals, and the table of moves of its releases
(`QueueConsumerManagerImpl`); the ids QCM-1 to QCM-5 are those of later notes on Qpid.

A registered consumer is in one of four lists: not interested, interested, notified, or, for a
browser, non-acquiring. Each list keeps the order of arrival, so a consumer that returns to the
interested is their last. Any move may happen at any time. `consumer_notification` says which move
is due, and `pull_queue` says what a consumer gets in which list.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Fixed,
    Int,
    Map,
    Model,
    Relation,
    action,
    counts,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.qpid.pointer_queue import Subscription


class Tally(Enumeration):
    """The queue whose counts are kept; there is exactly one."""

    IT: ClassVar[Tally]


class Listed(Enumeration):
    """The list that a consumer is in."""

    REMOVED: ClassVar[Listed]
    NOT_INTERESTED: ClassVar[Listed]
    INTERESTED: ClassVar[Listed]
    NOTIFIED: ClassVar[Listed]
    NON_ACQUIRING: ClassVar[Listed]


class ConsumerMoves(Model):
    """The lists, and the possible moves of each consumer."""

    browser: Fixed[Subscription, Bool]

    listed: Map[Subscription, Listed]
    was_listed: Map[Subscription, Listed]
    ahead: Relation[Subscription, Subscription]

    @initial
    def empty(self) -> None:
        """No consumer is registered."""
        self._nobody_is_listed()

    def _nobody_is_listed(self) -> None:
        self.listed.fill(Listed.REMOVED)
        self.was_listed.fill(Listed.REMOVED)
        self.ahead.fill(False)

    def is_listed(self, who: Subscription, where: Listed) -> Bool:
        """Whether a consumer is in that list."""
        return self.listed[who] == where

    def is_told(self, who: Subscription) -> Bool:
        """Whether a consumer may look for a message: it is interested or notified."""
        return self.is_listed(who, Listed.INTERESTED) | self.is_listed(who, Listed.NOTIFIED)

    def is_wanting(self, who: Subscription) -> Bool:
        """Whether a consumer counts as wanting messages."""
        return self.is_told(who) | self.is_listed(who, Listed.NON_ACQUIRING)

    def _moves(self, who: Subscription, to: Listed) -> None:
        """Move a consumer to the end of a list."""
        self.was_listed[who] = self.listed[who]
        self.ahead = self.ahead.map(
            lambda a, b, old: (
                (a != who) & ite(b == who, (self.listed[a] == to) & (to != Listed.REMOVED), old)
            )
        )
        self.listed[who] = to

    @action
    def want(self, who: Subscription) -> None:
        """A consumer has room: it becomes interested or, if it is a browser, non-acquiring."""
        require(self.is_listed(who, Listed.NOT_INTERESTED))
        self._moves(who, ite(self.browser[who], Listed.NON_ACQUIRING, Listed.INTERESTED))

    @action
    def want_no_more(self, who: Subscription) -> None:
        """A consumer has no room any more."""
        require(self.is_wanting(who))
        self._moves(who, Listed.NOT_INTERESTED)

    @action
    def notify(self, who: Subscription) -> None:
        """An interested consumer is notified of work."""
        require(self.is_listed(who, Listed.INTERESTED))
        self._moves(who, Listed.NOTIFIED)

    @action
    def look(self, who: Subscription) -> None:
        """A notified consumer, before it looks, becomes interested again, as the last of them."""
        require(self.is_listed(who, Listed.NOTIFIED))
        self._moves(who, Listed.INTERESTED)

    @invariant("each-is-where-it-belongs")
    def where_it_belongs(self) -> Bool:
        """Browsers are neither interested nor notified, and only they are non-acquiring (QCM-2)."""
        return forall(
            Subscription,
            lambda who: (
                implies(
                    self.browser[who],
                    ~self.is_told(who),
                )
                & implies(~self.browser[who], ~self.is_listed(who, Listed.NON_ACQUIRING))
            ),
        )

    @invariant("each-move-is-a-row-of-the-table")
    def moves_are_rows(self) -> Bool:
        """Each consumer has come from a list that leads to its present one (QCM-5)."""

        def came_from(who: Subscription, now: Listed, *before: Listed) -> Bool:
            possible = self.was_listed[who] == before[0]
            for each in before[1:]:
                possible = possible | (self.was_listed[who] == each)
            return implies(self.is_listed(who, now), possible)

        def holds(who: Subscription) -> Bool:
            nobody, idle = Listed.REMOVED, Listed.NOT_INTERESTED
            told, notified = Listed.INTERESTED, Listed.NOTIFIED
            browsing = Listed.NON_ACQUIRING
            return (
                came_from(who, idle, nobody, told, notified, browsing)
                & came_from(who, told, idle, notified)
                & came_from(who, notified, told)
                & came_from(who, browsing, idle)
            )

        return forall(Subscription, holds)

    @invariant("each-list-is-in-one-order")
    def lists_are_in_order(self) -> Bool:
        """Each list is totally ordered, and no order relates two lists (QCM-1)."""

        def together(a: Subscription, b: Subscription) -> Bool:
            return (self.listed[a] == self.listed[b]) & (self.listed[a] != Listed.REMOVED)

        return forall(
            Subscription,
            Subscription,
            lambda a, b: (
                implies(self.ahead[a, b], together(a, b) & ~self.ahead[b, a])
                & implies(together(a, b) & (a != b), self.ahead[a, b] | self.ahead[b, a])
            ),
        ) & forall(
            Subscription,
            Subscription,
            Subscription,
            lambda a, b, c: implies(self.ahead[a, b] & self.ahead[b, c], self.ahead[a, c]),
        )


class ConsumerLists(ConsumerMoves):
    """The lists alone, with the counts of registered and of wanting consumers."""

    equivalent_mutants: ClassVar[dict[str, str]] = dict.fromkeys(
        (
            "leave: was_listed: stays as it was",
            "initially: was_listed: anything",
            *(
                f"initially: was_listed: {other} instead of REMOVED"
                for other in ("NOT_INTERESTED", "INTERESTED", "NOTIFIED", "NON_ACQUIRING")
            ),
        ),
        "Of one in no list nobody asks where it came from, and who is registered begins anew.",
    )

    size: Map[Tally, Int]
    active: Map[Tally, Int]

    @initial
    def empty(self) -> None:
        """No consumer is registered or counted."""
        super().empty()
        self.size.fill(0)
        self.active.fill(0)

    @counts("size")
    def is_registered(self, it: Tally, who: Subscription) -> Bool:
        """The size is the number of registered consumers (QCM-4)."""
        return (it == Tally.IT) & ~self.is_listed(who, Listed.REMOVED)

    @counts("active")
    def is_active(self, it: Tally, who: Subscription) -> Bool:
        """The active count is the number of consumers that want messages (QCM-4)."""
        return (it == Tally.IT) & self.is_wanting(who)

    def _counts(self, who: Subscription, to: Listed) -> None:
        """Count a move that is about to be made."""
        comes, goes = self.is_listed(who, Listed.REMOVED), to == Listed.REMOVED
        wanted, will_want = self.is_wanting(who), (to != Listed.NOT_INTERESTED) & ~goes
        size, active = self.size[Tally.IT], self.active[Tally.IT]
        self.size[Tally.IT] = ite(comes, size + 1, ite(goes, size - 1, size))
        self.active[Tally.IT] = ite(
            wanted & ~will_want, active - 1, ite(~wanted & will_want, active + 1, active)
        )

    def _moves(self, who: Subscription, to: Listed) -> None:
        self._counts(who, to)
        super()._moves(who, to)

    @action
    def register(self, who: Subscription) -> None:
        """A consumer registers; it is not interested before its target says so."""
        require(self.is_listed(who, Listed.REMOVED))
        self._moves(who, Listed.NOT_INTERESTED)

    @action
    def leave(self, who: Subscription) -> None:
        """A consumer leaves, whichever list it is in."""
        require(~self.is_listed(who, Listed.REMOVED))
        self._moves(who, Listed.REMOVED)
