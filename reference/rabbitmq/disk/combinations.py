"""The state of one place of a segment: by its file, by the journal, and by both together.

Owns the states of a place, the order of its operations, and the two tables that combine file and
journal. Does not know files and records.

Three operations come to a place, in this order: *publish*, *deliver*, *acknowledge*. A state is the
set of those known. The tables are the release's. They assume that the segment's file is never ahead
of the journal, which is why a flush syncs the journal first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

NOTHING: Final = 0
P: Final = 1
D: Final = 2
A: Final = 4
PD: Final = P | D
DA: Final = D | A
PDA: Final = P | D | A

NAMES: Final = {
    NOTHING: "nothing",
    P: "publish",
    D: "deliver",
    A: "acknowledge",
    PD: "publish, deliver",
    DA: "deliver, acknowledge",
    PDA: "publish, deliver, acknowledge",
}


MARKS: Final = {P: 0, D: 1, A: 1, PD: 1, DA: 2, PDA: 2}
"""The number of marks that a segment's file gets for a state of the journal."""


class OrderBroken(AssertionError):
    """An operation or a recovered state that no legal order of operations gives (Q1)."""


class After(dict[int, int]):
    """The state after an operation, by the state before; `OrderBroken` if the order forbids it."""

    def __missing__(self, before: int) -> int:
        raise OrderBroken(f"an operation out of order; known before it: {NAMES[before]}")


AFTER_PUBLISH: Final = After({NOTHING: P})
AFTER_DELIVER: Final = After({NOTHING: D, P: PD})
AFTER_ACKNOWLEDGE: Final = After({NOTHING: A, D: DA, PD: PDA})
AFTER_MARK: Final = After({P: PD, PD: PDA})
"""In a segment's file the first mark of a place is its delivery, the second its acknowledgement."""


class Sum(NamedTuple):
    """The combined state of file and journal, and the journal's change of the live count."""

    state: int
    live: int


class Difference(NamedTuple):
    """The journal's state beyond the file, and the live count that both have (`duplicate`)."""

    journal: int
    duplicate: int


class Sums(dict[tuple[int, int], Sum]):
    """Sums by (file, journal)."""

    def __missing__(self, row: tuple[int, int]) -> Sum:
        raise OrderBroken(f"file: {NAMES[row[0]]}; journal: {NAMES[row[1]]}: they do not add up")


class Differences(dict[tuple[int, int], Difference]):
    """Differences by (journal, file)."""

    def __missing__(self, row: tuple[int, int]) -> Difference:
        raise OrderBroken(
            f"journal: {NAMES[row[0]]}; file: {NAMES[row[1]]}: one is not the other's"
        )


FILE_PLUS_JOURNAL: Final = Sums(
    {
        (NOTHING, P): Sum(P, +1),
        (NOTHING, PD): Sum(PD, +1),
        (NOTHING, PDA): Sum(NOTHING, 0),
        (P, D): Sum(PD, 0),
        (P, DA): Sum(NOTHING, -1),
        (PD, A): Sum(NOTHING, -1),
    }
)
"""A place that is published and acknowledged is as if it had never been."""

JOURNAL_MINUS_FILE: Final = Differences(
    {
        (P, P): Difference(NOTHING, +1),
        (PD, PD): Difference(NOTHING, +1),
        (PDA, PDA): Difference(NOTHING, 0),
        (P, NOTHING): Difference(P, 0),
        (PD, NOTHING): Difference(PD, 0),
        (PDA, NOTHING): Difference(PDA, 0),
        (PD, P): Difference(D, +1),
        (PDA, P): Difference(DA, +1),
        (PDA, PD): Difference(A, +1),
        (D, P): Difference(D, 0),
        (D, PD): Difference(NOTHING, 0),
        (A, PD): Difference(A, 0),
        (A, PDA): Difference(NOTHING, -1),
        (DA, P): Difference(DA, 0),
        (DA, PD): Difference(A, 0),
        (DA, PDA): Difference(NOTHING, -1),
        # A flush had deleted the file when the power went: the whole segment was acknowledged.
        (A, NOTHING): Difference(NOTHING, -1),
        (DA, NOTHING): Difference(NOTHING, -1),
        # The delivery's mark was lost (releases before 3.11.17): it is added.
        (A, P): Difference(DA, 0),
    }
)
"""After a crash during a flush the same operation may be in both.

The live count is the publishes less the acknowledgements of both, less `duplicate`. The release has
0 for the two rows of a deleted file, and counts again afterwards; here the count must hold.
"""
