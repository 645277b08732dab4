"""Any recording becomes a table, the rows add up, and the same rows make the same bytes."""

from __future__ import annotations

import dataclasses
import gzip
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brokerproof.pipeline import tables
from brokerproof.pipeline.readers import blocks, conversion, json_lines, sources
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.pipeline.readers.rejected_rows import (
    CATEGORIES,
    MEANINGS,
    Account,
    Chunk,
    Rejected,
    Unbalanced,
)
from brokerproof.pipeline.readers.rejected_rows import reject as aside
from brokerproof.pipeline.tables import UnreadableHistory
from brokerproof.spec.histories import Record

RECORDINGS = Path(__file__).parent / "recordings"
ALL = sorted(path for path in RECORDINGS.iterdir() if path.is_file())
FORMS = {
    "history.jsonl": "history",
    "queue.edn": "jepsen",
    "spans.jsonl": "otel",
    "trace-text.log": "firehose",
    "trace.log": "firehose",
    "unknown.edn": "jepsen",
}


def crashes(path: Path, count: int) -> Path:
    path.write_bytes(b"".join(lines_of(Record(op="crash", start=n) for n in range(count))))
    return path


def starts(part: Path) -> list[int]:
    return list(pq.read_table(part).column("start").to_pylist())


def test_every_recording_is_known_by_its_name_and_by_its_beginning(tmp_path: Path) -> None:
    assert {path.name: sources.source_of(path).name for path in ALL} == FORMS
    for path in ALL:
        copy = Path(shutil.copy(path, tmp_path / f"{path.stem}-copy"))
        assert sources.source_of(copy).name == FORMS[path.name]


def in_two_pieces(plain: bytes, packed: Callable[[bytes], bytes]) -> bytes:
    """Return what is compressed in two pieces, with an empty one between, as by `cat`."""
    half = len(plain) // 2
    return packed(plain[:half]) + packed(b"") + packed(plain[half:])


