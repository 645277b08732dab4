"""The queue whose consumers pull: pointers as in a queue that pushes, and lists of consumers.

Source: Qpid, pull consumers, QueueConsumerManager internals; the deliveries and the table of moves
are those of its releases (`deliverSingleMessage`, `attemptDelivery`, `QueueConsumerManagerImpl`).

Places, entries and returns are those of the queue of pointers. A registered consumer is in one of
four lists: not interested, interested, notified, or, for a browser, non-acquiring. Each list keeps
the order of arrival, so a consumer that returns to the interested is their last. Any move may
happen at any time. A consumer may take an entry only while it is interested or notified, and a
browser only while it wants to be told of messages. The queue is at rest when no consumer is
notified and no available entry is ahead of a consumer that wants messages. The model has one queue,
so a ConsumerTarget, with a consumer in each of its queues, is not in it.
"""

from __future__ import annotations

from typing import ClassVar

from brokerproof.models.language import (
    Bool,
    Enumeration,
    Map,
    Relation,
    action,
    finitely,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
)
from brokerproof.models.qpid.pointer_queue import DELIVERED_BY, IS_DELIVERED, Entry, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel, ProgressingQueue

SUBSCRIBED = "a-subscription-is-in-a-list"
BELONGS = "each-is-where-it-belongs"


class Listed(Enumeration):
    """The document's list that a consumer is in: NotInterested, Interested, Notified, NonAcquiring.

    The All list is the consumers that are not removed.
    """

    REMOVED: ClassVar[Listed]
    NOT_INTERESTED: ClassVar[Listed]
    INTERESTED: ClassVar[Listed]
    NOTIFIED: ClassVar[Listed]
    NON_ACQUIRING: ClassVar[Listed]


