"""Bounded checking finds the shortest run, and warns of undecidable formulas before Z3 runs."""

from __future__ import annotations

from brokerproof.models.language import Bool, Int, action, exists, forall, invariant, require
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.prove.bounded import check_bounded
from brokerproof.models.language.prove.prover import prove_invariant
from brokerproof.models.language.prove.shape import complaints
from tests.models.small_models import Counters, Item, Place, Shelves


class TooLow(Counters):
    """States a limit that is too low."""

    @invariant("nothing-above-one")
    def low(self) -> Bool:
        """Wrong where the limit is two."""
        return forall(Item, lambda i: self.count[i] < 2)


def test_the_shortest_run_is_found_and_no_shorter_one_exists() -> None:
    found = check_bounded(trace(TooLow), {Item: 1}, 5)
    assert found.steps == 3
    assert found.violation
    assert [step.action for step in found.violation.trace] == [
        "", "begin", "increment", "increment"
    ]  # fmt: skip
    assert check_bounded(trace(TooLow), {Item: 1}, 2).violation is None


class Jumping(TooLow):
    """Counts by any number at once."""

    @action
    def jump(self, item: Item, by: Int) -> None:
        """Go up by so much, which no scope bounds here."""
        require(by > 1)
        self.count[item] = self.count[item] + by


def test_integers_as_arguments_are_few_and_it_says_so() -> None:
    found = check_bounded(trace(Jumping), {Item: 1}, 5)
    assert found.scope == "Item 1, integers as arguments 0 to 2"
    assert found.violation
    assert [step.action for step in found.violation.trace] == ["", "jump"]
    assert check_bounded(trace(Jumping), {Item: 1}, 1, range(2)).violation is None


def test_what_holds_has_no_violation_within_the_bound() -> None:
    found = check_bounded(trace(Counters), {Item: 2}, 4)
    assert (found.steps, found.violation, found.unknown) == (4, None, "")


def test_a_refutation_that_a_run_comes_to_shows_the_run() -> None:
    [statement] = [s for s in trace(TooLow).invariants if s.name == "nothing-above-one"]
    conditions = prove_invariant(trace(TooLow), statement).conditions
    [broken] = [c for c in conditions if c.action == "increment"]
    assert [step.action for step in broken.run] == ["", "begin", "increment", "increment"]


def test_a_function_from_a_family_to_itself_is_told() -> None:
    assert "leads_to is a function, which leads from Place to itself" in complaints(trace(Shelves))


def test_for_all_there_is_is_told_and_a_closed_part_is_not() -> None:
    class Nested(Counters):
        """Nests quantifiers that depend on each other, and independent ones."""

        @invariant("each-has-another")
        def each_has_another(self) -> Bool:
            """Alternate."""
            return forall(Item, lambda i: exists(Item, lambda j: self.count[i] <= self.count[j]))

        @invariant("apart")
        def apart(self) -> Bool:
            """Do not, though it looks so."""
            return forall(
                Item, lambda i: (self.count[i] >= 0) | exists(Item, lambda j: self.count[j] < 0)
            )

    assert complaints(trace(Nested)) == [
        "each-has-another alternates, which leads from Item to itself"
    ]


def test_families_without_a_way_back_are_not_told() -> None:
    assert not [line for line in complaints(trace(Shelves)) if Item.__name__ in line]
    assert Place.__name__ in complaints(trace(Shelves))[0]
