"""A thread that stops for ever: the threads that it blocks, and those it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.qpid_counts import accesses, all_deleted, of_entry_list, of_node_list, of_pulling
from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.stopped_threads import Stop, Stops, stop_everywhere
from brokerproof.reference.qpid.push.entry_list import StandardEntryList
from brokerproof.reference.qpid.push.priority_list import PriorityEntryList
from brokerproof.reference.shared.atomics import AtomicInteger, Lock
from brokerproof.spec.messages import Priority


def counting(count: Callable[[AtomicInteger, Lock], object]) -> Case[tuple[AtomicInteger, Lock]]:
    """Two threads that count to two, by some way of counting."""
    return Case(
        "counting",
        make=lambda _: (AtomicInteger(), Lock()),
        bodies=lambda made: {"one": lambda: count(*made), "other": lambda: count(*made)},
        judge=lambda _: (),
    )


def by_one_access(counter: AtomicInteger, _: Lock) -> None:
    counter.increment_and_get()


def under_a_lock(counter: AtomicInteger, lock: Lock) -> None:
    with lock:
        counter.increment_and_get()


def when_it_is_even(counter: AtomicInteger, _: Lock) -> None:
    """Count, and count again when the other has not begun, or has ended."""
    while counter.get() % 2:
        pass
    counter.increment_and_get()
    counter.increment_and_get()


def test_a_thread_that_shares_nothing_but_an_access_ends() -> None:
    stops = stop_everywhere(counting(by_one_access))
    assert (stops.tried, stops.blocking) == (4 + 2, [])


def test_a_thread_that_waits_for_a_lock_held_for_ever_is_named() -> None:
    stops = stop_everywhere(counting(under_a_lock))
    assert Stop("one", 2, 0, ("other",)) in stops.blocking
    assert Stop("other", 2, 0, ("one",)) in stops.blocking
    # Before it takes the lock, and before it ends, no thread waits for it.
    assert {stop.after for stop in stops.blocking} == {2, 3}


def test_a_thread_that_asks_for_ever_is_named() -> None:
    stops = stop_everywhere(counting(when_it_is_even))
    assert Stop("one", 3, 0, ("other",)) in stops.blocking


def fifo() -> Stops:
    return stop_everywhere(of_entry_list("fifo", StandardEntryList))


def priority() -> Stops:
    return stop_everywhere(of_entry_list("", lambda: PriorityEntryList(Priority(levels=3))))


def consumers() -> Stops:
    return stop_everywhere(of_node_list())


@pytest.mark.parametrize("stopped", [fifo, priority, consumers])
def test_the_lists_are_lock_free(stopped: Callable[[], Stops]) -> None:
    stops = stopped()
    assert stops.tried > 400
    assert not stops.blocking


def test_the_three_methods_of_pulling_wait_for_a_move_of_the_same_consumer() -> None:
    """The document would have them lock-free; its releases, and so we, lock a consumer's node."""
    stops = stop_everywhere(of_pulling(about_one=True, arrival=False))
    assert stops.tried > 400
    assert {stop.thread for stop in stops.blocking} == {
        "setNotifyWorkDesired",
        "deliverSingleMessage",
    }


def test_accesses_are_counted() -> None:
    counter, lock = AtomicInteger(), Lock()
    assert accesses(lambda: by_one_access(counter, lock)) == 1
    assert accesses(lambda: under_a_lock(counter, lock)) == 3
    assert accesses(all_deleted(2)) > 2 * accesses(all_deleted(1))
