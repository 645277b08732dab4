"""Set parameters where two steps meet: in the witnesses of a refinement, and in swaps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from brokerproof.models.language import (
    TRUE,
    Bool,
    Family,
    Map,
    Model,
    ModelError,
    SetOf,
    action,
    exists,
    forall,
    initial,
    require,
)
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.prove.binding import bind
from brokerproof.models.language.prove.commutation import pair
from brokerproof.models.language.prove.refinement import Refinement, Witness, does


class Item(Family):
    """Something that can be marked."""


class Lamp(Family):
    """Something that can be lit."""


class Marks(Model):
    """Items that are marked and unmarked, many at once."""

    marked: Map[Item, Bool]

    @initial
    def nothing(self) -> None:
        """Nothing is marked."""
        self.marked.fill(False)

    @action
    def mark(self, which: SetOf[Item]) -> None:
        """Mark some items, at least one of them anew."""
        require(exists(Item, lambda i: which[i] & ~self.marked[i]), "something-new")
        self.marked = self.marked.map(lambda i, old: old | which[i])

    @action
    def unmark(self, which: SetOf[Item]) -> None:
        """Unmark a set of items."""
        self.marked = self.marked.map(lambda i, old: old & ~which[i])


class Lamps(Model):
    """Lamps that are lit alone or together."""

    lit: Map[Lamp, Bool]

    @initial
    def dark(self) -> None:
        """Everything is dark."""
        self.lit.fill(False)

    @action
    def light(self, lamp: Lamp) -> None:
        """Light one lamp."""
        require(~self.lit[lamp])
        self.lit[lamp] = True

    @action
    def light_together(self, which: SetOf[Lamp]) -> None:
        """Light some that are dark, and some of them may be lit."""
        require(exists(Lamp, lambda lamp: which[lamp] & ~self.lit[lamp]))
        self.lit = self.lit.map(lambda lamp, old: old | which[lamp])


GOOD = Refinement(
    name="lamps refine marks",
    concrete=Lamps,
    abstract=Marks,
    remembering=Lamps,
    families={Item: Lamp},
    abstraction={"marked": lambda lamps, lamp: lamps.lit[lamp]},
    witnesses={
        "light": lambda _lamps, lamp: does("mark", lambda each: each == lamp),
        "light_together": lambda _lamps, which: does("mark", which),
    },
)


def not_proved(refinement: Refinement) -> set[tuple[str, str]]:
    """Return the obligations that are not proved."""
    return {(a.action, a.name) for a in bind(refinement).proof().answers if a.outcome != "proved"}


def test_a_set_of_the_abstract_step_is_given_as_a_parameter_or_as_a_function() -> None:
    proof = bind(GOOD).proof()
    assert proof.complete
    assert proof.witnesses["light"] == "mark({e: (lamp = e)})"


def test_a_wrong_set_is_refuted_with_the_set_in_the_step() -> None:
    def all_but_one(_lamps: Lamps, lamp: Lamp) -> Witness:
        return does("mark", lambda each: each != lamp)

    def those_that_were_lit(lamps: Lamps, which: SetOf[Lamp]) -> Witness:
        return does("mark", lambda each: which[each] & lamps.lit[each])

    wrong: dict[str, Callable[..., Witness]] = {
        "light": all_but_one,
        "light_together": those_that_were_lit,
    }
    bad = dataclasses.replace(GOOD, witnesses=wrong)
    assert not_proved(bad) == {
        ("light", "something-new"),
        ("light", "marked"),
        ("light_together", "something-new"),
        ("light_together", "marked"),
    }
    [answer] = [a for a in bind(bad).proof(("light_together",)).answers if a.name == "marked"]
    assert answer.witness[1].arguments["which"] == "{lamp0}"


def test_an_element_in_the_place_of_a_set_and_a_wrong_number_are_refused() -> None:
    def element(_lamps: Lamps, lamp: Lamp) -> Witness:
        return does("mark", lamp)

    def nothing(_lamps: Lamps, _lamp: Lamp) -> Witness:
        return does("mark")

    with pytest.raises(ModelError, match="which is a set"):
        bind(dataclasses.replace(GOOD, witnesses={**GOOD.witnesses, "light": element}))
    with pytest.raises(ModelError, match="mark takes 1 arguments"):
        bind(dataclasses.replace(GOOD, witnesses={**GOOD.witnesses, "light": nothing}))


def test_sets_are_swapped_where_they_have_nothing_in_common() -> None:
    def apart(which: SetOf[Item], other: SetOf[Item]) -> Bool:
        return forall(Item, lambda i: ~(which[i] & other[i]))

    marks = trace(Marks)
    assert pair(marks, "mark", "mark", apart).commute().complete
    found = pair(marks, "unmark", "mark", lambda _which, _other: TRUE).commute()
    assert (found.leaves_possible, found.ends_alike) == ("proved", "refuted")
    assert found.witness[1].arguments["which"] == "{item0}"
    crowded = pair(marks, "mark", "mark", lambda _which, _other: TRUE).commute()
    assert (crowded.leaves_possible, crowded.labels) == ("refuted", ("something-new",))
