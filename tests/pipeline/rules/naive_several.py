"""The rules about several messages of a queue, asked of each pair and of each moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

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
from brokerproof.spec.histories import NEVER, Record
from tests.pipeline.intervals.naive_intervals import (
    NOTHING,
    Facts,
    Message,
    Wait,
    certain_end,
    seen,
    takers_in_order,
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
    return first_within(drained, wait.begun.end, certain_end(wait, facts))


@dataclass(frozen=True)
class Row:
    """A waiting interval, a view or an empty get, as the rules about several messages see it."""

    kind: str
    run: str
    queue: str
    name: str
    levels: int
    level: int
    taker: str | None
    first: bool
    came_back: bool
    sure: bool
    ordered: bool
    placed: bool
    given: bool
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
        yield Row(
            "wait",
            own.run,
            own.queue,
            own.name,
            facts.levels(own.run, own.queue),
            _level(own, facts),
            None if wait.given is None else wait.given.record.consumer,
            wait.is_first and unseen < 0,
            not wait.is_first,
            wait.sure,
            not facts.selective(own.run, own.queue),
            facts.returns(own.run, own.queue),
            wait.given is not None,
            interval,
        )
    for message in messages:
        yield from _first_views(message, facts)
    for each in records:
        if each.op in {"empty", "drained"} and each.outcome == "ok":
            interval = WaitingInterval(
                NOTHING, NOTHING, NOTHING, Span(each.start, seen(each)), NOTHING, NOTHING
            )
            kind = "nothing" if each.op == "empty" else "drained"
            name = f"{each.consumer if each.op == 'empty' else 'drained'} at {each.start}"
            whose = (each.run, str(each.queue), name, 0, 0, each.consumer)
            yield Row(kind, *whose, False, False, False, False, False, False, interval)


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
        yield Row("view", *whose, True, False, True, True, True, True, interval)


Test = Callable[[Row], bool]
Pair = Callable[[Row, Row], bool]


def _same_queue(late: Row, early: Row) -> bool:
    return (late.run, late.queue) == (early.run, early.queue)


def _equals(late: Row, early: Row) -> bool:
    return _same_queue(late, early) and late.level == early.level


def _same_taker(late: Row, early: Row) -> bool:
    return _same_queue(late, early) and late.taker == early.taker


def about_several(rows: Sequence[Row]) -> Iterator[Violation]:
    """Yield what the rules say of each pair of rows, and of each moment of a span."""

    def waits(row: Row) -> bool:
        return row.kind == "wait" and row.ordered

    def more_urgent(late: Row, early: Row) -> bool:
        return _same_queue(late, early) and early.level > late.level and late.levels > 0

    asked: list[tuple[str, Rule, Test, Test, Pair]] = [
        (
            "overtakes-an-equal",
            OVERTAKES_AN_EQUAL,
            lambda late: waits(late) and late.first and late.given,
            lambda early: waits(early) and early.first,
            _equals,
        ),
        (
            "overtakes-in-a-stream",
            OVERTAKES_AN_EQUAL_IN_A_STREAM,
            lambda late: late.ordered and late.first and late.given and late.sure,
            lambda early: early.ordered and early.first and early.given and early.sure,
            lambda late, early: _equals(late, early) and _same_taker(late, early),
        ),
        (
            "found-nothing",
            TAKEN_WHILE_ANOTHER_WAITED,
            lambda late: late.kind == "nothing",
            lambda early: early.kind == "wait",
            _same_queue,
        ),
        (
            "overtakes-what-waits",
            TAKEN_WHILE_ANOTHER_WAITED,
            lambda late: waits(late) and late.given and (late.placed or (late.first and late.sure)),
            lambda early: waits(early) and (early.placed or early.first),
            more_urgent,
        ),
        (
            "overtakes-what-waits-in-a-stream",
            TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM,
            lambda late: waits(late) and late.given and (late.placed or (late.first and late.sure)),
            lambda early: (
                waits(early) and (early.placed or early.first) and early.given and early.sure
            ),
            lambda late, early: more_urgent(late, early) and _same_taker(late, early),
        ),
        (
            "overtakes-what-returned",
            OVERTAKES_WHAT_RETURNED,
            lambda late: waits(late) and late.placed and late.given,
            lambda early: waits(early) and early.placed and not early.first,
            _equals,
        ),
    ]
    for name, rule, may_be_late, may_be_early, concerned in asked:
        for late in filter(may_be_late, rows):
            shown = [
                early
                for early in filter(may_be_early, rows)
                if concerned(late, early) and rule.shown_by(late.interval, early.interval)
            ]
            if shown:
                yield _overtaken(name, rule, late, shown)
    yield from _taken_while_some_waited(rows)


def _taken_while_some_waited(rows: Sequence[Row]) -> Iterator[Violation]:
    """Find what was wrong at each moment of its span, each time for the sake of some message."""
    for late in rows:
        if late.kind in {"nothing", "drained"}:
            name, requirement = "found-nothing-of-several", "get-finds"
            if late.kind == "drained":
                name, requirement = "left-behind-of-several", "nothing-lost"
            early = [each for each in rows if each.kind == "wait" and _same_queue(late, each)]
        elif late.kind == "wait" and late.given and (late.placed or (late.first and late.sure)):
            name, requirement = "overtakes-some-that-wait", "priority-order"
            early = [
                each
                for each in rows
                if each.kind == "wait" and each.first and each.ordered and late.ordered
                if _same_queue(late, each) and each.level > late.level and late.levels > 0
            ]
        else:
            continue
        intervals = [each.interval for each in early]
        if TAKEN_WHILE_SOME_WAITED.shown_at_each_moment(late.interval, intervals):
            yield _while_some_waited(name, requirement, late, early)


def _while_some_waited(name: str, requirement: str, late: Row, early: Sequence[Row]) -> Violation:
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
    key = (requirement, late.run, late.queue, late.name)
    return Violation(*key, name, left, last.name, given.start, given.end, since, left)


def _overtaken(name: str, rule: Rule, late: Row, shown: Sequence[Row]) -> Violation:
    [(_, of_later)] = rule.late_first

    def strength(early: Row) -> int:
        return int(of_later(early.interval).start)

    early = min(shown, key=lambda e: (-strength(e), e.name, int(e.interval.begun.end)))
    if late.kind == "nothing":
        requirement = "get-finds"
    elif late.kind == "view":
        requirement = "browser-in-order"
    elif early.came_back:
        requirement = "release-rewinds"
    elif early.level == late.level:
        requirement = "fifo-order"
    else:
        requirement = "priority-order"
    given, of = late.interval.given, early.interval
    times = (given.start, given.end, of.begun.end, of.left.start)
    key = (requirement, late.run, late.queue, late.name)
    return Violation(*key, name, strength(early), early.name, *times)


def beyond_windows(waits: Sequence[Wait], records: Sequence[Record]) -> Iterator[Violation]:
    """Find where a taker had seen more than its window without having begun to settle any."""
    windows = {
        (each.run, str(each.consumer)): each.window
        for each in records
        if each.op == "consume" and each.outcome != "failed" and each.window
    }
    for taker, given in takers_in_order(waits).items():
        window = windows.get(taker)
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
                yield told(
                    "credit-not-exceeded",
                    wait.message,
                    "more-than-the-window",
                    len(held) - window,
                    new.record.consumer,
                    (new.span, new.span),
                )
