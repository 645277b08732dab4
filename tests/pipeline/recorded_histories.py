"""What every recorded history keeps, whatever the broker does: how a recorder is held to account.

None of this judges the broker, but for messages that were lost: a recording of a broker that loses
some could not be told from one of a recorder that does.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from brokerproof.candidates.amqp091.load.settlements import WRITTEN_S
from brokerproof.spec.histories import NEVER, Record, what_is_wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SETTLEMENTS = ("acknowledge", "release")
UNANSWERED = "unknown"


def complaints(history: Sequence[Record]) -> list[str]:
    """Return what is wrong with a recording, each in one line."""
    rules = (
        _forms,
        _publishes,
        _deliveries,
        _windows,
        _settlements,
        _gets,
        _leaving,
        _ends,
        _crashes,
    )
    return [complaint for rule in rules for complaint in rule(history)]


def of(history: Sequence[Record], *ops: str) -> list[Record]:
    """Return the records of some kinds."""
    return [each for each in history if each.op in ops]


def _end(record: Record) -> int:
    return NEVER if record.end is None else record.end


def _forms(history: Sequence[Record]) -> Iterator[str]:
    latest = 0
    for each in history:
        if (wrong := what_is_wrong(each)) is not None:
            yield f"unfit: {wrong}"
        if each.start < latest:
            yield f"out of order: {each}"
        if (each.end is None) != (each.outcome == UNANSWERED):
            yield f"its end does not fit its outcome: {each}"
        latest = each.start


def _publishes(history: Sequence[Record]) -> Iterator[str]:
    published = Counter(each.message for each in of(history, "publish"))
    yield from (f"published {n} times: {m}" for m, n in published.items() if n > 1)
    yield from (
        f"never published: {each.message}"
        for each in of(history, "deliver")
        if each.message not in published
    )
    given = {each.message for each in of(history, "acknowledge")}
    for each in of(history, "publish"):
        if each.outcome == "ok" and each.message not in given:
            yield f"confirmed and never acknowledged: {each.message}"


def _deliveries(history: Sequence[Record]) -> Iterator[str]:
    subscribed = {each.consumer: each for each in of(history, "consume")}
    if len(subscribed) < len(of(history, "consume")):
        yield "a consumer's name came twice"
    streams = defaultdict(list)
    for each in of(history, "deliver"):
        streams[each.consumer].append(each)
    for consumer, stream in streams.items():
        stream.sort(key=lambda each: each.position or 0)
        if [each.position for each in stream] != list(range(len(stream))):
            yield f"{consumer} has gaps in its positions, or some twice"
        if [_end(each) for each in stream] != sorted(map(_end, stream)):
            yield f"{consumer} saw its deliveries in another order"
        # A get has no subscription, and one delivery.
        if consumer in subscribed and stream[0].start < subscribed[consumer].start:
            yield f"{consumer} was given something before it subscribed"
        if consumer not in subscribed and len(stream) > 1:
            yield f"{consumer} never subscribed"


def _windows(history: Sequence[Record]) -> Iterator[str]:
    windows = {each.consumer: each.window for each in of(history, "consume")}
    begun = defaultdict(list)
    for each in of(history, *SETTLEMENTS):
        begun[each.consumer].append(each.start)
    for of_one in begun.values():
        of_one.sort()
    for each in of(history, "deliver"):
        window = windows.get(each.consumer)
        assert each.position is not None
        if window is None or each.position < window:
            continue
        needed = each.position - window + 1
        starts = begun[each.consumer]
        if len(starts) < needed or starts[needed - 1] > each.start:
            yield f"{each.consumer} had no room for its delivery {each.position}"
        elif starts[needed - 1] < each.start:
            yield f"{each.consumer} may have had room before its delivery {each.position} starts"


def _settlements(history: Sequence[Record]) -> Iterator[str]:
    given = {(each.consumer, each.position): each for each in of(history, "deliver")}
    settled = of(history, *SETTLEMENTS)
    if len({(each.consumer, each.position) for each in settled}) < len(settled):
        yield "a delivery was settled twice"
    for each in settled:
        delivery = given.get((each.consumer, each.position))
        if delivery is None or delivery.message != each.message:
            yield f"settled and never given: {each}"
        elif _end(delivery) > each.start:
            yield f"settled before it was seen: {each}"


def _gets(history: Sequence[Record]) -> Iterator[str]:
    answered = {each.consumer for each in of(history, "deliver", "empty")}
    for each in of(history, "get"):
        if each.outcome != UNANSWERED or each.consumer in answered:
            yield f"an answered get is called unanswered: {each}"


def _leaving(history: Sequence[Record]) -> Iterator[str]:
    closed = {each.channel: each for each in of(history, "close") if each.outcome == "ok"}
    for each in of(history, "deliver", *SETTLEMENTS):
        # Of the last settlements it may be unknown when they took effect.
        by = each.start if each.outcome == "unknown" else _end(each)
        if each.channel in closed and by > closed[each.channel].start:
            yield f"after its channel closed: {each}"
    last_of_all = max((_end(each) for each in of(history, *SETTLEMENTS) if each.end), default=0)
    for each in of(history, "drained"):
        if each.start < last_of_all or of(history, "deliver")[-1].start > each.start:
            yield f"{each.queue} was called drained while it was in use"


def _ends(history: Sequence[Record]) -> Iterator[str]:
    """What certainly left its queue is not there any more; what is given again has come back."""
    gone = {each.message: _end(each) for each in of(history, "acknowledge") if each.end}
    closed = {each.channel for each in of(history, "close")}
    settled = {(each.consumer, each.position) for each in of(history, *SETTLEMENTS)}
    returned = {each.message for each in of(history, "release")} | {
        each.message
        for each in of(history, "deliver")
        if each.channel in closed and (each.consumer, each.position) not in settled
    }
    crashed = bool(of(history, "crash"))
    given = Counter(each.message for each in of(history, "deliver"))
    for each in of(history, "deliver"):
        if each.start > gone.get(each.message, NEVER):
            yield f"given after it was acknowledged: {each}"
        if each.redelivered and each.message not in returned and not crashed:
            yield f"called redelivered, and never returned: {each}"
    for message, times in given.items():
        if times > 1 and message not in returned and not crashed:
            yield f"given {times} times: {message}"


def _crashes(history: Sequence[Record]) -> Iterator[str]:
    turns = of(history, "crash", "restart")
    if [each.op for each in turns] != ["crash", "restart"] * (len(turns) // 2):
        yield "crashes and restarts do not take turns"
    for before, after in itertools.pairwise(turns):
        if _end(before) > after.start:
            yield f"{after.op} began before {before.op} ended"
    for crash in of(history, "crash"):
        written = crash.start - int(WRITTEN_S * 10**9)
        for each in of(history, *SETTLEMENTS):
            if each.outcome == "ok" and each.start < crash.start and _end(each) > written:
                yield f"a killed broker may have forgotten: {each}"