class PullQueue(ProgressingQueue):
    """Consumers that are told of messages, and take them by their own pointers."""

    listed: Map[Subscription, Listed]
    was_listed: Map[Subscription, Listed]
    ahead: Relation[Subscription, Subscription]

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no consumer is subscribed."""
        super().empty()
        self.listed.fill(Listed.REMOVED)
        self.was_listed.fill(Listed.REMOVED)
        self.ahead.fill(False)

    def is_listed(self, consumer: Subscription, where: Listed) -> Bool:
        """Whether a consumer is in that list."""
        return self.listed[consumer] == where

    def is_told(self, consumer: Subscription) -> Bool:
        """Whether a consumer may look for a message: it is interested or notified."""
        return self.listed[consumer].is_one_of(Listed.INTERESTED, Listed.NOTIFIED)

    def is_wanting(self, consumer: Subscription) -> Bool:
        """Whether a consumer counts as wanting messages."""
        return self.is_told(consumer) | self.is_listed(consumer, Listed.NON_ACQUIRING)

    def _moves(self, consumer: Subscription, to: Listed) -> None:
        """Move a consumer to the end of a list."""
        self.was_listed[consumer] = self.listed[consumer]
        self.ahead = self.ahead.map(
            lambda a, b, old: (
                (a != consumer)
                & ite(b == consumer, (self.listed[a] == to) & (to != Listed.REMOVED), old)
            )
        )
        self.listed[consumer] = to

    @action
    def want(self, consumer: Subscription) -> None:
        """A consumer has room: it becomes interested or, if it is a browser, non-acquiring."""
        require(self.is_listed(consumer, Listed.NOT_INTERESTED))
        self._moves(consumer, ite(self.browser[consumer], Listed.NON_ACQUIRING, Listed.INTERESTED))

    @action
    def want_no_more(self, consumer: Subscription) -> None:
        """A consumer has no room any more."""
        require(self.is_wanting(consumer))
        self._moves(consumer, Listed.NOT_INTERESTED)

    @action
    def notify(self, consumer: Subscription) -> None:
        """An interested consumer is notified of work."""
        require(self.is_listed(consumer, Listed.INTERESTED))
        self._moves(consumer, Listed.NOTIFIED)

    @action
    def look(self, consumer: Subscription) -> None:
        """A notified consumer, before it looks, becomes interested again, as the last of them."""
        require(self.is_listed(consumer, Listed.NOTIFIED))
        self._moves(consumer, Listed.INTERESTED)

    @action
    def subscribe(self, consumer: Subscription) -> None:
        """A consumer starts at the head of the list, and is not interested yet."""
        super().subscribe(consumer)
        self._moves(consumer, Listed.NOT_INTERESTED)

    @action
    def unsubscribe(self, consumer: Subscription) -> None:
        """A consumer leaves, whichever list it is in."""
        super().unsubscribe(consumer)
        self._moves(consumer, Listed.REMOVED)

    @action
    def deliver(self, consumer: Subscription, entry: Entry) -> None:
        """A consumer that is notified or interested takes its next entry."""
        require(self.is_told(consumer))
        super().deliver(consumer, entry)

    @action
    def get(self, consumer: Subscription, entry: Entry) -> None:
        """A get is a consumer for one message, which looks without being notified."""
        require(self.is_told(consumer))
        super().get(consumer, entry)

    @action
    def find_nothing(self, consumer: Subscription) -> None:
        """The consumer of a get has looked and has no next entry."""
        require(self.is_told(consumer))
        super().find_nothing(consumer)

    @action
    def browse(self, consumer: Subscription, entry: Entry) -> None:
        """A browser that wants to be told is shown its next entry."""
        require(self.is_listed(consumer, Listed.NON_ACQUIRING))
        super().browse(consumer, entry)

    @action
    def come_to_rest(self) -> None:
        """No consumer is notified, and no entry is left for one that wants it (PULL-1, PULL-2).

        A browser that goes back for an arrival that it does not want is not told, and may rest
        before entries that it was shown once.
        """
        require(self.nothing_arrives())
        require(forall(Subscription, lambda consumer: ~self.is_listed(consumer, Listed.NOTIFIED)))
        require(
            forall(
                Subscription,
                Entry,
                lambda consumer, e: (
                    ~(
                        self.is_wanting(consumer)
                        & self.can_have(consumer, e)
                        & self.comes_to(consumer, e)
                        & ~(self.browser[consumer] & self.shown[consumer, e])
                    )
                ),
            )
        )

    def comes_to(self, consumer: Subscription, e: Entry) -> Bool:
        """Whether the entry is ahead of the consumer's place, or of where that returns to."""
        return self.before(self.last_seen[consumer], e) | (
            self.rewound[consumer] & self.at_or_before(self.released[consumer], e)
        )

    @leads_to(
        IS_DELIVERED,
        fair=("look_back", "deliver", "pass_over", "want"),
        by=(*DELIVERED_BY, SUBSCRIBED, BELONGS),
    )
    def wanted_is_delivered(self, consumer: Subscription, m: Entry) -> tuple[Bool, Bool]:
        """An available entry that a consumer wants is delivered, though the consumer has to pull.

        The exceptions, beside those of pushed consumers: it runs out of room again and again, or
        channels close again and again that had an entry at or before this one.
        """
        stated = super().wanted_is_delivered(consumer, m)
        finitely(want_no_more=lambda c: c == consumer)
        self.ranked_up_to(m, consumer, ~self.is_told(consumer), want=lambda c: c == consumer)
        return stated

    def _leave(self, which: Channel) -> None:
        """Remove all consumers of a channel from their lists too."""
        super()._leave(which)
        self.was_listed = self.was_listed.map(
            lambda c, old: ite(self.channel[c] == which, self.listed[c], old)
        )
        self.ahead = self.ahead.map(
            lambda a, b, old: old & (self.channel[a] != which) & (self.channel[b] != which)
        )
        self.listed = self.listed.map(
            lambda c, old: ite(self.channel[c] == which, Listed.REMOVED, old)
        )

    @invariant(SUBSCRIBED)
    def subscribed_is_listed(self, consumer: Subscription) -> Bool:
        """Exactly the subscribed consumers are in a list (QCM-1)."""
        return self.active[consumer] == ~self.is_listed(consumer, Listed.REMOVED)

    @invariant(BELONGS)
    def where_it_belongs(self, consumer: Subscription) -> Bool:
        """Browsers are neither interested nor notified, and only they are non-acquiring (QCM-2)."""
        return implies(self.browser[consumer], ~self.is_told(consumer)) & implies(
            ~self.browser[consumer], ~self.is_listed(consumer, Listed.NON_ACQUIRING)
        )

    @invariant("each-move-is-a-row-of-the-table")
    def moves_are_rows(self, consumer: Subscription) -> Bool:
        """Each consumer has come from a list that leads to its present one (QCM-5)."""

        def came_from(consumer: Subscription, now: Listed, *before: Listed) -> Bool:
            return implies(
                self.is_listed(consumer, now), self.was_listed[consumer].is_one_of(*before)
            )

        removed, idle = Listed.REMOVED, Listed.NOT_INTERESTED
        told, notified = Listed.INTERESTED, Listed.NOTIFIED
        browsing = Listed.NON_ACQUIRING
        return (
            came_from(consumer, idle, removed, told, notified, browsing)
            & came_from(consumer, told, idle, notified)
            & came_from(consumer, notified, told)
            & came_from(consumer, browsing, idle)
        )

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
