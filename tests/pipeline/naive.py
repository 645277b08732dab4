"""The rules on histories asked of each pair: slow, and as plainly right as it can be written.

This is the other side of `brokerproof.pipeline.alone`: the passages of `naive_passages`, the rules
of `models/history.py` asked with plain numbers, and of each violation the strongest witness.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from brokerproof.models.history import (
    GIVEN_BEFORE_PUBLISHED,
    HELD_BY_TWO,
    OVERTAKES_AN_EQUAL,
    OVERTAKES_AN_EQUAL_IN_A_STREAM,
    OVERTAKES_WHAT_RETURNED,
    SHOWN_WHILE_HELD,
    TAKEN_WHILE_ANOTHER_WAITED,
    TAKEN_WHILE_ANOTHER_WAITED_IN_A_STREAM,
    Passage,
    Rule,
    Span,
)
from brokerproof.pipeline.violations import RULES
from brokerproof.spec.histories import NEVER, Record
from tests.pipeline.naive_passages import (
    NOTHING,
    Delivery,
    Facts,
    Message,
    Wait,
    certain_end,
    messages_of,
    seen,
    takers_in_order,
    unseen_until,
    waits_of,
)


class Violation(NamedTuple):
    """A violation, in the fields of `pipeline/violations.py`."""

    requirement: str
    run: str
    queue: str
    message: str
    rule: str
    strength: int
    witness: str | None
    late_start: int
    late_end: int
    early_start: int
    early_end: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is one violation, however often it is shown."""
        return (self.requirement, self.run, self.queue, self.message)

    @property
    def weakness(self) -> tuple[object, ...]:
        """The order in which one of several witnesses is chosen."""
        named = (self.witness is None, self.witness or "")
        times = (self.late_start, self.late_end, self.early_start, self.early_end)
        return (RULES.index(self.rule), -self.strength, named, *times)


def judged_naively(
    records: Sequence[Record], places: Sequence[int] | None = None
) -> set[Violation]:
    """Return the violations of a history; places say in which order the records stand."""
    if places is not None:
        records = [each for _, each in sorted(zip(places, records, strict=True), key=_place)]
    records = as_subscribed(without_doubtful_messages(records))
    facts = Facts(records)
    messages = list(messages_of(records, facts))
    waits = [wait for message in messages for wait in waits_of(message)]
    found = [
        *(each for message in messages for each in _about_one(message, facts)),
        *(each for wait in waits for each in _about_one_wait(wait, facts)),
        *_about_several(list(_rows(messages, waits, records, facts))),
        *_beyond_windows(waits, records),
    ]
    strongest: dict[tuple[str, str, str, str], Violation] = {}
    for each in found:
        known = strongest.get(each.key)
        if known is None or each.weakness < known.weakness:
            strongest[each.key] = each
    return set(strongest.values())


def without_doubtful_messages(records: Sequence[Record]) -> list[Record]:
    """Return the records without those of messages that were published more than once."""
    published = Counter(
        (each.run, each.queue, each.message)
        for each in records
        if each.op == "publish" and each.outcome != "failed"
    )
    return [
        each
        for each in records
        if each.message is None or published[each.run, each.queue, each.message] < 2
    ]


def as_subscribed(records: Sequence[Record]) -> list[Record]:
    """Return the records, each delivery of the mode in which its consumer subscribed."""
    modes = {
        (each.run, each.consumer): each.mode
        for each in records
        if each.op == "consume" and each.outcome != "failed" and each.mode != "acknowledge"
    }
    return [
        msgspec.structs.replace(each, mode=modes.get((each.run, each.consumer), each.mode))
        if each.op == "deliver"
        else each
        for each in records
    ]


def _place(pair: tuple[int, Record]) -> int:
    return pair[0]


# One message.


def _told(
    requirement: str,
    message: Message,
    rule: str,
    strength: int,
    witness: str | None,
    spans: tuple[Span, Span],
) -> Violation:
    late, early = spans
    key = (requirement, message.run, message.queue, message.name)
    times = (late.start, late.end, early.start, early.end)
    return Violation(*key, rule, strength, witness, *times)


def _span(record: Record) -> Span:
    return Span(record.start, seen(record))


def _about_one(message: Message, facts: Facts) -> Iterator[Violation]:
    yield from _invented(message)
    yield from _held_by_two(message)
    yield from _told_as_new(message, facts)
    yield from _shown_while_held(message)
    yield from _shown_again(message, facts)


