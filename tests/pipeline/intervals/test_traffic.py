"""Traffic is counted bin by bin, in parts as in the whole, and its size does not grow."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.explain.history_report import traffic_of
from brokerproof.pipeline.intervals.control import Bins
from brokerproof.pipeline.intervals.traffic import BINS, QUEUES, bins_of, spans_of, total
from brokerproof.pipeline.stages import by_message, control_of
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import recorded, table_of


def busy(seed: int, queues: int = 2, messages: int = 60) -> list[Record]:
    """Return messages that wait for a while; some are never delivered."""
    chance = random.Random(seed)  # noqa: S311
    records = [Record(op="declare", queue="quiet", start=0, end=1)]
    for number in range(messages):
        at = chance.randrange(10**6)
        queue, message = f"q{chance.randrange(queues)}", f"m{number}"
        records.append(Record(op="publish", queue=queue, message=message, start=at, end=at + 3))
        if chance.random() < 0.8:
            seen = at + chance.randrange(10**5)
            consumer = f"c{number}"
            given = recorded("deliver", at, seen, message=message, consumer=consumer, position=0)
            records.append(replace(given, queue=queue))
    return records


def counted(records: list[Record], queue: str) -> dict[str, list[int]]:
    """Count the waits of a queue one by one."""
    published = {r.message: r.start for r in records if r.queue == queue and r.op == "publish"}
    seen = {r.message: r.end or 0 for r in records if r.queue == queue and r.op == "deliver"}
    first = min(published.values())
    width = (max([*published.values(), *seen.values()]) - first) // BINS + 1
    ends = [first + width * (number + 1) for number in range(BINS)]
    taken = [[m for m, at in seen.items() if end - width <= at < end] for end in ends]
    return {
        "depth": [
            sum(at < end and seen.get(m, end) >= end for m, at in published.items()) for end in ends
        ],
        "deliveries": [len(each) for each in taken],
        "longest_wait": [max((seen[m] - published[m] for m in e), default=0) for e in taken],
    }


@pytest.mark.parametrize("seed", range(5))
def test_each_bin_has_what_is_counted_one_by_one(seed: int) -> None:
    records = busy(seed)
    drawn = traffic_of(judged_alone(table_of(records)))
    assert sorted(each.queue for each in drawn) == ["q0", "q1"]
    for each in drawn:
        expected = counted(records, each.queue)
        assert {name: list(getattr(each, name)) for name in expected} == expected
        # Of another history this would not be so.
        assert list(each.deliveries) != counted(busy(seed + 1), each.queue)["deliveries"]


def test_parts_add_up_to_the_whole() -> None:
    table = table_of(busy(7, queues=3))
    control = control_of(table)
    whole = judged_alone(table)
    parts = [table.filter(pa.array(np.arange(table.num_rows) % 2 == n)) for n in range(2)]
    assert bins_of(map(spans_of, parts)) == whole.bins
    control.bins = whole.bins
    names = pa.array([int((name or "m0")[1:]) % 3 for name in table["message"].to_pylist()])
    by_name = [table.filter(pc.equal(names, n)) for n in range(3)]
    counts = [by_message(each, control).traffic for each in by_name]
    assert total(counts, control.bins).equals(whole.traffic)
    assert not total(counts[:2], control.bins).equals(whole.traffic)


@pytest.mark.parametrize("purged", [False, True])
def test_a_purge_ends_a_wait(purged: bool) -> None:
    records = [
        Record(op="publish", queue="q", message="m0", start=10, end=11),
        Record(op="purge" if purged else "declare", queue="q", start=500, end=501),
        Record(op="publish", queue="q", message="m1", start=1000, end=1001),
    ]
    [drawn] = traffic_of(judged_alone(table_of(records)))
    assert (drawn.depth[0], drawn.depth[-1]) == (1, 1 if purged else 2)


def test_the_size_is_bounded_and_the_busiest_queues_are_drawn() -> None:
    records = busy(3, queues=4 * QUEUES, messages=900)
    judgement = judged_alone(table_of(records))
    assert judgement.traffic.num_rows == QUEUES * BINS
    many = [sum(r.queue == key[1] for r in records) for key in judgement.bins.keys]
    assert many == sorted(many, reverse=True)
    others = {r.queue for r in records} - {key[1] for key in judgement.bins.keys}
    assert min(many) >= max(sum(r.queue == name for r in records) for name in others)


def test_violations_are_counted_where_they_happened() -> None:
    about = [(f"m{n}", 10 * n) for n in range(10)]
    published = [Record(op="publish", queue="q", message=m, start=at, end=at) for m, at in about]
    given = [
        Record(
            op="deliver",
            queue="q",
            message=m,
            consumer="c",
            position=n,
            start=500 + 10 * n,
            end=501 + 10 * n,
        )
        for n, (m, _) in enumerate(about)
    ]
    declared = Record(op="declare", queue="q", start=0, end=0)
    [sound] = traffic_of(judged_alone(table_of([declared, *published, *given])))
    assert sum(sound.violations) == 0
    given[4:6] = [replace(given[4], message="m5"), replace(given[5], message="m4")]
    [wrong] = traffic_of(judged_alone(table_of([declared, *published, *given])))
    [where] = [number for number, many in enumerate(wrong.violations) if many]
    assert (
        wrong.first + where * wrong.bin_width <= 541 < wrong.first + (where + 1) * wrong.bin_width
    )


def test_a_history_without_traffic_has_no_picture() -> None:
    judgement = judged_alone(table_of([Record(op="crash", start=1)]))
    assert judgement.bins == Bins()
    assert traffic_of(judgement) == ()
