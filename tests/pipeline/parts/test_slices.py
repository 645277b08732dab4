"""Slices: a history cut anywhere, judged slice by slice, is judged as the whole is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.intervals.control import Control, named
from brokerproof.pipeline.names import numbers
from brokerproof.pipeline.parts import slices
from brokerproof.pipeline.parts.slices import Cuts, left_to, sliced, summary
from brokerproof.pipeline.rules.unanswered_gets import beyond_gets
from brokerproof.pipeline.rules.violations import strongest
from brokerproof.pipeline.stages import by_message, by_queue, control_of
from tests.pipeline.made_histories import history_table


def judged_in_slices(history: pa.Table, seed: int) -> tuple[pa.Table, int]:
    """Return the violations of a history that is cut at random, and how many slices failed."""
    control = control_of(history)
    messages = by_message(history, control)
    intervals = sliced(messages.intervals, cuts_of(history, seed), control)
    found, summaries = [messages.violations], []
    for number in range(int(numbers(intervals, "slice").max(initial=0)) + 1):
        part = intervals.filter(pc.equal(intervals.column("slice"), number))
        found += by_queue(part, control)
        summaries.append(summary(part, control.window_of))
    left = left_to(pa.concat_tables(summaries), control.window_of)
    failing = sorted(
        set(zip(*(left.column(n).to_pylist() for n in ("run", "queue", "slice")), strict=True))
    )
    for key in failing:
        both = pa.concat_tables([of_slice(left, key), of_slice(intervals, key)])
        found += by_queue(both, control)
    return beyond_gets(strongest(found), control), len(failing)


def of_slice(table: pa.Table, key: tuple[str, str, int]) -> pa.Table:
    queue = named(table, "queue")
    here = np.array([each == key[:2] for each in queue.keys], dtype=np.bool_)
    return table.filter(pa.array(here[queue.number] & (numbers(table, "slice") == key[2])))


def cuts_of(history: pa.Table, seed: int) -> Cuts:
    draw = np.random.default_rng(seed)
    times = numbers(history, "start")
    at, returning = {}, set()
    for key in named(history, "queue").keys:
        returning.add(key)
        if draw.random() < 0.9:
            at[key] = np.unique(draw.choice(times, size=int(draw.integers(1, 12))))
    return Cuts(at, frozenset(returning))


@pytest.mark.parametrize("seeds", [range(first, first + 40) for first in range(0, 160, 40)])
def test_a_history_in_slices_is_judged_as_the_whole_is(seeds: range) -> None:
    history = history_table(seeds)
    whole = judged_alone(history).violations
    assert whole.num_rows
    in_slices, failing = judged_in_slices(history, seeds.start)
    assert failing or seeds.start
    assert in_slices.to_pylist() == whole.to_pylist()


@pytest.mark.each_time(1)
@pytest.mark.parametrize(("forgotten", "seed"), [("left", 0), ("returned", 4)])
def test_without_what_is_left_to_slices_something_is_missed(
    forgotten: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if forgotten == "left":
        monkeypatch.setattr(slices, "_standing_for_all", lambda *_: np.empty(0, dtype=np.int64))
    else:
        monkeypatch.setattr(slices, "RETURNED", 0)
    history = history_table(range(200))
    whole = judged_alone(history).violations
    assert judged_in_slices(history, seed)[0].num_rows < whole.num_rows


def test_a_queue_that_is_not_hot_stays_whole() -> None:
    history = history_table(range(3))
    control = control_of(history)
    intervals = by_message(history, control).intervals
    assert sliced(intervals, Cuts(), control).equals(intervals)
    assert summary(intervals, control.window_of).num_rows == 0
    assert isinstance(control, Control)
