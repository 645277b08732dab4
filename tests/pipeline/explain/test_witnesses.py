"""Witnesses: the records of a violation, judged again, break the same requirement and no other."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import click.testing
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from brokerproof.checks.commands.command_line import main
from brokerproof.pipeline.alone import judged_alone
from brokerproof.pipeline.explain import witnesses
from brokerproof.pipeline.explain.history_report import WITNESS_FILE
from brokerproof.pipeline.explain.witnesses import Witness, witnesses_of
from brokerproof.pipeline.intervals.known_queues import NOTHING_SAID
from brokerproof.pipeline.readers.json_lines import lines_of
from brokerproof.pipeline.tables import write
from brokerproof.spec.histories import Record
from tests.pipeline.covering_chains import history_of_a_chain
from tests.pipeline.explain.test_explanations import SHOWN
from tests.pipeline.plain_queues import BROKEN_BY, Fault, Shape
from tests.pipeline.random_histories import simulated
from tests.pipeline.recorders import blurred, given, published, recorded, sharp, table_of
from tests.pipeline.rules.test_unanswered_gets import losses

BOUND = 60

PLANTED: dict[tuple[str, str], tuple[Fault | None, int]] = {
    ("given-before-published", "nothing-invented"): ("foresees", 0),
    ("never-published", "nothing-invented"): ("invents", 0),
    ("held-by-two", "nothing-twice"): ("gives-twice", 0),
    ("held-by-two", "settled-once"): ("gives-twice-when-meddled", 6),
    ("told-as-new", "redelivered-flag"): ("forgets-the-flag", 1),
    ("shown-while-held", "browser-sees-available"): ("shows-what-is-held", 6),
    ("shown-again", "browser-once"): ("shows-twice", 6),
    ("shown-again", "browser-never-rewound"): ("shows-again-what-returned", 6),
    ("left-behind", "nothing-lost"): (None, 8),
    ("left-behind", "browser-takes-nothing"): ("loses-what-was-shown", 2),
    ("left-behind", "close-releases"): ("loses-at-close", 12),
    ("left-behind", "settled-once"): ("loses-when-meddled", 24),
    ("left-behind", "survives-restart"): ("loses-in-a-crash", 14),
    ("found-nothing", "get-finds"): (None, 0),
    ("found-nothing-of-several", "get-finds"): (None, 11),
    ("left-behind-of-several", "nothing-lost"): (None, 6),
    ("kept-after-a-purge", "purge-drops"): ("keeps-after-a-purge", 11),
    ("kept-after-a-deletion", "delete-drops"): ("keeps-after-a-deletion", 32),
    ("kept-after-a-crash", "transient-is-lost"): ("keeps-what-is-transient", 14),
    ("more-than-the-window", "credit-not-exceeded"): ("exceeds-a-window", 6),
    ("overtakes-in-a-stream", "fifo-order"): ("overtakes-an-equal", 29),
    ("overtakes-in-a-stream", "browser-in-order"): ("shows-out-of-order", 1),
    ("overtakes-what-waits-in-a-stream", "priority-order"): ("ignores-priority", 5),
    ("overtakes-an-equal", "fifo-order"): (None, 0),
    ("overtakes-what-waits", "priority-order"): (None, 0),
    ("overtakes-what-waits", "release-rewinds"): (None, 23),
    ("overtakes-what-returned", "release-rewinds"): (None, 4),
    ("overtakes-what-returned", "fifo-order"): ("overtakes-an-equal", 61),
    ("overtakes-some-that-wait", "priority-order"): (None, 5),
    ("stalled", "quiescence"): ("loses-what-was-shown", 5),
}
"""For each rule and requirement a fault and a seed that show it; without a fault there are turns.
"""


def history_of(fault: Fault | None, seed: int) -> list[Record]:
    if fault is None:
        return history_of_a_chain(seed)
    return sharp(simulated(seed, Shape(), fault).happened)


def witnesses_in(records: list[Record], folder: Path, bound: int | None) -> dict[str, Witness]:
    write(folder / "part.parquet", records)
    judgement = judged_alone(table_of(records), stalled_after=bound)
    return witnesses_of(judgement, [folder / "part.parquet"], NOTHING_SAID)


def checked(path: Path, report: Path, *words: str) -> set[str]:
    """Return what `brokerproof trace check` finds broken in a file."""
    arguments = ["trace", "check", str(path), "--report", str(report), "--engine", "alone", *words]
    result = click.testing.CliRunner().invoke(main, arguments)
    assert result.exit_code in {0, 1}, result.output
    found = pq.read_table(report / "violations.parquet").column("requirement").to_pylist()
    return set(found)


def to_the_same_subscriber() -> list[Record]:
    """Return a history in which c gets what is less urgent before what returned, times unknown."""
    given = {"op": "deliver", "queue": "q", "consumer": "c"}
    return [
        Record(op="declare", queue="q", start=0, end=0, levels=3),
        Record(op="publish", queue="q", message="less", priority=0, start=1, end=2),
        Record(op="publish", queue="q", message="more", priority=2, start=3, end=4),
        Record(op="deliver", queue="q", message="more", consumer="d", position=0, start=5, end=6),
        Record(op="release", queue="q", message="more", consumer="d", position=0, start=7, end=8),
        Record(message="less", position=0, start=20, end=40, **given),  # type: ignore[arg-type]
        Record(message="more", position=1, start=20, end=41, **given),  # type: ignore[arg-type]
    ]


def crashed(records: list[Record]) -> list[Record]:
    """Return a history with a durable queue and a crash before it is drained."""
    durable = replace(records[0], durable=True)
    persistent = [replace(e, persistent=e.op == "publish") for e in records[1:]]
    stop = [Record(op="crash", start=500, end=501), Record(op="restart", start=502, end=503)]
    return [durable, *persistent, *stop]


def undone() -> list[Record]:
    """Return a history in which a crash undoes a settlement that was answered."""
    return [
        Record(op="declare", queue="q", start=0, end=0, durable=True),
        published("a", 1, 2, persistent=True),
        given("a", 3, 4),
        Record(op="acknowledge", queue="q", message="a", consumer="c", position=0, start=5, end=6),
        Record(op="crash", start=7, end=8),
        Record(op="restart", start=9, end=10),
        given("a", 11, 12, subscriber="d", redelivered=True),
    ]


WRITTEN = {
    ("held-by-two", "settlement-survives-crash"): undone(),
    ("overtakes-what-waits-in-a-stream", "release-rewinds"): to_the_same_subscriber(),
    ("more-lost-than-gets-took", "nothing-lost"): losses(3, gets=2),
    ("more-lost-than-gets-took", "survives-restart"): crashed(losses(3, gets=2)),
}
"""Histories that no planted fault makes."""


def test_every_rule_is_asked_for_under_each_requirement() -> None:
    assert set(SHOWN) == {*PLANTED, *WRITTEN}


@pytest.mark.each_time(12)
@pytest.mark.parametrize(("rule", "requirement"), SHOWN)
def test_what_is_written_about_each_rule_breaks_the_same_and_nothing_else(
    rule: str, requirement: str, tmp_path: Path
) -> None:
    """Over every rule, under each requirement that it can show broken."""
    shown = rule, requirement
    records = WRITTEN[shown] if shown in WRITTEN else history_of(*PLANTED[shown])
    by_time = ["--stalled-after", f"{BOUND}ns"] if requirement == "quiescence" else []
    path = written(tmp_path / "night.jsonl", records)
    assert requirement in checked(path, tmp_path / "first", *by_time)
    rows = pq.read_table(tmp_path / "first" / "violations.parquet").to_pylist()
    [found] = [e for e in rows if e["requirement"] == requirement and e[WITNESS_FILE]]
    assert found["rule"] == rule
    # Nothing else is left in the way, and nothing is rejected.
    again = checked(tmp_path / "first" / found[WITNESS_FILE], tmp_path / "again", *by_time)
    # What a browser may have taken is lost for certain.
    lost = {"nothing-lost"} if requirement == "browser-takes-nothing" else set()
    assert again == {requirement, *lost}
    assert pq.read_table(tmp_path / "again" / "rejected.parquet").num_rows == 0


def test_what_breaks_more_is_about_messages_with_which_more_is_wrong(tmp_path: Path) -> None:
    for fault in BROKEN_BY:
        records = blurred(simulated(1, Shape(), fault).happened, 1, 20, natural=True)
        table = judged_alone(table_of(records)).violations
        for each in witnesses_in(records, tmp_path, None).values():
            assert each.is_shown, each.violation
            if each.besides:
                concerned = {each.violation.message, each.violation.witness}
                wrong = {
                    row["requirement"]
                    for row in table.to_pylist()
                    if concerned & {row["message"], row["witness"]}
                }
                assert each.besides <= wrong, each.violation


def overtaking(*others: Record) -> list[Record]:
    records = [Record(op="declare", queue="q", start=0, end=0)]
    for number, (name, taken_at) in enumerate((("a", 50), ("b", 30))):
        at = 10 * number + 1
        taken = {"queue": "q", "message": name, "consumer": f"c{name}", "position": 0}
        records += [
            Record(op="publish", queue="q", message=name, start=at, end=at + 1),
            Record(op="deliver", start=taken_at, end=taken_at + 1, **taken),  # type: ignore[arg-type]
        ]
    return [*records, *others]


def written(path: Path, records: Iterable[Record]) -> Path:
    path.write_bytes(b"".join(lines_of(records)))
    return path


def test_what_would_break_more_is_left_out(tmp_path: Path) -> None:
    """The message that was overtaken was given a second time as well, and is not asked of that."""
    again = replace(overtaking()[2], consumer="cc", start=60, end=61)
    found = witnesses_in(overtaking(again), tmp_path, None)
    assert set(found) == {"fifo-order", "nothing-twice"}
    for name, each in found.items():
        assert (each.is_shown, each.besides) == (True, frozenset())
        assert set(judged_alone(each.records).violations["requirement"].to_pylist()) == {name}
    assert found["fifo-order"].records.num_rows == 5


def test_subscribers_that_have_nothing_to_do_with_it_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [
        recorded("consume", at, at + 1, consumer=f"other {at}", channel=f"of {at}")
        for at in range(70, 90)
    ]
    found = witnesses_in(overtaking(*others), tmp_path, None)["fifo-order"]
    assert found.is_shown
    assert found.records.num_rows == len(overtaking())
    choices = witnesses._choices
    monkeypatch.setattr(witnesses, "_choices", lambda *asked: [*choices(*asked)][1:])
    found = witnesses_in(overtaking(*others), tmp_path, None)["fifo-order"]
    assert found.records.num_rows == len(overtaking(*others))


def test_a_get_without_an_answer_is_kept_with_what_ends_it(tmp_path: Path) -> None:
    """While its channel may be open, it may have taken the message that was lost."""
    records = [
        Record(op="declare", queue="q", start=0, end=0),
        recorded("get", 1, None, consumer="g", channel="of g", outcome="unknown"),
        Record(op="close", channel="of g", start=2, end=3),
        Record(op="publish", queue="q", message="lost", start=4, end=5),
        Record(op="drained", queue="q", start=10, end=11),
    ]
    found = witnesses_in(records, tmp_path, None)["nothing-lost"]
    assert found.records.num_rows == len(records)
    without = table_of([each for each in records if each.op != "close"])
    assert not judged_alone(without).violations.num_rows


def test_what_cannot_be_shown_by_itself_is_said_to_break_more(tmp_path: Path) -> None:
    """The only message that overtakes another was given before it was published."""
    records = overtaking()
    early = [
        replace(each, start=35, end=36) if (each.op, each.message) == ("publish", "b") else each
        for each in records
    ]
    found = witnesses_in(early, tmp_path, None)["fifo-order"]
    assert found.besides == {"nothing-invented"}
    assert found.remark == "its records break nothing-invented too"
    assert found.records.num_rows == 5


def test_without_judging_them_again_some_would_break_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "TRIALS_MAX", 0)
    again = replace(overtaking()[2], consumer="cc", start=60, end=61)
    assert witnesses_in(overtaking(again), tmp_path, None)["fifo-order"].besides


def test_a_row_says_which_file_has_its_records(tmp_path: Path) -> None:
    other = [
        replace(each, queue="r", start=each.start + 100, end=(each.end or 0) + 100)
        for each in overtaking()
    ]
    path = written(tmp_path / "night.jsonl", [*overtaking(), *other])
    assert checked(path, tmp_path / "report") == {"fifo-order"}
    rows = pq.read_table(tmp_path / "report" / "violations.parquet").to_pylist()
    file = "witnesses/fifo-order.jsonl"
    assert {row["queue"]: row[WITNESS_FILE] for row in rows} == {"q": file, "r": None}
    assert (tmp_path / "report" / file).exists()
    said = json.loads((tmp_path / "report" / "verdict.json").read_bytes())
    [broken] = [e for e in said["candidates"][0]["verdicts"] if e["verdict"] == "broken"]
    assert broken["reason"].startswith("2 violations; one of them: ")
    assert broken["reason"].endswith(f"recorded in {file}")
    assert broken["counterexample"]["records"] == file
    page = (tmp_path / "report" / "report.html").read_text()
    assert f'href="{file}"' in page
    assert f"({path}:3)" in page


def test_a_violation_is_explained_without_a_record_about_no_message(tmp_path: Path) -> None:
    path = written(tmp_path / "night.jsonl", overtaking()[2:3])
    assert checked(path, tmp_path / "report") == {"nothing-invented"}
    path = written(tmp_path / "night.jsonl", overtaking()[1:])
    assert checked(path, tmp_path / "report", "--undeclared", "fifo") == {"fifo-order"}


def test_what_was_recorded_late_is_shown_without_what_came_before(tmp_path: Path) -> None:
    """The consumer has what was published before the recording began, and overtakes besides."""
    window = Record(op="consume", queue="q", consumer="cb", channel="1", window=9, start=5, end=6)
    before = replace(overtaking()[4], message="z", position=1, start=32, end=33)
    write(tmp_path / "part.parquet", records := overtaking(window, before))
    judgement = judged_alone(table_of(records), begins_late=True)
    found = witnesses_of(judgement, [tmp_path / "part.parquet"], NOTHING_SAID)["fifo-order"]
    assert (found.is_shown, found.besides, found.begins_late) == (True, frozenset(), False)
    assert "z" not in found.records.column("message").to_pylist()
