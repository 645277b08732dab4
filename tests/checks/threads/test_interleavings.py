"""The search of interleavings visits each class once, as a search without reduction shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerproof.checks.threads.cases import Case
from brokerproof.checks.threads.interleavings import Explored, explore
from brokerproof.checks.threads.orders import Orders
from brokerproof.checks.threads.runs import Run
from brokerproof.checks.threads.schedules import at_random, led, with_few_switches
from brokerproof.checks.threads.threads import Threads, running
from brokerproof.reference.shared.atomics import AtomicFlag, AtomicInteger, AtomicReference, Lock

ALL = 10**9


@dataclass
class Shared:
    """Two cells and two locks, and a way to start another thread."""

    threads: Threads
    cells: tuple[AtomicReference[int], AtomicReference[int]]
    locks: tuple[Lock, Lock]
    started: dict[str, int] = field(default_factory=dict)


STARTING = "another that reads a"
Act: TypeAlias = Callable[[Shared], object]
ACTS: Mapping[str, Act] = {
    "read a": lambda s: s.cells[0].get(),
    "read b": lambda s: s.cells[1].get(),
    "write a": lambda s: s.cells[0].set(1),
    "write b": lambda s: s.cells[1].set(1),
    "0 to 1 in a": lambda s: s.cells[0].compare_and_set(0, 1),
    "1 to 0 in a": lambda s: s.cells[0].compare_and_set(1, 0),
    "a under x": lambda s: _under(s, 0, "write a"),
    "b under y": lambda s: _under(s, 1, "read b"),
    "y under x": lambda s: _under(s, 0, "b under y"),
    "x under y": lambda s: _under(s, 1, "a under x"),
    STARTING: lambda s: _start(s, s.cells[0].get),
}
Program: TypeAlias = tuple[tuple[str, ...], ...]
programs = st.lists(
    st.lists(st.sampled_from(sorted(ACTS)), min_size=1, max_size=2).map(tuple),
    min_size=2,
    max_size=3,
).map(tuple)


def _start(shared: Shared, body: Callable[[], object]) -> None:
    by = running()
    assert by is not None
    number = shared.started[by.name] = shared.started.get(by.name, 0) + 1
    shared.threads.start(f"{by.name}.{number}", body)


def _under(shared: Shared, lock: int, act: str) -> None:
    with shared.locks[lock]:
        ACTS[act](shared)


def case_of(program: Program) -> Case[Shared]:
    """Return a case that runs a program and finds something wrong with every run."""

    def body(acts: tuple[str, ...], shared: Shared) -> Callable[[], None]:
        def go() -> None:
            for act in acts:
                ACTS[act](shared)

        return go

    return Case(
        "a program",
        lambda threads: Shared(threads, (AtomicReference(0), AtomicReference(0)), (Lock(), Lock())),
        lambda shared: {f"t{n}": body(acts, shared) for n, acts in enumerate(program)},
        lambda _: ["so it goes"],
    )


SCHEDULES_MAX = 100


def is_small(program: Program) -> bool:
    """Whether all schedules of a program can be run: two that nest locks, or more that do not."""
    acts = [act for thread in program for act in thread]
    many = [1 + sum(map(steps_of, thread)) for thread in program]
    many += [2 for act in acts if act == STARTING]
    schedules = math.factorial(sum(many)) // math.prod(map(math.factorial, many))
    return schedules <= SCHEDULES_MAX


def steps_of(act: str) -> int:
    """Return the largest number of steps of an act; a started thread has two more."""
    if "under" not in act:
        return 1
    return 5 if act[0] in "xy" else 3


Form: TypeAlias = frozenset[tuple[object, ...]]


def form_of(case: Case[Shared], choices: tuple[int, ...]) -> Form:
    """Return the common part of the runs of one class: the order of dependent steps."""
    orders = Orders()
    counts: dict[str, int] = {}
    seen, names = [], []
    with case.scheduled(), Run(case) as run:
        for choice in choices:
            thread, many = run.all[choice], len(run.all)
            cell = thread.cell
            run.step(thread)
            orders.add(choice, cell, thread.made)
            for each in run.all[many:]:
                orders.begin_after_last(each.number)
            counts[thread.name] = counts.get(thread.name, 0) + 1
            names.append((thread.name, counts[thread.name]))
            seen.append((names[-1], thread.made))
        failed = run.failed(choices)
        complaints = () if failed is None else failed.complaints
    before = [
        frozenset(names[n] for n in range(len(names)) if mask >> n & 1) for mask in orders.before
    ]
    return frozenset([*zip(seen, before, strict=True), (complaints,)])


def every_schedule(case: Case[Shared]) -> Iterator[tuple[int, ...]]:
    """Yield the choices of every schedule, none left out."""
    left: list[tuple[int, ...]] = [()]
    while left:
        prefix = left.pop()
        with case.scheduled(), Run(case) as run:
            for choice in prefix:
                run.step(run.all[choice])
            ready = [each.number for each in run.ready()]
        if ready:
            left += [(*prefix, number) for number in ready]
        else:
            yield prefix


def explored(case: Case[Shared]) -> tuple[Explored, list[Form]]:
    found = explore(case, failures_max=ALL)
    return found, [form_of(case, failed.choices) for failed in found.failed]


@pytest.mark.thorough
@settings(max_examples=5, deadline=None)
@given(programs.filter(is_small))
def test_each_class_of_interleavings_is_run_exactly_once(program: Program) -> None:
    """As many runs as there are classes among all schedules, and the same ones."""
    case = case_of(program)
    found, forms = explored(case)
    assert found.complete
    assert len(set(forms)) == len(forms) == found.runs
    assert set(forms) == {form_of(case, choices) for choices in every_schedule(case)}


@pytest.mark.parametrize(
    ("program", "runs"),
    [
        ((("write a",), ("write b",)), 1),
        ((("read a",), ("read a",), ("read a",)), 1),
        ((("write a",), ("read a",), ("read a",)), 4),
        ((("a under x",), ("a under x",), ("a under x",)), 6),
        ((("y under x",), ("x under y",)), 3),
        # Also if two wait for ever after the steps of a third have been tried.
        ((("0 to 1 in a",), ("x under y",), ("y under x",)), 5),
    ],
)
def test_the_number_of_classes_is_known(program: Program, runs: int) -> None:
    found, _ = explored(case_of(program))
    assert (found.runs, found.complete) == (runs, True)


def counted(threads: int, times: int) -> Case[AtomicInteger]:
    """Return threads that count on one counter, by reading it and then writing one more."""

    def count(counter: AtomicInteger) -> None:
        for _ in range(times):
            counter.set(counter.get() + 1)

    return Case(
        "a counter",
        lambda _: AtomicInteger(),
        lambda counter: {f"t{n}": lambda: count(counter) for n in range(threads)},
        lambda counter: [] if counter.value == threads * times else [f"{counter.value} counted"],
    )


def counted_right(threads: int) -> Case[AtomicInteger]:
    return Case(
        "a counter",
        lambda _: AtomicInteger(),
        lambda counter: {f"t{n}": counter.increment_and_get for n in range(threads)},
        lambda counter: [] if counter.value == threads else [f"{counter.value} counted"],
    )


def test_a_lost_update_is_found_and_its_schedule_runs_again() -> None:
    failed = explore(counted(2, 1)).failed[0]
    assert failed.complaints == ("1 counted",)
    assert led(counted(2, 1), failed.choices) == failed.complaints
    assert explore(counted_right(3)).failed == []


def test_the_first_failure_has_as_few_switches_as_any() -> None:
    tried = with_few_switches(counted(2, 2), switches_max=3, runs_max=1_000)
    assert tried.failed is not None
    choices = tried.failed.choices
    switches = [b for a, b in pairwise(choices) if a != b]
    # Away from a thread that could go on once; then the other has ended.
    assert len(switches) == 2
    right = with_few_switches(counted_right(2), switches_max=3, runs_max=1_000)
    assert (right.failed, right.complete) == (None, True)


def test_runs_at_random_are_the_same_for_the_same_seed() -> None:
    case = counted(3, 2)
    first, second = (at_random(case, seed=7, runs=50) for _ in range(2))
    assert first == second
    assert first.failed is not None
    assert led(case, first.failed.choices) == first.failed.complaints
    assert at_random(counted_right(3), seed=7, runs=50).failed is None


def test_a_deadlock_is_told() -> None:
    case = Case(
        "two locks",
        lambda _: (Lock(), Lock()),
        lambda locks: {
            "one": lambda: _both(locks[0], locks[1]),
            "other": lambda: _both(locks[1], locks[0]),
        },
        lambda _: [],
    )
    (failed,) = explore(case, failures_max=ALL).failed
    assert failed.complaints == (
        "one waits for ever for a lock",
        "other waits for ever for a lock",
    )


def _both(first: Lock, second: Lock) -> None:
    with first, second:
        pass


def test_what_goes_round_for_ever_is_told_from_what_only_waits() -> None:
    def spinning(sets: bool) -> Case[AtomicFlag]:
        def wait(flag: AtomicFlag) -> None:
            while not flag.get():
                pass

        def other(flag: AtomicFlag) -> None:
            flag.compare_and_set(not sets, True)

        return Case(
            "a flag",
            lambda _: AtomicFlag(),
            lambda flag: {"one": lambda: wait(flag), "other": lambda: other(flag)},
            lambda _: [],
        )

    assert explore(spinning(sets=False)).failed[0].complaints == (
        "one: goes round for ever, and nothing changes",
    )
    assert at_random(spinning(sets=True), seed=0, runs=20).failed is None


def test_what_a_thread_raises_is_told_and_the_others_end() -> None:
    def fail() -> None:
        raise ValueError("no")

    case = Case(
        "one fails", lambda _: AtomicInteger(), lambda c: {"one": fail, "two": c.get}, lambda _: []
    )
    assert explore(case).failed[0].complaints == ("one raised ValueError: no",)


def test_cells_are_plain_again_afterwards() -> None:
    before = vars(AtomicReference)["get"]
    explore(counted(2, 1))
    assert vars(AtomicReference)["get"] is before
    assert running() is None
