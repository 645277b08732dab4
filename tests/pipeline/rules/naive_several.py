"""The rules about several messages of a queue, asked of each pair and of each moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from brokerproof.models.contract.history import Span, WaitingInterval
from brokerproof.pipeline.intervals.table import (
    CAME_BACK,
    DRAINED,
    FIRST,
    GIVEN,
    ORDERED,
    PLACED,
    QUERY,
    SURE,
    VIEW,
)
from brokerproof.pipeline.rules.history_rules import RULES, HistoryRule, Sides
from brokerproof.spec.histories import NEVER, Record
from tests.pipeline.intervals.naive_intervals import (
    NOTHING,
    Facts,
    Message,
    Wait,
    certain_end,
    seen,
    subscribers_in_order,
    unseen_until,
)
from tests.pipeline.rules.naive_violations import Violation, told


def first_within(spans: Iterable[Span], after: int, until: int) -> Span | None:
    """Return which of some spans lies between two times; of several, the first to end."""
    inside = [span for span in spans if after < span.start and span.end < until]
    return min(inside, key=lambda span: (int(span.end), int(span.start)), default=None)


def found_drained(wait: Wait, facts: Facts) -> Span | None:
    """Return when the queue of a wait was found drained, if the message waited all the time."""
    message = wait.message
    drained = [
        Span(each.start, seen(each))
        for each in facts.records
        if (each.op, each.run, each.queue) == ("drained", message.run, message.queue)
        and each.outcome == "ok"
    ]
    # No message was held when the queue was drained, so there is no unrecorded delivery.
    # How many losses gets without an answer explain is counted by `beyond_gets`.
    return first_within(drained, wait.begun.end, certain_end(wait, facts, by_gets=False))


@dataclass(frozen=True)
class Row:
    """A waiting interval, a view or an empty get, as the rules about several messages see it."""

    run: str
    queue: str
    name: str
    levels: int
    level: int
    subscriber: str | None
    flags: int
    interval: WaitingInterval


def rows_of(
    messages: Sequence[Message], waits: Sequence[Wait], records: Sequence[Record], facts: Facts
) -> Iterator[Row]:
    for wait in waits:
        own = wait.message
        known = wait.interval
        unseen = unseen_until(wait, facts)
        begun = max(int(known.begun.end), unseen)
        interval = WaitingInterval(
            known.published,
            Span(begun, begun),
            Span(certain_end(wait, facts) if found_drained(wait, facts) is None else -1, NEVER),
            known.given,
            known.place,
            NOTHING,
        )
        queue = (own.run, own.queue)
        flags = {
            FIRST: wait.is_first and unseen < 0,
            CAME_BACK: not wait.is_first,
            SURE: wait.sure,
            ORDERED: not facts.selective(*queue),
            PLACED: facts.returns(*queue),
            GIVEN: wait.given is not None,
        }
        yield Row(
            *queue,
            own.name,
            facts.levels(*queue),
            _level(own, facts),
            None if wait.given is None else wait.given.record.consumer,
            sum(flag for flag, is_set in flags.items() if is_set),
            interval,
        )
    for message in messages:
        yield from _first_views(message, facts)
    for each in records:
        if each.op in {"empty", "drained"} and each.outcome == "ok":
            interval = WaitingInterval(
                NOTHING, NOTHING, NOTHING, Span(each.start, seen(each)), NOTHING, NOTHING
            )
            flags_of_it = QUERY if each.op == "empty" else QUERY | DRAINED
            name = f"{each.consumer if each.op == 'empty' else 'drained'} at {each.start}"
            whose = (each.run, str(each.queue), name, 0, 0, each.consumer)
            yield Row(*whose, flags_of_it, interval)


def _level(message: Message, facts: Facts) -> int:
    levels = facts.levels(message.run, message.queue)
    assert message.publish is not None
    return min(message.publish.priority, levels - 1) if levels else 0


def _first_views(message: Message, facts: Facts) -> Iterator[Row]:
    """Yield what each browser was shown first of a message of a queue whose order is kept."""
    queue = (message.run, message.queue)
    if message.publish is None or facts.levels(*queue) or not facts.returns(*queue):
        return
    for each in message.views:
        if any(o.consumer == each.consumer and o.position < each.position for o in message.views):  # type: ignore[operator]
            continue
        place = Span(each.position, each.position)
        given = Span(min(max(each.start, message.publish.start), seen(each)), seen(each))
        published = message.published
        begun = Span(published.end, published.end)
        interval = WaitingInterval(published, begun, Span(NEVER, NEVER), given, place, NOTHING)
        whose = (*queue, message.name, 0, 0, each.consumer)
        yield Row(*whose, FIRST | SURE | ORDERED | PLACED | GIVEN | VIEW, interval)


def _compared(sides: Sides, late: Row, early: Row) -> bool:
    """Whether a rule compares a late row with an early one."""
    level = {
        "any": True,
        "equal": late.level == early.level,
        "higher": early.level > late.level and late.levels > 0,
    }[sides.level]
    same_queue = (late.run, late.queue) == (early.run, early.queue)
    same_subscriber = late.subscriber == early.subscriber or not sides.same_subscriber
    return same_queue and level and same_subscriber and bool(sides.early.has(early.flags))


def about_several(rows: Sequence[Row]) -> Iterator[Violation]:
    """Yield what the rules say of each pair of rows, and of each moment of a span."""
    for rule in RULES.values():
        if rule.sides is None or rule.formula is None:
            continue
        for late in rows:
            if not rule.sides.late.has(late.flags):
                continue
            early = [each for each in rows if _compared(rule.sides, late, each)]
            shown = [e for e in early if rule.formula.shown_by(late.interval, e.interval)]
            intervals = [each.interval for each in early]
            if rule.each_moment:
                if rule.formula.shown_at_each_moment(late.interval, intervals):
                    yield _while_some_waited(rule, late, early)
            elif shown:
                yield _overtaken(rule, late, shown)


def _while_some_waited(rule: HistoryRule, late: Row, early: Sequence[Row]) -> Violation:
    """Tell since when there was always one, and which of those that were there left last."""
    given = late.interval.given
    there = [each for each in early if each.interval.begun.end < given.end]
    last = min(
        there,
        key=lambda each: (
            -each.interval.left.start,
            each.name,
            each.interval.begun.end,
        ),
    )
    since = given.start
    while before := [
        int(each.interval.begun.end)
        for each in there
        if each.interval.begun.end < since < each.interval.left.start
    ]:
        since = min(before)
    left = last.interval.left.start
    key = (rule.cases[0].requirement, late.run, late.queue, late.name)
    return Violation(*key, rule.name, left, last.name, given.start, given.end, since, left)


def _overtaken(rule: HistoryRule, late: Row, shown: Sequence[Row]) -> Violation:
    assert rule.formula is not None
    [(_, of_later)] = rule.formula.late_first

    def strength(early: Row) -> int:
        return int(of_later(early.interval).start)

    early = min(shown, key=lambda e: (-strength(e), e.name, int(e.interval.begun.end)))
    [*_, case] = [each for each in rule.cases if each.applies(early.flags, late.flags)]
    given, of = late.interval.given, early.interval
    times = (given.start, given.end, of.begun.end, of.left.start)
    key = (case.requirement, late.run, late.queue, late.name)
    return Violation(*key, rule.name, strength(early), early.name, *times)


def beyond_windows(waits: Sequence[Wait], records: Sequence[Record]) -> Iterator[Violation]:
    """Find where a subscriber had seen more than its window without having begun to settle any."""
    windows = {
        (each.run, str(each.consumer)): each.window
        for each in records
        if each.op == "consume" and each.outcome != "failed" and each.window
    }
    for subscriber, given in subscribers_in_order(waits).items():
        window = windows.get(subscriber)
        if window is None:
            continue
        deliveries = [(wait, wait.given) for wait in given if wait.given is not None]
        for wait, new in deliveries:
            held = [
                other
                for _, other in deliveries
                if (other.end, other.record.position) <= (new.end, new.record.position)
                and other.freed > new.end
            ]
            if len(held) > window and new in held:
                more, spans = len(held) - window, (new.span, new.span)
                yield told("more-than-the-window", wait.message, more, new.record.consumer, spans)
