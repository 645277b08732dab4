"""Tables hold what records say, files are whole or not there, and what is no history is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from brokerproof.pipeline import tables
from brokerproof.pipeline.readers import parquet
from brokerproof.pipeline.tables import SCHEMA, UnreadableHistory, place_of
from brokerproof.spec.histories import MUST_HAVE, NEVER, Record, what_is_wrong
from tests.pipeline.readers.random_rows import fitting_rows

PUBLISH = Record(op="publish", queue="q", message="m", start=1)


def rows_of(path: Path) -> list[Record]:
    return [record for batch in tables.read(path) for record in tables.records_of(batch)]


def written(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


@given(st.lists(fitting_rows(), max_size=20))
def test_records_come_back_out_of_a_table(rows: list[dict[str, object]]) -> None:
    records = [convert(row, Record) for row in rows]
    batch = tables.batch_of(records, range(len(records)))
    assert batch.schema == SCHEMA
    assert list(tables.records_of(batch)) == records


def test_records_come_back_out_of_a_file(tmp_path: Path) -> None:
    records = [
        Record(op="publish", queue="q", message=f"m{n}", start=n, end=None if n % 3 else n + 1)
        for n in range(2 * tables.BATCH_ROWS + 1)
    ]
    path = tmp_path / "history.parquet"
    assert tables.write(path, iter(records), ["a"]) == len(records)
    assert rows_of(path) == records
    assert tables.files_of(path) == ["a"]
    places = pq.read_table(path).column("place").to_pylist()
    assert places == list(range(1, len(records) + 1))


def test_what_had_no_end_is_null_in_the_file(tmp_path: Path) -> None:
    tables.write(tmp_path / "h.parquet", [PUBLISH])
    assert pq.read_table(tmp_path / "h.parquet").column("end").null_count == 1


def test_the_same_records_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tables.write(tmp_path / name, [PUBLISH] * 100, ["x"])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_columns_are_the_fields_and_the_place() -> None:
    assert SCHEMA.names == [*Record.__struct_fields__, "place"]
    assert {name for name in SCHEMA.names if not SCHEMA.field(name).nullable} == {
        field.name
        for field in SCHEMA
        if field.name in {"op", "run", "start", "place"}
        or (field.name in Record.__struct_fields__ and not tables.COLUMNS[field.name].optional)
    }
    assert SCHEMA.field("start").type == SCHEMA.field("end").type == pa.int64()
    assert SCHEMA.field("position").type == pa.int32()
    assert tables.COLUMNS["start"].most == NEVER - 1
    assert set(tables.COLUMNS["op"].values) == set(MUST_HAVE)


@pytest.mark.parametrize(("file", "line"), [(0, 1), (0, 2**40 - 1), (3, 7), (2**23 - 1, 1)])
def test_a_place_is_a_file_and_a_line(file: int, line: int) -> None:
    assert tables.file_and_line(place_of(file, line)) == (file, line)
    assert place_of(file, line) < 2**63


def test_a_file_that_is_not_finished_is_not_there(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Record]:
        yield PUBLISH
        assert not (tmp_path / "h.parquet").exists()
        raise InterruptedError

    with pytest.raises(InterruptedError):
        tables.write(tmp_path / "h.parquet", interrupted())
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_is_not_there_holds_what_is_meant(tmp_path: Path) -> None:
    table = pa.table({"op": ["crash", "publish"], "start": [1, 2], "queue": [None, "q"]})
    path = written(tmp_path / "h.parquet", table)
    assert rows_of(path) == [
        Record(op="crash", start=1),
        Record(op="publish", queue="q", start=2),
    ]


def test_a_null_is_what_is_not_given(tmp_path: Path) -> None:
    empty = pa.array([None], pa.int64())
    table = pa.table({"op": ["crash"], "start": [1], "priority": empty, "run": pa.nulls(1)})
    assert rows_of(written(tmp_path / "h.parquet", table)) == [Record(op="crash", start=1)]


def test_other_columns_that_hold_the_same_are_taken(tmp_path: Path) -> None:
    table = pa.table(
        {
            "op": pa.array(["publish"]).dictionary_encode(),
            "start": pa.array([1], pa.int32()),
            "queue": pa.array(["q"], pa.large_string()),
            "message": pa.array(["m"]),
            "size": pa.array([7], pa.int64()),
        }
    )
    expected = Record(op="publish", queue="q", message="m", start=1, size=7)
    assert rows_of(written(tmp_path / "h.parquet", table)) == [expected]


MOMENT_US = 1_700_000_000_000_001


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    ("unit", "start", "end"),
    [
        ("ns", MOMENT_US * 1000, MOMENT_US * 1000),
        ("us", MOMENT_US * 1000, MOMENT_US * 1000 + 999),
        ("ms", MOMENT_US // 1000 * 10**6, MOMENT_US // 1000 * 10**6 + 999_999),
    ],
)
def test_times_of_a_clock_become_nanoseconds(
    tmp_path: Path, zone: str | None, unit: str, start: int, end: int
) -> None:
    at = pa.array([MOMENT_US, None], pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    table = pa.table(
        {
            "op": ["declare", "declare"],
            "queue": ["q", "p"],
            "start": at.fill_null(0).cast(pa.timestamp(unit, zone)),
            "end": at.cast(pa.timestamp(unit, zone)),
            "lease": pa.array([5, None], pa.duration("ms")),
        }
    )
    assert rows_of(written(tmp_path / "h.parquet", table)) == [
        Record(op="declare", queue="q", start=start, end=end, lease=5_000_000),
        Record(op="declare", queue="p", start=0),
    ]


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_times_of_a_clock_beyond_the_limits_are_rejected(tmp_path: Path, unit: str) -> None:
    outside = pa.array([-1, -(2**63), 2**63 - 1], pa.int64()).cast(pa.timestamp(unit))
    fine = pa.array([0, 0, 0], pa.timestamp(unit))
    for start, end in ((outside, fine), (fine, outside)):
        table = pa.table({"op": ["crash"] * 3, "start": start, "end": end})
        [chunk] = parquet.chunks(written(tmp_path / "h.parquet", table))
        assert [row.category for row in chunk.rejected] == ["wrong value"] * 3


GOOD = {"op": pa.array(["crash"]), "start": pa.array([1])}
CLOCK = pa.array([1], pa.timestamp("us"))


@pytest.mark.parametrize(
    ("columns", "metadata", "complaint"),
    [
        ({"op": GOOD["op"]}, {}, "the column start is missing"),
        ({"start": GOOD["start"]}, {}, "the column op is missing"),
        (GOOD | {"colour": GOOD["op"]}, {}, "a history has no column colour"),
        (GOOD | {"start": pa.array([1.0])}, {}, "the column start holds double, not int64"),
        (GOOD | {"size": pa.array(["1"])}, {}, "the column size holds string, not int32"),
        (GOOD | {"place": pa.array(["1"])}, {}, "the column place holds string, not int64"),
        (GOOD | {"durable": pa.array([1])}, {}, "the column durable holds int64, not bool"),
        (GOOD | {"queue": pa.array([b"q"])}, {}, "the column queue holds binary, not string"),
        (GOOD | {"end": CLOCK}, {}, "others numbers: start int64, end timestamp[us]"),
        (GOOD | {"start": CLOCK, "end": GOOD["start"]}, {}, "some times are of a clock, and"),
        (GOOD | {"place": CLOCK}, {}, "the column place holds timestamp[us], not int64"),
        (GOOD | {"size": CLOCK}, {}, "the column size holds timestamp[us], not int32"),
        (GOOD | {"lease": CLOCK}, {}, "the column lease holds timestamp[us], not int64"),
        (
            GOOD | {"start": pa.array([1], pa.duration("us"))},
            {},
            "the column start holds duration[us], not int64",
        ),
        (GOOD, {"brokerproof_history": "2"}, "this is version 2 of the form of a history; only 1"),
        (GOOD, {"brokerproof_history": "one"}, "this is version one of the form"),
    ],
)
def test_what_is_no_history_is_refused(
    tmp_path: Path, columns: dict[str, pa.Array], metadata: dict[str, str], complaint: str
) -> None:
    table = pa.table(columns).replace_schema_metadata(metadata)
    path = written(tmp_path / "h.parquet", table)
    with pytest.raises(UnreadableHistory) as error:
        rows_of(path)
    assert str(error.value).startswith(f"{path}: ")
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    arrays = [GOOD["op"], GOOD["start"], GOOD["start"]]
    table = pa.Table.from_arrays(arrays, names=["op", "start", "start"])
    with pytest.raises(UnreadableHistory, match="two columns start"):
        rows_of(written(tmp_path / "h.parquet", table))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 and more, but no Parquet PAR1"])
def test_what_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "h.parquet"
    path.write_bytes(content)
    with pytest.raises(UnreadableHistory, match="not a Parquet file") as error:
        rows_of(path)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableHistory, match="No such file"):
        rows_of(tmp_path / "h.parquet")


def test_a_table_keeps_its_places(tmp_path: Path) -> None:
    place = place_of(4, 9)
    tables.write(tmp_path / "h.parquet", [PUBLISH])
    with tables.Part(tmp_path / "g.parquet", []) as part:
        part.write(tables.batch_of([PUBLISH], [place]))
    [batch] = tables.read(tmp_path / "g.parquet")
    assert batch.column("place").to_pylist() == [place]


def test_the_record_of_this_test_is_right() -> None:
    assert what_is_wrong(PUBLISH) is None
