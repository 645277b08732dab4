"""Jepsen's histories are read for what is certain; what is not is left open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerproof.pipeline.readers import conversion, edn, jepsen
from brokerproof.pipeline.readers.edn import Keyword, Unreadable
from brokerproof.pipeline.readers.rejected_rows import Rejected
from brokerproof.pipeline.readers.rows import Used
from brokerproof.spec.histories import Record, what_is_wrong

RECORDINGS = Path(__file__).parent / "recordings"
QUEUE = RECORDINGS / "queue.edn"
UNKNOWN = RECORDINGS / "unknown.edn"


def rows_of(path: Path) -> tuple[list[Used], list[Rejected]]:
    found = list(jepsen.read(path))
    used = [each for each in found if isinstance(each, Used)]
    return used, [each for each in found if isinstance(each, Rejected)]


def records_of(path: Path) -> list[Record]:
    return [record for row in rows_of(path)[0] for record in row.records]


def of_text(folder: Path, *lines: str) -> Path:
    path = folder / "history.edn"
    path.write_text("\n".join(lines))
    return path


def op(kind: str, work: str, value: object, process: int, time: int, more: str = "") -> str:
    of = f":type :{kind}, :f :{work}, :value {value}, :process {process}, :time {time}"
    return f"{{{of}{more}}}"


def publish(message: str, start: int, end: int | None, outcome: str = "ok") -> tuple[object, ...]:
    return ("publish", message, start, end, outcome)


def told(records: list[Record]) -> list[tuple[object, ...]]:
    return [
        (record.op, record.message, record.start, record.end, record.outcome) for record in records
    ]


def test_a_history_is_read() -> None:
    records = records_of(QUEUE)
    assert told(records) == [
        ("declare", None, 0, 0, "ok"),
        publish("1", 100, 120),
        publish("2", 110, None, "unknown"),
        ("deliver", "1", 150, 160, "ok"),
        ("empty", None, 170, 180, "ok"),
        publish("3", 190, 200, "failed"),
        publish("4", 230, 240),
        publish("5", 250, 260),
        ("deliver", "4", 270, 280, "ok"),
        ("deliver", "5", 270, 280, "ok"),
        ("drained", None, 270, 280, "ok"),
    ]
    given = [record for record in records if record.op == "deliver"]
    assert [(r.consumer, r.position, r.mode) for r in given] == [
        ("process 0", 0, "automatic"),
        ("process 3", 0, "automatic"),
        ("process 3", 1, "automatic"),
    ]
    assert all(what_is_wrong(record) is None for record in records)


def test_every_row_is_used_or_rejected() -> None:
    used, aside = rows_of(QUEUE)
    assert sorted([row.line for row in used] + [row.line for row in aside]) == list(range(1, 20))
    assert [(row.line, row.category) for row in aside] == [(5, "about something else")]
    assert aside[0].reason == ":nemesis did :start"


def test_what_was_not_given_before_an_unknown_dequeue_is_left_open() -> None:
    assert told(records_of(UNKNOWN)) == [
        ("declare", None, 0, 0, "ok"),
        publish('"a"', 0, 1),
        publish('"b"', 2, None, "unknown"),
        ("deliver", '"a"', 8, 9, "ok"),
    ]


def test_a_value_that_is_enqueued_twice_is_rejected() -> None:
    used, aside = rows_of(UNKNOWN)
    assert [(row.line, row.category) for row in aside] == [
        (5, "not told apart"),
        (7, "not told apart"),
        (15, "not told apart"),
    ]
    assert len(used) + len(aside) == 14


def test_a_drain_of_unknown_end_leaves_open_too(tmp_path: Path) -> None:
    path = of_text(
        tmp_path,
        op("invoke", "enqueue", 1, 0, 10),
        op("ok", "enqueue", 1, 0, 20),
        op("invoke", "drain", "nil", 1, 30),
    )
    assert told(records_of(path))[1:] == [publish("1", 10, None, "unknown")]


def test_what_failed_stays_failed_though_much_is_unknown(tmp_path: Path) -> None:
    path = of_text(
        tmp_path,
        op("invoke", "enqueue", 1, 0, 10),
        op("fail", "enqueue", 1, 0, 20),
        op("invoke", "dequeue", "nil", 1, 0),
    )
    assert told(records_of(path))[1:] == [publish("1", 10, 20, "failed")]


@pytest.mark.parametrize(
    ("value", "more", "empties"),
    [
        (":exhausted", "", 1),
        ("nil", ", :error :empty", 1),
        ("nil", ', :error "exhausted"', 1),
        ("nil", ", :error :timeout", 0),
        ("nil", "", 0),
    ],
)
def test_only_a_dequeue_that_says_so_found_nothing(
    tmp_path: Path, value: str, more: str, empties: int
) -> None:
    path = of_text(
        tmp_path,
        op("invoke", "dequeue", "nil", 0, 10),
        op("fail", "dequeue", value, 0, 20, more),
    )
    assert [record.op for record in records_of(path)] == ["declare"] + ["empty"] * empties


def test_an_answer_without_its_question_began_at_any_time(tmp_path: Path) -> None:
    path = of_text(tmp_path, op("ok", "enqueue", 1, 0, 20), op("ok", "dequeue", 1, 0, 30))
    assert told(records_of(path))[1:] == [publish("1", 0, 20), ("deliver", "1", 0, 30, "ok")]


def test_rows_that_cannot_be_read_accuse_nothing(tmp_path: Path) -> None:
    path = of_text(
        tmp_path,
        op("invoke", "enqueue", 1, 0, 10),
        op("ok", "enqueue", 1, 0, 20),
        "{:type :invoke, :f",
        op("invoke", "dequeue", "nil", 1, 30),
    )
    used, aside = rows_of(path)
    assert aside[0].category == "unreadable"
    assert aside[0].line == 3
    path = of_text(
        tmp_path,
        "{:type :invoke, :f :enqueue, :value }",
        "{:type :invoke :process 0 :time 0}",
        "{:type :odd, :f :enqueue, :process 0, :time 1}",
        '{:type :ok, :f :enqueue, :process "0", :time 1}',
        op("ok", "dequeue", 7, 1, -1),
        op("invoke", "dequeue", "nil", 1, 30),
        op("ok", "dequeue", 7, 1, 40),
        "42",
    )
    used, aside = rows_of(path)
    assert [(row.line, row.category) for row in aside] == [
        (1, "unreadable"),
        (2, "missing"),
        (3, "wrong value"),
        (4, "wrong value"),
        (5, "wrong value"),
        (8, "unreadable"),
    ]
    assert told([record for row in used for record in row.records])[1:] == [
        publish("7", 0, None, "unknown"),
        ("deliver", "7", 30, 40, "ok"),
    ]


def test_the_account_of_a_history_is_whole(tmp_path: Path) -> None:
    done = conversion.convert([QUEUE, UNKNOWN], None, tmp_path / "table")
    assert str(done.account) == (
        "33 rows in = 29 checked + 4 rejected (3 not told apart, 1 about something else)"
    )


# EDN.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        ("-3", -3),
        ("+7N", 7),
        ("1.5e3", 1500.0),
        ("2.5M", 2.5),
        ('"a \\"b\\" \\n \\u00e9"', 'a "b" \n é'),
        ("\\a", "\\a"),
        (":k/w", Keyword(":k/w")),
        ("sym-bol", Keyword("sym-bol")),
        ("[1, [2 3] ()]", [1, [2, 3], []]),
        ("#{1 2}", [1, 2]),
        ("{:a 1, [2 3] nil}", {":a": 1, "[2 3]": None}),
        ('#inst "2020"', "2020"),
        ("[1 #_ [2 3] 4 #_5]", [1, 4]),
        ("1 ; and more", 1),
    ],
)
def test_edn_is_read(text: str, value: edn.Value) -> None:
    found = edn.value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "]",
        "[1}",
        "{1}",
        '"a',
        "1 2",
        "#_",
        " " * 10_000 + "#",
        "[" * 99 + "]" * 99,
        "#",
        '"\\q"',
        "{:a}",
    ],
)
def test_what_is_not_edn_is_said_to_be_none(text: str) -> None:
    with pytest.raises(Unreadable) as error:
        edn.value_of(text)
    assert "\n" not in str(error.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.integers().map(str), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_comes_back_out_of_its_text(value: edn.Value) -> None:
    assert edn.value_of(edn.text_of(value)) == value


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_unreadable(text: str) -> None:
    with suppress(Unreadable):
        edn.text_of(edn.value_of(text))


def test_forms_have_the_lines_on_which_they_begin(tmp_path: Path) -> None:
    path = of_text(tmp_path, "[1 {:a", "  2} ; c", "", "#_ [0", "1] x", "", '"no', "3]", "4")
    found = [
        (line, "unreadable" if isinstance(form, Unreadable) else form)
        for line, form in edn.forms(path)
    ]
    assert found == [(1, 1), (1, {":a": 2}), (5, "x"), (7, "unreadable"), (8, 3), (9, 4)]