ENVELOPES: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda plain: blocks.BYTE_ORDER_MARK + plain,
    "gzip": gzip.compress,
    "gzip twice": lambda plain: in_two_pieces(plain, gzip.compress),
    "zstd": lambda plain: pa.compress(plain, "zstd", asbytes=True),
    "zstd twice": lambda plain: in_two_pieces(plain, ENVELOPES["zstd"]),
    "all": lambda plain: gzip.compress(blocks.BYTE_ORDER_MARK + plain),
}


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_byte_order_mark_and_compression_change_nothing(
    tmp_path: Path, path: Path, envelope: str
) -> None:
    copy = tmp_path / f"{path.stem}-copy"
    found = []
    for content in (path.read_bytes(), ENVELOPES[envelope](path.read_bytes())):
        copy.write_bytes(content)
        found.append(list(sources.read(copy)))
    assert found[0] == found[1]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_what_is_cut_off_or_damaged_is_refused(tmp_path: Path, codec: str) -> None:
    path = crashes(tmp_path / "history.jsonl", 1000)
    whole = pa.compress(path.read_bytes(), codec, asbytes=True)
    for wrong in (whole[:-1], whole[: len(whole) // 2], whole[:5], whole + b"more"):
        path.write_bytes(wrong)
        with pytest.raises(UnreadableHistory, match=f"{path}: "):
            list(sources.read(path))
    path.write_bytes(whole)
    assert len(list(sources.read(path))) == 1000


def test_a_byte_order_mark_anywhere_else_is_wrong(tmp_path: Path) -> None:
    path = crashes(tmp_path / "history.jsonl", 2)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n" + blocks.BYTE_ORDER_MARK))
    rejected = [each for each in sources.read(path) if isinstance(each, Rejected)]
    assert [row.line for row in rejected] == [2, 3, 4]


@pytest.mark.parametrize("name", ["history.jsonl", "queue.edn", "trace.log"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_line_that_is_too_long_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, more: int
) -> None:
    longest = max(map(len, (RECORDINGS / name).read_bytes().splitlines()))
    monkeypatch.setattr(blocks, "LINE_BYTES_MAX", longest)
    path = tmp_path / name
    path.write_bytes((RECORDINGS / name).read_bytes() + b"x" * (longest + more))
    aside = [each for each in sources.read(path) if isinstance(each, Rejected)]
    assert [row.category for row in aside if blocks.WHY_TOO_LONG in row.reason] == (
        ["unreadable"] * more
    )


def test_a_table_is_known_by_its_beginning(tmp_path: Path) -> None:
    tables.write(tmp_path / "table", [Record(op="crash", start=1)])
    assert sources.source_of(tmp_path / "table").name == "parquet"


def test_what_looks_like_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear broker,")
    with pytest.raises(
        UnreadableHistory,
        match=r"in no form that is known; name one with --form .parquet, .* names that begin with",
    ):
        conversion.convert([path], None, tmp_path / "table")


@pytest.mark.parametrize(
    ("form", "complaint"),
    [("kafka", "there is no form 'kafka'"), ("jepsen:x", "nothing can be said behind the form")],
)
def test_a_form_that_is_not_there_is_refused(tmp_path: Path, form: str, complaint: str) -> None:
    with pytest.raises(UnreadableHistory, match=complaint):
        conversion.convert(ALL, form, tmp_path / "table")


def test_a_form_can_be_told_more(tmp_path: Path) -> None:
    done = conversion.convert([RECORDINGS / "trace.log"], "firehose:payload", tmp_path / "table")
    named = conversion.convert([RECORDINGS / "trace.log"], "firehose", tmp_path / "other")
    assert done.account.by_category != named.account.by_category


def test_all_recordings_become_one_table_and_the_rows_add_up(tmp_path: Path) -> None:
    progress = Counter[Path]()

    def told(path: Path, rows: int) -> None:
        progress[path] = rows

    done = conversion.convert(ALL, None, tmp_path / "table", told)
    assert list(progress) == ALL
    assert done.account.rows == progress[ALL[-1]] == 14 + 19 + 14 + 13 + 22 + 14
    assert done.account.rows == done.account.checked + done.account.rejected
    [part] = done.parts
    assert tables.files_of(part) == done.files == [str(path) for path in ALL]
    table = pq.read_table(part)
    assert table.num_rows == done.records
    files = [tables.file_and_line(place)[0] for place in table.column("place").to_pylist()]
    assert files == sorted(files)
    assert set(files) == set(range(len(ALL)))
    written = (tmp_path / "table" / conversion.REJECTED_FILE).read_bytes().splitlines()
    rows = [msgspec.json.decode(line, type=Rejected) for line in written]
    assert len(rows) == done.account.rejected
    assert rows[: conversion.SHOWN_MAX] == done.shown
    assert Counter(row.category for row in rows) == done.account.by_category


def test_the_same_recordings_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        conversion.convert(ALL, None, tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["_rejected.jsonl", "part-00000.parquet"]
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_table_that_was_converted_is_taken_as_it_is(tmp_path: Path) -> None:
    first = conversion.convert(ALL, None, tmp_path / "a")
    again = conversion.convert([tmp_path / "a"], None, tmp_path / "b")
    assert again.parts == first.parts
    assert again.files == first.files
    assert again.account.rows == again.records == first.records
    assert (tmp_path / "b" / conversion.REJECTED_FILE).read_bytes() == b""


def test_parts_whose_rows_are_wrong_or_stand_twice_are_written_again(tmp_path: Path) -> None:
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for number, part in enumerate(parts):
        names = [path.name for path in parts[: number + 1]]
        tables.write(part, [Record(op="crash", start=n) for n in range(3)], names)
    assert conversion.convert(parts, None, tmp_path / "as it is").parts == parts
    # The same places twice.
    shutil.copy(parts[0], tmp_path / "c.parquet")
    twice = conversion.convert([parts[0], tmp_path / "c.parquet"], None, tmp_path / "twice")
    assert twice.records == 6
    assert [path.parent.name for path in twice.parts] == ["twice"]
    # A row that is wrong.
    tables.write(parts[1], [Record(op="close", start=1)], ["a.parquet", "b.parquet"])
    wrong = conversion.convert(parts, None, tmp_path / "wrong")
    assert (wrong.account.rows, wrong.account.rejected, wrong.records) == (4, 1, 3)
    assert [path.parent.name for path in wrong.parts] == ["wrong"]


@pytest.mark.parametrize("broken", [False, True])
def test_any_number_of_processes_makes_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(conversion, "PART_ROWS", 7)
    monkeypatch.setattr(conversion, "GROUP_BYTES", 300)
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(9):
        path = crashes(folder / f"{number}.jsonl", 4 * number)
        path.write_bytes(path.read_bytes() + b"what?\n" * (number % 3))
    if broken:
        (folder / "5.jsonl").write_bytes(b'{"brokerproof_history": 9}\n')
    made = {}
    for processes in (1, 2, 4):
        table = tmp_path / f"by {processes}"
        if broken:
            with pytest.raises(UnreadableHistory, match=r"5\.jsonl: this is version 9"):
                conversion.convert([folder], None, table, processes=processes)
            assert list(table.iterdir()) == []
            continue
        done = conversion.convert([folder], None, table, processes=processes)
        assert done.account.rows == done.records + done.account.rejected == 4 * 36 + 9
        told = [*done.shown, done.account, [path.name for path in done.parts]]
        made[processes] = [(p.name, p.read_bytes()) for p in sorted(table.iterdir())], told
    assert made.get(1) == made.get(2) == made.get(4)


def test_a_process_that_is_killed_ends_the_reading_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "GROUP_BYTES", 1)
    paths = [crashes(tmp_path / f"{number}.jsonl", 3) for number in range(4)]

    def chunks(path: Path, _argument: str) -> Iterator[Chunk]:
        if path == paths[2]:
            os.kill(os.getpid(), signal.SIGKILL)
        return json_lines.chunks(path)

    history = dataclasses.replace(sources.SOURCES["history"], chunks=chunks)
    monkeypatch.setitem(sources.SOURCES, "history", history)
    with pytest.raises(UnreadableHistory, match=r"2\.jsonl: the process that read it was ended"):
        conversion.convert(paths, None, tmp_path / "table", processes=2)
    assert list((tmp_path / "table").iterdir()) == []


@pytest.mark.parametrize(("rows", "sizes"), [(0, [0]), (5, [5]), (10, [5, 5]), (12, [5, 5, 2])])
def test_parts_are_of_a_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(conversion, "PART_ROWS", 5)
    done = conversion.convert([crashes(tmp_path / "h.jsonl", rows)], None, tmp_path / "table")
    assert [len(starts(part)) for part in done.parts] == sizes
    assert [start for part in done.parts for start in starts(part)] == list(range(rows))


def test_nothing_is_left_of_a_table_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "PART_ROWS", 5)
    good = crashes(tmp_path / "h.jsonl", 12)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnreadableHistory, match="not a Parquet file"):
        conversion.convert([good, tmp_path / "bad.parquet"], None, tmp_path / "table")
    assert list((tmp_path / "table").iterdir()) == []


def test_a_folder_is_its_files_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.jsonl", "a.jsonl", "_SUCCESS", ".hidden"):
        crashes(folder / name, 1)
    done = conversion.convert([folder], None, tmp_path / "table")
    assert done.files == [str(folder / "a.jsonl"), str(folder / "b.jsonl")]


def test_folders_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableHistory, match="there are no files in this folder"):
        conversion.convert([tmp_path / "empty"], None, tmp_path / "table")
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    with pytest.raises(UnreadableHistory, match="inner: this is a folder in a folder; name it"):
        conversion.convert([tmp_path / "outer"], None, tmp_path / "table")
    with pytest.raises(UnreadableHistory, match="there is something in this folder"):
        conversion.convert(ALL, None, RECORDINGS)
    with pytest.raises(UnreadableHistory, match="File exists"):
        conversion.convert(ALL, None, ALL[0])
    with pytest.raises(UnreadableHistory, match="No such file"):
        conversion.convert([tmp_path / "nowhere"], None, tmp_path / "other")


