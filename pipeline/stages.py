"""The two stages of judging a history: message by message, then queue by queue.

Every engine runs exactly these: in memory on a whole history, or part by part. The first
stage needs all records of each of its messages, the second all rows of each slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.pipeline.intervals.ambiguous import rows_aside, without_ambiguous
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.intervals import Gathered, gathered
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues
from brokerproof.pipeline.intervals.streams import NONE_AMBIGUOUS, Ambiguous
from brokerproof.pipeline.intervals.table import (
    ALWAYS_GONE,
    GETS,
    as_seen,
    interrupted,
    intervals_table,
    waits_of,
)
from brokerproof.pipeline.intervals.traffic import traffic_of
from brokerproof.pipeline.names import NO_ROW, is_one_of, with_numbered_names
from brokerproof.pipeline.readers.rejected_rows import ASIDE
from brokerproof.pipeline.results import ASKED, COVERAGE, SETTLEMENTS, Coverage, added
from brokerproof.pipeline.rules.coverage import Cases
from brokerproof.pipeline.rules.history_rules import BEYOND_GETS, RULES
from brokerproof.pipeline.rules.several_messages import ABOUT_SEVERAL, Columns, judged_by
from brokerproof.pipeline.rules.single_messages import about_single_messages, found_drained, losses
from brokerproof.pipeline.rules.stalls import stalled
from brokerproof.pipeline.rules.unanswered_gets import beyond_gets
from brokerproof.pipeline.rules.violations import strongest
from brokerproof.pipeline.rules.windows import beyond_windows
from brokerproof.pipeline.tables import records_of
from brokerproof.spec.histories import CONTROL

KINDS_OF_CONTROL = (*sorted(CONTROL), "empty")
"""The kinds that every worker needs; of gets that found nothing, one for each queue."""


SETTLES_NOTHING = "it settles a delivery that is not in the history"
SETTLES_ANOTHERS = "it settles a delivery that its subscriber was not given, which has no effect"
"""A settlement by another subscriber than the holder has no effect, whatever the answer (rule 13).
"""


@dataclass(frozen=True)
class Messages:
    """The results of the records of single messages, and the input of the second stage."""

    intervals: pa.Table
    violations: pa.Table
    aside: pa.Table
    coverage: pa.Table
    traffic: pa.Table


def control_of(
    history: pa.Table, *, begins_late: bool = False, known: KnownQueues = NOTHING_SAID
) -> Control:
    """Return the control records of a history.

    `begins_late` is whether messages may have been published before the recording began. `known`
    has facts about queues that it does not declare.
    """
    chosen = history.filter(pc.is_in(history.column("op"), value_set=pa.array(KINDS_OF_CONTROL)))
    records = (record for batch in chosen.to_batches() for record in records_of(batch))
    return Control.of(records, begins_late=begins_late, known=known)


def by_message(
    history: pa.Table, control: Control, ambiguous: Ambiguous = NONE_AMBIGUOUS
) -> Messages:
    """Judge messages alone; the records of ambiguous ones are rejected."""
    history = with_numbered_names(history)
    found, rejected = gathered(history, control), ASIDE.empty_table()
    if found.published_again or control.reused or ambiguous:
        history, rejected = without_ambiguous(history, control, ambiguous)
        found = gathered(history, control)
    waits = waits_of(history, found)
    seen = as_seen(waits, found, control)
    certain = interrupted(seen, history, found, control)
    traffic = traffic_of(replace(waits, left_start=certain.left_start), found.queue, control.bins)
    # A lost message is reported as lost only, not also as overtaken by all later ones.
    lost = found_drained(found, losses(waits, history, found, control), control) != NO_ROW
    certain = replace(certain, left_start=np.where(lost, ALWAYS_GONE, certain.left_start))
    wrong = strongest(
        [
            *about_single_messages(history, found, waits, seen, control),
            *stalled(history, found, waits, certain, control),
        ]
    )
    return Messages(
        intervals_table(certain, history, found, control),
        wrong,
        pa.concat_tables([rejected, _aside(history, found, control)]),
        _coverage(
            history,
            Cases(history, found, waits, seen, control),
            by_time=control.idle is not None,
        ),
        traffic,
    )


def by_queue(intervals: pa.Table, control: Control) -> Iterator[pa.Table]:
    """Yield the violations between messages."""
    columns = Columns.of(intervals)
    for rule in ABOUT_SEVERAL:
        yield from judged_by(rule, columns)
    yield beyond_windows(intervals, control.window_of)


def _coverage(history: pa.Table, cases: Cases, *, by_time: bool) -> pa.Table:
    """Return how often each requirement applied to some messages, and how often it was excused."""
    counts: dict[tuple[str, str], int] = {}
    for case in (
        case for rule in RULES.values() if by_time or not rule.by_time for case in rule.cases
    ):
        if case.exercised is None:
            continue
        left = case.exercised(cases)
        counts[case.requirement, ASKED] = int(left.sum())
        for cause, marks_of in case.excused.items():
            excused = left & marks_of(cases)
            counts[case.requirement, cause] = int(excused.sum())
            left = left & ~excused
    settles = is_one_of(history, "op", "acknowledge", "reject", "release")
    unknown = settles & is_one_of(history, "outcome", "unknown")
    counts[SETTLEMENTS, ASKED] = int(settles.sum())
    counts[SETTLEMENTS, SETTLEMENTS] = int(unknown.sum())
    return _counted((*key, many) for key, many in counts.items() if many or key[1] == ASKED)


def _counted(rows: Iterable[tuple[str, str, int]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(COVERAGE.names, columns, strict=True)), schema=COVERAGE)


def concluded(
    violations: Sequence[pa.Table], coverage: Sequence[pa.Table], control: Control
) -> tuple[pa.Table, Coverage]:
    """Return the violations and the coverage of a whole history, from those of its parts."""
    found = strongest(violations)
    wrong = beyond_gets(found, control)
    many = Counter(found.column("requirement").to_pylist())
    many.subtract(wrong.column("requirement").to_pylist())
    # Each of them is a case of the usual requirement of the rule, however it is named.
    many[RULES[BEYOND_GETS].cases[0].requirement] = found.num_rows - wrong.num_rows
    by_gets = [(name, GETS, excused) for name, excused in sorted(many.items()) if excused]
    return wrong, added([*coverage, *([_counted(by_gets)] if by_gets else [])])


def _aside(history: pa.Table, found: Gathered, control: Control) -> pa.Table:
    """Return the rows that refer to nothing."""
    strange = found.settles_nothing
    held = np.isin(found.message[strange], found.deliveries.message)
    parts = [
        rows_aside(history, strange[which], "refers to nothing", reason)
        for which, reason in ((~held, SETTLES_NOTHING), (held, SETTLES_ANOTHERS))
    ]
    if control.begins_late:
        reason = "its message is not published in the history"
        parts.append(rows_aside(history, found.unknown, "refers to nothing", reason))
    return pa.concat_tables(parts)
