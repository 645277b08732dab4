"""Histories of any size, made by column: sound traffic through many queues, or mostly through one.

Each message is published, given to one of its queue's consumers and acknowledged: three records.
Times overlap as under load, and all required orders hold. The history is made in parts, so that
memory does not grow with the size; the same arguments make the same rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from brokerproof.pipeline.tables import COLUMNS, SCHEMA, Part
from brokerproof.spec.histories import Record

MESSAGES_OF_A_PART = 300_000
QUEUES = 100
CONSUMERS = 4
STEP_NS = 1_000


@dataclass(frozen=True)
class Traffic:
    """The number of events, and the share of them that goes through the one hot queue."""

    events: int
    hot_share: float = 0.0
    seed: int = 0

    @property
    def messages(self) -> int:
        """How many messages there are."""
        return self.events // 3


def write(traffic: Traffic, folder: Path) -> int:
    """Write a history in parts and return how many records it has."""
    folder.mkdir(parents=True)
    rows = 0
    for number, batch in enumerate(batches(traffic)):
        with Part(folder / f"part-{number:05}.parquet", ["made"]) as part:
            part.write(batch)
        rows += batch.num_rows
    return rows


def batches(traffic: Traffic) -> Iterator[pa.RecordBatch]:
    """Yield the history in parts, each with the records of some messages, in the order of time."""
    draw = np.random.default_rng(traffic.seed)
    given = np.zeros(QUEUES * CONSUMERS, dtype=np.int64)
    yield _declared(traffic)
    for first in range(0, traffic.messages, MESSAGES_OF_A_PART):
        count = min(MESSAGES_OF_A_PART, traffic.messages - first)
        yield _part(traffic, draw, given, first, count)


def _part(
    traffic: Traffic, draw: np.random.Generator, given: np.ndarray, first: int, count: int
) -> pa.RecordBatch:
    number = np.arange(first, first + count, dtype=np.int64)
    hot = draw.random(count) < traffic.hot_share
    queue = np.where(hot, 0, draw.integers(0, QUEUES, count))
    subscriber = queue * CONSUMERS + number % CONSUMERS
    position = _positions(subscriber, given)
    moment = number * STEP_NS
    # Later messages are published and delivered later, but their records overlap.
    published = (moment - draw.integers(0, 2_000, count) + 10_000, moment + 12_000)
    seen = moment + 40_000 + draw.integers(0, 20_000, count)
    delivered = (moment + 25_000, seen)
    acknowledged = (seen + 100, seen + 30_000)
    rows = []
    for op, (start, end) in (
        ("publish", published),
        ("deliver", delivered),
        ("acknowledge", acknowledged),
    ):
        taken = op != "publish"
        rows.append(
            {
                "op": np.repeat(op, count),
                "queue": queue,
                "message": number,
                "consumer": subscriber if taken else None,
                "start": start,
                "end": end,
                "position": position if taken else None,
            }
        )
    order = np.argsort(np.concatenate([each["start"] for each in rows]), kind="stable")
    columns = {}
    for name in rows[0]:
        parts = [each[name] for each in rows]
        columns[name] = _column(name, parts, count).take(pa.array(order))
    return _batch(columns, 3 * count, first)


def _positions(subscriber: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the position of each delivery in its subscriber's stream, and count them."""
    order = np.argsort(subscriber, kind="stable")
    sorted_subscribers = subscriber[order]
    begins = np.append(True, sorted_subscribers[1:] != sorted_subscribers[:-1])
    first = np.maximum.accumulate(np.where(begins, np.arange(subscriber.size), 0))
    position = np.empty(subscriber.size, dtype=np.int64)
    position[order] = np.arange(subscriber.size) - first + given[sorted_subscribers]
    given += np.bincount(subscriber, minlength=given.size)
    return position


def _column(name: str, parts: list[np.ndarray | None], count: int) -> pa.Array:
    prefix = {"queue": "q", "message": "m", "consumer": "c"}.get(name)
    arrays = []
    for part in parts:
        if part is None:
            arrays.append(pa.nulls(count, COLUMNS[name].arrow))
        elif prefix is None:
            arrays.append(pa.array(part).cast(COLUMNS[name].arrow))
        else:
            text = pa.array(np.char.add(prefix, part.astype(np.str_)))
            arrays.append(text)
    return pa.concat_arrays(arrays)


def _declared(traffic: Traffic) -> pa.RecordBatch:
    names = [f"q{n}" for n in range(QUEUES)]
    end = traffic.messages * STEP_NS + 1_000_000
    columns = {
        "op": pa.array(["declare"] * QUEUES + ["drained"] * QUEUES),
        "queue": pa.array(names * 2),
        "start": pa.array([0] * QUEUES + [end] * QUEUES, pa.int64()),
        "end": pa.array([1] * QUEUES + [end + 1] * QUEUES, pa.int64()),
    }
    return _batch(columns, 2 * QUEUES, traffic.messages)


def _batch(columns: dict[str, pa.Array], size: int, first: int) -> pa.RecordBatch:
    defaults = Record(op="crash", start=0)
    for each in SCHEMA:
        if each.name == "place":
            columns["place"] = pa.array(np.arange(3 * first, 3 * first + size, dtype=np.int64) + 1)
        elif each.name not in columns:
            columns[each.name] = pa.repeat(pa.scalar(getattr(defaults, each.name), each.type), size)
    return pa.RecordBatch.from_arrays([columns[n] for n in SCHEMA.names], schema=SCHEMA)


if __name__ == "__main__":
    events, share, target = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    print(write(Traffic(events, share), target))