def test_read_yields_what_convert_counts(tmp_path: Path) -> None:
    for path in ALL:
        found = list(sources.read(path))
        done = conversion.convert([path], None, tmp_path / path.name)
        records = [each for each in found if isinstance(each, Record)]
        assert (len(records), len(found) - len(records)) == (done.records, done.account.rejected)


def test_an_account_that_does_not_add_up_is_our_fault() -> None:
    account = Account()
    account.add(3, 2, Counter(["missing"]))
    with pytest.raises(Unbalanced, match=r"3 rows are not 3 \+ 1"):
        account.add(3, 3, Counter(["missing"]))
    assert str(account) == "3 rows in = 2 checked + 1 rejected (1 missing)"
    assert str(Account(1_000, 1_000)) == "1,000 rows in = 1,000 checked + 0 rejected"


def test_counts_that_begin_with_nothing_are_said() -> None:
    account = Account()
    account.add(10, 0, Counter({"missing": 10}))
    assert str(account) == "10 rows in = 0 checked + 10 rejected (10 missing)"


def test_a_row_that_was_rejected_is_one_line() -> None:
    row = aside("missing", "two\n lines", "file", 3, "x" * 201)
    assert (str(row), row.text) == ("file:3: missing: two lines", "")


def test_every_category_has_a_meaning() -> None:
    assert tuple(MEANINGS) == CATEGORIES
