"""The index of a paging queue: segments, journal, and recovery from a crash in between.

Sources: later notes on RabbitMQ's queue index (2.8.2 to 3.11), with the tables of
`paging_index_tables`. Operations go to the journal, on disk and in memory. A flush handles one
segment after the other: it deletes the file of a segment without live entries, and otherwise
appends the journal's operations, except for messages that came and went within it. Then it
truncates the journal. A crash may leave entries in both, or in the journal without the file. Of an
interrupted append, each record reaches the disk in a step of its own, or not at all. Recovery
subtracts the files' content from the journal, and restores the index.

Each position is modelled alone, so a torn append leaves a prefix for each position, not of the
whole segment. The journal is assumed to lose nothing; `paging_syncs` covers unsynced data,
`paging_places` the order of writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.language import (
    TRUE,
    Bool,
    Enumeration,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    Value,
    action,
    elements,
    exists,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    ranked,
    require,
)
from brokerproof.models.language.core.terms import conjunction, disjunction, integer
from brokerproof.models.rabbitmq.paging_index_tables import (
    FILE,
    JOURNAL,
    JOURNAL_WITHOUT_SEGMENT,
    RECORDS,
    SEGMENT_WITH_JOURNAL,
)

READS = "the-index-reads-what-was-done"
RECOVERS = "recovery-is-exact"
ROWS = "each-recovery-has-a-row"
COUNT = "the-count-of-what-is-live-is-exact"
SPLIT = "file-and-journal-have-it-all"
MEMORY = "file-and-memory-have-it-all"
TORN_ENDS = "what-was-being-appended-is-there-or-is-not"
SAME = "while-it-runs-memory-has-the-journal"
DOWN = "what-is-down-has-nothing-in-memory"
TORN = "what-was-being-appended-follows-the-file"
FLUSHED = "what-was-written-is-flushed"
FLUSH_ENDS = "a-flush-ends"
RECOVERED = "what-is-down-recovers"
DELETED = "what-is-done-with-is-deleted"


class Position(Family):
    """A position in the queue, and the message that has it."""


class Segment(Family):
    """Positions whose entries are in one file."""


class Ops(Enumeration):
    """The operations written of a position: publish, deliver, acknowledge, or a part of these."""

    NONE: ClassVar[Ops]
    P: ClassVar[Ops]
    PD: ClassVar[Ops]
    PDA: ClassVar[Ops]
    D: ClassVar[Ops]
    DA: ClassVar[Ops]
    A: ClassVar[Ops]


class Phase(Enumeration):
    """What the index does at the moment."""

    RUNS: ClassVar[Phase]
    FLUSHES: ClassVar[Phase]
    IS_DOWN: ClassVar[Phase]


def named(written: str) -> Ops:
    """Return the model's value for a text of the tables."""
    found = getattr(Ops, written.upper() or "NONE")
    assert isinstance(found, Ops)
    return found


def is_split(done: str, filed: str, journal: str) -> bool:
    """Return whether a file has the first of the operations done, and the journal the last ones."""
    whole = set(filed) | set(journal) == set(done) or (done, filed) == ("Pda", "")
    return whole and done.startswith(filed) and done.endswith(journal)


def counted(ops: Ops) -> Int:
    """Return the count of an entry: 1 for its publish, less 1 for its acknowledgement."""
    found = integer(0)
    for written in JOURNAL:
        found = ite(ops == named(written), integer(("P" in written) - ("a" in written)), found)
    return found


def joined(
    first: Ops, second: Ops, known: tuple[str, ...] = FILE, parts: tuple[str, ...] = JOURNAL
) -> Ops:
    """Return the operations of `first` followed by `second`, if that is a known sequence."""
    found = first
    for written in known:
        for more in parts:
            if more and written + more in known:
                here = (first == named(written)) & (second == named(more))
                found = ite(here, named(written + more), found)
    return found


def first_of(ops: Ops) -> Ops:
    """Return the first record; deliver and acknowledge are records of their own."""
    return ite(ops == Ops.PD, Ops.P, ite(ops == Ops.DA, Ops.D, ops))


def rest_of(ops: Ops) -> Ops:
    """Return the operations after the first record."""
    return ite(ops == Ops.PD, Ops.D, ite(ops == Ops.DA, Ops.A, Ops.NONE))


