"""Histories in their own forms: each row is checked or rejected at its place, none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from brokerproof.pipeline import tables
from brokerproof.pipeline.readers import blocks, conversion, json_lines, sources
from brokerproof.pipeline.readers.rejected_rows import Rejected
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import Record
from tests.pipeline.readers.random_rows import fitting_rows

RECORDING = Path(__file__).parent / "recordings" / "history.jsonl"
CRASH = b'{"op":"crash","start":1}'


def read(path: Path) -> tuple[list[Record], list[Rejected]]:
    found = list(sources.read(path))
    records = [each for each in found if isinstance(each, Record)]
    return records, [each for each in found if isinstance(each, Rejected)]


def of_bytes(folder: Path, content: bytes) -> Path:
    path = folder / "history.jsonl"
    path.write_bytes(content)
    return path


def test_a_recording_is_read_and_what_is_wrong_is_rejected() -> None:
    records, aside = read(RECORDING)
    assert [record.op for record in records] == [
        *("declare", "consume", "publish", "publish", "deliver", "acknowledge")
    ]
    assert [(row.line, row.category) for row in aside] == [
        (8, "missing"),
        (9, "ends before it starts"),
        (10, "wrong value"),
        (11, "wrong value"),
        (12, "missing"),
        (13, "wrong value"),
        (14, "unreadable"),
        (15, "unreadable"),
    ]
    assert aside[0].reason == "deliver has no position"
    assert aside[2].reason == "Expected `int` >= 0 in `position`"
    assert aside[5].reason == "Object contains unknown field `colour`"
    assert aside[7].text == "crash"
    assert str(aside[4]).startswith(
        f"{RECORDING}:12: missing: Object missing required field `start`"
    )


def test_rows_in_are_rows_checked_and_rows_rejected() -> None:
    [chunk] = json_lines.chunks(RECORDING)
    assert (chunk.rows, chunk.batch.num_rows, len(chunk.rejected)) == (14, 6, 8)
    assert chunk.batch.column("place").to_pylist() == [2, 3, 5, 6, 7, 16]


@given(rows=st.lists(fitting_rows(), max_size=20))
def test_json_to_parquet_to_records(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    folder = tmp_path_factory.mktemp("history")
    records = [convert(row, Record) for row in rows]
    path = of_bytes(folder, b"".join(json_lines.lines_of(records)))
    done = conversion.convert([path], None, folder / "table")
    assert done.account.rows == done.account.checked == done.records == len(records)
    [part] = done.parts
    assert read(part) == (records, [])


@pytest.mark.parametrize("end", [b"\n", b"", b"\r\n", b"\n\n \n"])
def test_how_the_last_line_ends_does_not_matter(tmp_path: Path, end: bytes) -> None:
    records, aside = read(of_bytes(tmp_path, CRASH + b"\n" + CRASH + end))
    assert (len(records), aside) == (2, [])


def test_a_line_holds_one_record(tmp_path: Path) -> None:
    halves = b'{"op":"crash",\n"start":1}\n' + CRASH
    records, aside = read(of_bytes(tmp_path, halves))
    assert len(records) == 1
    assert [row.line for row in aside] == [1, 2]


@pytest.mark.parametrize(
    "line", [b"\xff", b'{"op":"crash","start":1,"run":"\xff"}', b"[" * 100_000, b"null", b"[]"]
)
def test_any_bytes_at_all_are_rejected(tmp_path: Path, line: bytes) -> None:
    records, aside = read(of_bytes(tmp_path, CRASH + b"\n" + line + b"\n" + CRASH))
    assert len(records) == 2
    assert [row.line for row in aside] == [2]
    assert "\n" not in str(aside[0])


def test_only_short_rows_are_shown(tmp_path: Path) -> None:
    _, [row] = read(of_bytes(tmp_path, b"x" * 300))
    assert row.text == ""


@pytest.mark.parametrize("before", [b"", b"\n \n"])
def test_the_header_is_no_row(tmp_path: Path, before: bytes) -> None:
    path = of_bytes(tmp_path, before + b'{"brokerproof_history": 1}\n' + CRASH)
    assert read(path) == ([Record(op="crash", start=1)], [])


def test_a_header_is_a_row_anywhere_else(tmp_path: Path) -> None:
    path = of_bytes(tmp_path, CRASH + b'\n{"brokerproof_history": 1}\n')
    records, [aside] = read(path)
    assert len(records) == 1
    assert (aside.line, aside.category) == (2, "wrong value")


@pytest.mark.parametrize("version", [b"2", b'"1"', b"null", b"true", b"1.0"])
def test_another_version_is_refused(tmp_path: Path, version: bytes) -> None:
    path = of_bytes(tmp_path, b'{"brokerproof_history": ' + version + b"}\n" + CRASH)
    with pytest.raises(UnreadableHistory, match="only 1 is known"):
        read(path)


def test_blocks_are_of_whole_lines(tmp_path: Path) -> None:
    lines = [b"a" * length for length in (0, 3, 9, 1, 0, 20, 2)]
    path = of_bytes(tmp_path, b"\n".join(lines))
    for size in range(1, 40):
        found = list(blocks.blocks(path, size))
        assert [line for block in found for line in block.lines] == lines
        firsts = [block.first for block in found]
        assert firsts == [1 + sum(len(b.lines) for b in found[:n]) for n in range(len(found))]


@pytest.mark.parametrize("size", [1, 4, 7, 64, 1000])
def test_a_line_that_is_too_long_is_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(blocks, "LINE_BYTES_MAX", 10)
    long = [b"x" * length for length in (11, 25, 300)]
    lines = [long[0], b"a" * 10, long[1], b"", long[2]]
    found = [
        line
        for block in blocks.blocks(of_bytes(tmp_path, b"\n".join(lines)), size)
        for line in block.lines
    ]
    assert found == [blocks.TOO_LONG if line in long else line for line in lines]


@pytest.mark.parametrize("padding", [b" ", b"x"])
def test_the_rows_around_a_line_that_is_too_long_are_read(tmp_path: Path, padding: bytes) -> None:
    long = CRASH + padding * blocks.LINE_BYTES_MAX
    records, aside = read(of_bytes(tmp_path, b"\n".join([long, CRASH, long, CRASH])))
    assert len(records) == 2
    assert [(row.line, row.reason, row.text) for row in aside] == [
        (line, "the line has more than 16,777,216 bytes", "") for line in (1, 3)
    ]
    records, aside = read(of_bytes(tmp_path, long[: blocks.LINE_BYTES_MAX]))
    assert (len(records), len(aside)) == ((1, 0) if padding == b" " else (0, 1))


def test_bad_rows_stand_at_their_lines_in_every_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(path: Path) -> Iterator[blocks.Block]:
        return blocks.blocks(path, 64)

    monkeypatch.setattr(json_lines, "blocks", small)
    lines = [b"no" if number % 7 == 0 else CRASH for number in range(1, 100)]
    found = list(json_lines.chunks(of_bytes(tmp_path, b"\n".join(lines))))
    assert len(found) > 10
    assert [row.line for chunk in found for row in chunk.rejected] == list(range(7, 100, 7))
    assert sum(chunk.rows for chunk in found) == 99


def test_a_row_of_parquet_is_rejected_at_its_row(tmp_path: Path) -> None:
    good = Record(op="publish", queue="q", message="m", start=1)
    bad = Record(op="publish", queue="q", start=1)
    path = tmp_path / "h.parquet"
    count = tables.BATCH_ROWS
    tables.write(path, [*[good] * count, bad, good])
    records, [aside] = read(path)
    assert len(records) == count + 1
    assert (aside.line, aside.category, aside.file) == (count + 1, "missing", str(path))
