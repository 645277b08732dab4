"""Walks over the lists of consumers that take no step of the documents' algorithms.

The documents' own walks unlink deleted nodes. An inspection must not, since it would change the
state of the broker. Owns these walks; they run between operations only, so cells are read directly.
Entries are shown by a real walk, since an invariant (EL-3) says that it returns none that is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeGuard, TypeVar

from brokerproof.reference.qpid.pull.consumer_lists import (
    INTERESTED,
    NON_ACQUIRING,
    NOT_INTERESTED,
    NOTIFIED,
    ConsumerLists,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from brokerproof.reference.qpid.pull.consumer_lists import NodeState
    from brokerproof.reference.qpid.pull.consumers import QueueConsumer
    from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList
    from brokerproof.reference.qpid.pull.queue import PullQueue
    from brokerproof.reference.qpid.push.queue import Queue
    from brokerproof.reference.qpid.push.subscriptions import Subscription
    from brokerproof.reference.shared.atomics import AtomicReference


class _Linked(Protocol):
    @property
    def next(self) -> AtomicReference[Self | None]: ...


_Node = TypeVar("_Node", bound=_Linked)


def pulls(queue: Queue) -> TypeGuard[PullQueue]:
    """Return whether the consumers of a queue pull; quicker than asking an abstract class."""
    return isinstance(queue.subscriptions, ConsumerLists)


def subscriptions_of(queue: Queue) -> list[Subscription]:
    """Return all subscriptions, in the order of their list."""
    if pulls(queue):
        return [each for _, part in queue.subscriptions.all.value for each in _consumers(part)]
    return [
        node.subscription
        for node in _behind(queue.subscriptions.head)
        if node.subscription is not None and not node.deleted.value
    ]


def placed(lists: ConsumerLists) -> Iterator[tuple[NodeState, int, QueueConsumer]]:
    """Yield each place of a consumer in a list of a state, with the priority of the part.

    The highest priority first; 0 in a list without parts.
    """
    for state, parts in ((INTERESTED, lists.interested), (NOTIFIED, lists.notified)):
        for priority, part in parts.value:
            for consumer in _consumers(part):
                yield state, priority, consumer
    for state, whole in (
        (NOT_INTERESTED, lists.not_interested),
        (NON_ACQUIRING, lists.non_acquiring),
    ):
        for consumer in _consumers(whole):
            yield state, 0, consumer


def _consumers(part: ConsumerNodeList) -> Iterator[QueueConsumer]:
    for entry in _behind(part.head):
        node = entry.node.value
        if node is not None and not entry.deleted.value:
            yield node.consumer


def _behind(head: _Node) -> Iterator[_Node]:
    linked = head.next.value
    while linked is not None:
        yield linked
        linked = linked.next.value
