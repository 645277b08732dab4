"""Scopes are refused in one clear line where they fit no model."""

from __future__ import annotations

import pytest

from brokerproof.models.language import (
    Bool,
    Int,
    Map,
    Model,
    Order,
    action,
    exists,
    forall,
    initial,
    invariant,
)
from brokerproof.models.language.core.model import ModelError, trace
from brokerproof.models.language.core.scope import (
    Scope,
    arguments_in_words,
    cell_name,
    default_scope,
    valuations,
)
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.read.columns import ColumnReading
from brokerproof.models.language.read.plain import PlainReading
from tests.models.small_models import Counters, Item, Phase, Place, Shelves


def test_a_default_scope_has_one_size_for_all_families() -> None:
    scope = default_scope(trace(Shelves), 3)
    assert dict(scope.sizes) == {Item: 3, Place: 3}
    assert str(scope) == "Item 3, Place 3"
    assert str(default_scope(trace(Counters), 3)) == "Item 3, integers 0 to 3"


def test_sizes_and_integers_are_checked() -> None:
    with pytest.raises(ModelError, match="Item has size 0"):
        Scope({Item: 0}, range(1))
    with pytest.raises(ModelError, match="gives sizes to families"):
        Scope({Phase: 2}, range(1))
    with pytest.raises(ModelError, match="range\\(low, high\\)"):
        Scope({Item: 1}, range(0))
    with pytest.raises(ModelError, match="stay within"):
        Scope({Item: 1}, range(1 << 40))


def test_every_family_needs_a_size() -> None:
    for reading in (PlainReading, ColumnReading):
        with pytest.raises(ModelError, match="the scope gives no size to the family Place"):
            reading(trace(Shelves), Scope({Item: 2}, range(1)))


def test_only_rigid_things_are_fixed_and_to_values_that_they_can_have() -> None:
    shelves = trace(Shelves)
    sizes: dict[type[Term], int] = {Item: 2, Place: 2}
    with pytest.raises(ModelError, match=r"shut cannot be fixed .*: leads_to, hub, careful can"):
        PlainReading(shelves, Scope(sizes, range(1), {"shut": 0}))
    with pytest.raises(ModelError, match="leads_to has 2 cells with values \\[0, 1\\]"):
        PlainReading(shelves, Scope(sizes, range(1), {"leads_to": (0, 1, 1)}))
    with pytest.raises(ModelError, match="is fixed to 2"):
        PlainReading(shelves, Scope(sizes, range(1), {"hub": 2}))


@pytest.mark.parametrize(("fixed", "begun"), [({}, {0, 1}), ({"begin.item": 1}, {1})])
def test_a_fixed_parameter_of_an_action_has_one_value(
    fixed: dict[str, int], begun: set[int]
) -> None:
    system = trace(Counters)
    scope = Scope({Item: 2}, range(2), {"limit": 1} | fixed)
    (begin,) = (each for each in system.actions if each.name == "begin")
    assert {item for (item,) in valuations(scope, begin)} == begun
    scope.check(system)


def test_only_known_parameters_are_fixed_and_to_values_that_they_can_have() -> None:
    sizes: dict[type[Term], int] = {Item: 2}
    complaint = r"begin.itme cannot be fixed .*: begin.item, increment.item, hand_on.source"
    with pytest.raises(ModelError, match=complaint):
        PlainReading(trace(Counters), Scope(sizes, range(2), {"begin.itme": 1}))
    with pytest.raises(ModelError, match=r"begin.item has 1 cells with values .* is fixed to 2"):
        PlainReading(trace(Counters), Scope(sizes, range(2), {"begin.item": 2}))


def test_a_state_fits_into_a_few_words() -> None:
    assert ColumnReading(trace(Counters), Scope({Item: 6}, range(16))).words == 1
    assert ColumnReading(trace(Counters), Scope({Item: 9}, range(16))).words == 2
    complaint = "takes 400 bits, and 4 words of 64 bits are all it can have: make the scope smaller"
    with pytest.raises(ModelError, match=complaint):
        ColumnReading(trace(Counters), Scope({Item: 40}, range(16)))


def test_axioms_that_nothing_satisfies_are_reported() -> None:
    reading = ColumnReading(trace(Counters), Scope({Item: 2}, range(-3, 1)))
    with pytest.raises(ModelError, match="no valuation in this scope satisfies the axioms"):
        reading.initial_words()


class TwoOrders(Model):
    """Orders one family twice."""

    lower: Order[Item]
    older: Order[Item]
    flag: Map[Item, Bool]

    @initial
    def nothing(self) -> None:
        """No flag is up."""
        self.flag.fill(False)

    @action
    def wave(self, item: Item) -> None:
        """One flag goes up."""
        self.flag[item] = True


class ByNumber(Model):
    """Has an index without an end."""

    slot: Map[Int, Bool]

    @initial
    def nothing(self) -> None:
        """Every slot is free."""
        self.slot.fill(False)

    @action
    def use(self, number: Int) -> None:
        """One slot is used."""
        self.slot[number] = True


class AllIntegers(Counters):
    """States something of all integers."""

    @invariant("some-number-is-larger")
    def larger(self) -> Bool:
        """Hold of numbers, and of no range of them."""
        return forall(Item, lambda i: exists(Int, lambda n: self.count[i] < n))


def test_what_has_no_finite_reading_is_refused() -> None:
    with pytest.raises(ModelError, match="is about all integers, which have no end"):
        PlainReading(trace(AllIntegers), Scope({Item: 2}, range(3)))
    with pytest.raises(ModelError, match="lower and older both order Item"):
        PlainReading(trace(TwoOrders), Scope({Item: 2}, range(1)))
    with pytest.raises(ModelError, match="slot is indexed by Int"):
        PlainReading(trace(ByNumber), Scope({}, range(1)))


def test_cells_are_named_in_the_models_words() -> None:
    plain = PlainReading(trace(Shelves), Scope({Item: 1, Place: 2}, range(1)))
    assert [cell_name(cell) for cell in plain.cells] == [
        "leads_to[place0]",
        "leads_to[place1]",
        "hub",
        "careful",
        "at[item0]",
        "shut[place0]",
        "shut[place1]",
        "touched[item0, place0]",
        "touched[item0, place1]",
    ]


def test_arguments_are_named_in_the_models_words() -> None:
    scope = Scope({Item: 3, Place: 2}, range(1))
    move, visit = (trace(Shelves).action(name) for name in ("move_together", "visit"))
    assert arguments_in_words(scope, move, (0b101,)) == {"which": "{item0, item2}"}
    assert arguments_in_words(scope, visit, (2, 1)) == {"item": "item2", "place": "place1"}
