"""The queue whose consumers pull: pointers as in a queue that pushes, and lists of consumers.

Source: Qpid, pull consumers; the deliveries are those of its releases (`deliverSingleMessage`,
`attemptDelivery`).

Places, entries and returns are those of the queue of pointers. New is when a consumer may take an
entry: only while it is interested or notified, and a browser only while it wants to be told of
messages. The queue is at rest when no consumer is notified and no available entry is ahead of a
consumer that wants messages. `consumer_notification` proves that threads get it there.
"""

from __future__ import annotations

from brokerproof.models.language import (
    Bool,
    action,
    forall,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.qpid.pointer_queue import Entry, Subscription
from brokerproof.models.qpid.pointer_queue_progress import Channel, ProgressingQueue
from brokerproof.models.qpid.threads.consumer_lists import ConsumerMoves, Listed


class PullQueue(ProgressingQueue, ConsumerMoves):
    """Consumers that are told of messages, and take them by their own pointers."""

    @initial
    def empty(self) -> None:
        """No entry has arrived, and no consumer is subscribed."""
        super().empty()
        self._nobody_is_listed()

    @action
    def subscribe(self, who: Subscription) -> None:
        """A consumer starts at the head of the list, and is not interested yet."""
        super().subscribe(who)
        self._moves(who, Listed.NOT_INTERESTED)

    @action
    def unsubscribe(self, who: Subscription) -> None:
        """A consumer leaves, whichever list it is in."""
        super().unsubscribe(who)
        self._moves(who, Listed.REMOVED)

    @action
    def deliver(self, who: Subscription, entry: Entry) -> None:
        """A consumer that is notified or interested takes its next entry."""
        require(self.is_told(who))
        super().deliver(who, entry)

    @action
    def get(self, who: Subscription, entry: Entry) -> None:
        """A get is a consumer for one message, which looks without being notified."""
        require(self.is_told(who))
        super().get(who, entry)

    @action
    def find_nothing(self, who: Subscription) -> None:
        """The consumer of a get has looked and has no next entry."""
        require(self.is_told(who))
        super().find_nothing(who)

    @action
    def browse(self, who: Subscription, entry: Entry) -> None:
        """A browser that wants to be told is shown its next entry."""
        require(self.is_listed(who, Listed.NON_ACQUIRING))
        super().browse(who, entry)

    @action
    def come_to_rest(self) -> None:
        """No consumer is notified, and no entry is left for one that wants it (PULL-1, PULL-2).

        A browser that goes back for an arrival that it does not want is not told, and may rest
        before entries that it was shown once.
        """
        require(self.nothing_arrives())
        require(forall(Subscription, lambda who: ~self.is_listed(who, Listed.NOTIFIED)))
        require(
            forall(
                Subscription,
                Entry,
                lambda who, e: (
                    ~(
                        self.is_wanting(who)
                        & self.can_have(who, e)
                        & self.comes_to(who, e)
                        & ~(self.browser[who] & self.shown[who, e])
                    )
                ),
            )
        )

    def comes_to(self, who: Subscription, e: Entry) -> Bool:
        """Whether the entry is ahead of the consumer's place, or of where that returns to."""
        return self.before(self.last_seen[who], e) | (
            self.rewound[who] & self.at_or_before(self.released[who], e)
        )

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

    @invariant("who-is-subscribed-is-in-a-list")
    def subscribed_is_listed(self) -> Bool:
        """Exactly the subscribed consumers are in a list (QCM-1)."""
        return forall(
            Subscription,
            lambda who: self.active[who] == ~self.is_listed(who, Listed.REMOVED),
        )
