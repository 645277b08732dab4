"""The index of the paging queue: recovery is exact, and its tables are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from brokerproof.models.language import FALSE, Bool, action, exists, ite, require
from brokerproof.models.language.core.model import Model, trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import Exploration, explore
from brokerproof.models.language.explore.liveness import check
from brokerproof.models.language.prove.prover import prove
from brokerproof.models.language.prove.ranking import prove_leads_to
from brokerproof.models.rabbitmq.paging_index import (
    COUNT,
    DELETED,
    DOWN,
    FLUSH_ENDS,
    FLUSHED,
    READS,
    RECOVERED,
    RECOVERS,
    ROWS,
    SAME,
    SPLIT,
    TORN,
    TORN_ENDS,
    Ops,
    PagingIndex,
    Phase,
    Position,
    Segment,
)
from brokerproof.models.rabbitmq.paging_index_tables import (
    FILE,
    JOURNAL,
    JOURNAL_WITHOUT_SEGMENT,
    RECORDS,
    SEGMENT_WITH_JOURNAL,
)

SCOPE = Scope({Position: 2, Segment: 1}, range(-2, 3), {"segment": 0})
"""Two positions in one segment."""

FORGOTTEN = {("a", ""), ("da", "")}
"""The rows of a segment that was deleted before its journal."""

LOST = {("a", "P")}
"""The row of a delivery that was never written, which nothing here leaves out."""

UNFLUSHED = {("Pda", "Pda"), ("Pda", "P"), ("Pda", "Pd")}
"""Rows that are only met if the queue goes on after a recovery without a flush."""

HALF = {("Pd", "P"), ("da", "Pd")}
"""Rows that are only met where a part of an append reached the disk."""


class WritesWholeAppends(PagingIndex):
    """Never stops within an append."""

    @action
    def crash_in_append(self, s: Segment) -> None:
        """It never does."""
        require(FALSE & self.is_dead(s))
        self._stops()


class GoesOnUnflushed(PagingIndex):
    """Goes on after a recovery, and flushes later."""

    @action
    def recover(self) -> None:
        """The journal is read."""
        super().recover()
        self.phase = Phase.RUNS


class GoesOnWhole(WritesWholeAppends, GoesOnUnflushed):
    """Both."""


class DeletesWhatIsLive(PagingIndex):
    """Deletes a segment while something in it is live."""

    def is_dead(self, s: Segment) -> Bool:
        """Whether some entry of the segment is not live."""
        return exists(
            Position,
            lambda p: (
                (self.segment[p] == s) & (self.read(self.filed[p], self.in_ram[p]) == Ops.NONE)
            ),
        )


class TruncatesTooEarly(PagingIndex):
    """Truncates the journal before all segments are done."""

    @action
    def end_flush(self) -> None:
        """Some are."""
        require(self.phase == Phase.FLUSHES)
        self.journal.fill(Ops.NONE)
        self.phase = Phase.RUNS


class TakesTheJournalAsItIs(PagingIndex):
    """Recovers the journal, and does not subtract the entries of files from it."""

    @action
    def recover(self) -> None:
        """The journal is read."""
        super().recover()
        self.in_ram = self.in_ram.map(lambda p, _: self.journal[p])


class ForgetsTheJournal(PagingIndex):
    """Recovers the entries in files only."""

    @action
    def recover(self) -> None:
        """No journal is read."""
        super().recover()
        self.in_ram.fill(Ops.NONE)


class KeepsWhatWasAppended(PagingIndex):
    """Leaves appended entries in memory."""

    def _has_flushed(self, s: Segment) -> None:
        self.flushed[s] = True


class AppendsInOtherOrder(PagingIndex):
    """Appends the last record of an entry first, so that a part of it may be the end."""

    @action
    def reach(self, p: Position) -> None:
        """The last record has reached the disk, and no other."""
        require(self.torn[p] != Ops.NONE)
        torn = self.torn[p]
        last = ite(torn == Ops.PD, Ops.D, ite(torn == Ops.DA, Ops.A, torn))
        self.filed[p] = ite(self.filed[p] == Ops.NONE, last, self.filed[p])
        self.torn[p] = Ops.NONE


class LosesARecord(PagingIndex):
    """Appends the second record of an entry where the first has not reached the disk."""

    @action
    def reach(self, p: Position) -> None:
        """The first does not reach it."""
        filed = self.filed[p]
        super().reach(p)
        self.filed[p] = filed


class WritesItAllAgain(PagingIndex):
    """Writes all that was done to a position each time."""

    @action
    def deliver(self, p: Position) -> None:
        """It is fetched."""
        super().deliver(p)
        self.journal[p] = self.done[p]


class KeepsItsMemory(PagingIndex):
    """Keeps its memory across a stop."""

    def _stops(self) -> None:
        self.phase = Phase.IS_DOWN


class NeverFlushes(PagingIndex):
    """Lets the journal grow."""

    @action
    def begin_flush(self) -> None:
        """It does not."""
        super().begin_flush()
        self.phase = Phase.RUNS


class NeverTruncates(PagingIndex):
    """Keeps its journal when all of it is in files."""

    @action
    def end_flush(self) -> None:
        """All segments are done."""
        journal = self.journal.map(lambda _, old: old)
        super().end_flush()
        self.journal = journal


class ForgetsWhatIsFlushed(PagingIndex):
    """Flushes each segment again and again."""

    def _has_flushed(self, s: Segment) -> None:
        super()._has_flushed(s)
        self.flushed[s] = False


class KeepsFiles(PagingIndex):
    """Appends to settled entries, too."""

    def is_dead(self, s: Segment) -> Bool:
        """Nothing is."""
        del s
        return FALSE


class StaysDown(PagingIndex):
    """Reads its journal, and does not run."""

    @action
    def recover(self) -> None:
        """The journal is read."""
        super().recover()
        self.phase = Phase.IS_DOWN


class KeepsWhatWasTorn(StaysDown):
    """Waits for ever for an append that its stop interrupted."""

    @action
    def reach(self, p: Position) -> None:
        """It never does."""
        super().reach(p)
        self.torn[p] = Ops.P

    @action
    def recover(self) -> None:
        """The journal is read, and the interrupted append stays."""
        torn = self.torn.map(lambda _, old: old)
        super().recover()
        self.torn = torn


def without(rows: set[tuple[str, str]], model: type[PagingIndex]) -> type[PagingIndex]:
    """Return a model whose recovery lacks rows of its table."""
    fewer = {key: row for key, row in JOURNAL_WITHOUT_SEGMENT.items() if key not in rows}

    class Lacking(model):  # type: ignore[misc, valid-type]
        """Lacks rows."""

        without_segment: ClassVar[Mapping[tuple[str, str], tuple[str, int]]] = fewer

    return Lacking


def explored(model: type[Model], scope: Scope, *invariants: str) -> Exploration:
    """Explore; all invariants, or those named."""
    return explore(trace(model), scope, invariants=invariants or None, limit_states=1_000_000)


def met_by(model: type[PagingIndex]) -> set[tuple[str, str]]:
    """Return the rows of recovery's table that some run of a model comes to."""
    return {
        row
        for row in JOURNAL_WITHOUT_SEGMENT
        if explored(without({row}, model), SCOPE, ROWS).violation
    }


