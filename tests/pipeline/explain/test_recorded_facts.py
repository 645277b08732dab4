"""Violations told in the words of a recording: names, numbers, times, files and lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.search.counterexamples import Counterexample, text_of_counterexample
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.explain.explanations import counterexample_of
from brokerproof.pipeline.explain.recorded_facts import RecordedFacts
from brokerproof.pipeline.explain.witnesses import witnesses_of
from brokerproof.pipeline.intervals.known_queues import KnownQueues, QueueFacts
from brokerproof.pipeline.tables import write
from brokerproof.spec.histories import Record
from brokerproof.spec.requirements import catalogue
from tests.pipeline.recorders import recorded, table_of

Explained = Callable[..., Counterexample]


def by_priority(levels: int, more: int, less: int) -> list[Record]:
    """Return a history in which anna, with a window of 7, gets the less urgent message first."""
    given = {"op": "deliver", "queue": "orders", "consumer": "anna", "channel": "3"}
    return [
        Record(op="declare", queue="orders", start=0, end=1, levels=levels),
        Record(op="publish", queue="orders", message="less", priority=less, start=2, end=3),
        Record(op="publish", queue="orders", message="more", priority=more, start=4, end=5),
        recorded("consume", 6, 7, queue="orders", consumer="anna", channel="3", window=7),
        Record(message="less", position=0, start=6, end=20, **given),  # type: ignore[arg-type]
        Record(message="more", position=1, start=6, end=1_030, **given),  # type: ignore[arg-type]
    ]


def beyond(window: int) -> list[Record]:
    """Return a history in which anna gets one message more than her window lets through."""
    records = [
        Record(op="declare", queue="orders", start=0, end=1),
        recorded("consume", 2, 3, queue="orders", consumer="anna", channel="3", window=window),
    ]
    for number in range(window + 1):
        name, at = f"m{number}", 10 * number + 10
        given = {"consumer": "anna", "channel": "3", "position": number}
        records += [
            Record(op="publish", queue="orders", message=name, start=at, end=at + 1),
            Record(op="deliver", queue="orders", message=name, start=at + 2, end=at + 3, **given),  # type: ignore[arg-type]
        ]
    return records


@pytest.fixture
def explained(tmp_path: Path) -> Explained:
    def explain(
        records: Sequence[Record], requirement: str, known: KnownQueues | None = None
    ) -> Counterexample:
        known = known or KnownQueues()
        write(tmp_path / "part.parquet", records, ["night.jsonl"])
        table = table_of(records)
        judgement = judged_alone(table, known=known)
        each = witnesses_of(judgement, [tmp_path / "part.parquet"], known)[requirement]
        facts = RecordedFacts.of(each.violation, each.records, ["night.jsonl"])
        found = counterexample_of(each.violation, "night", facts, each.file, each.remark)
        assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
        return found

    return explain


def test_the_run_has_the_names_and_numbers_of_the_recording(explained: Explained) -> None:
    text = text_of_counterexample(explained(by_priority(3, more=2, less=0), "priority-order"))
    for words in (
        "declare orders priority levels=3",
        "publish more to orders priority=2",
        "publish less to orders priority=0",
        "consume orders as anna on 3 mode=acknowledge credit=7",
        "less → anna",
        "consumer anna on channel 3 got less between 6 and 20, and more,",
        "recorded  more published, priority 2, from 4 to 5 (night.jsonl:3)",
        "recorded  consumer anna on channel 3 subscribed, window 7, from 6 to 7 (night.jsonl:4)",
        "more given to consumer anna on channel 3, its delivery 1, from 6 to 1,030 (night.jsonl:6)",
        "records   witnesses/priority-order.jsonl",
        "the least run that shows the same; its names and numbers are those of the recording",
    ):
        assert words in text


def test_what_no_run_can_have_is_told_with_what_it_stands_for(explained: Explained) -> None:
    """A queue of the gate has no more than ten levels."""
    found = explained(by_priority(256, more=200, less=20), "priority-order")
    text = text_of_counterexample(found)
    assert "declare orders priority levels=10" in text
    assert "consume orders as anna on 3 mode=acknowledge credit=7" in text
    for words in ("10 levels for 256", "priority 5 for 200 of more", "priority 4 for 20 of less"):
        assert words in found.certificate.reason


def test_a_window_is_told_and_how_many_were_held(explained: Explained) -> None:
    found = explained(beyond(2), "credit-not-exceeded")
    assert found.expected == "anna to hold no more than its window of 2 lets through"
    assert "m2 was given to consumer anna on channel 3 between 32 and 33" in found.seen
    assert "with which it held 3" in found.seen
    assert [line.answered for line in found.steps[-2:]] == ["m0 → anna, m1 → anna", "m2 → anna"]
    assert "those of the recording" in found.certificate.reason


def test_a_window_that_is_too_long_to_read_is_a_shorter_one(explained: Explained) -> None:
    found = explained(beyond(20), "credit-not-exceeded")
    assert "with which it held 21" in found.seen
    assert "window 1 for window 20 of anna" in found.certificate.reason
    assert len(found.steps) < 10
    assert len(found.recorded) == 12
    assert "m20 given" in str([*map(str, found.recorded)])


def test_a_delivery_without_a_subscription_is_told_as_a_get_if_that_is_known(
    explained: Explained,
) -> None:
    """A get beside subscribed consumers; without any subscription, its kind is unknown."""
    records = by_priority(3, more=2, less=0)
    got = [
        replace(each, consumer="g1", position=0)
        if each.message == "less" and each.consumer
        else each
        for each in records
    ]
    got[4], got[5] = replace(got[4], start=8, end=8), replace(got[5], position=0, start=10)
    told = explained(got, "priority-order")
    assert "get g1 on channel 3 got less" in told.seen
    assert "a subscription of the get g1, of whom none is recorded" in told.certificate.reason
    unknown = explained([each for each in got if each.op != "consume"], "priority-order")
    assert unknown.seen.startswith("g1 on channel 3 got less")


def test_what_was_said_on_the_command_line_is_in_no_file(explained: Explained) -> None:
    known = KnownQueues({"orders": QueueFacts(levels=3)})
    found = explained(by_priority(3, more=2, less=0)[1:], "priority-order", known)
    [declared] = [each for each in found.recorded if "declared" in each.event]
    assert (declared.file, declared.line) == ("", 0)
    assert str(declared) == "orders declared with 3 levels, from 0 to 0"
    assert "levels=3" in text_of_counterexample(found)
