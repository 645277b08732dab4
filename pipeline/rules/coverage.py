"""The cases of requirements in some records: a requirement without one is not said to be kept.

Counted are the cases of the rules: deliveries, intervals that had begun at an event, gets.
`history_rules.py` says which count belongs to which requirement.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import running_least
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.intervals import Deliveries, Gathered, is_kept
from brokerproof.pipeline.intervals.known_queues import QueueFacts
from brokerproof.pipeline.intervals.table import Waits
from brokerproof.pipeline.names import NO_ROW, Marks, is_one_of, marks
from brokerproof.spec.histories import NEVER, Kind


class Cases:
    """Marks of the deliveries, views, gets and waiting intervals of some messages.

    A record of `history_rules.py` combines them to the cases of a requirement.
    """

    def __init__(self, table: pa.Table, found: Gathered, waits: Waits, control: Control) -> None:
        self._found, self._waits, self._control = found, waits, control
        facts = control.facts(found.queue.keys)

        def of_intervals(is_so: Callable[[QueueFacts], bool]) -> Marks:
            return np.array([is_so(each) for each in facts], dtype=np.bool_)[waits.queue]

        self.taken = np.ones(found.deliveries.row.size, dtype=np.bool_)
        self.shown = np.ones(found.views.size, dtype=np.bool_)
        self.seen = np.append(self.taken, self.shown)
        self.may_have_returned = may_have_returned(found.deliveries)
        limited = np.array(
            [key in control.window_of for key in found.subscriber.keys], dtype=np.bool_
        )
        self.limited = limited[found.subscriber.number[found.deliveries.row]]
        fifo = np.array([each.is_fifo for each in facts], dtype=np.bool_)
        self.shown_in_order = fifo[found.queue.number[found.views]]
        self.found_nothing = is_one_of(table, "op", "empty") & is_one_of(table, "outcome", "ok")
        self.begun = waits.begun_end < NEVER
        self.first = waits.is_first
        self.given = waits.given != NO_ROW
        self.ordered = of_intervals(lambda queue: not queue.selective)
        self.by_level = of_intervals(lambda queue: queue.levels is not None)
        self.placed = of_intervals(lambda queue: queue.returns)
        durable = of_intervals(lambda queue: queue.durable)
        self.on_disk = durable & is_kept(table)[waits.publish]
        self.may_survive = durable & marks(table, "persistent")[waits.publish]
        known = () if control.idle is None else control.idle.known
        served = {(each.record.run, each.record.queue or "") for each in known}
        there = np.array([key in served for key in found.queue.keys], dtype=np.bool_)
        self.served = there[waits.queue]

    def passed(self, kind: Kind) -> Marks:
        """Return which intervals had certainly begun before an event of their queue."""
        waits, spans = self._waits, self._control.spans_of(kind, self._found.queue.keys)
        until = np.full(waits.queue.size, NEVER, dtype=np.int64)
        within = spans.first_within(waits.queue, waits.begun_end, until)
        return np.asarray(within != NO_ROW, dtype=np.bool_)


def may_have_returned(given: Deliveries) -> Marks:
    """Return which deliveries may follow a return from an earlier one.

    The redelivered flag is checked only for these. A second delivery that cannot follow a return
    breaks `nothing-twice`, whatever its flag.
    """
    back_start = np.where(given.first, NEVER, np.roll(given.back_start, 1))
    return np.asarray(running_least(back_start, given.first) <= given.end, dtype=np.bool_)
