"""A place between threads: as published it loses an entry, as one pair it does not."""

from __future__ import annotations

import pytest

from brokerproof.models.language import (
    Bool,
    Map,
    action,
    exists,
    implies,
    initial,
    invariant,
    require,
)
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.core.terms import Term
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.qpid.moving_place import Opener, Opening, Seeker, Seeking
from brokerproof.models.qpid.paired_pointer import PairedPointer
from brokerproof.models.qpid.pointer_queue import Entry, Status
from brokerproof.models.qpid.released_pointer import Between, ReleasedPointer

PROMISE = "place-passes-nothing-of-interest"


class LookingAgain(ReleasedPointer):
    """The obvious small repair: after clearing, a seeker looks at the passed entry again."""

    looks_again: Map[Seeker, Bool]

    @initial
    def empty(self) -> None:
        """No thread looks again."""
        super().empty()
        self.looks_again.fill(False)

    @action
    def read_last(self, seeker: Seeker) -> None:
        """A seeker that looks again reads nothing else before."""
        require(~self.looks_again[seeker])
        super().read_last(seeker)

    @action
    def clear(self, seeker: Seeker) -> None:
        """The released entry is cleared, and the passed entry will be checked again."""
        super().clear(seeker)
        self.looks_again[seeker] = True

    @action
    def see_nothing(self, seeker: Seeker) -> None:
        """The passed entry is not available, so no release was missed."""
        require(self.looks_again[seeker] & (self.status[self.chosen[seeker]] != Status.AVAILABLE))
        self.looks_again[seeker] = False

    @action
    def look_again(self, seeker: Seeker, by: Opener) -> None:
        """The passed entry is available: the place moves back to it, as if it were opened now.

        The loop is an opener's; which thread takes its steps makes no difference.
        """
        require(self.looks_again[seeker] & (self.status[self.chosen[seeker]] == Status.AVAILABLE))
        require(self.opening[by] == Opening.OPENS)
        self.looks_again[seeker] = False
        self.opened[by] = self.chosen[seeker]
        self.opening[by] = Opening.READS

    def is_opened(self, e: Entry) -> Bool:
        """Whether a thread is about to move the place back to the entry."""
        return super().is_opened(e) | exists(
            Seeker,
            lambda s: (
                (self.chosen[s] == e) & ((self.between[s] == Between.CLEARS) | self.looks_again[s])
            ),
        )


def explored(model: type[Model], entries: int, seekers: int, openers: int) -> Exploration:
    """Explore with so many entries besides the head."""
    sizes: dict[type[Term], int] = {Entry: entries + 1, Seeker: seekers, Opener: openers}
    return explore(trace(model), Scope(sizes, range(1)))


def test_as_published_one_entry_and_two_threads_are_enough_to_lose_it() -> None:
    found = explored(ReleasedPointer, 1, 1, 1)
    assert found.violation is not None
    assert found.violation.invariant == PROMISE
    steps = [step.action for step in found.violation.trace[1:]]
    assert len(steps) == 12
    assert steps[-3:] == ["move", "read_as_opener", "clear"]


def test_looking_again_is_enough_for_one_seeker_and_not_for_two() -> None:
    alone = explored(LookingAgain, 2, 1, 2)
    assert (alone.violation, alone.incomplete) == (None, "")
    both = explored(LookingAgain, 2, 2, 1)
    assert both.violation is not None
    assert both.violation.invariant == PROMISE


@pytest.mark.parametrize(("entries", "seekers", "openers"), [(2, 1, 2), (2, 2, 1)])
def test_the_pair_loses_nothing_in_a_scope(entries: int, seekers: int, openers: int) -> None:
    found = explored(PairedPointer, entries, seekers, openers)
    assert (found.violation, found.incomplete) == (None, "")


class Content(PairedPointer):
    """May leave the pair unchanged if the released entry is far enough back, as Qpid does."""

    @action
    def leave_it(self, opener: Opener) -> None:
        """The earlier released entry is before this one: no change."""
        require(self.opening[opener] == Opening.READS)
        require(self.rewound & self.at_or_before(self.released, self.opened[opener]))
        self.opening[opener] = Opening.OPENS


class Forgetful(PairedPointer):
    """A delivery moves the place beyond the next entry after it."""

    @action
    def set(self, seeker: Seeker, following: Entry) -> None:
        """Forget the next entry."""
        super().set(seeker, following)
        self.rewound = False


class Unlocked(PairedPointer):
    """A seeker delivers without the lock, so that another one may deliver meanwhile."""

    @action
    def find_without_the_lock(self, seeker: Seeker) -> None:
        """The candidate is available."""
        require(self.seeking[seeker] == Seeking.LOOKS)
        require(self.status[self.chosen[seeker]] == Status.AVAILABLE)
        self.seeking[seeker] = Seeking.ACQUIRES


def test_without_the_lock_two_seekers_deliver() -> None:
    found = explored(Unlocked, 1, 2, 1)
    assert found.violation is not None
    assert found.violation.invariant == "one-seeker-delivers"
    [lost] = [each.name for each in prove(trace(Unlocked)).invariants if each.outcome != "proved"]
    assert lost == "one-seeker-delivers"


@pytest.mark.each_time(1)
@pytest.mark.parametrize("model", [Content, Forgetful])
def test_neither_half_of_the_repair_can_be_left_out(model: type[Model]) -> None:
    found = explored(model, 2, 1, 1)
    assert found.violation is not None
    refuted = {each.name for each in prove(trace(model)).invariants if each.outcome != "proved"}
    assert refuted


class Instant(PairedPointer):
    """Says of every delivery what holds only of one that still has the current pair."""

    @invariant("what-is-acquired-is-first")
    def acquired_is_first(self, s: Seeker, e: Entry) -> Bool:
        """No available entry is before one that a seeker is about to acquire."""
        acquires = (self.seeking[s] == Seeking.ACQUIRES) & (
            self.status[self.chosen[s]] == Status.AVAILABLE
        )
        return implies(acquires & self.is_for_all(e), self.at_or_before(self.chosen[s], e))


def test_a_delivery_overtakes_an_entry_that_comes_while_it_looks() -> None:
    found = explored(Instant, 2, 1, 1)
    assert found.violation is not None
    assert [step.action for step in found.violation.trace[1:]] == [
        "append",
        "read",
        "choose",
        "insert",
        "read_as_opener",
        "lower",
        "find",
    ]


def test_the_pair_is_proved_for_any_number_of_threads_and_entries() -> None:
    proof = prove(trace(PairedPointer))
    assert [each.name for each in proof.invariants if each.outcome != "proved"] == []
    assert PROMISE in {each.name for each in proof.invariants}
