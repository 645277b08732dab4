"""Check the Qpid documents' claims about cost and lock-freedom by counting accesses to cells.

* Lock-freedom: each thread of a case is stopped for ever at each of its accesses; do the others
  finish?
* Cost: the accesses of one operation beside 1, 10, 100 and 1,000 others of its kind, or messages.
* From arrival to delivery: the accesses between, for a consumer with room among so many.
* Spurious wake-ups: how many scheduled jobs delivered nothing, over runs whose threads have random
  priorities.

    python benchmarks/qpid_counts.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from brokerproof.checks.threads.cases import Case, Shared
from brokerproof.checks.threads.schedules import at_random
from brokerproof.checks.threads.stopped_threads import Stops, stop_everywhere
from brokerproof.checks.threads.threads import Body, Threads, running, scheduled
from brokerproof.reference import Broker
from brokerproof.reference.qpid.pull.consumer_lists import ConsumerNode
from brokerproof.reference.qpid.pull.consumers import QueueConsumer
from brokerproof.reference.qpid.pull.node_list import ConsumerNodeList, ConsumerNodeListEntry
from brokerproof.reference.qpid.pull.queue import PullQueue
from brokerproof.reference.qpid.push.entries import ACQUIRED_BY_QUEUE, QueueEntry
from brokerproof.reference.qpid.push.entry_list import QueueEntryList, StandardEntryList
from brokerproof.reference.qpid.push.priority_list import PriorityEntryList
from brokerproof.reference.settings import SystemName
from brokerproof.spec.messages import Credit, Fifo, Message, Priority
from brokerproof.spec.protocol.answers import Delivered, Event
from brokerproof.spec.protocol.operations import Consume, Declare, Publish

SIZES: Final = (1, 10, 100, 1_000)
WIDE: Final = Credit(messages=1_000_000)
SYSTEMS: Final[tuple[SystemName, ...]] = ("qpid-push", "qpid-pull")
RANDOM_RUNS: Final = 300


def message(number: int) -> Message:
    """Return a message of the highest priority."""
    return Message(id=f"m{number}", priority=9)


def broker_with(system: SystemName, consumers: int, messages: int = 0) -> Broker:
    """Return a broker at rest with a queue `q`, consumers that have room, each on its channel."""
    broker = Broker(system)
    broker.handle(Declare(queue="q", order=Fifo()))
    for number in range(messages):
        broker.handle(Publish(queue="q", message=message(number)))
    for number in range(consumers):
        name = f"c{number}"
        broker.handle(Consume(channel=f"ch{number}", queue="q", consumer=name, credit=WIDE))
    return broker


# Threads that stop.


@dataclass(frozen=True)
class Pulled:
    """A pull queue at rest, and two of its consumers with room."""

    broker: Broker
    queue: PullQueue
    first: QueueConsumer
    second: QueueConsumer


def pulled(consumers: int = 2) -> Pulled:
    """Return an empty queue with its consumers."""
    broker = broker_with("qpid-pull", consumers)
    queue = broker.queues["q"]
    first, second, *_ = list(broker.consumers.values()) * 2
    assert isinstance(queue, PullQueue)
    assert isinstance(first, QueueConsumer)
    assert isinstance(second, QueueConsumer)
    return Pulled(broker, queue, first, second)


def nodes(many: int) -> tuple[ConsumerNodeList, list[ConsumerNodeListEntry], ConsumerNode]:
    """Return a list of consumers, their places in it, and a node that may be added."""
    node = pulled().first.node.value
    assert node is not None, "it is registered"
    listed = ConsumerNodeList()
    return listed, [listed.add(node) for _ in range(many)], node


def entries(listed: QueueEntryList, many: int) -> tuple[QueueEntryList, list[QueueEntry]]:
    """Return a list of entries and the entries, all acquired."""
    added = [listed.add(message(number)) for number in range(many)]
    for entry in added:
        entry.acquire(ACQUIRED_BY_QUEUE)
    return listed, added


def of_node_list() -> Case[tuple[ConsumerNodeList, list[ConsumerNodeListEntry], ConsumerNode]]:
    """Return an append, removals at both ends, and a walk of a list of consumers."""
    return Case(
        "list of consumers: append, remove first, remove last, walk",
        make=lambda _: nodes(3),
        bodies=lambda made: {
            "append": partial(made[0].add, made[2]),
            "remove first": made[1][0].remove,
            "remove last": made[1][-1].remove,
            "walk": lambda: list(made[0].iterator()),
        },
        judge=lambda _: (),
    )


def of_entry_list(
    name: str, make: Callable[[], QueueEntryList]
) -> Case[tuple[QueueEntryList, list[QueueEntry]]]:
    """Return an append, deletions at both ends, and a walk of a list of entries."""
    return Case(
        f"{name}: append, delete first, delete last, walk",
        make=lambda _: entries(make(), 3),
        bodies=lambda made: {
            "append": partial(made[0].add, message(3)),
            "delete first": partial(made[1][0].delete, ACQUIRED_BY_QUEUE),
            "delete last": partial(made[1][-1].delete, ACQUIRED_BY_QUEUE),
            "walk": lambda: list(made[0].iterator()),
        },
        judge=lambda _: (),
    )


def of_pulling(*, about_one: bool, arrival: bool = True) -> Case[Pulled]:
    """Return the three methods at once, on one consumer or on two, and an arrival beside them."""

    def make(threads: Threads) -> Pulled:
        made = pulled(1 if about_one else 2)
        made.broker.on_threads(threads.start, lambda _: None)
        return made

    def bodies(made: Pulled) -> Mapping[str, Body]:
        methods: dict[str, Body] = {
            "setNotifyWorkDesired": partial(
                made.queue.set_notify_work_desired, made.second, desired=False
            ),
            "notifyWork": made.first.notify_work,
            "deliverSingleMessage": partial(made.queue.deliver_single_message, made.first),
        }
        return methods | ({"enqueue": partial(made.queue.enqueue, message(0))} if arrival else {})

    name = "setNotifyWorkDesired, notifyWork, deliverSingleMessage, enqueue"
    consumers = "one consumer" if about_one else "two consumers"
    return Case(f"{name}; {consumers}", make, bodies, judge=lambda _: ())


def stopping() -> Iterator[tuple[str, Stops]]:
    """Yield the result of stopping threads, case by case."""
    yield _stopped(of_node_list())
    yield _stopped(of_entry_list("queue, first in first out", StandardEntryList))
    yield _stopped(
        of_entry_list("queue of 3 levels", lambda: PriorityEntryList(Priority(levels=3)))
    )
    yield _stopped(of_pulling(about_one=True))
    yield _stopped(of_pulling(about_one=False))


def _stopped(case: Case[Shared]) -> tuple[str, Stops]:
    return case.name, stop_everywhere(case)


# Cost.


def accesses(body: Body) -> int:
    """Return the number of accesses of one thread alone."""
    threads = Threads()
    with scheduled():
        threads.start("alone", body)
        (thread,) = threads.all
        while not thread.is_over:
            threads.step(thread)
        assert thread.failure is None, thread.failure
        made = threads.steps - 1
        threads.close()
    return made


def all_removed(many: int) -> Body:
    """Return the removal of all nodes of a list of consumers, from its middle outwards."""
    _, places, _ = nodes(many)
    middle = sorted(range(many), key=lambda n: abs(2 * n - many))

    def remove() -> None:
        for n in middle:
            places[n].remove()

    return remove


def all_deleted(many: int) -> Body:
    """Return the deletion of all entries of a queue, from its middle outwards."""
    _, added = entries(StandardEntryList(), many)
    middle = sorted(range(many), key=lambda n: abs(2 * n - many))

    def delete() -> None:
        for n in middle:
            added[n].delete(ACQUIRED_BY_QUEUE)

    return delete


def a_move(many: int) -> Body:
    """Return the move of one consumer of many to another list."""
    made = pulled(many)
    return partial(made.queue.subscriptions.set_notified, made.first, notified=True)


def an_arrival(system: SystemName, many: int) -> Body:
    """Return a publish to a queue with so many consumers, all with room."""
    return partial(broker_with(system, many).handle, Publish(queue="q", message=message(0)))


OPERATIONS: Final[Mapping[str, tuple[Callable[[int], Body], bool]]] = {
    "list of consumers: append": (lambda many: partial(nodes(many)[0].add, nodes(1)[2]), False),
    "list of consumers: remove, each of all": (all_removed, True),
    "consumers: one moves to another list": (a_move, False),
    "queue: append": (
        lambda many: partial(entries(StandardEntryList(), many)[0].add, message(0)),
        False,
    ),
    "queue of 10 levels: append": (
        lambda many: partial(
            entries(PriorityEntryList(Priority(levels=10)), many)[0].add, message(0)
        ),
        False,
    ),
    "queue: delete, each of all": (all_deleted, True),
    "pull: arrival to delivery, consumers": (partial(an_arrival, "qpid-pull"), False),
    "push: arrival to delivery, consumers": (partial(an_arrival, "qpid-push"), False),
}
"""By name, a factory of an operation beside so many, and whether it applies to each of them."""


# Wake-ups.


@dataclass
class Woken:
    """Jobs started in all runs, and their deliveries."""

    jobs: int = 0
    empty: int = 0
    deliveries: int = 0


@dataclass
class Run:
    """One run: the broker, and how much each job delivered."""

    broker: Broker
    delivered: Counter[str]
    jobs: list[str]


def woken(system: SystemName, consumers: int, publishes: int) -> Woken:
    """Count the jobs of runs in which two threads publish, one job begun as soon as scheduled."""
    total = Woken()

    def make(threads: Threads) -> Run:
        run = Run(broker_with(system, consumers), Counter(), [])

        def start(name: str, job: Body) -> None:
            run.jobs.append(f"{name} {len(run.jobs)}")
            threads.start(run.jobs[-1], job)

        def tell(event: Event) -> None:
            by = running()
            assert by is not None, "threads deliver"
            run.delivered[by.name] += isinstance(event, Delivered)

        run.broker.on_threads(start, tell)
        return run

    def publish(run: Run, numbers: range) -> None:
        for number in numbers:
            run.broker.handle(Publish(queue="q", message=message(number)))

    def count(run: Run) -> list[str]:
        total.jobs += len(run.jobs)
        total.empty += sum(not run.delivered[job] for job in run.jobs)
        total.deliveries += run.delivered.total()
        return []

    def bodies(run: Run) -> Mapping[str, Body]:
        return {
            "publisher 1": partial(publish, run, range(publishes)),
            "publisher 2": partial(publish, run, range(publishes, 2 * publishes)),
        }

    tried = at_random(Case("wake-ups", make, bodies, count), seed=0, runs=RANDOM_RUNS)
    assert tried.failed is None, tried.failed
    return total


def main() -> None:
    """Print all tables."""
    print(f"{'one thread stops for ever':82} {'stops':>7} {'others wait':>11} {'longest':>7}")
    for name, stops in stopping():
        print(f"{name:82} {stops.tried:7,} {len(stops.blocking):11,} {stops.longest:7}")
    print()
    print(f"{'accesses, beside':45}" + "".join(f"{size:>10,}" for size in SIZES))
    for name, (prepared, is_of_all) in OPERATIONS.items():
        each = [accesses(prepared(size)) / (size if is_of_all else 1) for size in SIZES]
        print(f"{name:45}" + "".join(f"{made:10,.1f}" for made in each))
    print()
    print(f"{'wake-ups':30} {'messages':>9} {'jobs':>7} {'in vain':>8} {'share':>6}")
    for system in SYSTEMS:
        for consumers in (1, 3):
            total = woken(system, consumers, 5)
            share = total.empty / max(1, total.jobs)
            print(
                f"{f'{system}, {consumers} consumers':30} {total.deliveries:9,} {total.jobs:7,}"
                f" {total.empty:8,} {share:6.1%}"
            )


if __name__ == "__main__":
    main()
