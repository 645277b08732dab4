"""Copying and naming the parts of pull queues beside their entries.

The part of `fingerprints` for this system: nothing runs during a copy, and cells are read directly.
Copies of lists have no deleted nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brokerproof.reference.qpid.pull.consumer_lists import ConsumerLists, ConsumerNode
from brokerproof.reference.qpid.pull.consumers import QueueConsumer
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.reference.qpid.pull.sessions import Clients, Connection, ScheduledSet, Session
from brokerproof.reference.qpid.pull.targets import ConsumerTarget
from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from brokerproof.reference.front.credit import ChannelWindow, Window
    from brokerproof.reference.front.outbox import Executor
    from brokerproof.reference.front.queue import AnyQueue
    from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList
    from brokerproof.reference.qpid.push.subscriptions import Subscription

_new = object.__new__


class ClientCopies:
    """The copies of connections, sessions and targets; each original has one copy."""

    __slots__ = ("connections", "credits", "executor", "sessions", "targets")

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.connections: dict[Connection, Connection] = {}
        self.sessions: dict[Session, Session] = {}
        self.targets: dict[ConsumerTarget, ConsumerTarget] = {}
        self.credits: dict[
            ConsumerTarget, tuple[Window, AtomicReference[ChannelWindow | None]]
        ] = {}

    def target(self, target: ConsumerTarget) -> ConsumerTarget:
        """Return the copy of a target; `clients` fills in the queues that it pulls from."""
        copy = self.targets.get(target)
        if copy is None:
            copy = self.targets[target] = _new(ConsumerTarget)
            copy.is_open = target.is_open
            copy.at = target.at
            copy.desired = AtomicFlag(target.desired.value)
            copy.scheduled = AtomicFlag(target.scheduled.value)
            copy.pulls_from = ()
            copy.session = self.session(target.session)
        return copy

    def session(self, session: Session) -> Session:
        """Return the copy of a session, with the targets that wait in it."""
        copy = self.sessions.get(session)
        if copy is None:
            copy = self.sessions[session] = _new(Session)
            copy.channel = session.channel
            copy.scheduled = AtomicFlag(session.scheduled.value)
            copy.connection = self.connection(session.connection)
            copy.all_targets = list(map(self.target, session.all_targets))
            copy.targets = ScheduledSet()
            copy.targets.line.items += map(self.target, session.targets.line.items)
        return copy

    def connection(self, connection: Connection) -> Connection:
        """Return the copy of a connection, with the sessions that wait in it."""
        copy = self.connections.get(connection)
        if copy is None:
            copy = Connection(connection.name_of_client, self.executor)
            self.connections[connection] = copy
            copy.scheduled.value = connection.scheduled.value
            copy.sessions.line.items += map(self.session, connection.sessions.line.items)
        return copy

    def clients(
        self,
        clients: Clients,
        queues: Mapping[str, AnyQueue],
        subscriptions: Mapping[Subscription, Subscription],
    ) -> Clients:
        """Return the copy of all clients; every other part of the queues must have been copied."""
        copy = Clients("channel", self.executor)
        copy.shared = None if clients.shared is None else self.connection(clients.shared)
        for channel, session in clients.sessions.items():
            copy.sessions[channel] = self.session(session)
        for target, copied in self.targets.items():
            pulls_from = []
            for queue, consumer in target.pulls_from:
                queue_copy, consumer_copy = queues[queue.name], subscriptions[consumer]
                assert isinstance(queue_copy, PullQueue)
                assert isinstance(consumer_copy, QueueConsumer)
                pulls_from.append((queue_copy, consumer_copy))
            copied.pulls_from = tuple(pulls_from)
        for queue_copy in queues.values():
            if isinstance(queue_copy, PullQueue):
                queue_copy.clients = copy
        return copy


def copy_consumers(
    listed: ConsumerLists,
    copy_subscription: Callable[[Subscription], Subscription],
    copies: ClientCopies,
) -> ConsumerLists:
    """Return a copy of the lists with copies of the consumers."""
    copy = ConsumerLists()
    copy.size = AtomicInteger(listed.size.value)
    nodes: dict[ConsumerNode, ConsumerNode] = {}
    for priorities, new in (
        (listed.all, copy.all),
        (listed.interested, copy.interested),
        (listed.notified, copy.notified),
    ):
        new.value = tuple([(priority, type(each)()) for priority, each in priorities.value])
    for (_, each), (_, new_list) in zip(listed.all.value, copy.all.value, strict=True):
        for node in each.iterator():
            consumer = copy_subscription(node.consumer)
            assert isinstance(consumer, QueueConsumer)
            consumer.priority = node.consumer.priority
            consumer.all_queues = node.consumer.all_queues
            consumer.target = copies.target(node.consumer.target)
            consumer.declines = AtomicFlag(node.consumer.declines.value)
            # All consumers of a target share one window, and one channel window.
            own = consumer.credit, consumer.shared
            consumer.credit, consumer.shared = copies.credits.setdefault(node.consumer.target, own)
            nodes[node] = copied = ConsumerNode(copy, consumer)
            consumer.node = AtomicReference(copied)
            copied.all_entry = new_list.add(copied)
    for each in (
        *[each for _, each in listed.interested.value],
        *[each for _, each in listed.notified.value],
        listed.non_acquiring,
        listed.not_interested,
    ):
        for node in each.iterator():
            copied = nodes[node]
            copied.state = node.state
            copied.entry = copy.append(copied, node.state)
    return copy


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
