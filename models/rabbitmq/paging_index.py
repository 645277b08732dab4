"""The index of a paging queue: segments, journal, and recovery from a crash in between.

Sources: later notes on RabbitMQ's queue index (2.8.2 to 3.11), with the tables of
`paging_index_tables`. What is done to a position goes to the journal, on disk and in memory. A
flush takes one segment after the other: where nothing in it is live its file is deleted, else what
the journal has of it is appended, but for what came and went within the journal. Only then the
journal is truncated. So after a crash in between, the same may be in both, or in the journal alone
though its segment has gone; and of what was being appended, a part may be there: that it reaches
the disk is a step of its own, record by record. Recovery takes from the journal what the file has,
and the index is what it was.

Each position is looked at alone: that what is torn is a prefix of a segment's records is weakened
here to a prefix of each position's. That nothing written to the journal is lost is assumed, since
nothing here is promised of what was not synced: that is `paging_confirms`. So is the order in which
a queue writes: `paging_places`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from brokerproof.models.language import (
    FALSE,
    Bool,
    Enumeration,
    Family,
    Fixed,
    Int,
    Map,
    Model,
    action,
    forall,
    implies,
    initial,
    invariant,
    ite,
    leads_to,
    require,
)
from brokerproof.models.language.core.terms import integer
from brokerproof.models.qpid.threads.equivalent_mutants import by_name
from brokerproof.models.rabbitmq.equivalent_mutants import PAGING_INDEX
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
    """What was written of a position: publish, deliver, acknowledge, or a part of these."""

    NONE: ClassVar[Ops]
    P: ClassVar[Ops]
    PD: ClassVar[Ops]
    PDA: ClassVar[Ops]
    D: ClassVar[Ops]
    DA: ClassVar[Ops]
    A: ClassVar[Ops]


class Phase(Enumeration):
    """What the index does."""

    RUNS: ClassVar[Phase]
    FLUSHES: ClassVar[Phase]
    IS_DOWN: ClassVar[Phase]


class Index(Enumeration):
    """Which index it is: there is one."""

    IT: ClassVar[Index]


def named(written: str) -> Ops:
    """Return what is written as a value of the model."""
    found = getattr(Ops, written.upper() or "NONE")
    assert isinstance(found, Ops)
    return found


class PagingIndex(Model):
    """Positions whose entries are in files, in a journal, or in both."""

    harmless: ClassVar[Mapping[str, str]] = by_name(PAGING_INDEX)

    with_journal: ClassVar[Mapping[tuple[str, str], tuple[str, int]]] = SEGMENT_WITH_JOURNAL
    without_segment: ClassVar[Mapping[tuple[str, str], tuple[str, int]]] = JOURNAL_WITHOUT_SEGMENT

    segment: Fixed[Position, Segment]

    done: Map[Position, Ops]
    filed: Map[Position, Ops]
    journal: Map[Position, Ops]
    in_ram: Map[Position, Ops]
    torn: Map[Position, Ops]
    flushed: Map[Segment, Bool]
    phase: Map[Index, Phase]

    @initial
    def empty(self) -> None:
        """Nothing has been written."""
        for ops in (self.done, self.filed, self.journal, self.in_ram, self.torn):
            ops.fill(Ops.NONE)
        self.flushed.fill(False)
        self.phase.fill(Phase.RUNS)

    # The words.

    def is_phase(self, phase: Phase) -> Bool:
        """Whether the index does that."""
        return self.phase[Index.IT] == phase

    def read(self, filed: Ops, journal: Ops) -> Ops:
        """Return what is live of file and journal, by the table."""
        found = Ops.NONE
        for (in_file, in_journal), (live, _) in self.with_journal.items():
            here = (filed == named(in_file)) & (journal == named(in_journal))
            found = ite(here, named(live), found)
        return found

    def has_row(self, rows: Mapping[tuple[str, str], object], one: Ops, other: Ops) -> Bool:
        """Whether a table has a row for the two."""
        found = FALSE
        for left, right in rows:
            found = found | ((one == named(left)) & (other == named(right)))
        return found

    def left_of(self, journal: Ops, filed: Ops) -> Ops:
        """Return what is left of the journal without what the file has, by the table."""
        found = Ops.NONE
        for (in_journal, in_file), (left, _) in self.without_segment.items():
            here = (journal == named(in_journal)) & (filed == named(in_file))
            found = ite(here, named(left), found)
        return found

    def twice(self, journal: Ops, filed: Ops) -> Int:
        """Return how many are counted twice, by the table."""
        found = integer(0)
        for (in_journal, in_file), (_, twice) in self.without_segment.items():
            here = (journal == named(in_journal)) & (filed == named(in_file))
            found = ite(here, integer(twice), found)
        return found

    def counted(self, ops: Ops) -> Int:
        """Return what is counted of it: one for its publish, one less for its acknowledgement."""
        found = integer(0)
        for written in JOURNAL:
            found = ite(ops == named(written), integer(("P" in written) - ("a" in written)), found)
        return found

    def joined(
        self,
        first: Ops,
        second: Ops,
        known: tuple[str, ...] = FILE,
        parts: tuple[str, ...] = JOURNAL,
    ) -> Ops:
        """Return what is written where a part follows the first, of what can be there."""
        found = first
        for written in known:
            for more in parts:
                if more and written + more in known:
                    here = (first == named(written)) & (second == named(more))
                    found = ite(here, named(written + more), found)
        return found

    def first_of(self, ops: Ops) -> Ops:
        """Return the first record alone: deliver and acknowledge are records of their own."""
        return ite(ops == Ops.PD, Ops.P, ite(ops == Ops.DA, Ops.D, ops))

    def rest_of(self, ops: Ops) -> Ops:
        """Return what follows the first record."""
        return ite(ops == Ops.PD, Ops.D, ite(ops == Ops.DA, Ops.A, Ops.NONE))

    def live(self, p: Position) -> Ops:
        """Return what there should be of a position: nothing, once it is acknowledged."""
        return ite(self.done[p] == Ops.PDA, Ops.NONE, self.done[p])

    def appended(self, p: Position) -> Ops:
        """Return what a flush appends: nothing of what came and went within the journal."""
        return ite(self.in_ram[p] == Ops.PDA, Ops.NONE, self.in_ram[p])

    # What the queue does.

    @action
    def publish(self, p: Position) -> None:
        """A message comes."""
        require(self.is_phase(Phase.RUNS) & (self.done[p] == Ops.NONE))
        self._writes(p, Ops.P)

    @action
    def deliver(self, p: Position) -> None:
        """It is fetched."""
        require(self.is_phase(Phase.RUNS) & (self.done[p] == Ops.P))
        self._writes(p, Ops.D)

    @action
    def acknowledge(self, p: Position) -> None:
        """It is done with."""
        require(self.is_phase(Phase.RUNS) & (self.done[p] == Ops.PD))
        self._writes(p, Ops.A)

    def _writes(self, p: Position, ops: Ops) -> None:
        self.done[p] = self.joined(self.done[p], ops)
        self.journal[p] = self.joined(self.journal[p], ops, JOURNAL)
        self.in_ram[p] = self.joined(self.in_ram[p], ops, JOURNAL)

    # Flushing.

    @action
    def begin_flush(self) -> None:
        """The journal has become long."""
        require(self.is_phase(Phase.RUNS))
        self.flushed.fill(False)
        self.phase[Index.IT] = Phase.FLUSHES

    @action
    def append(self, s: Segment) -> None:
        """Something in the segment is live: what the journal has of it goes to the file."""
        require(self.is_phase(Phase.FLUSHES) & ~self.flushed[s])
        require(~self.is_dead(s))
        self.filed = self.filed.map(
            lambda p, old: ite(self.segment[p] == s, self.joined(old, self.appended(p)), old)
        )
        self._has_flushed(s)

    @action
    def delete(self, s: Segment) -> None:
        """Nothing in the segment is live: its file goes."""
        require(self.is_phase(Phase.FLUSHES) & ~self.flushed[s])
        require(self.is_dead(s))
        self.filed = self.filed.map(lambda p, old: ite(self.segment[p] == s, Ops.NONE, old))
        self._has_flushed(s)

    def is_dead(self, s: Segment) -> Bool:
        """Whether no entry of the segment is live: none is counted."""
        return forall(
            Position,
            lambda p: implies(
                self.segment[p] == s, self.read(self.filed[p], self.in_ram[p]) == Ops.NONE
            ),
        )

    def _has_flushed(self, s: Segment) -> None:
        self.in_ram = self.in_ram.map(lambda p, old: ite(self.segment[p] == s, Ops.NONE, old))
        self.flushed[s] = True

    @action
    def end_flush(self) -> None:
        """All segments are done: the journal is truncated."""
        require(self.is_phase(Phase.FLUSHES))
        require(forall(Position, lambda p: self.flushed[self.segment[p]]))
        self.journal.fill(Ops.NONE)
        self.phase[Index.IT] = Phase.RUNS

    # Crashing.

    @action
    def crash(self) -> None:
        """The broker stops between two steps."""
        require(~self.is_phase(Phase.IS_DOWN))
        self._stops()

    @action
    def crash_in_append(self, s: Segment) -> None:
        """The broker stops while a segment is appended to: some of that may reach the disk."""
        require(self.is_phase(Phase.FLUSHES) & ~self.flushed[s])
        require(~self.is_dead(s))
        self.torn = self.torn.map(lambda p, old: ite(self.segment[p] == s, self.appended(p), old))
        self._stops()

    def _stops(self) -> None:
        self.in_ram.fill(Ops.NONE)
        self.phase[Index.IT] = Phase.IS_DOWN

    @action
    def reach(self, p: Position) -> None:
        """The next record of what was being appended of a position has reached the disk."""
        require(self.is_phase(Phase.IS_DOWN) & (self.torn[p] != Ops.NONE))
        self.filed[p] = self.joined(self.filed[p], self.first_of(self.torn[p]), parts=RECORDS)
        self.torn[p] = self.rest_of(self.torn[p])

    @action
    def recover(self) -> None:
        """The journal is read, and what files have is taken from it; a flush comes next."""
        require(self.is_phase(Phase.IS_DOWN))
        self.in_ram = self.in_ram.map(lambda p, _: self.left_of(self.journal[p], self.filed[p]))
        self.torn.fill(Ops.NONE)
        self.flushed.fill(False)
        self.phase[Index.IT] = Phase.FLUSHES

    # What holds.

    @invariant(READS)
    def reads_what_was_done(self) -> Bool:
        """File and journal in memory are what is live, and say what was delivered (Q4, Q5)."""
        return implies(
            ~self.is_phase(Phase.IS_DOWN),
            forall(
                Position,
                lambda p: (
                    (self.read(self.filed[p], self.in_ram[p]) == self.live(p))
                    & self.has_row(self.with_journal, self.filed[p], self.in_ram[p])
                ),
            ),
        )

    @invariant(RECOVERS)
    def recovery_is_exact(self) -> Bool:
        """Whenever the broker stops, the index will be what it was (Q4)."""
        return implies(
            self.is_phase(Phase.IS_DOWN),
            forall(
                Position,
                lambda p: (
                    self.read(self.filed[p], self.left_of(self.journal[p], self.filed[p]))
                    == self.live(p)
                ),
            ),
        )

    @invariant(ROWS)
    def recovery_has_a_row(self) -> Bool:
        """Recovery meets nothing that its table does not know."""
        return implies(
            self.is_phase(Phase.IS_DOWN),
            forall(
                Position,
                lambda p: (
                    (self.journal[p] == Ops.NONE)
                    | self.has_row(self.without_segment, self.journal[p], self.filed[p])
                ),
            ),
        )

    @invariant(COUNT)
    def count_is_exact(self) -> Bool:
        """What journal and file count, less what both do, is one where something is live (Q2)."""
        return implies(
            self.is_phase(Phase.IS_DOWN),
            forall(
                Position,
                lambda p: (
                    self.counted(self.journal[p])
                    + self.counted(self.filed[p])
                    - self.twice(self.journal[p], self.filed[p])
                    == self.counted(self.live(p))
                ),
            ),
        )

    @invariant(SPLIT)
    def file_and_journal_have_it_all(self) -> Bool:
        """A file has the first part of what was done, the journal the last (Q1), and none lacks.

        But of what is acknowledged, the file may have nothing: it was deleted, or never written.
        """

        def holds(p: Position) -> Bool:
            found = FALSE
            for done in FILE:
                for filed in FILE:
                    for journal in JOURNAL:
                        whole = set(filed) | set(journal) == set(done) or (done, filed) == (
                            "Pda",
                            "",
                        )
                        if whole and done.startswith(filed) and done.endswith(journal):
                            found = found | (
                                (self.done[p] == named(done))
                                & (self.filed[p] == named(filed))
                                & (self.journal[p] == named(journal))
                            )
            return found

        return forall(Position, holds)

    @invariant(MEMORY)
    def file_and_memory_have_it_all(self) -> Bool:
        """The journal in memory begins where the file ends; of what is flushed, it has nothing."""

        def holds(p: Position) -> Bool:
            whole = self.joined(self.filed[p], self.in_ram[p]) == self.done[p]
            gone = (self.filed[p] == Ops.NONE) & (self.in_ram[p] == Ops.NONE)
            follows = self.has_row(self.with_journal, self.filed[p], self.in_ram[p])
            flushed = self.is_phase(Phase.FLUSHES) & self.flushed[self.segment[p]]
            return (
                follows
                & (whole | ((self.done[p] == Ops.PDA) & gone))
                & implies(flushed, self.in_ram[p] == Ops.NONE)
            )

        return implies(~self.is_phase(Phase.IS_DOWN), forall(Position, holds))

    @invariant(SAME)
    def memory_has_the_journal(self) -> Bool:
        """What is written goes to both, and a flush empties both."""
        return implies(
            self.is_phase(Phase.RUNS),
            forall(Position, lambda p: self.in_ram[p] == self.journal[p]),
        )

    @invariant(DOWN)
    def nothing_in_memory(self) -> Bool:
        """Memory is lost with the broker."""
        return implies(
            self.is_phase(Phase.IS_DOWN), forall(Position, lambda p: self.in_ram[p] == Ops.NONE)
        )

    @invariant(TORN)
    def torn_follows_the_file(self) -> Bool:
        """What may still reach the disk is what the file lacked when the broker stopped."""

        def follows(p: Position) -> Bool:
            return (
                self.is_phase(Phase.IS_DOWN)
                & (self.torn[p] != Ops.PDA)
                & self.has_row(self.with_journal, self.filed[p], self.torn[p])
                & (self.joined(self.filed[p], self.torn[p]) == self.done[p])
            )

        return forall(Position, lambda p: implies(self.torn[p] != Ops.NONE, follows(p)))

    # What comes about.

    @leads_to(FLUSHED, fair=("begin_flush", "append", "delete", "end_flush"))
    def written_is_flushed(self, p: Position) -> tuple[Bool, Bool]:
        """What is in the journal leaves it: it is flushed, if the broker does not stop before."""
        gone = (self.journal[p] == Ops.NONE) | self.is_phase(Phase.IS_DOWN)
        return self.journal[p] != Ops.NONE, gone

    @leads_to(TORN_ENDS, fair=("reach", "recover"))
    def torn_ends(self, p: Position) -> tuple[Bool, Bool]:
        """What was being appended has reached the disk, or never does."""
        return self.torn[p] != Ops.NONE, self.torn[p] == Ops.NONE

    @leads_to(FLUSH_ENDS, fair=("append", "delete", "end_flush"))
    def flush_ends(self) -> tuple[Bool, Bool]:
        """A flush comes to an end, if the broker does not stop before."""
        return self.is_phase(Phase.FLUSHES), ~self.is_phase(Phase.FLUSHES)

    @leads_to(RECOVERED, fair=("recover",))
    def is_recovered(self) -> tuple[Bool, Bool]:
        """A broker that has stopped recovers."""
        return self.is_phase(Phase.IS_DOWN), ~self.is_phase(Phase.IS_DOWN)

    @leads_to(DELETED, fair=("begin_flush", "append", "delete", "end_flush"))
    def dead_is_deleted(self, s: Segment) -> tuple[Bool, Bool]:
        """The file of a segment goes when all of it is acknowledged (I13)."""

        def every(ops: Map[Position, Ops], value: Ops) -> Bool:
            return forall(Position, lambda p: implies(self.segment[p] == s, ops[p] == value))

        return every(self.done, Ops.PDA), every(self.filed, Ops.NONE) | self.is_phase(Phase.IS_DOWN)