def _invented(message: Message) -> Iterator[Violation]:
    for record in [*(each.record for each in message.deliveries), *message.views]:
        span = _span(record)
        if message.publish is None:
            yield _told(
                "nothing-invented", message, "never-published", -span.end, None, (span, span)
            )
            continue
        end = message.publish.end
        published = Span(message.publish.start, NEVER if end is None else end)
        itself = Passage(published, published, NOTHING, span, NOTHING, NOTHING)
        if GIVEN_BEFORE_PUBLISHED.shown_by(itself, itself):
            strength = published.start - span.end
            yield _told(
                "nothing-invented",
                message,
                "given-before-published",
                strength,
                None,
                (span, published),
            )


def _held(each: Delivery) -> Passage:
    return Passage(NOTHING, NOTHING, NOTHING, each.span, NOTHING, Span(each.back.start, NEVER))


def _held_by_two(message: Message) -> Iterator[Violation]:
    """Hold each delivery against the one that was seen before it."""
    for early, late in itertools.pairwise(message.deliveries):
        if HELD_BY_TWO.shown_by(_held(late), _held(early)):
            requirement = "settled-once" if len(early.settled_by) > 1 else "nothing-twice"
            yield _told(
                requirement,
                message,
                "held-by-two",
                -late.end,
                early.record.consumer,
                (late.span, early.span),
            )


def _told_as_new(message: Message, facts: Facts) -> Iterator[Violation]:
    """Find what had been given and is not told so; after a crash it need not be."""
    if not message.deliveries:
        return
    first = message.deliveries[0]
    crash = facts.first_crash_since(message.run, min(each.start for each in message.deliveries))
    for late in message.deliveries[1:]:
        forgotten = crash is not None and crash.start <= late.end
        if late.record.redelivered is False and late.record.start > first.end and not forgotten:
            yield _told(
                "redelivered-flag",
                message,
                "told-as-new",
                -late.end,
                first.record.consumer,
                (late.span, first.span),
            )


def _shown_while_held(message: Message) -> Iterator[Violation]:
    for record in message.views:
        shown = Passage(NOTHING, NOTHING, NOTHING, _span(record), NOTHING, NOTHING)
        holders = [
            each for each in message.deliveries if SHOWN_WHILE_HELD.shown_by(shown, _held(each))
        ]
        if holders:
            longest = max(holders, key=lambda each: int(each.back.start))
            yield _told(
                "browser-sees-available",
                message,
                "shown-while-held",
                -seen(record),
                longest.record.consumer,
                (_span(record), longest.span),
            )


def _shown_again(message: Message, facts: Facts) -> Iterator[Violation]:
    if facts.levels(message.run, message.queue):
        return
    returned = any(each.back.start < NEVER for each in message.deliveries)
    views = sorted(message.views, key=lambda each: (str(each.consumer), each.position))
    for early, late in itertools.pairwise(views):
        if early.consumer == late.consumer:
            yield _told(
                "browser-never-rewound" if returned else "browser-once",
                message,
                "shown-again",
                -seen(late),
                early.consumer,
                (_span(late), _span(early)),
            )


def _about_one_wait(wait: Wait, facts: Facts) -> Iterator[Violation]:
    yield from _left_behind(wait, facts)
    yield from _kept(wait, facts)


def _first_within(spans: Iterable[Span], after: int, until: int) -> Span | None:
    inside = [span for span in spans if after < span.start and span.end < until]
    return min(inside, key=lambda span: (int(span.end), int(span.start)), default=None)


def _found_drained(wait: Wait, facts: Facts) -> Span | None:
    """Return when the queue of a wait was found drained, if the message waited all the time."""
    message = wait.message
    drained = [
        Span(each.start, seen(each))
        for each in facts.records
        if (each.op, each.run, each.queue) == ("drained", message.run, message.queue)
        and each.outcome == "ok"
    ]
    # Nobody held anything when the queue was drained, so nobody had it unseen.
    return _first_within(drained, wait.begun.end, certain_end(wait, facts))


def _left_behind(wait: Wait, facts: Facts) -> Iterator[Violation]:
    message = wait.message
    when = _found_drained(wait, facts)
    if when is None:
        return
    crash = facts.first_crash_since(message.run, wait.begun.start)
    settlements = None if wait.returned_by is None else len(wait.returned_by.settled_by)
    if crash is not None and crash.start < when.start:
        requirement = "survives-restart"
    elif settlements is not None and settlements > 1:
        requirement = "settled-once"
    elif settlements == 0:
        requirement = "close-releases"
    elif message.views:
        requirement = "browser-takes-nothing"
    else:
        requirement = "nothing-lost"
    yield _told(requirement, message, "left-behind", -when.end, None, (when, wait.begun))


