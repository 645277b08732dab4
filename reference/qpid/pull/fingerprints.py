"""The fingerprints of the consumers of pull queues, and of their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.pull.consumer_lists import ConsumerLists
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.reference.qpid.pull.sessions import Clients, Session
from brokerproof.reference.qpid.pull.targets import ConsumerTarget

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList


def name_consumers(listed: ConsumerLists) -> Hashable:
    """Return the consumers in each list, in the order in which they are notified.

    The order of the uninterested and of the notified has no effect.
    """
    return (
        tuple([(priority, _names(each)) for priority, each in listed.interested.value]),
        tuple([frozenset(_names(each)) for _, each in listed.notified.value]),
        _names(listed.non_acquiring),
        tuple([each.consumer for each in listed.iterator() if each.declines.value]),
    )


def _names(listed: ConsumerNodeList) -> tuple[str | None, ...]:
    return tuple([node.consumer.consumer for node in listed.iterator()])


def name_clients(clients: Clients, queues: Iterable[AnyQueue]) -> tuple[Hashable, ...]:
    """Return the waiting targets, and the positions of those that pull from several queues.

    Empty if there is none; then the queues have the whole state.
    """
    if not clients.sessions:
        return ()
    named: list[Hashable] = [
        (_name(target), target.at)
        for queue in queues
        if isinstance(queue, PullQueue)
        for target in [consumer.target for consumer in queue.subscriptions.iterator()]
        if len(target.pulls_from) > 1 and target.pulls_from[0][0] is queue
    ]
    connections = {each.connection: None for each in clients.sessions.values()}
    for connection in connections:
        waiting = connection.sessions.line.items
        if waiting:
            named.append(tuple([(each.channel, _waiting(each)) for each in waiting]))
    return tuple(named)


def _waiting(session: Session) -> Hashable:
    return tuple([_name(target) for target in session.targets.line.items])


def _name(target: ConsumerTarget) -> Hashable:
    return tuple([consumer.consumer for _, consumer in target.pulls_from])
