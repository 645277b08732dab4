"""Traces of RabbitMQ are read for what they say and no more, row by row.

The recordings were made by RabbitMQ 3.10.8, one traffic in both formats; bad rows were added.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brokerproof.pipeline.readers import conversion, firehose
from brokerproof.pipeline.readers.firehose_text import text_rows
from brokerproof.pipeline.readers.rejected_rows import Rejected
from brokerproof.pipeline.readers.rows import Used
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import Record, what_is_wrong

RECORDINGS = Path(__file__).parent / "recordings"
TRACE = RECORDINGS / "trace.log"
TEXT = RECORDINGS / "trace-text.log"


def rows_of(path: Path, told_apart_by: str = "message_id") -> tuple[list[Used], list[Rejected]]:
    found = list(firehose.read(path, told_apart_by))
    used = [each for each in found if isinstance(each, Used)]
    return used, [each for each in found if isinstance(each, Rejected)]


def records_of(path: Path, told_apart_by: str = "message_id") -> list[Record]:
    return [record for row in rows_of(path, told_apart_by)[0] for record in row.records]


def traced(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "trace.log"
    whole = {"vhost": "/", "connection": "c", "channel": 1, "properties": {}}
    path.write_text("".join(json.dumps(whole | row) + "\n" for row in rows))
    return path


def published(message: str | int, *queues: str, **more: object) -> dict[str, object]:
    properties = {"message_id": message}
    return {
        "type": "published",
        "queue": "none",
        "routed_queues": queues or ("q",),
        "properties": properties,
    } | more


def received(message: str, queue: str = "q", channel: int = 2, **more: object) -> dict[str, object]:
    properties = {"message_id": message}
    return {
        "type": "received",
        "queue": queue,
        "routed_queues": "none",
        "channel": channel,
        "properties": properties,
    } | more


def test_a_trace_is_read_and_what_is_wrong_is_rejected() -> None:
    used, aside = rows_of(TRACE)
    assert [row.line for row in used] == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13]
    assert [(row.line, row.category) for row in aside] == [
        (5, "not told apart"),
        (12, "not told apart"),
        (15, "unreadable"),
        (16, "missing"),
        (17, "refers to nothing"),
        (18, "refers to nothing"),
        (19, "about something else"),
        (20, "wrong value"),
        (21, "not told apart"),
        (22, "not told apart"),
        (23, "not told apart"),
    ]
    assert "dead-lettered" in aside[5].reason


def test_both_formats_say_the_same() -> None:
    def plainly(path: Path) -> list[tuple[object, ...]]:
        return [
            (r.op, r.run.removeprefix(str(path)), r.queue, r.message, r.consumer, r.position)
            for r in records_of(path)
        ]

    assert plainly(TEXT) == plainly(TRACE)
    assert [row.line for row in rows_of(TEXT)[1]] == [99, 249]


def test_the_payload_of_the_text_format_is_that_of_the_other() -> None:
    said = [fields for _, fields in text_rows(TEXT)]
    traced_rows = [json.loads(line) for line in TRACE.read_text().splitlines()[: len(said)]]
    for fields, row in zip(said, traced_rows, strict=True):
        assert isinstance(fields, dict)
        assert fields["payload"] == row["payload"]
        assert fields["properties"] == row["properties"]


def test_every_record_is_right_by_itself() -> None:
    for record in (*records_of(TRACE), *records_of(TEXT)):
        assert what_is_wrong(record) is None
        is_open = record.op in {"publish", "release"}
        assert (record.outcome, record.end is None) == (
            ("unknown", True) if is_open else ("ok", False)
        )


def test_each_channel_and_priority_is_a_run_of_its_own() -> None:
    runs = {record.run for record in records_of(TRACE)}
    ends = "127.0.0.1:40001 -> 127.0.0.1:25672 (1) priority"
    assert runs == {f"{TRACE} / {ends} {priority}" for priority in (0, 1)}


def test_a_message_that_is_given_again_may_have_been_released(tmp_path: Path) -> None:
    path = traced(tmp_path, published("m"), received("m"), received("m", channel=3))
    records = records_of(path)
    assert [record.op for record in records] == [
        *("declare", "publish", "consume", "deliver", "consume", "release", "deliver")
    ]
    release = records[5]
    assert (release.consumer, release.position) == ("c (2) q", 0)
    assert (release.outcome, release.end) == ("unknown", None)


def test_a_queue_may_drop_and_return_as_it_likes() -> None:
    declared = [record for record in records_of(TRACE) if record.op == "declare"]
    assert declared
    assert all(record.may_drop and record.returns == "elsewhere" for record in declared)


def test_a_delivery_that_is_traced_before_its_publish_is_not_seen_before_it(tmp_path: Path) -> None:
    records = records_of(traced(tmp_path, received("m"), published("m")))
    [delivery] = [record for record in records if record.op == "deliver"]
    assert (delivery.start, delivery.end) == (2, 2)


def test_deliveries_of_a_channel_and_a_queue_are_counted_for_each_run(tmp_path: Path) -> None:
    urgent = {"message_id": "u", "priority": 9}
    path = traced(
        tmp_path,
        *(published(name) for name in "ab"),
        published("u") | {"properties": urgent},
        *(received(name) for name in "ba"),
        received("u") | {"properties": urgent},
    )
    given = [record for record in records_of(path) if record.op == "deliver"]
    assert [(record.message, record.position) for record in given] == [("b", 0), ("a", 1), ("u", 0)]


def test_a_message_is_known_in_each_of_its_queues(tmp_path: Path) -> None:
    path = traced(tmp_path, published("m", "q", "r"), published("m", "r"), received("m", "r"))
    used, aside = rows_of(path)
    assert [row.line for row in used] == [1]
    assert [(row.line, row.category) for row in aside] == [
        (2, "not told apart"),
        (3, "not told apart"),
    ]


def test_a_header_tells_messages_apart_where_asked(tmp_path: Path) -> None:
    def with_header(row: dict[str, object], value: object) -> dict[str, object]:
        return row | {"properties": {"headers": {"x-id": value}}}

    path = traced(
        tmp_path,
        with_header(published("-"), 7),
        with_header(received("-"), 7),
        published("other"),
    )
    used, aside = rows_of(path, "header=x-id")
    assert [record.message for row in used for record in row.records if record.message] == [
        "7",
        "7",
    ]
    assert [row.reason for row in aside] == ["the message has no header=x-id"]


def test_a_payload_tells_messages_apart_where_asked(tmp_path: Path) -> None:
    path = traced(
        tmp_path,
        *(published("-", payload=text) for text in ("YQ==", "Yg==", "Yg==")),
        received("-", payload="YQ=="),
        received("-", payload="Yg=="),
    )
    used, aside = rows_of(path, "payload")
    assert [row.line for row in used] == [1, 4]
    assert {row.category for row in aside} == {"not told apart"}


def outcomes(path: Path, argument: str) -> list[tuple[str | None, int | None, str]]:
    found = firehose.read_as(path, argument)
    records = [record for row in found if isinstance(row, Used) for record in row.records]
    return [(r.message, r.end, r.outcome) for r in records if r.op == "publish"]


def test_order_is_known_of_a_steady_trace_only(tmp_path: Path) -> None:
    path = traced(tmp_path, published("a"), published("b"))
    assert outcomes(path, "") == [("a", None, "unknown"), ("b", None, "unknown")]
    assert outcomes(path, "steady") == [("a", 1, "ok"), ("b", 2, "ok")]
    assert outcomes(path, "steady,message_id") == outcomes(path, "message_id,steady")
    assert outcomes(path, "steady,correlation_id") == []


def test_a_queue_that_counts_returns_says_whose_order_is_known(tmp_path: Path) -> None:
    def returned(row: dict[str, object], times: int = 1) -> dict[str, object]:
        properties = row["properties"]
        assert isinstance(properties, dict)
        return row | {"properties": properties | {"headers": {"x-delivery-count": times}}}

    path = traced(tmp_path, published("a"), published("b", "q", "r"), returned(received("a")))
    assert outcomes(path, "") == [
        ("a", None, "unknown"),
        ("b", 2, "ok"),
        ("b", None, "unknown"),
    ]
    assert outcomes(path, "steady")[0] == ("a", None, "unknown")
    path = traced(tmp_path, published("a"), published("b"), returned(received("a"), 0))
    assert [end for _, end, _ in outcomes(path, "")] == [None, None]
    path = traced(tmp_path, returned(published("a")), published("b"), returned(received("a")))
    assert [end for _, end, _ in outcomes(path, "")] == [None, None]


def test_messages_are_told_apart_by_one_thing(tmp_path: Path) -> None:
    path = traced(tmp_path, published("a"))
    with pytest.raises(UnreadableHistory, match="by one thing, not by 'payload,message_id'"):
        outcomes(path, "payload,message_id")
    with pytest.raises(UnreadableHistory, match="header= is without a name"):
        outcomes(path, "header=")


def test_long_names_are_cut_and_still_differ(tmp_path: Path) -> None:
    long = "x" * 400
    path = traced(
        tmp_path,
        published(f"{long}a", long),
        published(f"{long}b", long),
        received(f"{long}b", long),
    )
    records = records_of(path)
    messages = [record.message for record in records if record.message]
    assert messages[0] != messages[1] == messages[2]
    assert all(len(name) == 256 for name in messages if name)


def test_a_publish_that_goes_nowhere_is_a_row_and_no_record(tmp_path: Path) -> None:
    [row], aside = rows_of(traced(tmp_path, published("m") | {"routed_queues": []}))
    assert (row.records, aside) == ((), [])


@pytest.mark.parametrize(
    "change",
    [{"queue": ""}, {"properties": {"message_id": "m", "priority": "high"}}, {"channel": None}],
)
def test_values_that_cannot_be_are_rejected(tmp_path: Path, change: dict[str, object]) -> None:
    _, [aside] = rows_of(traced(tmp_path, published("m"), received("m") | change))
    assert (aside.line, aside.category) == (2, "wrong value")


def test_blocks_of_text_that_are_none_are_rejected(tmp_path: Path) -> None:
    rule = "=" * 80
    blocks = TEXT.read_text("utf-8", "replace").split(rule)
    spoilt = [
        blocks[1].replace("Message published", "Message seen"),
        blocks[1].replace("queues: [<<", "queues: [{<<"),
        blocks[1].replace("Payload:", "Load:"),
        blocks[1].replace("Channel:      1", "Channel:      one"),
        blocks[1].replace("{<<", "{[<<").replace("Properties:   [{[", "Properties:   [{"),
        blocks[1],
    ]
    path = tmp_path / "trace.log"
    path.write_text("\n" + rule + rule.join(spoilt))
    used, aside = rows_of(path)
    assert len(used) == 1
    assert [row.category for row in aside] == ["unreadable"] * 5
    assert aside[0].line == 3


def test_more_publishes_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firehose, "PUBLISHES_MAX", 3)
    with pytest.raises(UnreadableHistory, match="more than 3 publishes; split the file"):
        rows_of(TRACE)


def test_the_account_of_a_trace_is_whole(tmp_path: Path) -> None:
    done = conversion.convert([TRACE, TEXT], "firehose", tmp_path / "table")
    assert str(done.account) == (
        "35 rows in = 22 checked + 13 rejected (1 unreadable, 1 missing, 1 wrong value, "
        "2 refers to nothing, 7 not told apart, 1 about something else)"
    )
