"""Messaging spans show what they show: faults that they prove are found, and nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.intervals.known_queues import KnownQueues, facts_said
from brokerproof.pipeline.readers import conversion, otel
from brokerproof.pipeline.readers.otel import read_as
from brokerproof.pipeline.readers.rejected_rows import Rejected
from brokerproof.pipeline.readers.rows import Used, unfit
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import Record
from tests.pipeline.recorders import table_of

RECORDING = Path(__file__).parent / "recordings" / "spans.jsonl"
MS = otel.NS_OF_A_MS
BEGINS_MS = 1_000


def span(work: str, at_ms: int, message: str | None = "m", **more: Any) -> dict[str, Any]:
    """Return a span of 1 ms; `more` are fields of it, and attributes with dots as underscores."""
    said = {
        "messaging.system": more.pop("system", "aws_sqs"),
        "messaging.operation.type": work,
        "messaging.operation.name": more.pop("name", "delete" if work == "settle" else work),
        "messaging.destination.name": more.pop("queue", "q"),
        "messaging.message.id": message,
        **more.pop("attributes", {}),
    }
    start = (BEGINS_MS + at_ms) * MS
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": f"{work} {at_ms} {message}",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + MS),
        "attributes": [
            {"key": key, "value": {"stringValue": value}}
            for key, value in said.items()
            if value is not None
        ],
        **more,
    }


def line(*spans: dict[str, Any], service: str = "shop") -> str:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scopes = [{"scope": {"name": "sdk", "version": "1"}, "spans": spans}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]})


def of_lines(folder: Path, *lines: str) -> Path:
    path = folder / "spans.jsonl"
    path.write_text("".join(f"{each}\n" for each in lines))
    return path


def records_of(path: Path, argument: str = "") -> list[Record]:
    rows = [row for row in read_as(path, argument) if isinstance(row, Used)]
    records = [record for row in rows for record in row.records]
    assert unfit(records) is None
    return records


def told(path: Path, argument: str = "") -> list[tuple[str, str | None, int | None, int | None]]:
    """Return the records in milliseconds."""

    def ms(time: int | None) -> int | None:
        return None if time is None else time // MS - BEGINS_MS

    return [(r.op, r.queue, ms(r.start), ms(r.end)) for r in records_of(path, argument)]


def broken(path: Path, form: str | None = None) -> set[str]:
    done = conversion.convert([path], form, path.parent / f"table {form}")
    assert done.account.rows == done.account.checked + done.account.rejected
    table = pq.read_table(done.parts[0])
    return set(judged_alone(table).violations.column("requirement").to_pylist())


def test_a_recording_is_read_and_what_is_wrong_is_rejected() -> None:
    rows = list(read_as(RECORDING, ""))
    rejected = [row for row in rows if isinstance(row, Rejected)]
    assert [(row.line, row.category, row.reason) for row in rejected] == [
        (3, "missing", "Object missing required field `startTimeUnixNano`"),
        (3, "wrong value", "Expected `int` >= 0 in `endTimeUnixNano`"),
        (3, "ends before it starts", "it ends at 1000000000, before it starts at 2000000000"),
        (3, "missing", "there is no messaging.destination.name"),
        (3, "not told apart", "there is no messaging.message.id"),
        (3, "about something else", "kafka is no queue: it keeps what it gives"),
        (4, "about something else", "these are no spans"),
        (5, "missing", "there is no resourceSpans"),
        (6, "wrong value", "Expected `array | null`, got `int` in `resourceSpans`"),
        (7, "unreadable", "this is not JSON: JSON is malformed: invalid character (byte 0)"),
    ]
    used = [row for row in rows if isinstance(row, Used)]
    assert [(row.line, [r.op for r in row.records]) for row in used] == [
        (1, ["publish"]),
        (2, ["deliver"]),
        (2, []),
        (2, ["acknowledge"]),
    ]


def test_times_are_as_wide_as_clocks_may_differ(tmp_path: Path) -> None:
    path = of_lines(tmp_path, line(span("send", 0), span("receive", 500), span("settle", 600)))
    assert told(path, "") == [
        ("publish", "q", -100, 101),
        ("deliver", "q", 400, 601),
        ("acknowledge", "q", 500, 701),
    ]
    assert told(path, "5")[1] == ("deliver", "q", 495, 506)
    pushed = of_lines(tmp_path, line(span("send", 0), span("process", 500)))
    assert told(pushed, "5")[1] == ("deliver", "q", -5, 505)


def test_times_at_the_limits_stay_within_them(tmp_path: Path) -> None:
    ends = {"startTimeUnixNano": "0", "endTimeUnixNano": str(2**62 - 1)}
    path = of_lines(tmp_path, line(*(span(each, 0) | ends for each in ("send", "receive"))))
    assert [(r.start, r.end) for r in records_of(path)] == [(0, 2**62 - 1)] * 2
    path = of_lines(tmp_path, line(span("send", 0) | {"endTimeUnixNano": str(2**62)}))
    assert [type(row) for row in read_as(path, "")] == [Rejected]


@pytest.mark.parametrize(("argument", "start"), [("5", -5), ("5,unbuffered", 495)])
def test_a_client_may_have_fetched_ahead_unless_it_is_said(
    tmp_path: Path, argument: str, start: int
) -> None:
    spans = (span("send", 0, system="jms"), span("receive", 500, system="jms"))
    assert told(of_lines(tmp_path, line(*spans)), argument)[1] == ("deliver", "q", start, 506)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"nothing-twice"}),
        ({"name": "abandon"}, set()),
        ({"status": {"code": 2}}, set()),
        ({"attributes": {"error.type": "timeout"}}, set()),
        ({"system": "rabbitmq"}, set()),
        ({"at_ms": 5_500}, set()),
        ({"message": "other"}, set()),
        ({"form": "otel:3000"}, set()),
    ],
)
def test_what_was_acknowledged_is_not_delivered_again(
    tmp_path: Path, change: dict[str, Any], expected: set[str]
) -> None:
    form = change.pop("form", None)
    settle = span("settle", change.pop("at_ms", 200), **change)
    spans = (span("send", 0), span("receive", 100), settle, span("receive", 5_000))
    assert broken(of_lines(tmp_path, line(*spans)), form) == expected


@pytest.mark.parametrize(
    ("work", "facts", "expected"),
    [
        ("receive", "fifo", {"fifo-order"}),
        ("receive", "unordered", set()),
        ("process", "fifo", set()),
    ],
)
def test_order_is_judged_where_it_is_said_and_deliveries_have_a_beginning(
    tmp_path: Path, work: str, facts: str, expected: set[str]
) -> None:
    sent = (span("send", 0, "m0"), span("send", 1_000, "m1"))
    path = of_lines(tmp_path, line(*sent, span(work, 2_000, "m1"), span(work, 4_000, "m0")))
    known = KnownQueues({"q": facts_said(facts)})
    found = judged_alone(table_of(records_of(path)), known=known).violations
    assert set(found["requirement"].to_pylist()) == expected


@pytest.mark.parametrize(("sent", "expected"), [(150, set()), (250, {"nothing-invented"})])
def test_what_is_received_before_it_was_sent_is_wrong_beyond_the_clocks(
    tmp_path: Path, sent: int, expected: set[str]
) -> None:
    path = of_lines(tmp_path, line(span("send", sent)), line(span("process", 0), service="mail"))
    assert broken(path) == expected
    assert broken(path, "otel:200") == set()


def test_a_message_whose_sending_is_not_shown_accuses_nothing(tmp_path: Path) -> None:
    path = of_lines(tmp_path, line(span("receive", 0), span("settle", 5)))
    rows = list(read_as(path, ""))
    assert [row.category for row in rows if isinstance(row, Rejected)] == ["refers to nothing"] * 2
    assert broken(path) == set()


def test_one_delivery_has_several_spans(tmp_path: Path) -> None:
    inner = span("process", 520, parentSpanId="process 510 m")
    for spans in (
        (span("receive", 500), span("process", 510)),
        (span("process", 510), inner),
        (span("receive", 500), span("receive", 500)),
    ):
        path = of_lines(tmp_path, line(span("send", 0)), line(*spans))
        assert [op for op, *_ in told(path)] == ["publish", "deliver"]
    both = of_lines(tmp_path, line(span("send", 0), span("process", 510), span("process", 520)))
    assert [op for op, *_ in told(both)] == ["publish", *["deliver", "release"] * 2]


def test_a_message_is_published_where_it_was_received_from(tmp_path: Path) -> None:
    sent = span("send", 0, queue="exchange:key", system="rabbitmq")
    received = [span("process", n, queue=f"exchange:key:q{n}") for n in (1, 2)]
    path = of_lines(tmp_path, line(sent, *received))
    assert told(path)[:2] == [
        ("publish", "exchange:key:q1", -100, None),
        ("publish", "exchange:key:q2", -100, None),
    ]
    group = {"messaging.destination.subscription.name": "audit"}
    path = of_lines(tmp_path, line(span("send", 0), span("process", 1, attributes=group)))
    assert [queue for _, queue, *_ in told(path)] == ["q / audit"] * 2
    path = of_lines(tmp_path, line(span("send", 0), span("send", 1, queue="p"), span("process", 2)))
    assert [(op, queue) for op, queue, *_ in told(path)] == [
        ("publish", "q"),
        ("publish", "p"),
        ("deliver", "q"),
    ]


def test_the_messages_of_a_batch_are_those_of_its_links(tmp_path: Path) -> None:
    key = {"key": "messaging.message.id", "value": {"stringValue": "m1"}}
    links = [{"attributes": [key]}, {"attributes": []}]
    batch = span("receive", 500, None, links=links)
    path = of_lines(tmp_path, line(span("send", 0, "m1"), batch))
    assert [record.message for record in records_of(path)] == ["m1", "m1"]


def test_older_names_are_read(tmp_path: Path) -> None:
    def older(work: str | None, at_ms: int, kind: int) -> dict[str, Any]:
        names = {
            "messaging.operation.type": None,
            "messaging.destination.name": None,
            "messaging.message.id": None,
            "messaging.operation": work,
            "messaging.destination": "q",
            "messaging.message_id": "m",
        }
        return span(f"{work}", at_ms, attributes=names, kind=kind)

    spans = (older("publish", 0, 4), older("deliver", 5, 5))
    assert [op for op, *_ in told(of_lines(tmp_path, line(*spans)))] == ["publish", "deliver"]
    inferred = (older(None, 0, 4), older("process", 5, 5), older(None, 6, 5))
    rows = list(read_as(of_lines(tmp_path, line(*inferred)), ""))
    assert [isinstance(row, Used) for row in rows] == [True, True, False]


def test_other_spans_are_no_rows(tmp_path: Path) -> None:
    http = {"name": "GET", "attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}]}
    rows = list(read_as(of_lines(tmp_path, line(http, span("send", 0)), line(http), "{}"[:0]), ""))
    assert len(rows) == 1
    rows = list(read_as(of_lines(tmp_path, line(span("create", 0), span("poll", 1))), ""))
    assert [type(row) for row in rows] == [Used, Rejected]


@pytest.mark.parametrize("argument", ["x", "1,2", "-5", "1.5", "unbuffered,y", "9" * 10])
def test_an_argument_that_means_nothing_is_refused(tmp_path: Path, argument: str) -> None:
    with pytest.raises(UnreadableHistory, match="behind otel: stands how many milliseconds"):
        list(read_as(of_lines(tmp_path, line(span("send", 0))), argument))


def test_more_spans_than_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = of_lines(tmp_path, line(*(span("send", n) for n in range(3))))
    monkeypatch.setattr(otel, "SPANS_MAX", 3)
    assert len(list(read_as(path, ""))) == 3
    monkeypatch.setattr(otel, "SPANS_MAX", 2)
    with pytest.raises(UnreadableHistory, match="more than 2 messaging spans; split the file"):
        list(read_as(path, ""))


SKEW_MS = 20


def simulated(seed: int, *, pulled: bool, faulty: bool = False) -> list[dict[str, Any]]:
    """Return the spans of clients of a queue that lends its messages; clocks differ.

    A client that settles after the message was lent again is told that it did, without effect. A
    faulty queue lends again what was settled in time.
    """
    chance = random.Random(seed)  # noqa: S311
    clocks = [chance.uniform(-SKEW_MS / 2, SKEW_MS / 2) for _ in range(3)]
    spans: list[dict[str, Any]] = []

    def shown(work: str, message: str, begin: float, end: float) -> None:
        clock = chance.choice(clocks)
        made = span(work, len(spans), message, system="aws_sqs" if pulled else "jms")
        for name, at in (("start", begin), ("end", end)):
            made[f"{name}TimeUnixNano"] = str(round((BEGINS_MS + at + clock) * MS))
        spans.append(made)

    for number in range(4):
        message = f"m{number}"
        at = chance.uniform(0, 200)
        shown("send", message, at - chance.uniform(0, 9), at + chance.uniform(0, 9))
        lent = at + chance.uniform(0, 60)
        while chance.random() < 0.8:
            lent_again = lent + chance.uniform(5, 200)
            seen = lent + chance.uniform(0, 9 if pulled else 200)
            if pulled:
                shown("receive", message, lent - chance.uniform(0, 9), seen)
            else:
                shown("process", message, seen, seen + 5)
            settled = seen + chance.uniform(0, 300)
            if chance.random() < 0.8:
                shown("settle", message, settled - chance.uniform(0, 9), settled + 3)
                if settled < lent_again and not faulty:
                    break
                lent_again = max(lent_again, settled + 100) if faulty else lent_again
            lent = lent_again
    return spans


@pytest.mark.parametrize("pulled", [False, True])
def test_no_sound_queue_is_accused(tmp_path: Path, pulled: bool) -> None:
    again = 0
    for seed in range(150):
        path = of_lines(tmp_path, line(*simulated(seed, pulled=pulled)))
        records = records_of(path, str(SKEW_MS))
        again += any(r.op == "release" for r in records)
        assert judged_alone(table_of(records)).violations.num_rows == 0, seed
    assert again > 50


def test_a_faulty_queue_is_found_if_it_is_asked_for_each_message(tmp_path: Path) -> None:
    found = 0
    for seed in range(50):
        path = of_lines(tmp_path, line(*simulated(seed, pulled=True, faulty=True)))
        wrong = judged_alone(table_of(records_of(path, str(SKEW_MS)))).violations
        assert set(wrong["requirement"].to_pylist()) <= {"nothing-twice", "settled-once"}
        found += wrong.num_rows > 0
    assert found > 10
