"""The reduction of memory: that it ends and is enough is proved, and a livelock is found."""

from __future__ import annotations

import pytest

from brokerproof.models.language import Bool, Int, action, ite
from brokerproof.models.language.explorer import explore
from brokerproof.models.language.model import Model, trace
from brokerproof.models.language.prover import prove
from brokerproof.models.language.scope import Scope
from brokerproof.models.paging_reduction import (
    ENOUGH,
    FEW,
    IN_RAM,
    IT,
    LOWERS,
    PagingReduction,
    Part,
)

SCOPE = Scope({}, range(-3, 7), {"most": 3, "batch": 1, "segment_size": 1})
"""Three messages at most, one in a segment, one in a batch."""


class SkipsQ2(PagingReduction):
    """Looks at q2 only where something of q3 could leave: then it reports, and does nothing."""

    def pushed_of_q2(self, quota: Int, from_q3: Int, q2: Int) -> Int:
        """Return how many of q2 leave for delta."""
        return ite(from_q3 > 0, super().pushed_of_q2(quota, from_q3, q2), 0)


class CountsUntrimmed(PagingReduction):
    """Keeps the content of what returns to q3, which no paging takes away (before 3.1.2)."""

    def counts(self, part: Part) -> Bool:
        """Whether what is in the place is counted as in memory."""
        return super().counts(part) | (part == Part.Q3)


class PermitsLess(PagingReduction):
    """Permits less than a segment, though q3 may be one."""

    def may_be_permitted(self, permitted: Int, q3: Int) -> Bool:
        """Whether so many positions may stay."""
        del q3
        return permitted >= 0


class LooksAtQ1AndQ4Alone(PagingReduction):
    """Leaves what is pending in memory."""

    def paged(self, acks_first: Bool, quota: Int) -> tuple[Int, Int]:
        """Return how many contents leave memory."""
        alphas, acks = super().paged(acks_first, quota)
        return alphas, acks - acks


class GivesOneQuotaTwice(PagingReduction):
    """Gives the second as much as the first."""

    def paged(self, acks_first: Bool, quota: Int) -> tuple[Int, Int]:
        """Return how many contents leave memory."""
        del acks_first
        alphas, _ = super().paged(self.batch < 0, quota)
        return alphas, quota


class ReportsNothing(PagingReduction):
    """Does one batch, and is not called again."""

    @action
    def reduce(self, acks_first: Bool, permitted: Int, pushable: Int) -> None:
        """Contents leave memory."""
        super().reduce(acks_first, permitted, pushable)
        self.worked[IT] = False
        self.is_done[IT] = True


class PagesForGood(PagingReduction):
    """Forgets that what it pages is in memory no more."""

    @action
    def reduce(self, acks_first: Bool, permitted: Int, pushable: Int) -> None:
        """Contents leave memory."""
        in_ram = self.in_ram[IT]
        super().reduce(acks_first, permitted, pushable)
        self.in_ram[IT] = in_ram
        self.measures[IT] = self.measure()


def test_it_ends_and_is_enough_for_any_lengths_targets_batches_and_segments() -> None:
    proof = prove(trace(PagingReduction))
    assert proof.complete
    assert {LOWERS, ENOUGH, FEW} <= {each.name for each in proof.invariants}


@pytest.mark.parametrize(
    ("batch", "size"), [(1, 1), (2, 1), pytest.param(1, 2, marks=pytest.mark.thorough)]
)
def test_three_messages_keep_all_of_it(batch: int, size: int) -> None:
    fixed = {"most": 3, "batch": batch, "segment_size": size}
    found = explore(trace(PagingReduction), Scope({}, range(-3, 7), fixed))
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (SkipsQ2, LOWERS, 3),
        (CountsUntrimmed, LOWERS, 3),
        (CountsUntrimmed, IN_RAM, 1),
        (PermitsLess, LOWERS, 3),
        (LooksAtQ1AndQ4Alone, LOWERS, 3),
        (GivesOneQuotaTwice, "no-count-is-negative", 3),
        (ReportsNothing, ENOUGH, 4),
        (PagesForGood, LOWERS, 3),
        (ReportsNothing, FEW, 4),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explore(trace(model), SCOPE, invariants=[broken])
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps
