"""The reduction of memory: that it ends and is enough is proved, and a livelock is found."""

from __future__ import annotations

import pytest

from brokerproof.models.language import TRUE, Bool, Int, action
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.prove.ranking import prove_leads_to
from brokerproof.models.rabbitmq.paging_reduction import (
    BATCH,
    ENOUGH,
    FEW,
    IN_RAM,
    LOOKS,
    LOWERS,
    NOT_NEGATIVE,
    OVER,
    PENDING,
    REPORTS,
    SUM,
    Call,
    PagingReduction,
    Part,
)

SCOPE = Scope({}, range(-3, 7), {"most": 3, "batch": 1, "segment_size": 1})
"""Three messages at most, one in a segment, one in a batch."""


class SkipsQ2(PagingReduction):
    """Is done where nothing of q3 may leave, whatever is in q2: it reports, and does nothing."""

    def pushes_no_more(self) -> Bool:
        """Whether no position of q3 has to leave, or none may."""
        return (self.quota == 0) | (self.pushable == 0)


class CountsUntrimmed(PagingReduction):
    """Keeps the content of a message that returns to q3, which no paging removes (before 3.1.2)."""

    def counts(self, part: Part) -> Bool:
        """Whether messages in the place count as in memory."""
        return super().counts(part) | (part == Part.Q3)


class PermitsLess(PagingReduction):
    """Permits less than a segment, though q3 may be one."""

    def may_be_permitted(self, permitted: Int) -> Bool:
        """Whether so many positions may stay."""
        return permitted >= 0


class LooksAtQ1AndQ4Alone(PagingReduction):
    """May leave pending messages in memory."""

    def has_paged_pending(self) -> Bool:
        """Whether enough pending messages have left."""
        return TRUE


class GivesOneQuotaTwice(PagingReduction):
    """Gives the second as much as the first."""

    @action
    def end_pending(self) -> None:
        """The other kind is next, with a batch of its own."""
        super().end_pending()
        self.quota = self.batch


class PagesABatch(PagingReduction):
    """Pages a batch, however little is over the target."""

    @action
    def begin(self, pending_first: Bool, target: Int) -> None:
        """A call begins."""
        super().begin(pending_first, target)
        self.quota = self.batch


class ReportsNothing(PagingReduction):
    """Does one batch, and is not called again."""

    @action
    def end(self) -> None:
        """The call is over."""
        super().end()
        self.worked = False
        self.is_done = True


class PagesForGood(PagingReduction):
    """Does not count paged messages as out of memory."""

    def _is_paged(self) -> None:
        self.quota -= 1


class TakesOffTwo(PagingReduction):
    """Counts each content of q4 that it pages as two."""

    @action
    def page_q4(self) -> None:
        """Two are taken off."""
        super().page_q4()
        self.length[Part.Q4] -= 1


class LosesWhatItPages(PagingReduction):
    """Pages a content of q4 to nowhere."""

    @action
    def page_q4(self) -> None:
        """It is not in q3."""
        q3 = self.length[Part.Q3]
        super().page_q4()
        self.length[Part.Q3] = q3


class LosesWhatIsPending(PagingReduction):
    """Forgets pending messages with their contents."""

    @action
    def page_pending(self) -> None:
        """Nothing of it is left."""
        disk_acks = self.disk_acks
        super().page_pending()
        self.disk_acks = disk_acks


class ForgetsToReport(PagingReduction):
    """Ends a call without a word."""

    @action
    def end(self) -> None:
        """It reports nothing."""
        super().end()
        self.is_done = False


class LeavesPositions(PagingReduction):
    """Ends after contents."""

    @action
    def end_pending(self) -> None:
        """No position is looked at."""
        super().end_pending()
        self.call = Call.RESTS


def test_it_ends_and_is_enough_for_any_lengths_targets_batches_and_segments() -> None:
    proof = prove(trace(PagingReduction))
    assert proof.complete
    assert {LOWERS, ENOUGH, FEW} <= {each.name for each in proof.invariants}


@pytest.mark.each_time(2)
@pytest.mark.parametrize(("batch", "size"), [(1, 1), (2, 1), (1, 2)])
def test_three_messages_keep_all_of_it(batch: int, size: int) -> None:
    fixed = {"most": 3, "batch": batch, "segment_size": size}
    found = explore(trace(PagingReduction), Scope({}, range(-3, 7), fixed))
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.each_time(6)
@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (SkipsQ2, LOWERS, 6),
        (CountsUntrimmed, LOWERS, 6),
        (CountsUntrimmed, IN_RAM, 1),
        (PermitsLess, LOWERS, 6),
        (LooksAtQ1AndQ4Alone, LOWERS, 6),
        (GivesOneQuotaTwice, BATCH, 4),
        (PagesABatch, OVER, 1),
        (ReportsNothing, ENOUGH, 8),
        (ReportsNothing, FEW, 8),
        (PagesForGood, LOWERS, 7),
        (TakesOffTwo, NOT_NEGATIVE, 3),
        (LosesWhatItPages, SUM, 3),
        (LosesWhatIsPending, PENDING, 3),
    ],
)
def test_each_rule_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explore(trace(model), SCOPE, invariants=[broken])
    assert found.violation is not None
    assert len(found.violation.trace) - 1 == steps


def kept_by(model: type[Model]) -> set[str]:
    """Return which promises about the end a model keeps with one message."""
    scope = Scope({}, range(-1, 2), {"most": 1, "batch": 1, "segment_size": 1})
    return {each.name for each in check(trace(model), scope) if each.kept and each.asked}


def test_a_call_comes_to_its_end() -> None:
    assert kept_by(PagingReduction) == {REPORTS, LOOKS}
    assert kept_by(ForgetsToReport) == {LOOKS}
    assert LOOKS not in kept_by(LeavesPositions)


@pytest.mark.parametrize(
    ("model", "proved"),
    [(PagingReduction, {REPORTS, LOOKS}), (ForgetsToReport, {LOOKS}), (LeavesPositions, set())],
)
def test_a_call_of_any_size_comes_to_its_end(model: type[Model], proved: set[str]) -> None:
    found = [prove_leads_to(trace(model), each) for each in trace(model).leads_to]
    assert {each.name for each in found if each.outcome == "proved"} == proved