def is_live(written: str) -> int:
    """Return 1 where a message was published and not acknowledged, else 0."""
    return int("P" in written and "a" not in written)


def counts(written: str) -> int:
    """Return the count: publishes minus acknowledgements."""
    return ("P" in written) - ("a" in written)


def test_the_first_table_is_one_after_the_other() -> None:
    follow = {(f, j) for f in FILE for j in JOURNAL if f + j in FILE}
    assert set(SEGMENT_WITH_JOURNAL) == follow
    for (filed, journal), (live, more) in SEGMENT_WITH_JOURNAL.items():
        both = filed + journal
        assert live == (both if is_live(both) else "")
        assert more == is_live(both) - is_live(filed)


def test_the_second_table_is_what_the_file_lacks() -> None:
    for (journal, filed), (left, twice) in JOURNAL_WITHOUT_SEGMENT.items():
        both = set(journal) | set(filed)
        if (journal, filed) in LOST:
            both |= {"d"}
        forgotten = "P" not in both
        lacks = "" if forgotten else "".join(op for op in "Pda" if op in both - set(filed))
        assert left == lacks
        assert twice == counts(journal) + counts(filed) - (
            0 if forgotten else counts("".join(both))
        )


def test_it_is_proved_for_any_number_of_positions_and_segments() -> None:
    proof = prove(trace(PagingIndex))
    assert proof.complete
    assert {READS, RECOVERS, COUNT} <= {each.name for each in proof.invariants}
    assert {each.name for each in proof.leads_to} == PROMISES


