"""The faults of ActiveMQ's queue that the analysis's fix cures: each with the fix and without.

The fix ("mend") is that a read stops where there is no room. A row's first column has the failures
of its fault with the fix, and its second those without. `python
tests/models/activemq/test_cursor_ablation.py` prints the table, which stands in the page on proofs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from brokerproof.models.activemq.cursor_defects import (
    RELEASE_5_1,
    CallsOldDuplicate,
    ClearsWhenTheLastLeaves,
    CountsDuplicates,
    GivesToConsumersThatLeft,
    LeavesThePosition,
    NeverClears,
    PassesWithoutRoom,
    SchedulesNoOther,
    TrustsTheAudit,
    of,
)
from brokerproof.models.activemq.cursor_invariants import APART, FRESH, IN_TURN, OWNED, PLACED
from brokerproof.models.activemq.cursor_progress import (
    IS_GIVEN,
    IS_READ,
    Channel,
    Consumer,
    CursorProgress,
    Message,
)
from brokerproof.models.activemq.cursor_room import CursorRoom, window
from brokerproof.models.language.core.model import trace
from brokerproof.models.language.core.scope import Scope
from brokerproof.models.language.explore.explorer import explore
from brokerproof.models.language.explore.liveness import check

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "proofs.md"

HARMS = {
    PLACED: "passed over",
    FRESH: "lost for good",
    APART: "paged in twice",
    IN_TURN: "out of turn",
    OWNED: "with no consumer",
}
"""The name of an invariant's loss in the table."""

STAYS = "not given in the end"

Faults = tuple[type[CursorRoom], ...]

ROWS: dict[str, Faults] = {
    "none": (),
    "what is below the window is a duplicate (D1)": (CallsOldDuplicate,),
    "the same, where nothing drops the batch": (NeverClears, CallsOldDuplicate),
    "given to a consumer that has left (D3)": (GivesToConsumersThatLeft,),
    "the batch is dropped when the last consumer leaves": (ClearsWhenTheLastLeaves,),
    "what is in memory is not looked up (M-23)": (TrustsTheAudit,),
    "the cache ends, and sets no position (AMQ-2020)": (LeavesThePosition,),
    "duplicates count (M-05)": (CountsDuplicates,),
    "a full batch schedules no other pass (M-43)": (SchedulesNoOther,),
    "both of these": (CountsDuplicates, SchedulesNoOther),
    "all of them": tuple(each for each in RELEASE_5_1 if each is not PassesWithoutRoom),
}
"""The faults of release 5.1.0 but the analysed one, by their names in the table."""


def scope(messages: int, page: int = 2, consumers: int = 1) -> Scope:
    """Return room for two messages, and an audit of one word of two bits."""
    fixed: dict[str, int | tuple[int, ...]] = {
        "capacity": 2,
        "page": page,
        "slides": window(messages, words=1, bits=2),
        "channel": tuple(range(consumers)),
    }
    return Scope({Message: messages, Consumer: consumers, Channel: consumers}, range(-8, 9), fixed)


IN_THE_END = (scope(3, page=1), scope(3, page=2), scope(2, consumers=2))
"""The queue for liveness: a consumer that has left stays away beside another one."""


def harms_of(
    faults: Faults, messages: int = 4, in_the_end: tuple[Scope, ...] = IN_THE_END
) -> dict[str, int]:
    """Return the failures of a queue with these faults, with the fewest steps to each.

    A message not given in the end has no number of steps: it is a loop.
    """
    system = trace(of(*faults, among=CursorProgress))
    found = {
        HARMS[broken]: len(exploration.violation.trace) - 1
        for broken in HARMS
        for exploration in (explore(system, scope(messages), invariants=[broken]),)
        if exploration.violation
    }
    kept = [
        promise.kept
        for few in in_the_end
        for promise in check(system, few, states_max=300_000)
        if promise.name in (IS_GIVEN, IS_READ)
    ]
    return found if all(kept) else found | {STAYS: 0}


def cell(faults: Faults) -> str:
    """Return the failures of a queue with these faults, as a cell of the table."""
    shown = [f"{what} {steps}" if steps else what for what, steps in harms_of(faults).items()]
    return ", ".join(shown) or "nothing"


def table() -> str:
    """Return the table as the page has it."""
    lines = [
        "| fault | with the mend: it alone | without: beside a position that passes without room |",
        "| --- | --- | --- |",
    ]
    for name, faults in ROWS.items():
        lines.append(f"| {name} | {cell(faults)} | {cell((PassesWithoutRoom, *faults))} |")
    return "\n".join(lines) + "\n"


def quick(*faults: type[CursorRoom]) -> set[str]:
    """Return the failures found in small scopes."""
    return set(harms_of(faults, 3, (scope(2, page=1), scope(2, consumers=2))))


@pytest.mark.thorough
def test_the_mend_cures_the_fault_that_was_analysed_alone() -> None:
    assert quick() == set()
    assert "passed over" in quick(PassesWithoutRoom)


def test_the_mend_does_not_cure_the_window() -> None:
    """Messages below the window are lost in the analysis's fixed queue, whatever the position."""
    assert {"lost for good", STAYS} <= quick(CallsOldDuplicate)
    assert {"lost for good", STAYS} <= quick(PassesWithoutRoom, CallsOldDuplicate)


@pytest.mark.thorough
def test_the_table_of_the_page_is_what_is_found() -> None:
    assert table() in PAGE.read_text()


if __name__ == "__main__":
    sys.stdout.write(table())
