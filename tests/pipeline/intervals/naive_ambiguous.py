"""Which records can be told apart, record by record with plain loops.

The other side of `pipeline/intervals/subscribers.py`, `pipeline/intervals/streams.py` and
`pipeline/intervals/ambiguous.py`, and shares no code with them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from brokerproof.spec.histories import NEVER, Record

Message = tuple[str, str | None, str | None]
SETTLEMENTS = ("acknowledge", "reject", "release")


def latest(record: Record) -> int:
    """Return by when it had certainly happened."""
    return record.end if record.outcome == "ok" and record.end is not None else NEVER


def message_of(record: Record) -> Message:
    """Return which message a record is about."""
    return record.run, record.queue, record.message


def told_apart(records: Sequence[Record]) -> list[Record]:
    """Return the records of messages that can be told apart, each subscription a subscriber."""
    named, unclear = _by_subscription(records)
    ambiguous = unclear | _published_again(records) | _contradicting(named)
    return [each for each in named if each.message is None or message_of(each) not in ambiguous]


def _published_again(records: Sequence[Record]) -> set[Message]:
    many = Counter(
        message_of(each) for each in records if each.op == "publish" and each.outcome != "failed"
    )
    return {message for message, times in many.items() if times > 1}


def _contradicting(records: Sequence[Record]) -> set[Message]:
    """Return the messages of deliveries at one position, or whose positions go against time."""
    given = [each for each in records if each.op == "deliver" and each.outcome != "failed"]
    found = set()
    for one, other in itertools.permutations(given, 2):
        same = (one.run, one.queue, one.consumer) == (other.run, other.queue, other.consumer)
        if same and one.position is not None and other.position is not None:
            against_time = one.position < other.position and (other.end or 0) < one.start
            if one.position == other.position or against_time:
                found |= {message_of(one), message_of(other)}
    return found


def _by_subscription(records: Sequence[Record]) -> tuple[list[Record], set[Message]]:
    """Return the records with subscribers renamed, and the messages of unknown subscribers."""
    happened = [each for each in records if each.outcome != "failed"]
    subscribed: dict[tuple[str, str | None], list[Record]] = {}
    for each in happened:
        if each.op == "consume":
            subscribed.setdefault((each.run, each.consumer), []).append(each)
    reused = {
        key: sorted(of_name, key=lambda e: (e.start, latest(e), e.queue or "", e.channel or ""))
        for key, of_name in subscribed.items()
        if len(of_name) > 1
    }
    names = {
        id(each): f"{each.consumer}{_behind_the_name(of_name, number)}"
        for of_name in reused.values()
        for number, each in enumerate(of_name)
    }
    taken: dict[tuple[Message, str | None, int | None], set[str | None]] = {}
    result, unclear = [], set()
    for each in records:
        of_name = reused.get((each.run, each.consumer), [])
        if not of_name or each.op in SETTLEMENTS or each.outcome == "failed":
            result.append(each)
        elif each.op == "consume":
            result.append(replace(each, consumer=names[id(each)]))
        elif each.op == "cancel":
            concerned = [s for s in of_name if _is_cancelled_by(s, of_name, each)]
            result += [replace(each, consumer=names[id(s)]) for s in concerned]
        elif each.op == "deliver":
            there = [s for s in of_name if s.queue == each.queue]
            there = [s for s in there if s.channel == each.channel] or there
            there = [
                s
                for s in there
                if s.start <= (each.end or 0)
                and max(s.start, _left(s, of_name, happened)) >= each.start
            ]
            to = names[id(there[0])] if len(there) == 1 else None
            taken.setdefault((message_of(each), each.consumer, each.position), set()).add(to)
            result.append(replace(each, consumer=to or each.consumer))
        else:
            result.append(each)
    for (message, _, _), to_whom in taken.items():
        if None in to_whom or len(to_whom) > 1:
            unclear.add(message)
    return [_settled_by_subscriber(each, taken) for each in result], unclear


def _behind_the_name(of_name: Sequence[Record], number: int) -> str:
    """Return what tells a subscription from the others of its name; the first keeps it."""
    start = of_name[number].start
    before = sum(each.start == start for each in of_name[:number])
    since = f"{start:,}" if not before else f"{start:,}, {before + 1}"
    return f" (subscribed at {since})" if number else ""


def _settled_by_subscriber(
    each: Record, taken: dict[tuple[Message, str | None, int | None], set[str | None]]
) -> Record:
    to_whom = taken.get((message_of(each), each.consumer, each.position), set())
    if each.op not in SETTLEMENTS or len(to_whom) != 1:
        return each
    [to] = to_whom
    return replace(each, consumer=to or each.consumer)


def _is_cancelled_by(one: Record, of_name: Sequence[Record], cancel: Record) -> bool:
    """Whether a cancel is of this subscription: the last that had begun on its channel."""
    one_channel = len({each.channel for each in of_name}) == 1
    begun = [
        each
        for each in of_name
        if latest(each) <= cancel.start
        and (each.channel == cancel.channel or (one_channel and cancel.channel is None))
    ]
    return bool(begun) and begun[-1] is one


def _left(one: Record, of_name: Sequence[Record], happened: Sequence[Record]) -> int:
    """Return by when a subscription was certainly given nothing more."""
    ends = [
        latest(each)
        for each in happened
        if each.run == one.run
        and (
            (each.op == "cancel" and each.consumer == one.consumer)
            and _is_cancelled_by(one, of_name, each)
        )
    ]
    ends += [
        latest(each)
        for each in happened
        if each.run == one.run and each.start >= one.start
        if each.op == "crash"
        or (each.op == "close" and one.channel is not None and each.channel == one.channel)
        or (each.op == "delete" and each.queue == one.queue)
    ]
    at = of_name.index(one)
    if one.channel is not None:
        ends += [latest(each) for each in of_name[at + 1 :] if each.channel == one.channel]
    return min(ends, default=NEVER)
