"""The cases of requirements in some records: a requirement without one is not said to be kept.

Counted are the cases of the rules: deliveries, intervals that had begun at an event, gets.
`history_rules.py` says which count belongs to which requirement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import running_least
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.intervals import Deliveries, Gathered, is_kept
from brokerproof.pipeline.intervals.known_queues import QueueFacts
from brokerproof.pipeline.intervals.table import Waits
from brokerproof.pipeline.names import NO_ROW, Marks, is_one_of, marks
from brokerproof.spec.histories import NEVER, Kind


@dataclass(frozen=True)
class Cases:
    """The records of some messages; each method returns the number of cases of a kind."""

    table: pa.Table
    found: Gathered
    waits: Waits
    control: Control

    def seen(self) -> int:
        """Deliveries, and views of browsers."""
        return self.taken() + self.shown()

    def taken(self) -> int:
        """Deliveries."""
        return self.found.deliveries.row.size

    def taken_after_a_return(self) -> int:
        """Deliveries that may follow a return."""
        return int(may_have_returned(self.found.deliveries).sum())

    def taken_first(self) -> int:
        """First deliveries of queues whose order is checked."""
        return int((self._given & self.waits.is_first & self._ordered).sum())

    def taken_by_level(self) -> int:
        """Deliveries of queues with priorities whose order is checked."""
        return int((self._given & self._ordered & self._of(lambda q: q.levels is not None)).sum())

    def returned_to_place(self) -> int:
        """Waiting intervals that began with a return to a place."""
        placed = self._ordered & self._of(lambda queue: queue.returns)
        return int((~self.waits.is_first & placed & (self.waits.begun_end < NEVER)).sum())

    def within_a_window(self) -> int:
        """Deliveries to consumers with a window."""
        limited = [key in self.control.window_of for key in self.found.taker.keys]
        of_row = np.array(limited, dtype=np.bool_)[self.found.taker.number]
        return int(of_row[self.found.deliveries.row].sum())

    def shown(self) -> int:
        """Views of browsers."""
        return self.found.views.size

    def shown_in_order(self) -> int:
        """Views of queues that are first in, first out."""
        facts = self.control.facts(self.found.queue.keys)
        fifo = np.array([each.is_fifo for each in facts], dtype=np.bool_)
        return int(fifo[self.found.queue.number[self.found.views]].sum())

    def found_nothing(self) -> int:
        """Gets that found nothing."""
        table = self.table
        return int((is_one_of(table, "op", "empty") & is_one_of(table, "outcome", "ok")).sum())

    def drained(self) -> int:
        """Waiting intervals whose queue was found drained later."""
        return int(self._passed("drained").sum())

    def purged(self) -> int:
        """Waiting intervals whose queue was purged later."""
        return int(self._passed("purge").sum())

    def deleted(self) -> int:
        """Waiting intervals whose queue was deleted later."""
        return int(self._passed("delete").sum())

    def kept_in_a_crash(self) -> int:
        """Waiting intervals, before a crash, of messages that were on disk."""
        on_disk = self._of(lambda queue: queue.durable) & is_kept(self.table)[self.waits.publish]
        return int((self._passed("crash") & on_disk).sum())

    def lost_in_a_crash(self) -> int:
        """Waiting intervals, before a crash, of messages that were not on disk."""
        persistent = marks(self.table, "persistent")[self.waits.publish]
        may_survive = self._of(lambda queue: queue.durable) & persistent
        return int((self._passed("crash") & ~may_survive).sum())

    def served(self) -> int:
        """Waiting intervals that a known consumer could have ended."""
        if self.control.idle is None:
            return 0
        served = {(each.record.run, each.record.queue or "") for each in self.control.idle.known}
        there = np.array([key in served for key in self.found.queue.keys], dtype=np.bool_)
        return int((there[self.waits.queue] & (self.waits.begun_end < NEVER)).sum())

    @property
    def _given(self) -> Marks:
        return np.asarray(self.waits.given != NO_ROW, dtype=np.bool_)

    @property
    def _ordered(self) -> Marks:
        return self._of(lambda queue: not queue.selective)

    def _of(self, is_so: Callable[[QueueFacts], bool]) -> Marks:
        """Return the intervals of the queues with a property."""
        facts = self.control.facts(self.found.queue.keys)
        return np.array([is_so(each) for each in facts], dtype=np.bool_)[self.waits.queue]

    def _passed(self, kind: Kind) -> Marks:
        """Return which intervals had certainly begun before an event of their queue."""
        spans = self.control.spans_of(kind, self.found.queue.keys)
        until = np.full(self.waits.queue.size, NEVER, dtype=np.int64)
        within = spans.first_within(self.waits.queue, self.waits.begun_end, until)
        return np.asarray(within != NO_ROW, dtype=np.bool_)


def may_have_returned(given: Deliveries) -> Marks:
    """Return which deliveries may follow a return from an earlier one.

    The redelivered flag is checked only for these. A second delivery that cannot follow a return
    breaks `nothing-twice`, whatever its flag.
    """
    back_start = np.where(given.first, NEVER, np.roll(given.back_start, 1))
    return np.asarray(running_least(back_start, given.first) <= given.end, dtype=np.bool_)
