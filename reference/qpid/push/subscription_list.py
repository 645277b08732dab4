"""The subscriptions of a queue, and the marker from which the next arrival is offered.

Owns linking, marked deletion and the marker. Invariants: a removed node is never returned again; a
node that is present during a whole walk is returned once; a node added behind a removed last node
is found, by a walk and from the marker.

Source: Qpid, Message Delivery: the list that enqueueing and the asynchronous runner walk while
consumers come and go, and the last subscription tried, from whose successor the next walk starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.reference.qpid.push.subscriptions import Subscription


class SubscriptionNode:
    """A subscription's node in the list; without one a dummy, which counts as deleted."""

    __slots__ = ("deleted", "next", "subscription")

    def __init__(self, subscription: Subscription | None = None) -> None:
        self.subscription = subscription
        self.deleted = AtomicFlag(subscription is None)
        self.next: AtomicReference[SubscriptionNode | None] = AtomicReference(None)

    def find_next(self) -> SubscriptionNode | None:
        """Return the next node that is not deleted; unlink those between, but never the last."""
        following = self.next.get()
        while following is not None and following.deleted.get():
            beyond = following.next.get()
            if beyond is None:
                return None
            self.next.compare_and_set(following, beyond)
            following = self.next.get()
        return following


class SubscriptionList:
    """The subscriptions in the order of their registration."""

    __slots__ = ("head", "marker", "size", "tail")

    def __init__(self) -> None:
        self.head = SubscriptionNode()
        self.tail = AtomicReference(self.head)
        self.marker = AtomicReference(self.head)
        self.size = AtomicInteger()

    def add(self, subscription: Subscription) -> None:
        """Append a subscription."""
        self._insert(SubscriptionNode(subscription))
        self.size.increment_and_get()

    def remove(self, subscription: Subscription) -> bool:
        """Remove a subscription; of several threads, exactly one succeeds."""
        previous, node = self.head, self.head.find_next()
        while node is not None:
            if node.subscription is subscription and node.deleted.compare_and_set(False, True):
                # Below 0 for a moment, if the adding thread has linked it and not yet counted it.
                self.size.decrement_and_get()
                if node is self.tail.get():
                    # The last node cannot be unlinked, since others append to it; behind a dummy it
                    # can.
                    self._insert(SubscriptionNode())
                previous.find_next()
                self._clean_marker(node)
                return True
            previous, node = node, node.find_next()
        return False

    def iterator(self) -> Iterator[Subscription]:
        """Yield the subscriptions that are not removed when the walk reaches them."""
        node = self.head.find_next()
        while node is not None:
            assert node.subscription is not None, "only dummies lack a subscription"
            yield node.subscription
            node = node.find_next()

    def advance_marker(self) -> SubscriptionNode | None:
        """Move the marker on by one, round the end, and return the node that it then marks.

        Several publishers may call it at once; each gets a different turn.
        """
        while True:
            marked = self.marker.get()
            following = marked.find_next()
            if following is None:
                following = self.head.find_next()
            if following is None or self.marker.compare_and_set(marked, following):
                return following

    def _insert(self, node: SubscriptionNode) -> None:
        """Link a node behind the last; the tail is a hint, as in the entry list."""
        while True:
            tail = self.tail.get()
            following = tail.next.get()
            if following is not None:
                self.tail.compare_and_set(tail, following)
            elif tail.next.compare_and_set(None, node):
                self.tail.compare_and_set(tail, node)
                return

    def _clean_marker(self, removed: SubscriptionNode) -> None:
        """Keep the marker from holding a chain of removed nodes; the next turn stays the same."""
        marked = self.marker.get()
        if marked is removed:
            stand_in = SubscriptionNode()
            stand_in.next.set(removed.next.get())
            self.marker.compare_and_set(removed, stand_in)
        elif marked.deleted.get():
            marked.find_next()
