"""Operations at once: the reference keeps its promises, and brokers that do not are found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from brokerproof.checks.conversation import Copier, copier_of, reset
from brokerproof.checks.oracle.oracle import Oracle
from brokerproof.checks.threads.case_catalogue import every_case, lost_wake_ups
from brokerproof.checks.threads.histories import Call, Happened, History, Judge
from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.on_threads import classes_beside
from brokerproof.checks.threads.parallel import CannotBegin, Parallel, parallel_case
from brokerproof.checks.threads.schedules import Tried, with_few_switches
from brokerproof.checks.threads.tables import accesses, table
from brokerproof.reference import make
from brokerproof.spec.messages import Credit, Fifo, Message, Order, Priority
from brokerproof.spec.protocol.answers import OK, Answer, Delivered, Event
from brokerproof.spec.protocol.candidate import Candidate, OnThreads
from brokerproof.spec.protocol.capabilities import Hello
from brokerproof.spec.protocol.operations import Consume, Declare, Operation, Publish
from tests.faults.threads.catalogue import thread_faults

SUBSCRIBED: tuple[Declare | Consume, ...] = (
    Declare(queue="q", order=Fifo()),
    Consume(queue="q", consumer="c", channel="ch", mode="acknowledge", credit=Credit(1)),
)
ORDERS: Sequence[Order] = (Fifo(), Priority(levels=3))
COMES_BACK_TWICE = "what came back goes and comes back again, beside a runner"
CASES = [
    pytest.param(parallel, id=f"{type(order).__name__} {parallel.name}")
    for order in ORDERS
    for parallel in every_case(order)
]


def explored(
    candidate: Candidate, parallel: Parallel, runs_max: int, watches: Sequence[type] = ()
) -> Sequence[tuple[str, ...]]:
    """Return the failures among the first so many runs."""
    reset(candidate)
    copier = copier_of(candidate)
    assert isinstance(copier, Copier)
    oracle = Oracle(candidate.hello().capabilities)
    case = parallel_case(parallel, candidate, copier, oracle, watches=watches)
    found = explore(case, runs_max=runs_max)
    for failed in found.failed:
        # It runs again, and can be printed.
        assert len(accesses(case, failed)) <= len(failed.choices)
        assert table(case, failed).row_count
    return [failed.complaints for failed in found.failed]


def few_switches(candidate: Candidate, parallel: Parallel, runs_max: int) -> Tried:
    """Try the runs in which threads give way least, of which a fault mostly needs no more."""
    reset(candidate)
    copier = copier_of(candidate)
    assert isinstance(copier, Copier)
    case = parallel_case(parallel, candidate, copier, Oracle(candidate.hello().capabilities))
    return with_few_switches(case, switches_max=2, runs_max=runs_max)


@pytest.mark.thorough
@pytest.mark.parametrize("parallel", CASES)
def test_the_reference_keeps_its_promises_on_threads(parallel: Parallel) -> None:
    """The first runs of each case, more of which `make check` runs, too."""
    assert explored(make("qpid-push"), parallel, runs_max=60) == []


@pytest.mark.thorough
@pytest.mark.parametrize("parallel", CASES[::4])
def test_no_two_threads_of_the_reference_touch_an_attribute_without_order(
    parallel: Parallel,
) -> None:
    broker = make("qpid-push")
    kinds = classes_beside(broker)
    assert len(kinds) > 10
    assert explored(broker, parallel, runs_max=15, watches=kinds) == []


@pytest.mark.thorough
def test_a_place_in_two_references_loses_what_comes_back_twice() -> None:
    """The fault of `models/qpid/released_pointer.py`, in the running code."""

    def tried(address: str) -> Tried:
        parallel = next(each for each in lost_wake_ups(Fifo()) if each.name == COMES_BACK_TWICE)
        return few_switches(make(address), parallel, runs_max=3_000)

    published = tried("qpid-push?pointer=published")
    assert published.failed is not None
    assert published.failed.complaints[0].startswith("quiescence")
    assert tried("qpid-push").failed is None


def test_each_fault_that_needs_threads_has_its_own_name() -> None:
    names = [fault.id for fault in thread_faults()]
    assert len(set(names)) == len(names)


def test_a_case_that_cannot_begin_says_why() -> None:
    with pytest.raises(CannotBegin, match="quiescence"):
        explored(_DoesNothing(), Parallel("no beginning", (*SUBSCRIBED, publish("m")), ()), 1)


class _DoesNothing:
    """A broker that answers `ok` and does nothing."""

    def hello(self) -> Hello:
        return make("qpid-push").hello()

    def handle(self, operation: Operation) -> Answer:
        del operation
        return OK

    def on_threads(self, start: object, tell: Callable[[Event], None]) -> None:
        del start, tell


def test_the_reference_can_be_used_on_threads() -> None:
    assert isinstance(make("qpid-push"), OnThreads)


# Lawful orders of a history.


def judge() -> Judge:
    """Return a judge after the setup: a queue with a consumer that may hold one message."""
    oracle = Oracle(make("qpid-push").hello().capabilities)
    oracle.watch = None
    for operation in SUBSCRIBED:
        assert not oracle.observe(operation, OK)
    return Judge(oracle, {"c": "ch"})


def publish(message: str) -> Publish:
    return Publish(queue="q", message=Message(id=message))


def published(message: str) -> Call:
    return Call(publish(message), OK)


def delivered(message: str) -> Delivered:
    return Delivered(delivery="d0", consumer="c", queue="q", message=message, redelivered=False)


@pytest.mark.parametrize("first", ["m", "n"])
def test_of_two_that_are_published_at_once_either_may_be_first(first: str) -> None:
    happened = [
        Happened(published("m"), 0, 9),
        Happened(delivered(first), 5, 8),
        Happened(published("n"), 0, 10),
    ]
    assert judge().breach(History(happened), OK) is None


def test_of_two_that_are_published_in_turn_the_first_is_first() -> None:
    def history(first: str) -> History:
        return History(
            [
                Happened(published("m"), 0, 3),
                Happened(published("n"), 3, 6),
                Happened(delivered(first), 6, 8),
            ]
        )

    assert judge().breach(history("m"), OK) is None
    breach = judge().breach(history("n"), OK)
    assert breach is not None
    assert breach.requirement == "fifo-order"


def test_a_message_that_arrives_during_a_walk_may_be_seen_later() -> None:
    def history(looked_after: int) -> History:
        return History(
            [
                Happened(published("m"), 0, 4),
                Happened(published("n"), 4, 6),
                Happened(delivered("n"), looked_after, 8),
            ]
        )

    # A walk that began before m was there.
    assert judge().breach(history(3), OK) is None
    assert judge().breach(history(4), OK) is not None


def test_what_is_owed_at_rest_is_judged() -> None:
    breach = judge().breach(History([Happened(published("m"), 0, 3)]), OK)
    assert breach is not None
    assert breach.requirement == "quiescence"
