"""Tracing: the permitted statements of a model, and their meanings."""

from __future__ import annotations

import pytest

from brokerproof.models.language import (
    Bool,
    Fixed,
    FixedRelation,
    Int,
    Map,
    Model,
    ModelError,
    Relation,
    Value,
    action,
    exists,
    forall,
    implies,
    initial,
    invariant,
    require,
    step,
)
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import show
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.read.plain import PlainReading
from tests.models.small_models import Counters, Item, Phase, Place, Shelves


class Flags(Model):
    """The common base of this file's models."""

    fixed: Fixed[Item, Bool]
    flag: Map[Item, Bool]
    other: Map[Item, Bool]

    @initial
    def nothing(self) -> None:
        """No flag is up."""
        self.flag.fill(False)
        self.other.fill(False)


def test_a_model_becomes_symbols_actions_and_statements_in_their_order() -> None:
    system = trace(Shelves)
    assert [s.name for s in system.symbols] == [
        "lower",
        "leads_to",
        "hub",
        "careful",
        "at",
        "shut",
        "touched",
    ]
    assert [s.name for s in system.state] == ["at", "shut", "touched"]
    assert [a.name for a in system.actions] == ["move_together", "turn", "visit"]
    assert system.invariants[0].name == "never-below-the-hub"
    assert system.families == (Item, Place)
    assert trace(Shelves) is system


def test_guards_keep_their_labels_and_updates_only_what_changes() -> None:
    begin = trace(Counters).action("begin")
    assert [guard.label for guard in begin.guards] == ["only-idle-items-begin", ""]
    assert [symbol.name for symbol in begin.updates] == ["phase"]


def test_a_step_requires_the_place_first_and_leaves_it_last() -> None:
    class Stepping(Flags):
        """A step, and the same written out."""

        phase: Map[Item, Phase]

        @initial
        def nothing(self) -> None:
            """No flag is up."""
            super().nothing()
            self.phase.fill(Phase.IDLE)

        @step(Phase.IDLE, Phase.BUSY)
        def begin(self, item: Item) -> None:
            """Raise the flag."""
            require(~self.flag[item])
            self.flag[item] = True

        @action
        def begin_too(self, item: Item) -> None:
            """Raise the flag."""
            require(self.phase[item] == Phase.IDLE)
            require(~self.flag[item])
            self.flag[item] = True
            self.phase[item] = Phase.BUSY

    reading = PlainReading(trace(Stepping), Scope({Item: 2}, range(2)))
    for state in reading.initial_states():
        assert reading.enabled("begin", state, (0,))
        after = reading.step("begin", state, (0,))
        assert after == reading.step("begin_too", state, (0,)) != state
        assert not reading.enabled("begin", after, (0,))


def test_a_step_without_a_map_of_places_is_refused() -> None:
    class Nowhere(Flags):
        """Items have no phase."""

        @step(Phase.IDLE, Phase.BUSY)
        def begin(self, item: Item) -> None:
            """Raise the flag."""
            self.flag[item] = True

    with pytest.raises(ModelError, match="there is no map from Item to Phase"):
        trace(Nowhere)


def test_a_guard_after_an_assignment_is_refused() -> None:
    class Late(Flags):
        """Requires too late."""

        @action
        def late(self, item: Item) -> None:
            """Assign first."""
            self.flag[item] = True
            require(~self.other[item])

    with pytest.raises(ModelError, match="require comes before the first assignment"):
        trace(Late)


def test_what_is_rigid_is_never_assigned() -> None:
    class Bent(Flags):
        """Assigns a rigid map."""

        @action
        def bend(self, item: Item) -> None:
            """Try to."""
            self.fixed[item] = True  # type: ignore[index]

    with pytest.raises(TypeError):
        trace(Bent)

    class Replaced(Flags):
        """Assigns a rigid map as a whole."""

        @action
        def bend(self) -> None:
            """Try to."""
            self.fixed = self.flag.map(lambda _, old: ~old)  # type: ignore[assignment]

    with pytest.raises(ModelError, match="fixed is not part of this model's state"):
        trace(Replaced)


def test_the_initial_state_says_something_of_every_map() -> None:
    class Silent(Model):
        """Forgets one."""

        flag: Map[Item, Bool]
        other: Map[Item, Bool]

        @initial
        def nothing(self) -> None:
            """Only the first."""
            self.flag.fill(False)

    with pytest.raises(ModelError, match="the initial state says nothing of other"):
        trace(Silent)


def test_a_model_has_one_initial_state() -> None:
    class Without(Model):
        """Has none."""

        flag: Map[Item, Bool]

    with pytest.raises(ModelError, match="needs exactly one @initial method, has 0"):
        trace(Without)


class ByElement(Flags):
    """States the same twice, and the opposite."""

    @action
    def put_up(self, item: Item) -> None:
        """A flag goes up."""
        self.flag[item] = True

    @invariant("for-all")
    def for_all(self) -> Bool:
        """No other flag is up beside a flag."""
        return forall(Item, Item, lambda i, j: implies(self.flag[i], ~self.other[j]))

    @invariant("by-element")
    def by_element(self, i: Item, j: Item) -> Bool:
        """No other flag is up beside a flag."""
        return implies(self.flag[i], ~self.other[j])

    @invariant("broken")
    def broken(self, i: Item) -> Bool:
        """No flag is up."""
        return ~self.flag[i]


