"""How often each requirement was exercised: one that was never exercised is not kept.

Counted are the cases of the rules: deliveries, intervals that had begun at an event, gets. The
names are those of the requirements.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.intervals import Gathered, is_kept
from brokerproof.pipeline.intervals.table import Waits
from brokerproof.pipeline.names import NO_ROW, Marks, is_one_of, marks
from brokerproof.pipeline.results import COVERAGE
from brokerproof.pipeline.rules.single_messages import may_have_returned
from brokerproof.pipeline.rules.stalls import concerned
from brokerproof.spec.histories import NEVER, Kind


def coverage_of(table: pa.Table, found: Gathered, waits: Waits, control: Control) -> pa.Table:
    """Return how often each requirement applied to these messages."""
    facts = control.facts(found.queue.keys)
    by_priority = np.array([each.levels is not None for each in facts], dtype=np.bool_)
    durable = np.array([each.durable for each in facts], dtype=np.bool_)[waits.queue]
    ordered = np.array([not each.selective for each in facts], dtype=np.bool_)[waits.queue]
    placed = np.array([each.returns for each in facts], dtype=np.bool_)[waits.queue]
    survives = durable & is_kept(table)[waits.publish]
    may_survive = durable & marks(table, "persistent")[waits.publish]
    given = waits.given != NO_ROW
    urgent = by_priority[waits.queue]
    drained = _passed(waits, found, control, "drained")
    crashed = _passed(waits, found, control, "crash")
    views = found.views
    fifo = np.array([each.is_fifo for each in facts], dtype=np.bool_)
    shown_in_order = fifo[found.queue.number[views]]
    limited = [key in control.window_of for key in found.taker.keys]
    within = np.array(limited, dtype=np.bool_)[found.taker.number[found.deliveries.row]]
    counts = {
        "nothing-invented": found.deliveries.row.size + views.size,
        "nothing-twice": found.deliveries.row.size,
        "redelivered-flag": int(may_have_returned(found.deliveries).sum()),
        "nothing-lost": int(drained.sum()),
        "survives-restart": int((crashed & survives).sum()),
        "transient-is-lost": int((crashed & ~may_survive).sum()),
        "purge-drops": int(_passed(waits, found, control, "purge").sum()),
        "delete-drops": int(_passed(waits, found, control, "delete").sum()),
        "fifo-order": int((given & waits.is_first & ordered).sum()),
        "priority-order": int((given & urgent & ordered).sum()),
        "release-rewinds": int(
            (~waits.is_first & placed & ordered & (waits.begun_end < NEVER)).sum()
        ),
        "get-finds": int(
            (is_one_of(table, "op", "empty") & is_one_of(table, "outcome", "ok")).sum()
        ),
        "credit-not-exceeded": int(within.sum()),
        "browser-sees-available": views.size,
        "browser-in-order": int(shown_in_order.sum()),
        "browser-once": int(shown_in_order.sum()),
    }
    if control.idle is not None:
        counts["quiescence"] = concerned(found, waits, control)
    return pa.table({"requirement": list(counts), "asked": list(counts.values())}, schema=COVERAGE)


def _passed(waits: Waits, found: Gathered, control: Control, kind: Kind) -> Marks:
    """Return which intervals had certainly begun before an event of their queue."""
    spans = control.spans_of(kind, found.queue.keys)
    until = np.full(waits.queue.size, NEVER, dtype=np.int64)
    within = spans.first_within(waits.queue, waits.begun_end, until)
    return np.asarray(within != NO_ROW, dtype=np.bool_)
