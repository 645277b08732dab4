"""The consumers of a queue by their state: the document's QueueConsumerManager.

Owns the five lists and the moves between them. Does not know messages, nor when a move is due.
Invariants (QCM-1 to QCM-3, QCM-5): a registered consumer is in the list of all and in exactly one
other, the one of its state; browsers are never interested or notified; the three lists by priority
have the same priorities, the highest first; every change of state is a row of a table below.

Source: Qpid, pull consumers, section QueueConsumerManager internals; the tables are its releases'
(`QueueConsumerManagerImpl`). Model: `models/qpid/pull/pull_queue.py`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeAlias

from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList
from brokerproof.reference.shared.atomics import AtomicInteger, AtomicReference, Lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from brokerproof.reference.qpid.pull.consumers import QueueConsumer
    from brokerproof.reference.qpid.pull.node_list import ConsumerNodeListEntry


class NodeState(enum.Enum):
    """The state of a consumer in the queue; except for REMOVED, the list that it is in.

    The document's lists are All, NonAcquiring, NotInterested, Interested and Notified.
    """

    REMOVED = "removed"
    INTERESTED = "interested"
    """Takes messages, and has not been notified."""
    NOT_INTERESTED = "not interested"
    """Has no room, and is not notified."""
    NOTIFIED = "notified"
    """Notified; it will take a message or say that it is not interested."""
    NON_ACQUIRING = "non-acquiring"
    """A browser that wants to see messages; it is notified of each."""


REMOVED, INTERESTED, NOT_INTERESTED, NOTIFIED, NON_ACQUIRING = NodeState

Moves: TypeAlias = "Mapping[NodeState, NodeState]"

ADDED: Moves = {REMOVED: NOT_INTERESTED}
"""A consumer begins uninterested; its target declares its interest after registration."""
WANTS: Mapping[bool, Moves] = {
    True: {NOT_INTERESTED: INTERESTED},
    False: {NOT_INTERESTED: NON_ACQUIRING},
}
"""The move of a consumer that wants messages, by whether it acquires."""
WANTS_NO_MORE: Mapping[bool, Moves] = {
    True: {INTERESTED: NOT_INTERESTED, NOTIFIED: NOT_INTERESTED},
    False: {NON_ACQUIRING: NOT_INTERESTED},
}
IS_TOLD: Moves = {INTERESTED: NOTIFIED}
"""Only for acquiring consumers; browsers are notified without a move."""
HAS_LOOKED: Moves = {NOTIFIED: INTERESTED}
"""Back to the end of the interested: the one notified last is notified last again."""
LEAVES: Moves = dict.fromkeys((INTERESTED, NOT_INTERESTED, NOTIFIED, NON_ACQUIRING), REMOVED)

ByPriority: TypeAlias = "tuple[tuple[int, ConsumerNodeList], ...]"
"""A list for each priority of a consumer, the highest first; copied when one is added."""

LOWEST = -(2**31) - 1
"""Below the priority of every consumer."""


class ConsumerNode:
    """A consumer's node, which moves between the lists.

    `state` and `entry` are accessed under `monitor` alone (in the releases a move is synchronized),
    so that no other mover sees a node in two lists. `all_entry` is accessed by the thread that adds
    or removes the consumer.
    """

    __slots__ = ("all_entry", "consumer", "entry", "lists", "monitor", "state")

    def __init__(self, lists: ConsumerLists, consumer: QueueConsumer) -> None:
        self.lists = lists
        self.consumer = consumer
        self.monitor = Lock()
        self.state = REMOVED
        self.entry: ConsumerNodeListEntry | None = None
        self.all_entry: ConsumerNodeListEntry | None = None

    def move(self, moves: Moves) -> bool:
        """Move to the end of the list that a table names; False if the table lacks its state."""
        with self.monitor:
            to = moves.get(self.state)
            if to is None:
                return False
            if self.entry is not None:
                self.entry.remove()
            self.state = to
            self.entry = self.lists.append(self, to)
            return True


class ConsumerLists:
    """All consumers of a queue, and the lists of those in each state."""

    __slots__ = (
        "all",
        "configuration",
        "interested",
        "non_acquiring",
        "not_interested",
        "notified",
        "size",
    )

    def __init__(self) -> None:
        self.all: AtomicReference[ByPriority] = AtomicReference(())
        self.interested: AtomicReference[ByPriority] = AtomicReference(())
        self.notified: AtomicReference[ByPriority] = AtomicReference(())
        self.not_interested = ConsumerNodeList()
        self.non_acquiring = ConsumerNodeList()
        self.size = AtomicInteger()
        # The document's releases add and remove consumers on the one configuration thread.
        self.configuration = Lock()

    def add(self, consumer: QueueConsumer) -> None:
        """Register a consumer."""
        with self.configuration:
            # Before any other thread can meet the consumer in a list.
            node = ConsumerNode(self, consumer)
            consumer.node.set(node)
            self._add_to_all(node, consumer.priority)
            node.move(ADDED)
            self.size.increment_and_get()

    def remove(self, consumer: QueueConsumer) -> bool:
        """Remove a consumer from all lists; return whether it was in them."""
        with self.configuration:
            node = consumer.node.get()
            if node is None or node.all_entry is None or not node.all_entry.remove():
                return False
            listed = _of_priority(self.all.get(), consumer.priority)
            if listed is not None and listed.is_empty():
                for lists in (self.all, self.interested, self.notified):
                    left = [pair for pair in lists.get() if pair[0] != consumer.priority]
                    lists.set(tuple(left))
            removed = node.move(LEAVES)
            assert removed, "a consumer in the list of all is in another, too"
            self.size.decrement_and_get()
            return True

    def set_interest(self, consumer: QueueConsumer, interest: bool) -> bool:
        """Record that a consumer wants messages, or no more; return whether that is a change."""
        moves = WANTS if interest else WANTS_NO_MORE
        return _node(consumer).move(moves[consumer.mode.acquires])

    def set_notified(self, consumer: QueueConsumer, notified: bool) -> bool:
        """Record that a consumer is notified, or looks for work; return whether the move is valid.

        For a browser it always is, and the browser does not move.
        """
        if not consumer.mode.acquires:
            return True
        return _node(consumer).move(IS_TOLD if notified else HAS_LOOKED)

    def iterator(self) -> Iterator[QueueConsumer]:
        """Yield all consumers, the highest priority first."""
        return _consumers(self.all.get())

    def interested_iterator(self) -> Iterator[QueueConsumer]:
        """Yield the interested consumers: the highest priority first, then the longest waiting."""
        return _consumers(self.interested.get())

    def notified_iterator(self) -> Iterator[QueueConsumer]:
        """Yield the notified consumers, the highest priority first."""
        return _consumers(self.notified.get())

    def non_acquiring_iterator(self) -> Iterator[QueueConsumer]:
        """Yield the browsers that want to be notified."""
        for node in self.non_acquiring.iterator():
            yield node.consumer

    def highest_notified_priority(self) -> int:
        """Return the highest priority of a notified consumer, or `LOWEST`."""
        return next((each.priority for each in self.notified_iterator()), LOWEST)

    def append(self, node: ConsumerNode, state: NodeState) -> ConsumerNodeListEntry | None:
        """Append a node to the list of a state; REMOVED has no list."""
        match state:
            case NodeState.REMOVED:
                return None
            case NodeState.NOT_INTERESTED:
                return self.not_interested.add(node)
            case NodeState.NON_ACQUIRING:
                return self.non_acquiring.add(node)
            case NodeState.INTERESTED | NodeState.NOTIFIED:
                lists = self.interested if state is INTERESTED else self.notified
                listed = _of_priority(lists.get(), node.consumer.priority)
                assert listed is not None, "lists go when the last consumer of a priority has left"
                return listed.add(node)

    def _add_to_all(self, node: ConsumerNode, priority: int) -> None:
        listed = _of_priority(self.all.get(), priority)
        if listed is None:
            listed = ConsumerNodeList()
            # The list of all last: a thread that meets a consumer there finds the lists to move it
            # to.
            for lists, new in (
                (self.interested, ConsumerNodeList()),
                (self.notified, ConsumerNodeList()),
                (self.all, listed),
            ):
                pairs = (*lists.get(), (priority, new))
                lists.set(tuple(sorted(pairs, key=lambda pair: -pair[0])))
        node.all_entry = listed.add(node)


def _node(consumer: QueueConsumer) -> ConsumerNode:
    node = consumer.node.get()
    assert node is not None, "a consumer has its node before it is in any list"
    return node


def _of_priority(lists: ByPriority, priority: int) -> ConsumerNodeList | None:
    return next((listed for each, listed in lists if each == priority), None)


def _consumers(lists: ByPriority) -> Iterator[QueueConsumer]:
    for _, listed in lists:
        for node in listed.iterator():
            yield node.consumer
