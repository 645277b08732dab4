"""Attributes that two threads touch: a race exactly where nothing orders them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import explore
from brokerproof.checks.threads.threads import Threads
from brokerproof.reference.shared.atomics import AtomicFlag, AtomicReference, Lock, atomic_steps


class InSlots:
    """Something with an attribute in a slot."""

    __slots__ = ("number", "parts")

    def __init__(self) -> None:
        self.number = 0
        self.parts: list[int] = []


class InADictionary:
    """The same without slots."""

    def __init__(self) -> None:
        self.number = 0
        self.parts: list[int] = []


class Shared:
    """The shared state of the threads, and the means to order them."""

    def __init__(self, threads: Threads, kind: type[InSlots | InADictionary]) -> None:
        self.threads = threads
        self.thing = kind()
        self.lock = Lock()
        self.ready = AtomicFlag()
        self.link: AtomicReference[InSlots | InADictionary | None] = AtomicReference(None)


Two = tuple[Callable[[Shared], object], Callable[[Shared], object]]


def write(shared: Shared) -> None:
    shared.thing.number = 1


def read(shared: Shared) -> int:
    return shared.thing.number


def append(shared: Shared) -> None:
    shared.thing.parts.append(1)


def count(shared: Shared) -> int:
    return len(shared.thing.parts)


def under_lock(act: Callable[[Shared], object]) -> Callable[[Shared], None]:
    def go(shared: Shared) -> None:
        with shared.lock:
            act(shared)

    return go


def write_then_say(shared: Shared) -> None:
    write(shared)
    shared.ready.compare_and_set(False, True)


def read_if_said(shared: Shared) -> None:
    if shared.ready.get():
        read(shared)


def write_then_start_a_reader(shared: Shared) -> None:
    write(shared)
    shared.threads.start("a reader", lambda: read(shared))


def start_a_reader_then_write(shared: Shared) -> None:
    shared.threads.start("a reader", lambda: read(shared))
    write(shared)


def nothing(_: Shared) -> None:
    pass


def say_then_write(shared: Shared) -> None:
    shared.ready.compare_and_set(False, True)
    write(shared)


def link_one(shared: Shared) -> None:
    thing = type(shared.thing)()
    thing.number = 7
    shared.link.set(thing)


def follow(shared: Shared) -> None:
    thing = shared.link.get()
    assert thing is None or thing.number == 7


def write_late_then_say(shared: Shared) -> None:
    shared.ready.get()
    shared.link.get()
    write_then_say(shared)


ORDERED: list[Two] = [
    (write_late_then_say, read_if_said),
    (read, read),
    (under_lock(write), under_lock(read)),
    (under_lock(append), under_lock(count)),
    (write_then_say, read_if_said),
    (write_then_start_a_reader, nothing),
    (link_one, follow),
    (count, count),
]
RACES: list[Two] = [
    (write, read),
    (write, write),
    (under_lock(write), read),
    (append, count),
    (under_lock(append), append),
    (say_then_write, read_if_said),
    (start_a_reader_then_write, nothing),
]


def complaints(two: Two, kind: type[InSlots | InADictionary]) -> set[str]:
    one, other = two
    case = Case(
        "two threads",
        lambda threads: Shared(threads, kind),
        lambda shared: {"one": lambda: one(shared), "other": lambda: other(shared)},
        lambda _: [],
        watches=[kind],
    )
    found = explore(case, failures_max=1_000)
    assert found.complete
    return {each for failed in found.failed for each in failed.complaints}


@pytest.mark.parametrize("kind", [InSlots, InADictionary])
@pytest.mark.parametrize("two", ORDERED)
def test_what_is_ordered_is_no_race(two: Two, kind: type[InSlots | InADictionary]) -> None:
    assert complaints(two, kind) == set()


@pytest.mark.parametrize("kind", [InSlots, InADictionary])
@pytest.mark.parametrize("two", RACES)
def test_what_nothing_orders_is_a_race(two: Two, kind: type[InSlots | InADictionary]) -> None:
    told = complaints(two, kind)
    assert told
    assert all("nothing orders the two" in each for each in told)


def test_a_race_names_the_attribute_and_the_threads() -> None:
    assert complaints((write, nothing), InSlots) == set()
    assert complaints((write, read), InSlots) == {
        "InSlots.number is written by one and read by other, and nothing orders the two",
        "InSlots.number is read by other and written by one, and nothing orders the two",
    } or complaints((write, read), InSlots) == {
        "InSlots.number is written by one and read by other, and nothing orders the two"
    }


def test_classes_are_as_before_afterwards() -> None:
    complaints((write, read), InSlots)
    assert "__getattribute__" not in vars(InSlots)
    assert "__setattr__" not in vars(InSlots)


@atomic_steps(reads=("count",), writes=("add",))
class Parts:
    """A list that threads share."""

    def __init__(self) -> None:
        self.parts: list[int] = []

    def add(self) -> None:
        """Add a part."""
        self.parts.append(1)

    def count(self) -> int:
        """Return how many there are."""
        return len(self.parts)


def test_what_an_atomic_step_changes_within_is_ordered() -> None:
    case = Case(
        "a list",
        lambda _: Parts(),
        lambda parts: {"one": parts.add, "two": parts.add, "three": parts.count},
        lambda _: [],
        watches=[Parts],
    )
    found = explore(case, failures_max=10)
    assert (found.complete, found.failed) == (True, [])


@atomic_steps(reads=("value",), writes=("add",))
class Sum:
    """A sum whose methods are one step each."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, number: int) -> None:
        """Add a number."""
        self.total = self.total + number

    def value(self) -> int:
        """Return the sum."""
        return self.total


@atomic_steps(reads=("value",), writes=("add", "put"))
class Tally(Sum):
    """A sum of which one step takes others."""

    def add(self, number: int) -> None:
        """Add a number, by the kind of the sum."""
        self.put(self.value() + number)

    def put(self, number: int) -> None:
        """Replace the sum."""
        self.total = number


def test_a_step_that_takes_others_is_one_and_more_follow_it() -> None:
    def add_late(to: Tally) -> None:
        to.add(0)
        # Two steps, so the other's may come between.
        to.put(to.value() + 1)

    case = Case(
        "a tally",
        lambda _: Tally(),
        lambda to: {"one": lambda: add_late(to), "other": lambda: to.add(1)},
        lambda to: [] if to.total == 2 else [f"{to.total}"],
    )
    found = explore(case, failures_max=10)
    assert [each.complaints for each in found.failed] == [("1",)]
    # The other's step is before, between, or after the three: each place is a class of its own.
    assert found.runs == 4


def summed(*, at_once: bool) -> Case[Sum]:
    def add(to: Sum) -> None:
        if at_once:
            to.add(1)
        else:
            to.add(1 + to.value() - to.value())
            to.total = to.value()

    return Case(
        "a sum",
        lambda _: Sum(),
        lambda to: {"one": lambda: add(to), "other": lambda: add(to)},
        lambda to: [] if to.total == 2 else [f"{to.total}"],
        watches=[Sum],
    )


def test_an_atomic_step_is_an_access_and_orders() -> None:
    found = explore(summed(at_once=True), failures_max=10)
    assert (found.runs, found.failed) == (2, [])
    assert explore(summed(at_once=False)).failed
