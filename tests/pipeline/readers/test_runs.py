"""The gate's own runs are read step by step, for what the form of a history can say."""

from __future__ import annotations

from pathlib import Path

import pytest

from brokerproof.checks.search.counterexamples import Certificate, Counterexample, Line, write
from brokerproof.checks.trace.moves import Cut, Move, Settle
from brokerproof.pipeline.readers import conversion, runs, sources
from brokerproof.pipeline.readers.rejected_rows import Rejected
from brokerproof.pipeline.readers.rows import Used
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import Record, what_is_wrong
from brokerproof.spec.messages import Credit, Fifo, Message, Priority, Sorted
from brokerproof.spec.protocol.answers import Accepted, Delivered, Error, Event, QueueDeleted
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import (
    Cancel,
    CloseChannel,
    Consume,
    Crash,
    Declare,
    Delete,
    Drain,
    Get,
    Publish,
    Purge,
    Reset,
    Restart,
    SetCredit,
)

DECLARE = Declare(queue="q", order=Fifo())
CONSUME = Consume(channel="1", queue="q", consumer="c")


def line(move: Move, *events: Event, error: Error | None = None, parked: bool = False) -> Line:
    return Line(move, "", events, error, parked)


def given(
    message: str, consumer: str | None = "c", queue: str = "q", redelivered: bool = False
) -> Delivered:
    return Delivered(
        delivery=message, consumer=consumer, queue=queue, message=message, redelivered=redelivered
    )


def publish(message: str, queue: str = "q", priority: int = 4) -> Publish:
    return Publish(queue=queue, message=Message(id=message, priority=priority))


def counterexample(folder: Path, *lines: Line, **claims: object) -> Path:
    found = Counterexample(
        format="brokerproof-counterexample/1",
        candidate="candidate",
        requirement="fifo-order",
        expected="",
        seen="",
        witnesses=(),
        steps=lines,
        certificate=Certificate(grade="not certified"),
        claims=Capabilities(**claims),  # type: ignore[arg-type]
    )
    return write(found, folder)


def rows_of(path: Path) -> list[Used | Rejected]:
    return list(runs.read(path))


def records_of(path: Path) -> list[Record]:
    records = [record for row in rows_of(path) if isinstance(row, Used) for record in row.records]
    assert all(what_is_wrong(record) is None for record in records)
    return records


def told(records: list[Record]) -> list[tuple[object, ...]]:
    return [(record.op, record.message, record.start, record.end) for record in records]


