"""States up to the names of a family: counts, findings, and refusals."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokerproof.checks.commands.explore import explore as explore_command
from brokerproof.models.language import (
    Bool,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Relation,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    require,
)
from brokerproof.models.language.core.model import ModelError, System, trace
from brokerproof.models.language.core.scope import Cell, Scope, state_in_words
from brokerproof.models.language.core.terms import constant
from brokerproof.models.language.explore import explorer
from brokerproof.models.language.explore.explorer import Engine, explore
from brokerproof.models.language.read import symmetry as symmetry_module
from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.language.read.compiled import NoCompilerError, compiler
from brokerproof.models.language.read.plain import PlainReading, State
from brokerproof.models.qpid.pointer_queue import Entry, PointerQueue, Subscription
from tests.models.language.explore.test_explorer import Hopeful, naive, replays
from tests.models.small_models import Counters, Item, Place, Shelves


class Worker(Family):
    """A worker, who does tasks."""


class Task(Family):
    """Something to be done by one worker at a time."""


class Office(Model):
    """Workers with a boss among them, tasks that pass from hand to hand."""

    boss: Worker
    owner: Map[Task, Worker]
    busy: Map[Worker, Bool]
    skilled: Relation[Task, Worker]

    @initial
    def morning(self) -> None:
        """The boss has all that is to be done."""
        self.owner.fill(self.boss)
        self.busy.fill(False)
        self.skilled.fill(False)

    @action
    def begin(self, worker: Worker) -> None:
        """A worker with a task sets to work."""
        require(~self.busy[worker] & exists(Task, lambda t: self.owner[t] == worker))
        self.busy[worker] = True

    @action
    def learn(self, task: Task) -> None:
        """A worker at work on a task has learnt it afterwards."""
        require(self.busy[self.owner[task]])
        self.skilled[task, self.owner[task]] = True
        self.busy[self.owner[task]] = False

    @action
    def hand_on(self, task: Task, worker: Worker) -> None:
        """A task goes to another worker, from the boss or from a worker with knowledge of it."""
        require((self.owner[task] != worker) & ~self.busy[self.owner[task]])
        require((self.owner[task] == self.boss) | self.skilled[task, self.owner[task]])
        self.owner[task] = ite(self.busy[worker], self.boss, worker)

    @invariant("each-busy-worker-has-a-task")
    def busy_with(self) -> Bool:
        """A busy worker has a task."""
        return forall(
            Worker, lambda w: implies(self.busy[w], exists(Task, lambda t: self.owner[t] == w))
        )

    @invariant("no-two-but-the-boss-know-all")
    def few_masters(self) -> Bool:
        """Wrong: two can learn everything."""

        def knows(worker: Worker) -> Bool:
            return (worker != self.boss) & forall(Task, lambda t: self.skilled[t, worker])

        return forall(Worker, Worker, lambda v, w: implies(knows(v) & knows(w), v == w))


POINTERS, COUNTERS, SHELVES, OFFICE = map(trace, (PointerQueue, Counters, Shelves, Office))

CASES = [
    pytest.param(POINTERS, Scope({Entry: 2, Subscription: 2}, range(1)), Subscription, id="queue"),
    pytest.param(
        POINTERS,
        Scope({Entry: 2, Subscription: 3}, range(1), {"browser": (0, 1, 0)}),
        Subscription,
        id="queue-one-browser",
    ),
    pytest.param(COUNTERS, Scope({Item: 3}, range(3)), Item, id="counters"),
    pytest.param(COUNTERS, Scope({Item: 3}, range(3), {"limit": (2, 1, 2)}), Item, id="limits"),
    pytest.param(COUNTERS, Scope({Item: 4}, range(1 << 13), {"limit": 1}), Item, id="two-words"),
    pytest.param(SHELVES, Scope({Item: 3, Place: 2}, range(1)), Item, id="shelves"),
    pytest.param(OFFICE, Scope({Worker: 3, Task: 2}, range(1)), Worker, id="office-workers"),
    pytest.param(OFFICE, Scope({Worker: 2, Task: 3}, range(1)), Task, id="office-tasks"),
]


def renamed(plain: PlainReading, state: State, family: type, new: tuple[int, ...]) -> State:
    """Return a state after the elements of a family have changed their names."""
    values = dict(zip(plain.cells, state, strict=True))
    after = {}
    for (symbol, indices), value in values.items():
        pairs = zip(symbol.domain, indices, strict=True)
        moved = tuple(new[index] if sort is family else index for sort, index in pairs)
        after[Cell(symbol, moved)] = new[value] if symbol.range is family else value
    return tuple(after[cell] for cell in plain.cells)


class Turn(Family):
    """The turn; there is one."""


def orbits(plain: PlainReading, level: list[State], family: type) -> set[frozenset[State]]:
    """Return the states of a level, put together with those that differ in names alone."""
    there = set(level)
    names = list(itertools.permutations(plain.scope.values(family)))
    return {
        frozenset(there.intersection(renamed(plain, state, family, new) for new in names))
        for state in level
    }


@pytest.mark.each_time(3)
@pytest.mark.parametrize(("system", "scope", "family"), CASES)
def test_each_orbit_is_searched_once_and_stands_for_its_states(
    system: System, scope: Scope, family: type
) -> None:
    plain = PlainReading(system, scope)
    levels, _ = naive(plain)
    found = explore(system, scope, invariants=[], symmetric=family.__name__)
    assert found.levels == tuple(len(orbits(plain, level, family)) for level in levels)
    assert found.stands_for == sum(map(len, levels)) > found.states
    reading = ColumnReading(system, scope, symmetric=family.__name__)
    assert reading.canonical is not None
    for level in levels[:6]:
        for orbit in orbits(plain, level, family):
            forms = reading.form(reading.pack(sorted(orbit)))
            assert len(set(reading.unpack(forms))) == 1
            each = [reading.canonical.stands_for(forms[n : n + 1]) for n in range(len(orbit))]
            assert each == [len(orbit)] * len(orbit)


def test_a_sort_that_ends_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope({Item: 3}, range(3))
    expected = explore(COUNTERS, scope, invariants=[], symmetric="Item")
    monkeypatch.setattr(symmetry_module, "_bubble", itertools.pairwise)
    found = explore(COUNTERS, scope, invariants=[], symmetric="Item")
    assert found.states > expected.states
    assert found.stands_for > expected.stands_for


@pytest.mark.each_time(4)
@pytest.mark.parametrize(("system", "scope", "family"), CASES)
def test_c_and_numpy_find_the_same_up_to_names(system: System, scope: Scope, family: type) -> None:
    try:
        compiler()
    except NoCompilerError as error:
        pytest.skip(str(error))
    name = family.__name__
    found = explore(system, scope, engine="compiled", symmetric=name, deadlock=True)
    assert found.engine == "compiled"
    assert found == explore(system, scope, engine="columns", symmetric=name, deadlock=True)


def test_a_search_up_to_names_is_handed_over_to_c(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        compiler()
    except NoCompilerError as error:
        pytest.skip(str(error))
    scope = Scope({Entry: 2, Subscription: 3}, range(1))
    expected = explore(POINTERS, scope, symmetric="Subscription", engine="columns")
    monkeypatch.setattr(explorer, "COMPILE_FROM", 500)
    found = explore(POINTERS, scope, symmetric="Subscription")
    assert (found.engine, expected.engine) == ("compiled", "columns")
    assert found == expected


def test_without_symmetry_states_stand_for_themselves() -> None:
    found = explore(COUNTERS, Scope({Item: 2}, range(3)))
    assert found.stands_for == found.states
    assert found.symmetric is None


@pytest.mark.parametrize("engine", ["columns", "compiled"])
@pytest.mark.parametrize(
    ("system", "scope", "family", "deadlock"),
    [
        (trace(Hopeful), Scope({Entry: 2, Subscription: 2}, range(1)), Subscription, False),
        (OFFICE, Scope({Worker: 3, Task: 2}, range(1)), Worker, False),
        (COUNTERS, Scope({Item: 3}, range(3), {"limit": 1}), Item, True),
    ],
)
def test_what_is_broken_is_broken_up_to_names_after_as_many_steps(
    system: System, scope: Scope, family: type, deadlock: bool, engine: Engine
) -> None:
    full = explore(system, scope, deadlock=deadlock)
    found = explore(system, scope, symmetric=family.__name__, engine=engine, deadlock=deadlock)
    assert full.violation is not None
    assert found.violation is not None
    assert found.violation.invariant == full.violation.invariant
    assert len(found.violation.trace) == len(full.violation.trace) > 2
    plain = PlainReading(system, scope)
    assert replays(plain, found.violation.trace)
    last = found.violation.trace[-1].state
    [end] = [
        state
        for level in naive(plain)[0]
        for state in level
        if state_in_words(plain.cells, state) == last
    ]
    if deadlock:
        assert not any(
            plain.enabled(act.name, end, arguments)
            for act in system.actions
            for arguments in plain.arguments(act.name)
        )
    else:
        assert found.violation.invariant in plain.violated(end)


def test_elements_in_an_order_are_not_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope({Item: 2, Place: 3}, range(1))
    with pytest.raises(ModelError, match="Place is not symmetric: lower orders its elements"):
        explore(SHELVES, scope, symmetric="Place")
    with pytest.raises(ModelError, match="Entry is not symmetric: before orders its elements"):
        explore(POINTERS, Scope({Entry: 3, Subscription: 1}, range(1)), symmetric="Entry")
    # Without that refusal the search would be wrong, and the counts would show it.
    for check in ("_check_terms", "_check_symbol"):
        monkeypatch.setattr(symmetry_module, check, lambda *_: None)
    scope = Scope({Entry: 3, Subscription: 1}, range(1))
    wrong = explore(POINTERS, scope, symmetric="Entry")
    assert wrong.stands_for != explore(POINTERS, scope).states


class Friends(Model):
    """Workers know each other."""

    knows: Relation[Worker, Worker]
    first: Fixed[Task, Worker]

    @initial
    def strangers(self) -> None:
        """No worker knows another."""
        self.knows.fill(False)

    @action
    def meet(self, one: Worker, other: Worker) -> None:
        """Two get to know each other."""
        self.knows[one, other] = True


class Favoured(Office):
    """Names one of its workers, which no text of a model can: only terms made by hand."""

    @action
    def favour(self, task: Task) -> None:
        """The first worker gets it."""
        self.owner[task] = constant(Worker, 0)


def test_a_model_that_names_an_element_is_refused() -> None:
    scope = Scope({Worker: 2, Task: 2}, range(1))
    with pytest.raises(ModelError, match="Worker is not symmetric: the model names worker0"):
        explore(trace(Favoured), scope, symmetric="Worker")
    assert explore(trace(Favoured), scope, symmetric="Task", invariants=[]).violation is None


def test_what_cannot_be_sorted_is_refused_with_the_reason() -> None:
    scope = Scope({Worker: 2, Task: 2}, range(1))
    friends = trace(Friends)
    for system, given, family, reason in [
        (friends, scope, "Worker", "knows of Friends relates its elements to one another"),
        (friends, scope, "Nobody", "has no family Nobody: it has Task, Worker"),
        (OFFICE, Scope({Worker: 2, Task: 2}, range(1), {"boss": 0}), "Worker", "the scope fixes"),
        (
            OFFICE,
            Scope({Worker: 2, Task: 1}, range(1)),
            "Task",
            "no two elements of Task are alike",
        ),
        (COUNTERS, Scope({Item: 2}, range(3), {"limit": (1, 2)}), "Item", "same fixed values"),
        (OFFICE, Scope({Worker: 3, Task: 33}, range(1)), "Worker", "too many to be sorted"),
        (
            SHELVES,
            Scope({Item: 2, Place: 70}, range(1), {"leads_to": 0}),
            "Item",
            r"at\[item0\] and what else there is of this element take more than 64 bits",
        ),
    ]:
        with pytest.raises(ModelError, match=reason):
            explore(system, given, symmetric=family)


def test_the_command_says_what_the_states_stand_for() -> None:
    result = CliRunner().invoke(
        explore_command, ["pointer-queue", "--size", "2", "--symmetry", "Subscription"]
    )
    assert result.exit_code == 0, result.output
    full = explore(POINTERS, Scope({Entry: 2, Subscription: 2}, range(1)))
    line = next(line for line in result.output.splitlines() if line.startswith("  states"))
    assert line.endswith(f" up to symmetry of Subscription, which stand for {full.states:,}")
    result = CliRunner().invoke(explore_command, ["pointer-queue", "--symmetry", "Entry"])
    assert result.exit_code == 2
    assert "before orders its elements" in result.output


@pytest.mark.thorough
def test_the_page_shows_what_the_command_prints() -> None:
    result = CliRunner().invoke(explore_command, ["pointer-queue", "--symmetry", "Subscription"])
    page = Path(__file__).parents[4] / "docs" / "guide" / "explorer.md"
    assert "\n".join(result.output.splitlines()[:2]) in page.read_text(encoding="utf-8")


class Numbers(Model):
    """Each takes the next number, once."""

    taken: Map[Item, Int]
    following: Map[Turn, Int]

    @initial
    def none(self) -> None:
        """No item has a number."""
        self.taken.fill(0)
        self.following.fill(1)

    @action
    def take(self, item: Item, turn: Turn) -> None:
        """Take the next one."""
        require(self.taken[item] == 0)
        self.taken[item] = self.following[turn]
        self.following[turn] = self.following[turn] + 1


@pytest.mark.parametrize("size", [3, 20, 21])
def test_what_states_stand_for_is_counted_beyond_64_bits(size: int) -> None:
    scope = Scope({Item: size, Turn: 1}, range(size + 2))
    found = explore(trace(Numbers), scope, symmetric="Item")
    assert found.states == size + 1
    assert found.stands_for == sum(math.perm(size, taken) for taken in range(size + 1))
