"""Invariants of a pulling broker between steps.

Each has its id in the notes on Qpid's pull model. Between operations, and between the jobs of a
broker that runs them on drain alone, no connection is at work, so pending work always waits for a
turn. The functions read a planted copy of the reference as well as the real one, hence names of
states instead of states.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from brokerproof.reference.broker import Broker
    from brokerproof.reference.qpid.pull.consumer_lists import ConsumerLists
    from brokerproof.reference.qpid.pull.consumers import QueueConsumer
    from brokerproof.reference.qpid.pull.queue import PullQueue
    from brokerproof.reference.qpid.push.queue import Queue

WANTING = ("INTERESTED", "NOTIFIED", "NON_ACQUIRING")


def broken(broker: Broker) -> list[str]:
    """Return the broken invariants, each in a line that begins with its id."""
    found = [*_schedules(broker)]
    for queue in broker.queues.values():
        pulled: Any = queue
        found += [*_lists(pulled.subscriptions), *_counts(pulled), *_wake_ups(pulled)]
    return found


def state_of(consumer: QueueConsumer) -> str:
    node = consumer.node.value
    return "REMOVED" if node is None else node.state.name


def _lists(lists: ConsumerLists) -> Iterator[str]:
    where: dict[str, list[tuple[str, int | None]]] = {}
    priorities = []
    for name, by_priority in (("INTERESTED", lists.interested), ("NOTIFIED", lists.notified)):
        priorities.append([priority for priority, _ in by_priority.value])
        for priority, each in by_priority.value:
            for node in each.iterator():
                where.setdefault(str(node.consumer), []).append((name, priority))
    for name, listed in (
        ("NOT_INTERESTED", lists.not_interested),
        ("NON_ACQUIRING", lists.non_acquiring),
    ):
        for node in listed.iterator():
            where.setdefault(str(node.consumer), []).append((name, None))
    priorities.append([priority for priority, _ in lists.all.value])
    if any(each != sorted(set(each), reverse=True) for each in priorities):
        yield f"QCM-3: priorities not descending: {priorities}"
    if any(each != priorities[0] for each in priorities):
        yield f"QCM-3: priorities differ: {priorities}"
    for consumer in lists.iterator():
        state = state_of(consumer)
        listed_by = consumer.priority if state in {"INTERESTED", "NOTIFIED"} else None
        if where.pop(str(consumer), []) != [(state, listed_by)]:
            yield f"QCM-1: {consumer} is {state}, and not in that list alone"
        if consumer.mode.acquires == (state == "NON_ACQUIRING"):
            yield f"QCM-2: {consumer} is {state}"
        if not consumer.mode.acquires and state in {"INTERESTED", "NOTIFIED"}:
            yield f"QCM-2: the browser {consumer} is {state}"
    if where:
        yield f"QCM-1: in a list, and not in that of all: {where}"


def _counts(queue: PullQueue) -> Iterator[str]:
    consumers = list(queue.subscriptions.iterator())
    if queue.subscriptions.size.value != len(consumers):
        yield f"QCM-4: {queue.subscriptions.size.value} counted of {len(consumers)}"
    wanting = [each for each in consumers if state_of(each) in WANTING]
    if queue.active_count.value != len(wanting):
        yield f"QCM-4: {queue.active_count.value} active counted of {len(wanting)}"


def _wake_ups(queue: PullQueue) -> Iterator[str]:
    consumers = list(queue.subscriptions.iterator())
    for each in consumers:
        if state_of(each) == "NOTIFIED" and not each.target.scheduled.value:
            yield f"PULL-2: {each} is notified, and will have no turn"
    waiting = [
        each
        for each in consumers
        if each.mode.acquires and each.target.desired.value and not each.is_suspended()
    ]
    available = [entry for entry in queue.entries.iterator() if entry.is_available()]
    if available and waiting and not any(each.target.scheduled.value for each in waiting):
        yield f"PULL-1: {available[0]} is there for {waiting[0]}, and no consumer comes"


def _schedules(broker: Broker) -> Iterator[str]:
    jobs: list[Any] = list(broker.executor.jobs)
    if len(set(map(id, jobs))) != len(jobs):
        yield "SCH-1: a connection is scheduled twice"
    connections = {each.connection: None for each in broker.clients.sessions.values()}
    for connection in connections:
        in_line = connection.sessions.line.items
        if connection.scheduled.value != any(job is connection for job in jobs):
            yield f"SCH-1: {connection} has its mark and no job, or a job and no mark"
        if in_line and not connection.scheduled.value:
            yield f"SCH-1: {connection} has sessions that wait, and is not scheduled"
        for session in broker.clients.sessions.values():
            if session.connection is not connection:
                continue
            if session.scheduled.value != (session in in_line):
                yield f"SCH-1: the mark of session {session.channel} is wrong"
            if session.targets.line.items and not session.scheduled.value:
                yield f"SCH-1: session {session.channel} has targets that wait, and waits not"
    for queue in broker.queues.values():
        consumers: Any = cast("Queue", queue).subscriptions.iterator()
        for consumer in consumers:
            line = consumer.target.session.targets.line.items
            if consumer.target.scheduled.value != (consumer.target in line):
                yield f"SCH-1: the mark of {consumer} is wrong"
