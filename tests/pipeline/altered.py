"""Small histories altered at random, which may be wrong in ways that no test names."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from brokerproof.spec.histories import Record
from tests.pipeline.plain_queues import Shape
from tests.pipeline.random_histories import simulated
from tests.pipeline.recorders import blurred, recorded
from tests.pipeline.rules.brute_force import EVENTS_MAX

Records = list[Record]
_SETTLES = ("acknowledge", "reject", "release")
WIDTHS: Final = (0, 10, 30, 100)

_SMALL = Shape(
    steps=16,
    queues=1,
    messages=5,
    levels=(None,),
    returns=False,
    gets=False,
    breaks=False,
    browsers=False,
    windows=False,
    elsewhere=0,
    may_drop=0,
    selective=0,
    drained=0,
)

CLASSES: Final[dict[str, Shape]] = {
    "first in, first out": _SMALL,
    "empty gets": dataclasses.replace(_SMALL, gets=True),
    "drained": dataclasses.replace(_SMALL, drained=1),
    "priorities": dataclasses.replace(_SMALL, levels=(2, 3)),
    "returns": dataclasses.replace(_SMALL, returns=True),
    "windows": dataclasses.replace(_SMALL, windows=True),
    "browsers": dataclasses.replace(_SMALL, browsers=True),
    "gets without an answer": dataclasses.replace(_SMALL, gets=True, drained=1, unanswered=0.5),
    "crashes": dataclasses.replace(_SMALL, gets=True, drained=1, crashes=6, unknown=0.3),
    "everything": Shape(
        steps=16, queues=1, messages=5, elsewhere=0.2, may_drop=0, selective=0, unknown=0.15
    ),
}
"""The kinds of histories that are measured apart from each other."""


def altered_history(seed: int, shape: Shape) -> Records | None:
    """Return a history with up to three alterations, None where it came out long or senseless."""
    chance = random.Random(seed)  # noqa: S311
    happened = simulated(seed, shape).happened
    records = blurred(happened, seed, chance.choice(WIDTHS), natural=True)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        records = chance.choice(ALTERATIONS)(records, chance)
    events = sum(each.op not in {"declare", "consume", "cancel"} for each in records)
    return records if events <= EVENTS_MAX and makes_sense(records) else None


def makes_sense(records: Sequence[Record]) -> bool:
    """Whether a client can have seen it so, whatever the broker does.

    What it settles it has seen, the spans of the deliveries to it follow each other, and a broker
    that stopped was started again.
    """
    given = [records[number] for number in _of(records, "deliver")]
    spans = {(each.consumer, each.position): (each.start, each.end or 0) for each in given}
    settled = [records[number] for number in _of(records, *_SETTLES)]
    known = {(each.consumer, each.position, each.message) for each in given}
    power = [records[number] for number in _of(records, "crash", "restart")]
    return (
        all((each.consumer, each.position, each.message) in known for each in settled)
        and all(spans[each.consumer, each.position][1] <= each.start for each in settled)
        and all(each.start <= (each.end or 0) for each in given)
        and all(
            spans[one.consumer, one.position][edge] <= spans[other.consumer, other.position][edge]
            for one in given
            for other in given
            for edge in (0, 1)
            if one.consumer == other.consumer and (one.position or 0) < (other.position or 0)
        )
        and all((each.op == "restart") == bool(number % 2) for number, each in enumerate(power))
        and all(one.start <= (other.end or 0) for one, other in itertools.combinations(power, 2))
    )


def _of(records: Sequence[Record], *kinds: str) -> list[int]:
    return [number for number, each in enumerate(records) if each.op in kinds]


def _shifted(records: Records, chance: random.Random) -> Records:
    """Shift an event in time."""
    number = chance.randrange(len(records))
    record, by = records[number], chance.randint(-60, 60)
    by = max(by, -record.start)
    end = None if record.end is None else record.end + by
    return _with(records, number, replace(record, start=record.start + by, end=end))


def _narrowed(records: Records, chance: random.Random) -> Records:
    """Pretend to know better when an event was."""
    number = chance.randrange(len(records))
    record = records[number]
    if record.end is None:
        return records
    moment = chance.randint(record.start, record.end)
    return _with(records, number, replace(record, start=moment, end=moment))


def _exchanged(records: Records, chance: random.Random) -> Records:
    """Exchange the messages of two deliveries, and of their settlements."""
    given = _of(records, "deliver")
    if len(given) < 2:
        return records
    one, other = (records[number] for number in chance.sample(given, 2))
    named = {
        (one.consumer, one.position): other.message,
        (other.consumer, other.position): one.message,
    }
    return [
        replace(each, message=named.get((each.consumer, each.position), each.message))
        for each in records
    ]


def _left_out(records: Records, chance: random.Random) -> Records:
    """Leave out a publish, a delivery, a settlement or an empty get."""
    numbers = _of(records, "publish", "deliver", "empty", *_SETTLES)
    return _without(records, chance.choice(numbers)) if numbers else records


def _unanswered(records: Records, chance: random.Random) -> Records:
    """Let the answer of an operation be unknown."""
    numbers = _of(records, "publish", "purge", "close", *_SETTLES)
    if not numbers:
        return records
    number = chance.choice(numbers)
    return _with(records, number, replace(records[number], outcome="unknown", end=None))


def _other_priority(records: Records, chance: random.Random) -> Records:
    numbers = _of(records, "publish")
    if not numbers:
        return records
    number = chance.choice(numbers)
    return _with(records, number, replace(records[number], priority=chance.randrange(3)))


def _other_settlement(records: Records, chance: random.Random) -> Records:
    numbers = _of(records, *_SETTLES)
    if not numbers or not _of(records, "release", "reject"):
        return records
    number = chance.choice(numbers)
    kind = chance.choice(("acknowledge", "release"))
    return _with(records, number, replace(records[number], op=kind))


def _given_again(records: Records, chance: random.Random) -> Records:
    """Deliver to a new subscriber what was delivered before, or whatever was published."""
    numbers = _of(records, "publish")
    if not numbers:
        return records
    published = records[chance.choice(numbers)]
    start = published.start + chance.randint(0, 200)
    delivery = recorded(
        "deliver",
        start,
        start + chance.choice((0, 20)),
        queue=published.queue,
        message=published.message,
        consumer="another",
        position=sum(each.consumer == "another" for each in records),
        mode="automatic",
    )
    return [*records, delivery]


def _with(records: Records, number: int, record: Record) -> Records:
    return [*records[:number], record, *records[number + 1 :]]


def _without(records: Records, number: int) -> Records:
    return [*records[:number], *records[number + 1 :]]


ALTERATIONS: Final[tuple[Callable[[Records, random.Random], Records], ...]] = (
    _shifted,
    _shifted,
    _narrowed,
    _exchanged,
    _exchanged,
    _left_out,
    _unanswered,
    _other_priority,
    _other_settlement,
    _given_again,
)
