"""Covering chains: the fewest waiting messages that together fill the span of a violation.

The table of violations names one message of the chain, and the begin of the span. The other
messages are found when a violation is explained, among the records of its queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from brokerproof.pipeline.dominance import Early
from brokerproof.pipeline.explain.recorded_facts import Violation
from brokerproof.pipeline.intervals.control import Control
from brokerproof.pipeline.intervals.known_queues import KnownQueues
from brokerproof.pipeline.intervals.streams import ambiguous, contradictions
from brokerproof.pipeline.rules.history_rules import RULES
from brokerproof.pipeline.rules.several_messages import Columns, pairs_of
from brokerproof.pipeline.stages import by_message
from brokerproof.pipeline.tables import PLACE, SCHEMA, records_of
from brokerproof.spec.histories import CONTROL


def covering_chain_of(
    found: Violation, parts: Sequence[Path], known: KnownQueues
) -> tuple[str, ...]:
    """Return the fewest messages that fill the span, in the order in which they left.

    The messages with a record in that time are enough, unless a closed channel or a stopped broker
    returned older messages; then all messages of the queue are tried.
    """
    history = ds.dataset([str(part) for part in parts])
    field = ds.field
    of_run = field("run") == found.run
    control = Control.of(
        (
            record
            for batch in history.to_table(
                columns=SCHEMA.names, filter=of_run & field("op").isin(sorted(CONTROL))
            )
            .cast(SCHEMA)
            .to_batches()
            for record in records_of(batch)
        ),
        known=known,
    )
    of_queue = of_run & (field("queue") == found.queue) & field("message").is_valid()
    then = (field("start") <= found.late[1]) & (
        field("end").is_null() | (field("end") >= found.early[0])
    )
    names = history.to_table(columns=["message"], filter=of_queue & then).column("message")
    asked = field("start") == found.late[0]
    gets = of_run & (field("queue") == found.queue) & (field("op") == "empty") & asked
    for of_messages in (of_queue & field("message").isin(names.unique()), of_queue):
        table = history.to_table(columns=SCHEMA.names, filter=of_messages | gets).cast(SCHEMA)
        if chain := _chain_in(table.sort_by(PLACE), found, control):
            return chain
    return ()


def _chain_in(table: pa.Table, found: Violation, control: Control) -> tuple[str, ...]:
    """Return the covering chain in these records, empty if they have none."""
    torn = ambiguous(contradictions(table, control))
    columns = Columns.of(by_message(table, control, torn).intervals)
    given = columns.interval.given
    is_it = (given.start == found.late[0]) & (given.end == found.late[1])
    is_it &= pc.equal(columns.table.column("message"), found.message).to_numpy()
    levels = np.unique(columns.level[is_it]).tolist()
    for pairs in pairs_of(RULES[found.rule], columns, levels):
        if (pairs.late & is_it).any():
            rows = np.flatnonzero(pairs.early)
            early = pairs.of_early(columns, rows, ranked=True)
            last = list(fewest(early, found.late[0], found.late[1]))
            if last:
                of_messages = columns.table.column("message").take(pa.array(rows[last]))
                # A returned message may occur several times; the last is kept.
                return tuple(dict.fromkeys(reversed(of_messages.to_pylist())))[::-1]
    return ()


def fewest(early: Early, start: int, end: int) -> Iterator[int]:
    """Yield the fewest early rows that fill a span, by value; none if the span has a gap.

    Each choice has the greatest value of all rows that began before the previous one left; the
    first one, of those that began before the span. No other choice reaches further.
    """
    rank = np.arange(early.key.size) if early.rank is None else early.rank
    chosen: list[int] = []
    reached = start
    while reached <= end:
        there = np.flatnonzero((early.key < reached) & (early.value > reached))
        if not there.size:
            return
        best = there[np.lexsort((rank[there], -early.value[there]))[0]]
        chosen.append(int(best))
        reached = int(early.value[best])
    yield from chosen
