"""`brokerproof trace check` as a user runs it: statuses, what is printed, what is left behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import click.testing
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from brokerproof.checks.commands.command_line import main
from brokerproof.checks.replay import Replay, rejudge
from brokerproof.checks.search import counterexamples
from brokerproof.pipeline.commands import check
from brokerproof.spec.histories import Record
from brokerproof.spec.requirements import catalogue
from tests.pipeline.recorders import recorded, table_of


def sound() -> list[Record]:
    """Two messages, one after the other, in a queue that is drained in the end."""
    records = [Record(op="declare", queue="q", start=0, end=1)]
    for n in range(2):
        at = 10 + 10 * n
        given = recorded(
            "deliver",
            at + 40,
            at + 41,
            message=f"m{n}",
            consumer="c",
            position=n,
            redelivered=False,
        )
        records += [
            Record(op="publish", queue="q", message=f"m{n}", start=at, end=at + 1),
            given,
            msgspec.structs.replace(
                given, op="acknowledge", start=at + 42, end=at + 43, redelivered=None
            ),
        ]
    return [*records, Record(op="drained", queue="q", start=100, end=101)]


def overtaking() -> list[Record]:
    """The same, but the second message was given first."""
    swap = {"m0": "m1", "m1": "m0"}
    return [
        each
        if each.op == "publish" or each.message is None
        else msgspec.structs.replace(each, message=swap[each.message])
        for each in sound()
    ]


def written(path: Path, records: Iterable[Record], *lines: bytes) -> Path:
    encoded = [msgspec.json.encode(each) for each in records]
    path.write_bytes(b"\n".join([b'{"brokerproof_history":1}', *encoded, *lines]) + b"\n")
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report"


def run(*words: str | Path) -> click.testing.Result:
    return click.testing.CliRunner().invoke(main, ["trace", "check", *map(str, words)])


def test_a_sound_history_is_kept(tmp_path: Path, report: Path) -> None:
    result = run(written(tmp_path / "night.jsonl", sound()), "--report", report)
    assert result.exit_code == 0, result.output
    assert "8 rows in = 8 checked + 0 rejected" in result.output
    assert "4 kept" in result.output
    assert pq.read_table(report / "violations.parquet").num_rows == 0
    assert not (report / "witnesses").exists()


def test_a_wrong_one_is_found_and_can_be_judged_again(tmp_path: Path, report: Path) -> None:
    result = run(written(tmp_path / "night.jsonl", overtaking()), "--report", report)
    assert result.exit_code == 1, result.output
    assert "m0, which waited ahead of it, to be given before m1" in result.output
    [row] = pq.read_table(report / "violations.parquet").to_pylist()
    assert (row["requirement"], row["message"], row["witness"]) == ("fifo-order", "m1", "m0")
    found = counterexamples.read(report / "counterexamples" / "fifo-order.json")
    assert rejudge(found, frozenset(catalogue())).outcome is Replay.SAME
    for form in ("verdict.json", "report.html", "junit.xml", "verdict.sarif"):
        assert b"fifo-order" in (report / form).read_bytes()
    # What witnesses it is a history of its own, and breaks the same.
    again = run(report / "witnesses" / "fifo-order.jsonl", "--report", tmp_path / "again")
    assert again.exit_code == 1
    assert pq.read_table(tmp_path / "again" / "violations.parquet").to_pylist() == [row]


def test_the_last_line_is_a_command_that_shows_it_again(tmp_path: Path, report: Path) -> None:
    last = run(written(tmp_path / "night.jsonl", overtaking()), "--report", report).output
    words = shlex.split(last.splitlines()[-1].removeprefix("to see it again: brokerproof "))
    again = click.testing.CliRunner().invoke(main, words)
    assert again.exit_code == 1
    assert "broken again: fifo-order" in again.output
    words.remove("--rejudge")
    refused = click.testing.CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "it is of a recording; add --rejudge, or name a CANDIDATE" in refused.output


def test_a_requirement_without_counted_cases_says_so(tmp_path: Path, report: Path) -> None:
    run(written(tmp_path / "night.jsonl", sound()), "--report", report)
    said = json.loads((report / "verdict.json").read_bytes())["candidates"][0]["verdicts"]
    why = {each["requirement"]: each["reason"] for each in said}
    assert why["close-releases"].startswith("its cases are not counted")
    assert why["get-finds"] == "nothing in the history puts it to the test"


def test_a_long_history_gives_the_same_report(
    tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "night.jsonl", overtaking(), b"what?")
    whole = run(path, "--report", report).output
    monkeypatch.setattr(check, "judged_alone", None)
    monkeypatch.setattr(check, "SHORT", 3)
    in_parts = run(path, "--report", tmp_path / "parts").output
    assert in_parts.replace(str(tmp_path / "parts"), str(report)) == whole
    for name in ("violations.parquet", "coverage.parquet", "rejected.parquet"):
        assert (tmp_path / "parts" / name).read_bytes() == (report / name).read_bytes()


def test_what_cannot_be_read_is_rejected_with_its_place(tmp_path: Path, report: Path) -> None:
    lost = Record(op="acknowledge", queue="q", message="m9", consumer="c", position=9, start=50)
    path = written(tmp_path / "night.jsonl", [*sound(), lost], b'{"op":"publish"}', b"what?")
    result = run(path, "--report", report)
    assert result.exit_code == 0, result.output
    assert "11 rows in = 8 checked + 3 rejected" in result.output
    assert f"{path}:11: " in result.output
    assert f"{path}:12: " in result.output
    assert f"{path}:10: refers to nothing: " in result.output
    [row] = pq.read_table(report / "rejected.parquet").to_pylist()
    assert (row["file"], row["line"], row["category"]) == (str(path), 10, "refers to nothing")


def test_a_history_without_traffic_decides_nothing(tmp_path: Path, report: Path) -> None:
    path = written(tmp_path / "night.jsonl", sound()[:1])
    assert run(path, "--report", report).exit_code == 3


def test_what_was_there_before_the_recording_is_no_invention(tmp_path: Path, report: Path) -> None:
    late = [each for each in sound() if (each.op, each.message) != ("publish", "m0")]
    path = written(tmp_path / "night.jsonl", late)
    assert run(path, "--report", report).exit_code == 1
    result = run(path, "--begins-late", "--report", report)
    assert result.exit_code == 0, result.output
    assert "its message is not published" in str(
        pq.read_table(report / "rejected.parquet").to_pylist()
    )


def by_priority(*, declared: bool) -> list[Record]:
    """Two messages, the more urgent one given first; what is said is said by the declaration."""
    first, *others = overtaking()
    urgent = [
        msgspec.structs.replace(each, priority=9) if each.message == "m1" else each
        for each in others
    ]
    declaration = msgspec.structs.replace(first, levels=10)
    return [declaration, *urgent] if declared else urgent


def test_a_queue_that_is_not_declared_may_be_of_any_order(tmp_path: Path, report: Path) -> None:
    path = written(tmp_path / "night.jsonl", by_priority(declared=False))
    result = run(path, "--report", report)
    assert result.exit_code == 0, result.output
    assert (
        "order not checked: q was never declared; say what they are with --queue" in result.output
    )
    said = msgspec.json.decode((report / "verdict.json").read_bytes())
    [reason] = [
        each["reason"]
        for each in said["candidates"][0]["verdicts"]
        if each["requirement"] == "fifo-order"
    ]
    assert reason == "order not checked: q was never declared"
    # It is asked all the same that nothing is lost.
    lost = [
        each for each in by_priority(declared=False) if each.message != "m0" or each.op == "publish"
    ]
    result = run(
        written(tmp_path / "lost.jsonl", lost), "--report", report, "--only", "nothing-lost"
    )
    assert result.exit_code == 1


@pytest.mark.parametrize("option", [("--undeclared", "fifo"), ("--queue", "q=fifo,durable")])
def test_what_a_queue_is_can_be_said(tmp_path: Path, report: Path, option: tuple[str, str]) -> None:
    path = written(tmp_path / "night.jsonl", by_priority(declared=False))
    result = run(path, *option, "--report", report)
    assert result.exit_code == 1, result.output
    assert "never declared" not in result.output
    # The small history declares what was said, so that it breaks the same by itself.
    [found] = pq.read_table(report / "violations.parquet").to_pylist()
    assert (
        run(report / "witnesses" / "fifo-order.jsonl", "--report", tmp_path / "again").exit_code
        == 1
    )
    assert pq.read_table(tmp_path / "again" / "violations.parquet").to_pylist() == [found]
    assert run(path, "--queue", "q=priority:10", "--report", report).exit_code == 0


def test_what_is_said_of_a_queue_that_is_not_there_is_told(tmp_path: Path, report: Path) -> None:
    path = written(tmp_path / "night.jsonl", sound())
    result = run(path, "--queue", "p=fifo", "--report", report)
    assert "--queue p: nothing in the history is about a queue of this name" in result.output


def test_a_witness_holds_what_its_queue_went_through_and_nothing_else(
    tmp_path: Path, report: Path
) -> None:
    others = [
        Record(op="declare", queue="other", start=0, end=1),
        Record(op="consume", queue="other", consumer="o", channel="1", start=2, end=3),
        Record(op="cancel", consumer="o", channel="1", start=4, end=5),
        Record(op="close", channel="1", start=6, end=7),
        Record(op="drained", queue="other", start=8, end=9),
        Record(op="purge", queue="q", start=1, end=2),
    ]
    path = written(tmp_path / "night.jsonl", [*overtaking(), *others])
    assert run(path, "--report", report).exit_code == 1
    header, *lines = (report / "witnesses" / "fifo-order.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert {row["queue"] for row in rows} == {"q"}
    kinds = [row["op"] for row in rows if "message" not in row]
    assert kinds == ["declare", "purge", "drained"]
    assert not {"run", "mode", "outcome", "returns", "priority", "size"} & {
        k for r in rows for k in r
    }
    assert header == '{"brokerproof_history":1}'


@pytest.mark.parametrize("content", [b"", b'{"brokerproof_history":1}\n', b"what?\n"])
def test_that_nothing_was_checked_is_said(tmp_path: Path, report: Path, content: bytes) -> None:
    path = tmp_path / "night.jsonl"
    path.write_bytes(content)
    result = run(path, "--report", report)
    assert result.exit_code == 3
    why = "no requirement is put to the test" if b"what" in content else "it has no rows"
    assert f"nothing was checked of {path}: {why}" in result.output
    assert run(path, "--report", report, "--accept-inconclusive").exit_code == 3


def test_what_is_no_recording_in_a_folder_is_told_apart(tmp_path: Path, report: Path) -> None:
    folder = tmp_path / "night"
    folder.mkdir()
    written(folder / "part-0.jsonl", sound())
    for name in ("_SUCCESS", ".part-0.jsonl.crc", "_metadata"):
        (folder / name).write_bytes(b"whatever")
    assert run(folder, "--report", report).exit_code == 0
    (folder / "README").write_text("Recorded at night.")
    result = run(folder, "--report", report)
    assert result.exit_code == 2
    [line] = [each for each in result.output.splitlines() if each.startswith("Error")]
    assert f"{folder / 'README'}: this is in no form that is known" in line
    assert "if it is no recording, move it away" in line


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_host_is_told_as_the_gate_tells_it(
    tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    path = written(tmp_path / "night.jsonl", overtaking() if is_broken else sound(), b"::error::x")
    result = run(path, "--report", report)
    annotations = [each for each in result.output.splitlines() if each.startswith("::error title")]
    assert len(annotations) == is_broken
    assert all("fifo-order broken" in each for each in annotations)
    assert "::stop-commands::" in result.output
    words = "broken" if is_broken else "kept"
    assert (tmp_path / "summary.md").read_text().startswith(f"## brokerproof: {words}")


def test_a_known_failure_is_accepted_until_its_day(tmp_path: Path, report: Path) -> None:
    path = written(tmp_path / "night.jsonl", overtaking())
    known = tmp_path / "known.toml"
    known.write_text(
        f'[[known]]\ncandidate = "{path}"\nrequirement = "fifo-order"\n'
        'reason = "two threads publish"\nexpires = 2027-01-01\n'
    )
    words = (path, "--report", report, "--known", known)
    assert run(*words, "--today", "2026-12-31").exit_code == 0
    assert run(*words, "--today", "2027-01-02").exit_code == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("{path}", "--only", "selector-match"), "no rule on histories is about 'selector-match'"),
        (("{path}", "--only", "quiescence"), "add --stalled-after DURATION, such as"),
        (("{path}", "{path}"), "night.jsonl: this is named twice; name it once"),
        (("{path}", "{folder}/./night.jsonl"), "night.jsonl: this is named twice; name it once"),
        (("{path}", "{folder}/more/../night.jsonl"), "the same file as {path}; name it once"),
        (("{path}", "{folder}/link.jsonl"), "link.jsonl: this is the same file as {path}"),
        (("{path}", "{folder}/more"), "again.jsonl: this is the same file as {path}"),
        (("{path}", "--form", "csv"), "there is no form 'csv'"),
        (("{text}",), "this is in no form that is known"),
        (("{path}", "--queue", "q"), "'q' is not NAME=WORDS"),
        (("{path}", "--queue", "q=lifo"), "'lifo' is none of fifo, priority:LEVELS"),
        (("{path}", "--undeclared", "priority:0"), "a queue has 1 to 256 levels, not 0"),
        (("{path}", "--queue", "q=fifo,priority:3"), "'fifo' and 'priority:3' contradict"),
        (("{path}", "--queue", "q=priority, priority:3"), "'priority' and 'priority:3' contradict"),
        (("{path}", "--undeclared", "durable,fifo,durable"), "'durable' is said twice"),
        (("{path}", "--queue", "q=fifo", "--queue", "q=durable"), "'q' is said twice"),
        (
            ("{path}", "--queue", "q=priority:11,elsewhere"),
            "q=priority:11,elsewhere contradicts the history, which declares q as fifo",
        ),
        (("{path}", "--stalled-after", "0s"), "'0s' is no time at all"),
        (("{path}", "--stalled-after", "0.1ns"), "'0.1ns' is no time at all"),
        (("{path}", "--stalled-after", "5h"), "a number with one of ns, us, ms, s, min"),
        (("{path}", "--known", "{text}"), "--known"),
    ],
)
def test_what_a_user_gets_wrong_ends_in_one_line(
    tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    path = written(tmp_path / "night.jsonl", sound())
    text = tmp_path / "notes.txt"
    text.write_text("nothing")
    (tmp_path / "link.jsonl").symlink_to(path)
    (tmp_path / "more").mkdir()
    os.link(path, tmp_path / "more" / "again.jsonl")
    places = {"path": path, "text": text, "folder": tmp_path}
    result = run(*(word.format(**places) for word in words), "--report", tmp_path / "report")
    assert result.exit_code == 2
    [line] = [each for each in result.output.splitlines() if each.startswith("Error")]
    assert complaint.format(**places) in line
    assert "Traceback" not in result.output


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = run(tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "none.jsonl" in result.output


def test_what_agrees_with_a_declaration_may_be_said(tmp_path: Path, report: Path) -> None:
    path = written(tmp_path / "night.jsonl", by_priority(declared=True))
    assert run(path, "--queue", "q=priority:10", "--report", report).exit_code == 0
    assert run(path, "--queue", "q=priority", "--report", report).exit_code == 0
    assert run(path, "--queue", "q=fifo", "--report", report).exit_code == 2
    failed = msgspec.structs.replace(sound()[0], levels=3, outcome="failed")
    path = written(tmp_path / "night.jsonl", [*sound(), failed])
    assert run(path, "--queue", "q=fifo", "--report", report).exit_code == 0


def test_a_report_that_cannot_be_written_is_told_before_anything_is_read(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("nothing")
    result = run(written(tmp_path / "night.jsonl", [], b"what?"), "--report", text / "report")
    assert result.exit_code == 2
    assert "name another folder with --report" in result.output
    assert "what?" not in result.output
    assert "rows in" not in result.output


def test_a_report_folder_that_is_not_writable_is_told_first(
    tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report.mkdir()
    monkeypatch.setattr(
        os, "access", lambda path, how: how != os.W_OK or Path(os.fsdecode(path)) != report
    )
    result = run(written(tmp_path / "night.jsonl", sound()), "--report", report)
    assert result.exit_code == 2
    assert f"'--report': Directory '{report}' is not writable" in result.output


@pytest.mark.parametrize(("many", "status"), [(8, 0), (9, 3)])
def test_what_is_kept_by_the_lesser_part_of_the_rows_is_no_success(
    tmp_path: Path, report: Path, many: int, status: int
) -> None:
    path = written(tmp_path / "night.jsonl", sound(), *[b"what?"] * many)
    result = run(path, "--report", report)
    assert result.exit_code == status, result.output
    told = "inconclusive: more rows were rejected than the 8 that were checked" in result.output
    assert told == (status == 3)
    assert json.loads((report / "verdict.json").read_bytes())["status"] == status
    assert run(path, "--report", report, "--accept-inconclusive").exit_code == 0


def test_what_is_broken_in_the_lesser_part_is_broken(tmp_path: Path, report: Path) -> None:
    path = written(tmp_path / "night.jsonl", overtaking(), *[b"what?"] * 9)
    assert run(path, "--report", report).exit_code == 1


def test_that_messages_are_not_told_apart_is_warned_of(tmp_path: Path, report: Path) -> None:
    again = msgspec.structs.replace(sound()[1], start=300, end=301)
    result = run(written(tmp_path / "night.jsonl", [*sound(), again]), "--report", report)
    warning = "4 rows are about messages that are not told apart, of which nothing is said"
    assert warning in result.output
    result = run(written(tmp_path / "night.jsonl", sound()), "--report", report)
    assert "told apart" not in result.output


@pytest.mark.parametrize(
    ("content", "command"),
    [
        (b"\xfd7zXZ\x00", "xz -dc"),
        (b"BZh91AY", "bzip2 -dc"),
        (b"PK\x03\x04", "unzip -p"),
        (gzip.compress(b"PAR1", mtime=0), "gzip -dc"),
        (pa.compress(b'{"schema":"brokerproof-counterexample/1"', "zstd", True), "zstd -dc"),
    ],
)
def test_what_is_read_only_unpacked_is_refused_with_what_unpacks_it(
    tmp_path: Path, report: Path, content: bytes, command: str
) -> None:
    path = tmp_path / "last night.gz"
    path.write_bytes(content)
    result = run(path, "--report", report)
    assert result.exit_code == 2
    told = f"compressed, and read only unpacked; unpack it with: {command} '{path}' > NAME"
    assert told in result.output


@pytest.mark.parametrize("units", [("us", "us"), ("us", "ms"), ("ms", "us")])
def test_times_of_a_clock_in_any_units_are_judged(
    tmp_path: Path, report: Path, units: tuple[str, str]
) -> None:
    for records, status in ((sound(), 0), (overtaking(), 1)):
        table = table_of(records).drop_columns(["place"])
        for name, unit in zip(("start", "end"), units, strict=True):
            at = pc.multiply(table.column(name), 1000).cast(pa.timestamp("us"))
            column = at.cast(pa.timestamp(unit, "UTC"), safe=False)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        pq.write_table(table, tmp_path / "night.parquet")
        result = run(tmp_path / "night.parquet", "--report", report)
        assert result.exit_code == status, result.output
        assert "8 rows in = 8 checked" in result.output


@pytest.mark.parametrize("name", ["night.jsonl", "night.jsonl.gz", "night"])
def test_lines_are_unpacked_while_they_are_read(tmp_path: Path, report: Path, name: str) -> None:
    path = written(tmp_path / name, sound())
    plain = path.read_bytes()
    for packed in (gzip.compress(plain), pa.compress(plain, "zstd", asbytes=True)):
        path.write_bytes(packed)
        result = run(path, "--report", report)
        assert result.exit_code == 0, result.output
        path.write_bytes(packed[:-3])
        result = run(path, "--report", report)
        assert result.exit_code == 2
        assert result.output.endswith(f"{path}: Truncated compressed stream\n")


def test_the_page_has_a_picture_of_the_traffic(tmp_path: Path, report: Path) -> None:
    drawings = []
    for records in (sound(), overtaking(), overtaking()[::-1]):
        named = [
            msgspec.structs.replace(each, queue="<b>q</b>") if each.queue else each
            for each in records
        ]
        run(written(tmp_path / "night.jsonl", named), "--report", report)
        page = (report / "report.html").read_text()
        drawings.append(re.findall(r"<figure.*?</figure>", page, re.DOTALL))
        assert "<script" not in page
        assert "http" not in page.replace("http-equiv", "")
        assert "<b>q</b>" not in page
    [[kept], broken, backwards] = drawings
    assert "&lt;b&gt;q&lt;/b&gt;" in kept
    assert kept.count("<path") == 3
    assert "violation" not in kept
    assert broken[0].count("<title>1 violation from 51 on</title>") == 3
    assert backwards == broken


def test_the_axis_of_a_clock_has_its_units(tmp_path: Path, report: Path) -> None:
    drawings = []
    for begin in (0, 1_700_000_000_000_000_000):
        records = [
            msgspec.structs.replace(each, start=begin + each.start, end=begin + (each.end or 0))
            for each in overtaking()
        ]
        run(written(tmp_path / "night.jsonl", records), "--report", report)
        drawings += re.findall(r"<figure.*?</figure>", (report / "report.html").read_text(), 16)
    by_steps, by_clock = drawings
    assert "2023" not in by_steps
    assert "<span>1 in a bin</span>" in by_steps
    assert "<span>2023-11-14 22:13:20.000 UTC</span>" in by_clock
    assert "<span>1 ns in a bin</span>" in by_clock
    assert "<title>1 violation from 2023-11-14 22:13:20.000 UTC on</title>" in by_clock


def test_the_picture_does_not_grow_with_the_history(tmp_path: Path, report: Path) -> None:
    sizes = []
    for many in (100, 4_000):
        records = [
            recorded("publish", at, at + 1, message=f"m{at}") for at in range(1000, 1000 + many)
        ]
        run(written(tmp_path / "night.jsonl", records), "--report", report)
        [drawing] = re.findall(r"<figure.*?</figure>", (report / "report.html").read_text(), 16)
        sizes.append(len(drawing))
    assert max(sizes) < 1.2 * min(sizes)


def test_that_a_clock_went_back_is_said_once(tmp_path: Path, report: Path) -> None:
    def night(back: int) -> list[Record]:
        return [
            record
            for n in range(30)
            for record in (
                Record(op="publish", queue="q", message=f"m{n}", start=n, end=n),
                Record(
                    op="deliver",
                    queue="q",
                    message=f"m{n}",
                    consumer="c",
                    position=n,
                    start=100 + 10 * n - (back if n >= 10 else 0),
                    end=104 + 10 * n - (back if n >= 10 else 0),
                ),
            )
        ]

    path = written(tmp_path / "night.jsonl", night(50))
    result = run(path, "--report", report)
    told = f"{path}:23: the clock of the recorder went back by at least 36, or the positions are"
    assert result.output.count("the clock") == 1
    assert told in result.output
    assert "the 16 rows out of order are about messages" in result.output
    assert "16 out of order" in result.output
    assert "the clock" not in run(written(path, night(0)), "--report", report).output


def test_the_help_says_what_one_has_to_know() -> None:
    told = " ".join(run("--help").output.split())
    assert "ns, us, ms, s, min" in told
    assert "priority alone is priority:10" in told
    assert "x-max-priority=N makes N+1 levels" in told
    assert "a message without a priority has 0" in told


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["executor.memory=4g"], "is no setting of Spark; say KEY=VALUE"),
        (["spark.executor.memory"], "is no setting of Spark; say KEY=VALUE"),
        (["spark.master=local[2]"], "name the master with --master"),
        (["spark.executor.memory=1g", "spark.executor.memory=2g"], "is said twice"),
    ],
)
def test_a_setting_of_spark_that_is_none_is_refused(
    tmp_path: Path, report: Path, settings: list[str], said: str
) -> None:
    path = written(tmp_path / "night.jsonl", sound())
    words = [word for each in settings for word in ("--spark", each)]
    result = run(path, *words, "--report", report)
    assert result.exit_code == 2
    assert said in result.output
