"""Columns are judged as single records are: by msgspec, and by `what_is_wrong`."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokerproof.pipeline.readers import row_checks
from brokerproof.pipeline.readers.rejected_rows import Category, Chunk
from brokerproof.pipeline.readers.row_checks import checked
from brokerproof.pipeline.tables import COLUMNS, PLACE, SCHEMA, _completed, records_of
from brokerproof.spec.histories import Record, what_is_wrong
from tests.pipeline.readers.random_rows import any_rows, fitting_rows


def as_read(rows: list[dict[str, object]]) -> pa.RecordBatch:
    """Return rows as they are read from a file whose numbers are wide."""
    wide = {"text": pa.string(), "time": pa.int64(), "count": pa.int64(), "truth": pa.bool_()}
    arrays = [pa.array([row.get(n) for row in rows], wide[c.content]) for n, c in COLUMNS.items()]
    return _completed(pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS)), 1)


def singly(row: dict[str, object]) -> Record | None:
    """Return the record that a row makes, None where it is wrong."""
    try:
        record = msgspec.convert(row, Record)
    except msgspec.ValidationError:
        return None
    return None if what_is_wrong(record) else record


def assert_as_singly(rows: list[dict[str, object]], chunk: Chunk) -> None:
    expected = [singly(row) for row in rows]
    assert [row.line for row in chunk.rejected] == [
        number for number, record in enumerate(expected, 1) if record is None
    ]
    assert list(records_of(chunk.batch)) == [record for record in expected if record is not None]
    assert chunk.rows == len(rows) == chunk.batch.num_rows + len(chunk.rejected)


@settings(max_examples=150, deadline=None)
@given(st.lists(any_rows(), min_size=1, max_size=40))
def test_columns_are_judged_as_single_records_are(rows: list[dict[str, object]]) -> None:
    assert_as_singly(rows, checked(as_read(rows), "file"))


FIT: dict[str, object] = {
    "op": "deliver",
    "queue": "q",
    "message": "m",
    "consumer": "c",
    "position": 0,
    "start": 1,
    "end": 2,
}


@pytest.mark.parametrize(
    ("change", "category", "reason"),
    [
        ({"op": None}, "missing", "there is no op"),
        ({"start": None}, "missing", "there is no start"),
        ({"position": None}, "missing", "deliver has no position"),
        ({"queue": None}, "missing", "deliver has no queue"),
        ({"end": None}, "missing", "deliver has no end"),
        ({"op": "given"}, "wrong value", "op is 'given', not one of acknowledge, cancel"),
        ({"outcome": "maybe"}, "wrong value", "outcome is 'maybe', not one of"),
        ({"start": -1}, "wrong value", "start is -1, not 0 to 4611686018427387903"),
        ({"end": 2**62}, "wrong value", "end is 4611686018427387904, not 0 to"),
        ({"priority": 256}, "wrong value", "priority is 256, not 0 to 255"),
        ({"size": 2**31}, "wrong value", "size is 2147483648, not 0 to 2147483647"),
        ({"message": ""}, "wrong value", "message is of 0 characters, not of 1 to 256"),
        ({"message": "é" * 257}, "wrong value", "message is of 257 characters"),
        ({"end": 0}, "ends before it starts", "it ends at 0, before it starts at 1"),
    ],
)
def test_the_reason_is_said(change: dict[str, object], category: Category, reason: str) -> None:
    rows = [FIT, FIT | change, FIT]
    chunk = checked(as_read(rows), "some/file")
    [aside] = chunk.rejected
    assert (aside.category, aside.file, aside.line) == (category, "some/file", 2)
    assert reason in aside.reason
    assert chunk.batch.column(PLACE).to_pylist() == [1, 3]
    assert_as_singly(rows, chunk)


def test_a_text_that_is_none_sets_its_row_aside() -> None:
    batch = as_read([FIT, FIT, FIT])
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array([b"q", b"\xff", b"q"]).buffers())
    chunk = checked(batch.set_column(SCHEMA.names.index("queue"), "queue", broken), "file")
    assert [(each.line, each.category) for each in chunk.rejected] == [(2, "wrong value")]
    assert chunk.rejected[0].reason == "queue is not UTF-8"
    assert chunk.batch.num_rows == 2


def test_what_is_right_is_in_the_columns_of_a_history() -> None:
    assert checked(as_read([FIT]), "file").batch.schema == SCHEMA


@settings(max_examples=20, deadline=None)
@given(st.lists(fitting_rows(), min_size=1, max_size=10))
def test_what_is_right_is_not_rejected(rows: list[dict[str, object]]) -> None:
    assert checked(as_read(rows), "file").rejected == []


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("_nulls", FIT | {"position": None}),
        ("_beyond", FIT | {"priority": 256}),
        ("_so", FIT | {"end": 0}),
    ],
)
def test_a_check_that_sees_nothing_is_found_out(
    monkeypatch: pytest.MonkeyPatch, name: str, spoilt: dict[str, object]
) -> None:
    def sees_nothing(*values: pa.Array) -> object:
        return np.zeros(len(values[-1]), dtype=np.bool_)

    monkeypatch.setattr(row_checks, name, sees_nothing)
    with pytest.raises((AssertionError, pa.ArrowInvalid)):
        assert_as_singly([spoilt], checked(as_read([spoilt]), "file"))
