"""What others recorded is judged: a fault that it shows is found, what it leaves open is not.

Each test of a fault has its twin, the same recording with nothing wrong, or with less known.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.readers import conversion

RECORDINGS = Path(__file__).parent / "recordings"


def broken(path: Path, form: str | None = None) -> set[str]:
    """Return the requirements that a recording shows to be broken."""
    done = conversion.convert([path], form, path.parent / "table")
    table = judged_alone(pq.read_table(done.parts[0])).violations
    return set(table.column("requirement").to_pylist())


def traced(folder: Path, given: str, *, counts: bool = False) -> Path:
    """Write a trace in which a, b and c are published in this order and given in another."""
    rows: list[dict[str, object]] = [
        {"type": "published", "routed_queues": ["q"], "properties": {"message_id": name}}
        for name in "abc"
    ]
    rows += [
        {"type": "received", "queue": "q", "properties": {"message_id": name}} for name in given
    ]
    if counts:
        headers = {"x-delivery-count": 1}
        rows.append(rows[2] | {"properties": {"message_id": "c", "headers": headers}})
        rows[-1] |= {"type": "received", "queue": "q", "routed_queues": "none"}
    path = folder / "trace.log"
    whole = {"vhost": "/", "connection": "anna", "channel": 1, "routed_queues": "none"}
    path.write_text("".join(json.dumps(whole | row) + "\n" for row in rows))
    return path


def recorded(folder: Path, *rows: str) -> Path:
    path = folder / "history.edn"
    lines = [
        f"{{:type :{kind}, :f :{work}, :value {value}, :process {process}, :time {time}}}"
        for time, (kind, work, value, process) in enumerate(row.split() for row in rows)
    ]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("given", "form", "expected"),
    [
        ("abc", "firehose:steady", set()),
        ("bac", "firehose:steady", {"fifo-order"}),
        ("bac", "firehose", set()),
        ("aba", "firehose:steady", set()),
    ],
)
def test_a_trace_out_of_order(tmp_path: Path, given: str, form: str, expected: set[str]) -> None:
    assert broken(traced(tmp_path, given), form) == expected


@pytest.mark.parametrize(("given", "expected"), [("ab", set()), ("ba", {"fifo-order"})])
def test_a_trace_of_a_queue_that_counts_returns(
    tmp_path: Path, given: str, expected: set[str]
) -> None:
    assert broken(traced(tmp_path, given, counts=True)) == expected


ENQUEUED = ("invoke enqueue 1 0", "ok enqueue 1 0", "invoke enqueue 2 0", "ok enqueue 2 0")
UNANSWERED = ("invoke dequeue nil 1", "info dequeue nil 1")


def test_a_message_that_jepsen_lost(tmp_path: Path) -> None:
    drain = ("invoke drain nil 2", "ok drain [1] 2")
    assert "nothing-lost" in broken(recorded(tmp_path, *ENQUEUED, *drain))
    (tmp_path / "open").mkdir()
    assert broken(recorded(tmp_path / "open", *ENQUEUED, *UNANSWERED, *drain)) == set()


def test_messages_that_jepsen_had_out_of_order(tmp_path: Path) -> None:
    drain = ("invoke drain nil 2", "ok drain [2,1] 2")
    assert broken(recorded(tmp_path, *ENQUEUED, *drain)) == {"fifo-order"}
    (tmp_path / "open").mkdir()
    assert broken(recorded(tmp_path / "open", *ENQUEUED, *UNANSWERED, *drain)) == set()


@pytest.mark.parametrize("name", ["trace.log", "trace-text.log"])
def test_a_trace_of_a_real_broker(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes((RECORDINGS / name).read_bytes())
    assert broken(path, "firehose:steady") == set()
