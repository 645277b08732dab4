"""Recordings of what happened: the moments themselves, or spans around them, never beside them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from brokerproof.pipeline.tables import batch_of
from brokerproof.spec.histories import MUST_HAVE, Kind, Record


def recorded(op: Kind, start: int, end: int | None, **fields: Any) -> Record:
    """Return a record, of queue q if it is about a queue and none is named."""
    if "queue" in MUST_HAVE[op]:
        fields.setdefault("queue", "q")
    return Record(op=op, start=start, end=end, **fields)


def published(message: str, start: int, end: int, **more: Any) -> Record:
    """Return the publish of a message."""
    return recorded("publish", start, end, message=message, **more)


def given(
    message: str, start: int, end: int, *, subscriber: str = "c", position: int = 0, **more: Any
) -> Record:
    """Return the delivery of a message to a subscriber, on a channel of its own."""
    of_subscriber = {
        "consumer": subscriber,
        "channel": f"channel of {subscriber}",
        "position": position,
    }
    return recorded("deliver", start, end, message=message, **of_subscriber, **more)


def table_of(records: Sequence[Record], first: int = 1) -> pa.Table:
    """Return records as a table, at the lines of one file."""
    return pa.Table.from_batches([batch_of(records, range(first, first + len(records)))])


@dataclass(frozen=True)
class Happened:
    """A record of what was done, and when it really happened; None if it never did."""

    record: Record
    moment: int | None


def sharp(happened: Iterable[Happened]) -> list[Record]:
    """Return a recording that knows each moment."""
    return [each.record for each in happened]


def blurred(
    happened: Sequence[Happened], seed: int, width: int, *, natural: bool = False
) -> list[Record]:
    """Return a recording that knows each moment up to `width` before and after it.

    In a natural one a client has seen what it settles, and the spans of what it is given follow
    each other.
    """
    chance = random.Random(seed)  # noqa: S311

    def blur(each: Happened) -> Record:
        before, after = (chance.choice((0, 1, chance.randint(0, width))) for _ in range(2))
        start = max(0, each.record.start - before)
        end = None if each.record.end is None else each.record.end + after
        return msgspec.structs.replace(each.record, start=start, end=end)

    records = [blur(each) for each in happened]
    if not natural:
        return records
    given = {
        (each.record.consumer, each.record.position): number
        for number, each in enumerate(happened)
        if each.record.op == "deliver"
    }
    for number, each in enumerate(happened):
        if each.record.op in {"acknowledge", "reject", "release", "extend"}:
            of = given[each.record.consumer, each.record.position]
            seen = chance.randint(happened[of].record.start, each.record.start)
            seen = min(seen, records[of].end or 0)
            records[of] = msgspec.structs.replace(records[of], end=seen)
            start = max(seen, records[number].start)
            records[number] = msgspec.structs.replace(records[number], start=start)
    return as_streams(records)


def as_streams(records: Sequence[Record]) -> list[Record]:
    """Return the same records, deliveries to each subscriber as narrow as their order makes them.

    None began before those that came before it began, or was seen after those that came later.
    """
    streams: dict[str | None, list[Record]] = {}
    for each in records:
        if each.op == "deliver":
            streams.setdefault(each.consumer, []).append(each)
    narrow: dict[tuple[str | None, int | None], tuple[int, int]] = {}
    for subscriber, given in streams.items():
        for each in given:
            before = [other.start for other in given if _place(other) <= _place(each)]
            after = [other.end or 0 for other in given if _place(other) >= _place(each)]
            narrow[subscriber, each.position] = (max(before), min(after))
    return [
        msgspec.structs.replace(each, start=start, end=end) if each.op == "deliver" else each
        for each in records
        for start, end in [narrow.get((each.consumer, each.position), (0, 0))]
    ]


def _place(delivery: Record) -> int:
    assert delivery.position is not None
    return delivery.position