def _kept(wait: Wait, facts: Facts) -> Iterator[Violation]:
    """Find what was given after all of a purge, deletion or crash for which it had waited."""
    message, given = wait.message, wait.given
    if given is None:
        return
    run, queue = message.run, message.queue
    begun = int(wait.begun.end)
    # What somebody has is not dropped by a purge.
    at_rest = max(begun, unseen_until(wait, facts))
    breaks = [
        ("purge-drops", "kept-after-a-purge", facts.of_kind("purge", run, queue), at_rest),
        ("delete-drops", "kept-after-a-deletion", facts.of_kind("delete", run, queue), begun),
    ]
    assert message.publish is not None
    if not (message.publish.persistent and facts.may_be_durable(run, queue)):
        crashes = facts.of_kind("crash", run)
        breaks.append(("transient-is-lost", "kept-after-a-crash", crashes, begun))
    for requirement, rule, spans, since in breaks:
        when = _first_within(spans, since, wait.left)
        if when is not None:
            yield _told(requirement, message, rule, -when.end, None, (given.span, when))


# Several messages of a queue.


@dataclass(frozen=True)
class Row:
    """A passage, a view or a get that found nothing, as the rules about several messages see it."""

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
    passage: Passage


def _rows(
    messages: Sequence[Message], waits: Sequence[Wait], records: Sequence[Record], facts: Facts
) -> Iterator[Row]:
    for wait in waits:
        own = wait.message
        known = wait.passage
        unseen = unseen_until(wait, facts)
        begun = max(int(known.begun.end), unseen)
        passage = Passage(
            known.published,
            Span(begun, begun),
            Span(certain_end(wait, facts) if _found_drained(wait, facts) is None else -1, NEVER),
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
            passage,
        )
    for message in messages:
        yield from _first_views(message, facts)
    for each in records:
        if each.op == "empty" and each.outcome == "ok":
            passage = Passage(NOTHING, NOTHING, NOTHING, _span(each), NOTHING, NOTHING)
            name = f"{each.consumer} at {each.start}"
            whose = (each.run, str(each.queue), name, 0, 0, each.consumer)
            yield Row("nothing", *whose, False, False, False, False, False, False, passage)


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
        passage = Passage(published, begun, Span(NEVER, NEVER), given, place, NOTHING)
        whose = (*queue, message.name, 0, 0, each.consumer)
        yield Row("view", *whose, True, False, True, True, True, True, passage)


Test = Callable[[Row], bool]
Pair = Callable[[Row, Row], bool]


def _same_queue(late: Row, early: Row) -> bool:
    return (late.run, late.queue) == (early.run, early.queue)


def _equals(late: Row, early: Row) -> bool:
    return _same_queue(late, early) and late.level == early.level


def _same_taker(late: Row, early: Row) -> bool:
    return _same_queue(late, early) and late.taker == early.taker


def _about_several(rows: Sequence[Row]) -> Iterator[Violation]:
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
                if concerned(late, early) and rule.shown_by(late.passage, early.passage)
            ]
            if shown:
                yield _overtaken(name, rule, late, shown)


def _overtaken(name: str, rule: Rule, late: Row, shown: Sequence[Row]) -> Violation:
    [(_, of_later)] = rule.late_first

    def strength(early: Row) -> int:
        return int(of_later(early.passage).start)

    early = min(shown, key=lambda e: (-strength(e), e.name, int(e.passage.begun.end)))
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
    given, of = late.passage.given, early.passage
    times = (given.start, given.end, of.begun.end, of.left.start)
    key = (requirement, late.run, late.queue, late.name)
    return Violation(*key, name, strength(early), early.name, *times)


def _beyond_windows(waits: Sequence[Wait], records: Sequence[Record]) -> Iterator[Violation]:
    """Find where a taker had seen more than its window without having begun to settle any."""
    windows = {
        (each.run, str(each.consumer)): each.window
        for each in records
        if each.op == "consume" and each.outcome != "failed" and each.window is not None
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
                yield _told(
                    "credit-not-exceeded",
                    wait.message,
                    "more-than-the-window",
                    len(held) - window,
                    new.record.consumer,
                    (new.span, new.span),
                )