def test_a_run_is_read(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(Reset()),
        line(DECLARE),
        line(CONSUME),
        line(publish("m"), given("m")),
        line(Settle(how="release", message="m"), given("m", redelivered=True)),
        line(Settle(how="acknowledge", message="m")),
        line(Drain()),
    )
    records = records_of(path)
    assert told(records) == [
        ("declare", None, 4, 5),
        ("consume", None, 6, 7),
        ("publish", "m", 8, 9),
        ("deliver", "m", 6, 9),
        ("release", "m", 10, 11),
        ("deliver", "m", 6, 11),
        ("acknowledge", "m", 12, 13),
        ("drained", None, 14, 15),
    ]
    assert [record.position for record in records if record.message][1:] == [0, 0, 1, 1]
    assert [row.line for row in rows_of(path) if isinstance(row, Used)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_delivery_is_no_earlier_than_the_room_for_it(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(DECLARE),
        line(Consume(channel="1", queue="q", consumer="c", credit=Credit(1))),
        line(publish("m"), given("m")),
        line(publish("n")),
        line(Settle(how="acknowledge", message="m"), given("n")),
    )
    records = records_of(path)
    assert told(records)[-1] == ("deliver", "n", 10, 11)
    assert [record.window for record in records if record.op == "consume"] == [1]


def test_a_window_that_changes_counts_as_none(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(Consume(channel="1", queue="q", consumer="c", credit=Credit(1))),
        line(SetCredit(consumer="c", messages=2)),
        line(publish("m"), given("m")),
        line(publish("n"), given("n")),
        line(Drain()),
    )
    records = records_of(path)
    assert records[0].window is None
    assert told(records)[-1] == ("deliver", "n", 2, 9)


def test_errors_say_whether_it_happened(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(publish("m"), error=Error("refused")),
        line(publish("n"), error=Error("timeout")),
        line(Declare(queue="r", order=Fifo()), error=Error("unsupported")),
    )
    assert [(r.op, r.end, r.outcome) for r in records_of(path)] == [
        ("publish", 3, "failed"),
        ("publish", None, "unknown"),
    ]


def test_a_parked_publish_ends_when_it_is_accepted(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(publish("m"), parked=True),
        line(publish("n"), parked=True),
        line(Drain(), Accepted(message="m")),
    )
    assert [(r.message, r.end, r.outcome) for r in records_of(path)] == [
        ("m", 7, "ok"),
        ("n", None, "unknown"),
    ]


def test_a_get_is_a_subscriber_of_its_own(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(publish("m")),
        line(Get(channel="1", queue="q"), given("m", None)),
        line(Get(channel="1", queue="q")),
        line(Get(channel="1", queue="q"), error=Error("timeout")),
        line(Settle(how="reject", message="m")),
    )
    records = records_of(path)
    assert [(r.op, r.consumer, r.start, r.end) for r in records[1:]] == [
        ("deliver", "get 2", 4, 5),
        ("empty", "get 3", 6, 7),
        ("reject", "get 2", 10, 11),
    ]


def test_priorities_are_levels(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(Declare(queue="q", order=Priority(2))),
        *(line(publish(f"m{priority}", priority=priority)) for priority in (4, 5, 9)),
    )
    records = records_of(path)
    assert records[0].levels == 2
    assert [record.priority for record in records[1:]] == [0, 1, 1]


def test_what_the_form_cannot_say_is_left_open(tmp_path: Path) -> None:
    late = Publish(queue="q", message=Message(id="late"), not_before_s=5)
    brief = Publish(queue="q", message=Message(id="brief"), expires_s=5)
    path = counterexample(
        tmp_path,
        line(DECLARE),
        line(Declare(queue="s", order=Sorted("key"))),
        line(late),
        line(brief),
        line(publish("m", "s")),
        line(Settle(how="release", message="m")),
        line(Settle(how="release", message="m", again=True)),
    )
    records = records_of(path)
    assert [(r.queue, r.may_drop) for r in records[:2]] == [("q", True), ("s", False)]
    assert [(r.message, r.end, r.outcome) for r in records[2:]] == [
        ("late", None, "unknown"),
        ("brief", 9, "ok"),
        ("m", None, "unknown"),
    ]


def test_what_stops_is_told(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(DECLARE),
        line(CONSUME),
        line(Drain()),
        line(Cancel(consumer="c"), QueueDeleted(queue="q")),
        line(Drain()),
        line(Purge(queue="q")),
        line(Delete(queue="q")),
        line(CloseChannel(channel="1")),
        line(Crash()),
        line(Restart()),
    )
    records = records_of(path)
    assert [(r.op, r.start, r.end) for r in records[2:]] == [
        ("drained", 6, 7),
        ("cancel", 8, 9),
        ("delete", 6, 9),
        ("purge", 12, 13),
        ("delete", 14, 15),
        ("close", 16, 17),
        ("crash", 18, 19),
        ("restart", 20, 21),
    ]


@pytest.mark.parametrize(("position", "returns"), [("original", "original"), (None, "elsewhere")])
def test_the_claim_says_where_messages_return_to(
    tmp_path: Path, position: str | None, returns: str
) -> None:
    path = counterexample(tmp_path, line(DECLARE), release_position=position)
    assert records_of(path)[0].returns == returns


def test_what_the_power_went_in_the_midst_of_may_have_happened_before_a_crash(
    tmp_path: Path,
) -> None:
    path = counterexample(
        tmp_path,
        line(Declare(queue="q", order=Fifo(), durable=True)),
        line(Cut(move=publish("a"), change=1), error=Error("crashed", "no power")),
        line(Restart()),
        line(Cut(move=publish("b"), change=9)),
    )
    assert [(each.op, each.end is None) for each in records_of(path)] == [
        ("declare", False),
        ("publish", True),
        ("crash", False),
        ("restart", False),
        ("publish", False),
    ]


def test_a_channel_that_comes_again_has_another_name(tmp_path: Path) -> None:
    path = counterexample(
        tmp_path,
        line(CloseChannel(channel="1")),
        line(Get(channel="1", queue="q"), given("m", None)),
        line(CloseChannel(channel="1")),
        line(Crash()),
        line(Get(channel="1", queue="q"), given("n", None)),
    )
    told_of = [(record.op, record.channel) for record in records_of(path)]
    assert told_of == [
        ("close", "1"),
        ("deliver", "1 again 1"),
        ("close", "1 again 1"),
        ("crash", None),
        ("deliver", "1 again 3"),
    ]


def test_a_reset_begins_another_run(tmp_path: Path) -> None:
    path = counterexample(tmp_path, line(DECLARE), line(Reset()), line(DECLARE))
    first, second = records_of(path)
    assert first.run != second.run
    assert [row.line for row in rows_of(path) if isinstance(row, Used)] == [1, 2, 3]


def test_names_that_are_too_long_are_rejected(tmp_path: Path) -> None:
    path = counterexample(tmp_path, line(DECLARE), line(publish("m" * 257)))
    _, aside = rows_of(path)
    assert isinstance(aside, Rejected)
    assert (aside.line, aside.category) == (2, "wrong value")


def test_a_counterexample_is_known_by_its_beginning(tmp_path: Path) -> None:
    path = counterexample(tmp_path / "found", line(DECLARE))
    assert sources.source_of(path).name == "runs"
    done = conversion.convert([path], None, tmp_path / "table")
    assert str(done.account) == "1 rows in = 1 checked + 0 rejected"


def test_what_is_no_counterexample_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"format": "brokerproof-counterexample/1"}')
    with pytest.raises(UnreadableHistory, match="not a counterexample"):
        rows_of(path)