def test_a_statement_holds_for_all_elements_that_are_its_parameters() -> None:
    system = trace(ByElement)
    for_all, by_element, _ = (show(statement.term) for statement in system.invariants)
    assert by_element == for_all
    found = explore(system, Scope({Item: 2}, range(1)))
    assert found.violation is not None
    assert found.violation.invariant == "broken"


def test_a_statement_changes_nothing() -> None:
    class Meddling(Flags):
        """States and changes."""

        @invariant("meddles")
        def meddles(self) -> Bool:
            """Change something on the way."""
            self.flag.fill(True)
            return exists(Item, lambda i: self.flag[i])

    with pytest.raises(ModelError, match="meddles states something, so it must not change"):
        trace(Meddling)


def test_sorts_are_checked_where_they_are_written() -> None:
    class Mixed(Model):
        """Uses a place for an item."""

        flag: Map[Item, Bool]

        @initial
        def nothing(self) -> None:
            """No flag is up."""
            self.flag.fill(False)

        @action
        def wrong(self, place: Place) -> None:
            """Raise a flag for the wrong thing."""
            self.flag[place] = True  # type: ignore[index]

    with pytest.raises(ModelError, match="expected a term of sort Item"):
        trace(Mixed)

    class Odd(Model):
        """Declares an attribute that is no part of a model."""

        number: int

    with pytest.raises(ModelError, match=r"number: .* is not a declaration of a model"):
        trace(Odd)


def test_the_indices_and_sorts_that_are_missing_are_named() -> None:
    class Knows(Flags):
        """Asks a relation of three sorts about two."""

        knows: FixedRelation[Item, Item, Place]

        @action
        def ask(self, item: Item) -> None:
            """Ask too little."""
            require(self.knows[item, item])  # type: ignore[index]

    with pytest.raises(ModelError, match="knows takes 3 indices, got 2"):
        trace(Knows)

    class Alone(Flags):
        """Relates an item to nothing."""

        knows: FixedRelation[Item]

    with pytest.raises(ModelError, match="knows: a relation has two sorts or more"):
        trace(Alone)

    class Untyped(Flags):
        """Has a parameter that may be anything."""

        @action
        def ask(self, item) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            """Ask for anything."""

    with pytest.raises(ModelError, match="ask: the parameter item has no sort"):
        trace(Untyped)


class Turns(Model):
    """A value without an index that is read, assigned and read again."""

    turn: Value[Int]
    seen: Value[Int]

    @initial
    def zero(self) -> None:
        """Both are 0."""
        self.turn = 0
        self.seen = 0

    @action
    def go_on(self) -> None:
        """Read after the assignment."""
        self.turn = self.turn + 1
        self.seen = self.turn + self.turn


def test_a_value_without_an_index_is_read_as_of_the_assignments_so_far() -> None:
    plain = PlainReading(trace(Turns), Scope({}, range(9)))
    assert plain.step("go_on", (1, 0), ()) == (2, 4)


class Sequence(Flags):
    """Reads before and after it assigns."""

    count: Map[Item, Int]
    link: Relation[Item, Item]

    @initial
    def nothing(self) -> None:
        """One count each, no flag but that of the fixed ones."""
        self.flag = self.flag.map(lambda i, _: self.fixed[i])
        self.other.fill(False)
        self.count.fill(1)
        self.link.fill(False)

    @action
    def read_then_change(self, item: Item) -> None:
        """A value read before a change is the old one."""
        some = exists(Item, lambda i: self.flag[i])
        self.flag.fill(False)
        self.other[item] = some

    @action
    def change_then_read(self, item: Item) -> None:
        """A value read after a change is the new one."""
        self.flag.fill(False)
        self.other[item] = exists(Item, lambda i: self.flag[i])

    @action
    def count_twice(self, item: Item) -> None:
        """Two assignments in a row add up."""
        self.count[item] = self.count[item] + 1
        self.count[item] = self.count[item] + 1

    @action
    def link_all(self, item: Item) -> None:
        """A map's body reads other maps as they are when it is written."""
        self.flag[item] = True
        self.link = self.link.map(lambda i, j, old: old | (self.flag[i] & (j == item)))
        self.flag.fill(False)


def after(name: str, fixed: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the state after one action on the first of two items, by symbol."""
    plain = PlainReading(trace(Sequence), Scope({Item: 2}, range(4), {"fixed": fixed}))
    [start] = plain.initial_states()
    state = plain.step(name, start, (0,))
    found: dict[str, tuple[int, ...]] = {}
    for cell, value in zip(plain.cells, state, strict=True):
        found[cell.symbol.name] = (*found.get(cell.symbol.name, ()), value)
    return found


def test_a_later_assignment_is_not_read_by_an_earlier_quantifier() -> None:
    assert after("read_then_change", (0, 1))["other"] == (1, 0)
    assert after("read_then_change", (0, 0))["other"] == (0, 0)
    assert after("change_then_read", (0, 1))["other"] == (0, 0)


def test_assignments_follow_each_other() -> None:
    assert after("count_twice", (0, 0))["count"] == (3, 1)


def test_a_map_reads_the_state_of_its_own_moment() -> None:
    found = after("link_all", (0, 1))
    assert found["link"] == (1, 0, 1, 0)
    assert found["flag"] == (0, 0)


def test_outside_of_a_model_there_is_no_state() -> None:
    with pytest.raises(ModelError, match="outside of a model's own methods"):
        require(True)