def test_three_positions_in_two_segments_keep_all_of_it() -> None:
    found = explored(PagingIndex, Scope({Position: 3, Segment: 2}, range(-2, 3)))
    assert (found.violation, found.incomplete) == (None, "")
    assert all(found.firings.values())


@pytest.mark.thorough
def test_a_torn_append_meets_two_rows_more_and_a_recovery_without_flush_three() -> None:
    rows = set(JOURNAL_WITHOUT_SEGMENT)
    assert met_by(WritesWholeAppends) == rows - LOST - HALF - UNFLUSHED
    assert met_by(PagingIndex) == rows - LOST - UNFLUSHED
    assert met_by(GoesOnUnflushed) == rows - LOST


def test_recovery_is_exact_whether_it_flushes_or_not() -> None:
    proof = prove(trace(GoesOnUnflushed))
    assert {each.name for each in proof.invariants if each.outcome != "proved"} == {SAME}


def test_without_the_rows_of_a_deleted_segment_the_shortest_run_flushes_twice() -> None:
    found = explored(without({("a", "")}, PagingIndex), SCOPE, ROWS).violation
    assert found is not None
    assert [step.action for step in found.trace[1:]] == [
        *("publish", "deliver", "begin_flush", "append", "end_flush"),
        *("acknowledge", "begin_flush", "delete", "crash"),
    ]


def test_a_deleted_segment_that_counts_nothing_twice_is_counted_wrongly() -> None:
    class CountsZero(PagingIndex):
        """Subtracts nothing for a deleted segment, as in the notes."""

        without_segment: ClassVar[Mapping[tuple[str, str], tuple[str, int]]] = {
            **JOURNAL_WITHOUT_SEGMENT,
            **dict.fromkeys(FORGOTTEN, ("", 0)),
        }

    assert explored(CountsZero, SCOPE, RECOVERS, READS, ROWS).violation is None
    found = explored(CountsZero, SCOPE, COUNT).violation
    assert found is not None
    assert len(found.trace) - 1 == 9


@pytest.mark.parametrize(
    ("model", "broken", "steps"),
    [
        (DeletesWhatIsLive, SPLIT, 4),
        (DeletesWhatIsLive, RECOVERS, 5),
        (TruncatesTooEarly, SPLIT, 3),
        (TakesTheJournalAsItIs, READS, 5),
        (ForgetsTheJournal, READS, 3),
        (KeepsWhatWasAppended, READS, 3),
        (AppendsInOtherOrder, SPLIT, 5),
        (LosesARecord, TORN, 5),
        (WritesItAllAgain, SAME, 5),
        (KeepsItsMemory, DOWN, 2),
    ],
)
def test_each_step_is_needed(model: type[Model], broken: str, steps: int) -> None:
    found = explored(model, SCOPE, broken)
    assert found.violation is not None
    assert found.violation.invariant == broken
    assert len(found.violation.trace) - 1 == steps


def test_records_are_what_is_written_at_once() -> None:
    assert set("".join(FILE + JOURNAL)) == set(RECORDS)


PROMISES = {FLUSHED, FLUSH_ENDS, RECOVERED, DELETED, TORN_ENDS}


def kept_by(model: type[Model]) -> set[str]:
    """Return the liveness properties that a model keeps, and those checked."""
    scope = Scope({Position: 1, Segment: 1}, range(-1, 2))
    return {each.name for each in check(trace(model), scope) if each.kept and each.asked}


def test_promises_about_the_end_are_kept_in_a_small_scope() -> None:
    assert kept_by(PagingIndex) == PROMISES


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (NeverFlushes, FLUSHED),
        (NeverTruncates, FLUSHED),
        (ForgetsWhatIsFlushed, FLUSH_ENDS),
        (KeepsFiles, DELETED),
        (StaysDown, RECOVERED),
        (KeepsWhatWasTorn, TORN_ENDS),
    ],
)
def test_each_step_is_needed_for_what_comes_about(model: type[Model], broken: str) -> None:
    assert broken not in kept_by(model)
    [progress] = [each for each in trace(model).leads_to if each.name == broken]
    assert prove_leads_to(trace(model), progress).outcome == "refuted"
