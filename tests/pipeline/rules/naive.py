"""The rules on histories, checked on each pair: slow and plainly right.

This is the other side of `brokerproof.pipeline.alone`: intervals as in `naive_intervals`, the rules
of `models/contract/history.py` asked with plain numbers, and of each violation the strongest
witness.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from brokerproof.models.contract.history import (
    GIVEN_BEFORE_PUBLISHED,
    HELD_BY_TWO,
    SHOWN_WHILE_HELD,
    Span,
    WaitingInterval,
)
from brokerproof.pipeline.alone import judged_alone
from brokerproof.spec.histories import NEVER, Record
from tests.pipeline.intervals.naive_ambiguous import told_apart
from tests.pipeline.intervals.naive_intervals import (
    NOTHING,
    Delivery,
    Facts,
    Message,
    Wait,
    messages_of,
    seen,
    unseen_until,
    waits_of,
)
from tests.pipeline.recorders import table_of
from tests.pipeline.rules.naive_several import (
    about_several,
    beyond_windows,
    first_within,
    found_drained,
    rows_of,
)
from tests.pipeline.rules.naive_stalls import stalls_of
from tests.pipeline.rules.naive_violations import Violation, told


def judged_naively(
    records: Sequence[Record],
    places: Sequence[int] | None = None,
    stalled_after: int | None = None,
) -> set[Violation]:
    """Return the violations of a history; places say in which order the records stand.

    `stalled_after` is how long a message may wait for a consumer that is free, None for ever.
    """
    if places is not None:
        records = [each for _, each in sorted(zip(places, records, strict=True), key=_place)]
    as_recorded = records
    records = as_subscribed(told_apart(records))
    facts = Facts(records)
    messages = list(messages_of(records, facts))
    waits = [wait for message in messages for wait in waits_of(message)]
    found = [
        *(each for message in messages for each in _about_one(message, facts)),
        *(each for wait in waits for each in _about_one_wait(wait, facts)),
        *about_several(list(rows_of(messages, waits, records, facts))),
        *beyond_windows(waits, records),
    ]
    if stalled_after is not None:
        found += _stalled(waits, facts, as_recorded, stalled_after)
    strongest: dict[tuple[str, str, str, str], Violation] = {}
    for each in found:
        known = strongest.get(each.key)
        if known is None or each.weakness < known.weakness:
            strongest[each.key] = each
    return set(beyond_gets(sorted(strongest.values(), key=lambda each: each.key), facts))


def beyond_gets(found: Sequence[Violation], facts: Facts) -> Iterator[Violation]:
    """Yield violations without the losses that gets without an answer explain, one each.

    A loss is explained if a get is left for it and for all losses that were found before it.
    """
    explained: dict[Span, Violation] = {}

    def finds_a_get(loss: Violation, tried: set[Span]) -> bool:
        """Give a loss a get, if need be by giving the loss that has the get another one."""
        for get in facts.unanswered_gets(loss.run, loss.queue):
            if get in tried or get.start > loss.late_end or loss.early_start > get.end:
                continue
            tried.add(get)
            if get not in explained or finds_a_get(explained[get], tried):
                explained[get] = loss
                return True
        return False

    for each in sorted(found, key=lambda one: one.late_end):
        if each.rule != "more-lost-than-gets-took" or not finds_a_get(each, set()):
            yield each


def accused(records: Sequence[Record]) -> set[str]:
    """Return the requirements that a history breaks, which the kernels and this evaluator name."""
    found = set(judged_alone(table_of(records)).violations.column("requirement").to_pylist())
    assert found == {each.requirement for each in judged_naively(records)}
    return found


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


def _span(record: Record) -> Span:
    return Span(record.start, seen(record))


def _about_one(message: Message, facts: Facts) -> Iterator[Violation]:
    yield from _invented(message)
    yield from _held_by_two(message, facts)
    yield from _told_as_new(message, facts)
    yield from _shown_while_held(message)
    yield from _shown_again(message, facts)


def _invented(message: Message) -> Iterator[Violation]:
    for record in [*(each.record for each in message.deliveries), *message.views]:
        span = _span(record)
        if message.publish is None:
            yield told("never-published", message, -span.end, None, (span, span))
            continue
        end = message.publish.end
        published = Span(message.publish.start, NEVER if end is None else end)
        itself = WaitingInterval(published, published, NOTHING, span, NOTHING, NOTHING)
        if GIVEN_BEFORE_PUBLISHED.shown_by(itself, itself):
            strength = published.start - span.end
            yield told("given-before-published", message, strength, None, (span, published))


def _held(each: Delivery) -> WaitingInterval:
    return WaitingInterval(
        NOTHING, NOTHING, NOTHING, each.span, NOTHING, Span(each.back.start, NEVER)
    )


def _held_by_two(message: Message, facts: Facts) -> Iterator[Violation]:
    """Hold each delivery against the one that was seen before it."""
    for early, late in itertools.pairwise(message.deliveries):
        if HELD_BY_TWO.shown_by(_held(late), _held(early)):
            subscriber, spans = early.record.consumer, (late.span, early.span)
            requirement = "settled-once" if len(early.settled_by) > 1 else ""
            crashes = facts.of_kind("crash", message.run)
            if early.settled_by and any(
                early.end < crash.start and crash.end < late.start for crash in crashes
            ):
                requirement = "settlement-survives-crash"
            yield told("held-by-two", message, -late.end, subscriber, spans, requirement)


def _told_as_new(message: Message, facts: Facts) -> Iterator[Violation]:
    """Find deliveries without a required redelivered flag; after a crash it is not required."""
    if not message.deliveries:
        return
    first = message.deliveries[0]
    crash = facts.first_crash_since(message.run, min(each.start for each in message.deliveries))
    for number, late in enumerate(message.deliveries[1:], 1):
        if all(each.back.start > late.end for each in message.deliveries[:number]):
            continue
        forgotten = crash is not None and crash.start <= late.end
        if late.record.redelivered is False and late.record.start > first.end and not forgotten:
            spans = (late.span, first.span)
            yield told("told-as-new", message, -late.end, first.record.consumer, spans)


def _shown_while_held(message: Message) -> Iterator[Violation]:
    for record in message.views:
        shown = WaitingInterval(NOTHING, NOTHING, NOTHING, _span(record), NOTHING, NOTHING)
        holders = [
            each for each in message.deliveries if SHOWN_WHILE_HELD.shown_by(shown, _held(each))
        ]
        if holders:
            longest = max(holders, key=lambda each: int(each.back.start))
            subscriber, spans = longest.record.consumer, (_span(record), longest.span)
            yield told("shown-while-held", message, -seen(record), subscriber, spans)


def _shown_again(message: Message, facts: Facts) -> Iterator[Violation]:
    queue = (message.run, message.queue)
    if facts.levels(*queue) or not facts.is_declared(*queue) or facts.unordered(*queue):
        return
    to_place = facts.returns(*queue)
    returned = any(each.back.start < NEVER for each in message.deliveries)
    backs = [each.back for each in message.deliveries] + facts.unseen_returns(*queue)
    views = sorted(message.views, key=lambda each: (str(each.consumer), each.position))
    for early, late in itertools.pairwise(views):
        between = any(b.start <= seen(late) and early.start <= b.end for b in backs)
        if early.consumer == late.consumer and (to_place or not between):
            requirement = "browser-never-rewound" if returned and to_place else ""
            spans = (_span(late), _span(early))
            yield told("shown-again", message, -seen(late), early.consumer, spans, requirement)


def _about_one_wait(wait: Wait, facts: Facts) -> Iterator[Violation]:
    yield from _left_behind(wait, facts)
    yield from _kept(wait, facts)


def _left_behind(wait: Wait, facts: Facts) -> Iterator[Violation]:
    message = wait.message
    when = found_drained(wait, facts)
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
    elif any(seen(each) >= wait.begun.start for each in message.views):
        requirement = "browser-takes-nothing"
    else:
        requirement = ""
    gets = facts.unanswered_gets(message.run, message.queue)
    may_be = [each for each in gets if wait.begun.start <= each.end and each.start <= when.end]
    rule = "left-behind"
    if wait.given is None and may_be:
        rule = "more-lost-than-gets-took"
        requirement = requirement if requirement == "survives-restart" else ""
    yield told(rule, message, -when.end, None, (when, wait.begun), requirement)
    if requirement == "browser-takes-nothing":
        yield told(rule, message, -when.end, None, (when, wait.begun))


def _kept(wait: Wait, facts: Facts) -> Iterator[Violation]:
    """Find messages delivered although a purge, deletion or crash should have removed them."""
    message, given = wait.message, wait.given
    if given is None:
        return
    run, queue = message.run, message.queue
    begun = int(wait.begun.end)
    # A purge does not drop acquired messages.
    at_rest = max(begun, unseen_until(wait, facts))
    breaks = [
        ("kept-after-a-purge", facts.of_kind("purge", run, queue), at_rest),
        ("kept-after-a-deletion", facts.of_kind("delete", run, queue), begun),
    ]
    assert message.publish is not None
    if not (message.publish.persistent and facts.may_be_durable(run, queue)):
        crashes = facts.of_kind("crash", run)
        breaks.append(("kept-after-a-crash", crashes, begun))
    for rule, spans, since in breaks:
        when = first_within(spans, since, wait.left)
        if when is not None:
            yield told(rule, message, -when.end, None, (given.span, when))


def _stalled(
    waits: Sequence[Wait], facts: Facts, records: Sequence[Record], bound: int
) -> Iterator[Violation]:
    lost = [wait for wait in waits if found_drained(wait, facts) is not None]
    for each in stalls_of(waits, lost, facts, records, bound):
        yield told(
            "stalled",
            each.wait.message,
            each.end - each.start,
            each.free.consumer,
            (Span(each.start, each.end), Span(each.wait.begun.start, each.begun)),
        )
