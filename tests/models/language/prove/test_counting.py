"""Ghost counters: a step changes them with their sets, or is refuted; scopes compare them."""

from __future__ import annotations

import pytest

from brokerproof.checks.commands.proof_lines import invariant_lines
from brokerproof.models.language import (
    Bool,
    Family,
    Int,
    Map,
    Model,
    ModelError,
    action,
    counts,
    forall,
    initial,
    invariant,
    require,
)
from brokerproof.models.language.attack.mutation_testing import Subject, attack
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.prove.conditions import InvariantProof
from brokerproof.models.language.prove.counting import prove_counter, with_counts
from brokerproof.models.language.prove.prover import prove, prove_invariant

FULL = 2
"""How many books fit a shelf."""


class Shelf(Family):
    """A shelf."""


class Book(Family):
    """A book, on a shelf or lent."""


class Library(Model):
    """Books on shelves, each of which counts its own."""

    on: Map[Book, Shelf]
    lent: Map[Book, Bool]
    count: Map[Shelf, Int]
    closed: Map[Shelf, Bool]

    @initial
    def empty(self) -> None:
        """Everything is lent."""
        self.on = self.on.map(lambda _, old: old)
        self.lent.fill(True)
        self.count.fill(0)
        self.closed.fill(False)

    @counts("count")
    def stands_there(self, shelf: Shelf, book: Book) -> Bool:
        """A shelf's counter counts its books."""
        return (self.on[book] == shelf) & ~self.lent[book]

    @action
    def put(self, book: Book, shelf: Shelf) -> None:
        """A book comes back, to any shelf with room."""
        require(self.lent[book] & (self.count[shelf] < FULL))
        self.on[book] = shelf
        self.lent[book] = False
        self.count[shelf] = self.count[shelf] + 1

    @action
    def take(self, book: Book) -> None:
        """A book is lent."""
        require(~self.lent[book])
        self.lent[book] = True
        self.count[self.on[book]] = self.count[self.on[book]] - 1

    @action
    def clear(self, shelf: Shelf) -> None:
        """Lend all that is on a shelf."""
        self.lent = self.lent.map(lambda b, old: old | (self.on[b] == shelf))
        self.count[shelf] = 0

    @invariant("no-shelf-is-too-full")
    def not_too_full(self) -> Bool:
        """There is room for two."""
        return forall(Shelf, lambda s: self.count[s] <= FULL)

    @invariant("nothing-counted")
    def nothing_counted(self) -> Bool:
        """Say nothing of the counter."""
        return forall(Shelf, lambda s: ~self.closed[s])


class Miscounting(Library):
    """Counts two for each book."""

    @action
    def put(self, book: Book, shelf: Shelf) -> None:
        """A book comes back and is counted twice."""
        require(self.lent[book] & (self.count[shelf] < FULL))
        self.on[book] = shelf
        self.lent[book] = False
        self.count[shelf] = self.count[shelf] + 2


class Unguarded(Library):
    """Takes a book that is not there."""

    @action
    def take(self, book: Book) -> None:
        """A book is lent, or lent again."""
        self.lent[book] = True
        self.count[self.on[book]] = self.count[self.on[book]] - 1


class HalfCleared(Library):
    """Resets its counter, and no book leaves."""

    @action
    def clear(self, shelf: Shelf) -> None:
        """Set the counter and leave the books."""
        self.count[shelf] = 0


class BeginsWrong(Library):
    """Begins with one book too many."""

    @initial
    def empty(self) -> None:
        """Everything is lent and yet one is counted."""
        super().empty()
        self.count.fill(1)


SCOPE = Scope({Shelf: 2, Book: 3}, range(-3, 7))


def proof_of(model: type[Model]) -> InvariantProof:
    """Return the outcome of the counter's proof."""
    system = trace(model)
    [ghost] = system.ghosts
    return prove_counter(system, ghost)


def violated(model: type[Model]) -> str:
    """Return the invariant that an exploration breaks, if it does."""
    found = explore(with_counts(trace(model), SCOPE), SCOPE, invariants=["count-is-the-count"])
    return found.violation.invariant if found.violation else ""


def test_each_step_changes_the_counter_by_what_it_moves() -> None:
    proof = proof_of(Library)
    assert proof.outcome == "proved"
    assert [c.action for c in proof.conditions] == [None, "put", "take", "clear"]
    assert violated(Library) == ""


@pytest.mark.parametrize(
    ("broken", "where"),
    [(Miscounting, "put"), (Unguarded, "take"), (HalfCleared, "clear"), (BeginsWrong, None)],
)
def test_a_step_that_miscounts_is_refuted_and_found_in_a_scope(
    broken: type[Model], where: str | None
) -> None:
    proof = proof_of(broken)
    [wrong] = [c for c in proof.conditions if c.outcome != "proved"]
    assert (wrong.action, wrong.outcome) == (where, "refuted")
    assert [step.action for step in wrong.witness] == ([""] if where is None else ["", where])
    assert violated(broken) == "count-is-the-count"
    assert not prove(trace(broken)).complete


def test_a_proof_that_reads_the_counter_lists_it_and_no_other_does() -> None:
    system = trace(Library)
    about, other = (prove_invariant(system, statement) for statement in system.invariants)
    [assumption] = about.assumptions
    assert assumption.startswith("ghost counter count: changed by what each action moves")
    assert f"    assuming {assumption}" in list(invariant_lines(about, 0))
    assert other.assumptions == ()
    assert [c.name for c in prove(system).counters] == ["count-moves"]


def test_an_attack_on_a_step_is_refuted_by_the_counter() -> None:
    fates = {j.name: (j.outcome, j.by) for j in attack(Subject(trace(Library))).judged}
    assert fates["take: count: stays as it was"] == ("induction", ("count-moves",))
    assert fates["initially: count: 1 instead of 0"] == ("reachable", ("count-moves",))


def test_a_counter_is_a_symbol_of_the_state_with_these_indices() -> None:
    class Nameless(Library):
        """Counts for each book instead of each shelf."""

        @counts("count")
        def stands_elsewhere(self, book: Book, other: Book) -> Bool:
            """Take a book for a shelf."""
            return book == other

    with pytest.raises(ModelError, match="count is no counter of the state"):
        trace(Nameless)
