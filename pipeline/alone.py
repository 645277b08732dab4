"""The engine for a history that fits in memory, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from brokerproof.pipeline.intervals.idle import idle_of, idle_spans, latest_times, of_consumers
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID, KnownQueues
from brokerproof.pipeline.intervals.streams import ambiguous, clock_step, contradictions
from brokerproof.pipeline.intervals.subscribers import keys_of
from brokerproof.pipeline.intervals.traffic import bins_of, spans_of, total
from brokerproof.pipeline.names import NAMES, with_numbered_names
from brokerproof.pipeline.results import Judgement
from brokerproof.pipeline.stages import by_message, by_queue, concluded, control_of


def read(parts: Sequence[Path]) -> pa.Table:
    """Return a history in Parquet files; columns with few names come as numbers."""
    return pa.concat_tables([pq.read_table(part, read_dictionary=[*NAMES]) for part in parts])


def judged_alone(
    history: pa.Table,
    *,
    begins_late: bool = False,
    known: KnownQueues = NOTHING_SAID,
    stalled_after: int | None = None,
) -> Judgement:
    """Return the judgement of a whole history, whose rows may be in any order.

    `stalled_after` is how long a message may wait for a free consumer, in the unit of the history's
    times; None leaves that unchecked.
    """
    control = control_of(history, begins_late=begins_late, known=known)
    history = with_numbered_names(history)
    torn = contradictions(history, control)
    if stalled_after is not None:
        spans = idle_spans(of_consumers(history), control, stalled_after)
        control.idle = idle_of(spans, control, latest_times(history), stalled_after)
    control.bins = bins_of([spans_of(history)])
    messages = by_message(history, control, ambiguous(torn))
    found = [messages.violations, *by_queue(messages.intervals, control)]
    wrong, coverage = concluded(found, [messages.coverage], control)
    queues = sorted(keys_of(history))
    undeclared = tuple(control.undeclared(queues))
    return Judgement(
        wrong,
        messages.aside,
        coverage,
        tuple(queues),
        undeclared,
        stalled_after=stalled_after,
        begins_late=begins_late,
        clock_step=clock_step(torn),
        bins=control.bins,
        traffic=total([messages.traffic], control.bins),
    )