class PagingIndex(Model):
    """Positions whose entries are in files, in a journal, or in both."""

    with_journal: ClassVar[Mapping[tuple[str, str], tuple[str, int]]] = SEGMENT_WITH_JOURNAL
    without_segment: ClassVar[Mapping[tuple[str, str], tuple[str, int]]] = JOURNAL_WITHOUT_SEGMENT

    segment: Fixed[Position, Segment]

    done: Map[Position, Ops]
    filed: Map[Position, Ops]
    journal: Map[Position, Ops]
    in_ram: Map[Position, Ops]
    torn: Map[Position, Ops]
    flushed: Map[Segment, Bool]
    phase: Value[Phase]

    @initial
    def empty(self) -> None:
        """No operation has been written."""
        for ops in (self.done, self.filed, self.journal, self.in_ram, self.torn):
            ops.fill(Ops.NONE)
        self.flushed.fill(False)
        self.phase = Phase.RUNS

    # Terms.

    def read(self, filed: Ops, journal: Ops) -> Ops:
        """Return the live operations of file and journal, by the table."""
        found = Ops.NONE
        for (in_file, in_journal), (live, _) in self.with_journal.items():
            here = (filed == named(in_file)) & (journal == named(in_journal))
            found = ite(here, named(live), found)
        return found

    def has_row(self, rows: Mapping[tuple[str, str], object], one: Ops, other: Ops) -> Bool:
        """Whether a table has a row for the two."""
        return disjunction((one == named(left)) & (other == named(right)) for left, right in rows)

    def left_of(self, journal: Ops, filed: Ops) -> Ops:
        """Return the journal without the operations in the file, by the table."""
        found = Ops.NONE
        for (in_journal, in_file), (left, _) in self.without_segment.items():
            here = (journal == named(in_journal)) & (filed == named(in_file))
            found = ite(here, named(left), found)
        return found

    def twice(self, journal: Ops, filed: Ops) -> Int:
        """Return how many entries are counted twice, by the table."""
        found = integer(0)
        for (in_journal, in_file), (_, twice) in self.without_segment.items():
            here = (journal == named(in_journal)) & (filed == named(in_file))
            found = ite(here, integer(twice), found)
        return found

    def live(self, p: Position) -> Ops:
        """Return the live operations of a position: none once it is acknowledged."""
        return ite(self.done[p] == Ops.PDA, Ops.NONE, self.done[p])

    def appended(self, p: Position) -> Ops:
        """Return what a flush appends: nothing for PDA, which came and went within the journal."""
        return ite(self.in_ram[p] == Ops.PDA, Ops.NONE, self.in_ram[p])

    # The operations of the queue.

    @action
    def publish(self, p: Position) -> None:
        """A message is published."""
        require((self.phase == Phase.RUNS) & (self.done[p] == Ops.NONE))
        self._writes(p, Ops.P)

    @action
    def deliver(self, p: Position) -> None:
        """A message is fetched."""
        require((self.phase == Phase.RUNS) & (self.done[p] == Ops.P))
        self._writes(p, Ops.D)

    @action
    def acknowledge(self, p: Position) -> None:
        """A message is acknowledged."""
        require((self.phase == Phase.RUNS) & (self.done[p] == Ops.PD))
        self._writes(p, Ops.A)

    def _writes(self, p: Position, ops: Ops) -> None:
        self.done[p] = joined(self.done[p], ops)
        self.journal[p] = joined(self.journal[p], ops, JOURNAL)
        self.in_ram[p] = joined(self.in_ram[p], ops, JOURNAL)

    # Flushes.

    @action
    def begin_flush(self) -> None:
        """A flush begins, because the journal has become long."""
        require(self.phase == Phase.RUNS)
        self.flushed.fill(False)
        self.phase = Phase.FLUSHES

    @action
    def append(self, s: Segment) -> None:
        """The segment has a live entry: the journal's entries are appended to the file."""
        require((self.phase == Phase.FLUSHES) & ~self.flushed[s])
        require(~self.is_dead(s))
        self.filed = self.filed.map(
            lambda p, old: ite(self.segment[p] == s, joined(old, self.appended(p)), old)
        )
        self._has_flushed(s)

    @action
    def delete(self, s: Segment) -> None:
        """The segment has no live entry: its file is deleted."""
        require((self.phase == Phase.FLUSHES) & ~self.flushed[s] & self.is_used(s))
        require(self.is_dead(s))
        self.filed = self.filed.map(lambda p, old: ite(self.segment[p] == s, Ops.NONE, old))
        self._has_flushed(s)

    def is_dead(self, s: Segment) -> Bool:
        """Whether no entry of the segment is live."""
        return forall(
            Position,
            lambda p: implies(
                self.segment[p] == s, self.read(self.filed[p], self.in_ram[p]) == Ops.NONE
            ),
        )

    def is_used(self, s: Segment) -> Bool:
        """Whether an operation was written of a position of the segment."""
        return exists(Position, lambda p: (self.segment[p] == s) & (self.done[p] != Ops.NONE))

    def _has_flushed(self, s: Segment) -> None:
        self.in_ram = self.in_ram.map(lambda p, old: ite(self.segment[p] == s, Ops.NONE, old))
        self.flushed[s] = True

    @action
    def end_flush(self) -> None:
        """All segments that were written to are flushed: the journal is truncated."""
        require(self.phase == Phase.FLUSHES)
        require(forall(Segment, lambda s: implies(self.is_used(s), self.flushed[s])))
        self.journal.fill(Ops.NONE)
        self.phase = Phase.RUNS

    # Crashes.

    @action
    def crash(self) -> None:
        """The broker stops between two steps."""
        require(self.phase != Phase.IS_DOWN)
        self._stops()

    @action
    def crash_in_append(self, s: Segment) -> None:
        """The broker stops during an append, whose records may reach the disk in part."""
        require((self.phase == Phase.FLUSHES) & ~self.flushed[s])
        require(~self.is_dead(s))
        self.torn = self.torn.map(lambda p, old: ite(self.segment[p] == s, self.appended(p), old))
        self._stops()

    def _stops(self) -> None:
        self.in_ram.fill(Ops.NONE)
        self.phase = Phase.IS_DOWN

    @action
    def reach(self, p: Position) -> None:
        """The next record of an interrupted append reaches the disk."""
        require((self.phase == Phase.IS_DOWN) & (self.torn[p] != Ops.NONE))
        self.filed[p] = joined(self.filed[p], first_of(self.torn[p]), parts=RECORDS)
        self.torn[p] = rest_of(self.torn[p])

    @action
    def recover(self) -> None:
        """Recovery reads the journal without the files' content, and begins a flush."""
        require(self.phase == Phase.IS_DOWN)
        self.in_ram = self.in_ram.map(lambda p, _: self.left_of(self.journal[p], self.filed[p]))
        self.torn.fill(Ops.NONE)
        self.flushed.fill(False)
        self.phase = Phase.FLUSHES

    # Invariants.

    @invariant(READS)
    def reads_what_was_done(self, p: Position) -> Bool:
        """File and journal in memory give exactly the live operations (Q4, Q5)."""
        return implies(
            self.phase != Phase.IS_DOWN,
            (self.read(self.filed[p], self.in_ram[p]) == self.live(p))
            & self.has_row(self.with_journal, self.filed[p], self.in_ram[p]),
        )

    @invariant(RECOVERS)
    def recovery_is_exact(self, p: Position) -> Bool:
        """Whenever the broker stops, recovery restores the index exactly (Q4)."""
        left = self.left_of(self.journal[p], self.filed[p])
        is_exact = self.read(self.filed[p], left) == self.live(p)
        return implies(self.phase == Phase.IS_DOWN, is_exact)

    @invariant(ROWS)
    def recovery_has_a_row(self, p: Position) -> Bool:
        """Recovery meets only combinations that its table knows."""
        has_row = self.has_row(self.without_segment, self.journal[p], self.filed[p])
        return implies(self.phase == Phase.IS_DOWN, (self.journal[p] == Ops.NONE) | has_row)

    @invariant(COUNT)
    def count_is_exact(self, p: Position) -> Bool:
        """The counts of journal and file, less double counts, equal the live count (Q2)."""
        both = counted(self.journal[p]) + counted(self.filed[p])
        count = both - self.twice(self.journal[p], self.filed[p])
        return implies(self.phase == Phase.IS_DOWN, count == counted(self.live(p)))

    @invariant(SPLIT)
    def file_and_journal_have_it_all(self, p: Position) -> Bool:
        """The file has a prefix of the operations, the journal a suffix, together all (Q1).

        For an acknowledged message the file may be empty: it was deleted, or never written.
        """
        now = self.done[p], self.filed[p], self.journal[p]
        return disjunction(
            conjunction(ops == named(written) for ops, written in zip(now, row, strict=True))
            for row in itertools.product(FILE, FILE, JOURNAL)
            if is_split(*row)
        )

    @invariant(MEMORY)
    def file_and_memory_have_it_all(self, p: Position) -> Bool:
        """The journal in memory continues the file, and is empty for a flushed segment."""
        whole = joined(self.filed[p], self.in_ram[p]) == self.done[p]
        gone = (self.filed[p] == Ops.NONE) & (self.in_ram[p] == Ops.NONE)
        flushed = (self.phase == Phase.FLUSHES) & self.flushed[self.segment[p]]
        return implies(
            self.phase != Phase.IS_DOWN,
            self.has_row(self.with_journal, self.filed[p], self.in_ram[p])
            & (whole | ((self.done[p] == Ops.PDA) & gone))
            & implies(flushed, self.in_ram[p] == Ops.NONE),
        )

    @invariant(SAME)
    def memory_has_the_journal(self, p: Position) -> Bool:
        """Outside a flush, memory and journal have the same operations."""
        return implies(self.phase == Phase.RUNS, self.in_ram[p] == self.journal[p])

    @invariant(DOWN)
    def nothing_in_memory(self, p: Position) -> Bool:
        """A stopped broker has no operations in memory."""
        return implies(self.phase == Phase.IS_DOWN, self.in_ram[p] == Ops.NONE)

    @invariant(TORN)
    def torn_follows_the_file(self, p: Position) -> Bool:
        """Records of an interrupted append are those that the file lacked at the stop."""
        follows = (
            (self.phase == Phase.IS_DOWN)
            & (self.torn[p] != Ops.PDA)
            & self.has_row(self.with_journal, self.filed[p], self.torn[p])
            & (joined(self.filed[p], self.torn[p]) == self.done[p])
        )
        return implies(self.torn[p] != Ops.NONE, follows)

    # Liveness.

    def ranked_by_flush(self, *before: Bool) -> None:
        """Rank by what is left of a flush: the segments to be flushed, and before it its begin."""
        ranked(
            *before,
            self.phase == Phase.RUNS,
            elements(
                Segment,
                lambda s: (self.phase == Phase.FLUSHES) & self.is_used(s) & ~self.flushed[s],
                within=self.is_used,
            ),
            words="whether the flush has still to begin, then the segments to be flushed",
        )

    @leads_to(FLUSHED, fair=("begin_flush", "append", "delete", "end_flush"))
    def written_is_flushed(self, p: Position) -> tuple[Bool, Bool]:
        """Operations leave the journal by a flush, unless the broker stops before."""
        self.ranked_by_flush()
        gone = (self.journal[p] == Ops.NONE) | (self.phase == Phase.IS_DOWN)
        return self.journal[p] != Ops.NONE, gone

    @leads_to(TORN_ENDS, fair=("reach", "recover"))
    def torn_ends(self, p: Position) -> tuple[Bool, Bool]:
        """The records of an interrupted append reach the disk, or are dropped by recovery."""
        ranked(lowered_by={"recover": lambda: TRUE}, words="the one step that is left")
        return self.torn[p] != Ops.NONE, self.torn[p] == Ops.NONE

    @leads_to(FLUSH_ENDS, fair=("append", "delete", "end_flush"))
    def flush_ends(self) -> tuple[Bool, Bool]:
        """A flush ends, unless the broker stops before."""
        self.ranked_by_flush()
        return self.phase == Phase.FLUSHES, self.phase != Phase.FLUSHES

    @leads_to(RECOVERED, fair=("recover",))
    def is_recovered(self) -> tuple[Bool, Bool]:
        """A broker that has stopped recovers."""
        ranked(words="the one step that is left")
        return self.phase == Phase.IS_DOWN, self.phase != Phase.IS_DOWN

    @leads_to(DELETED, fair=("begin_flush", "append", "delete", "end_flush"))
    def dead_is_deleted(self, s: Segment) -> tuple[Bool, Bool]:
        """A segment's file is deleted after all its messages are acknowledged (I13)."""
        self.ranked_by_flush((self.phase == Phase.FLUSHES) & self.flushed[s])

        def every(ops: Map[Position, Ops], value: Ops) -> Bool:
            return forall(Position, lambda p: implies(self.segment[p] == s, ops[p] == value))

        gone = every(self.filed, Ops.NONE)
        return every(self.done, Ops.PDA), gone | (self.phase == Phase.IS_DOWN)


PagingIndex.equivalent_mutants = """
An acknowledged message has nothing to be read: all of its records may be there, or none.
    append: filed*2; recover: in_ram*6; reach: filed*3; shared: left_of*6
A stopped broker has nothing to lose.
    crash: guard 1*2
Records may reach a file early: recovery still takes them from the journal.
    crash_in_append: guard 1*3, guard 2*9, torn
No record is on its way to the disk, so nothing changes.
    reach: guard 1*3
The last record of an interrupted append, or all that are left, need not reach the disk.
    reach: filed*7, torn*5
A flush or a recovery that is under way at first finds nothing to do.
    initially: flushed*2, phase*3
No message has these records in journal and file: of `recover` alone, the change is none.
    shared: left_of*10, read*5
"""
