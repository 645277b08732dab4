"""The rules about one message: invented, delivered twice, lost, kept when it should be gone.

Each is a rule of `models/contract/history.py` on columns. The name of a loss follows the contract's
own order: by the events of the message before it (`Contract.histories`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brokerproof.models.contract.history import (
    GIVEN_BEFORE_PUBLISHED,
    HELD_BY_TWO,
    Span,
    WaitingInterval,
)
from brokerproof.pipeline.dominance import Early, Late, overtaken
from brokerproof.pipeline.intervals.control import Control, Spans
from brokerproof.pipeline.intervals.intervals import Gathered
from brokerproof.pipeline.intervals.table import Waits, interrupted
from brokerproof.pipeline.names import NO_ROW, Ints, Marks, marks, numbers, ranks, texts
from brokerproof.pipeline.rules.coverage import may_be_forgotten, may_have_returned
from brokerproof.pipeline.rules.history_rules import BEYOND_GETS, LEFT_BEHIND, RULES
from brokerproof.pipeline.rules.violations import violations
from brokerproof.spec.histories import NEVER, Kind

_NOTHING = Span(0, 0)


def about_single_messages(
    table: pa.Table, found: Gathered, waits: Waits, seen: Waits, control: Control
) -> Iterator[pa.Table]:
    """Yield the violations about single messages.

    `waits` are their waiting intervals; `seen` allows for unrecorded deliveries.
    """
    if not control.begins_late:
        yield _never_published(table, found)
    yield from _given_before_published(table, found)
    yield _held_by_two(table, found, control)
    yield _told_as_new(table, found, control)
    yield from _shown(table, found, control)
    yield from _left_behind(table, found, losses(waits, table, found, control), control)
    yield from _kept(table, found, waits, seen, control)


def _never_published(table: pa.Table, found: Gathered) -> pa.Table:
    rows = found.unknown
    seen = numbers(table, "start")[rows], numbers(table, "end", NEVER)[rows]
    return violations("never-published", table, rows, strength=-seen[1], late=seen, early=seen)


def _given_before_published(table: pa.Table, found: Gathered) -> Iterator[pa.Table]:
    start, end = numbers(table, "start"), numbers(table, "end", NEVER)
    for rows in (found.deliveries.row, found.views):
        known = rows[found.publish_of[found.message[rows]] != NO_ROW]
        publish = found.publish_of[found.message[known]]
        published = Span(start[publish], end[publish])
        given = Span(start[known], end[known])
        itself = WaitingInterval(
            published, published, _NOTHING, given, place=_NOTHING, back=_NOTHING
        )
        wrong = np.flatnonzero(GIVEN_BEFORE_PUBLISHED.shown_by(itself, itself))
        yield violations(
            "given-before-published",
            table,
            known[wrong],
            strength=published.start[wrong] - given.end[wrong],
            late=(given.start[wrong], given.end[wrong]),
            early=(published.start[wrong], published.end[wrong]),
        )


def _held_by_two(table: pa.Table, found: Gathered, control: Control) -> pa.Table:
    given = found.deliveries
    late = np.flatnonzero(~given.first)

    def holds(which: Ints) -> WaitingInterval:
        span = Span(given.start[which], given.end[which])
        back = Span(given.back_start[which], NEVER)
        return WaitingInterval(_NOTHING, _NOTHING, _NOTHING, span, place=_NOTHING, back=back)

    wrong = late[HELD_BY_TWO.shown_by(holds(late), holds(late - 1))]
    settled = given.settlements[wrong - 1]
    crashes = control.spans_of("crash", found.queue.keys)
    of_queue = found.queue.number[given.row[wrong]]
    between = crashes.first_within(of_queue, given.end[wrong - 1], given.start[wrong])
    return violations(
        "held-by-two",
        table,
        given.row[wrong],
        strength=-given.end[wrong],
        witness=texts(table.column("consumer"), pa.array(given.row[wrong - 1])),
        late=(given.start[wrong], given.end[wrong]),
        early=(given.start[wrong - 1], given.end[wrong - 1]),
        named=[settled > 1, (settled > 0) & (between != NO_ROW)],
    )


def _told_as_new(table: pa.Table, found: Gathered, control: Control) -> pa.Table:
    """Find deliveries that may follow a return and are not marked as redelivered.

    After a crash either flag is correct for a message delivered before the crash.
    """
    given = found.deliveries
    group = np.cumsum(given.first) - 1
    firsts = np.flatnonzero(given.first)
    first = firsts[group]
    flag = table.column("redelivered")
    told = marks(table, "redelivered") | np.asarray(flag.is_null().to_numpy(), dtype=np.bool_)
    after = numbers(table, "start")[given.row] > given.end[first]
    told = told[given.row] | may_be_forgotten(found, control)
    wrong = np.flatnonzero(may_have_returned(given) & after & ~told)
    return violations(
        "told-as-new",
        table,
        given.row[wrong],
        strength=-given.end[wrong],
        witness=texts(table.column("consumer"), pa.array(given.row[first[wrong]])),
        late=(given.start[wrong], given.end[wrong]),
        early=(given.start[first[wrong]], given.end[first[wrong]]),
    )


def _shown(table: pa.Table, found: Gathered, control: Control) -> Iterator[pa.Table]:
    """Find messages shown to browsers while a consumer held them, or shown twice."""
    rows, given = found.views, found.deliveries
    if not rows.size:
        return
    start, end = numbers(table, "start")[rows], numbers(table, "end", NEVER)[rows]
    which = overtaken(
        Early(given.message, given.end, given.back_start),
        Late(found.message[rows], start, end),
    )
    wrong = np.flatnonzero(which != NO_ROW)
    held = which[wrong]
    yield violations(
        "shown-while-held",
        table,
        rows[wrong],
        strength=-end[wrong],
        witness=texts(table.column("consumer"), pa.array(given.row[held])),
        late=(start[wrong], end[wrong]),
        early=(given.start[held], given.end[held]),
    )
    yield _shown_again(table, found, control)


def _shown_again(table: pa.Table, found: Gathered, control: Control) -> pa.Table:
    """Find second views by one browser of queues that are first in, first out.

    A message may be shown again at a new place. So a queue that returns messages elsewhere is
    charged only if the message cannot have returned between the two views.
    """
    rows, given, queue = found.views, found.deliveries, found.queue.number
    start, end = numbers(table, "start"), numbers(table, "end", NEVER)
    message, (subscriber, _) = found.message, ranks(table.column("consumer"))
    rows = rows[np.lexsort((numbers(table, "position")[rows], subscriber[rows], message[rows]))]
    again = (message[rows][1:] == message[rows][:-1]) & (
        subscriber[rows][1:] == subscriber[rows][:-1]
    )
    late, early = rows[1:][again], rows[:-1][again]
    returns = Spans(given.message, given.back_start, given.back_end)
    unseen = control.unseen_returns(found.queue.keys)
    back = np.maximum(
        returns.latest_end(message[late], end[late]), unseen.latest_end(queue[late], end[late])
    )
    facts = control.facts(found.queue.keys)
    fifo = np.array([each.is_fifo for each in facts], dtype=np.bool_)[queue[late]]
    placed = np.array([each.returns for each in facts], dtype=np.bool_)[queue[late]]
    wrong = fifo & (placed | (back < start[early]))
    late, early = late[wrong], early[wrong]
    returned = np.isin(message[late], given.message[given.back_start < NEVER])
    return violations(
        "shown-again",
        table,
        late,
        strength=-end[late],
        witness=texts(table.column("consumer"), pa.array(early)),
        late=(start[late], end[late]),
        early=(start[early], end[early]),
        named=[returned & placed[wrong]],
    )


def losses(waits: Waits, table: pa.Table, found: Gathered, control: Control) -> Waits:
    """Return the certain parts of intervals by which losses are found.

    Which losses the gets without an answer explain is counted in the end (`unanswered_gets.py`).
    """
    return interrupted(waits, table, found, control, by_gets=False)


def found_drained(found: Gathered, waits: Waits, control: Control) -> Ints:
    """Return the drained time within each waiting interval of its queue, or `NO_ROW`."""
    drained = control.spans_of("drained", found.queue.keys)
    return drained.first_within(waits.queue, waits.begun_end, waits.left_start)


def _left_behind(
    table: pa.Table, found: Gathered, waits: Waits, control: Control
) -> Iterator[pa.Table]:
    """Find messages that waited all the time while their queue was found drained.

    No consumer held a message then, so none held it unseen. A get without an answer may have taken
    a message that was never given, if it began before the queue was drained. A browser may have
    taken what it was shown last; that the message is lost is certain, so both are reported.
    """
    drained = control.spans_of("drained", found.queue.keys)
    which = found_drained(found, waits, control)
    ends = np.append(drained.end, NO_ROW)[which]
    gets = control.unanswered_gets(found.queue.keys).latest_end(waits.queue, ends)
    may_be_taken = (waits.given == NO_ROW) & (gets >= waits.begun_start)
    viewed_until = np.full(found.publish_of.size, -1, dtype=np.int64)
    ends = numbers(table, "end", NEVER)[found.views]
    np.maximum.at(viewed_until, found.message[found.views], ends)
    for rule, concerned in ((LEFT_BEHIND, ~may_be_taken), (BEYOND_GETS, may_be_taken)):
        wrong = np.flatnonzero((which != NO_ROW) & concerned)
        when = which[wrong]
        viewed = viewed_until[found.message[waits.publish[wrong]]] >= waits.begun_start[wrong]
        cases = [viewed, *_cases_of_losses(found, waits, control, wrong, drained.start[when])]
        lost = violations(
            rule,
            table,
            waits.publish[wrong],
            strength=-drained.end[when],
            late=(drained.start[when], drained.end[when]),
            early=(waits.begun_start[wrong], waits.begun_end[wrong]),
            named=cases if rule == LEFT_BEHIND else cases[-1:],
        )
        yield lost
        shown = lost.filter(pc.equal(lost.column("requirement"), "browser-takes-nothing"))
        usual = pa.repeat(RULES[rule].cases[0].requirement, shown.num_rows)
        yield shown.set_column(0, "requirement", usual)


def _cases_of_losses(
    found: Gathered, waits: Waits, control: Control, wrong: Ints, drained: Ints
) -> list[Marks]:
    """Return which losses follow a return by itself, a second settlement, and a crash."""
    settlements = np.append(found.deliveries.settlements, 1)[waits.returned_by[wrong]]
    returned = ~waits.is_first[wrong]
    crashes = control.spans_of("crash", found.queue.keys)
    crashed = crashes.next_start(waits.queue[wrong], waits.begun_start[wrong]) < drained
    return [returned & (settlements == 0), returned & (settlements > 1), crashed]


def _kept(
    table: pa.Table, found: Gathered, waits: Waits, seen: Waits, control: Control
) -> Iterator[pa.Table]:
    """Find messages delivered although a purge, deletion or crash should have removed them.

    A purge drops waiting messages; a deletion and a crash drop held ones, too.
    """
    facts = control.facts(found.queue.keys)
    may_be = np.array([each.may_be_durable for each in facts], dtype=np.bool_)[waits.queue]
    survives = may_be & marks(table, "persistent")[waits.publish]
    everything = np.ones(waits.publish.size, dtype=np.bool_)
    breaks: tuple[tuple[Kind, str, Marks, Ints], ...] = (
        ("purge", "kept-after-a-purge", everything, seen.begun_end),
        ("delete", "kept-after-a-deletion", everything, waits.begun_end),
        ("crash", "kept-after-a-crash", ~survives, waits.begun_end),
    )
    for kind, rule, concerned, begun in breaks:
        spans = control.spans_of(kind, found.queue.keys)
        was_given = np.flatnonzero((waits.left_start < NEVER) & concerned)
        which = spans.first_within(
            waits.queue[was_given], begun[was_given], waits.left_start[was_given]
        )
        wrong, when = was_given[which != NO_ROW], which[which != NO_ROW]
        yield violations(
            rule,
            table,
            waits.publish[wrong],
            strength=-spans.end[when],
            late=(waits.given_start[wrong], waits.given_end[wrong]),
            early=(spans.start[when], spans.end[when]),
        )
