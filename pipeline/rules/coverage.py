"""The cases of requirements in some records: a requirement without one is not said to be kept.

Counted are the cases of the rules: deliveries, intervals that had begun at an event, gets. A case
is excused if the recording leaves open what happened in it, so that no rule can judge it.
`history_rules.py` says which cases and excuses belong to which requirement.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.dominance import running_least
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.intervals import Deliveries, Gathered, is_kept
from brokerproof.pipeline.intervals.known_queues import QueueFacts
from brokerproof.pipeline.intervals.table import Waits, unseen_ends
from brokerproof.pipeline.names import NO_ROW, Marks, is_one_of, marks
from brokerproof.spec.histories import NEVER, Kind


class Cases:
    """Marks of the deliveries, views, gets and waiting intervals of some messages.

    A record of `history_rules.py` combines them to the cases of a requirement.
    """

    def __init__(
        self, table: pa.Table, found: Gathered, waits: Waits, seen: Waits, control: Control
    ) -> None:
        self._found, self._waits, self._control = found, waits, control
        self._ends = unseen_ends(waits, table, found, control)
        self._has_flag = table.column("redelivered").is_valid().to_numpy()
        drained = control.spans_of("drained", found.queue.keys)
        never = np.full(waits.queue.size, NEVER, dtype=np.int64)
        first = drained.first_within(waits.queue, waits.begun_end, never)
        self._drained = np.append(drained.end, NEVER)[first]
        self.may_be_seen_again = waits.is_first & ~seen.is_first
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
        self.published_unsurely = waits.is_first & ~self.begun
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

    def missing_by(self, cause: str) -> Marks:
        """Return which messages were never given, and may have gone before a drain by a cause."""
        until = np.where(self._drained == NEVER, NEVER - 1, self._drained)
        return np.asarray(~self.given & (self._ends[cause] <= until), dtype=np.bool_)

    @property
    def given_without_a_beginning(self) -> Marks:
        """Which intervals no subscription and no moment separates from the publish."""
        subscribed = {each.subscriber for each in self._control.subscriptions}
        found, waits = self._found, self._waits
        none = np.array([key not in subscribed for key in found.subscriber.keys], dtype=np.bool_)
        of_none = np.append(none[found.subscriber.number], False)[waits.given]
        return np.asarray(of_none & (waits.left_start <= waits.published_start), dtype=np.bool_)

    @property
    def missing_undrained(self) -> Marks:
        """Which messages were never given, and may be there still."""
        return np.asarray(~self.given & (self._drained == NEVER), dtype=np.bool_)

    @property
    def settled_unsurely(self) -> Marks:
        """Which deliveries may have come back because a settlement had no answer."""
        given = self._found.deliveries
        return given.unsure & (given.back_start < NEVER)

    @property
    def settled_before_a_crash(self) -> Marks:
        """Which deliveries were certainly settled for good before a crash."""
        given, keys = self._found.deliveries, self._found.queue.keys
        never = np.full(given.row.size, NEVER, dtype=np.int64)
        crashes, of_queue = self._control.spans_of("crash", keys), self._found.queue.number
        crash = crashes.first_within(of_queue[given.row], given.done_by, never)
        return np.asarray(crash != NO_ROW, dtype=np.bool_)

    @property
    def undone_by_a_crash(self) -> Marks:
        """Which deliveries, settled or automatic, may have come back by a crash."""
        given = self._found.deliveries
        crashes = self._control.spans_of("crash", self._found.queue.keys)
        crash = crashes.next_start(self._found.queue.number[given.row], given.start)
        by_crash = (given.back_start == crash) & (crash < NEVER)
        is_over = (given.settlements > 0) | (given.freed == given.end)
        return np.asarray(by_crash & is_over, dtype=np.bool_)

    @property
    def without_a_flag(self) -> Marks:
        """Which deliveries have no flag in the recording."""
        return np.asarray(~self._has_flag[self._found.deliveries.row], dtype=np.bool_)

    @property
    def with_either_flag(self) -> Marks:
        """Which deliveries may have either flag, since a crash may have forgotten the first one."""
        return may_be_forgotten(self._found, self._control)


def may_be_forgotten(found: Gathered, control: Control) -> Marks:
    """Return which deliveries may follow a crash after the first delivery of their message."""
    given = found.deliveries
    firsts = np.flatnonzero(given.first)
    earliest = np.minimum.reduceat(given.start, firsts) if firsts.size else firsts
    crashes = control.spans_of("crash", found.queue.keys)
    since = earliest[np.cumsum(given.first) - 1]
    crash = crashes.next_start(found.queue.number[given.row], since)
    return np.asarray(crash <= given.end, dtype=np.bool_)


def may_have_returned(given: Deliveries) -> Marks:
    """Return which deliveries may follow a return from an earlier one.

    The redelivered flag is checked only for these. A second delivery that cannot follow a return
    breaks `nothing-twice`, whatever its flag.
    """
    back_start = np.where(given.first, NEVER, np.roll(given.back_start, 1))
    return np.asarray(running_least(back_start, given.first) <= given.end, dtype=np.bool_)
