"""The rules about several messages of a queue: order, urgency, returned messages, and gets.

`history_rules.py` says which rows a rule compares. A row's roles say whether it may be early or
late, so that a table may be one slice of a history; in a whole history each row has all roles.
`slices.py` cuts a history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from brokerproof.models.contract.history import Span, WaitingInterval
from brokerproof.pipeline.dominance import Early, Late, overtaken, overtaken_by_a_chain
from brokerproof.pipeline.intervals.table import GIVEN, TIMES
from brokerproof.pipeline.names import NO_ROW, Ints, Marks, dense, joint, numbers, ranks
from brokerproof.pipeline.rules.history_rules import RULES, HistoryRule, Side
from brokerproof.pipeline.rules.violations import none, violations

ABOUT_SEVERAL: Final = tuple(each for each in RULES.values() if each.sides is not None)
"""The rules that this file judges."""

_GIVEN: Final = Side((GIVEN,))


@dataclass(frozen=True)
class Columns:
    """A table of waiting intervals as numbers; equal queues and subscribers have equal numbers."""

    table: pa.Table
    queue: Ints
    level: Ints
    subscriber: Ints
    flags: Ints
    roles: Ints
    interval: WaitingInterval

    @classmethod
    def of(cls, table: pa.Table) -> Columns:
        """Return the columns of a table."""
        queue = joint(
            numbers(table, "slice"), ranks(table.column("run"))[0], ranks(table.column("queue"))[0]
        )
        place = numbers(table, "position")
        times = {name: numbers(table, name) for name in TIMES}
        left = Span(times["left_start"], times["left_start"])
        return cls(
            table,
            queue,
            numbers(table, "level"),
            joint(queue, ranks(table.column("consumer"))[0]),
            numbers(table, "flags"),
            numbers(table, "roles"),
            WaitingInterval(
                Span(times["published_start"], times["published_end"]),
                Span(times["begun_end"], times["begun_end"]),
                left,
                Span(times["given_start"], times["given_end"]),
                Span(place, place),
                Span(left.start, left.start),
            ),
        )

    def plays(self, role: int) -> Marks:
        """Return which rows have a role, or one of several, in their slice."""
        return np.asarray((self.roles & role) != 0, dtype=np.bool_)

    def rank(self, rows: Ints) -> Ints:
        """Return the order of rows that settles ties: by name, then by time."""
        name, _ = ranks(self.table.column("message").take(pa.array(rows)))
        order = np.lexsort((self.interval.begun.end[rows], name))
        rank = np.empty(rows.size, dtype=np.int64)
        rank[order] = np.arange(rows.size)
        return rank


@dataclass(frozen=True)
class Pairs:
    """The early and late rows of a rule in a table; rows of different `group` are independent."""

    rule: HistoryRule
    early: Marks
    late: Marks
    group: Ints

    def of_early(self, columns: Columns, rows: Ints, *, ranked: bool = False) -> Early:
        """Return the early side of these rows."""
        assert self.rule.formula is not None
        (of_early, _), *seconds = self.rule.formula.early_first
        [(_, of_later)] = self.rule.formula.late_first
        of = columns.interval
        return Early(
            self.group[rows],
            of_early(of).end[rows],
            of_later(of).start[rows],
            columns.rank(rows) if ranked else None,
            *(second(of).end[rows] for second, _ in seconds),
        )

    def of_late(self, columns: Columns, rows: Ints) -> Late:
        """Return the late side of these rows."""
        assert self.rule.formula is not None
        (_, of_late), *seconds = self.rule.formula.early_first
        [(of_sooner, _)] = self.rule.formula.late_first
        of = columns.interval
        return Late(
            self.group[rows],
            of_late(of).start[rows],
            of_sooner(of).end[rows],
            *(second(of).start[rows] for _, second in seconds),
        )


def pairs_of(
    rule: HistoryRule, columns: Columns, late_levels: Sequence[int] | None = None
) -> Iterator[Pairs]:
    """Yield what a rule compares in a table: once, or for each level of the late row.

    Without `late_levels`, these are the levels of the delivered messages that are there.
    """
    sides = rule.sides
    assert sides is not None
    early_role, late_role = rule.roles
    early = sides.early.has(columns.flags) & columns.plays(early_role)
    late = sides.late.has(columns.flags) & columns.plays(late_role)
    if rule.compares_begins:
        early &= columns.interval.begun.end < columns.interval.left.start
    group = columns.subscriber if sides.same_subscriber else columns.queue
    if sides.level != "higher":
        yield Pairs(
            rule, early, late, joint(group, columns.level) if sides.level == "equal" else group
        )
        return
    by_priority = numbers(columns.table, "levels") > 0
    if late_levels is None:
        given = _GIVEN.has(columns.flags) & by_priority
        late_levels = dense(columns.level[given])[0].tolist()
    for level in late_levels:
        above, at = columns.level > level, columns.level == level
        yield Pairs(rule, early & above & by_priority, late & at & by_priority, group)


def judged_by(rule: HistoryRule, columns: Columns) -> Iterator[pa.Table]:
    """Yield the violations of a rule in a table of waiting intervals."""
    for pairs in pairs_of(rule, columns):
        yield judged(columns, pairs)


def judged(columns: Columns, pairs: Pairs) -> pa.Table:
    """Return the violations among the compared rows."""
    early, late = np.flatnonzero(pairs.early), np.flatnonzero(pairs.late)
    if not early.size or not late.size:
        return none()
    of_early, of_late = pairs.of_early(columns, early), pairs.of_late(columns, late)
    if pairs.rule.each_moment:
        # Rows that end before all spans, or begin after them, can only extend the chain's begin.
        then = (of_early.value > of_late.key.min()) & (of_early.key < of_late.bound.max())
        of_early = pairs.of_early(columns, early[then])
    which, _ = _overtaken(pairs.rule, of_early, of_late)
    if (which == NO_ROW).all():
        return none()
    # Names matter only for violations, to find the one witness among equals.
    late = late[which != NO_ROW]
    early = early[np.isin(pairs.group[early], dense(pairs.group[late])[0])]
    of_early = pairs.of_early(columns, early, ranked=True)
    which, since = _overtaken(pairs.rule, of_early, pairs.of_late(columns, late))
    return _told(columns, pairs.rule, late, early[which], of_early.value[which], since)


def _overtaken(rule: HistoryRule, early: Early, late: Late) -> tuple[Ints, Ints | None]:
    """Return the overtaken rows, and the begins of their covering chains if the rule has some."""
    return overtaken_by_a_chain(early, late) if rule.each_moment else (overtaken(early, late), None)


def _told(
    columns: Columns, rule: HistoryRule, late: Ints, early: Ints, strength: Ints, since: Ints | None
) -> pa.Table:
    of, flags, table = columns.interval, columns.flags, columns.table
    return violations(
        rule.name,
        table,
        late,
        strength=strength,
        witness=table.column("message").take(pa.array(early)),
        late=(of.given.start[late], of.given.end[late]),
        early=(of.begun.end[early] if since is None else since, of.left.start[early]),
        named=[case.applies(flags[early], flags[late]) for case in rule.cases[1:]],
    )
