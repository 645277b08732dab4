"""The rules about several messages of a queue: order, urgency, returned messages, and gets.

Each family of rules compares times of one kind. A row's roles say whether it is early or late, so
that a table may be one slice of a history; in a whole history each row has all roles. `slices.py`
cuts a history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from brokerproof.models.contract.history import (
    OVERTAKES_AN_EQUAL,
    OVERTAKES_AN_EQUAL_IN_A_STREAM,
    OVERTAKES_WHAT_RETURNED,
    TAKEN_WHILE_ANOTHER_WAITED,
    TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM,
    TAKEN_WHILE_SOME_WAITED,
    Rule,
    Span,
    WaitingInterval,
)
from brokerproof.pipeline.dominance import Early, Late, overtaken, overtaken_in_turns
from brokerproof.pipeline.intervals.table import (
    ARRIVED,
    ARRIVES,
    CAME_BACK,
    DRAINED,
    ENDED,
    FIRST,
    GIVEN,
    JOINED,
    JOINED_URGENT,
    ORDERED,
    PLACED,
    QUERY,
    RETURNED,
    SURE,
    TAKEN,
    TIMES,
    VIEW,
    WAITED,
)
from brokerproof.pipeline.names import NO_ROW, Ints, Marks, joint, numbers, ranks
from brokerproof.pipeline.rules.violations import none, violations
from brokerproof.spec.histories import NEVER


@dataclass(frozen=True)
class Columns:
    """A table of waiting intervals as numbers; equal queues and subscribers have equal numbers."""

    table: pa.Table
    queue: Ints
    level: Ints
    taker: Ints
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

    def has(self, flags: int, without: int = 0) -> Marks:
        """Return which rows have all of `flags`, and none of `without`."""
        return np.asarray((self.flags & (flags | without)) == flags, dtype=np.bool_)

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
class Sides:
    """The early and late rows of a rule in a table.

    Rows of different `group` are independent.
    """

    rule: Rule
    name: str
    early: Marks
    late: Marks
    group: Ints

    def of_early(self, columns: Columns, rows: Ints, *, ranked: bool) -> Early:
        """Return the early side of these rows."""
        (of_early, _), *seconds = self.rule.early_first
        [(_, of_later)] = self.rule.late_first
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
        (_, of_late), *seconds = self.rule.early_first
        [(of_sooner, _)] = self.rule.late_first
        of = columns.interval
        return Late(
            self.group[rows],
            of_late(of).start[rows],
            of_sooner(of).end[rows],
            *(second(of).start[rows] for _, second in seconds),
        )


def arrivals(columns: Columns, late_levels: Sequence[int]) -> Iterator[Sides]:  # noqa: ARG001
    """Yield the rules that compare arrivals; they are about equal levels only."""
    arrived, arrives = columns.plays(ARRIVED), columns.plays(ARRIVES)
    first = columns.has(FIRST | ORDERED, without=VIEW | QUERY)
    of_level = joint(columns.queue, columns.level)
    given = columns.has(FIRST | ORDERED | GIVEN, without=VIEW | QUERY)
    yield Sides(
        OVERTAKES_AN_EQUAL, "overtakes-an-equal", first & arrived, given & arrives, of_level
    )
    to_taker = columns.has(FIRST | ORDERED | GIVEN | SURE, without=QUERY)
    of_taker = joint(columns.taker, columns.level)
    yield Sides(
        OVERTAKES_AN_EQUAL_IN_A_STREAM,
        "overtakes-in-a-stream",
        to_taker & arrived,
        to_taker & arrives,
        of_taker,
    )


def waiting(columns: Columns, late_levels: Sequence[int]) -> Iterator[Sides]:
    """Yield the rules that compare begins of waits, for each late level."""
    there = columns.has(0, without=VIEW | QUERY) & columns.plays(WAITED)
    taken = columns.plays(TAKEN)
    yield Sides(
        TAKEN_WHILE_ANOTHER_WAITED,
        "found-nothing",
        there,
        columns.has(QUERY, without=DRAINED) & taken,
        columns.queue,
    )
    early = there & columns.has(ORDERED) & (columns.has(PLACED) | columns.has(FIRST))
    placed = columns.has(PLACED) | columns.has(FIRST | SURE)
    late = columns.has(ORDERED | GIVEN, without=VIEW | QUERY) & placed & taken
    by_priority = numbers(columns.table, "levels") > 0
    in_stream = early & columns.has(GIVEN | SURE)
    for level in late_levels:
        above = (columns.level > level) & by_priority
        at = late & (columns.level == level) & by_priority
        yield Sides(
            TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM,
            "overtakes-what-waits-in-a-stream",
            in_stream & above,
            at,
            columns.taker,
        )
        yield Sides(
            TAKEN_WHILE_ANOTHER_WAITED, "overtakes-what-waits", early & above, at, columns.queue
        )


def in_turns(columns: Columns, late_levels: Sequence[int]) -> Iterator[Sides]:
    """Yield the rules about each moment of a span, for each late level.

    Those about urgency apply only to messages that never returned: other violations have other
    names.
    """
    of = columns.interval
    there = columns.has(0, without=VIEW | QUERY) & (of.begun.end < of.left.start)
    ended = columns.plays(ENDED)
    for name, late in (
        (FOUND_NOTHING_OF_SEVERAL, columns.has(QUERY, without=DRAINED)),
        (LEFT_BEHIND_OF_SEVERAL, columns.has(QUERY | DRAINED)),
    ):
        yield Sides(
            TAKEN_WHILE_SOME_WAITED,
            name,
            there & columns.plays(WAITED | JOINED),
            late & ended,
            columns.queue,
        )
    by_priority = numbers(columns.table, "levels") > 0
    early = there & columns.has(FIRST | ORDERED) & columns.plays(WAITED | JOINED_URGENT)
    placed = columns.has(PLACED) | columns.has(FIRST | SURE)
    late = columns.has(ORDERED | GIVEN, without=VIEW | QUERY) & placed & ended
    for level in late_levels:
        yield Sides(
            TAKEN_WHILE_SOME_WAITED,
            OVERTAKES_SOME,
            early & (columns.level > level) & by_priority,
            late & (columns.level == level) & by_priority,
            columns.queue,
        )


FOUND_NOTHING_OF_SEVERAL: Final = "found-nothing-of-several"
LEFT_BEHIND_OF_SEVERAL: Final = "left-behind-of-several"
OVERTAKES_SOME: Final = "overtakes-some-that-wait"
IN_TURNS: Final = frozenset({FOUND_NOTHING_OF_SEVERAL, LEFT_BEHIND_OF_SEVERAL, OVERTAKES_SOME})
"""The rules whose violations have a covering chain of early messages."""

Family: TypeAlias = Callable[[Columns, Sequence[int]], Iterator[Sides]]


def asked_of(family: Family, columns: Columns) -> Iterator[Sides]:
    """Yield the sides of a family in a table, for the levels present."""
    late = columns.has(GIVEN, without=VIEW | QUERY) & (numbers(columns.table, "levels") > 0)
    yield from family(columns, np.unique(columns.level[late]).tolist())


def judged_by(family: Family, columns: Columns) -> Iterator[pa.Table]:
    """Yield the violations of a family of rules in a table of waiting intervals."""
    for sides in asked_of(family, columns):
        yield judged(columns, sides)


def judged(columns: Columns, sides: Sides) -> pa.Table:
    """Return the violations of a rule of two comparisons."""
    early, late = np.flatnonzero(sides.early), np.flatnonzero(sides.late)
    of_late = sides.of_late(columns, late)
    which = overtaken(sides.of_early(columns, early, ranked=False), of_late)
    if (which == NO_ROW).all():
        return none()
    # Names matter only for violations, to find the one witness among equals.
    groups = np.unique(sides.group[late[which != NO_ROW]])
    early = early[np.isin(sides.group[early], groups)]
    late = late[which != NO_ROW]
    which = overtaken(sides.of_early(columns, early, ranked=True), sides.of_late(columns, late))
    return _told(
        columns,
        sides.name,
        late,
        early[which],
        sides.of_early(columns, early, ranked=False).value[which],
    )


def judged_in_turns(columns: Columns, sides: Sides) -> pa.Table:
    """Return the violations of a rule about each moment of a span."""
    early, late = np.flatnonzero(sides.early), np.flatnonzero(sides.late)
    if not early.size or not late.size:
        return none()
    spans = sides.of_late(columns, late)
    of_early = sides.of_early(columns, early, ranked=False)
    # Rows that end before all spans, or begin after them, can only extend the chain's begin.
    then = (of_early.value > spans.key.min()) & (of_early.key < spans.bound.max())
    which, _ = overtaken_in_turns(sides.of_early(columns, early[then], ranked=False), spans)
    if (which == NO_ROW).all():
        return none()
    late = late[which != NO_ROW]
    early = early[np.isin(sides.group[early], np.unique(sides.group[late]))]
    of_early = sides.of_early(columns, early, ranked=True)
    last, since = overtaken_in_turns(of_early, sides.of_late(columns, late))
    return _told(columns, sides.name, late, early[last], of_early.value[last], since)


def returned(columns: Columns) -> Sides:
    """Return the rule about returned messages that waited at their place ahead."""
    flags = ORDERED | PLACED
    of = columns.interval
    is_early = columns.has(flags, without=FIRST | VIEW | QUERY) & columns.plays(RETURNED)
    return Sides(
        OVERTAKES_WHAT_RETURNED,
        "overtakes-what-returned",
        is_early & (of.begun.end < NEVER),
        columns.has(flags | GIVEN, without=VIEW | QUERY) & columns.plays(TAKEN),
        joint(columns.queue, columns.level),
    )


def _told(
    columns: Columns, name: str, late: Ints, early: Ints, strength: Ints, since: Ints | None = None
) -> pa.Table:
    """Return violations; `since` is the begin of the covering chain, if there is one."""
    of = columns.interval
    table = columns.table
    return violations(
        pa.array(_requirements(columns, name, late, early), pa.string()),
        name,
        table,
        late,
        strength=strength,
        witness=table.column("message").take(pa.array(early)),
        late=(of.given.start[late], of.given.end[late]),
        early=(of.begun.end[early] if since is None else since, of.left.start[early]),
    )


def _requirements(columns: Columns, name: str, late: Ints, early: Ints) -> list[str]:
    """Return the requirement of each; as in the contract, returns take precedence over urgency."""
    if name in _ALWAYS:
        return [_ALWAYS[name]] * late.size
    came_back = (columns.flags[early] & CAME_BACK) != 0
    viewed = (columns.flags[late] & VIEW) != 0
    about_urgency = name in {"overtakes-what-waits", "overtakes-what-waits-in-a-stream"}
    plain = "priority-order" if about_urgency else "fifo-order"
    names = np.full(late.size, plain, dtype=object)
    names[came_back] = "release-rewinds"
    names[viewed] = "browser-in-order"
    return [str(each) for each in names]


_ALWAYS: Final = {
    "found-nothing": "get-finds",
    FOUND_NOTHING_OF_SEVERAL: "get-finds",
    LEFT_BEHIND_OF_SEVERAL: "nothing-lost",
    OVERTAKES_SOME: "priority-order",
}
"""The rules that belong to one requirement."""
